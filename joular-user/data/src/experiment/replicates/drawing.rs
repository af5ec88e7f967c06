//! Draws an experiment: a row for each variant, with a dot for each run, the mean, and its 95 % interval.
//!
//! Runs are dots, and not bars whose length people would compare: so the axis need not begin at 0 where that would hide
//! the difference of variants, and the drawing says where it begins.

use super::{Figure, Stats, Summary, Variant, VariantSummary, runs_of_each};
use crate::{
    experiment::{
        cells::sized,
        plot::{
            Anchor, Drawing, Ink, Panel, Shape, Text,
            axis::{Axis, step, tick},
        },
    },
    text::Keep,
};

const WIDTH: f64 = 480.0;
const TOP: f64 = 34.0;
const RIGHT: f64 = 20.0;
/// Of a variant's row, with its runs above and the mean below.
const ROW: f64 = 42.0;
const RUNS: (f64, f64) = (8.0, 24.0);
const MEAN: f64 = 33.0;
/// Of the axis with its labels, and of each line below.
const AXIS: f64 = 46.0;
const LINE: f64 = 15.0;

/// Columns of names, and the width of one in CSS pixels.
const NAME_COLUMNS: (usize, usize) = (6, 26);
const COLUMN: f64 = 6.6;
const GAP: f64 = 10.0;

/// An axis begins at 0, unless all figures are above this part of the largest one and differ by more than rounding.
const CUT_ABOVE: f64 = 0.5;
const LEAST_SPREAD: f64 = 1e-6;
/// Room on both sides of the figures, as a part of what they spread over.
const ROOM: f64 = 0.05;

/// The drawing of the figure that variants are ranked by. `summary` is of the same variants.
#[allow(clippy::cast_precision_loss, reason = "places on a drawing")]
pub fn drawing(variants: &[Variant], summary: &Summary) -> Drawing {
    let figure = summary.ranking.figure;
    let names: Vec<String> = summary.variants.iter().map(|variant| variant.name.to_string()).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let columns = longest.clamp(NAME_COLUMNS.0, NAME_COLUMNS.1);
    let (left, bottom) = (columns as f64 * COLUMN + 2.0 * GAP, TOP + ROW * names.len() as f64);
    let title = title(summary);
    let mut shapes = vec![text((GAP, 18.0), Anchor::Start, &title, true, None)];
    let mut notes = vec!["Dots are runs, the first one on top. Bars are means with their 95 % intervals.".to_owned()];
    let shown = shown(variants, summary);
    if let Some(axis) = axis(&shown, (left, WIDTH - RIGHT)) {
        let (prefix, factor) = sized(shown.iter().fold(0.0, |largest: f64, figure| largest.max(figure.abs())));
        let unit = format!("{prefix}{}", figure.unit());
        shapes.extend(frame(&axis, bottom, factor));
        let middle = f64::midpoint(left, WIDTH - RIGHT);
        shapes.push(Shape::text((middle, bottom + 32.0), Anchor::Middle, format!("{}, {unit}", figure.title())));
        for (at, (variant, about)) in variants.iter().zip(&summary.variants).enumerate() {
            shapes.extend(row(variant, about, figure, &axis, TOP + ROW * at as f64));
        }
        let is_cut = axis.least > 0.0;
        notes.extend(is_cut.then(|| format!("The axis begins at {} {unit}, not at 0.", tick(axis.least * factor))));
    } else {
        notes = vec!["There is no figure to show.".to_owned()];
    }
    shapes.extend(names.iter().enumerate().map(|(at, name)| {
        let at = (left - GAP, TOP + ROW * (at as f64 + 0.5) + 4.0);
        text(at, Anchor::End, name, false, Some((columns, Keep::Name)))
    }));
    let lacks = summary.variants.iter().any(|variant| variant.runs > 0 && variant.stats(figure).is_none());
    notes.extend(lacks.then(|| "A variant without a bar has runs without this figure.".to_owned()));
    notes.extend(summary.label_line());
    let below = |line: usize| bottom + AXIS + LINE * line as f64;
    shapes.extend(notes.iter().enumerate().map(|(at, note)| text((GAP, below(at)), Anchor::Start, note, false, None)));
    Drawing { size: (WIDTH, below(notes.len())), label: title, panels: vec![Panel { shapes, ..Panel::default() }] }
}

