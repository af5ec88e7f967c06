//! Sums up a series of batches: the least, the median, and how far apart they are.

use serde::{Deserialize, Serialize};

/// A series of figures, in their unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many figures there were, at least 1.
    pub count: u32,
    pub least: u64,
    /// The median; of an even number the mean of the middle two, rounded down.
    pub typical: u64,
    /// Width of the middle half: third minus first quartile, by nearest rank.
    pub spread: u64,
}

impl Summary {
    /// `None` of no figures.
    pub fn of(figures: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = figures.into_iter().collect();
        sorted.sort_unstable();
        let at = |index: usize| sorted.get(index).copied();
        let count = sorted.len();
        // Nearest rank: the k-th smallest with k = ⌈q · n⌉.
        let quartile = |quarters: usize| at((quarters * count).div_ceil(4).checked_sub(1)?);
        Some(Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            least: at(0)?,
            typical: at((count - 1) / 2)?.midpoint(at(count / 2)?),
            spread: quartile(3)?.saturating_sub(quartile(1)?),
        })
    }

    /// Whether it can have come from figures.
    pub const fn is_consistent(&self) -> bool {
        self.count > 0 && self.least <= self.typical
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_middle_and_spread_of_known_figures() {
        for (figures, expected) in [
            (vec![7], (1, 7, 7, 0)),
            (vec![9, 4], (2, 4, 6, 5)),
            (vec![30, 10, 20], (3, 10, 20, 20)),
            (vec![8, 1, 2, 3, 4, 5, 6, 7], (8, 1, 4, 4)),
            // One batch that something else disturbed moves neither.
            (vec![100, 101, 102, 100, 1_000_000], (5, 100, 101, 2)),
            (vec![u64::MAX, u64::MAX], (2, u64::MAX, u64::MAX, 0)),
        ] {
            let summary = Summary::of(figures.clone()).unwrap();
            let found = (summary.count, summary.least, summary.typical, summary.spread);
            assert_eq!(found, expected, "{figures:?}");
        }
        assert_eq!(Summary::of([]), None);
    }

    proptest::proptest! {
        #[test]
        fn the_typical_figure_lies_within(figures in proptest::collection::vec(0..u64::MAX, 1..40)) {
            let summary = Summary::of(figures.iter().copied()).unwrap();
            let (least, most) = (*figures.iter().min().unwrap(), *figures.iter().max().unwrap());
            proptest::prop_assert!(summary.is_consistent());
            proptest::prop_assert_eq!(summary.least, least);
            proptest::prop_assert!(summary.typical <= most && summary.spread <= most - least);
        }
    }
}
