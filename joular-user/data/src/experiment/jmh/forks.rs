//! Finds JMH's forks in a data set, and the windows in which each of them measured.
//!
//! A fork is a process that runs code which JMH generates for a benchmark. The last window in which such code was
//! sampled has the end of its measurement. Before that are, without a gap but for what JMH does between iterations, the
//! iterations that count. Only windows that lie in them as a whole are taken.

use std::collections::{BTreeMap, HashMap};

use crate::{
    dataset::error::Result,
    model::{
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    report::profile::{Catalog, DataSet, Filter, PathIndex, ProcessIndex, Row},
};

/// A process of one benchmark.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// As [`super::result::Benchmark::stub`].
    pub stub: String,
    start: UnixMicros,
    windows: BTreeMap<UnixMicros, OfWindow>,
}

/// What a fork had in a window.
#[derive(Clone, Copy, Debug, Default)]
struct OfWindow {
    length_ns: u64,
    energy: MicroJoules,
    /// Of threads of the JVM itself.
    vm: MicroJoules,
    /// Whether the benchmark was seen.
    is_seen: bool,
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
        let Some((last, of_last)) = self.windows.iter().rev().find(|(_, window)| window.is_seen) else {
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
    let mut stubs: HashMap<PathIndex, Option<String>> = HashMap::new();
    data.scan(&Filter::default(), |catalog, row| {
        let stub = stubs.entry(row.path).or_insert_with(|| stub_of(catalog, row.path));
        take(&mut forks, catalog, row, stub.as_deref());
    })?;
    let mut forks: Vec<Fork> = forks.into_values().filter(|fork| !fork.stub.is_empty()).collect();
    forks.sort_by_key(|fork| fork.start);
    Ok(forks)
}

fn take(forks: &mut BTreeMap<ProcessIndex, Fork>, catalog: &Catalog, row: &Row, stub: Option<&str>) {
    let thread = catalog.thread(row.thread);
    let process = catalog.process(thread.process);
    // Other processes have no code of Java.
    if process.jvm_version.is_none() {
        return;
    }
    let fork = forks.entry(thread.process).or_insert_with(|| Fork { start: process.start, ..Fork::default() });
    if let Some(stub) = stub.filter(|_| fork.stub.is_empty()) {
        fork.stub = stub.to_owned();
    }
    let window = fork.windows.entry(row.window_start).or_default();
    window.length_ns = row.window_ns;
    window.energy = window.energy.saturating_add(row.energy);
    if thread.category.is_of_jvm() {
        window.vm = window.vm.saturating_add(row.energy);
    }
    window.is_seen |= stub.is_some();
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
    let mut at = start;
    let window = |(length_ns, energy, is_seen): &(u64, u64, bool)| {
        let start = UnixMicros(at);
        at += micros(*length_ns);
        let energy = MicroJoules(*energy);
        (start, OfWindow { length_ns: *length_ns, energy, vm: MicroJoules(energy.0 / 10), is_seen: *is_seen })
    };
    Fork { stub: stub.to_owned(), start: UnixMicros(start), windows: windows.iter().map(window).collect() }
}
