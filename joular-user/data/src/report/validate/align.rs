//! Finds how far the meter's clock is ahead of the recorded machine's, by the shift at which the two
//! powers go together best.

use super::{curve::Curve, fit::Point, recorded::Span};

/// Below this correlation a shift is guesswork, and the clocks are taken to agree.
const LEAST_CORRELATION: f64 = 0.5;

/// Finest step of the search, µs.
const FINE_US: i64 = 10_000;

/// Coarse steps per span: finer than the features that spans can show.
const STEPS_PER_SPAN: i64 = 4;

/// A shift must leave this part of the spans that the best one leaves.
const LEAST_PART: usize = 2;

/// How the clocks are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alignment {
    /// Added to the machine's time it gives the meter's.
    pub shift_us: i64,
    /// Of the powers, at that shift.
    pub correlation: f64,
    /// Whether it was found; else it is 0 because nothing went together.
    pub is_found: bool,
    /// Whether the best shift is at the limit of the search.
    pub is_at_limit: bool,
}

/// Power by joular-bpf and by the meter, where both are known at this shift.
fn pairs(spans: &[Span], curve: &Curve, shift_us: i64) -> Vec<(f64, f64)> {
    spans.iter().filter_map(|span| Some((span.watts(), meter(span, curve, shift_us)?))).collect()
}

/// Mean power by the meter.
fn meter(span: &Span, curve: &Curve, shift_us: i64) -> Option<f64> {
    curve.mean_watts(span.start_us.saturating_add(shift_us), span.end_us.saturating_add(shift_us))
}

/// What is fitted: the spans that the meter knows at this shift and that have neighbours. Those keep their phase that have
/// neighbours in it.
pub fn points(spans: &[Span], curve: &Curve, shift_us: i64) -> Vec<(Span, Point)> {
    points_of(spans, curve, shift_us, Span::watts)
}

/// The same, for a figure of the spans in place of their power.
pub fn points_of(spans: &[Span], curve: &Curve, shift_us: i64, of: impl Fn(&Span) -> f64) -> Vec<(Span, Point)> {
    let point = |three: &[Span]| match three {
        [before, here, after] if before.is_before(here) && here.is_before(after) => {
            let meter = meter(here, curve, shift_us)?;
            let phase = here.phase.filter(|_| before.phase == here.phase && after.phase == here.phase);
            Some((Span { phase, ..*here }, Point { before: of(before), here: of(here), after: of(after), meter }))
        }
        _ => None,
    };
    spans.windows(3).filter_map(point).collect()
}

/// The shift within ± `most_us` at which the powers correlate best.
pub fn align(spans: &[Span], curve: &Curve, most_us: i64) -> Alignment {
    let shortest_us = spans.iter().map(|span| span.end_us - span.start_us).min().unwrap_or(1);
    let step_us = (shortest_us / STEPS_PER_SPAN).max(FINE_US);
    let steps = most_us / step_us;
    let search = Search { spans, curve };
    let shifts = (-steps..=steps).map(|step| step * step_us);
    let found: Vec<(i64, usize, f64)> = shifts
        .map(|shift_us| {
            let (count, correlation) = search.at(shift_us);
            (shift_us, count, correlation)
        })
        .collect();
    let least = found.iter().map(|(_, count, _)| *count).max().unwrap_or(0) / LEAST_PART;
    let enough = found.iter().filter(|(_, count, _)| *count >= least.max(3));
    let coarse = enough.max_by(|(a_us, _, a), (b_us, _, b)| a.total_cmp(b).then(b_us.abs().cmp(&a_us.abs())));
    let Some((coarse_us, _, correlation)) = coarse.copied() else { return search.unknown() };
    if correlation < LEAST_CORRELATION {
        return search.unknown();
    }
    let shift_us = search.refine(coarse_us - step_us, coarse_us + step_us).clamp(-most_us, most_us);
    let (_, correlation) = search.at(shift_us);
    Alignment { shift_us, correlation, is_found: true, is_at_limit: steps > 0 && coarse_us.abs() == steps * step_us }
}

struct Search<'a> {
    spans: &'a [Span],
    curve: &'a Curve,
}

impl Search<'_> {
    /// Spans that the meter knows too, and their correlation.
    fn at(&self, shift_us: i64) -> (usize, f64) {
        let pairs = pairs(self.spans, self.curve, shift_us);
        (pairs.len(), correlation(pairs.iter().copied()))
    }

    /// The best shift between two, by golden section: around its top the correlation has one.
    fn refine(&self, mut low_us: i64, mut high_us: i64) -> i64 {
        while high_us - low_us > FINE_US {
            let third = (high_us - low_us) * 382 / 1000;
            let (left, right) = (low_us + third, high_us - third);
            if self.at(left).1 >= self.at(right).1 {
                high_us = right;
            } else {
                low_us = left;
            }
        }
        i64::midpoint(low_us, high_us)
    }

    fn unknown(&self) -> Alignment {
        let (_, correlation) = self.at(0);
        Alignment { shift_us: 0, correlation, is_found: false, is_at_limit: false }
    }
}

/// Pearson's; 0 where one of the two does not vary.
#[allow(clippy::cast_precision_loss, reason = "a number of spans")]
fn correlation(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = pairs.clone().count().max(1) as f64;
    let (sum_x, sum_y) = pairs.clone().fold((0.0, 0.0), |(x, y), pair| (x + pair.0, y + pair.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (x, y) = (x - mean_x, y - mean_y);
        (xx, yy, xy) = (xx + x * x, yy + y * y, xy + x * y);
    }
    let scale = (xx * yy).sqrt();
    if scale > 0.0 { xy / scale } else { 0.0 }
}
