//! Divides what threads counted ([`crate::model::counter`]) among their call paths.
//!
//! A count is exact for a thread in a window, and samples show where the thread was. Each path gets its part in
//! proportion to the CPU time that it has in the window, in whole numbers that sum to the count. Time that is inferred from
//! samples of other windows takes its part along, so counts and energy are seen in the same places.
//!
//! Counts of all windows of the selection are in memory while they are divided: some 8 bytes for each, and 16 for each
//! thread and window.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::Part;
use crate::{
    attribution::{allocated::SampledBy, inference::apportion, work::Claimant},
    dataset::{
        error::Result,
        read::{columns::Columns, decode_ahead, span::Span},
        tables::{Counters, counters, shared},
    },
    model::{
        counter::Counter,
        measure::Measure,
        units::{MicroJoules, Tid, UnixMicros},
    },
    report::profile::{EnergyRow, Filter, ThreadIndex, reader::DataSet},
    sampling::Sampled,
};

/// Places of the counts of a window's threads.
type OfWindow = HashMap<ThreadIndex, usize, RandomState>;

/// Counts of a data set that is being read.
#[derive(Debug, Default)]
pub(super) struct Counting {
    /// All that any run counted, each once.
    counters: Vec<Counter>,
    windows: HashMap<(usize, UnixMicros), OfWindow, RandomState>,
    /// As many for each place as there are counters.
    counts: Vec<u64>,
    /// The rows of one window.
    rows: Vec<EnergyRow>,
}

impl Counting {
    /// Reads what the threads of a data set counted in the windows that `filter` allows. [`DataSet::sums`] comes before
    /// it, which gets to know the threads.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub(super) fn open(data: &DataSet, filter: &Filter) -> Result<Self> {
        let mut counting = Self { counters: counters_of(data)?, ..Self::default() };
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            let files = data.files::<Counters>(run);
            decode_ahead::batches(&files, &span, |columns| counting.read(data, run, &span, columns))?;
        }
        Ok(counting)
    }

    pub(super) fn counters(&self) -> impl Iterator<Item = Counter> + '_ {
        self.counters.iter().copied()
    }

    fn read(&mut self, data: &DataSet, run: usize, span: &Span, columns: &Columns<'_>) -> Result<()> {
        let (starts, claimants) = (columns.times(shared::WINDOW_START)?, columns.names(counters::CLAIMANT)?);
        let (pids, process_starts) = (columns.ints(counters::PID)?, columns.times(counters::PROCESS_START)?);
        let (tids, thread_starts) = (columns.ints(counters::TID)?, columns.times(counters::THREAD_START)?);
        let (names, counts) = (columns.names(counters::COUNTER)?, columns.ints(counters::COUNT)?);
        let width = self.counters.len();
        for row in 0..columns.rows() {
            let start = UnixMicros(starts.get(row)?);
            if claimants.get(row)? != Claimant::Thread(0).name() || !span.allows(start) {
                continue;
            }
            let process = (pids.natural(row)?, process_starts.get(row)?);
            let thread = (Tid(tids.natural(row)?), UnixMicros(thread_starts.get(row)?));
            let Some(thread) = data.known_thread(run, process, thread) else { continue };
            let place = names.name_of(row, |name| self.counters.iter().position(|one| one.name() == name))?;
            let next = self.counts.len();
            let at = *self.windows.entry((run, start)).or_default().entry(thread).or_insert(next);
            if at == next {
                self.counts.resize(next + width, 0);
            }
            let count = counts.natural::<u64>(row)?;
            self.counts[at + place] = self.counts[at + place].saturating_add(count);
        }
        Ok(())
    }

    /// Takes a row of [`DataSet::scan_in_time`], in which rows of a window stand together, and calls `give` with what each
    /// row of the window before has of each counter.
    pub(super) fn take(&mut self, row: &EnergyRow, give: impl FnMut(&EnergyRow, Part<'static>)) {
        if self.windows.is_empty() {
            return;
        }
        if self.rows.first().is_some_and(|first| (first.run, first.window_start) != (row.run, row.window_start)) {
            self.end_window(give);
        }
        self.rows.push(*row);
    }

    /// The same after the last row.
    pub(super) fn end_window(&mut self, mut give: impl FnMut(&EnergyRow, Part<'static>)) {
        let Some(window) = self.rows.first().map(|row| (row.run, row.window_start)) else { return };
        let counted = self.windows.remove(&window).unwrap_or_default();
        self.rows.sort_unstable_by_key(|row| (row.thread, row.path, row.cpu_ns));
        for rows in self.rows.chunk_by(|a, b| a.thread == b.thread) {
            let place = rows.first().and_then(|row| counted.get(&row.thread));
            if let Some(counts) = place.and_then(|at| self.counts.get(*at..at + self.counters.len())) {
                divided(&self.counters, counts, rows, &mut give);
            }
        }
        self.rows.clear();
    }
}

/// Calls `give` with what each row of a thread in a window has of what the thread counted there.
pub(in crate::report::profile) fn divided(
    counters: &[Counter],
    counts: &[u64],
    rows: &[EnergyRow],
    mut give: impl FnMut(&EnergyRow, Part<'static>),
) {
    let times: Vec<u64> = rows.iter().map(|row| row.cpu_ns).collect();
    let weights = if times.iter().all(|ns| *ns == 0) { vec![1; times.len()] } else { times };
    for (counter, count) in counters.iter().zip(counts).filter(|(_, count)| **count > 0) {
        for (row, amount) in rows.iter().zip(apportion(*count, &weights)) {
            let (measure, sampled) = (Measure::Counted(*counter), sampled(row, amount));
            give(row, Part { measure, class: None, sampled_by: SampledBy::default(), amount, sampled });
        }
    }
}

/// What samples divide of a row's count: as they divide its energy.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
fn sampled(row: &EnergyRow, count: u64) -> Sampled {
    let of_count = Sampled::of(MicroJoules(count), row.samples);
    if row.energy.0 == 0 {
        return of_count;
    }
    let squares = row.squares() * (count as f64 / row.energy.0 as f64).powi(2);
    let sampled = Sampled { energy: MicroJoules(count), samples: row.samples, squares };
    if squares > 0.0 { sampled } else { Sampled::default() }
}

/// What the runs counted, each once.
fn counters_of(data: &DataSet) -> Result<Vec<Counter>> {
    let mut found = BTreeSet::new();
    for run in 0..data.catalog.runs.len() {
        decode_ahead::batches(&data.files::<Counters>(run), &Span::default(), |columns| {
            let names = columns.names(counters::COUNTER)?;
            for row in 0..columns.rows() {
                found.insert(names.name_of(row, |name| name.parse::<Counter>().ok())?);
            }
            Ok(())
        })?;
    }
    Ok(found.into_iter().collect())
}
