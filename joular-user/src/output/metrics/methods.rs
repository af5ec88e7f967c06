//! Chooses which methods of a process have a series of their own.
//!
//! A counter must never go back, so a method that has a series keeps it, and what a method used before
//! it had one stays in the series of the rest. The number of series is bounded: `top` in the process's
//! first minute, and as many again after one minute, ten minutes and an hour. So methods of the start
//! do not take all places.

use std::collections::BTreeMap;

use joular_data::model::units::MicroJoules;

/// Ages of a process from which on more of its methods may have a series.
const MORE_FROM_NS: [u64; 3] = [60_000_000_000, 600_000_000_000, 3_600_000_000_000];
/// Methods whose energy is kept to choose among, as a multiple of `top`.
const CANDIDATES: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct Methods {
    /// Those with a series, by the value of their label.
    series: BTreeMap<String, MicroJoules>,
    /// Energy of those without one. It serves to choose; sums are not made from it.
    candidates: BTreeMap<String, MicroJoules>,
    pub other: MicroJoules,
}

impl Methods {
    pub const fn series(&self) -> &BTreeMap<String, MicroJoules> {
        &self.series
    }

    /// Adds what methods used in a window. `room` is how many more series there may be at all.
    pub fn window(&mut self, used: &BTreeMap<String, MicroJoules>, top: usize, age_ns: u64, room: usize) {
        for (name, energy) in used.iter().filter(|(name, _)| !self.series.contains_key(*name)) {
            let sum = self.candidates.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*energy);
        }
        self.admit(top, age_ns, room);
        for (name, energy) in used {
            let sum = self.series.get_mut(name).unwrap_or(&mut self.other);
            *sum = sum.saturating_add(*energy);
        }
    }

    fn admit(&mut self, top: usize, age_ns: u64, room: usize) {
        let times = 1 + MORE_FROM_NS.iter().filter(|from| age_ns >= **from).count();
        let free = top.saturating_mul(times).saturating_sub(self.series.len()).min(room);
        if free == 0 && self.candidates.len() <= CANDIDATES * top {
            return;
        }
        let mut ranked: Vec<(String, MicroJoules)> = std::mem::take(&mut self.candidates).into_iter().collect();
        ranked.sort_by_key(|(_, energy)| std::cmp::Reverse(*energy));
        let mut ranked = ranked.into_iter();
        self.series.extend(ranked.by_ref().take(free).map(|(name, _)| (name, MicroJoules(0))));
        self.candidates.extend(ranked.take(CANDIDATES * top / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(methods: &[(&str, u64)]) -> BTreeMap<String, MicroJoules> {
        methods.iter().map(|(name, energy)| ((*name).to_owned(), MicroJoules(*energy))).collect()
    }

    #[test]
    fn the_largest_get_a_series_and_keep_it() {
        let mut methods = Methods::default();
        methods.window(&used(&[("a", 5), ("b", 9), ("c", 1)]), 2, 0, 100);
        methods.window(&used(&[("c", 1000)]), 2, 1, 100);
        assert_eq!(methods.series, used(&[("a", 5), ("b", 9)]));
        assert_eq!(methods.other, MicroJoules(1001));
    }

    #[test]
    fn after_a_minute_more_get_one_which_starts_with_the_window() {
        let mut methods = Methods::default();
        methods.window(&used(&[("a", 5), ("b", 4)]), 1, 0, 100);
        methods.window(&used(&[("b", 7)]), 1, MORE_FROM_NS[0], 100);
        assert_eq!(methods.series, used(&[("a", 5), ("b", 7)]));
        assert_eq!(methods.other, MicroJoules(4));
    }

    #[test]
    fn without_room_all_is_in_the_rest() {
        let mut methods = Methods::default();
        methods.window(&used(&[("a", 5)]), 3, 0, 0);
        assert!(methods.series.is_empty());
        assert_eq!(methods.other, MicroJoules(5));
    }

    proptest::proptest! {
        #[test]
        fn counters_never_go_back_and_sum_to_all(windows in proptest::collection::vec(
            proptest::collection::btree_map("[a-z]", 0_u64..100, 0..12), 0..40), top in 1_usize..4) {
            let (mut methods, mut all) = (Methods::default(), 0);
            for (index, window) in windows.into_iter().enumerate() {
                let before = methods.clone();
                let window: BTreeMap<String, MicroJoules> =
                    window.into_iter().map(|(name, energy)| (name, MicroJoules(energy))).collect();
                all += window.values().map(|energy| energy.0).sum::<u64>();
                methods.window(&window, top, index as u64 * 200_000_000_000, 1000);
                let is_kept = |(name, energy): (&String, &MicroJoules)| methods.series.get(name) >= Some(energy);
                proptest::prop_assert!(before.series.iter().all(is_kept) && methods.other >= before.other);
                proptest::prop_assert!(methods.series.len() <= 4 * top && methods.candidates.len() <= CANDIDATES * top);
                let sum = methods.series.values().copied().sum::<MicroJoules>().0 + methods.other.0;
                proptest::prop_assert_eq!(sum, all);
            }
        }
    }
}
