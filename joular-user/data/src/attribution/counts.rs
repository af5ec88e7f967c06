//! Finds for every count of a window who it counts for. No energy is involved: what was counted weighs nothing in a
//! division.

use std::collections::BTreeMap;

use super::work::Claimant;
use crate::{
    events::{ThreadCounts, WindowCounters},
    model::counter::Counter,
};

/// What was counted in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What was asked for.
    pub counters: Vec<Counter>,
    /// By claimant. Threads are those that counted anything; other processes, the kernel and the profiler are always
    /// here.
    pub rows: Vec<CountRow>,
}

/// What one claimant counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRow {
    pub claimant: Claimant,
    /// Parallel to [`Counts::counters`].
    pub counts: Vec<u64>,
}

/// Claimants that have rows in any case, so that a reader can tell what was counted and is zero.
const GROUPS: [Claimant; 3] = [Claimant::OtherProcesses, Claimant::Kernel, Claimant::Profiler];

impl Counts {
    pub(super) fn of(window: &WindowCounters, claimant: impl Fn(&ThreadCounts) -> Claimant) -> Self {
        let none = || vec![0; window.counters.len()];
        let mut rows: BTreeMap<Claimant, Vec<u64>> = GROUPS.into_iter().map(|group| (group, none())).collect();
        for thread in &window.threads {
            let sums = rows.entry(claimant(thread)).or_insert_with(none);
            for (sum, count) in sums.iter_mut().zip(&thread.counts) {
                *sum = sum.saturating_add(*count);
            }
        }
        let rows = rows.into_iter().map(|(claimant, counts)| CountRow { claimant, counts }).collect();
        Self { counters: window.counters.clone(), rows }
    }
}
