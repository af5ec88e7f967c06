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

    /// Resolves when one arrives.
    pub async fn requested(&mut self) -> StopReason {
        tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
        }
    }
}
