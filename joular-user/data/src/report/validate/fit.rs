//! Fits `meter = offset + gain × joular-bpf` by least squares, with intervals that hold although
//! neighbours are alike.
//!
//! A meter averages, and its readings lie across the ends of spans. So it sees a little of the spans
//! before and after, and a fit of one span by the other would find too small a gain. The differences
//! to both neighbours are in the fit: `meter = offset + gain · here + b · (before − here) + c · (after −
//! here)`. The gain is then what a lasting change of power changes at the meter.
//!
//! Load comes in waves, and so does what a meter sees besides: fans, disks, temperature. An interval
//! that takes spans for independent would be far too narrow. The error of every figure here is a sum
//! `Σ uₜ` over the spans in order. Its variance is taken at the lowest frequencies, where waves have
//! added up, as in [`crate::report::diff::estimate`]: `2/ν · Σⱼ₌₁…ν (Σₜ uₜ · cos(πj(t − ½)/n))²`, with
//! Student's t of `ν` degrees of freedom. The module `simulation` counts how often the intervals hold.

use std::f64::consts::PI;

use crate::report::diff::student;

/// Fewer spans do not show how spans vary.
pub const LEAST_SPANS: usize = 20;

/// Fewer independent spans than this leave intervals doubtful.
pub const LEAST_INDEPENDENT: f64 = 15.0;

/// Chance that a figure is outside its interval.
pub const OUTSIDE: f64 = 0.05;

/// Number of frequencies: see [`crate::report::diff::estimate`].
const FREQUENCIES: (f64, f64) = (2.0, 12.0);
const FLAT: f64 = 0.5;

/// A figure and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub const fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// How the meter's power follows from joular-bpf's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// W.
    pub offset: Interval,
    /// Meter's watts for one of joular-bpf's.
    pub gain: Interval,
    /// Root of the mean square of joular-bpf − meter, W, without any correction.
    pub rmse: Interval,
    /// Mean of joular-bpf − meter, W, without any correction.
    pub mean_error: Interval,
    /// Standard deviation of what the fit leaves, W.
    pub residual: f64,
    /// How many spans would say as much if they were independent.
    pub independent: f64,
}

/// Power of a span and of its neighbours by joular-bpf, and of the span by the meter; W.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub before: f64,
    pub here: f64,
    pub after: f64,
    pub meter: f64,
}

/// Offset, gain and the two neighbours.
const FITTED: f64 = 4.0;

/// What is left of a column behind the others is nothing below this part of it.
const NOTHING: f64 = 1e-9;

/// Fits points in their order; `None` if they are fewer than [`LEAST_SPANS`] or joular-bpf's power
/// does not vary.
#[allow(clippy::cast_precision_loss, reason = "numbers of spans")]
pub fn fit(points: &[Point]) -> Option<Fit> {
    let n = points.len() as f64;
    let column = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let (here, meter, one) = (column(&|point| point.here), column(&|point| point.meter), column(&|_| 1.0));
    let neighbours = [column(&|point| point.before - point.here), column(&|point| point.after - point.here)];
    let [before, after] = &neighbours;
    let for_gain = weights(&here, &[&one, before, after])?;
    let for_offset = weights(&one, &[&here, before, after])?;
    if points.len() < LEAST_SPANS {
        return None;
    }
    let left = rest(&meter, &[&one, &here, before, after]);
    let squares = product(&left, &left);
    let errors: Vec<f64> = here.iter().zip(&meter).map(|(here, meter)| here - meter).collect();
    let mean_error = errors.iter().sum::<f64>() / n;
    let mean_square = product(&errors, &errors) / n;
    let of_mean: Vec<f64> = errors.iter().map(|error| (error - mean_error) / n).collect();
    let of_square: Vec<f64> = errors.iter().map(|error| (error * error - mean_square) / n).collect();
    let square = interval(mean_square, &of_square, n / (n - 1.0));
    let root = |value: f64| value.max(0.0).sqrt();
    let errors_of =
        |weights: &[f64]| weights.iter().zip(&left).map(|(weight, left)| weight * left).collect::<Vec<f64>>();
    let (of_gain, of_offset) = (errors_of(&for_gain), errors_of(&for_offset));
    // What was fitted makes the rest smaller by that much.
    let scale = n / (n - FITTED);
    let kept = kept(&left).max(kept(&of_gain));
    Some(Fit {
        offset: interval(product(&for_offset, &meter), &of_offset, scale),
        gain: interval(product(&for_gain, &meter), &of_gain, scale),
        rmse: Interval { value: root(square.value), low: root(square.low), high: root(square.high) },
        mean_error: interval(mean_error, &of_mean, n / (n - 1.0)),
        residual: (squares / (n - FITTED)).sqrt(),
        independent: n * (1.0 - kept) / (1.0 + kept),
    })
}

/// What gives one column's coefficient in a fit with all of them: see [`weights`].
pub fn weights_of(columns: &[&[f64]], of: usize) -> Option<Vec<f64>> {
    let others: Vec<&[f64]> =
        columns.iter().enumerate().filter(|(at, _)| *at != of).map(|(_, column)| *column).collect();
    weights(columns.get(of)?, &others)
}

/// What was fitted makes the rest smaller by that much.
#[allow(clippy::cast_precision_loss, reason = "numbers of spans")]
pub fn scale(spans: usize, fitted: usize) -> f64 {
    spans as f64 / spans.saturating_sub(fitted).max(1) as f64
}

/// What a fit says of a meter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line([f64; 4]);

