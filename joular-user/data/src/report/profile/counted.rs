//! Divides what threads counted ([`crate::model::counter`]) among their call paths.
//!
//! A count is exact for a thread in a window, and samples tell where the thread was. Each path gets its part in
//! proportion to the CPU time that it has in the window, in whole numbers that sum to the count. Time that samples of
//! other windows tell takes its part along, so counts and energy are seen in the same places.
//!
//! Counts of all windows of the selection are in memory while they are divided: some 8 bytes for each, and 16 for each
//! thread and window.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::{Filter, PathIndex, ThreadIndex, ThreadPath, amounts, in_windows::InWindow, reader::DataSet, row::Row};
use crate::{
    attribution::{inference::apportion, work::Claimant},
    dataset::{
        column::{Column, Named, Table, kind},
        error::Result,
        read::{
            columns::{Columns, TableFile},
            span::Span,
        },
        tables::{Amounts, Counters, amounts as of_amounts, counters, shared},
    },
    model::{
        counter::Counter,
        measure::Measure,
        units::{MicroJoules, Tid, UnixMicros},
    },
    sampling::Sampled,
};

/// What a selection counted, by thread and path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// All that any run counted. Empty: nothing was counted.
    pub counters: Vec<Counter>,
    places: HashMap<(ThreadIndex, PathIndex), usize, RandomState>,
    /// As many for each place as there are counters.
    counts: Vec<u64>,
    /// As [`Sampled::squares`], of each of `counts`.
    squares: Vec<f64>,
    /// Samples of CPU time, of each of `counts`.
    samples: Vec<u64>,
}

impl Counted {
    pub const fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Counts of an entry of the profile, in the order of [`Self::counters`]; `None` if it has none.
    pub fn of(&self, entry: &ThreadPath) -> Option<&[u64]> {
        self.places.get(&(entry.thread, entry.path)).and_then(|at| self.counts.get(*at..at + self.counters.len()))
    }

    /// Sums over entries.
    pub fn sums<'e>(&self, entries: impl IntoIterator<Item = &'e ThreadPath>) -> Vec<u64> {
        let mut sums = vec![0; self.counters.len()];
        entries.into_iter().filter_map(|entry| self.of(entry)).for_each(|counts| add(&mut sums, counts));
        sums
    }

    /// The place of a counter in [`Self::counters`].
    pub fn place_of(&self, counter: Counter) -> Option<usize> {
        self.counters.iter().position(|one| *one == counter)
    }

    /// Counts of an entry of the profile by the counter at a place, and what of them samples divide.
    pub fn sampled(&self, entry: &ThreadPath, counter: usize) -> Option<(u64, Sampled)> {
        let at = self.places.get(&(entry.thread, entry.path))?;
        Some((*self.counts.get(at + counter)?, self.sampled_at(*at, counter)))
    }

    /// What samples divide of the counts of each thread and path, whatever methods are selected.
    pub fn sampled_threads(&self, counter: usize) -> impl Iterator<Item = (ThreadIndex, Sampled)> + '_ {
        self.places.iter().map(move |((thread, _), at)| (*thread, self.sampled_at(*at, counter)))
    }

    fn sampled_at(&self, at: usize, counter: usize) -> Sampled {
        let squares = self.squares[at + counter];
        if squares <= 0.0 {
            return Sampled::default();
        }
        // As in facts of other measures, counts take the place of microjoules.
        let energy = MicroJoules(self.counts[at + counter]);
        Sampled { energy, samples: self.samples[at + counter], squares }
    }

    /// Counts of all threads and paths by the counter at a place, and what of them samples divide.
    pub(crate) fn each(&self, counter: usize) -> impl Iterator<Item = (ThreadIndex, PathIndex, u64, Sampled)> + '_ {
        let at = move |((thread, path), at): (&(ThreadIndex, PathIndex), &usize)| {
            (*thread, *path, self.counts[at + counter], self.sampled_at(*at, counter))
        };
        self.places.iter().map(at)
    }

    /// Where the counts of a thread and path begin, which get a place if they had none.
    fn place(&mut self, thread: ThreadIndex, path: PathIndex) -> usize {
        let width = self.counters.len();
        let next = self.counts.len();
        let at = *self.places.entry((thread, path)).or_insert(next);
        if at == next {
            self.counts.resize(next + width, 0);
            self.squares.resize(next + width, 0.0);
            self.samples.resize(next + width, 0);
        }
        at
    }

    /// Adds a row of a rollup.
    fn plus_amount(&mut self, row: &amounts::AmountRow<'_>, counter: usize) {
        let at = self.place(row.thread, row.path) + counter;
        self.counts[at] = self.counts[at].saturating_add(row.amount);
        self.squares[at] += row.sampled.squares;
        self.samples[at] = self.samples[at].saturating_add(row.sampled.samples);
    }

    fn plus(&mut self, row: &CountRow, counts: &[u64]) {
        let width = self.counters.len();
        let at = self.place(row.thread, row.path);
        add(&mut self.counts[at..at + width], counts);
        let squares = self.squares[at..at + width].iter_mut();
        squares.zip(counts).for_each(|(sum, count)| *sum += row.squares_of(*count));
        self.samples[at..at + width].iter_mut().for_each(|sum| *sum = sum.saturating_add(row.samples));
    }
}

