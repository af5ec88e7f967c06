//! Reads the rows of a selection one by one, with the methods' filter applied.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use super::Result;
use crate::{
    model::{counter::Counter, units::UnixMicros, way::Way},
    report::{
        measure::Measure,
        profile::{App, Catalog, DataSet, Filter, Overview, ProcessIndex, Summed, ThreadPath, row::Row},
    },
};

/// What a process has of a measure in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfProcess {
    pub(super) measure: Measure,
    pub(super) process: ProcessIndex,
    pub(super) window_start: UnixMicros,
    pub(super) window_ns: u64,
    /// In the measure's unit.
    pub(super) amount: u64,
}

pub(super) struct Timeline<'a> {
    data: DataSet,
    summed: Summed,
    filter: &'a Filter,
    /// By path: whether the filter allows it.
    allowed: Vec<bool>,
    pub(super) overview: Overview,
}

impl<'a> Timeline<'a> {
    pub(super) fn open(root: &Path, filter: &'a Filter, app: Option<&App>) -> Result<Self> {
        let mut data = DataSet::open(root, filter)?;
        let mut overview = data.overview(filter)?;
        let summed = data.sums(filter, |_, _| {})?;
        let paths = &data.catalog.paths;
        let allowed: Vec<bool> = paths.indices().map(|path| filter.allows_path(paths.frames_of(path))).collect();
        let is_allowed = |entry: &&ThreadPath| allowed.get(entry.path.index()).copied().unwrap_or(false);
        overview.inferred = summed.entries.iter().filter(is_allowed).map(|entry| entry.inferred).sum();
        if let Some(app) = app {
            data.catalog.paths = data.catalog.paths.of_app(app);
        }
        Ok(Self { data, summed, filter, allowed, overview })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.data.catalog
    }

    /// When the first window starts.
    pub(super) fn start(&self) -> UnixMicros {
        self.overview.span.map_or(UnixMicros(0), |(start, _)| start)
    }

    /// Calls `take` for every row, in the order in which they were written: windows of a run one
    /// after the other. It stops at the first error of `take`.
    pub(super) fn scan(&mut self, mut take: impl FnMut(&Catalog, &Row) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        let allowed = &self.allowed;
        self.data.scan_in_time(self.filter, &self.summed, |catalog, row| {
            if result.is_ok() && allowed.get(row.path.index()).copied().unwrap_or(false) {
                result = take(catalog, row);
            }
        })?;
        result
    }

    /// What processes have of bytes and counts, by measure, process and time. Bytes are in each once.
    pub(super) fn beside_energy(&mut self) -> Result<Vec<OfProcess>> {
        let windows = self.data.windows(self.filter);
        let lengths: HashMap<_, u64> =
            windows.into_iter().map(|window| ((window.run, window.start), window.length_ns)).collect();
        let mut found = Vec::new();
        let moved = Way::APART.into_iter().map(Measure::Moved);
        for measure in [Measure::Allocated].into_iter().chain(moved).chain(Counter::ALL.map(Measure::Counted)) {
            let mut sums: BTreeMap<(ProcessIndex, usize, UnixMicros), u64> = BTreeMap::new();
            for row in self.data.in_windows(measure, self.filter, &self.summed)? {
                if self.allowed.get(row.path.index()).copied().unwrap_or(false) {
                    let process = self.data.catalog.thread(row.thread).process;
                    let sum = sums.entry((process, row.run, row.window_start)).or_default();
                    *sum = sum.saturating_add(row.amount);
                }
            }
            found.extend(sums.into_iter().map(|((process, run, window_start), amount)| {
                let window_ns = lengths.get(&(run, window_start)).copied().unwrap_or(0);
                OfProcess { measure, process, window_start, window_ns, amount }
            }));
        }
        Ok(found)
    }
}

/// Nanoseconds since 1970, 0 before.
pub(super) fn unix_ns(moment: UnixMicros) -> u64 {
    u64::try_from(moment.0).unwrap_or(0).saturating_mul(1000)
}
