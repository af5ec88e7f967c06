//! Draws energy against the parameter as SVG: a panel for the total and one for each of the top methods, with points,
//! their error bars, the fitted curve and the band in which runs are.
//!
//! Lines and letters have the colour of the text around, so the drawing fits a page in light and in dark.

use std::fmt::Write as _;

use super::{Curve, Sweep};
use crate::{
    experiment::{
        cells::{number, sized},
        growth::Growth,
    },
    text::{Keep, cut},
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

/// From so many times the smallest figure on, an axis is logarithmic.
const DECADES_FROM: f64 = 20.0;

/// Of a normal distribution, 95 % are within so many standard deviations.
const ERRORS: f64 = 1.96;

impl Sweep {
    /// The drawing, for a file or to stand within a page. It has the total and at most `top` methods, of those that have
    /// enough samples for a shape.
    #[allow(clippy::cast_precision_loss, reason = "places on a drawing")]
    pub fn svg(&self, top: usize) -> String {
        let mut panels = self.named(Some(top));
        panels.retain(|(_, curve)| curve.growth.is_some());
        let rows = panels.len().div_ceil(COLUMNS);
        let below = PANEL.1 * rows as f64;
        let (width, height) = (PANEL.0 * COLUMNS as f64, below + LABEL);
        let mut drawn = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\" fill=\"currentColor\" role=\"img\" \
             aria-label=\"Energy against the parameter\">\n"
        );
        for (at, (name, curve)) in panels.iter().enumerate() {
            let (x, y) = ((at % COLUMNS) as f64 * PANEL.0, (at / COLUMNS) as f64 * PANEL.1);
            let _ = writeln!(drawn, "<g transform=\"translate({x} {y})\">");
            panel(&mut drawn, &name.to_string(), curve);
            drawn.push_str("</g>\n");
        }
        if let Some(label) = self.label_line() {
            let _ = writeln!(drawn, "<text x=\"{LEFT}\" y=\"{:.0}\">{}</text>", below + LABEL / 2.0, xml(&label));
        }
        drawn.push_str("</svg>\n");
        drawn
    }
}

fn panel(drawn: &mut String, name: &str, curve: &Curve) {
    let (prefix, factor) = sized(curve.points.iter().map(|point| point.joules).fold(0.0, f64::max));
    let growth = curve.growth.as_ref();
    let said = growth.map_or_else(|| curve.why_not.clone().unwrap_or_default(), Growth::described);
    let _ = writeln!(
        drawn,
        "<title>{}</title><text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">{}</text><text x=\"{LEFT}\" y=\"34\">{}</text>",
        xml(name),
        xml(&cut(name, 50, Keep::Name)),
        xml(&cut(&said, 58, Keep::Start))
    );
    let Some((across, up)) = axes(curve) else { return };
    let (right, bottom) = (PANEL.0 - RIGHT, PANEL.1 - BOTTOM);
    let _ = writeln!(
        drawn,
        "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"currentColor\"/>\
         <text x=\"{right}\" y=\"{:.0}\" text-anchor=\"end\">n</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{prefix}J</text>",
        bottom + 32.0,
        LEFT - 6.0,
        TOP - 4.0
    );
    for (value, place) in across.ticks() {
        let _ = writeln!(
            drawn,
            "<path d=\"M{place:.1} {bottom}v4\" stroke=\"currentColor\"/><text x=\"{place:.1}\" y=\"{:.0}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            tick(value)
        );
    }
    for (value, place) in up.ticks() {
        let _ = writeln!(
            drawn,
            "<path d=\"M{LEFT} {place:.1}h-4\" stroke=\"currentColor\"/><text x=\"{:.0}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            place + 4.0,
            tick(value * factor)
        );
    }
    if let Some(growth) = growth {
        fitted(drawn, growth, &across, &up);
    }
    for point in &curve.points {
        let (Some(x), Some(y)) = (across.place(point.value), up.place(point.joules)) else { continue };
        let error = ERRORS * point.variance.sqrt();
        let (low, high) = (up.within(point.joules - error), up.within(point.joules + error));
        let _ = writeln!(
            drawn,
            "<path d=\"M{x:.1} {low:.1}V{high:.1}\" stroke=\"#d1495b\"/><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" \
             fill=\"#d1495b\"/>"
        );
    }
}

/// The curve and the band of single runs.
fn fitted(drawn: &mut String, growth: &Growth, across: &Axis, up: &Axis) {
    let (mut line, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..=STEPS {
        let value = across.at(f64::from(step) / f64::from(STEPS));
        // Rounding must not take the ends out of the range.
        let value = value.clamp(growth.range.0, growth.range.1);
        let Some((x, found)) = across.place(value).zip(growth.predict(value)) else { continue };
        let joules = found.joules;
        line.push(format!("{x:.1},{:.1}", up.within(joules.value)));
        lower.push(format!("{x:.1},{:.1}", up.within(joules.low)));
        upper.push(format!("{x:.1},{:.1}", up.within(joules.high)));
    }
    upper.reverse();
    let _ = writeln!(
        drawn,
        "<polygon points=\"{} {}\" fill=\"#2e86ab\" fill-opacity=\"0.2\"/>\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#2e86ab\" stroke-width=\"1.5\"/>",
        lower.join(" "),
        upper.join(" "),
        line.join(" ")
    );
}

/// From figures to places on one axis.
struct Axis {
    least: f64,
    most: f64,
    is_log: bool,
    /// Places of both ends.
    from: f64,
    to: f64,
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
    let is_log = |least: f64, most: f64| least > 0.0 && most / least >= DECADES_FROM;
    let across = Axis { least, most, is_log: is_log(least, most), from: LEFT, to: PANEL.0 - RIGHT };
    // Bands and error bars need room.
    let up = if is_log(lowest, highest) {
        Axis { least: lowest / 1.5, most: highest * 1.5, is_log: true, from: PANEL.1 - BOTTOM, to: TOP }
    } else {
        Axis { least: 0.0, most: highest * 1.1, is_log: false, from: PANEL.1 - BOTTOM, to: TOP }
    };
    Some((across, up))
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
    fn at(&self, part: f64) -> f64 {
        if self.is_log {
            self.least * (self.most / self.least).powf(part)
        } else {
            self.least + part * (self.most - self.least)
        }
    }

    /// `None` where the axis has no place for it, such as for 0 on a logarithmic one.
    fn place(&self, figure: f64) -> Option<f64> {
        let part = self.part(figure);
        part.is_finite().then(|| self.from + part.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// The place, or the end of the axis that is nearest.
    fn within(&self, figure: f64) -> f64 {
        self.place(figure).unwrap_or(self.from)
    }

    /// Round figures and their places.
    fn ticks(&self) -> Vec<(f64, f64)> {
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
        let rough = (self.most - self.least) / 5.0;
        let ten = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step).ceil();
        (0..10).map(|tick| (first + f64::from(tick)) * step).filter(|tick| *tick <= self.most).collect()
    }
}

/// `1000`, `0.02`, `1e6`.
fn tick(value: f64) -> String {
    // Steps are round but for the last bits.
    let text = number(value);
    match text.parse::<f64>() {
        Ok(rounded) if rounded != 0.0 && !(1e-3..1e5).contains(&rounded.abs()) => format!("{rounded:e}"),
        _ => text,
    }
}

/// Text within XML or HTML.
pub(super) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
