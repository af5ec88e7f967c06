//! Places figures on an axis, and finds round ones to label it with.

use super::{Anchor, Ink, Place, Shape};
use crate::experiment::cells::number;

/// From so many times the smallest figure on, an axis is logarithmic.
const DECADES_FROM: f64 = 20.0;

/// From figures to places on one axis.
pub(in crate::experiment) struct Axis {
    pub(in crate::experiment) least: f64,
    pub(in crate::experiment) most: f64,
    pub(in crate::experiment) is_log: bool,
    /// Places of both ends.
    pub(in crate::experiment) from: f64,
    pub(in crate::experiment) to: f64,
}

/// Whether figures of such a range are shown by their logarithms.
pub(in crate::experiment) fn is_log(least: f64, most: f64) -> bool {
    least > 0.0 && most / least >= DECADES_FROM
}

impl Axis {
    fn part(&self, figure: f64) -> f64 {
        if self.is_log {
            (figure / self.least).ln() / (self.most / self.least).ln()
        } else {
            (figure - self.least) / (self.most - self.least)
        }
    }

    /// The figure at a part of the axis.
    pub(in crate::experiment) fn at(&self, part: f64) -> f64 {
        if self.is_log {
            self.least * (self.most / self.least).powf(part)
        } else {
            self.least + part * (self.most - self.least)
        }
    }

    /// `None` where the axis has no place for it, such as for 0 on a logarithmic one.
    pub(in crate::experiment) fn place(&self, figure: f64) -> Option<f64> {
        let part = self.part(figure);
        part.is_finite().then(|| self.from + part.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// The place, or the end of the axis that is nearest.
    pub(in crate::experiment) fn within(&self, figure: f64) -> f64 {
        self.place(figure).unwrap_or(self.from)
    }

    /// Round figures and their places.
    pub(in crate::experiment) fn ticks(&self) -> Vec<(f64, f64)> {
        let figures = if self.is_log { self.decades() } else { self.steps() };
        figures.into_iter().filter_map(|figure| Some((figure, self.place(figure)?))).collect()
    }

    /// Powers of ten; of few also their double and fivefold, of many not each.
    fn decades(&self) -> Vec<f64> {
        let decades = (self.most / self.least).log10();
        let times: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = if decades > 16.0 {
            10
        } else if decades > 8.0 {
            3
        } else {
            1
        };
        let powers = (-300..=300).filter(|exponent| exponent % every == 0).map(|exponent| 10_f64.powi(exponent));
        let figures = powers.flat_map(|power| times.iter().map(move |times| power * times));
        figures.filter(|tick| (self.least..=self.most).contains(tick)).collect()
    }

    /// About five equal steps.
    fn steps(&self) -> Vec<f64> {
        let step = step(self.most - self.least);
        let first = (self.least / step).ceil();
        (0..10).map(|tick| (first + f64::from(tick)) * step).filter(|tick| *tick <= self.most).collect()
    }

    /// Strokes and labels below the axis, which is at this height. Labels are figures times `factor`.
    pub(in crate::experiment) fn below(&self, height: f64, factor: f64) -> impl Iterator<Item = Shape> {
        let stroke = move |place| Shape::line([(place, height), (place, height + 4.0)], Ink::Text);
        self.labelled(factor, stroke, move |place| ((place, height + 16.0), Anchor::Middle))
    }

    /// The same on the left of an axis that goes up.
    pub(in crate::experiment) fn beside(&self, left: f64, factor: f64) -> impl Iterator<Item = Shape> {
        let stroke = move |place| Shape::line([(left, place), (left - 4.0, place)], Ink::Text);
        self.labelled(factor, stroke, move |place| ((left - 6.0, place + 4.0), Anchor::End))
    }

    fn labelled(
        &self,
        factor: f64,
        stroke: impl Fn(f64) -> Shape,
        label: impl Fn(f64) -> (Place, Anchor),
    ) -> impl Iterator<Item = Shape> {
        self.ticks().into_iter().flat_map(move |(figure, place)| {
            let (at, anchor) = label(place);
            [stroke(place), Shape::text(at, anchor, tick(figure * factor))]
        })
    }
}

/// A round step, about a fifth of a length.
pub(in crate::experiment) fn step(length: f64) -> f64 {
    let rough = length / 5.0;
    let ten = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten).into_iter().find(|step| *step >= rough);
    step.unwrap_or(rough)
}

/// `1000`, `0.02`, `1e6`.
pub(in crate::experiment) fn tick(value: f64) -> String {
    // Steps are round but for the last bits, and 0 has no sign.
    let text = number(value + 0.0);
    match text.parse::<f64>() {
        Ok(rounded) if rounded != 0.0 && !(1e-3..1e5).contains(&rounded.abs()) => format!("{rounded:e}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(least: f64, most: f64) -> Vec<String> {
        let axis = Axis { least, most, is_log: is_log(least, most), from: 100.0, to: 300.0 };
        let ticks = axis.ticks();
        assert!(ticks.iter().all(|(_, place)| (100.0..=300.0).contains(place)), "{ticks:?}");
        assert!(ticks.is_sorted_by(|(a, at), (b, next)| a < b && at < next), "{ticks:?}");
        ticks.into_iter().map(|(figure, _)| tick(figure)).collect()
    }

    #[test]
    fn ticks_are_round_and_on_the_axis() {
        assert_eq!(ticks(0.0, 1.1), ["0", "0.5", "1"]);
        assert_eq!(ticks(9.7, 10.3), ["9.8", "10", "10.2"]);
        assert_eq!(ticks(-3.0, 3.0), ["-2", "0", "2"]);
        assert_eq!(ticks(1.0, 100.0), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(1e3, 1e6), ["1000", "10000", "1e5", "1e6"]);
        assert_eq!(ticks(0.0, 1e300).last().map(String::as_str), Some("1e300"));
    }

    #[test]
    fn figures_have_places_in_proportion_and_stay_on_the_axis() {
        let axis = Axis { least: 10.0, most: 30.0, is_log: false, from: 100.0, to: 300.0 };
        assert_eq!(
            [10.0, 15.0, 30.0, 5.0, 99.0].map(|figure| axis.within(figure)),
            [100.0, 150.0, 300.0, 100.0, 300.0]
        );
        assert_eq!((axis.place(f64::NAN), axis.within(f64::NAN)), (None, 100.0));
        let log = Axis { least: 1.0, most: 100.0, is_log: true, from: 100.0, to: 300.0 };
        assert!((log.within(10.0) - 200.0).abs() < 1e-9 && (log.at(0.5) - 10.0).abs() < 1e-9);
        assert_eq!((log.place(0.0), log.place(-1.0)), (None, None));
    }
}
