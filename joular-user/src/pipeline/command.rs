//! Runs a command and records it, from its first instruction to its end.

use std::{
    cell::RefCell,
    ffi::OsString,
    io,
    process::ExitStatus,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::output::Output;
use tokio::{sync::oneshot, task::spawn_blocking};

use super::{Failure, Until, record_with};
use crate::{
    cli::Exit,
    config::{self, CommandRun, Input, duration::nanoseconds},
    experiment::{
        Held, LaunchError, Launched, Outcome, Rules,
        launch::{CommandOutput, Surroundings, exit_code},
        marks::{Arriving, Copying, Feed, Listener, Listening, feed},
        signals::HandedOn,
        work::WorkRule,
    },
    messages,
    output::RunTotalsOutput,
    procs::selection::Selection,
    shutdown::{Shutdown, StopReason},
};

/// Runs a command, and ends with its exit code.
///
/// # Errors
/// As those of a recording, or if the command cannot be started.
pub fn measure(run: &CommandRun, command: &[OsString]) -> Result<Exit, Failure> {
    Ok(Exit::Command(exit_code(run_command(run, command, None)?.status)))
}

/// Runs a command as one run of an experiment.
///
/// # Errors
/// As [`measure`].
pub fn measure_run(run: &CommandRun, command: &[OsString]) -> Result<Outcome, Failure> {
    let output = RunTotalsOutput::default();
    let ended = run_command(run, command, Some(Box::new(output.clone())))?;
    let totals = output.totals();
    Ok(Outcome {
        exit_code: exit_code(ended.status),
        duration_ns: nanoseconds(ended.lasted),
        cpu_ns: totals.sums.target_cpu_ns,
        energy_uj: totals.command().0,
        machine_uj: totals.sums.measured.0,
        measured_ns: totals.sums.elapsed_ns,
        samples: totals.sums.samples,
        work: run.work.as_ref().and_then(|work| work.found()),
        temperature_celsius: totals.temperature_celsius(),
        frequency_mhz: totals.frequency_mhz(),
        label: totals.sums.label.map(|label| label.name().to_owned()),
        run_id: totals.run_id,
        started_us: totals.started_us,
    })
}

fn run_command(run: &CommandRun, command: &[OsString], totals: Option<Box<dyn Output>>) -> Result<Ended, Failure> {
    let Input::Live(live) = &run.config.input else { return Err(Failure::NoCommand) };
    let listener = listener(run);
    let surroundings = Surroundings {
        user: run.user.as_ref(),
        variables: listener.iter().flat_map(Listener::environment).collect(),
        output: match (run.rules.is_empty() && run.work.is_none(), run.shows_output) {
            (true, true) => CommandOutput::Ours,
            (true, false) => CommandOutput::Hidden,
            (false, true) => CommandOutput::Read,
            (false, false) => CommandOutput::ReadHidden,
        },
        has_no_input: false,
    };
    let held = Held::start(command, &surroundings)?;
    let live = config::Live { selection: Selection::Tree(held.pid()), ..live.as_ref().clone() };
    let outcome = Rc::new(RefCell::new(None));
    let (feed, arriving) = feed::queue();
    let faults = feed.faults();
    let lines = (run.rules.clone(), run.work.clone());
    let shows_output = run.shows_output;
    let heard = Heard { listener, lines, shows_output, feed };
    let command = Command { held, heard, arriving, totals, outcome: Rc::clone(&outcome) };
    record_with(&run.config, &live, Until::Command(Box::new(command)))?;
    if let Some(notice) = faults.notice() {
        messages::warn(&notice);
    }
    match outcome.take() {
        Some(Ok(ended)) => Ok(ended),
        Some(Err(error)) => Err(error.into()),
        None => Err(Failure::NoCommand),
    }
}

/// Where the command can say what it does. Without it, the command is measured all the same.
fn listener(run: &CommandRun) -> Option<Listener> {
    match Listener::new(run.user.as_ref().map(|user| user.ids())) {
        Ok(listener) => Some(listener),
        Err(error) => {
            let folder = std::env::temp_dir();
            messages::warn(&format!(
                "making a socket for marks in {}: {error}: name another folder with TMPDIR; marks by the command's output \
                 are taken",
                folder.display()
            ));
            None
        }
    }
}

/// What became of the command.
type EndOf = Rc<RefCell<Option<Result<Ended, LaunchError>>>>;

/// How a command ended.
struct Ended {
    status: ExitStatus,
    /// From its start to its end.
    lasted: Duration,
}

/// How a command is heard.
struct Heard {
    listener: Option<Listener>,
    /// What lines of its output say.
    lines: (Rules, Option<Arc<WorkRule>>),
    shows_output: bool,
    feed: Feed,
}

/// A command that begins when the recording does.
pub(super) struct Command {
    held: Held,
    heard: Heard,
    arriving: Arriving,
    totals: Option<Box<dyn Output>>,
    outcome: EndOf,
}

/// What a recording does with a command.
pub(super) struct Parts {
    pub(super) start: Start,
    /// What it says.
    pub(super) arriving: Arriving,
    /// What ends the recording.
    pub(super) shutdown: Shutdown,
    /// Who takes the results, too.
    pub(super) totals: Option<Box<dyn Output>>,
}

/// Lets the command run.
pub(super) struct Start {
    held: Held,
    heard: Heard,
    tell: oneshot::Sender<Result<Running, LaunchError>>,
}

/// A command that runs, and who hears it.
struct Running {
    launched: Launched,
    since: Instant,
    listening: Option<Listening>,
    copying: Option<Copying>,
}

impl Start {
    pub(super) fn now(self) {
        let Self { held, heard, tell } = self;
        // Whoever waits for it ends the recording if it failed.
        let _unheard = tell.send(released(held, heard));
    }
}

fn released(mut held: Held, heard: Heard) -> Result<Running, LaunchError> {
    let Heard { listener, lines, shows_output, feed } = heard;
    let listening = listener.map(|listener| listener.listen(feed.clone())).transpose().map_err(LaunchError::Hear)?;
    let output = held.take_output();
    let copying = output.map(|output| match shows_output {
        true => Copying::start(output, io::stdout(), lines, feed),
        false => Copying::start(output, io::sink(), lines, feed),
    });
    let copying = copying.transpose().map_err(LaunchError::Hear)?;
    let since = Instant::now();
    Ok(Running { launched: held.release()?, since, listening, copying })
}

impl Command {
    pub(super) fn parts(self) -> io::Result<Parts> {
        let Self { held, heard, arriving, totals, outcome } = self;
        let (pid, mut signals) = (held.pid(), HandedOn::listen()?);
        let (tell, told) = oneshot::channel();
        let ended = async move {
            tokio::select! {
                status = end_of(told) => *outcome.borrow_mut() = status,
                // It goes on for ever.
                () = signals.forward(pid) => {}
            }
            StopReason::Command
        };
        Ok(Parts { start: Start { held, heard, tell }, arriving, shutdown: Shutdown::when(ended), totals })
    }
}

/// How the command ended, when all that it said is there; `None` if it never began.
async fn end_of(told: oneshot::Receiver<Result<Running, LaunchError>>) -> Option<Result<Ended, LaunchError>> {
    match told.await.ok()? {
        Ok(Running { mut launched, since, listening, copying }) => {
            let status = launched.ended().await;
            let lasted = since.elapsed();
            // Our output may be slow: windows must not wait for it.
            let heard = spawn_blocking(move || {
                if let Some(listening) = listening {
                    listening.finish();
                }
                copying.map_or(Ok(()), Copying::finish)
            });
            if let Ok(Err(error)) = heard.await {
                messages::warn(&format!("copying the command's output: {error}: the rest of it is lost"));
            }
            Some(status.map(|status| Ended { status, lasted }))
        }
        Err(error) => Some(Err(error)),
    }
}
