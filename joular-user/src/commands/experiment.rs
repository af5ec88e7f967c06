//! Runs experiments: commands that are run many times, and what is said of them.

use std::{env, ffi::OsString, io, path::Path};

use anyhow::{Context as _, anyhow, bail};
use joular_data::{
    experiment::replicates::{self, Replicate, Summary},
    model::domain::Label,
    report::{
        self, Format, artifact,
        diff::{Choices, CompareBy, FailOn, Per, View, Work},
        measure::Measure,
        profile::{App, Filter},
    },
    text::{count, escape},
};

use crate::{
    cli::{self, Command, Exit, RunFlags},
    config::{self, CommandRun},
    experiment::{
        Circumstances, Task,
        conduct::{ConductError, Conducted, Experiment, Step, conduct},
        log::{Log, RunRecord},
        trial::Told,
    },
    messages,
    output::Screen,
    pipeline::{self, host::Host},
    progress::Progress,
};

/// Methods that are compared, those that changed most first.
const ROWS: usize = 10;
/// A smaller change of a method is none.
const MARGIN: f64 = 0.05;
/// Fewer runs of each side prove nothing.
const MIN_RUNS: usize = 3;

/// Runs the experiment that the flags ask for, and shows what it came to.
pub(super) fn run(flags: &RunFlags) -> anyhow::Result<Exit> {
    // What is wrong with the flags of a recording is told before anything runs.
    let resolved = CommandRun::resolve(flags)?;
    let mut experiment = config::experiment(flags)?;
    on_this_machine(&mut experiment, &resolved);
    let conducted = conducted(&experiment)?;
    if let Some(code) = conducted.interrupted {
        tell_of_interruption(&experiment, &conducted.log);
        return Ok(Exit::Command(code));
    }
    let summary = summary(&conducted.log);
    let is_quiet = flags.flags.quiet;
    if !is_quiet {
        said(|width, mut out| summary.write(Format::Text, width, &mut out))?;
    }
    export(flags, &conducted.log, &summary)?;
    if let Some(directory) = experiment.directory.as_ref().filter(|_| !is_quiet) {
        let (_, app) =
            config::part(&cli::PartFlags { app: flags.experiment.app.clone(), ..cli::PartFlags::default() })?;
        compare(directory, &conducted.log, app.as_ref())?;
    }
    Ok(Exit::Success)
}

/// Says where the runs are measured, and what is shown of their commands.
pub(super) fn on_this_machine(experiment: &mut Experiment, run: &CommandRun) {
    let Host { name, cpu_model, online_cpus, kernel, .. } = Host::of_this_machine(&run.config.proc_root);
    messages::redact_by(&run.config.redaction);
    experiment.redaction = run.config.redaction.clone();
    let of_options = std::mem::take(&mut experiment.circumstances);
    experiment.circumstances = Circumstances { host: name.to_string(), cpu_model, online_cpus, kernel, ..of_options };
}

/// Goes through the runs, and shows how far it is.
pub(super) fn conducted(experiment: &Experiment) -> anyhow::Result<Conducted> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the event loop")?;
    let arguments: Vec<OsString> = env::args_os().collect();
    let mut shown = Shown { progress: None, repeat: experiment.repeat };
    runtime.block_on(conduct(experiment, &arguments, &mut |step| shown.take(&step))).map_err(Into::into)
}

/// The exit code of a failed experiment.
pub(super) const fn exit_of(error: &ConductError) -> Exit {
    match error {
        ConductError::Command { code, .. } | ConductError::Recording { code, .. } => Exit::Command(*code),
        ConductError::Log(_) | ConductError::Output(_) => Exit::Output,
        _ => Exit::Failure,
    }
}

struct Shown {
    progress: Option<Progress>,
    repeat: u32,
}

impl Shown {
    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Begun { runs, done, seed } => {
                messages::info(&begun(*runs, *done, *seed));
                self.progress = (*runs > 0).then(|| Progress::of_steps("starting", (*runs).into()));
            }
            Step::Running { variant, round, is_warmup } => {
                let which = if *is_warmup { "warming up".to_owned() } else { format!("{}/{}", round + 1, self.repeat) };
                self.say(&format!("{} {which}", escape(variant)));
            }
            Step::Waiting { pid } => messages::info(&format!(
                "waiting for process {}, a run of this experiment whose joular-bpf was killed: its command was asked to end",
                pid.0
            )),
            Step::Cooling => self.say("pausing"),
            Step::Ended(_) => {
                if let Some(progress) = &self.progress {
                    progress.step();
                }
            }
            Step::Said(line) => {
                let print = || eprintln!("{}", escape(line));
                match &self.progress {
                    Some(progress) => progress.beside(print),
                    None => print(),
                }
            }
        }
    }

    fn say(&self, label: &str) {
        if let Some(progress) = &self.progress {
            progress.say(label);
        }
    }
}

/// What is to come, beside what is done already.
fn begun(runs: u32, done: u32, seed: u64) -> String {
    let order = || format!("{} in random order (--seed {seed})", count(runs, "run"));
    match (runs, done) {
        (0, done) => format!(
            "nothing is run: {done} are done already, and the same command line adds none: a larger --repeat adds runs, \
             and another --output begins anew"
        ),
        (_, 0) => order(),
        (_, done) => format!("{}, {done} are done already", order()),
    }
}

pub(super) fn tell_of_interruption(experiment: &Experiment, log: &Log) {
    let done = count(log.runs.len(), "run");
    messages::warn(&match &experiment.directory {
        Some(directory) => format!(
            "interrupted after {done}, kept in {}: the same command line goes on with the others",
            escape(&directory.display().to_string())
        ),
        None => format!("interrupted after {done}, which are lost: with --output an experiment can go on"),
    });
}

