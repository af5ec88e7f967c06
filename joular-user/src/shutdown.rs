//! Handles signals: the first one ends the run cleanly, the second one at once.

use std::{
    io,
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
            Self::Reload => "SIGHUP",
            Self::EndOfRecording => "end of recording",
            Self::Failure => "failure",
        }
    }
}

/// Waits for signals that ask to stop.
pub struct Shutdown {
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
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Also ends a run at SIGHUP if `reload` says so. Otherwise that signal ends the program, as usual.
    pub fn reload_by(self, reload: Reload) -> io::Result<Self> {
        Ok(Self { hangup: Some((signal(SignalKind::hangup())?, reload)), ..self })
    }

    /// Resolves when one arrives.
    pub async fn requested(&mut self) -> StopReason {
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
