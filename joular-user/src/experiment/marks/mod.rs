//! Takes marks of a running command: what it says of its phases, and of what happens.
//!
//! Marks come by lines of the command's output that match a pattern ([`output`]), and by a socket and a named pipe whose
//! paths are in the command's environment ([`listener`]). Each has a thread that notes the time at once. From there marks
//! wait in a queue ([`feed`]) until the recording takes them. A program may say what it wants, as often as it wants: all
//! that is kept of it is bounded.

pub mod feed;
pub mod listener;
pub mod output;
pub mod rules;
mod said;
mod turns;

pub use self::{
    feed::{Arriving, Feed},
    listener::{Listener, Listening},
    output::Copying,
    rules::{RuleError, Rules},
};
