//! Builds a tree from branches.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Beside, CallTree, Kinds, Label, Levels, Mix, Node, NodeKind, Shape};
use crate::{
    model::{
        frame::{Frame, FrameKind},
        target_text::TargetText,
    },
    report::{
        measure::Measure,
        profile::{Amounts, Catalog, PathIndex, Process, Profile, ThreadIndex, ThreadPath},
    },
};

/// A branch: the place of its labels, and its amounts.
#[derive(Clone, Copy, Debug)]
struct Branch {
    start: usize,
    end: usize,
    own: Amounts,
    base: u64,
    /// Of a measure beside what is drawn: its place in [`Branches::beside`], and the amount.
    beside: Option<(usize, u64)>,
}

/// A frame of a catalog in the tree.
#[derive(Clone, Copy, Debug)]
struct Placed {
    label: u32,
    kind: FrameKind,
    is_of_file: bool,
}

/// What a thread has on a path, and of which class if it allocated.
struct Entry<'p> {
    thread: ThreadIndex,
    path: PathIndex,
    class: Option<&'p TargetText>,
    amounts: Amounts,
}

fn entries_of(profile: &Profile) -> impl Iterator<Item = Entry<'_>> {
    let of =
        |entry: &ThreadPath| Entry { thread: entry.thread, path: entry.path, class: None, amounts: entry.amounts() };
    profile.entries.iter().map(of)
}

/// Of a measure that is not energy.
fn facts_of(profile: &Profile, measure: Measure) -> impl Iterator<Item = Entry<'_>> {
    profile.facts(measure).map(|fact| Entry {
        thread: fact.thread,
        path: fact.path,
        class: profile.class_of(&fact),
        amounts: Amounts { beside: fact.amount, ..Amounts::default() },
    })
}

/// Branches of one data set, or of two to compare, that become a tree.
#[derive(Debug, Default)]
pub struct Branches {
    shape: Shape,
    measure: Measure,
    labels: Vec<Label>,
    places: HashMap<Label, u32>,
    /// Labels of all branches, one branch after the other.
    arena: Vec<u32>,
    /// Beside each label, the kind of code; `None` for what is not code.
    kinds: Vec<Option<FrameKind>>,
    branches: Vec<Branch>,
    /// Measures beside what is drawn.
    beside: Vec<Measure>,
}

impl Branches {
    pub fn new(shape: Shape, measure: Measure) -> Self {
        Self { shape, measure, ..Self::default() }
    }

    /// Takes what the profile that the tree is about has of the measure.
    pub fn add(&mut self, profile: &Profile) {
        match self.measure {
            Measure::Energy => self.take(profile, entries_of(profile), |own| (own, 0)),
            measure => self.take(profile, facts_of(profile, measure), |own| (own, 0)),
        }
    }

    /// Takes what the profile that the tree is about has of a measure beside what is drawn.
    pub fn add_beside(&mut self, profile: &Profile, measure: Measure) {
        let (column, first) = (self.beside.len(), self.branches.len());
        self.beside.push(measure);
        self.take(profile, facts_of(profile, measure), |own| (own, 0));
        for branch in &mut self.branches[first..] {
            branch.beside = Some((column, branch.own.beside));
            branch.own = Amounts::default();
        }
    }

    /// Takes the profile that it is compared with.
    pub fn add_base(&mut self, profile: &Profile) {
        let measure = self.measure;
        let base = |amounts: Amounts| (Amounts::default(), amounts.of(measure));
        match measure {
            Measure::Energy => self.take(profile, entries_of(profile), base),
            measure => self.take(profile, facts_of(profile, measure), base),
        }
    }

