//! Divides what is known exactly of a thread among the places where samples saw it.

use std::collections::BTreeMap;

use super::split::apportion;

/// What samples of one place stand for, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub stands_for: u64,
    pub samples: u64,
}

impl Seen {
    pub(super) fn add(&mut self, stands_for: u64, samples: u64) {
        self.stands_for = self.stands_for.saturating_add(stands_for);
        self.samples = self.samples.saturating_add(samples);
    }
}

/// Parts of `bytes` by place, with the place's samples, in the order of places. They sum to the whole. Without samples
/// all of it was in the place `unseen`.
pub(super) fn divided<P: Ord>(
    bytes: u64,
    places: Option<BTreeMap<P, Seen>>,
    unseen: P,
) -> impl Iterator<Item = (P, u64, u64)> {
    let places = places.unwrap_or_else(|| BTreeMap::from([(unseen, Seen { stands_for: 1, samples: 0 })]));
    let weights: Vec<u64> = places.values().map(|seen| seen.stands_for).collect();
    let parts = apportion(bytes, &weights);
    places
        .into_iter()
        .zip(parts)
        .map(|((place, seen), bytes)| (place, bytes, seen.samples))
        .filter(|(_, bytes, _)| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_proportion_and_sum_to_the_whole() {
        let places = |of: &[(&'static str, u64, u64)]| {
            Some(
                of.iter()
                    .map(|(place, stands_for, samples)| (*place, Seen { stands_for: *stands_for, samples: *samples }))
                    .collect(),
            )
        };
        for (bytes, seen, expected) in [
            (10, places(&[("a", 3, 1), ("b", 1, 1)]), vec![("a", 8, 1), ("b", 2, 1)]),
            (1, places(&[("a", 1, 1), ("b", 3, 2)]), vec![("b", 1, 2)]),
            (7, None, vec![("unseen", 7, 0)]),
            (0, None, vec![]),
        ] {
            assert_eq!(divided(bytes, seen, "unseen").collect::<Vec<_>>(), expected, "{bytes}");
        }
    }
}
