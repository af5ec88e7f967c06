//! Turns stacks and names into call paths, and keeps the tables that interning needs.
//!
//! An always-on run sees new paths for as long as it lasts. When the table of paths has grown
//! beyond what recent windows use, it is built anew from the names that are known. So a run's
//! memory has a bound that does not depend on its length. All bounds are functions of the events,
//! so that a replay does what the live run did.

use std::collections::HashMap;

use super::{
    branches::MarkerBranches,
    limits::Limits,
    names::{NEVER_MORE, NamedAddresses},
    work::ProcessKey,
};
use crate::{
    events::{RawStack, SampleCount, Symbol},
    model::{
        frame::{Frame, Marker},
        quality::PathQuality,
        units::Pid,
    },
    stacks::{
        BranchIndex, FrameId, StackTable,
        path::{StackPart, allocating_path, call_path},
    },
};

/// The kernel's symbols are kept like those of a process with this key.
const KERNEL: ProcessKey = (Pid(0), 0);

/// Process, user stack, kernel stack.
type PathKey = (ProcessKey, u64, u64);

#[derive(Debug)]
pub(super) struct Paths {
    limits: Limits,
    stacks: HashMap<u64, RawStack>,
    /// Frames of all stacks.
    stack_frames: usize,
    names: NamedAddresses<Box<[FrameId]>>,
    known: HashMap<PathKey, BranchIndex>,
    table: StackTable,
    /// Paths that the last window used.
    in_use: usize,
    /// Frames, and bytes of their names, that the last new table needed.
    needed_frames: usize,
    needed_text: usize,
    /// Whether a process has ended since: then less may be needed now.
    has_forgotten: bool,
}

impl Default for Paths {
    fn default() -> Self {
        Self::with_limits(Limits::default())
    }
}