impl Line {
    pub fn predict(&self, point: &Point) -> f64 {
        let Self([offset, gain, before, after]) = self;
        offset + gain * point.here + before * (point.before - point.here) + after * (point.after - point.here)
    }
}

/// Fits points; `None` if joular-bpf's power does not vary.
pub fn line(points: &[Point]) -> Option<Line> {
    let column = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let (one, here, meter) = (column(&|_| 1.0), column(&|point| point.here), column(&|point| point.meter));
    let (before, after) = (column(&|point| point.before - point.here), column(&|point| point.after - point.here));
    let columns: [&[f64]; 4] = [&one, &here, &before, &after];
    let coefficient = |of: usize| Some(product(&weights_of(&columns, of)?, &meter));
    Some(Line([coefficient(0)?, coefficient(1)?, coefficient(2)?, coefficient(3)?]))
}

/// A column's coefficient in a fit with the others is the sum of these × what is fitted (the theorem of
/// Frisch, Waugh and Lovell); `None` if the column follows from the others.
fn weights(column: &[f64], others: &[&[f64]]) -> Option<Vec<f64>> {
    let rest = rest(column, others);
    let squares = product(&rest, &rest);
    (squares > NOTHING * product(column, column)).then(|| rest.iter().map(|rest| rest / squares).collect())
}

/// What is left of a column behind its fit by the others.
pub fn rest(column: &[f64], others: &[&[f64]]) -> Vec<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for other in others {
        let rest = orthogonal(other.to_vec(), &basis);
        if product(&rest, &rest) > NOTHING * product(other, other) {
            basis.push(rest);
        }
    }
    orthogonal(column.to_vec(), &basis)
}

/// Takes each direction off, twice, because rounding leaves a little the first time.
fn orthogonal(mut column: Vec<f64>, basis: &[Vec<f64>]) -> Vec<f64> {
    for direction in basis.iter().chain(basis) {
        let part = product(&column, direction) / product(direction, direction);
        column.iter_mut().zip(direction).for_each(|(value, along)| *value -= part * along);
    }
    column
}

pub fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The interval of a figure whose error is the sum of these.
pub fn interval(value: f64, errors: &[f64], scale: f64) -> Interval {
    let (variance, freedom) = variance_of_sum(errors);
    let half = student::quantile(OUTSIDE, freedom) * (variance * scale).sqrt();
    Interval { value, low: value - half, high: value + half }
}

/// Variance of a series' sum, and its degrees of freedom.
#[allow(clippy::cast_precision_loss, reason = "numbers of spans")]
pub fn variance_of_sum(series: &[f64]) -> (f64, f64) {
    let n = series.len() as f64;
    let wanted = (0.4 * n.powf(2.0 / 3.0)).round().clamp(FREQUENCIES.0, FREQUENCIES.1);
    let flat = (FLAT * (1.0 - kept(series)) * n / PI).floor().max(FREQUENCIES.0);
    let frequencies = wanted.min(flat);
    let part = |frequency: f64| -> f64 {
        let angle = |at: usize| PI * frequency * (at as f64 + 0.5) / n;
        series.iter().enumerate().map(|(at, value)| value * angle(at).cos()).sum()
    };
    let parts = (1..).map(f64::from).take_while(|frequency| *frequency <= frequencies);
    let squares: f64 = parts.map(|frequency| part(frequency).powi(2)).sum();
    (2.0 * squares / frequencies, frequencies)
}

/// The part of a deviation that is left in the next span.
#[allow(clippy::cast_precision_loss, reason = "numbers of spans")]
fn kept(series: &[f64]) -> f64 {
    let squares: f64 = series.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let found = series.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    // Around their own mean, values seem less alike than they are (Kendall, 1954).
    (found + (1.0 + 3.0 * found) / series.len() as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a series with its neighbours, and what a meter says of each.
    fn points(series: &[f64], meter: impl Fn(f64, f64, f64) -> f64) -> Vec<Point> {
        let point = |three: &[f64]| {
            let (before, here, after) = (three[0], three[1], three[2]);
            Point { before, here, after, meter: meter(before, here, after) }
        };
        series.windows(3).map(point).collect()
    }

    fn jagged(count: i32) -> Vec<f64> {
        (0..count).map(|span| f64::from(span * 37 % 11)).collect()
    }

    #[test]
    fn a_line_without_noise_is_found_exactly() {
        let fit = fit(&points(&jagged(40), |_, here, _| 20.0 + 1.25 * here)).unwrap();
        for (found, expected) in [(fit.offset, 20.0), (fit.gain, 1.25)] {
            assert!((found.value - expected).abs() < 1e-9 && found.high - found.low < 1e-9, "{found:?}");
        }
        assert!(fit.residual < 1e-6);
        assert!(fit.mean_error.value < -20.0 && fit.rmse.value >= -fit.mean_error.value);
    }

    #[test]
    fn a_meter_that_averages_or_lags_has_the_gain_of_a_lasting_change() {
        let fit =
            fit(&points(&jagged(40), |before, here, after| 20.0 + 1.25 * (0.3 * before + 0.6 * here + 0.1 * after)));
        let fit = fit.unwrap();
        assert!((fit.gain.value - 1.25).abs() < 1e-9 && (fit.offset.value - 20.0).abs() < 1e-9, "{fit:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(fit(&points(&jagged(21), |_, here, _| here)), None);
        assert!(fit(&points(&jagged(22), |_, here, _| here)).is_some());
        assert_eq!(fit(&points(&[5.0; 50], |_, here, _| here)), None);
        assert_eq!(fit(&[]), None);
    }
}
