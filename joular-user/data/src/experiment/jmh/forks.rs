//! Finds JMH's forks in a data set, and the windows in which each of them measured.
//!
//! A fork is a process that runs code which JMH generates for a benchmark. The threads that such code was sampled on are
//! the benchmark's own: the last window in which one of them ran has the end of its measurement. Before that are, without a
//! gap but for what JMH does between iterations, the iterations that count. Only windows that lie in them as a whole are
//! taken, also those in which the process slept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    dataset::error::Result,
    model::{
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    report::profile::{Catalog, DataSet, EnergyRow, Filter, PathIndex, ProcessIndex, ThreadIndex, WindowSpan},
};

/// A process of one benchmark.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// As [`super::result::Benchmark::stub`].
    pub stub: String,
    start: UnixMicros,
    /// Whose windows these are.
    runs: BTreeSet<usize>,
    windows: BTreeMap<UnixMicros, OfWindow>,
    /// Threads that run the benchmark.
    workers: BTreeSet<ThreadIndex>,
}

/// What a fork had in a window.
#[derive(Clone, Debug, Default)]
struct OfWindow {
    length_ns: u64,
    energy: MicroJoules,
    /// Of threads of the JVM itself.
    vm: MicroJoules,
    /// Those that ran.
    threads: Vec<ThreadIndex>,
}

/// What windows of a measurement have together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    pub length_ns: u64,
    pub energy: MicroJoules,
    /// Of threads of the JVM itself.
    pub vm: MicroJoules,
}

impl Measured {
    pub fn plus(&mut self, other: &Self) {
        self.length_ns = self.length_ns.saturating_add(other.length_ns);
        self.energy = self.energy.saturating_add(other.energy);
        self.vm = self.vm.saturating_add(other.vm);
    }
}

impl Fork {
    /// The windows of its last `length_ns`, in which the iterations that count were.
    pub fn measured(&self, length_ns: u64) -> Measured {
        let mut measured = Measured::default();
        let has_worker = |window: &OfWindow| window.threads.iter().any(|thread| self.workers.contains(thread));
        let Some((last, of_last)) = self.windows.iter().rev().find(|(_, window)| has_worker(window)) else {
            return measured;
        };
        // Measuring ended within the last window: at its end it would have begun latest.
        let begun = end(*last, of_last.length_ns).0.saturating_sub(micros(length_ns));
        for (start, window) in self.windows.range(UnixMicros(begun)..*last) {
            if end(*start, window.length_ns) <= *last {
                measured.plus(&Measured { length_ns: window.length_ns, energy: window.energy, vm: window.vm });
            }
        }
        measured
    }

    /// Adds the windows between its first and its last one in which it did not run.
    fn add_windows_of_sleep(&mut self, windows: &[WindowSpan]) {
        let ends = self.windows.first_key_value().zip(self.windows.last_key_value());
        let Some((first, last)) = ends.map(|((first, _), (last, _))| (*first, *last)) else { return };
        for window in windows.iter().filter(|window| self.runs.contains(&window.run)) {
            if (first..last).contains(&window.start) {
                self.windows.entry(window.start).or_default().length_ns = window.length_ns;
            }
        }
    }
}

fn micros(ns: u64) -> i64 {
    i64::try_from(ns / 1_000).unwrap_or(i64::MAX)
}

fn end(start: UnixMicros, length_ns: u64) -> UnixMicros {
    UnixMicros(start.0.saturating_add(micros(length_ns)))
}

/// All forks, in the order of their start.
///
/// # Errors
/// If a file cannot be read or is damaged.
pub fn find(data: &mut DataSet) -> Result<Vec<Fork>> {
    let mut forks: BTreeMap<ProcessIndex, Fork> = BTreeMap::new();
    let stubs: HashMap<PathIndex, String> =
        data.catalog.paths.indices().filter_map(|path| Some((path, stub_of(&data.catalog, path)?))).collect();
    if stubs.is_empty() {
        return Ok(Vec::new());
    }
    let filter = Filter::default();
    data.scan(&filter, &mut |catalog, row| {
        take(&mut forks, catalog, row, stubs.get(&row.path).map(String::as_str));
    })?;
    let mut forks: Vec<Fork> = forks.into_values().filter(|fork| !fork.stub.is_empty()).collect();
    forks.sort_by_key(|fork| fork.start);
    let windows = data.windows(&filter);
    forks.iter_mut().for_each(|fork| fork.add_windows_of_sleep(&windows));
    Ok(forks)
}

fn take(forks: &mut BTreeMap<ProcessIndex, Fork>, catalog: &Catalog, row: &EnergyRow, stub: Option<&str>) {
    let thread = catalog.thread(row.thread);
    let process = catalog.process(thread.process);
    // Other processes have no code of Java.
    if process.jvm_version.is_none() {
        return;
    }
    let fork = forks.entry(thread.process).or_insert_with(|| Fork { start: process.start, ..Fork::default() });
    fork.runs.insert(row.run);
    if let Some(stub) = stub {
        fork.workers.insert(row.thread);
        if fork.stub.is_empty() {
            stub.clone_into(&mut fork.stub);
        }
    }
    let window = fork.windows.entry(row.window_start).or_default();
    window.length_ns = row.window_ns;
    window.energy = window.energy.saturating_add(row.energy);
    if thread.category.is_of_jvm() {
        window.vm = window.vm.saturating_add(row.energy);
    }
    if row.cpu_ns > 0 && window.threads.last() != Some(&row.thread) {
        window.threads.push(row.thread);
    }
}

/// The generated method on a path, without what stands for the mode's stub.
fn stub_of(catalog: &Catalog, path: PathIndex) -> Option<String> {
    catalog.paths.frames_of(path).find_map(|frame| {
        let (class, name) = (frame.class.as_ref().map(TargetText::raw)?, frame.name.raw());
        let mode = name.strip_suffix("jmhStub")?;
        (class.contains("jmh_generated.") && class.contains("_jmhTest")).then(|| format!("{class}.{mode}"))
    })
}

#[cfg(test)]
pub(super) fn made_up(stub: &str, start: i64, windows: &[(u64, u64, bool)]) -> Fork {
    let (worker, other) = (ThreadIndex(1), ThreadIndex(2));
    let mut at = start;
    let window = |(length_ns, energy, has_worker): &(u64, u64, bool)| {
        let start = UnixMicros(at);
        at += micros(*length_ns);
        let (energy, vm) = (MicroJoules(*energy), MicroJoules(*energy / 10));
        let threads = if *has_worker { vec![worker, other] } else { vec![other] };
        (start, OfWindow { length_ns: *length_ns, energy, vm, threads })
    };
    let windows = windows.iter().map(window).collect();
    let workers = [worker].into();
    Fork { stub: stub.to_owned(), start: UnixMicros(start), windows, workers, ..Fork::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_in_which_a_fork_slept_count_for_its_time() {
        const MS: u64 = 1_000_000;
        let mut fork = made_up("a", 0, &[(100 * MS, 30, true), (100 * MS, 50, true), (100 * MS, 70, true)]);
        fork.runs.insert(3);
        // It slept from 100 to 200 ms; run 4 is of another host.
        fork.windows.remove(&UnixMicros(100_000));
        let span = |run, start| WindowSpan { run, start: UnixMicros(start), length_ns: 100 * MS };
        fork.add_windows_of_sleep(&[
            span(3, 0),
            span(3, 100_000),
            span(4, 150_000),
            span(3, 200_000),
            span(3, 300_000),
        ]);
        let measured = fork.measured(300 * MS);
        assert_eq!((measured.length_ns, measured.energy.0), (200 * MS, 30));
    }
}
