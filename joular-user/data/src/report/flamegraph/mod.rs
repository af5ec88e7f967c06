//! Draws the call tree of a selection as an SVG with energy, bytes or counts as width, for `joular-bpf flamegraph`.
//!
//! The inferno library draws it from lines of `method;method µJ`. What inferno does not do is done
//! before and after. Before, names are made harmless and get their kind of code, and nodes narrower
//! than asked for are merged, so that widths still sum ([`lines`]). After, the drawing gets joules
//! and a dark scheme ([`finish`]).

mod finish;
mod lines;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use inferno::flamegraph::{
    self, Direction, Options, TextTruncateDirection,
    color::{BackgroundColor, Color, PaletteMap, StrokeColor},
};

use super::{
    headline::{self, Headline},
    measure::{self, Measure},
    profile::{App, Filter, Profile},
    tree::{Branches, CallTree, Mix, NodeKind, Shape, palette},
};
use crate::dataset::error::{DataSetError, Result};

/// How amounts of two data sets are made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalise {
    /// As if both had the same in all: shows which code takes a larger part.
    #[default]
    Share,
    /// As if both took the same time: shows which code draws more power, or allocates faster.
    Time,
    /// As they are.
    Nothing,
}

/// What to draw.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub data: PathBuf,
    /// The data set to compare with, which is the earlier one.
    pub base: Option<(PathBuf, Normalise)>,
    pub filter: Filter,
    pub app: Option<App>,
    pub shape: Shape,
    pub measure: Measure,
    /// Whether the root is at the top.
    pub is_icicle: bool,
    /// Part of the whole, 0 to 1, below which a node is merged with its siblings.
    pub min_share: f64,
}

/// Draws it.
///
/// # Errors
/// If a data set cannot be read, or there is nothing to draw.
pub fn svg(drawing: &Drawing) -> Result<(Vec<u8>, String)> {
    let read = |path: &Path| Profile::read(path, &drawing.filter, drawing.app.as_ref());
    let profile = read(&drawing.data)?;
    let base = match &drawing.base {
        Some((path, normalise)) => Some((read(path)?, *normalise, path)),
        None => None,
    };
    let measure = drawing.measure;
    let headline = headline_of(&profile, measure);
    must_have_any(&profile, measure, &drawing.data)?;
    let mut branches = Branches::new(drawing.shape, measure);
    branches.add(&profile);
    let mut subtitle = headline.clone();
    let mut factor = None;
    if let Some((base, normalise, path)) = &base {
        branches.add_base(base);
        must_have_any(base, measure, path)?;
        factor = Some(factor_of(*normalise, measure, &profile, base));
        subtitle = format!("{subtitle} · against {}", headline_of(base, measure));
    }
    let whole = branches.tree();
    let tree = whole.pruned(least(drawing.min_share, whole.total().of(measure)));
    let lines = lines::of(&tree, factor);
    let what = measure.title();
    let title = match base {
        Some((_, normalise, _)) => format!("{what}, compared {}", normalise.meaning(measure)),
        None => format!("{what} by call branch"),
    };
    let drawn = draw(&lines, &tree, drawing, title, subtitle)
        .map_err(|cause| DataSetError::Draw { path: drawing.data.clone(), cause })?;
    Ok((finish::finish(&drawn), headline))
}

impl Normalise {
    const fn meaning(self, measure: Measure) -> &'static str {
        match (self, measure) {
            (Self::Share, _) => "by share: red has a larger share than before, blue a smaller one",
            (Self::Time, Measure::Energy) => "by power: red draws more power than before, blue less",
            (Self::Time, Measure::Allocated) => "by rate: red allocates more in the same time than before, blue less",
            (Self::Nothing, Measure::Energy) => "by energy: red has more energy than before, blue less",
            (Self::Time, _) => "by rate: red has more in the same time than before, blue less",
            (Self::Nothing, Measure::Allocated) => "by bytes: red allocated more than before, blue less",
            (Self::Nothing, _) => "by amount: red has more than before, blue less",
        }
    }
}

fn headline_of(profile: &Profile, measure: Measure) -> String {
    match measure {
        Measure::Energy => Headline::of(profile).text(),
        measure => headline::of_measure(profile, measure),
    }
}

fn whole(profile: &Profile, measure: Measure) -> u64 {
    profile.facts(measure).fold(0_u64, |sum, fact| sum.saturating_add(fact.amount))
}

fn must_have_any(profile: &Profile, measure: Measure, path: &Path) -> Result<()> {
    if whole(profile, measure) == 0 { Err(measure::nothing(measure, path)) } else { Ok(()) }
}

/// The factor of what was before.
#[allow(clippy::cast_precision_loss, reason = "for a picture")]
fn factor_of(normalise: Normalise, measure: Measure, now: &Profile, before: &Profile) -> f64 {
    let ratio = |now: u64, before: u64| if before == 0 { 1.0 } else { now as f64 / before as f64 };
    match normalise {
        Normalise::Share => ratio(whole(now, measure), whole(before, measure)),
        Normalise::Time => ratio(now.overview.duration_ns, before.overview.duration_ns),
        Normalise::Nothing => 1.0,
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a threshold")]
fn least(share: f64, whole: u64) -> u64 {
    (share.clamp(0.0, 1.0) * whole as f64).ceil() as u64
}

const BACKGROUND: Color = Color { r: 0xfb, g: 0xfb, b: 0xfa };
const EDGE: Color = Color { r: 0xb4, g: 0xbf, b: 0xca };

fn draw(
    lines: &[String],
    tree: &CallTree,
    drawing: &Drawing,
    title: String,
    subtitle: String,
) -> std::io::Result<Vec<u8>> {
    let mut colors = PaletteMap::default();
    let names = tree.names();
    for node in &tree.nodes {
        let [r, g, b] = palette::color(tree.kind(node));
        let name = lines::name_of(&names[node.label], tree.label(node).kind, &node.mix, tree.measure);
        colors.insert(name, Color { r, g, b });
    }
    // How inferno knows the root.
    let [r, g, b] = palette::color(NodeKind::All);
    colors.insert("", Color { r, g, b });
    let mut options = Options::default();
    options.title = title;
    options.subtitle = Some(subtitle);
    options.count_name = lines::unit(tree.measure).into();
    options.name_type = String::new();
    options.direction = if drawing.is_icicle { Direction::Inverted } else { Direction::Straight };
    options.bgcolors = Some(BackgroundColor::Flat(BACKGROUND));
    options.text_truncate_direction = TextTruncateDirection::Left;
    options.palette_map = Some(&mut colors);
    if drawing.base.is_some() {
        // What did not change is white: its boxes are seen by their edges.
        options.stroke_color = StrokeColor::Color(EDGE);
    }
    // Pruned before, so that widths sum.
    options.min_width = 0.0;
    let mut drawn = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)?;
    Ok(drawn)
}
