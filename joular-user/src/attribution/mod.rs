//! Who gets which joule. Pure: no I/O, no clock, no /proc.
//!
//! [`Engine`] holds what lasts between windows and turns each window into a
//! [`report::WindowReport`]: threads are joined with processes, each domain's
//! energy is divided among threads by CPU time ([`domains`], [`conservation`]),
//! also of windows whose energy comes late ([`missed`]), a thread's among its
//! call paths ([`paths`]) by samples ([`branches`]), and paths are summed to
//! methods ([`methods`]). Every division is by largest remainder ([`split`]),
//! so every level sums to the one above it exactly.

mod branches;
mod category;
mod conservation;
mod domains;
mod engine;
#[cfg(test)]
mod engine_tests;
mod methods;
mod missed;
mod paths;
pub mod report;
mod split;
mod threads;

pub use engine::Engine;
