//! Runs the validation protocol, or simulates it, and reports what it shows.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use joular_data::{
    report::validate::protocol::{self, Step},
    text::escape,
};

use super::{unless_closed, unwritten};
use crate::{
    cli::{Exit, ExperimentFlags, Flags, RunFlags, ValidateFlags},
    config::{self, CommandRun, Config},
    experiment::protocol::{
        Schedule,
        simulated::{self, METER_CLASS, Truth},
    },
    messages, pipeline,
};

pub(super) fn run(flags: &ValidateFlags) -> anyhow::Result<Exit> {
    let mut request = config::validation(flags)?;
    let schedule = config::schedule(flags)?;
    let is_there = is_in_use(&flags.data);
    let mut truth = None;
    if flags.simulate {
        ensure!(!is_there, "{} is there already: name a new directory for the simulation", shown(&flags.data));
        request.meter_class = request.meter_class.or(Some(METER_CLASS));
        truth = Some(simulate(flags, &schedule)?);
    } else if is_there {
        messages::info(&format!("{} is there already: it is not recorded again", shown(&flags.data)));
    } else {
        conduct(flags, &schedule)?;
    }
    let found = protocol::run(&flags.data, flags.reference.as_deref(), &request)?;
    let mut out = io::stdout().lock();
    let said = found.write(request.is_json, &mut out).and_then(|()| match truth.filter(|_| !request.is_json) {
        Some(truth) => out.write_all(text_of(&truth).as_bytes()),
        None => Ok(()),
    });
    unless_closed(said).map_err(unwritten("the report"))?;
    Ok(Exit::Success)
}

/// Whether there is something already. What cannot be read is told of by who reads or writes it.
fn is_in_use(path: &Path) -> bool {
    fs::read_dir(path).map_or_else(|_| path.exists(), |mut entries| entries.next().is_some())
}

fn shown(path: &Path) -> String {
    escape(&path.display().to_string())
}

fn conduct(flags: &ValidateFlags, schedule: &Schedule) -> anyhow::Result<()> {
    let recording =
        Flags { output: Some(flags.data.clone()), config: flags.config.clone(), quiet: true, ..Flags::default() };
    let flags = RunFlags {
        command: schedule.command(),
        user: None,
        phase_start: Vec::new(),
        phase_end: Vec::new(),
        mark: Vec::new(),
        experiment: ExperimentFlags::default(),
        flags: recording,
    };
    let run = CommandRun::resolve(&flags)?;
    messages::redact_by(&run.config.redaction);
    messages::info(&format!(
        "running {} rounds of the protocol (--seed {}), which takes {} min: let nothing else run",
        schedule.rounds,
        schedule.seed,
        schedule.lasts().as_secs().div_ceil(60)
    ));
    match pipeline::measure(&run, &flags.command)? {
        Exit::Success | Exit::Command(0) => Ok(()),
        _ => bail!("the protocol did not run to its end: what it said above says why; record to another directory"),
    }
}

fn simulate(flags: &ValidateFlags, schedule: &Schedule) -> anyhow::Result<Truth> {
    let log = flags.reference.as_deref().ok_or_else(|| anyhow!("name a file for the meter's log with --reference"))?;
    ensure!(!log.exists(), "{} is there already: name a new file for the simulated meter's log", shown(log));
    let folder = tempfile::tempdir().context("making a folder for the simulation")?;
    let recording = folder.path().join("simulated.jrec");
    let truth = simulated::write(schedule, &recording, log)?;
    let replay = Flags { replay: Some(recording), output: Some(flags.data.clone()), quiet: true, ..Flags::default() };
    pipeline::run(&Config::load(replay)?)?;
    Ok(truth)
}

/// What only the simulation knows.
fn text_of(truth: &Truth) -> String {
    let share = |(step, share): &(Step, f64)| format!("| `{}` | {:.1} |\n", step.name(), 100.0 * share);
    let rows: String = truth.shares.iter().map(share).collect();
    format!(
        "\n## The truth of the simulation\n\nWhat the first program really draws side by side:\n\n| programs | first one's part, % \
         |\n|---|---:|\n{rows}"
    )
}
