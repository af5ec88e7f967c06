//! Sums what threads allocated, moved and counted, by window of the rollup, process, category and call path.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;

use crate::{
    attribution::{allocated::SampledBy, window_report::ProcessRef},
    dataset::write::{Amount, AmountKey},
    model::measure::Measure,
    report::profile::{AmountRow, Catalog, PathIndex, ThreadIndex},
};

/// What a window has.
pub(super) type OfWindow = BTreeMap<AmountKey, Amount>;

/// Amounts of a run that is being read. What rows are about has its name only after all were read.
#[derive(Debug)]
pub(super) struct Reading {
    length_us: i64,
    classes: IndexSet<String>,
    sums: HashMap<Key, Amount>,
}

/// Number of the window of the rollup, thread, path, measure, number of the class, and what shows where bytes were
/// allocated.
type Key = (i64, ThreadIndex, PathIndex, Measure, Option<usize>, Option<SampledBy>);

/// Of a run, by the number of the window of the rollup.
#[derive(Debug)]
pub(super) struct OfRun(HashMap<i64, OfWindow>);

impl Reading {
    pub(super) fn new(length_us: i64) -> Self {
        Self { length_us, classes: IndexSet::new(), sums: HashMap::new() }
    }

    pub(super) fn take(&mut self, row: &AmountRow<'_>) {
        let part = &row.part;
        let class = part.class.map(|name| match self.classes.get_index_of(name) {
            Some(known) => known,
            None => self.classes.insert_full(name.to_owned()).0,
        });
        let is_told = part.measure == Measure::Allocated && part.sampled.samples > 0;
        let number = row.window_start.0.div_euclid(self.length_us);
        let key = (number, row.thread, row.path, part.measure, class, is_told.then_some(part.sampled_by));
        self.sums.entry(key).or_default().add(part.amount, &part.sampled);
    }

    pub(super) fn finish(self, catalog: &Catalog, stack_ids: &[i64]) -> OfRun {
        let mut windows: HashMap<i64, OfWindow> = HashMap::new();
        for ((window, thread, path, measure, class, sampled_by), sum) in self.sums {
            let thread = catalog.thread(thread);
            let process = catalog.process(thread.process);
            let start_boottime_ns = u64::try_from(process.start.0).unwrap_or(0).saturating_mul(1000);
            let key = AmountKey {
                process: ProcessRef { pid: process.pid, start_boottime_ns, comm: process.comm.clone() },
                category: thread.category,
                stack_id: stack_ids.get(path.index()).copied().unwrap_or_default(),
                measure,
                class: class.and_then(|class| self.classes.get_index(class).cloned()),
                sampled_by,
            };
            windows.entry(window).or_default().entry(key).or_default().add(sum.amount, &sum.sampled);
        }
        OfRun(windows)
    }
}

impl OfRun {
    /// What is known of a window, once.
    pub(super) fn take(&mut self, window: i64) -> OfWindow {
        self.0.remove(&window).unwrap_or_default()
    }
}
