//! Sums rows by thread and path.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{Amounts, ThreadPath, row::EnergyRow};

/// Sums by thread and path.
#[derive(Debug, Default)]
pub(super) struct EnergySums {
    /// In the order in which they were first seen.
    sums: Vec<ThreadPath>,
    /// Finds a sum in `sums`, by the hash of its key.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl EnergySums {
    pub(super) fn add(&mut self, row: &EnergyRow) {
        self.add_entry(ThreadPath::of(row));
    }

    pub(super) fn add_entry(&mut self, row: ThreadPath) {
        let (sums, hasher) = (&mut self.sums, &self.hasher);
        let hash = hasher.hash_one(key(&row));
        if let Some(place) = self.places.find(hash, |place| key(&sums[*place as usize]) == key(&row)) {
            sums[*place as usize].plus(&row);
            return;
        }
        // 2^32 of them would need 200 GB before this saturates.
        let place = u32::try_from(sums.len()).unwrap_or(u32::MAX);
        sums.push(row);
        self.places.insert_unique(hash, place, |place| hasher.hash_one(key(&sums[*place as usize])));
    }

    /// Sums in the order in which they were first seen.
    pub(super) fn entries(&self) -> &[ThreadPath] {
        &self.sums
    }

    /// Sums in the order of thread and path.
    pub(super) fn into_entries(mut self) -> Vec<ThreadPath> {
        self.sums.sort_unstable_by_key(key);
        self.sums
    }
}

/// Compared at once.
fn key(entry: &ThreadPath) -> u64 {
    u64::from(entry.thread.0) << 32 | u64::from(entry.path.0)
}

impl ThreadPath {
    pub(super) fn of(row: &EnergyRow) -> Self {
        let Amounts { energy, cpu_ns, samples, inferred, by_bytes, .. } = row.amounts();
        let charged = row.charged();
        let squares = if charged.is_some() { 0.0 } else { row.squares() };
        let (thread, path, charged) = (row.thread, row.path, charged.unwrap_or_default());
        Self { thread, path, energy, cpu_ns, samples, inferred, squares, by_bytes, charged }
    }

    pub const fn amounts(&self) -> Amounts {
        let Self { energy, cpu_ns, samples, inferred, by_bytes, .. } = *self;
        Amounts { energy, cpu_ns, samples, inferred, by_bytes, beside: 0 }
    }

    /// Adds what another has, of the same thread and path or not.
    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.inferred = self.inferred.saturating_add(other.inferred);
        self.squares += other.squares;
        self.by_bytes = self.by_bytes.saturating_add(other.by_bytes);
        self.charged.plus(&other.charged);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        model::units::{MicroJoules, UnixMicros},
        report::profile::{DividedBy, PathIndex, ThreadIndex},
    };

    #[test]
    fn rows_are_summed_by_thread_and_path_and_put_in_their_order() {
        let mut sums = EnergySums::default();
        let mut expected: BTreeMap<(u32, u32), (u64, u64, u64)> = BTreeMap::new();
        for number in 0..300_000_u32 {
            // Steps that have no common divisor with the counts meet all pairs in no order.
            let (thread, path) = (number.wrapping_mul(7) % 11, number.wrapping_mul(7_919) % 30_011);
            let (energy, cpu_ns, samples) = (u64::from(number), u64::from(number % 5), u64::from(number % 3));
            sums.add(&EnergyRow {
                run: 0,
                window_start: UnixMicros(i64::from(number)),
                window_ns: 1,
                thread: ThreadIndex(thread),
                path: PathIndex(path),
                energy: MicroJoules(energy),
                cpu_ns,
                samples,
                inferred: None,
                pooled: None,
                divided_by: DividedBy::CpuTime,
            });
            let sum = expected.entry((thread, path)).or_default();
            *sum = (sum.0 + energy, sum.1 + cpu_ns, sum.2 + samples);
        }
        let entries = sums.into_entries();
        let found: Vec<_> = entries
            .iter()
            .map(|entry| ((entry.thread.0, entry.path.0), (entry.energy.0, entry.cpu_ns, entry.samples)))
            .collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}
