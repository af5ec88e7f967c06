//! Says who divides what of a selection: samples of CPU time, and, of what is charged for collectors, sampled objects.

use std::borrow::Cow;

use super::{Catalog, ChargeBy, Fact, Profile, ThreadIndex, ThreadPath};
use crate::{
    model::{measure::Measure, units::MicroJoules},
    sampling::Sampled,
};

/// What is charged for collectors, whatever methods are selected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charged {
    by_process: bool,
    /// By thread; by process if it is charged by what survived: objects tell that of all its threads together.
    wholes: Vec<Sampled>,
}

impl Charged {
    pub(super) fn of(by: ChargeBy, catalog: &Catalog, entries: &[ThreadPath]) -> Self {
        let mut charged = Self { by_process: by == ChargeBy::Survived, wholes: Vec::new() };
        charged.wholes.resize(catalog.threads.len().max(catalog.processes.len()), Sampled::default());
        for entry in entries {
            let pool = charged.pool_of(catalog, entry.thread);
            charged.wholes[pool].plus(&entry.objects());
        }
        charged
    }

    fn pool_of(&self, catalog: &Catalog, thread: ThreadIndex) -> usize {
        if self.by_process { catalog.thread(thread).process.index() } else { thread.index() }
    }
}

/// A part of a measure that samples of one kind divide. What a pool has of it is exact, and samples show which paths of the
/// pool it is of.
pub struct Division<'a> {
    /// Whether pools are processes, and not threads.
    pub by_process: bool,
    /// What samples divide of each pool, whatever methods are selected.
    pub wholes: Cow<'a, [Sampled]>,
    /// What pools have, one pool after the other.
    pub facts: Box<dyn Iterator<Item = (usize, Fact)> + 'a>,
}

impl Profile {
    /// The parts of a measure, each divided by samples of its own.
    pub fn divisions(&self, measure: Measure) -> Vec<Division<'_>> {
        let facts = self.facts(measure);
        let (Measure::Energy, Some(charges)) = (measure, &self.charges) else {
            let facts = Box::new(facts.map(|fact| (fact.thread.index(), fact)));
            return vec![Division { by_process: false, wholes: self.sampled_threads(measure).into(), facts }];
        };
        let own = self.entries.iter().map(|entry| {
            let amount = entry.energy.0.saturating_sub(entry.charged.energy.0);
            (entry.thread.index(), Fact { amount, ..Fact::of_energy(entry) })
        });
        let charged = self.entries.iter().filter(|entry| entry.charged.energy > MicroJoules(0)).map(|entry| {
            let (amount, sampled) = (entry.charged.energy.0, entry.objects());
            (charges.pool_of(&self.catalog, entry.thread), Fact { amount, sampled, ..Fact::of_energy(entry) })
        });
        let mut charged: Vec<_> = charged.collect();
        charged.sort_by_key(|(pool, _)| *pool);
        vec![
            Division { by_process: false, wholes: Cow::Borrowed(&self.sampled), facts: Box::new(own) },
            Division {
                by_process: charges.by_process,
                wholes: Cow::Borrowed(&charges.wholes),
                facts: Box::new(charged.into_iter()),
            },
        ]
    }
}

impl ThreadPath {
    /// What sampled objects divide of it. Where none was sampled, all that it is charged is exact.
    pub fn objects(&self) -> Sampled {
        if self.charged.samples > 0 { self.charged } else { Sampled::default() }
    }
}
