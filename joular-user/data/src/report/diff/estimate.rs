//! Estimates a mean rate, and how far chance may have moved it.
//!
//! Energy `E` is divided by an exposure `D`: time, CPU time, units of work, or runs.
//!
//! **Windows** have the rate `R = ΣE / ΣD`, and the residuals `e = E − R·D` show how much they vary.
//! Those of a run follow each other, and neighbours are alike: garbage collections and load
//! come in waves. A test that treats them as independent finds changes where there are none. So
//! their variance is taken at the lowest frequencies only, where waves have added up: the
//! equal-weighted cosine estimator, `ω² = 1/ν · Σⱼ₌₁…ν (√(2/n) · Σₜ eₜ · cos(πj(t − ½)/n))²`, with
//! `ν = 0.4·n^⅔`, at most 12 (Lazarus, Lewis, Stock and Watson, 2018). The variance of `R` is `n·ω²
//! / (ΣD)²`, and Student's t with `ν` degrees of freedom holds for it.
//!
//! Waves that last a good part of the run have not added up even there, and then the windows say
//! nothing. Of `n` windows, of which the part `ρ` of a deviation is left in the next one, about `n·(1 −
//! ρ)/(1 + ρ)` are independent. Fewer than [`MIN_INDEPENDENT`] are too few.
//!
//! **Runs**, from three a side, are better: they also differ in what the JIT compiled, where memory
//! lies, and how much work they do. Each run's own rate `E / D` is a replicate: `R` is their mean, and
//! its variance is the textbook's, with `m − 1` degrees of freedom.

use std::f64::consts::PI;

/// Fewer windows do not show how windows vary.
const MIN_WINDOWS: usize = 20;

/// Fewer independent windows do not show it either: simulation.rs says how often verdicts are wrong.
const MIN_INDEPENDENT: f64 = 15.0;

/// From so many runs a side, whole runs are the replicates.
pub const MIN_RUNS: usize = 3;

/// Frequencies up to this part of `1 − ρ`, in radians per window, have at least 80 % of the power
/// that the lowest has (the spectrum of a first-order autoregression). Higher ones are left out.
const FLAT: f64 = 0.5;

/// At least two frequencies, and at most twelve. More would make intervals of long runs a tenth
/// narrower, and would take waves of a minute for noise.
const FREQUENCIES: (f64, f64) = (2.0, 12.0);

/// What a side's energy is divided by, replicate by replicate.
#[derive(Clone, Debug)]
pub struct Replicates {
    exposures: Vec<f64>,
    exposure: f64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Windows(Waves),
    Runs,
    TooFew,
}

/// What the analysis of windows by frequency needs.
#[derive(Clone, Debug)]
struct Waves {
    /// Of multiples of π/2n, by multiple.
    cosines: Vec<f64>,
    /// For each frequency that counts, from the lowest: its part of the exposures.
    exposures: Vec<f64>,
}

/// A rate with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub rate: f64,
    /// `None`: there are too few replicates to tell.
    pub variance: Option<f64>,
    pub freedom: f64,
    /// More variance, which the same replicates show for both sides: see [`super::sessions`].
    pub shared: Shared,
}

/// Variance that is known for both sides from the same replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shared {
    pub variance: f64,
    /// The variance before what is known well was taken off: so uncertain is `variance`.
    pub estimated: f64,
    /// Of `estimated`.
    pub freedom: f64,
}

#[allow(clippy::cast_precision_loss, reason = "numbers of windows")]
impl Replicates {
    /// Takes windows, one after the other.
    pub fn of_windows(exposures: Vec<f64>) -> Self {
        let n = exposures.len();
        let kind = if n < MIN_WINDOWS { Kind::TooFew } else { Kind::Windows(Waves::of(&exposures)) };
        Self::new(exposures, kind)
    }

    /// Takes whole runs.
    pub fn of_runs(exposures: Vec<f64>) -> Self {
        let kind = if exposures.len() < MIN_RUNS { Kind::TooFew } else { Kind::Runs };
        Self::new(exposures, kind)
    }

    /// Takes an exposure of which nobody knows how replicates share it.
    pub fn unknown(exposure: f64) -> Self {
        Self::new(vec![exposure], Kind::TooFew)
    }

    fn new(exposures: Vec<f64>, kind: Kind) -> Self {
        Self { exposure: exposures.iter().sum(), exposures, kind }
    }

    /// What all energy is divided by.
    pub const fn exposure(&self) -> f64 {
        self.exposure
    }

