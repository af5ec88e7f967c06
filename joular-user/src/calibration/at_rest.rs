//! Finds what a domain draws while nothing runs, from windows in which a little ran.
//!
//! Power grows with busy time, so a straight line through the windows, by least squares, says what it is at no busy time.
//! Neither the least nor the typical power does. The least has the chance of many windows in it: of 40 that waver by 0.5 W
//! it is 0.6 W too low, and programs would pay for that. The typical one has the load.

use serde::{Deserialize, Serialize};

/// Power of a domain while nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtRest {
    pub microwatts: u64,
    /// Standard error of `microwatts`.
    pub error_microwatts: u64,
}

/// A window: part of the CPU time that was busy, and power in µW.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub busy: f64,
    pub microwatts: u64,
}

impl AtRest {
    /// `None` of fewer than three windows. More load never draws less. And where all windows were equally busy, a line
    /// through them may lead anywhere: it ends at the least power that a window had.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "powers")]
    pub fn of(points: &[Point]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let count = points.len() as f64;
        let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (busy, power) = (mean(|point| point.busy), mean(|point| point.microwatts as f64));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|point| of(point.busy - busy, point.microwatts as f64 - power)).sum::<f64>()
        };
        let spread = sum(&|busy, _| busy * busy);
        let slope = if spread > 0.0 { (sum(&|busy, power| busy * power) / spread).max(0.0) } else { 0.0 };
        let least = points.iter().map(|point| point.microwatts).min()?;
        let microwatts = ((power - slope * busy).round() as u64).max(least);
        let variance = sum(&|busy, power| (power - slope * busy).powi(2)) / (count - 2.0);
        let of_slope = if slope > 0.0 { busy * busy / spread } else { 0.0 };
        let error = (variance * (1.0 / count + of_slope)).sqrt();
        // No farther off than from the least to the mean, where it has to lie.
        let error_microwatts = (error.round() as u64).min((power.round() as u64).saturating_sub(least));
        Some(Self { microwatts, error_microwatts })
    }
}

#[cfg(test)]
mod tests {
    use joular_data::noise::Noise;

    use super::*;

    const WATT: f64 = 1e6;
    const RUNS: u32 = 2_000;

    /// Mean and standard deviation of what is found, and the mean of the errors that are said, in watts. The machine draws
    /// 20 W, and `slope_w` more if all of it is busy; windows waver by 0.5 W.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "simulation"
    )]
    fn found(windows: usize, busy: std::ops::Range<f64>, slope_w: f64, of: fn(&[Point]) -> AtRest) -> [f64; 3] {
        let mut noise = Noise(5);
        let (mut sum, mut squares, mut errors) = (0.0, 0.0, 0.0);
        for _ in 0..RUNS {
            let mut point = || {
                let busy = busy.start + (busy.end - busy.start) * noise.uniform();
                let watts = 20.0 + slope_w * busy + 0.5 * noise.normal();
                Point { busy, microwatts: (watts * WATT) as u64 }
            };
            let points: Vec<Point> = (0..windows).map(|_| point()).collect();
            let AtRest { microwatts, error_microwatts } = of(&points);
            let watts = microwatts as f64 / WATT;
            sum += watts;
            squares += watts * watts;
            errors += error_microwatts as f64 / WATT;
        }
        let mean = sum / f64::from(RUNS);
        [mean, (squares / f64::from(RUNS) - mean * mean).sqrt(), errors / f64::from(RUNS)]
    }

    fn line(points: &[Point]) -> AtRest {
        AtRest::of(points).unwrap()
    }

    fn least(points: &[Point]) -> AtRest {
        let microwatts = points.iter().map(|point| point.microwatts).min().unwrap();
        AtRest { microwatts, error_microwatts: 0 }
    }

    #[test]
    fn a_line_finds_what_nothing_draws_and_says_how_far_off_it_may_be() {
        for (windows, busy, slope_w) in [(40, 0.002..0.05, 26.0), (40, 0.002..0.05, 100.0), (20, 0.0..0.02, 26.0)] {
            let [mean, deviation, error] = found(windows, busy.clone(), slope_w, line);
            let [mean_of_least, ..] = found(windows, busy.clone(), slope_w, least);
            println!(
                "{windows} windows {busy:?} busy, {slope_w} W: {mean:.2} ± {deviation:.2} W, said ± {error:.2}; \
                 least {mean_of_least:.2} W"
            );
            assert!((mean - 20.0).abs() < 0.12, "{mean} W");
            assert!((0.7..1.3).contains(&(error / deviation)), "{error} W said, {deviation} W found");
        }
        let [mean_of_least, ..] = found(40, 0.002..0.05, 26.0, least);
        assert!(mean_of_least < 19.5, "{mean_of_least} W: the least is too low");
    }

    /// Then nobody knows how much of it is load; it is no worse than the least or the mean.
    #[test]
    fn windows_that_are_equally_busy_give_something_between_least_and_mean() {
        let [mean, deviation, _] = found(40, 0.0100..0.0101, 26.0, line);
        assert!((19.0..20.3).contains(&mean) && deviation < 0.7, "{mean} ± {deviation} W");
        let same = [Point { busy: 0.01, microwatts: 7_000_000 }; 4];
        assert_eq!(AtRest::of(&same), Some(AtRest { microwatts: 7_000_000, error_microwatts: 0 }));
    }

    #[test]
    fn a_line_needs_three_windows() {
        let points =
            [(0.0, 20), (0.02, 22), (0.01, 21)].map(|(busy, watts)| Point { busy, microwatts: watts * 1_000_000 });
        assert_eq!(AtRest::of(&points[..2]), None);
        assert_eq!(AtRest::of(&points), Some(AtRest { microwatts: 20_000_000, error_microwatts: 0 }));
    }
}
