//! Tests selections and comparisons of data sets whose every number is known.

mod alike;
mod allocated;
mod app;
mod baseline;
mod charges;
mod counted;
mod diff;
mod footprint;
pub(in crate::report) mod handlers;
mod hosts;
mod inference;
mod io;
mod lag;
mod light_load;
mod measures;
mod moved;
mod per_request;
mod profile;
mod secrets;
mod sessions;
mod unreadable;
mod watts;
