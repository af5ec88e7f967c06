//! Handles signals: the first one ends the run cleanly, the second one at once.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
};

use signal_hook::{consts, flag};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Duration,
    Interrupt,
    Terminate,
    /// The command that is recorded has ended.
    Command,
    /// A new configuration is to be used from now on.
    Reload,
    /// The recording being replayed is over.
    EndOfRecording,
    /// Something failed; the message and the exit code say what.
    Failure,
}

impl StopReason {
    /// As the data set's `runs` table has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Command => "end of the command",
            Self::Reload => "SIGHUP",
            Self::EndOfRecording => "end of recording",
            Self::Failure => "failure",
        }
    }
}

/// Waits for what ends a run.
pub struct Shutdown(Source);

enum Source {
    Signals(Signals),
    Other(Pin<Box<dyn Future<Output = StopReason>>>),
}

/// Signals that ask to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<(Signal, Reload)>,
}

/// Reads the configuration again. Returns whether it is to be used.
pub type Reload = Box<dyn FnMut() -> bool>;

impl Shutdown {
    /// Takes over SIGINT and SIGTERM. The second of them exits on the spot with
    /// `second`, from the signal handler, however busy the program is.
    pub fn listen(second: u8) -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [consts::SIGINT, consts::SIGTERM] {
            // In this order: the first signal only raises the flag.
            flag::register_conditional_shutdown(signal, second.into(), Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(Source::Signals(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })))
    }

    /// Ends a run when `end` resolves, and at no signal. It resolves once.
    pub fn when(end: impl Future<Output = StopReason> + 'static) -> Self {
        Self(Source::Other(Box::pin(end)))
    }

    /// Also ends a run at SIGHUP if `reload` says so. Otherwise that signal ends the program, as usual.
    pub fn reload_by(self, reload: Reload) -> io::Result<Self> {
        Ok(match self.0 {
            Source::Signals(signals) => {
                Self(Source::Signals(Signals { hangup: Some((signal(SignalKind::hangup())?, reload)), ..signals }))
            }
            other @ Source::Other(_) => Self(other),
        })
    }

    /// Resolves when the run is to end.
    pub async fn requested(&mut self) -> StopReason {
        match &mut self.0 {
            Source::Signals(signals) => signals.requested().await,
            Source::Other(end) => end.await,
        }
    }
}

impl Signals {
    async fn requested(&mut self) -> StopReason {
        loop {
            let hangup = async {
                match &mut self.hangup {
                    Some((signal, _)) => signal.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => return StopReason::Interrupt,
                _ = self.terminate.recv() => return StopReason::Terminate,
                _ = hangup => {}
            }
            if self.hangup.as_mut().is_some_and(|(_, reload)| reload()) {
                return StopReason::Reload;
            }
        }
    }
}
