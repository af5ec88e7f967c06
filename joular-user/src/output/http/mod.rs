//! Answers HTTP requests on a thread of its own: live metrics ([`super::metrics`]), and data sets.
//!
//! A [`Server`] listens, speaks TLS if it has a certificate ([`tls`]), and knows who may read ([`token`]). What it answers
//! is for its [`Answers`] to say. Connections are few ([`seats`]), and each has its time, so slow clients hold up nothing
//! but each other.

mod seats;
mod server;
mod tls;
mod token;

pub use self::{
    server::{Answering, Answers, Asked, Limits, PLAIN, Running, Server, response, unauthorised},
    tls::{Tls, TlsError},
    token::{Token, TokenError},
};
