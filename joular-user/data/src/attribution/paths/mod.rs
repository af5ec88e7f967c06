//! Turns stacks and names into call paths, and keeps the tables that interning needs.
//!
//! An always-on run sees new paths for as long as it lasts. When the table of paths has grown
//! beyond what recent windows use, it is built anew from the names that are known. So a run's
//! memory has a bound that does not depend on its length. All bounds are functions of the events,
//! so that a replay does what the live run did.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use joular_ebpf::abi::StackId;

use super::{
    branches::MarkerBranches,
    limits::Limits,
    names::{NEVER_MORE, NamedAddresses, NamedFrames},
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
    names: NamedAddresses<NamedFrames>,
    known: HashMap<PathKey, BranchIndex>,
    table: StackTable,
    /// Paths that are kept beside those of the stacks, as they were when that was asked for, and now.
    kept: HashMap<BranchIndex, BranchIndex>,
    has_moved: bool,
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
            kept: HashMap::new(),
            has_moved: false,
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
        Some(frames.as_slice().iter().map(|frame| self.table.frame(*frame).clone()).collect())
    }

    pub(super) const fn table(&self) -> &StackTable {
        &self.table
    }

    #[cfg(test)]
    pub(super) const fn table_mut(&mut self) -> &mut StackTable {
        &mut self.table
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

    /// Builds the branches, or all of the table, anew if most of it can only be left from windows long past. Earlier
    /// indices are then invalid.
    fn renew_table(&mut self) {
        let has_grown = |now: usize, limit: usize, needed: usize| now > limit.max(needed.saturating_mul(2));
        let (table, limits) = (&self.table, self.limits);
        let are_frames_many = has_grown(table.frame_count(), limits.frames, self.needed_frames)
            || has_grown(table.text_bytes(), limits.text_bytes, self.needed_text);
        if !are_frames_many && !has_grown(table.branch_count(), limits.branches, self.in_use) {
            return;
        }
        self.known.clear();
        let path = |branch: &BranchIndex| (table.branch(*branch).to_vec(), table.facts(*branch).quality);
        let mut kept: Vec<(Vec<FrameId>, PathQuality)> = self.kept.values().map(path).collect();
        if are_frames_many {
            self.renew_frames(&mut kept);
        } else {
            self.table.forget_branches();
        }
        self.has_moved = !self.kept.is_empty();
        for (branch, (frames, quality)) in self.kept.values_mut().zip(kept) {
            *branch = self.table.branch_index(&frames, quality);
        }
    }

    /// Takes over only the frames that names stand for, and those of these paths.
    fn renew_frames(&mut self, paths: &mut [(Vec<FrameId>, PathQuality)]) {
        let old = std::mem::take(&mut self.table);
        self.table = StackTable::succeeding(&old);
        let mut renew = |frames: &mut [FrameId]| {
            frames.iter_mut().for_each(|frame| *frame = self.table.frame_id(old.frame(*frame).clone()));
        };
        paths.iter_mut().for_each(|(frames, _)| renew(frames));
        self.names.values_mut().for_each(|frames| renew(frames.as_mut_slice()));
        self.needed_frames = self.table.frame_count();
        self.needed_text = self.table.text_bytes();
    }

    /// Records how many paths a window used.
    pub(super) fn end_window(&mut self, in_use: usize) {
        self.in_use = in_use.saturating_add(self.kept.len());
    }

    /// Has these paths in every table from now on, and others no longer.
    pub(super) fn keep(&mut self, paths: impl Iterator<Item = BranchIndex>) {
        self.kept = paths.map(|path| (path, path)).collect();
        self.has_moved = false;
    }

    /// The new indices of paths that are kept, if they have others by now.
    pub(super) fn take_moved(&mut self) -> Option<HashMap<BranchIndex, BranchIndex>> {
        std::mem::take(&mut self.has_moved).then(|| std::mem::take(&mut self.kept))
    }

    /// The path and the class of an object that was sampled.
    pub(super) fn allocation(&mut self, process: ProcessKey, stack: u64) -> (BranchIndex, Option<FrameId>) {
        let names = &self.names;
        let part = self.stacks.get(&stack).map_or(StackPart::Lost, StackPart::Known);
        let (frames, quality, class) =
            allocating_path(&mut self.table, part, |address| names.get(process, address).map(NamedFrames::as_slice));
        (self.table.branch_index(&frames, quality), class)
    }

    /// The path up to the last method of Java, which is where a thread on this path allocates; `None` if there is none.
    pub(super) fn in_java(&mut self, branch: BranchIndex) -> Option<BranchIndex> {
        let path = self.table.branch(branch);
        let method = path.iter().rposition(|frame| self.table.frame(*frame).kind.is_java())?;
        let (path, quality) = (path[..=method].to_vec(), self.table.facts(branch).quality);
        Some(self.table.branch_index(&path, quality))
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
            id if id == StackId::NONE.0 => absent,
            id if id == StackId::ENDED.0 => StackPart::Ended,
            id => self.stacks.get(&id).map_or(StackPart::Lost, StackPart::Known),
        };
        let user = part(sample.user_stack, if is_kernel_thread { StackPart::Absent } else { StackPart::Unreadable });
        let kernel = part(sample.kernel_stack, StackPart::Absent);
        let is_complete = !matches!(user, StackPart::Lost) && !matches!(kernel, StackPart::Lost);
        let names = &self.names;
        let (frames, quality) = call_path(&mut self.table, user, kernel, |is_kernel, address| {
            names.get(if is_kernel { KERNEL } else { process }, address).map(NamedFrames::as_slice)
        });
        let branch = self.table.branch_index(&frames, quality);
        if is_complete && self.known.len() < self.limits.stacks {
            self.known.insert(key, branch);
        }
        branch
    }
}
