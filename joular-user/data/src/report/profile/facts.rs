//! Yields what a profile has of each measure, energy and all others alike.

use super::{Fact, Profile, ThreadPath};
use crate::{
    attribution::allocated::SampledBy,
    model::{measure::Measure, target_text::TargetText, way::Way},
    sampling::Sampled,
};

impl Fact {
    pub fn of_energy(entry: &ThreadPath) -> Self {
        let ThreadPath { thread, path, energy, .. } = *entry;
        Self { thread, path, class: None, sampled_by: SampledBy::default(), amount: energy.0, sampled: entry.sampled() }
    }
}

impl Profile {
    /// Bytes and counts that the selection has.
    pub fn measures_beside_energy(&self) -> impl Iterator<Item = Measure> + '_ {
        Measure::all().filter(|measure| *measure != Measure::Energy && self.has(*measure))
    }

    /// Bytes and counts that the selection has, each once.
    pub fn measures_apart(&self) -> impl Iterator<Item = Measure> + '_ {
        self.measures_of_bytes().chain(self.measured.counters().map(Measure::Counted))
    }

    /// Bytes that the selection has, each once: what samples of their own divide.
    pub fn measures_of_bytes(&self) -> impl Iterator<Item = Measure> + '_ {
        let moved = Way::APART.into_iter().map(Measure::Moved);
        [Measure::Allocated].into_iter().chain(moved).filter(|measure| self.has(*measure))
    }

    /// The name of a fact's class.
    pub fn class_of(&self, fact: &Fact) -> Option<&TargetText> {
        self.measured.class_of(fact)
    }

    pub fn has(&self, measure: Measure) -> bool {
        measure == Measure::Energy || self.measured.has(measure)
    }

    /// What threads have of a measure, one thread after the other.
    pub fn facts(&self, measure: Measure) -> Box<dyn Iterator<Item = Fact> + '_> {
        match measure {
            Measure::Energy => Box::new(self.entries.iter().map(Fact::of_energy)),
            measure => Box::new(self.measured.facts(measure).iter().copied()),
        }
    }

    /// What samples divide of each thread, whatever methods are selected.
    pub fn sampled_threads(&self, measure: Measure) -> Vec<Sampled> {
        if measure == Measure::Energy {
            return self.sampled.clone();
        }
        let mut threads = vec![Sampled::default(); self.catalog.threads.len()];
        for (thread, sampled) in self.measured.sampled_threads(measure) {
            if let Some(of_thread) = threads.get_mut(thread.index()) {
                *of_thread = sampled;
            }
        }
        threads
    }
}
