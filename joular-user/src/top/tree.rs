//! Makes a tree of call paths, and the rows of its nodes that are open. Methods that only call one other stand in one row
//! with it, so that the frames at the root of every stack take no room.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use joular_data::{model::units::MicroJoules, text::escape};

use super::{
    columns::Sort,
    figures::Method,
    rows::{Key, Place, Row},
    sums::Amount,
};

/// Nodes of a tree; what is below them when there are so many counts for the node that has room.
pub const MAX_NODES: usize = 65_536;
/// Rows of a tree.
pub const MAX_ROWS: usize = 4096;
/// A node with so many per cent of all is open from the beginning.
const OPEN_PERCENT: u64 = 5;

struct Node {
    id: u64,
    method: Arc<Method>,
    own: Amount,
    total: Amount,
    since: MicroJoules,
    children: Vec<usize>,
}

#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    roots: Vec<usize>,
    /// By parent and method.
    places: HashMap<(Option<usize>, u64), usize>,
    whole: Amount,
}

impl Tree {
    /// Adds a path, root → leaf, with what was spent on it in the time that is shown and since the start.
    pub fn add(&mut self, methods: &[Arc<Method>], amount: Amount, since: MicroJoules) {
        self.whole.add(amount);
        let mut at = None;
        for method in methods {
            let Some(node) = self.child(at, method) else { break };
            if let Some(node) = self.nodes.get_mut(node) {
                node.total.add(amount);
                node.since = node.since.saturating_add(since);
            }
            at = Some(node);
        }
        if let Some(leaf) = at.and_then(|at| self.nodes.get_mut(at)) {
            leaf.own.add(amount);
        }
    }

    fn child(&mut self, parent: Option<usize>, method: &Arc<Method>) -> Option<usize> {
        let place = (parent, method.id);
        if let Some(known) = self.places.get(&place) {
            return Some(*known);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let at = self.nodes.len();
        let above = parent.and_then(|parent| self.nodes.get(parent)).map_or(0, |node| node.id);
        self.nodes.push(Node {
            id: below(above, method.id),
            method: Arc::clone(method),
            own: Amount::default(),
            total: Amount::default(),
            since: MicroJoules(0),
            children: Vec::new(),
        });
        match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            Some(parent) => parent.children.push(at),
            None => self.roots.push(at),
        }
        self.places.insert(place, at);
        Some(at)
    }

    /// The rows of open nodes. `turned` has the nodes that are not as they are from the beginning.
    pub fn rows(&self, sort: Sort, turned: &HashSet<u64>) -> Vec<Row> {
        let mut rows = Vec::new();
        // Deep trees need no deep stack.
        let mut left: Vec<Row> = self.sorted(&self.roots, 0, sort, turned);
        while let Some(row) = left.pop() {
            if let Some(Place { node, is_open: Some(true), depth, .. }) = row.place
                && let Some(node) = self.nodes.get(node)
            {
                left.extend(self.sorted(&node.children, depth + 1, sort, turned));
            }
            rows.push(row);
            if rows.len() >= MAX_ROWS {
                break;
            }
        }
        rows
    }

    /// Rows of nodes, the first one last.
    fn sorted(&self, nodes: &[usize], depth: usize, sort: Sort, turned: &HashSet<u64>) -> Vec<Row> {
        let mut rows: Vec<Row> = nodes.iter().filter_map(|node| self.row(*node, depth, turned)).collect();
        sort.sort(&mut rows);
        rows.reverse();
        rows
    }

    fn row(&self, at: usize, depth: usize, turned: &HashSet<u64>) -> Option<Row> {
        let (mut at, mut node) = (at, self.nodes.get(at)?);
        let mut chain = vec![Arc::clone(&node.method)];
        while let [only] = node.children.as_slice()
            && node.own == Amount::default()
            && let Some(child) = self.nodes.get(*only)
            && child.since == node.since
        {
            (at, node) = (*only, child);
            chain.push(Arc::clone(&node.method));
        }
        let is_large = node.total.energy.0.saturating_mul(100) >= self.whole.energy.0.saturating_mul(OPEN_PERCENT);
        let is_open = is_large != turned.contains(&node.id);
        Some(Row {
            key: Key::Node(node.id),
            first: node.total,
            second: node.own,
            since: node.since,
            place: Some(Place { node: at, depth, chain, is_open: (!node.children.is_empty()).then_some(is_open) }),
            ..Row::named(escape(node.method.key.name()))
        })
    }
}

