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
            Self::EndOfRecording => "end of recording",
            Self::Failure => "failure",
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
    /// Takes over SIGINT and SIGTERM. The second of them exits on the spot with
    /// `second`, from the signal handler, however busy the program is.
    pub fn listen(second: u8) -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [consts::SIGINT, consts::SIGTERM] {
            // In this order: the first signal only raises the flag.
            flag::register_conditional_shutdown(signal, second.into(), Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
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
