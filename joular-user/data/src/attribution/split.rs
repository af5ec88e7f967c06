//! Divides integers without losing a unit.
//!
//! It uses largest remainder (Hamilton's method): everyone gets the floor of the exact share, and
//! the units left over go to the largest fractions, ties to the earlier claimant. The parts always
//! sum to the whole.

/// Divides `total` in proportion to `weights`. The result sums to `total`, unless every weight is
/// 0: then nobody has a claim, and all parts are 0.
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let product = u128::from(total) * u128::from(*weight);
        // product / sum <= total, which is a u64.
        parts.push(u64::try_from(product / sum).unwrap_or(total));
        remainders.push((std::cmp::Reverse(product % sum), index));
    }
    let given: u64 = parts.iter().sum();
    let left = usize::try_from(total - given).unwrap_or(usize::MAX);
    if left > 0 {
        remainders.sort_unstable();
        for (_, index) in remainders.into_iter().take(left) {
            parts[index] += 1;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn left_over_units_go_to_the_largest_fractions() {
        for (total, weights, expected) in [
            (10, vec![1, 1, 1], vec![4, 3, 3]),
            (100, vec![1, 2, 3], vec![17, 33, 50]),
            (1, vec![0, 1, 0], vec![0, 1, 0]),
            (7, vec![0, 0], vec![0, 0]),
            (0, vec![3, 4], vec![0, 0]),
            (u64::MAX, vec![u64::MAX, u64::MAX], vec![u64::MAX / 2 + 1, u64::MAX / 2]),
            (5, vec![], vec![]),
        ] {
            assert_eq!(apportion(total, &weights), expected, "{total} by {weights:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_stay_within_one_unit(total: u64, weights in prop::collection::vec(any::<u64>(), 1..50)) {
            let parts = apportion(total, &weights);
            let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
            prop_assume!(sum > 0);
            prop_assert_eq!(parts.iter().map(|p| u128::from(*p)).sum::<u128>(), u128::from(total));
            for (part, weight) in parts.iter().zip(&weights) {
                let floor = u128::from(total) * u128::from(*weight) / sum;
                prop_assert!(u128::from(*part) == floor || u128::from(*part) == floor + 1);
            }
        }
    }
}
