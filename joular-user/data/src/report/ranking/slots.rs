//! Finds the places of a table that a thread's path counts for.

use super::groups::Groups;
use crate::report::profile::{PathIndex, Profile, ThreadIndex, ThreadPath};

/// Where entries count: groups, mapped to slots.
pub(super) struct Slots<'a> {
    profile: &'a Profile,
    groups: &'a Groups,
    pub(super) slots: &'a [usize],
    pub(super) count: usize,
    /// If rows are about frames: each path's slots, each once, path after path, with the end of
    /// each path. A path is on many entries.
    arena: Vec<usize>,
    ends: Vec<usize>,
}

impl<'a> Slots<'a> {
    /// `slots` has the slot of each group, of which there are `count`.
    pub(super) fn of(profile: &'a Profile, groups: &'a Groups, slots: &'a [usize], count: usize) -> Self {
        let (mut arena, mut ends) = (Vec::new(), Vec::new());
        if let Some(of_frames) = groups.of_frames() {
            let paths = &profile.catalog.paths;
            // Which path had a slot last.
            let mut last = vec![None; count];
            for path in paths.indices() {
                for frame in paths.path(path) {
                    let slot = slots[of_frames[frame.index()]];
                    if last[slot].replace(path) != Some(path) {
                        arena.push(slot);
                    }
                }
                ends.push(arena.len());
            }
        }
        Self { profile, groups, slots, count, arena, ends }
    }

    /// The slot that an entry's own energy goes to.
    pub(super) fn own(&self, entry: &ThreadPath) -> Option<usize> {
        self.own_of(entry.thread, entry.path)
    }

    pub(super) fn own_of(&self, thread: ThreadIndex, path: PathIndex) -> Option<usize> {
        self.groups.own(&self.profile.catalog.paths, thread, path).map(|group| self.slots[group])
    }

    /// All slots that an entry counts for, each once.
    pub(super) fn all(&self, entry: &ThreadPath) -> impl Iterator<Item = usize> {
        self.all_of(entry.thread, entry.path)
    }

    pub(super) fn all_of(&self, thread: ThreadIndex, path: PathIndex) -> impl Iterator<Item = usize> {
        let of_frames = self.ends.get(path.index()).map(|end| {
            let start = path.index().checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.arena[start..*end]
        });
        let one = if of_frames.is_none() { self.own_of(thread, path) } else { None };
        of_frames.into_iter().flatten().copied().chain(one)
    }
}
