//! Computes Student's t distribution by the incomplete beta function: how likely chance alone puts
//! a difference that many standard errors from nothing.

/// Probability of a value at least this far from 0 on either side, with
/// `freedom` degrees of freedom; 1 where that is not defined.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)).clamp(0.0, 1.0)
}

/// Probability of a ratio of variances at least this large (Fisher's F distribution), with so many degrees of freedom of
/// the upper and of the lower variance; 1 where that is not defined.
pub fn beyond_f(ratio: f64, upper: f64, lower: f64) -> f64 {
    let is_defined = ratio > 0.0 && upper > 0.0 && lower > 0.0;
    if !is_defined {
        return 1.0;
    }
    incomplete_beta(lower / 2.0, upper / 2.0, lower / (lower + upper * ratio)).clamp(0.0, 1.0)
}

/// The value that is exceeded on either side with this probability: the inverse of `two_sided`.
pub fn quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > probability && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Regularised incomplete beta function, by its continued fraction (DLMF 8.17.22).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta_below(b, a, 1.0 - x);
    }
    incomplete_beta_below(a, b, x)
}

fn incomplete_beta_below(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let guarded = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guarded(1.0 + even * d);
        c = guarded(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guarded(1.0 + odd * d);
        c = guarded(1.0 + odd / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// Stirling's series, from 10 upwards, where it is exact to 1e-14.
fn log_gamma(x: f64) -> f64 {
    let mut x = x;
    let mut below = 0.0;
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let squared = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * squared)) / squared) / squared) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_variances_are_as_rare_as_in_tables() {
        // Upper 5 and 1 per cent points of F (Fisher and Yates), and the square of Student's t.
        for (ratio, upper, lower, expected) in [
            (4.1028, 2.0, 10.0, 0.05),
            (3.8853, 2.0, 12.0, 0.05),
            (4.7726, 4.0, 16.0, 0.01),
            (2.2281_f64.powi(2), 1.0, 10.0, 0.05),
        ] {
            assert!(
                (beyond_f(ratio, upper, lower) - expected).abs() < 2e-4,
                "{ratio} {}",
                beyond_f(ratio, upper, lower)
            );
        }
        assert_eq!([beyond_f(f64::NAN, 1.0, 1.0), beyond_f(-1.0, 1.0, 1.0), beyond_f(1.0, 0.0, 1.0)], [1.0; 3]);
        assert_eq!(beyond_f(f64::INFINITY, 1.0, 1.0), 0.0);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, freedom, expected) in [
            (0.05, 1.0, 12.7062),
            (0.05, 2.0, 4.302_65),
            (0.05, 5.0, 2.570_58),
            (0.01, 10.0, 3.169_27),
            (0.05, 30.0, 2.042_27),
            (0.001, 60.0, 3.4602),
            (0.05, 1e6, 1.959_97),
        ] {
            let found = quantile(probability, freedom);
            assert!((found / expected - 1.0).abs() < 1e-5, "{probability} {freedom}: {found}");
            assert!((two_sided(expected, freedom) / probability - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn nothing_is_certain_and_infinity_is_impossible() {
        assert_eq!(two_sided(0.0, 7.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 7.0), 0.0);
        for undefined in [(f64::NAN, 7.0), (1.0, 0.0), (1.0, f64::NAN)] {
            assert_eq!(two_sided(undefined.0, undefined.1), 1.0);
        }
    }
}