/// A row of energy in whose proportion counts are divided.
#[derive(Clone, Copy, Debug)]
struct CountRow {
    thread: ThreadIndex,
    path: PathIndex,
    cpu_ns: u64,
    energy: MicroJoules,
    samples: u64,
    /// As [`Sampled::squares`], of `energy`.
    squares: f64,
}

impl CountRow {
    fn of(row: &Row) -> Self {
        let Row { thread, path, cpu_ns, energy, samples, .. } = *row;
        Self { thread, path, cpu_ns, energy, samples, squares: row.squares() }
    }

    fn in_window(&self, (run, window_start): (usize, UnixMicros), amount: u64) -> InWindow {
        let Self { thread, path, samples, .. } = *self;
        InWindow { run, window_start, thread, path, amount, samples, inferred: 0, squares: self.squares_of(amount) }
    }

    /// What a count of this row adds to [`Sampled::squares`]: samples divide it as they divide energy.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn squares_of(&self, count: u64) -> f64 {
        if self.energy.0 > 0 {
            self.squares * (count as f64 / self.energy.0 as f64).powi(2)
        } else {
            Sampled::of(MicroJoules(count), self.samples).squares
        }
    }
}

/// Adds counts, each to its sum.
pub(in crate::report) fn add(sums: &mut [u64], counts: &[u64]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
}

/// Places of the counts of a window's threads.
type OfWindow = HashMap<ThreadIndex, usize, RandomState>;

/// Counts of a data set that is being read.
#[derive(Debug)]
pub struct Counting {
    windows: HashMap<(usize, UnixMicros), OfWindow, RandomState>,
    /// As many for each place as there are counters.
    counts: Vec<u64>,
    divided: Counted,
    /// The rows of one window.
    now: Option<(usize, UnixMicros)>,
    rows: Vec<CountRow>,
    watched: Option<Watched>,
}

/// A counter of which every row is kept.
#[derive(Debug)]
struct Watched {
    counter: Counter,
    rows: Vec<InWindow>,
}