impl Paths {
    pub(super) fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            stacks: HashMap::new(),
            stack_frames: 0,
            names: NamedAddresses::with_limits(limits.names),
            known: HashMap::new(),
            table: StackTable::default(),
            in_use: 0,
            needed_frames: 0,
            needed_text: 0,
            has_forgotten: false,
        }
    }

    #[cfg(test)]
    pub(super) fn named_addresses(&self) -> Vec<(ProcessKey, Vec<crate::model::units::Address>)> {
        self.names.addresses()
    }

    /// The frames that an address stands for; `None`: it has no name.
    #[cfg(test)]
    pub(super) fn names(&self, process: ProcessKey, address: crate::model::units::Address) -> Option<Vec<Frame>> {
        let frames = self.names.get(process, address)?;
        Some(frames.iter().map(|frame| self.table.frame(*frame).clone()).collect())
    }

    pub(super) const fn table(&self) -> &StackTable {
        &self.table
    }

    pub(super) fn stack(&self, id: u64) -> Option<&RawStack> {
        self.stacks.get(&id)
    }

    pub(super) fn add_stack(&mut self, stack: &RawStack) {
        self.forget_stack(stack.id);
        let frames = self.stack_frames.saturating_add(stack.frames.len());
        if self.stacks.len() < self.limits.stacks && frames <= self.limits.stack_frames {
            self.stack_frames = frames;
            self.stacks.insert(stack.id, stack.clone());
        }
    }

    fn forget_stack(&mut self, id: u64) {
        if let Some(stack) = self.stacks.remove(&id) {
            self.stack_frames = self.stack_frames.saturating_sub(stack.frames.len());
        }
    }

    pub(super) fn forget_stacks(&mut self, ids: &[u64]) {
        ids.iter().for_each(|id| self.forget_stack(*id));
        let stacks = &self.stacks;
        let is_known = |id: u64| id == 0 || stacks.contains_key(&id);
        self.known.retain(|(_, user, kernel), _| is_known(*user) && is_known(*kernel));
    }

    pub(super) fn forget_process(&mut self, key: ProcessKey) {
        self.has_forgotten |= self.names.forget(key);
        self.forget_paths(key);
    }

    /// Forgets the paths built from a process's names; for the kernel's names, all paths through
    /// the kernel.
    fn forget_paths(&mut self, key: ProcessKey) {
        self.known.retain(|(process, _, kernel), _| *process != key && (key != KERNEL || *kernel == 0));
    }

    pub(super) fn learn(&mut self, key: ProcessKey, symbols: &[Symbol]) {
        for forgotten in self.names.make_room(key) {
            self.has_forgotten = true;
            self.forget_paths(forgotten);
        }
        for symbol in symbols {
            self.learn_one(key, symbol);
        }
        // Paths built from earlier answers are built anew when next needed.
        self.forget_paths(key);
        self.renew_table();
    }

    fn learn_one(&mut self, key: ProcessKey, symbol: &Symbol) {
        let is_full = self.table.text_bytes() >= self.limits.text_bytes.saturating_mul(NEVER_MORE);
        if is_full || !self.names.has_room(key, symbol.address) {
            return;
        }
        let frames = symbol.frames.iter().map(|frame| self.table.frame_id(frame.clone())).collect();
        self.names.insert(key, symbol.address, frames);
    }

    /// Must be called before a window's paths are asked for.
    pub(super) fn start_window(&mut self) {
        if std::mem::take(&mut self.has_forgotten) {
            (self.needed_frames, self.needed_text) = (0, 0);
        }
        self.renew_table();
    }

    /// Builds the table anew if most of it can only be left from windows long past. Earlier indices
    /// are then invalid.
    fn renew_table(&mut self) {
        let has_grown = |now: usize, limit: usize, needed: usize| now > limit.max(needed.saturating_mul(2));
        let (table, limits) = (&self.table, self.limits);
        if !has_grown(table.branch_count(), limits.branches, self.in_use)
            && !has_grown(table.frame_count(), limits.frames, self.needed_frames)
            && !has_grown(table.text_bytes(), limits.text_bytes, self.needed_text)
        {
            return;
        }
        let old = std::mem::take(&mut self.table);
        self.table = StackTable::succeeding(&old);
        self.known.clear();
        for frames in self.names.values_mut() {
            for frame in frames {
                *frame = self.table.frame_id(old.frame(*frame).clone());
            }
        }
        self.needed_frames = self.table.frame_count();
        self.needed_text = self.table.text_bytes();
    }

    /// Records how many paths a window used.
    pub(super) const fn end_window(&mut self, in_use: usize) {
        self.in_use = in_use;
    }

    /// The path and the class of an object that was sampled.
    pub(super) fn allocation(&mut self, process: ProcessKey, stack: u64) -> (BranchIndex, Option<FrameId>) {
        let names = &self.names;
        let part = self.stacks.get(&stack).map_or(StackPart::Lost, StackPart::Known);
        let (frames, quality, class) =
            allocating_path(&mut self.table, part, |address| names.get(process, address).map(AsRef::as_ref));
        (self.table.branch_index(&frames, quality), class)
    }

    pub(super) fn markers(&mut self) -> MarkerBranches {
        MarkerBranches {
            no_sample: self.marker_branch(Marker::NoSample, PathQuality::NoSample),
            lost_stack: self.marker_branch(Marker::LostStack, PathQuality::LostStack),
        }
    }

    fn marker_branch(&mut self, marker: Marker, quality: PathQuality) -> BranchIndex {
        let frame = self.table.frame_id(Frame::marker(marker));
        self.table.branch_index(&[frame], quality)
    }

    /// The path of a sample.
    pub(super) fn path(&mut self, process: ProcessKey, sample: &SampleCount, is_kernel_thread: bool) -> BranchIndex {
        let key = (process, sample.user_stack, sample.kernel_stack);
        if let Some(branch) = self.known.get(&key) {
            return *branch;
        }
        let part = |id: u64, absent| match id {
            0 => absent,
            id => self.stacks.get(&id).map_or(StackPart::Lost, StackPart::Known),
        };
        let user = part(sample.user_stack, if is_kernel_thread { StackPart::Absent } else { StackPart::Unreadable });
        let kernel = part(sample.kernel_stack, StackPart::Absent);
        let is_complete = !matches!(user, StackPart::Lost) && !matches!(kernel, StackPart::Lost);
        let names = &self.names;
        let (frames, quality) = call_path(&mut self.table, user, kernel, |is_kernel, address| {
            names.get(if is_kernel { KERNEL } else { process }, address).map(AsRef::as_ref)
        });
        let branch = self.table.branch_index(&frames, quality);
        if is_complete && self.known.len() < self.limits.stacks {
            self.known.insert(key, branch);
        }
        branch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::names::NameLimits,
        model::{frame::FrameKind, quality::StackQuality, units::Address},
    };

    const PROCESS: ProcessKey = (Pid(1), 0);
    const LIMITS: Limits = Limits {
        branches: 1000,
        frames: 500,
        text_bytes: 1 << 16,
        stacks: 5000,
        stack_frames: 16_000,
        names: NameLimits { of_process: 300, of_all: 400 },
    };

    fn stack(id: u64) -> RawStack {
        let digits = [id % 60, id / 60 % 60, id / 3600];
        RawStack {
            id,
            is_kernel: false,
            quality: StackQuality::default(),
            frames: digits.map(|digit| Address(digit * 100 + 50)).to_vec(),
        }
    }

    /// Names both what a leaf and what a caller at `digit` is looked up as.
    fn names(digit: u64, epoch: u64) -> [Symbol; 2] {
        [49, 50].map(|offset| Symbol {
            address: Address(digit * 100 + offset),
            frames: vec![Frame::new(FrameKind::Native, format!("f{digit}-{epoch}"))],
        })
    }

    fn sample(id: u64) -> SampleCount {
        SampleCount { user_stack: id, ..SampleCount::default() }
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_paths_ever_seen() {
        let mut paths = Paths::with_limits(LIMITS);
        let mut generations = 0;
        for window in 0..400_u64 {
            let ids: Vec<u64> = (1 + window * 500..=(window + 1) * 500).collect();
            ids.iter().for_each(|id| paths.add_stack(&stack(*id)));
            let before = paths.table.generation();
            // Code is compiled anew all the time, under new names.
            (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, window)));
            paths.start_window();
            generations += usize::from(paths.table.generation() != before);
            for id in &ids {
                paths.path(PROCESS, &sample(*id), false);
            }
            paths.end_window(ids.len());
            paths.forget_stacks(&ids);
            assert!(paths.table.branch_count() <= 1000 + 500, "{}", paths.table.branch_count());
            assert!(paths.table.frame_count() <= 500 + 60, "{}", paths.table.frame_count());
            assert!(paths.known.is_empty() && paths.stacks.is_empty());
        }
        assert!(generations > 100, "{generations}");
        assert_eq!(paths.names.len(), 120);
    }

    #[test]
    fn a_new_table_gives_the_same_paths() {
        let mut paths = Paths::with_limits(LIMITS);
        (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
        for id in 1..=2000 {
            paths.add_stack(&stack(id));
            paths.path(PROCESS, &sample(id), false);
        }
        let before = paths.path(PROCESS, &sample(777), false);
        let text = paths.table.folded(before);
        paths.start_window();
        assert_eq!(paths.table.branch_count(), 0);
        let after = paths.path(PROCESS, &sample(777), false);
        assert_eq!(paths.table.folded(after), text);
        assert_eq!(text, "f0-0;f12-0;f57-0");
    }

    #[test]
    fn a_table_in_use_is_not_built_anew_every_window() {
        let mut paths = Paths::with_limits(LIMITS);
        (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
        (1..=2000).for_each(|id| paths.add_stack(&stack(id)));
        for _ in 0..10 {
            paths.start_window();
            for id in 1..=2000 {
                paths.path(PROCESS, &sample(id), false);
            }
            paths.end_window(2000);
        }
        assert_eq!((paths.table.generation(), paths.table.branch_count()), (0, 2000));
    }

    #[test]
    fn long_names_and_deep_stacks_have_a_bound_together() {
        let mut paths = Paths::with_limits(LIMITS);
        for round in 0..1000 {
            let frames = vec![Frame::new(FrameKind::Native, format!("{round:04096}"))];
            paths.learn(PROCESS, &[Symbol { address: Address(round % 200), frames }]);
            let frames = vec![Address(1); 127];
            paths.add_stack(&RawStack { id: round, is_kernel: false, quality: StackQuality::default(), frames });
        }
        assert!(paths.table.text_bytes() <= NEVER_MORE * LIMITS.text_bytes + 4096, "{}", paths.table.text_bytes());
        assert_eq!(paths.stack_frames, LIMITS.stack_frames / 127 * 127);
        paths.forget_stacks(&(0..1000).collect::<Vec<_>>());
        assert_eq!(paths.stack_frames, 0);
        paths.forget_process(PROCESS);
        paths.start_window();
        assert_eq!(paths.table.text_bytes(), 0, "there is room again");
    }

    #[test]
    fn at_the_limit_of_a_process_its_new_names_win() {
        let mut paths = Paths::with_limits(LIMITS);
        for digit in 0..1000 {
            paths.learn(PROCESS, &names(digit, 0));
            let has_name = paths.names.get(PROCESS, Address(digit * 100 + 50)).is_some();
            assert!(paths.names.len() <= 301 && has_name, "{digit}");
        }
        paths.learn(PROCESS, &(1000..3000).flat_map(|digit| names(digit, 0)).collect::<Vec<_>>());
        assert_eq!(paths.names.len(), NEVER_MORE * LIMITS.names.of_process);
    }

    #[test]
    fn what_was_forgotten_has_names_again_when_it_is_told_again() {
        let mut paths = Paths::with_limits(LIMITS);
        paths.add_stack(&stack(777));
        (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
        (1000..1100).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
        let forgotten = paths.path(PROCESS, &sample(777), false);
        assert!(paths.table.folded(forgotten).contains("[unresolved]"));
        (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 1)));
        let told = paths.path(PROCESS, &sample(777), false);
        assert_eq!(paths.table.folded(told), "f0-1;f12-1;f57-1");
    }

    #[test]
    fn at_the_limit_of_all_the_process_with_most_names_forgets_them() {
        let mut paths = Paths::with_limits(LIMITS);
        (0..150).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
        let (few, new) = ((Pid(2), 0), (Pid(3), 0));
        (0..50).for_each(|digit| paths.learn(few, &names(digit, 0)));
        assert_eq!(paths.names.len(), 400);
        paths.learn(new, &names(0, 0));
        let kept: Vec<(ProcessKey, usize)> =
            paths.named_addresses().into_iter().map(|(key, addresses)| (key, addresses.len())).collect();
        assert_eq!((kept, paths.names.len()), (vec![(few, 100), (new, 2)], 102));
    }

    #[test]
    fn stacks_beyond_the_limit_are_lost() {
        let mut paths = Paths::with_limits(LIMITS);
        (1..=6000).for_each(|id| paths.add_stack(&stack(id)));
        assert_eq!(paths.stacks.len(), 5000);
        let lost = paths.path(PROCESS, &sample(6000), false);
        assert_eq!(paths.table.folded(lost), "[lost stack]");
    }
}
