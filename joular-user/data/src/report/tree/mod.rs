//! Makes a call tree: the branches of a selection, merged as far as they have the same methods from
//! the root on.
//!
//! Frames are the same in a tree if method, signature and module are, as in tables; neither lines
//! nor kinds of code tell them apart. What a node has of each kind of code is its [`Mix`]; with
//! [`Kinds::Apart`] each kind has nodes of its own. Branches are sorted, and each goes on where it
//! leaves the one before it. So nodes stand in depth-first order, a parent before its children and
//! those by name. No energy is lost: every node's total is its own energy and its children's
//! totals, to the microjoule. Nodes too small to be drawn are kept in nodes that say so
//! ([`CallTree::pruned`]).

mod build;
mod mix;
pub mod palette;
mod pruning;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use self::pruning::Pruning;
pub use self::{
    build::{Branches, process_title},
    mix::{Mix, short},
};
use crate::{
    model::{frame::FrameKind, target_text::TargetText},
    report::{measure::Measure, profile::Amounts},
    text::signature::{Method, readable, told_apart},
};

/// What stands between the root and the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Levels {
    /// Nothing: all threads are one.
    #[default]
    Frames,
    Processes,
    /// Processes, and in them threads by name.
    Threads,
}

/// Whether a method that ran in several ways is one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinds {
    #[default]
    Merged,
    Apart,
}

/// How a tree is put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub levels: Levels,
    pub kinds: Kinds,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// The root.
    All,
    Process,
    Thread,
    /// A method, however its code ran: its [`Mix`] says.
    Method,
    Frame(FrameKind),
    /// The class of what the method above it allocated.
    Class,
    /// Nodes that were too small.
    Others,
}

impl NodeKind {
    /// All that a node of a tree can be: a method ran in some way.
    pub const ALL: [Self; FrameKind::ALL.len() + 5] = {
        let mut all = [Self::All; FrameKind::ALL.len() + 5];
        all[1] = Self::Process;
        all[2] = Self::Thread;
        let mut index = 0;
        while index < FrameKind::ALL.len() {
            all[index + 3] = Self::Frame(FrameKind::ALL[index]);
            index += 1;
        }
        all[index + 3] = Self::Class;
        all[index + 4] = Self::Others;
        all
    };

    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Method => "method",
            Self::Frame(kind) => kind.name(),
            Self::Class => "allocated-class",
            Self::Others => "others",
        }
    }
}

/// Stands for nodes that were too small.
pub const OTHERS: &str = "[others]";

/// What equal nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    pub name: TargetText,
    pub kind: NodeKind,
    pub signature: Option<TargetText>,
    pub module: Option<TargetText>,
}

impl Label {
    pub fn new(kind: NodeKind, name: impl Into<TargetText>) -> Self {
        Self { name: name.into(), kind, signature: None, module: None }
    }

    /// What tells it from others of the same name.
    pub fn detail(&self) -> Option<TargetText> {
        self.signature.as_ref().map(readable).or_else(|| self.module.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Place in [`CallTree::nodes`], before this one; `None` for the root.
    pub parent: Option<usize>,
    /// Place in [`CallTree::labels`].
    pub label: usize,
    pub own: Amounts,
    /// The node with everything below it.
    pub total: Amounts,
    /// The total by the kinds of the node's own code; empty for what is not code.
    pub mix: Mix,
    /// What it has itself in the data set that this one is compared with, in the tree's measure.
    pub base_own: u64,
    pub base_total: u64,
}

/// Call paths as a tree, with amounts in every node.
#[derive(Clone, Debug)]
pub struct CallTree {
    /// What is drawn: which of a node's amounts makes it large. Where bytes were allocated, paths end with a class.
    pub measure: Measure,
    /// By name.
    pub labels: Vec<Label>,
    /// Depth first; the root is the first one.
    pub nodes: Vec<Node>,
    /// What nodes have themselves of measures beside what is drawn.
    pub beside: Vec<Beside>,
}

/// What nodes of a tree have themselves of a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    pub measure: Measure,
    /// In the order of [`CallTree::nodes`].
    pub own: Vec<u64>,
}

impl Beside {
    /// What each node has with everything below it. A parent stands before its children.
    fn totals(&self, nodes: &[Node]) -> Vec<u64> {
        let mut totals = self.own.clone();
        for place in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[place].parent {
                totals[parent] = totals[parent].saturating_add(totals[place]);
            }
        }
        totals
    }
}

impl CallTree {
    pub fn label(&self, node: &Node) -> &Label {
        &self.labels[node.label]
    }

    /// What a node is; for a method, the kind of code that has most of it.
    pub fn kind(&self, node: &Node) -> NodeKind {
        match self.label(node).kind {
            NodeKind::Method => node.mix.main().map_or(NodeKind::Method, NodeKind::Frame),
            kind => kind,
        }
    }

    /// The names of all labels, in their order: with a signature or a module where a name has several.
    pub fn names(&self) -> Vec<TargetText> {
        let methods =
            self.labels.iter().map(|label| Method::new(&label.name, label.signature.as_ref(), label.module.as_ref()));
        told_apart(&methods.collect::<Vec<_>>())
    }

    /// What the whole tree adds up to.
    pub fn total(&self) -> Amounts {
        self.nodes.first().map(|root| root.total).unwrap_or_default()
    }

    /// The tree of the `most` nodes that have most, of the energy, of any other measure, or before. The others of one parent become
    /// one node, [`OTHERS`], which comes on top.
    #[must_use]
    pub fn largest(&self, most: usize) -> Self {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        // A parent has no less than its children and stands before them, so it stays if one of
        // them does, among equals too.
        let whole = self.total();
        let whole_base = self.nodes.first().map_or(0, |root| root.base_total);
        let part = |of: u64, whole: u64| (u128::from(of) << 64) / u128::from(whole.max(1));
        let beside: Vec<Vec<u64>> = self.beside.iter().map(|beside| beside.totals(&self.nodes)).collect();
        let rank = |place: &usize| {
            let total = &self.nodes[*place].total;
            let parts = beside.iter().map(|totals| part(totals[*place], totals[0]));
            let most = parts.fold(part(total.energy.0, whole.energy.0), u128::max);
            let most = most.max(part(total.beside, whole.beside)).max(part(self.nodes[*place].base_total, whole_base));
            (Reverse((most, total.energy, total.cpu_ns, total.samples)), *place)
        };
        if most < order.len() {
            order.select_nth_unstable_by_key(most, rank);
            order.truncate(most);
        }
        let mut kept = vec![false; self.nodes.len()];
        order.into_iter().for_each(|place| kept[place] = true);
        Pruning::of(self, kept).run()
    }

    /// The tree without nodes below `least` in both data sets. Those of one parent become one node,
    /// [`OTHERS`].
    #[must_use]
    pub fn pruned(&self, least: u64) -> Self {
        let is_kept =
            |node: &Node| node.total.of(self.measure) >= least || (node.base_total >= least && node.base_total > 0);
        Pruning::of(self, self.nodes.iter().map(is_kept).collect()).run()
    }
}
