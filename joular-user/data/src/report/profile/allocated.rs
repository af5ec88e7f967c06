//! Sums what threads allocated (`--alloc`) by thread, call path and class.
//!
//! Paths end with the method that allocated. A thread's bytes are exact, and samples tell which of its paths and classes
//! they are of, as with energy. So the error of sampling is the same: [`AllocatedPath::squares`] is what
//! [`crate::sampling`] makes intervals of.

use std::collections::{BTreeMap, HashMap};

use super::{
    Filter, PathIndex, ThreadIndex,
    amounts::{self, AmountRow},
    filter::Allowed,
    reader::DataSet,
    thread_rows,
};
use crate::{
    attribution::allocated::SampledBy,
    dataset::{
        column::Named,
        error::Result,
        read::{
            columns::{Columns, TableFile},
            decode_ahead,
        },
        tables::{Allocations, allocations},
    },
    model::{measure::Measure, target_text::TargetText, units::MicroJoules},
    sampling::Sampled,
};

/// What a thread allocated of one class on a call path, over all windows of the selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocatedPath {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// Place in [`Allocated::classes`]. `None`: there is no sample, or the class is not known any more.
    pub class: Option<usize>,
    pub bytes: u64,
    /// Objects that were sampled, or samples of CPU time. 0: the thread allocated, and no sample tells where.
    pub samples: u64,
    /// Whether they are samples of CPU time, because allocations of the JVM could not be sampled.
    pub by_cpu_time: bool,
    /// As [`Sampled::squares`], of bytes.
    pub squares: f64,
}

/// What a selection allocated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocated {
    /// By name.
    pub classes: Vec<TargetText>,
    /// By thread, then path, then class.
    pub entries: Vec<AllocatedPath>,
    /// What samples divide of each thread, without the filter of methods.
    pub threads: BTreeMap<ThreadIndex, Sampled>,
}

impl AllocatedPath {
    /// What samples divide of it. [`crate::sampling`] has energy in mind; its error depends on no unit, so bytes take
    /// the place of microjoules.
    pub fn sampled(&self) -> Sampled {
        let Self { bytes, samples, squares, .. } = *self;
        if samples > 0 { Sampled { energy: MicroJoules(bytes), samples, squares } } else { Sampled::default() }
    }
}

impl Allocated {
    /// Reads what threads of a data set allocated in the windows that `filter` allows, on paths that it allows.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn read(data: &mut DataSet, filter: &Filter) -> Result<Self> {
        Self::read_watched(data, filter, |_| {})
    }

    /// The same, and shows each row.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_watched(data: &mut DataSet, filter: &Filter, mut watch: impl FnMut(&AmountRow<'_>)) -> Result<Self> {
        let mut sums = Sums::default();
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            decode_ahead::batches(
                &data.files::<Allocations>(run),
                |file| TableFile::open_span(file, &thread_rows::with(&COLUMNS), &span),
                |columns| sums.take(data, run, filter, columns, &mut watch),
            )?;
        }
        amounts::each(data, filter, |row| {
            if row.measure == Measure::Allocated {
                sums.take_seen(row, &mut watch);
            }
        })?;
        let allows = |path: PathIndex| filter.allows_path(data.catalog.paths.frames_of(path));
        Ok(sums.finish(allows))
    }

    /// Whether nothing is known to have been allocated.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.bytes))
    }

    /// Bytes of the entries that samples of CPU time tell.
    pub fn bytes_by_cpu_time(&self) -> u64 {
        let entries = self.entries.iter().filter(|entry| entry.by_cpu_time);
        entries.fold(0, |sum, entry| sum.saturating_add(entry.bytes))
    }

    /// Samples of all entries.
    pub fn samples(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.samples))
    }

    /// The name of an entry's class.
    pub fn class_of(&self, entry: &AllocatedPath) -> Option<&TargetText> {
        entry.class.and_then(|class| self.classes.get(class))
    }
}

/// Entries in the making. Classes have numbers in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Sums {
    allowed: Allowed,
    classes: HashMap<String, usize>,
    sums: BTreeMap<Key, (u64, Sampled)>,
}

/// Thread, path, class, and whether samples of CPU time tell.
type Key = (ThreadIndex, PathIndex, Option<usize>, bool);

