//! Answers questions of programs that call tools: a server of the Model Context Protocol, on standard input and output.
//!
//! [`lines`] reads messages of bounded length, [`protocol`] understands them, [`session`] says what is to be done about each,
//! and [`server`] does it: calls of [`tools`] read the data set as `serve` does ([`crate::query`]), a few at a time and each
//! for a limited time. An answer is made small enough for its reader ([`bounded`]).
//!
//! It writes nothing but messages of the protocol to standard output, and never anything else anywhere. The data set is fixed
//! at the start: no message can name another. Names in answers come from programs that may be hostile; what would act on a
//! terminal is spelled out in them.

mod bounded;
mod explain;
mod figures;
mod glossary;
mod lines;
mod protocol;
mod server;
mod session;
mod tools;

pub use self::server::{McpError, run};
