//! Draws a flame graph as an SVG.
//!
//! The inferno library draws it from lines of `method;method µJ`. What inferno does not do is done
//! before and after. Before, names are made harmless and get their kind of code, and nodes narrower
//! than asked for are merged, so that widths still sum ([`lines`]). After, the drawing gets joules
//! and a dark scheme ([`finish`]).

use inferno::flamegraph::{
    self, Direction, Options, TextTruncateDirection,
    color::{BackgroundColor, Color, PaletteMap, StrokeColor},
};

use super::{Drawing, Drawn, finish, lines};
use crate::{
    dataset::error::{DataSetError, Result},
    report::tree::{Branches, CallTree, NodeKind, palette},
    text::count,
};

/// About half a pixel of the drawing, which is 1 200 wide.
const MIN_SHARE: f64 = 0.0005;

pub(super) fn of(drawn: &Drawn<'_>) -> Result<Vec<u8>> {
    let Drawn { drawing, profile, base, title, subtitle, .. } = drawn;
    let mut branches = Branches::new(drawing.shape, drawing.measure);
    branches.add(profile);
    base.iter().for_each(|base| branches.add_base(&base.profile));
    let whole = branches.tree();
    let tree = whole.pruned(least(drawing.min_share.unwrap_or(MIN_SHARE), whole.total().of(drawing.measure)));
    let lines = lines::of(&tree, base.as_ref().map(|base| base.factor));
    let title = format!("{title}{}", merged(&whole, &tree));
    let svg = draw(&lines, &tree, drawing, title, subtitle.clone())
        .map_err(|cause| DataSetError::Draw { path: drawing.data.clone(), cause })?;
    Ok(finish::finish(&svg))
}

/// Says how many nodes are not drawn.
pub(super) fn merged(whole: &CallTree, pruned: &CallTree) -> String {
    let kept = pruned.nodes.iter().filter(|node| pruned.label(node).kind != NodeKind::Others).count();
    match whole.nodes.len().saturating_sub(kept) {
        0 => String::new(),
        merged => format!("; {} in [others]", count(merged, "narrower box")),
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a threshold")]
fn least(share: f64, whole: u64) -> u64 {
    (share.clamp(0.0, 1.0) * whole as f64).ceil() as u64
}

const BACKGROUND: Color = Color { r: 0xfb, g: 0xfb, b: 0xfa };
const EDGE: Color = Color { r: 0xb4, g: 0xbf, b: 0xca };

pub(super) fn draw(
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
