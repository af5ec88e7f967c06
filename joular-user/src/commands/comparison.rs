//! Compares data sets with each other and with baselines, and ends with what the gate says.

use std::{
    io,
    path::{Path, PathBuf},
};

use joular_data::{
    report::{
        self, Format, artifact,
        diff::{
            Choices, Comparison, Gate, Per, Work,
            baseline::{self, Baseline},
        },
        profile::Filter,
    },
    text::escape,
};

use super::{app, terminal_width, unless_closed, unwritten};
use crate::{
    cli::{BaselineCheckFlags, BaselineCommand, BaselineFlags, BaselineSaveFlags, DiffFlags, Exit, PartFlags},
    config,
    experiment::log::Log,
    messages, privileges,
};

pub(super) fn diff(flags: &DiffFlags) -> anyhow::Result<Exit> {
    let (filter, app) = config::part(&app::resolved(&flags.part, &[&flags.a, &flags.b])?)?;
    let mut choices = config::diff_choices(flags)?;
    if flags.per.is_none() && choices.per == Per::Time {
        choices.per = usual_per(&flags.a, &flags.b, &filter)?;
    }
    let comparison = report::diff::run(&flags.a, &flags.b, &filter, app.as_ref(), &choices)?;
    said(&comparison, &choices, flags.junit.as_ref())?;
    if let Some(path) = &flags.html {
        let page = comparison.page(&choices, &filter, app.as_ref())?;
        artifact::write(path, &page, privileges::invoking_user(), &mut io::stdout().lock())?;
    }
    Ok(judged(&comparison, &choices, &flags.b))
}

/// The figure of a comparison for which none is asked. Of whole runs of commands it is what `run` shows of them: joules
/// per unit of work if an experiment has counted it in each, or else joules of a run. Of other recordings it is watts.
fn usual_per(a: &Path, b: &Path, filter: &Filter) -> anyhow::Result<Per> {
    let runs = (report::runs::whole_commands(a, filter)?, report::runs::whole_commands(b, filter)?);
    let (Some(of_a), Some(of_b)) = runs else { return Ok(Per::Time) };
    let logs = Log::of_variant(a).zip(Log::of_variant(b)).filter(|(a, b)| a.work == b.work);
    let work = logs.and_then(|(a, b)| a.work_of(&of_a).zip(b.work_of(&of_b)));
    Ok(work.map_or(Per::Run, |(a, b)| Per::Work { a: Work::OfRuns(a), b: Work::OfRuns(b) }))
}

pub(super) fn baseline(flags: &BaselineFlags) -> anyhow::Result<Exit> {
    match &flags.command {
        BaselineCommand::Save(flags) => save(flags),
        BaselineCommand::Check(flags) => check(flags),
    }
}

fn save(flags: &BaselineSaveFlags) -> anyhow::Result<Exit> {
    let is_there = || flags.file != Path::new(artifact::STDOUT) && !flags.file.try_exists().is_ok_and(|exists| !exists);
    let before = (flags.session.is_some() && is_there()).then(|| Baseline::read(&flags.file)).transpose()?;
    let flags = before.as_ref().map_or_else(|| Ok(flags.clone()), |before| config::of_session(flags, before))?;
    // A check has these packages, too.
    let part = app::resolved(&flags.part, &[&flags.data])?;
    // It is what later runs are judged by.
    let (filter, app) = config::part(&PartFlags { strict: true, ..part.clone() })?;
    let flags = BaselineSaveFlags { part, ..flags };
    let (choices, keep) = config::baseline_to_save(&flags)?;
    let text = match before {
        Some(before) => before.with_session(&flags.data, &filter, app.as_ref(), &choices, &keep)?,
        None => baseline::save(&flags.data, &filter, app.as_ref(), &choices, &keep)?,
    };
    artifact::write(&flags.file, text.as_bytes(), privileges::invoking_user(), &mut io::stdout().lock())?;
    Ok(Exit::Success)
}

fn check(flags: &BaselineCheckFlags) -> anyhow::Result<Exit> {
    let baseline = Baseline::read(&flags.file)?;
    let config::Check { choices, filter, app } = config::baseline_to_check(flags, &baseline)?;
    let comparison = baseline.check(&flags.data, &filter, app.as_ref(), &choices)?;
    said(&comparison, &choices, flags.junit.as_ref())?;
    Ok(judged(&comparison, &choices, &flags.data))
}

/// Writes the comparison to standard output, and as JUnit XML to a file.
fn said(comparison: &Comparison, choices: &Choices, junit: Option<&PathBuf>) -> anyhow::Result<()> {
    let said = comparison.write(choices, terminal_width(), &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("the comparison"))?;
    if choices.format == Format::Csv {
        // Its rows have no room for what was done, and for runs that were left out.
        comparison.notices.iter().for_each(|notice| messages::warn(notice));
    }
    if let Some(path) = junit {
        let text = comparison.junit(choices);
        artifact::write(path, text.as_bytes(), privileges::invoking_user(), &mut io::stdout().lock())?;
    }
    Ok(())
}

fn judged(comparison: &Comparison, choices: &Choices, b: &Path) -> Exit {
    match comparison.gate(choices) {
        Gate::Passed => {
            if let Some(above) = choices.fail_above {
                messages::info(&format!("passed: nothing is certainly more than {} % above A", above * 100.0));
            }
            Exit::Success
        }
        Gate::Exceeded => {
            let b = escape(&b.display().to_string());
            let reservation = comparison.sessions.reservation();
            messages::warn(&format!("failed: {b} certainly needs more than --fail-above allows{reservation}"));
            Exit::Regression
        }
        Gate::NotEnoughRuns => {
            messages::warn(
                "undecided: not enough runs to decide whether --fail-above is kept: see the warning of the comparison",
            );
            Exit::Undecided
        }
        Gate::NotComparable => {
            messages::warn(
                "undecided: --fail-above is not judged, because A and B were made differently: see the warnings",
            );
            Exit::Undecided
        }
        Gate::NoPhases => {
            messages::warn("undecided: --fail-above is not judged, because no program named a phase");
            Exit::Undecided
        }
    }
}
