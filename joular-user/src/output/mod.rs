//! Says what happens in a run and what came of it: the live view, the closing summary, the JSON
//! stream, notices of faults, live metrics, what collectors get, what virtual machines are told.
//!
//! Each of them is an [`Output`](joular_data::output::Output): it is told what happens in the order
//! in which it happens, and keeps what it needs. The data set ([`joular_data::dataset`]) is another
//! one.

mod faults;
mod guests;
pub mod http;
mod json;
mod json_context;
mod json_jvms;
mod json_phases;
mod live;
mod live_text;
mod metrics;
mod otlp;
mod run_totals;
mod screen;
pub mod secret_file;
#[cfg(test)]
pub(crate) mod snapshot;
mod summary;

pub use self::{
    faults::FaultNotices,
    guests::GuestPower,
    http::{Server, Tls, TlsError, Token, TokenError},
    json::JsonOutput,
    live::Screen,
    metrics::{
        Exposition, Families, Figure, Kind, Labels, MetricsOutput, ReadService, ServiceFigures, Shipped, exposed,
    },
    otlp::{Collector, Headers, HeadersError, Hooks, OtlpOutput, Pushes},
    run_totals::{RunTotals, RunTotalsOutput},
    screen::ScreenOutput,
};
