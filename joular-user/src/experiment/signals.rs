//! Hands signals on to the command.
//!
//! A terminal sends Ctrl-C to its whole foreground group, so the command has it already. What only joular-bpf was sent
//! is meant for the command.

use std::{io, os::fd::AsFd};

use joular_data::model::units::Pid;
use rustix::{
    process::{Pid as OsPid, Signal, getpgrp, kill_process},
    termios::tcgetpgrp,
};
use tokio::signal::unix::{Signal as Arriving, SignalKind, signal};

/// Signals that are handed on.
const HANDED_ON: [(Signal, SignalKind); 6] = [
    (Signal::INT, SignalKind::interrupt()),
    (Signal::TERM, SignalKind::terminate()),
    (Signal::HUP, SignalKind::hangup()),
    (Signal::QUIT, SignalKind::quit()),
    (Signal::USR1, SignalKind::user_defined1()),
    (Signal::USR2, SignalKind::user_defined2()),
];

/// Signals on their way to the command.
#[derive(Debug)]
pub struct HandedOn {
    arriving: Vec<(Signal, Arriving)>,
    asked_to_end: Option<Signal>,
}

/// Signals that ask to end.
const END: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

impl HandedOn {
    /// Takes them over from now on.
    ///
    /// # Errors
    /// If the kernel does not allow it.
    pub fn listen() -> io::Result<Self> {
        let arriving = HANDED_ON.into_iter().map(|(name, kind)| Ok((name, signal(kind)?)));
        Ok(Self { arriving: arriving.collect::<io::Result<_>>()?, asked_to_end: None })
    }

    /// The first signal that asked to end.
    pub const fn asked_to_end(&self) -> Option<Signal> {
        self.asked_to_end
    }

    /// Resolves when a signal asks to end.
    pub async fn end(&mut self) {
        while self.asked_to_end.is_none() {
            self.next().await;
        }
    }

    /// Hands on those that arrive, for ever.
    pub async fn forward(&mut self, command: Pid) {
        loop {
            let signal = self.next().await;
            if is_from_terminal(signal) {
                continue;
            }
            if let Some(pid) = i32::try_from(command.0).ok().and_then(OsPid::from_raw) {
                // It may have ended meanwhile, which is noticed elsewhere.
                let _gone = kill_process(pid, signal);
            }
        }
    }

    async fn next(&mut self) -> Signal {
        let signal = std::future::poll_fn(|context| {
            for (name, arriving) in &mut self.arriving {
                if arriving.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*name);
                }
            }
            std::task::Poll::Pending
        })
        .await;
        if END.contains(&signal) {
            self.asked_to_end.get_or_insert(signal);
        }
        signal
    }
}

/// Whether a terminal has sent it to the command, too.
fn is_from_terminal(signal: Signal) -> bool {
    let is_key = [Signal::INT, Signal::QUIT].contains(&signal);
    is_key && (is_foreground(io::stdin()) || is_foreground(io::stderr()))
}

/// Whether it is a terminal of which this process is in the foreground.
fn is_foreground(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|foreground| foreground == getpgrp())
}
