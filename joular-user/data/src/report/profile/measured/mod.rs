//! Holds what a selection has of bytes and counts, all measures alike: a [`Fact`] for each thread, call path and class.
//!
//! A thread's amounts are exact, and samples show which of its paths they are of, as with energy. So the error of
//! sampling is the same, see [`crate::sampling`].
//!
//! [`source`] reads tables whose rows have a call path, [`counted`] divides counts, which have none, and [`sums`] sums
//! both. A new measure is a [`source::Source`], or a variant of [`Measure`] if a table has it already.

pub(super) mod counted;
pub(super) mod source;
pub(super) mod sums;

use std::collections::{BTreeMap, BTreeSet};

use self::{counted::Counting, sums::FactSums};
use super::{Catalog, EnergyRow, Filter, PathIndex, ThreadIndex, ThreadPath, in_time::Summed, reader::DataSet};
use crate::{
    attribution::allocated::SampledBy,
    dataset::{
        error::Result,
        tables::{Allocations, Amounts, Io},
    },
    model::{
        counter::Counter,
        measure::{Measure, Unit},
        target_text::TargetText,
        units::UnixMicros,
    },
    sampling::Sampled,
};

/// What a thread has of a measure on a call path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// Place in [`Measured::classes`], or one of the two behind them: without a sample, and of an unknown class. `None` if
    /// the measure has no classes.
    pub class: Option<usize>,
    /// What says where bytes were allocated.
    pub sampled_by: SampledBy,
    /// In the measure's unit.
    pub amount: u64,
    /// What of it samples divide; the rest is exact. [`crate::sampling`] has energy in mind, but its error depends on no
    /// unit, so the measure's unit takes the place of microjoules.
    pub sampled: Sampled,
}

/// What a row of a table has of a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    pub measure: Measure,
    /// Of allocated bytes, if a sample says which.
    pub class: Option<&'a str>,
    /// As [`Fact::sampled_by`].
    pub sampled_by: SampledBy,
    pub amount: u64,
    /// As [`Fact::sampled`].
    pub sampled: Sampled,
}

/// What a thread has of a measure on a path in a window; in a rollup, all threads of a category of a process.
#[derive(Clone, Copy, Debug)]
pub struct AmountRow<'a> {
    /// Place in [`Catalog::runs`].
    pub run: usize,
    pub window_start: UnixMicros,
    pub window_ns: u64,
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// Whether the filter allows the path.
    pub is_path_allowed: bool,
    pub part: Part<'a>,
}

/// Who looks at rows while they are summed.
pub trait Watch {
    /// Whether [`Self::in_time`] is to be called. It can cost another pass over the rows.
    fn wants_time(&self) -> bool {
        false
    }

    /// Called with each row of energy, as [`DataSet::scan_in_time`] has them.
    fn in_time(&mut self, _: &Catalog, _: &EnergyRow) {}

    /// Called with each amount of bytes and counts. Those of a window need not stand together.
    fn amount(&mut self, _: &Catalog, _: &AmountRow<'_>) {}
}

/// Nobody.
impl Watch for () {}

/// Bytes and counts of a selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Of allocated bytes, by name.
    pub classes: Vec<TargetText>,
    of: BTreeMap<Measure, OfMeasure>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OfMeasure {
    /// By thread, then path, then class.
    facts: Vec<Fact>,
    /// What samples divide of each thread, without the filter of methods.
    threads: BTreeMap<ThreadIndex, Sampled>,
}

impl Measured {
    /// Whether there is any of a measure, or it was counted and came to nothing.
    pub fn has(&self, measure: Measure) -> bool {
        self.of.contains_key(&measure)
    }

    /// By thread, then path, then class.
    pub fn facts(&self, measure: Measure) -> &[Fact] {
        self.of.get(&measure).map_or(&[], |of| &of.facts)
    }

    /// What samples divide of each thread, whatever methods are selected.
    pub(super) fn sampled_threads(&self, measure: Measure) -> impl Iterator<Item = (ThreadIndex, Sampled)> + '_ {
        self.of.get(&measure).into_iter().flat_map(|of| of.threads.iter().map(|(thread, sampled)| (*thread, *sampled)))
    }