fn text(at: (f64, f64), anchor: Anchor, text: &str, is_bold: bool, room: Option<(usize, Keep)>) -> Shape {
    Shape::Text(Text { at, anchor, is_bold, text: text.to_owned(), room })
}

/// The axis, and what guides the eye along it.
fn frame(axis: &Axis, bottom: f64, factor: f64) -> Vec<Shape> {
    let guides = axis.ticks().into_iter().map(|(_, place)| Shape::line([(place, TOP), (place, bottom)], Ink::Grey));
    let lines = [Shape::line([(axis.from, TOP), (axis.from, bottom), (axis.to, bottom)], Ink::Text)];
    guides.chain(lines).chain(axis.below(bottom, factor)).collect()
}

fn title(summary: &Summary) -> String {
    let of = if summary.variants.len() > 1 { " of each variant" } else { "" };
    format!("{}{of} over {}", summary.ranking.figure.title(), runs_of_each(&summary.variants))
}

/// All figures that have to have a place.
fn shown(variants: &[Variant], summary: &Summary) -> Vec<f64> {
    let figure = summary.ranking.figure;
    let runs = variants.iter().flat_map(|variant| &variant.replicates).filter_map(|run| figure.of(run));
    let intervals = summary.variants.iter().filter_map(|variant| variant.stats(figure)?.interval);
    let intervals = intervals.flat_map(|(low, high)| [low, high]);
    runs.chain(intervals).filter(|figure| figure.is_finite()).collect()
}

/// `None` without figures, or if they are too large to tell how far they are apart.
fn axis(shown: &[f64], (from, to): (f64, f64)) -> Option<Axis> {
    let lowest = shown.iter().copied().reduce(f64::min)?;
    let highest = shown.iter().copied().reduce(f64::max)?;
    let spread = highest - lowest;
    let is_cut = lowest > CUT_ABOVE * highest && spread > LEAST_SPREAD * highest;
    let (least, most) = if is_cut {
        let step = step(spread);
        (((lowest - ROOM * spread) / step).floor() * step, highest + ROOM * spread)
    } else {
        let (least, most) = (lowest.min(0.0), highest.max(0.0));
        let room = ROOM * (most - least);
        (if least < 0.0 { least - room } else { 0.0 }, if most > 0.0 { most + room } else { 1.0 })
    };
    let is_one = (most - least).is_finite() && most > least;
    is_one.then_some(Axis { least, most, is_log: false, from, to })
}

/// Runs and mean of a variant, whose row begins at this height.
#[allow(clippy::cast_precision_loss, reason = "places on a drawing")]
fn row(variant: &Variant, about: &VariantSummary, figure: Figure, axis: &Axis, top: f64) -> Vec<Shape> {
    let last = variant.replicates.len().saturating_sub(1).max(1) as f64;
    let runs = variant.replicates.iter().enumerate().filter_map(|(at, run)| {
        let down = if variant.replicates.len() == 1 { 0.5 } else { at as f64 / last };
        let at = (axis.place(figure.of(run)?)?, top + RUNS.0 + down * (RUNS.1 - RUNS.0));
        Some(Shape::Dot { at, radius: 2.2, ink: Ink::Blue })
    });
    let mean = about.stats(figure).and_then(|stats| mean(stats, axis, top + MEAN));
    runs.chain(mean.into_iter().flatten()).collect()
}

