//! Runs commands about a data set. None of them needs privileges.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use joular_data::{
    dataset::{audit, compact, reattribute, secrets, store::SharedPlace},
    events::RunInfo,
    experiment::jmh::{Benchmarks, JmhError},
    model::policy::Policy,
    report::{
        self, Format, artifact,
        export::{ExportFormat, Selection},
        footprint::FootprintError,
        html::PageError,
        measure::Measure,
        profile::Unreadable,
    },
    rollup,
    text::{count, exact_joules},
};

use super::{app, board::NewBoard, place, terminal_width, unless_closed, unwritten};
use crate::{
    cli::{
        AuditFlags, CompactFlags, Exit, ExportFlags, FlamegraphFlags, HtmlFlags, JmhFlags, McpFlags, ReattributeFlags,
        ReportFlags, RollupFlags, RunsFlags, ServeFlags, ValidateFlags,
    },
    config::{self, CalibrationChoice, ConfigError, WeightsAgain},
    mcp::{self, McpError},
    messages,
    output::Screen,
    pipeline::{self, Failure},
    privileges,
    progress::Progress,
    serve,
};

pub(super) fn show(flags: &ReportFlags) -> anyhow::Result<Exit> {
    if flags.watts {
        let request = config::watts_request(flags)?;
        let tables = naming_skipped(&request.filter.unreadable, || report::watts::read(&flags.data, &request))?;
        unless_closed(tables.write(terminal_width(), &mut io::stdout().lock())).map_err(unwritten("watts"))?;
        return Ok(Exit::Success);
    }
    if let Some(counts) = &flags.requests {
        let wanted = config::requests(flags, counts)?;
        let found = naming_skipped(&wanted.filter.unreadable, || report::requests::read(&flags.data, &wanted))?;
        unless_closed(found.write(terminal_width(), &mut io::stdout().lock()))
            .map_err(unwritten("joules per request"))?;
        return Ok(Exit::Success);
    }
    let part = app::resolved_of(&flags.part, &[&flags.data], &flags.tier)?;
    let flags = &ReportFlags { part, ..flags.clone() };
    let request = config::report_request(flags, config::footprint(&flags.footprint)?)?;
    let out = io::stdout();
    let look = match Screen::of(io::stdout()) {
        Screen::Terminal { size, colours } => report::ranking::Look { width: Some(size().width), colours },
        Screen::Stream => report::ranking::Look::default(),
    };
    let mut out = io::BufWriter::new(out.lock());
    let said = report::ranking::command::run(&flags.data, &request, look, &mut out);
    if said.is_err() {
        say_skipped(&request.filter.unreadable);
    }
    let said = said.map_err(plainly)?;
    unless_closed(said.written).map_err(unwritten("the report"))?;
    said.notices.iter().for_each(|notice| messages::warn(notice));
    say_what_goes_on(&flags.data);
    Ok(Exit::Success)
}

/// What `read` gives. Runs that it left out are named, also if it fails in the end.
fn naming_skipped<T>(unreadable: &Unreadable, read: impl FnOnce() -> T) -> T {
    let done = read();
    say_skipped(unreadable);
    done
}

fn say_skipped(unreadable: &Unreadable) {
    unreadable.skipped().line().iter().for_each(|line| messages::warn(line));
}

fn say_what_goes_on(data: &Path) {
    report::runs::goes_on(data).iter().for_each(|text| messages::info(text));
}

pub(super) fn list_runs(flags: &RunsFlags) -> anyhow::Result<Exit> {
    let unreadable = config::unreadable(flags.strict);
    let runs = naming_skipped(&unreadable, || report::runs::read(&flags.data, &unreadable))?;
    let width = terminal_width();
    unless_closed(runs.write(flags.json, width, &mut io::stdout().lock())).map_err(unwritten("the list of runs"))?;
    Ok(Exit::Success)
}

