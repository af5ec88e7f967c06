//! What each subcommand does, and the exit code that it ends with.

use std::{io, path::Path};

use anyhow::anyhow;

use crate::{
    cli::{
        AuditFlags, CalibrateFlags, Cli, Command, DoctorFlags, Exit, Flags, FlamegraphFlags, HtmlFlags,
        ReattributeFlags,
    },
    config::{self, Calibrate, CalibrationChoice, Config, ConfigError},
    doctor,
    events::RunInfo,
    output::{OutputError, artifact},
    pipeline::{self, Failure},
    privileges,
    report::{self, DataSetError},
    sources,
};

/// Does what the command line says.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Some(Command::Doctor(flags)) => check(flags),
        Some(Command::Sources(flags)) => list(flags),
        Some(Command::Calibrate(flags)) => calibrate(flags),
        Some(Command::Flamegraph(flags)) => flamegraph(&flags),
        Some(Command::Html(flags)) => html(&flags),
        Some(Command::Reattribute(flags)) => reattribute(&flags),
        Some(Command::Audit(flags)) => audit(&flags),
        None => record(cli.flags),
    }
}

/// The exit code of an error that [`run`] returned.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.exit();
    }
    match error.downcast_ref::<DataSetError>() {
        Some(DataSetError::Output(_)) => Exit::Output,
        _ if error.is::<OutputError>() => Exit::Output,
        _ if error.is::<ConfigError>() => Exit::Usage,
        _ => Exit::Failure,
    }
}

fn record(flags: Flags) -> anyhow::Result<Exit> {
    Ok(pipeline::run(&Config::load(flags)?)?)
}

fn check(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let proc_root = flags.source.proc_root.clone().unwrap_or_else(|| "/proc".into());
    let options = config::energy_options(flags.into())?;
    doctor::run(&mut io::stdout().lock(), &proc_root, &options, json).map_err(unwritten("the checks"))
}

fn list(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let options = config::energy_options(flags.into())?;
    sources::run(&mut io::stdout().lock(), &options, json).map_err(unwritten("the sources"))
}

fn calibrate(flags: CalibrateFlags) -> anyhow::Result<Exit> {
    Ok(pipeline::calibrate(&Calibrate::resolve(flags)?, &mut io::stdout().lock())?)
}

fn reattribute(flags: &ReattributeFlags) -> anyhow::Result<Exit> {
    let choices = config::policy_choices(flags.policy())?;
    let calibration = CalibrationChoice::of(flags.calibration.as_deref());
    let owner = privileges::invoking_user();
    let policy_of = |run: &RunInfo| -> anyhow::Result<_> {
        Ok(pipeline::policy_again(&choices, &calibration, run).map_err(Failure::from)?)
    };
    let written = report::commands::reattribute(&flags.data, &flags.output, owner, policy_of)?;
    pipeline::notice(&format!(
        "attributed {} runs with {} windows again: {}",
        written.runs,
        written.windows,
        flags.output.display()
    ));
    Ok(Exit::Success)
}

fn audit(flags: &AuditFlags) -> anyhow::Result<Exit> {
    let said = report::commands::audit(&flags.data, flags.json, &mut io::stdout().lock())?;
    let is_well = said.map_err(unwritten("the audit"))?;
    Ok(if is_well { Exit::Success } else { Exit::Audit })
}

fn flamegraph(flags: &FlamegraphFlags) -> anyhow::Result<Exit> {
    let (svg, headline) = report::flamegraph::svg(&config::drawing(flags)?)?;
    show(&flags.output, &svg, &headline.text())
}

fn html(flags: &HtmlFlags) -> anyhow::Result<Exit> {
    let (page, headline) = report::html::page(&config::page(flags)?)?;
    show(&flags.output, &page, &headline.text())
}

/// Writes what a command made, and says what it is about.
fn show(path: &Path, bytes: &[u8], headline: &str) -> anyhow::Result<Exit> {
    artifact::write(path, bytes, privileges::invoking_user(), &mut io::stdout().lock())?;
    if path != Path::new(artifact::STDOUT) {
        pipeline::notice(&format!("{}: {headline}", path.display()));
    }
    Ok(Exit::Success)
}

fn unwritten(what: &'static str) -> impl Fn(io::Error) -> anyhow::Error {
    move |cause| anyhow!("writing {what} to standard output: {cause}")
}