fn mean(stats: &Stats, axis: &Axis, down: f64) -> Option<Vec<Shape>> {
    let place = axis.place(stats.mean)?;
    let bar = stats.interval.filter(|(low, high)| low.is_finite() && high.is_finite()).map(|(low, high)| {
        let (low, high) = (axis.within(low), axis.within(high));
        let cap = |at| Shape::Line { through: vec![(at, down - 4.0), (at, down + 4.0)], width: 1.5, ink: Ink::Red };
        [Shape::Line { through: vec![(low, down), (high, down)], width: 1.5, ink: Ink::Red }, cap(low), cap(high)]
    });
    let dot = Shape::Dot { at: (place, down), radius: 3.5, ink: Ink::Red };
    Some(bar.into_iter().flatten().chain([dot]).collect())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Replicate, summarize},
        *,
    };
    use crate::{experiment::plot::PlotFormat, model::domain::Label};

    fn variant(name: &str, joules: &[f64]) -> Variant {
        let run = |(order, joules): (u32, &f64)| Replicate { order, joules: *joules, ..Replicate::default() };
        Variant { name: name.into(), replicates: (0..).zip(joules).map(run).collect() }
    }

    fn drawn(variants: &[Variant]) -> Drawing {
        drawing(variants, &summarize(variants).labelled(Some(Label::Modelled)))
    }

    fn shapes(drawing: &Drawing) -> &[Shape] {
        &drawing.panels[0].shapes
    }

    /// Places of the dots in this colour.
    fn dots(drawing: &Drawing, wanted: Ink) -> Vec<(f64, f64)> {
        let place = |shape: &Shape| match shape {
            Shape::Dot { at, ink, .. } if *ink == wanted => Some(*at),
            _ => None,
        };
        shapes(drawing).iter().filter_map(place).collect()
    }

    fn lines(drawing: &Drawing, wanted: Ink) -> Vec<&[(f64, f64)]> {
        let line = |shape| match shape {
            &Shape::Line { ref through, ink, .. } if ink == wanted => Some(through.as_slice()),
            _ => None,
        };
        shapes(drawing).iter().filter_map(line).collect()
    }

    fn texts(drawing: &Drawing) -> String {
        let text = |shape: &Shape| if let Shape::Text(text) = shape { Some(text.text.clone()) } else { None };
        shapes(drawing).iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_run_is_a_dot_and_every_variant_has_its_mean_with_its_interval() {
        let variants = [variant("few", &[20.0, 30.0, 25.0]), variant("one", &[12.0])];
        let drawing = drawn(&variants);
        let runs = dots(&drawing, Ink::Blue);
        // The axis is the line with a corner.
        let frame = lines(&drawing, Ink::Text).into_iter().find(|through| through.len() == 3).unwrap();
        let (left, bottom) = frame[1];
        let unit = (runs[0].0 - left) / 20.0;
        for ((x, _), joules) in runs.iter().zip([20.0, 30.0, 25.0, 12.0]) {
            assert!((x - left - unit * joules).abs() < 1e-9, "from 0, in proportion: {runs:?}");
        }
        let heights: Vec<f64> = runs.iter().map(|(_, y)| y - TOP).collect();
        assert_eq!(heights, [8.0, 16.0, 24.0, ROW + 16.0], "in their order, from the top");
        let means = dots(&drawing, Ink::Red);
        assert_eq!(means.iter().map(|(_, y)| y - TOP).collect::<Vec<_>>(), [MEAN, ROW + MEAN]);
        assert!((means[0].0 - left - unit * 25.0).abs() < 1e-9, "{means:?}");
        // Student's quantile of 2 degrees of freedom is 4.302653.
        let bars = lines(&drawing, Ink::Red);
        assert_eq!(bars.len(), 3, "one run has no interval: {bars:?}");
        let half = 4.302_653 * 5.0 / 3_f64.sqrt();
        assert!((bars[0][1].0 - left - unit * (25.0 + half)).abs() < 1e-3, "{bars:?}");
        assert!(runs.iter().chain(&means).all(|(x, y)| *x <= WIDTH - RIGHT && *y < bottom));
        let said = texts(&drawing);
        for expected in ["Energy of each variant over 1 to 3 runs", "Energy, J", "few\none", "energy is modelled"] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    #[test]
    fn an_axis_that_does_not_begin_at_0_says_where_it_begins() {
        for (joules, expected) in [
            (&[100.0, 101.0, 102.0, 101.5][..], Some("The axis begins at 99 J, not at 0.")),
            (&[0.012_3, 0.012_4], Some("The axis begins at 11.5 mJ, not at 0.")),
            (&[100.0, 10.0, 50.0, 20.0], None),
            (&[100.0, 100.0, 100.0], None),
            (&[100.0], None),
            (&[0.0, 0.0], None),
        ] {
            let said = texts(&drawn(&[variant("a", joules)]));
            match expected {
                Some(expected) => assert!(said.contains(expected), "{expected}: {said}"),
                None => assert!(!said.contains("axis begins") && said.contains("\n0\n"), "{joules:?}: {said}"),
            }
        }
    }

    #[test]
    fn nothing_is_drawn_outside_and_nothing_is_no_figure() {
        let long = "n".repeat(500);
        let many: Vec<Variant> = (0..200).map(|at| variant(&format!("n={at}"), &[f64::from(at)])).collect();
        for variants in [
            &[][..],
            &[variant("none", &[])],
            &[variant("one", &[1.0])],
            &[variant("negative", &[-1.0, -2.0]), variant("both", &[-1.0, 2.0])],
            &[variant("nan", &[f64::NAN, 1.0]), variant("inf", &[f64::INFINITY])],
            &[variant("huge", &[1e308, -1e308, 1.7e308]), variant("tiny", &[5e-324, 0.0])],
            &[variant("close", &[1.0, 1.0 + f64::EPSILON])],
            &[variant(&long, &[1.0, 2.0])],
            &many[..],
        ] {
            let drawing = drawn(variants);
            let (width, height) = drawing.size;
            let is_inside = |(x, y): &(f64, f64)| (0.0..=width).contains(x) && (0.0..=height).contains(y);
            for shape in shapes(&drawing) {
                let places = match shape {
                    Shape::Line { through, .. } => through.clone(),
                    Shape::Area { within, .. } => within.clone(),
                    Shape::Dot { at, .. } => vec![*at],
                    Shape::Text(text) => vec![text.at],
                };
                assert!(places.iter().all(is_inside), "{shape:?} of {:?}", variants.first().map(|one| &one.name));
            }
            let runs = variants.iter().flat_map(|variant| &variant.replicates).filter(|run| run.joules.is_finite());
            let has_axis = !texts(&drawing).contains("There is no figure to show.");
            assert_eq!(dots(&drawing, Ink::Blue).len(), if has_axis { runs.count() } else { 0 });
            let svg = drawing.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
            assert!(drawing.plot(PlotFormat::Pdf).unwrap().bytes.len() > 1000);
        }
    }

    #[test]
    fn names_do_no_harm_and_missing_figures_are_told() {
        let hostile = variant("<b>&\u{1b}[2J\u{202e}", &[1.0, 2.0]);
        let svg = drawn(&[hostile, variant("nan", &[f64::NAN, 1.0])]).svg();
        assert!(svg.contains("&lt;b&gt;&amp;\\x1b[2J\\u{202e}") && !svg.contains(['\u{1b}', '\u{202e}']), "{svg}");
        assert!(svg.contains("A variant without a bar has runs without this figure."), "{svg}");
    }

    #[test]
    fn joules_per_unit_of_work_are_drawn_where_work_is_counted() {
        let mut counted = variant("a", &[0.002, 0.004]);
        counted.replicates.iter_mut().for_each(|run| run.work = Some(2.0));
        let texts = texts(&drawn(&[counted]));
        assert!(texts.contains("Energy per unit of work over 2 runs\n") && texts.contains(", mJ/unit"), "{texts}");
    }
}
