//! Runs a command and records it, from its first instruction to its end.

use std::{cell::RefCell, ffi::OsString, io, process::ExitStatus, rc::Rc};

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{Failure, Until, record_with};
use crate::{
    cli::Exit,
    config::{self, CommandRun, Input},
    experiment::{
        Held, LaunchError, Launched, Rules,
        launch::{Surroundings, exit_code},
        marks::{Arriving, Copying, Feed, Listener, Listening, feed},
        signals::HandedOn,
    },
    messages,
    procs::selection::Selection,
    shutdown::{Shutdown, StopReason},
};

/// Runs a command, and ends with its exit code.
///
/// # Errors
/// As those of a recording, or if the command cannot be started.
pub fn measure(run: &CommandRun, command: &[OsString]) -> Result<Exit, Failure> {
    let Input::Live(live) = &run.config.input else { return Err(Failure::NoCommand) };
    let listener = listener(run);
    let surroundings = Surroundings {
        user: run.user.as_ref(),
        variables: listener.iter().flat_map(Listener::environment).collect(),
        takes_output: !run.rules.is_empty(),
    };
    let held = Held::start(command, &surroundings)?;
    let live = config::Live { selection: Selection::Tree(held.pid()), ..live.as_ref().clone() };
    let outcome = Rc::new(RefCell::new(None));
    let (feed, arriving) = feed::queue();
    let faults = feed.faults();
    let command = Command { held, listener, rules: run.rules.clone(), feed, arriving, outcome: Rc::clone(&outcome) };
    record_with(&run.config, &live, Until::Command(Box::new(command)))?;
    if let Some(notice) = faults.notice() {
        messages::warn(&notice);
    }
    match outcome.take() {
        Some(Ok(status)) => Ok(Exit::Command(exit_code(status))),
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
type Outcome = Rc<RefCell<Option<Result<ExitStatus, LaunchError>>>>;

/// A command that begins when the recording does.
pub(super) struct Command {
    held: Held,
    listener: Option<Listener>,
    rules: Rules,
    feed: Feed,
    arriving: Arriving,
    outcome: Outcome,
}

/// What a recording does with a command.
pub(super) struct Parts {
    pub(super) start: Start,
    /// What it says.
    pub(super) arriving: Arriving,
    /// What ends the recording.
    pub(super) shutdown: Shutdown,
}

/// Lets the command run.
pub(super) struct Start {
    held: Held,
    listener: Option<Listener>,
    rules: Rules,
    feed: Feed,
    tell: oneshot::Sender<Result<Running, LaunchError>>,
}

/// A command that runs, and who hears it.
struct Running {
    launched: Launched,
    listening: Option<Listening>,
    copying: Option<Copying>,
}

impl Start {
    pub(super) fn now(self) {
        let Self { held, listener, rules, feed, tell } = self;
        // Whoever waits for it ends the recording if it failed.
        let _unheard = tell.send(released(held, listener, rules, feed));
    }
}

fn released(mut held: Held, listener: Option<Listener>, rules: Rules, feed: Feed) -> Result<Running, LaunchError> {
    let listening = listener.map(|listener| listener.listen(feed.clone())).transpose().map_err(LaunchError::Hear)?;
    let output = held.take_output();
    let copying = output.map(|output| Copying::start(output, io::stdout(), rules, feed));
    let copying = copying.transpose().map_err(LaunchError::Hear)?;
    Ok(Running { launched: held.release()?, listening, copying })
}

impl Command {
    pub(super) fn parts(self) -> io::Result<Parts> {
        let Self { held, listener, rules, feed, arriving, outcome } = self;
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
        Ok(Parts { start: Start { held, listener, rules, feed, tell }, arriving, shutdown: Shutdown::when(ended) })
    }
}

/// How the command ended, when all that it said is there; `None` if it never began.
async fn end_of(told: oneshot::Receiver<Result<Running, LaunchError>>) -> Option<Result<ExitStatus, LaunchError>> {
    match told.await.ok()? {
        Ok(Running { mut launched, listening, copying }) => {
            let status = launched.ended().await;
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
            Some(status)
        }
        Err(error) => Some(Err(error)),
    }
}
