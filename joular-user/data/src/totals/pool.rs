//! Sums samples of threads of one name, which speak for what light windows of these threads are left with.

use std::collections::BTreeMap;

use crate::{
    attribution::inference::{Recorded, Seen, Spent},
    model::units::MicroJoules,
};

/// Methods of a name that are told apart.
const MAX_METHODS: usize = 256;

/// Samples of threads of one name in a process, by method, and what light windows are left with.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub(super) seen: BTreeMap<u32, (u64, MicroJoules)>,
    /// Of light windows.
    light: BTreeMap<u32, (u64, MicroJoules)>,
    pub(super) left: Spent,
    /// Whether these are threads that the JVM has for itself.
    pub(super) is_of_jvm: bool,
}

impl Pool {
    /// Samples that speak for what is left.
    pub(super) fn witnesses(&self) -> Vec<Seen<u32>> {
        list(if self.light.is_empty() { &self.seen } else { &self.light })
    }

    pub(super) fn join(&mut self, other: &Self) {
        add(&mut self.seen, &list(&other.seen));
        add(&mut self.light, &list(&other.light));
    }

    pub(super) fn add(&mut self, rows: &[Recorded<u32>], is_light: bool) {
        let seen = |row: &Recorded<u32>| Seen { path: row.path, samples: row.samples, energy: row.spent.energy };
        let seen: Vec<Seen<u32>> = rows.iter().map(seen).collect();
        add(&mut self.seen, &seen);
        if is_light {
            add(&mut self.light, &seen);
        }
    }
}

fn add(sums: &mut BTreeMap<u32, (u64, MicroJoules)>, seen: &[Seen<u32>]) {
    for seen in seen {
        if sums.len() < MAX_METHODS || sums.contains_key(&seen.path) {
            let sum = sums.entry(seen.path).or_default();
            *sum = (sum.0.saturating_add(seen.samples), sum.1.saturating_add(seen.energy));
        }
    }
}

fn list(sums: &BTreeMap<u32, (u64, MicroJoules)>) -> Vec<Seen<u32>> {
    let seen = |(path, (samples, energy)): (&u32, &(u64, MicroJoules))| Seen {
        path: *path,
        samples: *samples,
        energy: *energy,
    };
    sums.iter().map(seen).collect()
}
