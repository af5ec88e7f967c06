//! Runs a command and records it, from its first instruction to its end.

use std::{cell::RefCell, ffi::OsString, process::ExitStatus, rc::Rc};

use tokio::sync::oneshot;

use super::{Failure, Until, record_with};
use crate::{
    cli::Exit,
    config::{self, CommandRun, Input},
    experiment::{Held, LaunchError, Launched, launch::exit_code, signals::HandedOn},
    procs::selection::Selection,
    shutdown::{Shutdown, StopReason},
};

/// Runs a command, and ends with its exit code.
///
/// # Errors
/// As those of a recording, or if the command cannot be started.
pub fn measure(run: &CommandRun, command: &[OsString]) -> Result<Exit, Failure> {
    let Input::Live(live) = &run.config.input else { return Err(Failure::NoCommand) };
    let held = Held::start(command, run.user.as_ref())?;
    let live = config::Live { selection: Selection::Tree(held.pid()), ..live.as_ref().clone() };
    let outcome = Rc::new(RefCell::new(None));
    record_with(&run.config, &live, Until::Command(Command { held, outcome: Rc::clone(&outcome) }))?;
    match outcome.take() {
        Some(Ok(status)) => Ok(Exit::Command(exit_code(status))),
        Some(Err(error)) => Err(error.into()),
        None => Err(Failure::NoCommand),
    }
}

/// What became of the command.
type Outcome = Rc<RefCell<Option<Result<ExitStatus, LaunchError>>>>;

/// A command that begins when the recording does.
pub(super) struct Command {
    held: Held,
    outcome: Outcome,
}

/// Lets the command run.
pub(super) struct Start {
    held: Held,
    tell: oneshot::Sender<Result<Launched, LaunchError>>,
}

impl Start {
    pub(super) fn now(self) {
        // Whoever waits for it ends the recording if it failed.
        let _unheard = self.tell.send(self.held.release());
    }
}

impl Command {
    /// What starts the command, and what ends the recording.
    pub(super) fn parts(self) -> std::io::Result<(Start, Shutdown)> {
        let Self { held, outcome } = self;
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
        Ok((Start { held, tell }, Shutdown::when(ended)))
    }
}

/// How the command ended; `None` if it never began.
async fn end_of(told: oneshot::Receiver<Result<Launched, LaunchError>>) -> Option<Result<ExitStatus, LaunchError>> {
    match told.await.ok()? {
        Ok(mut launched) => Some(launched.ended().await),
        Err(error) => Some(Err(error)),
    }
}
