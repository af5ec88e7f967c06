//! Fits the meter's power to the use of all CPUs, which makes the model of a board: `meter = idle + more × use`.
//!
//! It is the fit of [`super::fit`] with use in the place of joular-bpf's power, so its intervals hold for it too. What
//! energy was recorded does not matter, but for the difference of the two clocks.

use serde::Serialize;
use thiserror::Error;

use super::{
    align::points_of,
    curve::Curve,
    fit::{self, Interval, LEAST_SPANS, Point},
    recorded::Span,
};

/// Use must differ by this much between spans: a slope from less is mostly noise.
const LEAST_SPREAD: f64 = 0.3;

/// Power of a board by the use of its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoardFit {
    /// W at no use, and W more at full use.
    pub idle_w: Interval,
    pub more_w: Interval,
    /// Standard deviation of what the fit leaves, W.
    pub residual_w: f64,
    /// What it was fitted to: windows, and spans of windows.
    pub windows: u64,
    pub spans: usize,
    /// Least and most use of a span, 0 to 1.
    pub least_use: f64,
    pub most_use: f64,
}

/// Why there is no model.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BoardError {
    #[error("only {found} spans of windows have readings of the meter, {LEAST_SPANS} are needed: record longer")]
    TooFew { found: usize },
    #[error(
        "CPUs were used by {:.0} to {:.0} % only: record load that goes from none to all CPUs, as validate --protocol makes it",
        100.0 * least, 100.0 * most
    )]
    Constant { least: f64, most: f64 },
    #[error("the meter's power falls by {watts:.2} W from no use to full use: is it the meter of this board?")]
    Falls { watts: f64 },
    #[error("the fit has {watts:.2} W at no use, which no board has: is it the meter of this board?")]
    NoPower { watts: f64 },
}

/// Fits spans to a meter whose clock is ahead by `shift_us`.
///
/// # Errors
/// If there are too few, their use does not vary enough, or what is found is the power of no board.
pub fn fit(spans: &[Span], curve: &Curve, shift_us: i64) -> Result<BoardFit, BoardError> {
    let (spans, points): (Vec<Span>, Vec<Point>) = points_of(spans, curve, shift_us, Span::cpu_use).into_iter().unzip();
    if points.len() < LEAST_SPANS {
        return Err(BoardError::TooFew { found: points.len() });
    }
    let uses = || points.iter().map(|point| point.here);
    let (least, most) = (uses().fold(f64::INFINITY, f64::min), uses().fold(0.0, f64::max));
    if most - least < LEAST_SPREAD {
        return Err(BoardError::Constant { least, most });
    }
    let found = fit::fit(&points).ok_or(BoardError::Constant { least, most })?;
    if found.gain.value < 0.0 {
        return Err(BoardError::Falls { watts: -found.gain.value });
    }
    if found.offset.value <= 0.0 {
        return Err(BoardError::NoPower { watts: found.offset.value });
    }
    Ok(BoardFit {
        idle_w: found.offset,
        more_w: found.gain,
        residual_w: found.residual,
        windows: spans.iter().map(|span| span.windows).sum(),
        spans: spans.len(),
        least_use: least,
        most_use: most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        noise::Noise,
        report::validate::meter::{MeterLog, MeterReading},
    };

    const SECOND_US: i64 = 1_000_000;

    /// A run of windows of a second with this use, thousandths, and what a meter says of it twice a second.
    fn found(uses: &[u64], watts: impl Fn(f64) -> f64, deviation: f64) -> Result<BoardFit, BoardError> {
        let mut noise = Noise(7);
        let span = |(second, permille): (i64, &u64)| Span {
            start_us: second * SECOND_US,
            end_us: (second + 1) * SECOND_US,
            energy_uj: 1,
            windows: 1,
            phase: None,
            visit: 0,
            run: 0,
            busy_ns: 4_000_000 * permille,
            cpu_ns: 4_000_000_000,
        };
        let spans: Vec<Span> = (0..).zip(uses).map(span).collect();
        let readings = (0_i64..).zip(uses).flat_map(|(second, permille)| {
            let used = f64::from(u32::try_from(*permille).unwrap()) / 1000.0;
            [250_000, 750_000].map(|part_us| MeterReading {
                at_us: second * SECOND_US + part_us,
                watts: watts(used) + deviation * noise.normal(),
            })
        });
        let log = MeterLog { readings: readings.collect(), ..MeterLog::default() };
        fit(&spans, &Curve::of(&log), 0)
    }

    /// Load that stays for some seconds, from none to all CPUs.
    fn steps(seconds: usize) -> Vec<u64> {
        (0..seconds).map(|second| (second / 5 * 370 % 1001) as u64).collect()
    }

    #[test]
    fn the_line_of_a_board_is_found_with_its_error() {
        let fit = found(&steps(400), |used| 2.3 + 4.5 * used, 0.05).unwrap();
        for (interval, truth) in [(fit.idle_w, 2.3), (fit.more_w, 4.5)] {
            assert!((interval.value - truth).abs() < 0.1 && interval.contains(interval.value), "{fit:?}");
            assert!((0.001..0.5).contains(&(interval.high - interval.low)), "{fit:?}");
        }
        assert!(fit.residual_w > 0.01 && fit.residual_w < 0.1, "{fit:?}");
        // All but the first and the last window, which have no neighbour.
        assert_eq!((fit.windows, fit.spans), (398, 398));
        assert!(fit.least_use < 0.01 && fit.most_use > 0.9, "{fit:?}");
    }

    #[test]
    fn what_makes_no_model_is_refused() {
        let line = |used| 2.3 + 4.5 * used;
        assert_eq!(found(&steps(12), line, 0.0), Err(BoardError::TooFew { found: 10 }));
        for uses in [vec![500; 100], (0..100).map(|second| 400 + second).collect()] {
            let refused = found(&uses, line, 0.0).unwrap_err();
            assert!(matches!(refused, BoardError::Constant { .. }), "{refused}");
        }
        let falls = found(&steps(100), |used| 9.0 - 2.0 * used, 0.0).unwrap_err();
        assert!(matches!(falls, BoardError::Falls { watts } if (watts - 2.0).abs() < 1e-6), "{falls}");
        let none = found(&steps(100), |used| 4.0 * used - 1.0, 0.0).unwrap_err();
        assert!(matches!(none, BoardError::NoPower { watts } if (watts + 1.0).abs() < 1e-6), "{none}");
    }
}