    /// The rate of a consumer, from its replicates with energy; several entries of one replicate
    /// add up. `sampling` is the part of the sampling error in the variance of the energy's sum.
    /// Replicates vary by that too, so it counts only where they happen to vary by less.
    pub fn estimate(&self, energies: &[(usize, f64)], sampling: f64) -> Estimate {
        if self.exposure <= 0.0 {
            return Estimate::new(0.0, None, 0.0);
        }
        let whole = energies.iter().map(|(_, energy)| energy).sum::<f64>() / self.exposure;
        let sampling = sampling / self.exposure.powi(2);
        let (rate, of_rate) = match &self.kind {
            Kind::TooFew => (whole, None),
            Kind::Windows(waves) => (whole, self.variance_of_windows(waves, energies, whole)),
            Kind::Runs => {
                let (mean, variance) = self.mean_of_runs(energies);
                (mean, Some((variance, self.exposures.len() - 1)))
            }
        };
        let variance = of_rate.map(|(variance, _)| variance.max(sampling));
        Estimate::new(rate, variance, of_rate.map_or(0.0, |(_, freedom)| freedom as f64))
    }

    /// What is left of each replicate's energy behind its part of the rate.
    fn residuals(&self, energies: &[(usize, f64)], rate: f64) -> Vec<f64> {
        let mut left: Vec<f64> = self.exposures.iter().map(|exposure| -rate * exposure).collect();
        for (replicate, energy) in energies {
            if let Some(left) = left.get_mut(*replicate) {
                *left += energy;
            }
        }
        left
    }

    /// Variance of the rate, and its degrees of freedom, if enough windows are independent: see the
    /// module's head.
    fn variance_of_windows(&self, waves: &Waves, energies: &[(usize, f64)], rate: f64) -> Option<(f64, usize)> {
        let kept = kept(&self.residuals(energies, rate));
        let windows = self.exposures.len() as f64;
        if windows * (1.0 - kept) / (1.0 + kept) < MIN_INDEPENDENT {
            return None;
        }
        let added_up = (1..).take_while(|count| f64::from(*count) * PI / windows <= FLAT * (1.0 - kept)).count();
        let frequencies = waves.exposures.len().min(added_up.max(1));
        Some((waves.variance(energies, rate, frequencies) / self.exposure.powi(2), frequencies))
    }

    /// Rate of each replicate.
    pub fn rates(&self, energies: &[(usize, f64)]) -> Vec<f64> {
        let rate = |(energy, exposure): (f64, &f64)| {
            // A run without CPU time has no energy either.
            if *exposure > 0.0 { energy / exposure } else { 0.0 }
        };
        self.residuals(energies, 0.0).into_iter().zip(&self.exposures).map(rate).collect()
    }

    /// Mean of the runs' own rates, and its variance.
    fn mean_of_runs(&self, energies: &[(usize, f64)]) -> (f64, f64) {
        let runs = self.exposures.len() as f64;
        let rates = self.rates(energies);
        let mean = rates.iter().sum::<f64>() / runs;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        (mean, squares / (runs - 1.0) / runs)
    }
}

/// The part of a deviation that is left in the next window.
#[allow(clippy::cast_precision_loss, reason = "numbers of windows")]
fn kept(residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|left| left.powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let found = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    // Around their own mean, windows seem less alike than they are (Kendall, 1954).
    (found + (1.0 + 3.0 * found) / residuals.len() as f64).clamp(0.0, 1.0)
}

#[allow(clippy::cast_precision_loss, reason = "numbers of windows")]
impl Waves {
    fn of(exposures: &[f64]) -> Self {
        let n = exposures.len();
        let wanted = (0.4 * (n as f64).powf(2.0 / 3.0)).round().clamp(FREQUENCIES.0, FREQUENCIES.1);
        let cosines = (0..4 * n).map(|multiple| (PI * multiple as f64 / (2 * n) as f64).cos()).collect();
        let mut waves = Self { cosines, exposures: Vec::new() };
        for frequency in (1..n).take_while(|frequency| *frequency as f64 <= wanted) {
            waves.exposures.push(waves.part(frequency, exposures.iter().copied().enumerate()));
        }
        waves
    }

    /// Part of a series in a frequency.
    fn part(&self, frequency: usize, values: impl Iterator<Item = (usize, f64)>) -> f64 {
        let around = self.cosines.len().max(1);
        values.map(|(at, value)| value * self.cosines.get(frequency * (2 * at + 1) % around).unwrap_or(&0.0)).sum()
    }

    /// n·ω² of the lowest frequencies, see the module's head; √(2/n)² and n cancel.
    fn variance(&self, energies: &[(usize, f64)], rate: f64, frequencies: usize) -> f64 {
        let squares = (1..)
            .zip(&self.exposures)
            .take(frequencies)
            .map(|(frequency, expected)| (self.part(frequency, energies.iter().copied()) - rate * expected).powi(2));
        2.0 * squares.sum::<f64>() / frequencies as f64
    }
}