    /// Takes entries, of which `figures` makes what they have in this data set and in the one before.
    fn take<'p>(
        &mut self,
        profile: &'p Profile,
        entries: impl Iterator<Item = Entry<'p>>,
        figures: impl Fn(Amounts) -> (Amounts, u64),
    ) {
        let catalog = &profile.catalog;
        let Shape { levels, kinds } = self.shape;
        let known = catalog.paths.frames().iter();
        let frames: Vec<Placed> = known
            .map(|frame| Placed {
                label: self.place(Label::of_frame(frame, kinds)),
                kind: frame.kind,
                is_of_file: frame.is_of_file(),
            })
            .collect();
        let prefixes: Vec<Vec<u32>> =
            (0..catalog.threads.len()).map(|thread| self.prefix(catalog, thread, levels)).collect();
        // Threads that the tree does not tell apart have one branch for a path together.
        type Place<'p> = (&'p [u32], PathIndex, Option<&'p TargetText>);
        let mut sums: HashMap<Place<'_>, (Amounts, u64), RandomState> = HashMap::default();
        for entry in entries {
            let (own, base) = figures(entry.amounts);
            let (own_sum, base_sum) =
                sums.entry((prefixes[entry.thread.index()].as_slice(), entry.path, entry.class)).or_default();
            own_sum.plus(&own);
            *base_sum = base_sum.saturating_add(base);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        for ((prefix, path, class), (own, base)) in sums {
            let start = self.arena.len();
            self.arena.extend(prefix);
            self.kinds.resize(self.arena.len(), None);
            for frame in catalog.paths.path(path) {
                let Placed { label, kind, is_of_file } = frames[frame.index()];
                // Functions of a file without symbols that call each other are one frame.
                if is_of_file && self.arena[start..].last() == Some(&label) {
                    continue;
                }
                self.arena.push(label);
                self.kinds.push(Some(kind));
            }
            if let Some(class) = class {
                let label = self.place(Label::new(NodeKind::Class, class.clone()));
                self.arena.push(label);
                self.kinds.push(None);
            }
            self.branches.push(Branch { start, end: self.arena.len(), own, base, beside: None });
        }
    }

    fn prefix(&mut self, catalog: &Catalog, thread: usize, levels: Levels) -> Vec<u32> {
        let thread = &catalog.threads[thread];
        let process = Label::new(NodeKind::Process, process_title(catalog, catalog.process(thread.process)));
        match levels {
            Levels::Frames => Vec::new(),
            Levels::Processes => vec![self.place(process)],
            Levels::Threads => {
                let thread = Label::new(NodeKind::Thread, thread.name.clone());
                vec![self.place(process), self.place(thread)]
            }
        }
    }

    fn place(&mut self, label: Label) -> u32 {
        if let Some(place) = self.places.get(&label) {
            return *place;
        }
        // 2^32 labels would need terabytes before this saturates.
        let place = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.labels.push(label.clone());
        self.places.insert(label, place);
        place
    }

    /// The tree of all that was taken.
    pub fn tree(mut self) -> CallTree {
        self.place(Label::new(NodeKind::All, "all"));
        self.sort_labels();
        let Self { measure, labels, arena, kinds, mut branches, beside, .. } = self;
        branches.sort_by(|a, b| arena[a.start..a.end].cmp(&arena[b.start..b.end]));
        let root = labels.iter().position(|label| label.kind == NodeKind::All).unwrap_or(0);
        let mut nodes = vec![node(None, root)];
        // Nodes from the root to where the last branch ended.
        let mut open = vec![0];
        let mut last: &[u32] = &[];
        // What was met of measures beside: the node, the place of the measure, and the amount.
        let mut found: Vec<(usize, usize, u64)> = Vec::new();
        for branch in &branches {
            let path = &arena[branch.start..branch.end];
            let common = path.iter().zip(last).take_while(|(one, other)| one == other).count();
            open.truncate(common + 1);
            for label in &path[common..] {
                let parent = open.last().copied();
                open.push(nodes.len());
                nodes.push(node(parent, *label as usize));
            }
            // A method that only allocated, or that ran only before, has a kind, too.
            let of_kind = branch.beside.map_or(branch.own, |(_, beside)| Amounts { beside, ..Amounts::default() });
            for (node, kind) in open.iter().skip(1).zip(&kinds[branch.start..branch.end]) {
                if let (Some(node), Some(kind)) = (nodes.get_mut(*node), kind) {
                    node.mix.add(*kind, &of_kind);
                }
            }
            let place = open.last().copied().unwrap_or(0);
            found.extend(branch.beside.map(|(column, amount)| (place, column, amount)));
            if let Some(leaf) = nodes.get_mut(place) {
                leaf.own.plus(&branch.own);
                leaf.base_own = leaf.base_own.saturating_add(branch.base);
            }
            last = path;
        }
        sum_up(&mut nodes);
        let mut beside: Vec<Beside> =
            beside.into_iter().map(|measure| Beside { measure, own: vec![0; nodes.len()] }).collect();
        for (place, column, amount) in found {
            let own = &mut beside[column].own[place];
            *own = own.saturating_add(amount);
        }
        CallTree { measure, labels, nodes, beside }
    }

    /// Sorts labels, so that siblings, which are sorted by label, are sorted by name.
    fn sort_labels(&mut self) {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_by(|a, b| self.labels[*a].cmp(&self.labels[*b]));
        let mut ranks = vec![0; order.len()];
        for (rank, place) in (0..).zip(&order) {
            ranks[*place] = rank;
        }
        for label in &mut self.arena {
            *label = ranks[*label as usize];
        }
        self.labels = order.into_iter().map(|place| self.labels[place].clone()).collect();
    }
}

fn node(parent: Option<usize>, label: usize) -> Node {
    let nothing = Amounts::default();
    Node { parent, label, own: nothing, total: nothing, mix: Mix::default(), base_own: 0, base_total: 0 }
}

/// Sums totals. Children come after their parents, so going backwards all of them are done before.
fn sum_up(nodes: &mut [Node]) {
    for index in (0..nodes.len()).rev() {
        let node = &mut nodes[index];
        node.total.plus(&node.own.clone());
        node.base_total = node.base_total.saturating_add(node.base_own);
        let (parent, total, base) = (node.parent, node.total, node.base_total);
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.total.plus(&total);
            parent.base_total = parent.base_total.saturating_add(base);
        }
    }
}

impl Label {
    pub fn of_frame(frame: &Frame, kinds: Kinds) -> Self {
        let is_told = kinds == Kinds::Apart || frame.kind == FrameKind::Marker;
        Self {
            name: frame.method(),
            kind: if is_told { NodeKind::Frame(frame.kind) } else { NodeKind::Method },
            signature: frame.signature.clone(),
            module: frame.module.clone(),
        }
    }
}

/// `com.acme.Shop (pid 4711)`, with the host where there are several.
pub fn process_title(catalog: &Catalog, process: &Process) -> TargetText {
    let machine = catalog.run_of(process).info.machine();
    let several = catalog.runs.iter().any(|run| run.info.machine() != machine);
    let at = if several { format!(" on {}", catalog.host_title(machine).raw()) } else { String::new() };
    format!("{} (pid {}{at})", process.title().raw(), process.pid).into()
}