/// Figures of all runs.
fn summary(log: &Log) -> Summary {
    let variants = log.variants.iter().enumerate().map(|(at, variant)| replicates::Variant {
        name: variant.name.clone(),
        replicates: log.runs_of(at).map(replicate).collect(),
    });
    let named = |name: &String| Label::ALL.into_iter().find(|label| label.name() == name);
    let label = log.runs.iter().filter_map(|run| named(run.outcome.label.as_ref()?)).max();
    replicates::summarize(&variants.collect::<Vec<_>>()).labelled(label)
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn replicate(run: &RunRecord) -> Replicate {
    Replicate {
        order: run.order,
        joules: run.outcome.energy_uj as f64 / 1e6,
        seconds: run.outcome.duration_ns as f64 / 1e9,
        cpu_seconds: run.outcome.cpu_ns as f64 / 1e9,
        work: run.outcome.work,
        temperature_celsius: run.outcome.temperature_celsius,
        frequency_mhz: run.outcome.frequency_mhz,
    }
}

/// Prints on standard error, where totals of commands are, as wide as the terminal if it is one.
pub(super) fn said(write: impl FnOnce(Option<usize>, &mut dyn io::Write) -> io::Result<()>) -> anyhow::Result<()> {
    let width = Screen::of(io::stderr()).width();
    let mut out = io::stderr().lock();
    super::unless_closed(write(width, &mut out)).map_err(super::unwritten("the results"))
}

fn export(flags: &RunFlags, log: &Log, summary: &Summary) -> anyhow::Result<()> {
    let chosen = &flags.experiment;
    for (path, format) in [(&chosen.export_csv, Format::Csv), (&chosen.export_markdown, Format::Markdown)] {
        if let Some(path) = path {
            let mut bytes = Vec::new();
            summary.write(format, None, &mut bytes)?;
            write_file(path, &bytes)?;
        }
    }
    if let Some(path) = &chosen.export_json {
        let mut bytes = serde_json::to_vec_pretty(&serde_json::json!({ "experiment": log, "summary": summary }))?;
        bytes.push(b'\n');
        write_file(path, &bytes)?;
    }
    Ok(())
}

pub(super) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    Ok(artifact::write(path, bytes, crate::privileges::invoking_user(), &mut io::stdout().lock())?)
}

/// Compares two variants by method, or says how to.
fn compare(directory: &Path, log: &Log, app: Option<&App>) -> anyhow::Result<()> {
    let [a, b, others @ ..] = log.variants.as_slice() else { return Ok(()) };
    let has_enough = (0..2).all(|variant| log.runs_of(variant).count() >= MIN_RUNS);
    let path = |folder: &str| directory.join(folder);
    if !others.is_empty() || !has_enough {
        let shown = |folder: &str| escape(&path(folder).display().to_string());
        messages::info(&format!("by method: joular-bpf diff {} {}", shown(&a.folder), shown(&b.folder)));
        return Ok(());
    }
    let work = |variant: usize| {
        // As `diff` counts them: by their starts.
        let mut runs: Vec<&RunRecord> = log.runs_of(variant).collect();
        runs.sort_by_key(|run| run.outcome.started_us);
        runs.into_iter().map(|run| run.outcome.work).collect::<Option<Vec<f64>>>().map(Work::OfRuns)
    };
    let choices = Choices {
        measure: Measure::Energy,
        by: CompareBy::Method,
        view: View::Itself,
        per: work(0).zip(work(1)).map_or(Per::Run, |(a, b)| Per::Work { a, b }),
        margin: MARGIN,
        fail_above: None,
        fail_on: FailOn::Total,
        top: Some(ROWS),
        format: Format::Text,
        again_in: Some(env::temp_dir()),
    };
    let comparison = report::diff::run(&path(&a.folder), &path(&b.folder), &Filter::default(), app, &choices)?;
    said(|width, mut out| {
        writeln!(out)?;
        comparison.write(&choices, width, &mut out)
    })
}

/// Is one run of an experiment.
///
/// # Errors
/// As a recording.
pub fn run_trial(arguments: &[OsString]) -> anyhow::Result<Exit> {
    let Some(Task { orders, command, arguments }) = Task::parse(arguments) else {
        bail!("{} is for joular-bpf itself: use `joular-bpf run --repeat`", crate::experiment::TRIAL_ARGUMENT);
    };
    // Before the command begins, which would keep it.
    let told = Told::of(&orders).map_err(untold)?;
    let flags = match cli::parse(arguments)?.command {
        Some(Command::Run(flags)) => flags,
        Some(Command::Sweep(flags)) => flags.run,
        _ => bail!("only `run` and `sweep` have runs"),
    };
    let run = CommandRun::resolve(&flags)?.as_run(orders.output, orders.shows_output);
    messages::redact_by(&run.config.redaction);
    let outcome = pipeline::measure_run(&run, &command)?;
    let exit = Exit::Command(outcome.exit_code);
    told.tell(&outcome).map_err(untold)?;
    Ok(exit)
}

fn untold(cause: io::Error) -> anyhow::Error {
    anyhow!("telling what a run came to: {cause}")
}

#[cfg(test)]
mod tests {
    use super::begun;

    #[test]
    fn a_repetition_that_runs_nothing_says_what_would() {
        assert_eq!(begun(6, 0, 7), "6 runs in random order (--seed 7)");
        assert_eq!(begun(1, 5, 7), "1 run in random order (--seed 7), 5 are done already");
        let nothing = begun(0, 6, 7);
        assert!(nothing.contains("6 are done already") && nothing.contains("a larger --repeat adds runs"), "{nothing}");
    }
}
