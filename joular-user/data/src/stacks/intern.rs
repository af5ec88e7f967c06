//! Interns frames and call paths: equal ones exist once and are referred to by a small number,
//! which keeps windows cheap and comparisons exact.

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexSet};

use super::{ids, jvm_work::JvmWork};
use crate::model::{
    frame::{Frame, FrameKind, Marker},
    quality::PathQuality,
};

/// Index of a frame in a [`StackTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Index of a call path in a [`StackTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchIndex(pub u32);

/// What follows from a call path alone, computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    pub quality: PathQuality,
    /// The marker that stands for its frames without a name, if there are any.
    pub unnamed: Option<Marker>,
    /// What a Java thread with this path is doing.
    pub java_work: JvmWork,
    /// What a thread of the VM with this path is doing.
    pub vm_work: JvmWork,
}

/// Frames and call paths of a run, or of a part of it: see [`Self::generation`].
#[derive(Debug, Default)]
pub struct StackTable {
    frames: IndexSet<Frame, RandomState>,
    /// Per frame, the one without its line: equal ids are equal methods.
    methods: Vec<FrameId>,
    branches: IndexSet<(Box<[FrameId]>, PathQuality), RandomState>,
    /// Per branch.
    branch_ids: Vec<i64>,
    stack_ids: Vec<i64>,
    facts: Vec<PathFacts>,
    generation: u64,
    frames_generation: u64,
    /// Bytes of the frames' texts.
    text_bytes: usize,
}

/// A path to look up, which needs no allocation: its hash is that of the pair that is kept.
#[derive(Hash)]
struct Path<'a>(&'a [FrameId], PathQuality);

impl Equivalent<(Box<[FrameId]>, PathQuality)> for Path<'_> {
    fn equivalent(&self, (frames, quality): &(Box<[FrameId]>, PathQuality)) -> bool {
        (self.0, self.1) == (&**frames, *quality)
    }
}

impl StackTable {
    /// An empty table to take the place of another one.
    pub fn succeeding(other: &Self) -> Self {
        let next = |generation: u64| generation.wrapping_add(1);
        let (generation, frames_generation) = (next(other.generation), next(other.frames_generation));
        Self { generation, frames_generation, ..Self::default() }
    }

    /// Indices of one generation mean nothing in another.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The same of [`FrameId`]s, which outlive those of branches.
    pub const fn frames_generation(&self) -> u64 {
        self.frames_generation
    }

    pub fn frame_id(&mut self, frame: Frame) -> FrameId {
        if let Some(index) = self.frames.get_index_of(&frame) {
            return FrameId(number(index));
        }
        let method = frame.line.map(|_| self.frame_id(Frame { line: None, ..frame.clone() }));
        self.text_bytes = self.text_bytes.saturating_add(frame.text_bytes());
        let id = FrameId(number(self.frames.insert_full(frame).0));
        self.methods.push(method.unwrap_or(id));
        id
    }

    /// `frames` stand root → leaf.
    pub fn branch_index(&mut self, frames: &[FrameId], quality: PathQuality) -> BranchIndex {
        if let Some(index) = self.branches.get_index_of(&Path(frames, quality)) {
            return BranchIndex(number(index));
        }
        let (index, _) = self.branches.insert_full((frames.into(), quality));
        self.branch_ids.push(ids::branch_id(frames.iter().map(|id| self.frame(*id))));
        self.stack_ids.push(ids::stack_id(frames.iter().map(|id| self.frame(*id)), quality));
        self.facts.push(PathFacts {
            quality,
            unnamed: unnamed(frames.iter().map(|id| self.frame(*id))),
            vm_work: JvmWork::of_vm_path(frames.iter().map(|id| self.frame(*id))),
            java_work: JvmWork::of_java_path(|| frames.iter().rev().map(|id| self.frame(*id))),
        });
        BranchIndex(number(index))
    }

    /// Begins a generation that has the same frames, and no branches yet.
    pub fn forget_branches(&mut self) {
        self.branches = IndexSet::default();
        (self.branch_ids, self.stack_ids, self.facts) = (Vec::new(), Vec::new(), Vec::new());
        self.generation = self.generation.wrapping_add(1);
    }

    /// The frame behind an id of this table.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }

    /// The frames of a branch, root → leaf.
    pub fn branch(&self, index: BranchIndex) -> &[FrameId] {
        &self.branches[index.0 as usize].0
    }

    /// What follows from the path alone.
    pub fn facts(&self, index: BranchIndex) -> PathFacts {
        self.facts[index.0 as usize]
    }

    /// The methods of a branch, root → leaf: its frames without their lines.
    pub fn methods(&self, index: BranchIndex) -> impl DoubleEndedIterator<Item = FrameId> {
        self.branch(index).iter().map(|frame| self.methods[frame.0 as usize])
    }