impl Sums {
    fn take(
        &mut self,
        data: &mut DataSet,
        run: usize,
        filter: &Filter,
        columns: &Columns<'_>,
        watch: &mut impl FnMut(&AmountRow<'_>),
    ) -> Result<()> {
        let (names, bytes) = (columns.names(allocations::CLASS)?, columns.ints(allocations::ALLOCATED_BYTES)?);
        let samples = columns.ints(allocations::SAMPLES)?;
        let sampled_by = columns.names(allocations::SAMPLED_BY)?;
        let mut allowed = std::mem::take(&mut self.allowed);
        thread_rows::each(
            (data, run),
            (filter, &mut allowed),
            columns,
            |_| Ok(true),
            |row| {
                let thread_rows::ThreadRow { index, window_start, window_ns, thread, path, is_path_allowed } = row;
                let (bytes, class) = (bytes.natural(index)?, names.maybe(index)?);
                let sampled = Sampled::of(MicroJoules(bytes), samples.natural(index)?);
                let by_cpu_time = sampled_by.maybe(index)? == Some(SampledBy::CpuTime.name());
                let (measure, amount) = (Measure::Allocated, bytes);
                let seen = AmountRow {
                    run,
                    window_start,
                    window_ns,
                    thread,
                    path,
                    is_path_allowed,
                    measure,
                    class,
                    by_cpu_time,
                    amount,
                    sampled,
                };
                self.take_seen(&seen, watch);
                Ok(())
            },
        )?;
        self.allowed = allowed;
        Ok(())
    }

    fn take_seen(&mut self, seen: &AmountRow<'_>, watch: &mut impl FnMut(&AmountRow<'_>)) {
        watch(seen);
        self.add((seen.thread, seen.path), seen.class, seen.by_cpu_time, seen.amount, &seen.sampled);
    }

    /// Adds bytes of a class, and what samples divide of them.
    pub(super) fn add(
        &mut self,
        (thread, path): (ThreadIndex, PathIndex),
        class: Option<&str>,
        by_cpu_time: bool,
        bytes: u64,
        of_samples: &Sampled,
    ) {
        let class = class.map(|name| number(&mut self.classes, name));
        let (sum, sampled) = self.sums.entry((thread, path, class, by_cpu_time)).or_default();
        *sum = sum.saturating_add(bytes);
        sampled.plus(of_samples);
    }

    /// The entries on paths that `allows` has.
    pub(super) fn finish(self, allows: impl Fn(PathIndex) -> bool) -> Allocated {
        let mut by_name: Vec<(String, usize)> = self.classes.into_iter().collect();
        by_name.sort_unstable();
        let mut places = vec![0; by_name.len()];
        by_name.iter().enumerate().for_each(|(place, (_, met))| places[*met] = place);
        let mut threads: BTreeMap<ThreadIndex, Sampled> = BTreeMap::new();
        self.sums.iter().for_each(|((thread, ..), (_, sampled))| threads.entry(*thread).or_default().plus(sampled));
        let of_sum = |((thread, path, class, by_cpu_time), (bytes, sampled)): (Key, (u64, Sampled))| {
            let class = class.and_then(|class| places.get(class).copied());
            let Sampled { samples, squares, .. } = sampled;
            AllocatedPath { thread, path, class, bytes, samples, by_cpu_time, squares }
        };
        let mut entries: Vec<AllocatedPath> =
            self.sums.into_iter().filter(|((_, path, ..), _)| allows(*path)).map(of_sum).collect();
        entries.sort_unstable_by_key(|entry| (entry.thread, entry.path, entry.class, entry.by_cpu_time));
        Allocated { classes: by_name.into_iter().map(|(name, _)| name.into()).collect(), entries, threads }
    }
}

/// The number of a class, which is the next one if it was not met before.
fn number(classes: &mut HashMap<String, usize>, name: &str) -> usize {
    let next = classes.len();
    match classes.get(name) {
        Some(known) => *known,
        None => *classes.entry(name.to_owned()).or_insert(next),
    }
}

const COLUMNS: [&dyn Named; 4] =
    [&allocations::CLASS, &allocations::ALLOCATED_BYTES, &allocations::SAMPLES, &allocations::SAMPLED_BY];
