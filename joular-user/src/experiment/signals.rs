//! Hands signals on to the command.
//!
//! A terminal sends Ctrl-C to its whole foreground group, so the command has it already. What a program sent to joular-bpf
//! is meant for the command. The kernel tells one from the other.

use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use joular_data::model::units::Pid;
use rustix::process::{Pid as OsPid, Signal, kill_process};
use signal_hook_registry::register_sigaction;
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

/// Signals that a terminal sends when keys are pressed.
const KEYS: [Signal; 2] = [Signal::INT, Signal::QUIT];

/// Which of [`KEYS`] programs have sent since that was looked at.
static SENT_BY_PROGRAMS: [AtomicBool; KEYS.len()] = [const { AtomicBool::new(false) }; KEYS.len()];

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
        // First, so that it is known who sent a signal when it is taken.
        note_senders()?;
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

/// Lets handlers note who sends [`KEYS`], from now on.
fn note_senders() -> io::Result<()> {
    static NOTED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    let note = || {
        KEYS.iter().zip(&SENT_BY_PROGRAMS).try_for_each(|(key, is_sent)| {
            let note = |about: &libc::siginfo_t| {
                if is_of_program(about.si_code) {
                    is_sent.store(true, Ordering::SeqCst);
                }
            };
            // SAFETY: the action only stores to an atomic variable that lives for ever, which a signal handler may do.
            unsafe { register_sigaction(key.as_raw(), note) }.map(drop)
        })
    };
    NOTED.get_or_init(|| note().map_err(|error| error.kind())).map_err(io::Error::from)
}

/// Whether a signal with this `si_code` comes from a program: the kernel's own are above 0.
const fn is_of_program(code: i32) -> bool {
    code <= 0
}

/// Whether a terminal has sent it to the command, too.
fn is_from_terminal(signal: Signal) -> bool {
    let key = KEYS.iter().position(|key| *key == signal);
    let is_sent = key.and_then(|key| SENT_BY_PROGRAMS.get(key));
    is_sent.is_some_and(|is_sent| !is_sent.swap(false, Ordering::SeqCst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_the_kernel() {
        for (code, expected) in
            [(libc::SI_USER, true), (libc::SI_TKILL, true), (libc::SI_QUEUE, true), (libc::SI_KERNEL, false)]
        {
            assert_eq!(is_of_program(code), expected, "{code}");
        }
    }
}
