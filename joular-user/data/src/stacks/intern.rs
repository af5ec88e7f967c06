//! Interns frames and call paths: equal ones exist once and are referred to by a small number,
//! which keeps windows cheap and comparisons exact.

use std::{collections::HashMap, hash::Hash};

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

/// Values numbered in order of first appearance.
#[derive(Debug)]
struct Interner<T> {
    values: Vec<T>,
    indices: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), indices: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn intern(&mut self, value: T) -> u32 {
        if let Some(index) = self.indices.get(&value) {
            return *index;
        }
        // 2^32 distinct frames would need terabytes before this saturates.
        let index = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.indices.insert(value, index);
        index
    }
}

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
    frames: Interner<Frame>,
    branches: Interner<(Box<[FrameId]>, PathQuality)>,
    /// Per branch, its frames without lines: equal ids are equal methods.
    methods: Vec<Box<[FrameId]>>,
    /// Per branch.
    branch_ids: Vec<i64>,
    stack_ids: Vec<i64>,
    facts: Vec<PathFacts>,
    generation: u64,
    /// Bytes of the frames' texts.
    text_bytes: usize,
}

impl StackTable {
    /// An empty table to take the place of another one.
    pub fn succeeding(other: &Self) -> Self {
        Self { generation: other.generation.wrapping_add(1), ..Self::default() }
    }

    /// Indices of one generation mean nothing in another.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    pub fn frame_id(&mut self, frame: Frame) -> FrameId {
        let (count, bytes) = (self.frames.values.len(), frame.text_bytes());
        let id = FrameId(self.frames.intern(frame));
        if self.frames.values.len() > count {
            self.text_bytes = self.text_bytes.saturating_add(bytes);
        }
        id
    }

    /// `frames` stand root → leaf.
    pub fn branch_index(&mut self, frames: &[FrameId], quality: PathQuality) -> BranchIndex {
        let index = self.branches.intern((frames.into(), quality));
        if index as usize == self.methods.len() {
            let methods = frames.iter().map(|frame| self.method_id(*frame)).collect();
            self.methods.push(methods);
            self.branch_ids.push(ids::branch_id(frames.iter().map(|id| self.frame(*id))));
            self.stack_ids.push(ids::stack_id(frames.iter().map(|id| self.frame(*id)), quality));
            self.facts.push(PathFacts {
                quality,
                unnamed: unnamed(frames.iter().map(|id| self.frame(*id))),
                vm_work: JvmWork::of_vm_path(frames.iter().map(|id| self.frame(*id))),
                java_work: JvmWork::of_java_path(|| frames.iter().rev().map(|id| self.frame(*id))),
            });
        }
        BranchIndex(index)
    }

    /// The frame without its line, which is what makes it a method.
    pub fn method_id(&mut self, frame: FrameId) -> FrameId {
        let known = self.frame(frame);
        if known.line.is_none() { frame } else { self.frame_id(Frame { line: None, ..known.clone() }) }
    }

    /// The frame behind an id of this table.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames.values[id.0 as usize]
    }

    /// The frames of a branch, root → leaf.
    pub fn branch(&self, index: BranchIndex) -> &[FrameId] {
        &self.branches.values[index.0 as usize].0
    }

    /// What follows from the path alone.
    pub fn facts(&self, index: BranchIndex) -> PathFacts {
        self.facts[index.0 as usize]
    }

    /// The methods of a branch, root → leaf.
    pub fn methods(&self, index: BranchIndex) -> &[FrameId] {
        &self.methods[index.0 as usize]
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
        self.branches.values.len()
    }

    pub fn frame_count(&self) -> usize {
        self.frames.values.len()
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
