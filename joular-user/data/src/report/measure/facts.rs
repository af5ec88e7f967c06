//! Yields what a selection has of each measure.

use super::{Measure, Way};
use crate::{
    model::target_text::TargetText,
    report::profile::{AllocatedPath, MovedPath, PathIndex, Profile, ThreadIndex, ThreadPath},
    sampling::Sampled,
};

/// What a thread has of a measure on a call path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// Place in [`crate::report::profile::Allocated::classes`], or one of the two behind them: without a sample, and of an
    /// unknown class. `None` if the measure has no classes.
    pub class: Option<usize>,
    /// In the measure's unit.
    pub amount: u64,
    /// What of it samples divide; the rest is exact. [`crate::sampling`] has energy in mind, but its error depends on no
    /// unit, so the measure's unit takes the place of microjoules.
    pub sampled: Sampled,
}

impl Fact {
    fn of(thread: ThreadIndex, path: PathIndex, amount: u64, sampled: Sampled) -> Self {
        Self { thread, path, class: None, amount, sampled }
    }

    pub fn of_energy(entry: &ThreadPath) -> Self {
        Self::of(entry.thread, entry.path, entry.energy.0, entry.sampled())
    }
}

impl Profile {
    /// Bytes and counts that the selection has.
    pub fn measures_beside_energy(&self) -> impl Iterator<Item = Measure> + '_ {
        Measure::all().filter(|measure| *measure != Measure::Energy && self.has(*measure))
    }

    /// Bytes that the selection has, each once: what samples of their own divide.
    pub fn measures_of_bytes(&self) -> impl Iterator<Item = Measure> + '_ {
        let moved = Way::APART.into_iter().map(Measure::Moved);
        [Measure::Allocated].into_iter().chain(moved).filter(|measure| self.has(*measure))
    }

    /// The name of a fact's class.
    pub fn class_of(&self, fact: &Fact) -> Option<&TargetText> {
        fact.class.and_then(|class| self.allocated.classes.get(class))
    }

    pub fn has(&self, measure: Measure) -> bool {
        match measure {
            Measure::Energy => true,
            Measure::Allocated => !self.allocated.is_empty(),
            Measure::Moved(way) => way.of(&self.moved.bytes()) > 0,
            Measure::Counted(counter) => self.counted.counters.contains(&counter),
        }
    }

    /// What threads have of a measure, one thread after the other.
    pub fn facts(&self, measure: Measure) -> Box<dyn Iterator<Item = Fact> + '_> {
        match measure {
            Measure::Energy => Box::new(self.entries.iter().map(Fact::of_energy)),
            Measure::Allocated => {
                let classes = self.allocated.classes.len();
                Box::new(self.allocated.entries.iter().map(move |entry| allocated(entry, classes)))
            }
            Measure::Moved(way) => {
                let entries = self.moved.entries.iter();
                Box::new(entries.map(move |entry| moved(entry, way)).filter(|fact| fact.amount > 0))
            }
            Measure::Counted(counter) => {
                let at = self.counted.place_of(counter);
                Box::new(self.entries.iter().filter_map(move |entry| {
                    let (amount, sampled) = self.counted.sampled(entry, at?)?;
                    Some(Fact::of(entry.thread, entry.path, amount, sampled))
                }))
            }
        }
    }

    /// What samples divide of each thread, whatever methods are selected.
    pub fn sampled_threads(&self, measure: Measure) -> Vec<Sampled> {
        if measure == Measure::Energy {
            return self.sampled.clone();
        }
        let mut threads = vec![Sampled::default(); self.catalog.threads.len()];
        let mut add = |thread: ThreadIndex, sampled: &Sampled| {
            if let Some(sum) = threads.get_mut(thread.index()) {
                sum.plus(sampled);
            }
        };
        match measure {
            Measure::Energy => {}
            Measure::Allocated => self.allocated.threads.iter().for_each(|(thread, whole)| add(*thread, whole)),
            Measure::Moved(way) => {
                for (thread, wholes) in &self.moved.threads {
                    way.kinds().iter().for_each(|kind| add(*thread, &wholes[*kind as usize]));
                }
            }
            Measure::Counted(counter) => {
                if let Some(at) = self.counted.place_of(counter) {
                    self.counted.sampled_threads(at).for_each(|(thread, part)| add(thread, &part));
                }
            }
        }
        threads
    }
}

fn allocated(entry: &AllocatedPath, classes: usize) -> Fact {
    let without_class = classes + usize::from(entry.samples > 0);
    Fact {
        class: Some(entry.class.unwrap_or(without_class)),
        ..Fact::of(entry.thread, entry.path, entry.bytes, entry.sampled())
    }
}

fn moved(entry: &MovedPath, way: Way) -> Fact {
    Fact::of(entry.thread, entry.path, way.of(&entry.bytes), entry.sampled_of(way))
}
