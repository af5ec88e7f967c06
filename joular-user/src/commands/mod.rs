//! Runs each subcommand, and returns the exit code that it ends with.

mod app;
mod board;
mod comparison;
mod data;
mod experiment;
mod load;
mod machine;
mod manual;
mod methods;
mod place;
mod protocol;
mod requests;
mod support;
mod sweep;

use std::io;

use anyhow::anyhow;
use joular_data::{
    dataset::DataSetError,
    output::OutputError,
    report::export::ExportError,
    shipping::ShipError,
    text::{escape, escape_lines},
};

pub use self::experiment::run_trial;
use crate::{
    cli::{Cli, Command, Exit},
    config::ConfigError,
    experiment::conduct::ConductError,
    load::LoadingError,
    output::Screen,
    pipeline::Failure,
    serve::ServeError,
};

/// Does what the command line says.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        None => machine::record(cli.flags),
        Some(Command::Record(flags)) => machine::record(flags),
        Some(Command::Top(flags)) => machine::watch(flags),
        Some(Command::Run(flags)) if flags.experiment.is_any() => experiment::run(&flags),
        Some(Command::Run(flags)) => machine::measure(&flags),
        Some(Command::Sweep(flags)) => sweep::run(&flags),
        Some(Command::Agent(flags)) => machine::serve(flags),
        Some(Command::Doctor(flags)) => machine::check(flags),
        Some(Command::Support(flags)) => support::run(&flags),
        Some(Command::Sources(flags)) => machine::list(flags),
        Some(Command::Calibrate(flags)) => machine::calibrate(flags),
        Some(Command::Report(flags)) => data::show(&flags),
        Some(Command::Requests(flags)) => requests::run(&flags),
        Some(Command::Runs(flags)) => data::list_runs(&flags),
        Some(Command::Flamegraph(flags)) => data::flamegraph(&flags),
        Some(Command::Html(flags)) => data::html(&flags),
        Some(Command::Serve(flags)) => data::serve(&flags),
        Some(Command::Mcp(flags)) => data::answer_calls(&flags),
        Some(Command::Diff(flags)) => comparison::diff(&flags),
        Some(Command::Baseline(flags)) => comparison::baseline(&flags),
        Some(Command::Export(flags)) => data::export(&flags),
        Some(Command::Compact(flags)) => data::compact(&flags),
        Some(Command::Rollup(flags)) => data::roll_up(&flags),
        Some(Command::Ship(flags)) => place::ship(&flags),
        Some(Command::Expire(flags)) => place::expire(&flags),
        Some(Command::Erase(flags)) => place::erase(&flags),
        Some(Command::Load(flags)) => load::run(&flags),
        Some(Command::Reattribute(flags)) => data::reattribute(&flags),
        Some(Command::Audit(flags)) => data::audit(&flags),
        Some(Command::Validate(flags)) if flags.protocol => protocol::run(&flags),
        Some(Command::Validate(flags)) => data::validate(&flags),
        Some(Command::Jmh(flags)) => data::jmh(&flags),
        Some(Command::Completions(flags)) => manual::completions(&flags),
        Some(Command::Man(flags)) => manual::man(&flags),
    }
}

/// The exit code of an error that [`run`] returned.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.exit();
    }
    if let Some(failed) = error.downcast_ref::<ConductError>() {
        return experiment::exit_of(failed);
    }
    if let Some(failed) = error.downcast_ref::<ServeError>() {
        return failed.exit();
    }
    if let Some(failed) = error.downcast_ref::<LoadingError>() {
        return failed.exit();
    }
    match error.downcast_ref::<DataSetError>() {
        Some(DataSetError::Output(_)) => Exit::Output,
        _ if matches!(error.downcast_ref(), Some(ShipError::Target(_))) => Exit::Output,
        _ if error.is::<OutputError>() => Exit::Output,
        _ if error.downcast_ref::<ExportError>().is_some_and(ExportError::is_of_output) => Exit::Output,
        _ if error.is::<ConfigError>() => Exit::Usage,
        _ => Exit::Failure,
    }
}

/// What to say about it. Paths and values in it may be anyone's, so nothing in it
/// acts on a terminal; what is wrong with a data set is one line.
pub fn message_of(error: &anyhow::Error) -> String {
    let text = error.to_string();
    if error.is::<DataSetError>() {
        return escape(&text);
    }
    // The kernel's verifier, for one, says more than a line.
    escape_lines(&text)
}

/// A reader that has seen enough and closes the pipe is not an error.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// How wide tables on standard output may be; `None` if it is no terminal.
fn terminal_width() -> Option<usize> {
    Screen::of(io::stdout()).width()
}

fn unwritten(what: &'static str) -> impl Fn(io::Error) -> anyhow::Error {
    move |cause| anyhow!("writing {what} to standard output: {cause}")
}
