//! Signals: the first one ends the run cleanly, the second one at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Duration,
    Interrupt,
    Terminate,
    /// The recording being replayed is over.
    EndOfRecording,
}

impl StopReason {
    /// As the data set's `runs` table has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::EndOfRecording => "end of recording",
        }
    }
}

/// Waits for signals that ask to stop.
#[derive(Debug)]
pub struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
}

impl Shutdown {
    /// Takes over SIGINT and SIGTERM.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Resolves when one arrives. From then on a further one ends the process
    /// at once, as if nobody had listened: 130 for the shell.
    pub async fn requested(&mut self) -> StopReason {
        let reason = tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
        };
        restore_default(libc::SIGINT);
        restore_default(libc::SIGTERM);
        reason
    }
}

fn restore_default(signal: libc::c_int) {
    // SAFETY: SIG_DFL is a valid disposition for both signals, and no handler
    // of ours is left that could run with freed state.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
