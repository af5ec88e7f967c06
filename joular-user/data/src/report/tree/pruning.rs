//! Copies a tree without its smallest nodes: those of one parent become one, so that all sums stay.

use super::{Beside, CallTree, Label, Mix, Node, NodeKind, OTHERS};
use crate::report::profile::Amounts;

/// A tree being copied without its smallest nodes.
pub(super) struct Pruning<'a> {
    from: &'a CallTree,
    /// Which nodes stay, with their parents; the root always stays.
    kept: Vec<bool>,
    to: CallTree,
    others: usize,
}

impl<'a> Pruning<'a> {
    pub(super) fn of(from: &'a CallTree, kept: Vec<bool>) -> Self {
        let mut labels = from.labels.clone();
        labels.push(Label::new(NodeKind::Others, OTHERS));
        let to = CallTree { measure: from.measure, labels, nodes: Vec::new(), beside: Vec::new() };
        Self { from, kept, others: to.labels.len() - 1, to }
    }

    pub(super) fn run(mut self) -> CallTree {
        // Where each node of the old tree is in the new one; and what was cut off each new one.
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.from.nodes.len());
        let mut cut: Vec<Option<Node>> = Vec::new();
        for (node, is_kept) in self.from.nodes.iter().zip(std::mem::take(&mut self.kept)) {
            let parent = node.parent.map(|parent| places[parent]);
            let place = match parent {
                // The root stays, whatever it has.
                None => Some(self.copy(node, None, &mut cut)),
                Some(Some(parent)) if is_kept => Some(self.copy(node, Some(parent), &mut cut)),
                Some(Some(parent)) => {
                    self.cut_off(&mut cut[parent], node, parent);
                    None
                }
                Some(None) => None,
            };
            places.push(place);
        }
        self.in_order(&places, cut)
    }

    fn copy(&mut self, node: &Node, parent: Option<usize>, cut: &mut Vec<Option<Node>>) -> usize {
        self.to.nodes.push(Node { parent, ..node.clone() });
        cut.push(None);
        self.to.nodes.len() - 1
    }

    fn cut_off(&self, sum: &mut Option<Node>, node: &Node, parent: usize) {
        let nothing = Node {
            parent: Some(parent),
            label: self.others,
            own: Amounts::default(),
            total: Amounts::default(),
            mix: Mix::default(),
            base_own: 0,
            base_total: 0,
        };
        let sum = sum.get_or_insert(nothing);
        sum.total.plus(&node.total);
        sum.base_total = sum.base_total.saturating_add(node.base_total);
        sum.own = sum.total;
        sum.base_own = sum.base_total;
    }

    /// Puts nodes for what was cut off behind their siblings, which are depth first. `copied` says where nodes of the old
    /// tree are among those that were copied.
    fn in_order(self, copied: &[Option<usize>], cut: Vec<Option<Node>>) -> CallTree {
        let old = self.to.nodes;
        let mut nodes: Vec<Node> = Vec::with_capacity(old.len() + cut.iter().flatten().count());
        let (mut places, mut others) = (vec![0; old.len()], vec![0; old.len()]);
        let mut open: Vec<usize> = Vec::new();
        let mut close = |nodes: &mut Vec<Node>, places: &[usize], place: usize| {
            others[place] = nodes.len();
            nodes.extend(
                cut[place].clone().map(|node| Node { parent: node.parent.map(|parent| places[parent]), ..node }),
            );
        };
        for (place, node) in old.iter().enumerate() {
            while let Some(last) = open.last().copied().filter(|last| Some(*last) != node.parent) {
                close(&mut nodes, &places, last);
                open.pop();
            }
            places[place] = nodes.len();
            nodes.push(Node { parent: node.parent.map(|parent| places[parent]), ..node.clone() });
            open.push(place);
        }
        while let Some(last) = open.pop() {
            close(&mut nodes, &places, last);
        }
        // Where each old node is: a copy, or part of the others of its nearest parent that was copied.
        let mut moved_to: Vec<usize> = Vec::with_capacity(copied.len());
        for (node, copy) in self.from.nodes.iter().zip(copied) {
            let parent = node.parent.map(|parent| (copied[parent], moved_to[parent]));
            moved_to.push(match (copy, parent) {
                (Some(copy), _) => places[*copy],
                (None, Some((Some(parent), _))) => others[parent],
                (None, Some((None, moved_to))) => moved_to,
                (None, None) => 0,
            });
        }
        let beside = self.from.beside.iter().map(|beside| {
            let mut own = vec![0_u64; nodes.len()];
            moved_to
                .iter()
                .zip(&beside.own)
                .for_each(|(place, amount)| own[*place] = own[*place].saturating_add(*amount));
            Beside { measure: beside.measure, own }
        });
        CallTree { measure: self.to.measure, labels: self.to.labels, beside: beside.collect(), nodes }
    }
}
