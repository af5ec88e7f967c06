//! Finds the places of a table that a fact counts for.

use super::groups::Groups;
use crate::report::profile::{Fact, PathIndex, Profile};

/// Where facts count: groups, mapped to slots.
pub(in crate::report) struct Slots<'a> {
    profile: &'a Profile,
    pub(in crate::report) groups: &'a Groups,
    /// The slot of each group.
    slots: Vec<usize>,
    pub(in crate::report) count: usize,
    /// If a path may have several rows: each path's slots, each once, path after path, with the end of
    /// each path. A path is on many facts.
    arena: Vec<usize>,
    ends: Vec<usize>,
}

impl<'a> Slots<'a> {
    /// A slot for each group.
    pub(in crate::report) fn each(profile: &'a Profile, groups: &'a Groups) -> Self {
        Self::of(profile, groups, (0..groups.len()).collect(), groups.len())
    }

    /// A slot for each group that is shown, in their order, behind them one for all others.
    pub(in crate::report) fn shown(profile: &'a Profile, groups: &'a Groups, shown: &[usize]) -> Self {
        let mut slots = vec![shown.len(); groups.len()];
        shown.iter().enumerate().for_each(|(rank, group)| slots[*group] = rank);
        Self::of(profile, groups, slots, shown.len() + 1)
    }

    fn of(profile: &'a Profile, groups: &'a Groups, slots: Vec<usize>, count: usize) -> Self {
        let (mut arena, mut ends) = (Vec::new(), Vec::new());
        let paths = &profile.catalog.paths;
        // Which path had a slot last.
        let mut last = vec![None; count];
        let mut add = |arena: &mut Vec<usize>, path: PathIndex, group: usize| {
            let slot = slots[group];
            if last[slot].replace(path) != Some(path) {
                arena.push(slot);
            }
        };
        if let Some(of_frames) = groups.of_frames() {
            for path in paths.indices() {
                paths.path(path).iter().for_each(|frame| add(&mut arena, path, of_frames[frame.index()]));
                ends.push(arena.len());
            }
        } else if let Some(of_paths) = groups.of_neighbours() {
            for (path, groups) in paths.indices().zip(of_paths) {
                groups.iter().for_each(|group| add(&mut arena, path, *group));
                ends.push(arena.len());
            }
        }
        Self { profile, groups, slots, count, arena, ends }
    }

    /// The slot of which a fact is part as its own.
    pub(in crate::report) fn own(&self, fact: &Fact) -> Option<usize> {
        self.groups.own(&self.profile.catalog.paths, fact).map(|group| self.slots[group])
    }

    /// All slots of which a fact is part, each once.
    pub(in crate::report) fn all(&self, fact: &Fact) -> impl Iterator<Item = usize> + use<'_> {
        let several = self.of_path(fact.path);
        let one = if several.is_none() { self.own(fact) } else { None };
        several.into_iter().flatten().copied().chain(one)
    }

    fn of_path(&self, path: PathIndex) -> Option<&[usize]> {
        self.ends.get(path.index()).map(|end| {
            let start = path.index().checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.arena[start..*end]
        })
    }

    /// The slot of a thread, if rows are about threads.
    pub(in crate::report) fn of_thread(&self, thread: usize) -> Option<usize> {
        self.groups.of_thread(thread).map(|group| self.slots[group])
    }
}
