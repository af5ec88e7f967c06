//! Keeps a recording going while its data set cannot be written: writing is tried again, and lost windows are counted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{
    attribution::window_report::WindowReport, events::LossCount, model::units::MonotonicNs, output::OutputError,
    text::count,
};

/// Time between two tries, on the clock of windows.
const TRY_AGAIN_NS: u64 = 10_000_000_000;

/// What could not be written so far, for those who show it. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Unwritten(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    windows: AtomicU64,
    is_failing: AtomicBool,
}

impl Unwritten {
    /// Windows that are in no file, and never will be.
    pub fn windows(&self) -> u64 {
        self.0.windows.load(Ordering::Relaxed)
    }

    /// Whether no file was completed since writing failed.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_failing(), self.windows()) {
            (true, windows) => write!(f, "the data set cannot be written, {} lost", count(windows, "window")),
            (false, 0) => Ok(()),
            (false, windows) => write!(f, "{} not written", count(windows, "window")),
        }
    }
}

/// Keeps a recording going.
pub(super) struct Lasting {
    unwritten: Unwritten,
    tell: Box<dyn Fn(&str)>,
    /// Windows since the last complete file.
    lost: u64,
    /// While nothing is written: when it is tried again.
    try_at: Option<MonotonicNs>,
}

impl Lasting {
    pub(super) fn new(unwritten: Unwritten, tell: impl Fn(&str) + 'static) -> Self {
        Self { unwritten, tell: Box::new(tell), lost: 0, try_at: None }
    }

    /// Whether nothing is written, and it is too early to try again.
    pub(super) fn rests(&self, now: MonotonicNs) -> bool {
        self.try_at.is_some_and(|try_at| now < try_at)
    }

    /// Whether nothing is written.
    pub(super) const fn is_resting(&self) -> bool {
        self.try_at.is_some()
    }

    /// Whether another run must begin, because the one before failed. From now on it may be written.
    pub(super) const fn resumes(&mut self) -> bool {
        self.try_at.take().is_some()
    }

    /// The first window of a run that begins after others were lost says how many.
    pub(super) fn noted(&self, report: &WindowReport) -> WindowReport {
        let mut noted = report.clone();
        noted.losses.push(LossCount { cause: LossCount::UNWRITTEN_WINDOWS.to_owned(), count: self.lost });
        noted
    }

    pub(super) fn lose(&mut self, windows: u64) {
        self.lost = self.lost.saturating_add(windows);
        self.unwritten.0.windows.fetch_add(windows, Ordering::Relaxed);
    }

    /// Writing failed, which cost so many windows.
    pub(super) fn failed(&mut self, error: &OutputError, windows: u64, now: MonotonicNs) {
        self.lose(windows);
        self.try_at = Some(MonotonicNs(now.0.saturating_add(TRY_AGAIN_NS)));
        if !self.unwritten.0.is_failing.swap(true, Ordering::Relaxed) {
            (self.tell)(&format!("{error}; recording goes on, and it is tried again"));
        }
    }

    /// A file was completed.
    pub(super) fn succeeded(&mut self) {
        if self.unwritten.0.is_failing.swap(false, Ordering::Relaxed) {
            let lost = count(std::mem::take(&mut self.lost), "window");
            (self.tell)(&format!("the data set is written again; lost: {lost}"));
        }
    }

    /// The recording has ended.
    pub(super) fn ended(&self) {
        if self.unwritten.is_failing() {
            (self.tell)(&format!("not written: the last {} of the recording", count(self.lost, "window")));
        }
    }
}