/// The id of a node by that of its parent and of its method.
const fn below(parent: u64, method: u64) -> u64 {
    // Of splitmix64: ids of methods are random already.
    (parent.rotate_left(23) ^ method).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use joular_data::{
        model::frame::{Frame, FrameKind},
        totals::MethodKey,
    };

    use super::*;

    fn amount(energy: u64) -> Amount {
        Amount { energy: MicroJoules(energy), cpu_ns: energy }
    }

    fn tree(paths: &[(&str, u64)]) -> Tree {
        let mut tree = Tree::default();
        for (path, energy) in paths {
            let method = |c: char| {
                let key = MethodKey::of(&Frame::new(FrameKind::Native, c.to_string()));
                Arc::new(Method { id: c.into(), key })
            };
            let methods: Vec<Arc<Method>> = path.chars().map(method).collect();
            tree.add(&methods, amount(*energy), MicroJoules(*energy));
        }
        tree
    }

    fn drawn(rows: &[Row]) -> Vec<String> {
        let line = |row: &Row| {
            let place = row.place.as_ref().unwrap();
            let sign = place.is_open.map_or(' ', |is_open| if is_open { '-' } else { '+' });
            format!("{}{sign}{} {} {}", " ".repeat(place.depth), row.name, row.first.energy.0, row.second.energy.0)
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn a_tree_has_totals_and_selves_and_joins_methods_that_only_call_one_other() {
        let tree = tree(&[("abcd", 50), ("abce", 30), ("abc", 10), ("xy", 10)]);
        let rows = tree.rows(Sort::default(), &HashSet::new());
        assert_eq!(drawn(&rows), ["-c 90 10", "  d 50 50", "  e 30 30", " y 10 10"]);
        let chain = &rows[0].place.as_ref().unwrap().chain;
        assert_eq!(chain.iter().map(|method| method.key.name()).collect::<String>(), "abc");
    }

    #[test]
    fn nodes_open_and_close_and_small_ones_are_closed_from_the_beginning() {
        let tree = tree(&[("ab", 96), ("ac", 1), ("xy", 2), ("xz", 1)]);
        let rows = tree.rows(Sort::default(), &HashSet::new());
        assert_eq!(drawn(&rows), ["-a 97 0", "  b 96 96", "  c 1 1", "+x 3 0"]);
        let turned = rows.iter().filter_map(|row| if let Key::Node(id) = row.key { Some(id) } else { None }).collect();
        assert_eq!(drawn(&tree.rows(Sort::default(), &turned)), ["+a 97 0", "-x 3 0", "  y 2 2", "  z 1 1"]);
    }

    #[test]
    fn deep_and_wide_trees_are_bounded_and_sum_to_the_whole() {
        let mut tree = Tree::default();
        let method = |id: u64| {
            let key = MethodKey::of(&Frame::new(FrameKind::Native, id.to_string()));
            Arc::new(Method { id, key })
        };
        let deep: Vec<Arc<Method>> = (1..=MAX_NODES as u64 + 10).map(method).collect();
        tree.add(&deep, amount(3), MicroJoules(3));
        (0..10).for_each(|id| tree.add(&[method(1), method(1_000_000 + id)], amount(1), MicroJoules(1)));
        assert_eq!(tree.nodes.len(), MAX_NODES);
        assert_eq!(tree.nodes.iter().map(|node| node.own.energy.0).sum::<u64>(), 13);
        let rows = tree.rows(Sort::default(), &HashSet::new());
        assert_eq!(rows[0].first, amount(13));
    }
}