impl Estimate {
    /// By replicates of its own.
    pub fn new(rate: f64, variance: Option<f64>, freedom: f64) -> Self {
        // The sum of no figures is −0.0, which tables would show with its sign.
        Self { rate: rate + 0.0, variance, freedom, shared: Shared::default() }
    }

    /// In other units: joules instead of watts, or per unit of work.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        let square = scale * scale;
        let Shared { variance, estimated, freedom } = self.shared;
        let shared = Shared { variance: variance * square, estimated: estimated * square, freedom };
        Self { rate: self.rate * scale, variance: self.variance.map(|variance| variance * square), shared, ..self }
    }

    /// All of its variance.
    pub fn whole_variance(self) -> Option<f64> {
        self.variance.map(|own| own + self.shared.variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_windows(energies: &[f64]) -> Estimate {
        let energies: Vec<(usize, f64)> = energies.iter().copied().enumerate().collect();
        Replicates::of_windows(vec![1.0; energies.len()]).estimate(&energies, 0.0)
    }

    #[test]
    fn a_constant_rate_has_no_variance_however_long_windows_are() {
        let exposures: Vec<f64> = (0..20).map(|window| 1.0 + f64::from(window % 3)).collect();
        let energies: Vec<(usize, f64)> = exposures.iter().map(|exposure| 7.0 * exposure).enumerate().collect();
        for replicates in [Replicates::of_windows(exposures.clone()), Replicates::of_runs(exposures)] {
            let estimate = replicates.estimate(&energies, 0.0);
            assert!((estimate.rate - 7.0).abs() < 1e-12 && estimate.variance.unwrap() < 1e-20, "{estimate:?}");
        }
    }

    #[test]
    fn waves_longer_than_a_window_widen_the_error_and_alternation_does_not() {
        let jagged = |window| f64::from(window * 37 % 11) / 11.0;
        let wave = (0..300).map(|window| 10.0 + jagged(window) + (f64::from(window) / 12.0).sin() / 2.0);
        let wave: Vec<f64> = wave.collect();
        let alternating: Vec<f64> = (0..300).map(|window| 10.0 + f64::from(window % 2)).collect();
        let independent = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / 300.0;
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 300.0 / 299.0
        };
        assert!(of_windows(&wave).variance.unwrap() > 3.0 * independent(&wave));
        assert!(of_windows(&alternating).variance.unwrap() < independent(&alternating));
    }

    #[test]
    fn who_used_nothing_has_a_rate_without_a_sign() {
        for replicates in [Replicates::of_windows(vec![1.0; 20]), Replicates::of_runs(vec![1.0; 3])] {
            assert!(replicates.estimate(&[], 0.0).rate.is_sign_positive(), "{replicates:?}");
        }
    }

    #[test]
    fn the_sampling_error_is_the_least_that_is_left() {
        let energies: Vec<(usize, f64)> = (0..20).map(|window| (window, 1.0)).collect();
        let variance = |sampling| Replicates::of_windows(vec![1.0; 20]).estimate(&energies, sampling).variance;
        assert!((variance(4.0).unwrap() - 0.01).abs() < 1e-12);
    }

    #[test]
    fn runs_have_the_variance_of_the_textbook() {
        let estimate = Replicates::of_runs(vec![1.0; 3]).estimate(&[(0, 1.0), (1, 2.0), (2, 3.0)], 0.0);
        assert_eq!((estimate.rate, estimate.freedom), (2.0, 2.0));
        assert!((estimate.variance.unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_runs_own_rate_is_the_replicate_however_long_runs_are() {
        let energies = [(0, 10.0), (1, 22.0), (2, 36.0)];
        let estimate = Replicates::of_runs(vec![10.0, 20.0, 30.0]).estimate(&energies, 0.0);
        assert!((estimate.rate - 1.1).abs() < 1e-12, "{estimate:?}");
        assert!((estimate.variance.unwrap() - 0.01 / 3.0).abs() < 1e-12, "{estimate:?}");
    }

    #[test]
    fn windows_that_are_all_of_one_wave_say_nothing() {
        let drift: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(of_windows(&drift).variance, None);
        let steady: Vec<f64> = (0..60).map(|window| f64::from(window * 37 % 11)).collect();
        assert!(of_windows(&steady).variance.is_some());
    }

    #[test]
    fn too_few_replicates_say_nothing() {
        assert_eq!(of_windows(&[1.0; 19]).variance, None);
        assert!(of_windows(&[1.0; 20]).variance.is_some());
        assert_eq!(of_windows(&[]).variance, None);
        assert_eq!(Replicates::of_runs(vec![1.0; 2]).estimate(&[(0, 1.0)], 0.0).variance, None);
    }
}
