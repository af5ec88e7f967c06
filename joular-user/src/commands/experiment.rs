//! Runs experiments: commands that are run many times, and what is said of them.

use std::{env, ffi::OsString, io, path::Path};

use anyhow::{Context as _, anyhow, bail};
use joular_data::{
    experiment::{
        plot::{Drawing, PlotFormat},
        replicates::Summary,
    },
    report::{
        self, Format, artifact,
        diff::{Choices, CompareBy, FailOn, Per, View, Work},
        measure::Measure,
        profile::{App, Filter},
    },
    text::{count, escape},
};

use super::methods;
use crate::{
    cli::{self, Command, Exit, ExperimentFlags, RunFlags},
    config::{self, CommandRun},
    experiment::{
        Circumstances, Task,
        conduct::{ConductError, Conducted, Experiment, Step, conduct},
        log::{Log, RunRecord},
        run_table,
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
    let summary = conducted.log.summary();
    let is_quiet = flags.flags.quiet;
    if !is_quiet {
        said(|width, mut out| summary.write(Format::Text, width, &mut out))?;
    }
    export(flags, &conducted.log, &summary)?;
    if let Some(directory) = experiment.directory.as_ref().filter(|_| !is_quiet) {
        compare(directory, &conducted.log, &flags.experiment.app)?;
    }
    Ok(Exit::Success)
}

/// Says where the runs are measured, and what is shown of their commands.
pub(super) fn on_this_machine(experiment: &mut Experiment, run: &CommandRun) {
    let Host { name, cpu_model, online_cpus, kernel, .. } = Host::of_this_machine(&run.config.proc_root);
    messages::redact_by(&run.config.redaction);
    experiment.redaction = run.config.redaction.clone();
    experiment.around.user = run.user.clone();
    let of_options = std::mem::take(&mut experiment.circumstances);
    experiment.circumstances = Circumstances { host: name.to_string(), cpu_model, online_cpus, kernel, ..of_options };
}

/// Goes through the runs, and shows how far it is.
pub(super) fn conducted(experiment: &Experiment) -> anyhow::Result<Conducted> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the event loop")?;
    let arguments: Vec<OsString> = env::args_os().collect();
    let mut shown = Shown { progress: None, repeat: experiment.repeat, is_open: experiment.until.is_some() };
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
    /// Whether fewer may be enough.
    is_open: bool,
}

impl Shown {
    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Begun { runs, done, seed } => {
                messages::info(&begun(*runs, *done, *seed, self.is_open));
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
            Step::Around { variant, side } => self.say(&format!("{} {}", escape(variant), side.option())),
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
fn begun(runs: u32, done: u32, seed: u64, is_open: bool) -> String {
    let most = if is_open { "at most " } else { "" };
    let order = || format!("{most}{} in random order (--seed {seed})", count(runs, "run"));
    match (runs, done) {
        (0, done) => format!(
            "nothing is run: {done} are done already, and the same command line adds none: a larger --repeat{} adds runs, and \
             another --output begins anew",
            if is_open { " or a smaller --until-interval" } else { "" }
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
    if let Some(path) = &chosen.export_latex {
        write_file(path, summary.latex().as_bytes())?;
    }
    if let Some(path) = &chosen.export_methods {
        methods::export(path, log, summary, flags.flags.output.as_deref())?;
    }
    export_plot(chosen, || log.drawing())?;
    export_runs(chosen, log)?;
    if let Some(path) = &chosen.export_json {
        let mut bytes = serde_json::to_vec_pretty(&serde_json::json!({ "experiment": log, "summary": summary }))?;
        bytes.push(b'\n');
        write_file(path, &bytes)?;
    }
    Ok(())
}

pub(super) fn export_runs(flags: &ExperimentFlags, log: &Log) -> anyhow::Result<()> {
    flags.export_runs_csv.as_ref().map_or(Ok(()), |path| write_file(path, run_table::csv(log).as_bytes()))
}

/// Writes a plot if one is asked for, and says what it lacks.
pub(super) fn export_plot(flags: &ExperimentFlags, drawing: impl FnOnce() -> Drawing) -> anyhow::Result<()> {
    let Some(path) = &flags.export_plot else { return Ok(()) };
    let plot = drawing().plot(PlotFormat::of(path)?)?;
    write_file(path, &plot.bytes)?;
    if let Some(remark) = plot.remark() {
        messages::warn(&format!("{}: {remark}", escape(&path.display().to_string())));
    }
    Ok(())
}

pub(super) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    Ok(artifact::write(path, bytes, crate::privileges::invoking_user(), &mut io::stdout().lock())?)
}

/// Compares two variants by method, or says how to.
fn compare(directory: &Path, log: &Log, app: &[String]) -> anyhow::Result<()> {
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
    let (a, b) = (path(&a.folder), path(&b.folder));
    let app = view(app, &[&a, &b])?;
    let comparison = report::diff::run(&a, &b, &Filter::default(), app.as_ref(), &choices)?;
    said(|width, mut out| {
        writeln!(out)?;
        comparison.write(&choices, width, &mut out)
    })
}

/// The view that `--app` asks for, of data sets that are there. What was measured is shown in any case.
pub(super) fn view(app: &[String], data: &[&Path]) -> anyhow::Result<Option<App>> {
    let part = cli::PartFlags { app: app.to_owned(), ..cli::PartFlags::default() };
    match super::app::resolved(&part, data) {
        Ok(part) => Ok(config::part(&part)?.1),
        Err(error) => {
            messages::warn(&format!("{error}; methods of all code are shown"));
            Ok(None)
        }
    }
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
        assert_eq!(begun(6, 0, 7, false), "6 runs in random order (--seed 7)");
        assert_eq!(begun(6, 0, 7, true), "at most 6 runs in random order (--seed 7)");
        assert_eq!(begun(1, 5, 7, false), "1 run in random order (--seed 7), 5 are done already");
        assert!(begun(0, 6, 7, true).contains("a smaller --until-interval adds runs"));
        let nothing = begun(0, 6, 7, false);
        assert!(nothing.contains("6 are done already") && nothing.contains("a larger --repeat adds runs"), "{nothing}");
    }
}
