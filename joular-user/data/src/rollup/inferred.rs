//! Sums what call paths have once light windows are divided by samples of several, by the code that reports
//! use, before windows and threads lose their names.

use std::collections::{BTreeMap, HashMap};

use crate::{
    model::units::{Pid, Tid},
    report::profile::{Catalog, EnergyRow, ThreadIndex},
};

/// Identity of a thread: process, its start, thread, its start; starts in ns of the wall clock.
pub(super) type ThreadKey = (Pid, u64, Tid, u64);

/// What a call path of a thread has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    pub(super) energy_uj: u64,
    pub(super) cpu_ns: u64,
    /// Sum of the squared energy that each of its samples stands for, µJ².
    pub(super) squares: f64,
    /// Energy of windows in which no sample hit the thread.
    pub(super) unsampled_uj: u64,
}

/// By thread and `stack_id`.
pub(super) type OfWindow = BTreeMap<(ThreadKey, i64), Shown>;

/// By the number of the window of the rollup.
#[derive(Debug)]
pub(super) struct OfRun {
    length_us: i64,
    windows: HashMap<i64, OfWindow>,
}

impl OfRun {
    pub(super) fn new(length_us: i64) -> Self {
        Self { length_us, windows: HashMap::new() }
    }

    /// Takes the rows of a run in the order of time.
    pub(super) fn take_row(&mut self, catalog: &Catalog, stack_ids: &[i64], row: &EnergyRow) {
        let (thread, window) = (key_of(catalog, row.thread), row.window_start.0.div_euclid(self.length_us));
        let id = stack_ids.get(row.path.index()).copied().unwrap_or_default();
        let sum = self.windows.entry(window).or_default().entry((thread, id)).or_default();
        sum.energy_uj = sum.energy_uj.saturating_add(row.energy.0);
        sum.cpu_ns = sum.cpu_ns.saturating_add(row.cpu_ns);
        sum.squares += row.squares();
        sum.unsampled_uj = sum.unsampled_uj.saturating_add(row.amounts().inferred.0);
    }

    /// What is known of a window, once.
    pub(super) fn take(&mut self, window: i64) -> OfWindow {
        self.windows.remove(&window).unwrap_or_default()
    }
}

fn key_of(catalog: &Catalog, index: ThreadIndex) -> ThreadKey {
    let thread = catalog.thread(index);
    let process = catalog.process(thread.process);
    let ns = |micros: i64| u64::try_from(micros).unwrap_or(0).saturating_mul(1000);
    (process.pid, ns(process.start.0), thread.tid, ns(thread.start.0))
}
