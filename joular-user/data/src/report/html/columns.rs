//! Lays call trees out for a page's scripts: nodes depth first, column by column. Texts are places in `strings`, kinds
//! in `kinds`.

use serde::Serialize;

use super::strings::Strings;
use crate::{
    model::target_text::TargetText,
    report::{
        measure::{Measure, Unit},
        profile::Amounts,
        tree::{CallTree, Mix, NodeKind, palette},
    },
};

/// A measure that a flame graph can be drawn of.
#[derive(Debug, Serialize)]
pub(in crate::report) struct PageMeasure {
    name: &'static str,
    title: String,
    is_bytes: bool,
}

impl PageMeasure {
    pub(in crate::report) fn of(measure: Measure) -> Self {
        Self { name: measure.name(), title: measure.title().to_lowercase(), is_bytes: measure.unit() == Unit::Bytes }
    }
}

/// What nodes are, each with its colour.
pub(in crate::report) fn kinds() -> Vec<(&'static str, String)> {
    NodeKind::ALL.map(|kind| (kind.name(), palette::hex(kind))).into()
}

pub(super) fn kind_of(kind: NodeKind) -> usize {
    NodeKind::ALL.iter().position(|one| *one == kind).unwrap_or(0)
}

/// What nodes are, and where.
#[derive(Debug, Default, Serialize)]
struct Nodes {
    /// How many nodes, the smallest ones, became part of others.
    merged: usize,
    depth: Vec<u32>,
    name: Vec<usize>,
    /// The one that has most.
    kind: Vec<usize>,
    /// For a method that ran in several ways: kinds, each with its part of the node's total.
    mix: Vec<Vec<(usize, u64)>>,
    /// Signature or library; -1 for neither.
    detail: Vec<i64>,
}

impl Nodes {
    /// Of the part of a tree that a page has, `whole` before.
    fn of(tree: &CallTree, whole: usize, most: usize, strings: &mut Strings) -> Self {
        let part = if tree.total().of(tree.measure) > 0 { Part::Of(tree.measure) } else { Part::CpuTime };
        let mut nodes = Self { merged: whole.saturating_sub(most), ..Self::default() };
        for node in &tree.nodes {
            let label = tree.label(node);
            let depth = node.parent.and_then(|parent| nodes.depth.get(parent)).map_or(0, |depth| depth + 1);
            nodes.depth.push(depth);
            nodes.name.push(strings.place(label.name.raw()));
            nodes.kind.push(kind_of(tree.kind(node)));
            nodes.mix.push(parts(&node.mix, part));
            nodes.detail.push(strings.maybe(label.detail().as_ref().map(TargetText::raw)));
        }
        nodes
    }
}

/// What a node's kinds of code divide.
#[derive(Clone, Copy)]
enum Part {
    Of(Measure),
    CpuTime,
}

/// Kinds with their parts, if there are several.
fn parts(mix: &Mix, part: Part) -> Vec<(usize, u64)> {
    let of = |amounts: &Amounts| match part {
        Part::Of(measure) => amounts.of(measure),
        Part::CpuTime => amounts.cpu_ns / 1000,
    };
    let kinds = mix.by_size();
    let parts: Vec<_> = kinds.iter().map(|(kind, amounts)| (kind_of(NodeKind::Frame(*kind)), of(amounts))).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// A tree of energy and all that goes with it; figures are a node's own.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Tree {
    #[serde(flatten)]
    nodes: Nodes,
    self_uj: Vec<u64>,
    self_cpu_us: Vec<u64>,
    self_samples: Vec<u64>,
    /// Part of the energy that is inferred from samples of other windows.
    self_inferred_uj: Vec<u64>,
    /// By measure, then node.
    self_beside: Vec<Vec<u64>>,
}

impl Tree {
    /// The `most` nodes that have most, and the others of each parent together.
    pub(in crate::report) fn of(whole: &CallTree, most: usize, strings: &mut Strings) -> Self {
        let tree = whole.largest(most);
        let own = |of: fn(&Amounts) -> u64| tree.nodes.iter().map(|node| of(&node.own)).collect();
        Self {
            nodes: Nodes::of(&tree, whole.nodes.len(), most, strings),
            self_uj: own(|amounts| amounts.energy.0),
            self_cpu_us: own(|amounts| amounts.cpu_ns / 1000),
            self_samples: own(|amounts| amounts.samples),
            self_inferred_uj: own(|amounts| amounts.inferred.0),
            self_beside: tree.beside.into_iter().map(|beside| beside.own).collect(),
        }
    }
}

/// A tree of two data sets, in one measure; figures are a node's own.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Pair {
    #[serde(flatten)]
    nodes: Nodes,
    self_a: Vec<u64>,
    self_b: Vec<u64>,
    /// What makes figures of amounts, in `unit`.
    a_factor: f64,
    b_factor: f64,
    unit: String,
}

impl Pair {
    /// Of a tree of B that has A as what it is compared with. Each factor makes figures of a side's amounts.
    pub(in crate::report) fn of(
        whole: &CallTree,
        most: usize,
        [a_factor, b_factor]: [f64; 2],
        unit: String,
        strings: &mut Strings,
    ) -> Self {
        let tree = whole.largest(most);
        Self {
            nodes: Nodes::of(&tree, whole.nodes.len(), most, strings),
            self_a: tree.nodes.iter().map(|node| node.base_own).collect(),
            self_b: tree.nodes.iter().map(|node| node.own.of(tree.measure)).collect(),
            a_factor,
            b_factor,
            unit,
        }
    }
}
