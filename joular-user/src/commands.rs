//! What each subcommand does, and the exit code that it ends with.

use std::io;

use anyhow::anyhow;

use crate::{
    cli::{
        AuditFlags, CalibrateFlags, Cli, Command, DoctorFlags, Exit, ExportFlags, Flags, ReattributeFlags, ReportFlags,
    },
    config::{self, Calibrate, CalibrationChoice, Config, ConfigError},
    doctor,
    events::RunInfo,
    output::{OutputError, Screen, text::exact_joules},
    pipeline::{self, Failure},
    privileges,
    report::{
        self, DataSetError,
        export::{ExportError, Format, Selection},
    },
    sources,
};

/// Does what the command line says.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Some(Command::Doctor(flags)) => check(flags),
        Some(Command::Sources(flags)) => list(flags),
        Some(Command::Calibrate(flags)) => calibrate(flags),
        Some(Command::Report(flags)) => show(&flags),
        Some(Command::Export(flags)) => export(&flags),
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
        _ if error.downcast_ref::<ExportError>().is_some_and(ExportError::is_of_output) => Exit::Output,
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

fn export(flags: &ExportFlags) -> anyhow::Result<Exit> {
    let format = Format::of(&flags.format).ok_or_else(|| ConfigError::Invalid {
        place: "--format".to_owned(),
        cause: format!("'{}' is none of {}", flags.format, Format::names()),
    })?;
    let (filter, app) = config::part(&flags.part)?;
    let selection = Selection { data: &flags.data, filter: &filter, app: app.as_ref() };
    match format.export(&selection, flags.output.as_deref(), privileges::invoking_user()) {
        Ok(exported) => {
            let joules = exact_joules(exported.energy);
            pipeline::notice(&format!("exported {joules} J, {}, as {}", exported.origin, format.name));
            Ok(Exit::Success)
        }
        Err(error) if error.is_broken_pipe() => Ok(Exit::Success),
        Err(error) => Err(error.into()),
    }
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

fn show(flags: &ReportFlags) -> anyhow::Result<Exit> {
    let request = config::report_request(flags)?;
    let out = io::stdout();
    let look = match Screen::of(io::stdout(), std::env::var_os("NO_COLOR").is_none()) {
        Screen::Terminal { size, colours } => report::ranking::Look { width: Some(size().width), colours },
        Screen::Stream => report::ranking::Look::default(),
    };
    let mut out = io::BufWriter::new(out.lock());
    said(report::ranking::command::run(&flags.data, &request, look, &mut out)?, "the report")
}

/// A reader that has seen enough is no error.
fn said(written: io::Result<()>, what: &'static str) -> anyhow::Result<Exit> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        other => other.map(|()| Exit::Success).map_err(unwritten(what)),
    }
}

fn unwritten(what: &'static str) -> impl Fn(io::Error) -> anyhow::Error {
    move |cause| anyhow!("writing {what} to standard output: {cause}")
}
