//! Sums what threads allocated, moved and counted, by window of the rollup, process, category and call path.

use std::collections::{BTreeMap, HashMap};

use joular_ebpf::abi::IoKind;

use crate::{
    attribution::{allocated::SampledBy, inference::apportion, window_report::ProcessRef},
    dataset::{
        error::Result,
        write::{Amount, AmountKey},
    },
    model::{measure::Measure, units::MicroJoules, way::Way},
    report::profile::{
        Allocated, AmountRow, Catalog, Counting, DataSet, Filter, Moved, MovedPath, PathIndex, Row, ThreadIndex,
    },
    sampling::Sampled,
};

/// What a window has.
pub(super) type OfWindow = BTreeMap<AmountKey, Amount>;

/// By the number of the window of the rollup.
#[derive(Debug, Default)]
struct Windows(HashMap<i64, OfWindow>);

/// Of a run that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    length_us: i64,
    windows: Windows,
    counting: Option<Counting>,
    /// The window whose rows are being counted.
    counted: Option<i64>,
}

/// Of a run.
#[derive(Debug)]
pub(super) struct OfRun(Windows);

impl Reading {
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub(super) fn open(data: &mut DataSet, filter: &Filter, length_us: i64) -> Result<Self> {
        let counting = Counting::open(data, filter)?;
        Ok(Self { length_us, windows: Windows::default(), counting, counted: None })
    }

    /// Takes the rows of energy in the order of time: counts are divided as they are.
    pub(super) fn take(&mut self, catalog: &Catalog, stack_ids: &[i64], row: &Row) {
        let number = row.window_start.0.div_euclid(self.length_us);
        if self.counted.is_some_and(|counted| counted != number) {
            self.end_counts(catalog, stack_ids, Some(number));
        }
        self.counted = Some(number);
        if let Some(counting) = &mut self.counting {
            counting.take(row);
        }
    }

    /// Adds what was counted in the window that has ended.
    fn end_counts(&mut self, catalog: &Catalog, stack_ids: &[i64], next: Option<i64>) {
        let ended = std::mem::replace(&mut self.counted, next);
        let (Some(counting), Some(number)) = (&mut self.counting, ended) else { return };
        let counted = counting.cut();
        for (place, counter) in counted.counters.iter().enumerate() {
            for (thread, path, count, sampled) in counted.each(place).filter(|(_, _, count, _)| *count > 0) {
                let key = key(catalog, stack_ids, (thread, path), Measure::Counted(*counter));
                self.windows.add(number, key, count, &sampled);
            }
        }
    }

    /// Reads the bytes, too.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub(super) fn finish(mut self, data: &mut DataSet, filter: &Filter, stack_ids: &[i64]) -> Result<OfRun> {
        self.end_counts(&data.catalog, stack_ids, None);
        let Self { length_us, mut windows, .. } = self;
        // What rows are about has its name only after all were read.
        let mut allocated: BTreeMap<_, Amount> = BTreeMap::new();
        let mut classes: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        Allocated::read_watched(data, filter, |seen| {
            let class = seen.class.map(|name| {
                numbers.get(name).copied().unwrap_or_else(|| {
                    classes.push(name.to_owned());
                    numbers.insert(name.to_owned(), classes.len() - 1);
                    classes.len() - 1
                })
            });
            let AmountRow { window_start, thread, path, by_cpu_time, amount, sampled, .. } = *seen;
            let by = if by_cpu_time { SampledBy::CpuTime } else { SampledBy::Allocation };
            let sampled_by = (sampled.samples > 0).then_some(by);
            let number = window_start.0.div_euclid(length_us);
            allocated.entry((number, (thread, path), class, sampled_by)).or_default().add(amount, &sampled);
        })?;
        for ((number, place, class, sampled_by), sum) in allocated {
            let class = class.and_then(|class| classes.get(class).cloned());
            let key = AmountKey { class, sampled_by, ..key(&data.catalog, stack_ids, place, Measure::Allocated) };
            windows.add(number, key, sum.amount, &sum.sampled);
        }
        let mut moved: BTreeMap<_, MovedPath> = BTreeMap::new();
        Moved::read_watched(data, filter, |seen| {
            let row = &seen.of_row;
            let key = (seen.window_start.0.div_euclid(length_us), row.thread, row.path);
            moved.entry(key).or_insert_with(|| MovedPath::none(row.thread, row.path)).plus(row);
        })?;
        for ((number, ..), row) in moved {
            windows.add_moved(number, &data.catalog, stack_ids, &row);
        }
        Ok(OfRun(windows))
    }
}

impl OfRun {
    /// What is known of a window, once.
    pub(super) fn take(&mut self, window: i64) -> OfWindow {
        self.0.0.remove(&window).unwrap_or_default()
    }
}

impl Windows {
    fn add(&mut self, window: i64, key: AmountKey, amount: u64, sampled: &Sampled) {
        self.0.entry(window).or_default().entry(key).or_default().add(amount, sampled);
    }

    /// Each kind of bytes with its part of the samples, so that the parts sum to them.
    fn add_moved(&mut self, window: i64, catalog: &Catalog, stack_ids: &[i64], row: &MovedPath) {
        let samples = apportion(row.samples, &row.bytes);
        for (kind, samples) in IoKind::ALL.into_iter().zip(samples) {
            let (bytes, squares) = (row.bytes[kind as usize], row.squares[kind as usize]);
            if bytes > 0 {
                let measure = Measure::Moved(Way::of_kind(kind));
                let sampled = Sampled { energy: MicroJoules(bytes), samples, squares };
                self.add(window, key(catalog, stack_ids, (row.thread, row.path), measure), bytes, &sampled);
            }
        }
    }
}

fn key(catalog: &Catalog, stack_ids: &[i64], (thread, path): (ThreadIndex, PathIndex), measure: Measure) -> AmountKey {
    let thread = catalog.thread(thread);
    let process = catalog.process(thread.process);
    let start_boottime_ns = u64::try_from(process.start.0).unwrap_or(0).saturating_mul(1000);
    AmountKey {
        process: ProcessRef { pid: process.pid, start_boottime_ns, comm: process.comm.clone() },
        category: thread.category,
        stack_id: stack_ids.get(path.index()).copied().unwrap_or_default(),
        measure,
        class: None,
        sampled_by: None,
    }
}
