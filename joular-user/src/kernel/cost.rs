//! Reads what the eBPF programs themselves cost, from the kernel's own statistics.

use std::{os::fd::OwnedFd, time::Duration};

use aya::{programs::ProgramInfo, sys};

/// Runs and run time of one program since statistics were enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    pub name: String,
    pub runs: u64,
    pub run_time: Duration,
}

impl ProgramCost {
    /// Mean nanoseconds of one run.
    #[allow(clippy::cast_precision_loss, reason = "a display figure")]
    pub fn mean_ns(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { self.run_time.as_nanos() as f64 / self.runs as f64 }
    }
}

/// Keeps the kernel's program statistics enabled while it lives (about 40 ns
/// per program run, which is why it is off by default).
#[derive(Debug)]
pub struct Statistics(#[allow(dead_code, reason = "held for its lifetime")] OwnedFd);

impl Statistics {
    /// Enables `BPF_STATS_RUN_TIME`; needs kernel 5.8 and privileges.
    pub fn enable() -> Option<Self> {
        sys::enable_stats(sys::Stats::RunTime).ok().map(Self)
    }
}

pub(super) fn of(info: &ProgramInfo) -> ProgramCost {
    ProgramCost {
        name: info.name_as_str().unwrap_or("?").to_owned(),
        runs: info.run_count(),
        run_time: info.run_time(),
    }
}
