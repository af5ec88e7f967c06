//! Computes the few statistics that tests and benchmark need.

/// Standard deviations by which a normally distributed figure is off in less than one of a hundred
/// thousand runs. Tests of random samples take this bound: there are dozens of them in a run of all
/// tests, and none is to fail by chance.
pub const RARE_SIGMAS: f64 = 4.5;

/// What χ² exceeds in one of a hundred thousand runs, by its degrees of freedom: the approximation of
/// Wilson and Hilferty (1931), which is at most 11 % too large (at one degree) and 1 % from 20 on.
pub fn rare_chi_square(degrees: f64) -> f64 {
    /// Quantile of the normal distribution for 1 - 10⁻⁵.
    const NORMAL: f64 = 4.2649;
    let variance = 2.0 / (9.0 * degrees);
    degrees * (1.0 - variance + NORMAL * variance.sqrt()).powi(3)
}

/// NaN for nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Middle value; mean of the two middle ones. NaN for nothing.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A confidence interval of at least 95 % for the median, by order statistics:
/// no assumption on the distribution. How many of n values lie below the true
/// median is binomial (n, ½); the interval leaves at most 2.5 % on either side.
/// None below six values, where no interval reaches 95 %.
pub fn median_interval_95(values: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    let n = sorted.len();
    let mut term = 0.5_f64.powi(i32::try_from(n).ok()?);
    let (mut below, mut rank) = (0.0, 0);
    while below + term <= 0.025 {
        below += term;
        rank += 1;
        term *= (n - rank + 1) as f64 / rank as f64;
    }
    (rank > 0).then(|| (sorted[rank - 1], sorted[n - rank]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    /// Exact quantiles for 1 - 10⁻⁵: 19.51, 23.03, 45.08 and 71.92.
    #[test]
    fn rare_values_of_chi_square_are_near_the_exact_quantiles() {
        for (degrees, exact, error) in
            [(1.0, 19.51, 0.12), (2.0, 23.03, 0.08), (12.0, 45.08, 0.02), (28.0, 71.92, 0.01)]
        {
            let ratio = rare_chi_square(degrees) / exact;
            assert!((1.0..1.0 + error).contains(&ratio), "{degrees}: {ratio}");
        }
    }

    /// Ranks as in published tables: n = 6: 1 and 6, n = 30: 10 and 21.
    #[test]
    fn interval_ranks_match_the_tables() {
        let values = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        assert_eq!(median_interval_95(&values(5)), None);
        assert_eq!(median_interval_95(&values(6)), Some((1.0, 6.0)));
        assert_eq!(median_interval_95(&values(30)), Some((10.0, 21.0)));
    }
}
