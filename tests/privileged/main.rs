//! Runs live tests: the real kernel, real JVMs, data sets read by real engines. They need root:
//! `cargo xtask test` builds them as the developer and runs them as root, those of `alone` one at a
//! time, and three of `beside` at once. Those of `slow` run with `cargo xtask test --slow` only.

#![allow(clippy::print_stdout, reason = "tables of a failed test")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic with a trace is how tests fail")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures of runs of seconds")]

mod alone;
mod beside;
mod burner;
mod capture;
mod per_request;
mod readings;
mod recordings;
mod resumed;
mod slow;
