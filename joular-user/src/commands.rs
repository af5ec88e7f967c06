//! What each subcommand does, and the exit code that it ends with.

use std::{io, io::Write as _, path::Path};

use anyhow::anyhow;

use crate::{
    cli::{
        AuditFlags, CalibrateFlags, Cli, Command, CompactFlags, CompletionsFlags, DiffFlags, DoctorFlags, Exit,
        ExportFlags, Flags, FlamegraphFlags, HtmlFlags, ManFlags, ReattributeFlags, ReportFlags, pages,
    },
    config::{self, Calibrate, CalibrationChoice, Config, ConfigError},
    doctor,
    events::RunInfo,
    output::{
        OutputError, Screen, artifact,
        text::{escape, exact_joules},
    },
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
        Some(Command::Compact(flags)) => compact(&flags),
        Some(Command::Flamegraph(flags)) => flamegraph(&flags),
        Some(Command::Html(flags)) => html(&flags),
        Some(Command::Reattribute(flags)) => reattribute(&flags),
        Some(Command::Audit(flags)) => audit(&flags),
        Some(Command::Diff(flags)) => compare(&flags),
        Some(Command::Completions(flags)) => completions(&flags),
        Some(Command::Man(flags)) => man(&flags),
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

/// What to say about it. Paths and values in it may be anyone's, so nothing in it
/// acts on a terminal; what is wrong with a data set is one line.
pub fn message_of(error: &anyhow::Error) -> String {
    let text = error.to_string();
    if error.is::<DataSetError>() {
        return escape(&text);
    }
    // The kernel's verifier, for one, says more than a line.
    text.split('\n')
        .map(|line| line.split('\t').map(escape).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
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

fn compact(flags: &CompactFlags) -> anyhow::Result<Exit> {
    let done = report::commands::compact(&flags.data, flags.output.as_deref(), privileges::invoking_user())?;
    let said = done.say(flags.json, &mut io::stdout().lock());
    said.map_err(unwritten("what was done"))?;
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
    let said = report::ranking::command::run(&flags.data, &request, look, &mut out)?;
    unless_closed(said).map_err(unwritten("the report"))?;
    Ok(Exit::Success)
}

fn compare(flags: &DiffFlags) -> anyhow::Result<Exit> {
    let (filter, app) = config::part(&flags.part)?;
    let choices = config::diff_choices(flags)?;
    let comparison = report::diff::run(&flags.a, &flags.b, &filter, app.as_ref(), &choices)?;
    let said = comparison.write(&choices, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("the comparison"))?;
    if comparison.has_regressed(&choices) {
        let b = escape(&flags.b.display().to_string());
        pipeline::notice(&format!("{b} is certain to need more than --fail-above allows"));
        return Ok(Exit::Regression);
    }
    Ok(Exit::Success)
}

fn flamegraph(flags: &FlamegraphFlags) -> anyhow::Result<Exit> {
    let (svg, headline) = report::flamegraph::svg(&config::drawing(flags)?)?;
    written(&flags.output, &svg, &headline.text())
}

fn html(flags: &HtmlFlags) -> anyhow::Result<Exit> {
    let (page, headline) = report::html::page(&config::page(flags)?)?;
    written(&flags.output, &page, &headline.text())
}

/// Writes what a command made, and says what it is about.
fn written(path: &Path, bytes: &[u8], headline: &str) -> anyhow::Result<Exit> {
    artifact::write(path, bytes, privileges::invoking_user(), &mut io::stdout().lock())?;
    if path != Path::new(artifact::STDOUT) {
        pipeline::notice(&format!("{}: {headline}", path.display()));
    }
    Ok(Exit::Success)
}

fn completions(flags: &CompletionsFlags) -> anyhow::Result<Exit> {
    unless_closed(pages::completions(flags.shell, &mut io::stdout().lock())).map_err(unwritten("completions"))?;
    Ok(Exit::Success)
}

fn man(flags: &ManFlags) -> anyhow::Result<Exit> {
    if let Some(dir) = &flags.output {
        let pages = pages::write_man_pages(dir).map_err(|cause| anyhow!("writing man pages: {cause}"))?;
        pipeline::notice(&format!("wrote {pages} man pages: {}", dir.display()));
        return Ok(Exit::Success);
    }
    let Some(page) = pages::man_page(flags.page.as_deref())? else {
        let cause = "there is no such subcommand: see joular-bpf --help".to_owned();
        return Err(ConfigError::Invalid { place: "COMMAND".to_owned(), cause }.into());
    };
    unless_closed(io::stdout().lock().write_all(&page.roff)).map_err(unwritten("the page"))?;
    Ok(Exit::Success)
}

/// A reader that has seen enough and closes the pipe is no error.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn unwritten(what: &'static str) -> impl Fn(io::Error) -> anyhow::Error {
    move |cause| anyhow!("writing {what} to standard output: {cause}")
}
