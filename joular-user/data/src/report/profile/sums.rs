//! Sums rows by thread and path.
//!
//! The sums are larger than a processor's caches, and rows come window by window. A look-up of each
//! row's sum would wait for memory twice per row. So rows are appended behind the sums as they
//! come, and now and then all are sorted and equal ones merged.

use super::{ThreadPath, reader::Row};

/// Rows that wait at least before they are merged: few enough to stay small, and enough to be worth it.
const LEAST_WAITING: usize = 1 << 18;

/// Sums by thread and path, kept small while rows arrive.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Merged ones in the order of thread and path; behind them such as were not merged yet.
    entries: Vec<ThreadPath>,
    merged: usize,
}

impl Sums {
    pub(super) fn add(&mut self, row: &Row) {
        let waiting = self.entries.len() - self.merged;
        // As many as there are sums, so that merging costs each row the same however many there are.
        if waiting >= LEAST_WAITING.max(self.merged) {
            self.merge();
        }
        self.entries.push(ThreadPath::of(row));
    }

    /// Sums in the order of thread and path.
    pub(super) fn into_entries(mut self) -> Vec<ThreadPath> {
        self.merge();
        self.entries
    }

    /// Rows keep their order, on which sums of floating-point numbers depend.
    fn merge(&mut self) {
        self.entries.sort_by_key(key);
        self.entries.dedup_by(|later, sum| {
            let is_same = key(later) == key(sum);
            if is_same {
                sum.plus(later);
            }
            is_same
        });
        self.merged = self.entries.len();
    }
}

/// Compared at once.
fn key(entry: &ThreadPath) -> u64 {
    u64::from(entry.thread.0) << 32 | u64::from(entry.path.0)
}

impl ThreadPath {
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn of(row: &Row) -> Self {
        let Row { thread, path, energy, cpu_ns, samples, .. } = *row;
        let squares = if samples > 0 { (energy.0 as f64).powi(2) / samples as f64 } else { 0.0 };
        Self { thread, path, energy, cpu_ns, samples, squares }
    }

    /// Adds what another has, of the same thread and path or not.
    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.squares += other.squares;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        model::units::{MicroJoules, UnixMicros},
        report::profile::{PathIndex, ThreadIndex},
    };

    #[test]
    fn rows_are_summed_however_often_they_are_merged_on_the_way() {
        let mut sums = Sums::default();
        let mut expected: BTreeMap<(u32, u32), (u64, u64, u64)> = BTreeMap::new();
        for number in 0..u32::try_from(LEAST_WAITING).unwrap() * 5 / 4 {
            // Steps that have no common divisor with the counts meet all pairs in no order.
            let (thread, path) = (number.wrapping_mul(7) % 11, number.wrapping_mul(7_919) % 30_011);
            let (energy, cpu_ns, samples) = (u64::from(number), u64::from(number % 5), u64::from(number % 3));
            sums.add(&Row {
                run: 0,
                window_start: UnixMicros(i64::from(number)),
                window_ns: 1,
                thread: ThreadIndex(thread),
                path: PathIndex(path),
                energy: MicroJoules(energy),
                cpu_ns,
                samples,
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
