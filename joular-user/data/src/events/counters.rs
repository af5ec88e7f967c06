//! Defines what threads counted in a window beside CPU time.

use serde::{Deserialize, Serialize};

use crate::model::{
    counter::Counter,
    units::{Pid, Tid},
};

/// Counts of the coming window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCounters {
    /// What was asked for.
    pub counters: Vec<Counter>,
    /// Threads that counted anything, by process, thread id and start. What the idle task counted is in none. Process 0
    /// and thread 0 have what was counted around switches that the kernel did not report.
    pub threads: Vec<ThreadCounts>,
}

/// Counts of one thread, wherever it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounts {
    pub tid: Tid,
    pub pid: Pid,
    pub start_boottime_ns: u64,
    pub is_kernel: bool,
    /// Parallel to [`WindowCounters::counters`].
    pub counts: Vec<u64>,
}