pub(super) fn jmh(flags: &JmhFlags) -> anyhow::Result<Exit> {
    let found = Benchmarks::read(&flags.result, &flags.data).map_err(|error| match error {
        JmhError::Data(error) => error.into(),
        error => anyhow::Error::from(error),
    })?;
    let format = Format::of_flags(flags.json, flags.csv, flags.markdown);
    unless_closed(found.write(format, terminal_width(), &mut io::stdout().lock()))
        .map_err(unwritten("joules per operation"))?;
    Ok(if found.rows.iter().any(|row| row.operation.is_some()) { Exit::Success } else { Exit::Failure })
}

pub(super) fn flamegraph(flags: &FlamegraphFlags) -> anyhow::Result<Exit> {
    let data: Vec<&Path> = [&flags.data].into_iter().chain(&flags.diff).map(PathBuf::as_path).collect();
    let part = app::resolved_of(&flags.part, &data, &flags.tier)?;
    let drawing = config::drawing(&FlamegraphFlags { part, ..flags.clone() })?;
    say_what_goes_on(&flags.data);
    let unreadable = &drawing.filter.unreadable;
    let (picture, headline) = naming_skipped(unreadable, || report::flamegraph::draw(&drawing))?;
    written(&flags.output, &picture, &headline)
}

pub(super) fn html(flags: &HtmlFlags) -> anyhow::Result<Exit> {
    let part = app::resolved(&flags.part, &[&flags.data])?;
    let choice = config::page(&HtmlFlags { part, ..flags.clone() })?;
    say_what_goes_on(&flags.data);
    let progress = Progress::waiting("reading the data set");
    let page = report::html::page(&choice).map_err(|error| match error {
        PageError::Figures(error) => plainly(error),
        error => error.into(),
    });
    drop(progress);
    let page = naming_skipped(&choice.filter.unreadable, || page)?;
    page.notices.iter().for_each(|notice| messages::warn(notice));
    written(&flags.output, &page.bytes, &page.headline.text())
}

/// An error of the data set as every command has it.
fn plainly(error: FootprintError) -> anyhow::Error {
    match error {
        FootprintError::Data(error) => error.into(),
        error => error.into(),
    }
}

/// Writes what a command made, and says what it is about.
fn written(path: &Path, bytes: &[u8], headline: &str) -> anyhow::Result<Exit> {
    artifact::write(path, bytes, privileges::invoking_user(), &mut io::stdout().lock())?;
    if path != Path::new(artifact::STDOUT) {
        messages::warn(&format!("{}: {headline}", path.display()));
    }
    Ok(Exit::Success)
}

pub(super) fn serve(flags: &ServeFlags) -> anyhow::Result<Exit> {
    serve::run(&config::serving(flags)?)?;
    Ok(Exit::Success)
}

pub(super) fn answer_calls(flags: &McpFlags) -> anyhow::Result<Exit> {
    let answered = mcp::run(&flags.data, config::reading_time(&flags.timeout)?);
    answered.map_err(|error| match error {
        McpError::Data(error) => error.into(),
        error => anyhow::Error::from(error),
    })?;
    Ok(Exit::Success)
}