    /// Allocated bytes of which such samples say where.
    pub fn allocated_by(&self, by: SampledBy) -> u64 {
        let facts = self.facts(Measure::Allocated).iter().filter(|fact| fact.sampled_by == by);
        facts.fold(0, |sum, fact| sum.saturating_add(fact.amount))
    }

    /// Sum of all facts.
    pub fn amount(&self, measure: Measure) -> u64 {
        self.facts(measure).iter().fold(0, |sum, fact| sum.saturating_add(fact.amount))
    }

    /// Samples of all facts.
    pub fn samples(&self, measure: Measure) -> u64 {
        self.facts(measure).iter().fold(0, |sum, fact| sum.saturating_add(fact.sampled.samples))
    }

    /// Counters that were recorded.
    pub fn counters(&self) -> impl Iterator<Item = Counter> + '_ {
        self.of.keys().filter_map(|measure| match measure {
            Measure::Counted(counter) => Some(*counter),
            _ => None,
        })
    }

    /// What an entry of the profile has of a measure.
    pub fn of_entry(&self, measure: Measure, entry: &ThreadPath) -> u64 {
        let (facts, place) = (self.facts(measure), (entry.thread, entry.path));
        let first = facts.partition_point(|fact| (fact.thread, fact.path) < place);
        let of_entry = facts[first..].iter().take_while(|fact| (fact.thread, fact.path) == place);
        of_entry.fold(0, |sum, fact| sum.saturating_add(fact.amount))
    }

    /// The name of a fact's class.
    pub fn class_of(&self, fact: &Fact) -> Option<&TargetText> {
        fact.class.and_then(|class| self.classes.get(class))
    }
}

impl DataSet {
    /// Measures of bytes of which the runs have any amount, near the time that `filter` allows. Only their own tables are
    /// read, so it costs little.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn measures_of_bytes(&self, filter: &Filter) -> Result<BTreeSet<Measure>> {
        let mut found = BTreeSet::new();
        source::measures::<Allocations>(self, filter, &mut found)?;
        source::measures::<Io>(self, filter, &mut found)?;
        source::measures::<Amounts>(self, filter, &mut found)?;
        let has = |measure: &Measure| found.iter().any(|part| measure.includes(*part));
        Ok(Measure::all().filter(|measure| measure.unit() == Unit::Bytes).filter(has).collect())
    }

    /// Sums bytes and counts of the windows, processes, threads and paths that `filter` allows. `summed` is of the same
    /// filter.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn measured(&mut self, filter: &Filter, summed: &Summed, watch: &mut impl Watch) -> Result<Measured> {
        let is_allowed = filter.allowed_paths(&self.catalog);
        let mut sums = FactSums::new(filter.exact_names);
        let mut counting = Counting::open(self, filter)?;
        sums.record(counting.counters().map(Measure::Counted));
        let mut take = |watch: &mut dyn FnMut(&AmountRow<'_>), row: &AmountRow<'_>| {
            watch(row);
            sums.add((row.thread, row.path), &row.part);
        };
        if watch.wants_time() || counting.counters().next().is_some() {
            self.scan_in_time(filter, summed, &mut |catalog, row| {
                watch.in_time(catalog, row);
                counting.take(row, |row, part| {
                    take(&mut |row| watch.amount(catalog, row), &of_row(row, &is_allowed, part));
                });
            })?;
            let catalog = &self.catalog;
            counting.end_window(|row, part| {
                take(&mut |row| watch.amount(catalog, row), &of_row(row, &is_allowed, part));
            });
        }
        let mut each = |catalog: &Catalog, row: &AmountRow<'_>| take(&mut |row| watch.amount(catalog, row), row);
        source::each::<Allocations>(self, filter, &is_allowed, &mut each)?;
        source::each::<Io>(self, filter, &is_allowed, &mut each)?;
        source::each::<Amounts>(self, filter, &is_allowed, &mut each)?;
        Ok(sums.finish(&is_allowed))
    }
}

fn of_row<'a>(row: &EnergyRow, is_allowed: &[bool], part: Part<'a>) -> AmountRow<'a> {
    let EnergyRow { run, window_start, window_ns, thread, path, .. } = *row;
    let is_path_allowed = is_allowed.get(path.index()).copied().unwrap_or(false);
    AmountRow { run, window_start, window_ns, thread, path, is_path_allowed, part }
}
