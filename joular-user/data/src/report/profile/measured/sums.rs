//! Sums amounts of all measures by thread, path and class.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use indexmap::IndexSet;

use super::{Fact, Measured, OfMeasure, Part};
use crate::{
    attribution::{allocated::SampledBy, inference::apportion},
    model::{generated, measure::Measure},
    report::profile::{PathIndex, ThreadIndex},
    sampling::Sampled,
};

/// Facts in the making.
#[derive(Debug, Default)]
pub(in crate::report::profile) struct FactSums {
    /// In the order in which they were met.
    classes: IndexSet<String>,
    sums: HashMap<Key, Sum, RandomState>,
    /// What was recorded, even if it came to nothing.
    recorded: BTreeSet<Measure>,
    has_exact_names: bool,
}

/// Thread, path, measure, number of the class, and what shows where bytes were allocated.
type Key = (ThreadIndex, PathIndex, Measure, Option<usize>, SampledBy);

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    amount: u64,
    sampled: Sampled,
}

impl FactSums {
    pub(in crate::report::profile) fn new(has_exact_names: bool) -> Self {
        Self { has_exact_names, ..Self::default() }
    }

    /// Notes that measures were recorded.
    pub(in crate::report::profile) fn record(&mut self, measures: impl Iterator<Item = Measure>) {
        self.recorded.extend(measures);
    }

    pub(in crate::report::profile) fn add(&mut self, (thread, path): (ThreadIndex, PathIndex), part: &Part<'_>) {
        if part.amount == 0 {
            return;
        }
        let name = part.class.map(|name| if self.has_exact_names { name.into() } else { generated::family(name) });
        let class = name.map(|name| match self.classes.get_index_of(&*name) {
            Some(known) => known,
            None => self.classes.insert_full(name.into_owned()).0,
        });
        let sum = self.sums.entry((thread, path, part.measure, class, part.sampled_by)).or_default();
        sum.amount = sum.amount.saturating_add(part.amount);
        sum.sampled.plus(&part.sampled);
    }

    /// The facts of paths that are allowed.
    pub(in crate::report::profile) fn finish(self, is_allowed: &[bool]) -> Measured {
        let mut by_name: Vec<(usize, String)> = self.classes.into_iter().enumerate().collect();
        by_name.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        let mut places = vec![0; by_name.len()];
        by_name.iter().enumerate().for_each(|(place, (met, _))| places[*met] = place);
        let place_of = |class: Option<usize>| class.and_then(|class| places.get(class).copied());
        let of_sum = |((thread, path, measure, class, by), sum)| ((thread, path, measure, place_of(class), by), sum);
        let mut sums: Vec<(Key, Sum)> = self.sums.into_iter().map(of_sum).collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        share_samples(&mut sums);
        let mut of: BTreeMap<Measure, OfMeasure> =
            self.recorded.into_iter().map(|measure| (measure, OfMeasure::default())).collect();
        for (key, sum) in &sums {
            let is_allowed = is_allowed.get(key.1.index()).copied().unwrap_or(false);
            for measure in Measure::all().filter(|measure| measure.includes(key.2)) {
                let of_measure = of.entry(measure).or_default();
                of_measure.threads.entry(key.0).or_default().plus(&sum.sampled);
                if is_allowed {
                    of_measure.add(fact(key, sum, by_name.len()));
                }
            }
        }
        of.retain(|measure, of| !of.facts.is_empty() || matches!(measure, Measure::Counted(_)));
        Measured { classes: by_name.into_iter().map(|(_, name)| name.into()).collect(), of }
    }
}

impl OfMeasure {
    /// Adds a fact, which comes in the order of facts. Several measures may make one: bytes to this host and to others.
    fn add(&mut self, fact: Fact) {
        let place = |fact: &Fact| (fact.thread, fact.path, fact.class, fact.sampled_by);
        match self.facts.last_mut().filter(|last| place(last) == place(&fact)) {
            Some(last) => {
                last.amount = last.amount.saturating_add(fact.amount);
                last.sampled.plus(&fact.sampled);
            }
            None => self.facts.push(fact),
        }
    }
}

fn fact((thread, path, measure, class, sampled_by): &Key, sum: &Sum, classes: usize) -> Fact {
    let Sum { amount, sampled } = *sum;
    let without_class = classes + usize::from(sampled.samples > 0);
    let class = (*measure == Measure::Allocated).then(|| class.unwrap_or(without_class));
    Fact { thread: *thread, path: *path, class, sampled_by: *sampled_by, amount, sampled }
}

/// Shares the samples of bytes that a thread moved on a path among the kinds of bytes. In a window a kind with few bytes has
/// none of them.
fn share_samples(sums: &mut [(Key, Sum)]) {
    let is_moved = |key: &Key| matches!(key.2, Measure::Moved(_));
    let place = |key: &Key| (key.0, key.1, is_moved(key));
    for kinds in sums.chunk_by_mut(|(a, _), (b, _)| place(a) == place(b)) {
        if !kinds.first().is_some_and(|(key, _)| is_moved(key)) {
            continue;
        }
        let bytes: Vec<u64> = kinds.iter().map(|(_, sum)| sum.amount).collect();
        let samples = kinds.iter().fold(0_u64, |all, (_, sum)| all.saturating_add(sum.sampled.samples));
        for ((_, sum), part) in kinds.iter_mut().zip(apportion(samples, &bytes)) {
            sum.sampled.samples = part;
        }
    }
}