    /// The method that a branch ends in.
    pub fn leaf_method(&self, index: BranchIndex) -> Option<FrameId> {
        self.methods(index).next_back()
    }

    /// The methods of a branch, each once however often it recurs.
    pub fn distinct_methods(&self, index: BranchIndex) -> Vec<FrameId> {
        let mut methods: Vec<FrameId> = self.methods(index).collect();
        methods.sort_unstable();
        methods.dedup();
        methods
    }

    /// The id that paths of the same methods share everywhere.
    pub fn branch_id(&self, index: BranchIndex) -> i64 {
        self.branch_ids[index.0 as usize]
    }

    /// The id that paths of the same frames, lines included, and quality share everywhere.
    pub fn stack_id(&self, index: BranchIndex) -> i64 {
        self.stack_ids[index.0 as usize]
    }

    pub fn branch_count(&self) -> usize {
        self.branches.len()
    }

    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Bytes of all frames' names, signatures and files.
    pub const fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// `a;b;c`, root → leaf: the text that flame-graph tools read. Separators
    /// within names become `:`.
    pub fn folded(&self, index: BranchIndex) -> String {
        let methods: Vec<String> =
            self.branch(index).iter().map(|id| self.frame(*id).method().raw().replace(';', ":")).collect();
        methods.join(";")
    }
}

/// 2^32 distinct frames would need terabytes before this saturates.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The marker among a path's frames that says most about why a name is missing.
fn unnamed<'a>(frames: impl Iterator<Item = &'a Frame>) -> Option<Marker> {
    let markers = frames.filter(|frame| frame.kind == FrameKind::Marker);
    markers
        .filter_map(|frame| Marker::UNNAMED.iter().position(|marker| frame.name == marker.name()))
        .min()
        .and_then(|position| Marker::UNNAMED.get(position).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::frame::FrameKind;

    #[test]
    fn equal_paths_share_an_index() {
        let mut table = StackTable::default();
        let a = table.frame_id(Frame::new(FrameKind::Native, "a"));
        let b = table.frame_id(Frame::new(FrameKind::Native, "b;c"));
        assert_eq!(table.frame_id(Frame::new(FrameKind::Native, "a")), a);
        let quality = PathQuality::default();
        let path = table.branch_index(&[a, b], quality);
        assert_eq!(table.branch_index(&[a, b], quality), path);
        assert_ne!(table.branch_index(&[b, a], quality), path);
        assert_eq!(table.folded(path), "a;b:c");
    }

    #[test]
    fn lines_of_one_method_are_one_method_that_recurs() {
        let mut table = StackTable::default();
        let at_line = |line| Frame { line, ..Frame::new(FrameKind::Interpreted, "run") };
        let [one, other, none] = [Some(1), Some(2), None].map(|line| table.frame_id(at_line(line)));
        let path = table.branch_index(&[one, other, none], PathQuality::default());
        assert_eq!(table.branch(path), [one, other, none]);
        assert_eq!(table.methods(path).collect::<Vec<_>>(), [none; 3]);
        assert_eq!((table.leaf_method(path), table.distinct_methods(path)), (Some(none), vec![none]));
    }

    #[test]
    fn equal_paths_of_different_quality_are_one_branch_and_two_stacks() {
        let mut table = StackTable::default();
        let a = table.frame_id(Frame::new(FrameKind::Native, "a"));
        let [one, other] = [PathQuality::default(), PathQuality::NoStack].map(|q| table.branch_index(&[a], q));
        assert_eq!(table.branch_id(one), table.branch_id(other));
        assert_ne!(table.stack_id(one), table.stack_id(other));
        assert_eq!(
            [one, other].map(|index| table.facts(index).quality),
            [PathQuality::default(), PathQuality::NoStack]
        );
    }

    #[test]
    fn a_path_says_why_a_name_is_missing() {
        let mut table = StackTable::default();
        let named = table.frame_id(Frame::new(FrameKind::Native, "[evicted]"));
        let stripped = table.frame_id(Frame::of_file(FrameKind::Native, "libz.so.1"));
        let mut unnamed = |markers: &[Marker]| {
            let mut path = vec![named, stripped];
            path.extend(markers.iter().map(|marker| table.frame_id(Frame::marker(*marker))));
            let index = table.branch_index(&path, PathQuality::default());
            table.facts(index).unnamed
        };
        assert_eq!(unnamed(&[]), None, "a native function may be called anything, a stripped file is known");
        assert_eq!(unnamed(&[Marker::Truncated]), None, "that is why it ends, not a frame");
        assert_eq!(unnamed(&[Marker::Unresolved]), Some(Marker::Unresolved));
        assert_eq!(unnamed(&[Marker::Unresolved, Marker::Evicted, Marker::Stale]), Some(Marker::Evicted));
    }
}