pub(super) fn export(flags: &ExportFlags) -> anyhow::Result<Exit> {
    let format = ExportFormat::of(&flags.format).ok_or_else(|| ConfigError::Invalid {
        place: "--format".to_owned(),
        cause: format!("'{}' is not one of {}", flags.format, ExportFormat::names()),
    })?;
    let measure = config::exported_measure(flags, format.is_of_one_measure())?;
    let (filter, app) = config::part(&app::resolved(&flags.part, &[&flags.data])?)?;
    let progress = flags.output.is_some().then(|| Progress::waiting("exporting"));
    let selection = Selection { data: &flags.data, filter: &filter, app: app.as_ref(), measure };
    let exported = format.export(&selection, flags.output.as_deref(), privileges::invoking_user());
    drop(progress);
    match naming_skipped(&filter.unreadable, || exported) {
        Ok(exported) => {
            let what = match measure {
                Measure::Energy => format!("{} J, {}", exact_joules(exported.energy), exported.origin),
                measure => measure.title().to_lowercase(),
            };
            messages::info(&format!("exported {what}, as {}", format.name));
            Ok(Exit::Success)
        }
        Err(error) if error.is_broken_pipe() => Ok(Exit::Success),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn compact(flags: &CompactFlags) -> anyhow::Result<Exit> {
    let place = SharedPlace::of(&flags.data, privileges::invoking_user())?;
    if place.is_shared() {
        return place::compact(flags, &place);
    }
    let redaction = config::redaction_if_asked(&flags.redaction)?;
    let progress = Progress::waiting("merging files");
    let done = compact::run(&flags.data, flags.output.as_deref(), privileges::invoking_user(), &redaction)?;
    drop(progress);
    let said = done.say(flags.json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("what was done"))?;
    Ok(Exit::Success)
}

pub(super) fn roll_up(flags: &RollupFlags) -> anyhow::Result<Exit> {
    let length_ns = config::rollup_window_ns(&flags.window)?;
    let redaction = config::redaction(&flags.command_line)?;
    let progress = Progress::waiting("summing windows");
    let done = rollup::run(&flags.data, &flags.output, length_ns, privileges::invoking_user(), &redaction)?;
    drop(progress);
    let said = done.say(flags.json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("what was done"))?;
    Ok(Exit::Success)
}

pub(super) fn reattribute(flags: &ReattributeFlags) -> anyhow::Result<Exit> {
    let choices = config::policy_choices(flags.policy())?;
    let calibration = CalibrationChoice::of(flags.calibration.as_deref());
    let owner = privileges::invoking_user();
    let weights = config::weights_again(flags)?;
    let policy_of = |run: &RunInfo| -> anyhow::Result<_> {
        let policy = pipeline::policy_again(&choices, &calibration, run).map_err(Failure::from)?;
        let watts_by = policy.watts_by.filter(|_| weights == WeightsAgain::AsRecorded);
        Ok(Policy { watts_by, ..policy })
    };
    let factors = match weights {
        WeightsAgain::Fitted(by) => Some(report::watts::factors(&flags.data, by)?),
        _ => None,
    };
    let redaction = config::redaction_if_asked(&flags.redaction)?;
    let written = reattribute::with(&flags.data, &flags.output, owner, &redaction, factors.as_ref(), policy_of)?;
    messages::info(&format!(
        "attributed {} with {} again: {}",
        count(written.runs, "run"),
        count(written.windows, "window"),
        flags.output.display()
    ));
    Ok(Exit::Success)
}

fn find_secrets(flags: &AuditFlags) -> anyhow::Result<Exit> {
    let found = secrets::find(&flags.data, &config::secrets(flags.config.as_deref())?)?;
    let mut out = io::stdout().lock();
    let said = if flags.json {
        serde_json::to_writer_pretty(&mut out, &found).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        out.write_all(found.text().as_bytes())
    };
    unless_closed(said).map_err(unwritten("what was found"))?;
    Ok(if found.is_clean() { Exit::Success } else { Exit::Audit })
}

pub(super) fn audit(flags: &AuditFlags) -> anyhow::Result<Exit> {
    if flags.secrets {
        return find_secrets(flags);
    }
    let audits = audit::run(&flags.data)?;
    let mut out = io::stdout().lock();
    let said = if flags.json {
        serde_json::to_writer_pretty(&mut out, &audits).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        out.write_all(audit::text(&audits).as_bytes())
    };
    unless_closed(said).map_err(unwritten("the audit"))?;
    Ok(if audit::is_well(&audits) { Exit::Success } else { Exit::Audit })
}

pub(super) fn validate(flags: &ValidateFlags) -> anyhow::Result<Exit> {
    let request = config::validation(flags)?;
    // Without it, only the protocol runs.
    let reference = flags.reference.clone().unwrap_or_default();
    let board = flags.board_model.as_deref().map(|path| NewBoard::named(path, flags.board.as_deref())).transpose()?;
    let found = report::validate::run(&flags.data, &reference, &request)?;
    if let (Some(board), Some(fit)) = (board, &found.board) {
        board.write(fit)?;
    }
    let said = found.write(request.is_json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("the comparison"))?;
    Ok(Exit::Success)
}
