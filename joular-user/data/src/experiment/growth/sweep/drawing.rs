//! Draws energy against the parameter: a panel for the total and one for each of the top methods, with points, their error
//! bars, the fitted curve and the band in which runs are.

use super::{Curve, Sweep};
use crate::{
    experiment::{
        cells::sized,
        growth::Growth,
        plot::{
            Anchor, Drawing, Ink, Panel, Shape, Text,
            axis::{Axis, is_log},
        },
    },
    text::Keep,
};

/// Size of a panel, and the room in it that axes and titles take.
const PANEL: (f64, f64) = (400.0, 280.0);
const LEFT: f64 = 64.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 40.0;

const COLUMNS: usize = 2;

/// Points of a curve.
const STEPS: u32 = 80;

/// Height of the line that says how the energy came about.
const LABEL: f64 = 24.0;

/// Of a normal distribution, 95 % are within so many standard deviations.
const ERRORS: f64 = 1.96;

impl Sweep {
    /// The drawing as SVG, for a file or to stand within a page. See [`Self::drawing`].
    pub fn svg(&self, top: usize) -> String {
        self.drawing(top).svg()
    }

    /// The drawing. It has the total and at most `top` methods, of those that have enough samples for a shape.
    #[allow(clippy::cast_precision_loss, reason = "places on a drawing")]
    pub fn drawing(&self, top: usize) -> Drawing {
        let mut curves = self.named(Some(top));
        curves.retain(|(_, curve)| curve.growth.is_some());
        let below = PANEL.1 * curves.len().div_ceil(COLUMNS) as f64;
        let panels = curves.iter().enumerate().map(|(at, (name, curve))| {
            let at = ((at % COLUMNS) as f64 * PANEL.0, (at / COLUMNS) as f64 * PANEL.1);
            panel(at, &name.to_string(), curve)
        });
        let label = self.label_line().map(|label| Panel {
            at: (0.0, below),
            title: None,
            shapes: vec![Shape::text((LEFT, LABEL / 2.0), Anchor::Start, label)],
        });
        Drawing {
            size: (PANEL.0 * COLUMNS as f64, below + LABEL),
            label: "Energy against the parameter".to_owned(),
            panels: panels.chain(label).collect(),
        }
    }
}

fn panel(at: (f64, f64), name: &str, curve: &Curve) -> Panel {
    let (prefix, factor) = sized(curve.points.iter().map(|point| point.joules).fold(0.0, f64::max));
    let growth = curve.growth.as_ref();
    let said = growth.map_or_else(|| curve.why_not.clone().unwrap_or_default(), Growth::described);
    let heading = |down, is_bold, text: &str, room| {
        let (at, text, room) = ((LEFT, down), text.to_owned(), Some(room));
        Shape::Text(Text { at, anchor: Anchor::Start, is_bold, text, room })
    };
    let mut shapes = vec![heading(18.0, true, name, (50, Keep::Name)), heading(34.0, false, &said, (58, Keep::Start))];
    if let Some((across, up)) = axes(curve) {
        let (right, bottom) = (PANEL.0 - RIGHT, PANEL.1 - BOTTOM);
        shapes.extend([
            Shape::line([(LEFT, TOP), (LEFT, bottom), (right, bottom)], Ink::Text),
            Shape::text((right, bottom + 32.0), Anchor::End, "n"),
            Shape::text((LEFT - 6.0, TOP - 4.0), Anchor::End, format!("{prefix}J")),
        ]);
        shapes.extend(across.below(bottom, 1.0).chain(up.beside(LEFT, factor)));
        shapes.extend(growth.into_iter().flat_map(|growth| fitted(growth, &across, &up)));
        shapes.extend(points(curve, &across, &up));
    }
    Panel { at, title: Some(name.to_owned()), shapes }
}

/// Runs with the errors of sampling.
fn points(curve: &Curve, across: &Axis, up: &Axis) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for point in &curve.points {
        let (Some(x), Some(y)) = (across.place(point.value), up.place(point.joules)) else { continue };
        let error = ERRORS * point.variance.sqrt();
        let (low, high) = (up.within(point.joules - error), up.within(point.joules + error));
        shapes.push(Shape::line([(x, low), (x, high)], Ink::Red));
        shapes.push(Shape::Dot { at: (x, y), radius: 2.5, ink: Ink::Red });
    }
    shapes
}

/// The curve and the band of single runs.
fn fitted(growth: &Growth, across: &Axis, up: &Axis) -> [Shape; 2] {
    let (mut through, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..=STEPS {
        let value = across.at(f64::from(step) / f64::from(STEPS));
        // Rounding must not take the ends out of the range.
        let value = value.clamp(growth.range.0, growth.range.1);
        let Some((x, found)) = across.place(value).zip(growth.predict(value)) else { continue };
        let joules = found.joules;
        through.push((x, up.within(joules.value)));
        lower.push((x, up.within(joules.low)));
        upper.push((x, up.within(joules.high)));
    }
    lower.extend(upper.into_iter().rev());
    [Shape::Area { within: lower, opacity: 0.2, ink: Ink::Blue }, Shape::Line { through, width: 1.5, ink: Ink::Blue }]
}

/// `None` if there is nothing to draw.
fn axes(curve: &Curve) -> Option<(Axis, Axis)> {
    let range = |figures: &mut dyn Iterator<Item = f64>| {
        figures.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), figure| (least.min(figure), most.max(figure)))
    };
    let (least, most) = range(&mut curve.points.iter().map(|point| point.value));
    let (lowest, highest) = range(&mut curve.points.iter().map(|point| point.joules));
    let reach = curve.points.iter().map(|point| point.joules + ERRORS * point.variance.sqrt());
    let highest = if highest > 0.0 { reach.fold(highest, f64::max) } else { highest };
    if least >= most || highest <= 0.0 || !(most - least).is_finite() || !highest.is_finite() {
        return None;
    }
    let across = Axis { least, most, is_log: is_log(least, most), from: LEFT, to: PANEL.0 - RIGHT };
    // Bands and error bars need room.
    let up = if is_log(lowest, highest) {
        Axis { least: lowest / 1.5, most: highest * 1.5, is_log: true, from: PANEL.1 - BOTTOM, to: TOP }
    } else {
        Axis { least: 0.0, most: highest * 1.1, is_log: false, from: PANEL.1 - BOTTOM, to: TOP }
    };
    Some((across, up))
}
