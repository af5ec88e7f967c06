//! Handles signals: the first one ends the run cleanly. The next one ends it at once if all that was recorded is written;
//! if it is not, that takes one more.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use joular_data::events::RunEnd;
use signal_hook::{
    consts,
    low_level::{exit, register},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Duration,
    Interrupt,
    Terminate,
    /// No process of `--pid` is left.
    Targets,
    /// The command that is recorded has ended.
    Command,
    /// A new configuration is to be used from now on.
    Reload,
    /// The recording being replayed is over.
    EndOfRecording,
    /// Who watched it has left.
    Quit,
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
            Self::Targets => "end of the targets",
            Self::Command => RunEnd::OF_COMMAND,
            Self::Reload => "SIGHUP",
            Self::EndOfRecording => "end of recording",
            Self::Quit => "quit",
            Self::Failure => "failure",
        }
    }
}

/// Waits for what ends a run.
pub struct Shutdown(Source);

enum Source {
    Signals(Signals),
    Other(End),
}

/// Resolves once.
type End = Pin<Box<dyn Future<Output = StopReason>>>;

/// Signals that ask to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<(Signal, Reload)>,
    other: Option<End>,
    asked: Arc<Asked>,
}

/// What the signal handler knows.
#[derive(Debug, Default)]
struct Asked {
    times: AtomicUsize,
    is_all_written: AtomicBool,
}

/// What somebody sees who is impatient while something is still to be written.
const STILL_WRITING: &[u8] = b"\njoular-bpf: still writing; Ctrl-C once more discards what is not written yet\n";

impl Asked {
    /// Counts a signal. Does nothing but what a signal handler may: atomic operations and system calls.
    fn again(&self, code: u8) {
        match (self.times.fetch_add(1, Ordering::SeqCst), self.is_all_written.load(Ordering::SeqCst)) {
            (0, _) => {}
            (1, false) => {
                // SAFETY: the kernel reads as many bytes as there are. If nobody listens any more, nothing is lost.
                let _written =
                    unsafe { libc::write(libc::STDERR_FILENO, STILL_WRITING.as_ptr().cast(), STILL_WRITING.len()) };
            }
            _ => exit(code.into()),
        }
    }
}

/// Reads the configuration again. Returns whether it is to be used.
pub type Reload = Box<dyn FnMut() -> bool>;

impl Shutdown {
    /// Takes over SIGINT and SIGTERM. A signal that ends the program at once does so with this code, from the signal
    /// handler, however busy the program is.
    pub fn listen(at_once: u8) -> io::Result<Self> {
        let asked = Arc::new(Asked::default());
        for signal in [consts::SIGINT, consts::SIGTERM] {
            let handled = Arc::clone(&asked);
            // SAFETY: it does what a signal handler may, see `Asked::again`, and does not panic.
            unsafe { register(signal, move || handled.again(at_once)) }?;
        }
        Ok(Self(Source::Signals(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
            other: None,
            asked,
        })))
    }

    /// Says that nothing is left that an end on the spot would lose.
    pub fn all_is_written(&self) {
        if let Source::Signals(signals) = &self.0 {
            signals.asked.is_all_written.store(true, Ordering::SeqCst);
        }
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

    /// Also ends a run when `end` resolves. It resolves once.
    #[must_use]
    pub fn or_when(self, end: impl Future<Output = StopReason> + 'static) -> Self {
        Self(match self.0 {
            Source::Signals(signals) => Source::Signals(Signals { other: Some(Box::pin(end)), ..signals }),
            other @ Source::Other(_) => other,
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
            let other = async {
                match &mut self.other {
                    Some(end) => end.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => return StopReason::Interrupt,
                _ = self.terminate.recv() => return StopReason::Terminate,
                reason = other => return reason,
                _ = hangup => {}
            }
            if self.hangup.as_mut().is_some_and(|(_, reload)| reload()) {
                return StopReason::Reload;
            }
        }
    }
}
