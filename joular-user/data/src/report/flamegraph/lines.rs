//! Writes a call tree as lines of folded stacks: `method;method µJ` or `method;class bytes`, and for a comparison
//! `method;method µJ-before µJ`.

use crate::{
    model::{frame::FrameKind, target_text::TargetText},
    report::{
        measure::{Measure, Unit},
        tree::{CallTree, Mix, NodeKind, short},
    },
    text::{self, Keep},
};

/// Unit of the figures.
pub(super) const fn unit(measure: Measure) -> &'static str {
    match measure.unit() {
        Unit::MicroJoules => "µJ",
        Unit::Bytes => "bytes",
        Unit::Count => measure.name(),
    }
}

/// Longer names are cut: a name may have 64 KiB.
const NAME_COLUMNS: usize = 240;

/// A node's name with the kinds of its code, harmless for the format: nothing in it
/// separates frames, ends the line or reads as one of its figures.
pub(super) fn name_of(name: &TargetText, kind: NodeKind, mix: &Mix, measure: Measure) -> String {
    let name = text::cut(&name.to_string().replace(';', ":"), NAME_COLUMNS, Keep::Name);
    match kind {
        NodeKind::Method => format!("{name} [{}]", mix.text(measure)),
        NodeKind::Class => format!("{name} [class]"),
        NodeKind::Frame(kind) if kind != FrameKind::Marker => format!("{name} [{}]", short(kind)),
        _ => without_figure(name),
    }
}

/// Changes what looks like a figure at the end, which would be taken for the energy before.
fn without_figure(name: String) -> String {
    match name.rsplit_once(' ') {
        Some((head, tail)) if tail.chars().all(|each| each.is_ascii_digit() || each == '.') => format!("{head}_{tail}"),
        _ => name,
    }
}

/// A line per node with anything of its own, depth first as the tree is. With a factor, what it had
/// before is multiplied by it and comes first.
pub(super) fn of(tree: &CallTree, factor: Option<f64>) -> Vec<String> {
    let names = tree.names();
    let mut path = String::new();
    // Where in `path` each open node's name ends.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut lines = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        while ends.last().is_some_and(|(open, _)| Some(*open) != node.parent) {
            ends.pop();
        }
        path.truncate(ends.last().map_or(0, |(_, end)| *end));
        // The root is drawn anyway.
        if node.parent.is_some() {
            if !path.is_empty() {
                path.push(';');
            }
            path.push_str(&name_of(&names[node.label], tree.label(node).kind, &node.mix, tree.measure));
        }
        ends.push((index, path.len()));
        let own = node.own.of(tree.measure);
        match factor {
            None if own > 0 => lines.push(format!("{path} {own}")),
            Some(factor) if own > 0 || node.base_own > 0 => {
                lines.push(format!("{path} {} {own}", scaled(node.base_own, factor)));
            }
            _ => {}
        }
    }
    lines
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for a picture"
)]
fn scaled(amount: u64, factor: f64) -> u64 {
    (amount as f64 * factor).round() as u64
}