impl Counting {
    /// Reads what the threads of a data set counted in the windows that `filter` allows. `None`: nothing was counted.
    /// [`DataSet::sums`] comes before it, which gets to know the threads.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn open(data: &mut DataSet, filter: &Filter) -> Result<Option<Self>> {
        Self::watching(data, filter, None)
    }

    /// [`Self::open`], which also keeps every row of a counter for [`Self::watched`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn watching(data: &mut DataSet, filter: &Filter, counter: Option<Counter>) -> Result<Option<Self>> {
        let mut counting = Self {
            windows: HashMap::default(),
            counts: Vec::new(),
            divided: Counted { counters: counters_of(data)?, ..Counted::default() },
            now: None,
            rows: Vec::new(),
            watched: counter.map(|counter| Watched { counter, rows: Vec::new() }),
        };
        if counting.divided.is_empty() {
            return Ok(None);
        }
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            for file in data.files::<Counters>(run) {
                TableFile::open_span(&file, &COLUMNS, &span)?
                    .batches(|columns| counting.read(data, run, &span, columns))?;
            }
        }
        let Self { divided, watched, .. } = &mut counting;
        amounts::each(data, filter, |row| {
            if let Measure::Counted(counter) = row.measure
                && let Some(place) = divided.place_of(counter)
            {
                divided.plus_amount(row, place);
                let watched = watched.as_mut().filter(|watched| watched.counter == counter);
                watched.into_iter().for_each(|watched| watched.rows.push(InWindow::of_amount(row)));
            }
        })?;
        Ok(Some(counting))
    }

    /// What the rows that were taken until now have; what comes is counted anew.
    pub(crate) fn cut(&mut self) -> Counted {
        self.end_window();
        let counters = self.divided.counters.clone();
        std::mem::replace(&mut self.divided, Counted { counters, ..Counted::default() })
    }

    fn read(&mut self, data: &DataSet, run: usize, span: &Span, columns: &Columns<'_>) -> Result<()> {
        let (starts, claimants) = (columns.times(shared::WINDOW_START)?, columns.names(counters::CLAIMANT)?);
        let (pids, process_starts) = (columns.ints(counters::PID)?, columns.times(counters::PROCESS_START)?);
        let (tids, thread_starts) = (columns.ints(counters::TID)?, columns.times(counters::THREAD_START)?);
        let (names, counts) = (columns.names(counters::COUNTER)?, columns.ints(counters::COUNT)?);
        let width = self.divided.counters.len();
        for row in 0..columns.rows() {
            let start = UnixMicros(starts.get(row)?);
            if claimants.get(row)? != Claimant::Thread(0).name() || !span.allows(start) {
                continue;
            }
            let process = (pids.natural(row)?, process_starts.get(row)?);
            let thread = (Tid(tids.natural(row)?), UnixMicros(thread_starts.get(row)?));
            let Some(thread) = data.known_thread(run, process, thread) else { continue };
            let place = names.name_of(row, |name| self.divided.counters.iter().position(|one| one.name() == name))?;
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

    /// Takes a row of [`DataSet::scan_in_time`], in which rows of a window stand together.
    pub fn take(&mut self, row: &Row) {
        let window = (row.run, row.window_start);
        if self.now != Some(window) {
            self.end_window();
            self.now = Some(window);
        }
        self.rows.push(CountRow::of(row));
    }

    fn end_window(&mut self) {
        let Some(window) = self.now.take() else { return };
        let counted = self.windows.remove(&window).unwrap_or_default();
        let place = self.watched.as_ref().and_then(|watched| self.divided.place_of(watched.counter));
        self.rows.sort_unstable_by_key(|row| (row.thread, row.path, row.cpu_ns));
        let width = self.divided.counters.len();
        for rows in self.rows.chunk_by(|a, b| a.thread == b.thread) {
            let Some(counts) =
                rows.first().and_then(|row| counted.get(&row.thread)).and_then(|at| self.counts.get(*at..at + width))
            else {
                continue;
            };
            let times: Vec<u64> = rows.iter().map(|row| row.cpu_ns).collect();
            let weights = if times.iter().all(|ns| *ns == 0) { vec![1; times.len()] } else { times };
            let parts: Vec<Vec<u64>> = counts.iter().map(|count| apportion(*count, &weights)).collect();
            for (at, row) in rows.iter().enumerate() {
                let of_path: Vec<u64> = parts.iter().map(|parts| parts.get(at).copied().unwrap_or_default()).collect();
                self.divided.plus(row, &of_path);
                if let (Some(watched), Some(count)) = (&mut self.watched, place.and_then(|place| of_path.get(place))) {
                    watched.rows.push(row.in_window(window, *count));
                }
            }
        }
        self.rows.clear();
    }

    /// The rows of the counter that was to be watched.
    pub fn watched(mut self) -> Vec<InWindow> {
        self.end_window();
        self.watched.map(|watched| watched.rows).unwrap_or_default()
    }

    /// What all rows that were taken have.
    pub fn finish(mut self) -> Counted {
        self.end_window();
        self.divided
    }
}

/// What the runs counted, each once.
fn counters_of(data: &DataSet) -> Result<Vec<Counter>> {
    let mut found = BTreeSet::new();
    add_counters::<Counters>(data, &counters::COUNTER, |name| name.parse().ok().map(Some), &mut found)?;
    let of_measure = |name: &str| match name.parse() {
        Ok(Measure::Counted(counter)) => Some(Some(counter)),
        Ok(_) => Some(None),
        Err(_) => None,
    };
    add_counters::<Amounts>(data, &of_amounts::MEASURE, of_measure, &mut found)?;
    Ok(found.into_iter().collect())
}

/// Adds those that a column of a table names.
fn add_counters<T: Table>(
    data: &DataSet,
    column: &'static Column<kind::Name>,
    of_name: impl Fn(&str) -> Option<Option<Counter>>,
    found: &mut BTreeSet<Counter>,
) -> Result<()> {
    for run in 0..data.catalog.runs.len() {
        for file in data.files::<T>(run) {
            TableFile::open_columns(&file, &[column])?.batches(|columns| {
                let names = columns.names(*column)?;
                for row in 0..columns.rows() {
                    found.extend(names.name_of(row, &of_name)?);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

const COLUMNS: [&dyn Named; 8] = [
    &shared::WINDOW_START,
    &counters::CLAIMANT,
    &counters::PID,
    &counters::PROCESS_START,
    &counters::TID,
    &counters::THREAD_START,
    &counters::COUNTER,
    &counters::COUNT,
];
