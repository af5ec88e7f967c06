//! Selects a process and all that descend from it.
//!
//! A process belongs to the tree if its parent did when it appeared. If that parent ends, the new
//! parent changes nothing. A pid may be reused for another process, so pid and start time identify
//! a member.

use std::collections::BTreeMap;

use joular_data::model::units::Pid;

use super::proc_files::{Descent, ProcFiles};

/// The living members of a tree.
#[derive(Debug)]
pub struct ProcessTree {
    root: Pid,
    /// A later process with the root's pid is another process.
    has_seen_root: bool,
    /// When each started.
    members: BTreeMap<Pid, u64>,
}

impl ProcessTree {
    /// The tree of a process that need not exist yet: see [`Self::scan`].
    pub const fn new(root: Pid) -> Self {
        Self { root, has_seen_root: false, members: BTreeMap::new() }
    }

    pub fn contains(&self, pid: Pid, start_boottime_ns: u64) -> bool {
        self.members.get(&pid) == Some(&start_boottime_ns)
    }

    /// Takes the kernel's news of a fork, and returns whether the child belongs to the tree.
    pub fn forked(&mut self, parent: Pid, child: Pid, start_boottime_ns: u64) -> bool {
        // Whoever had this pid is gone.
        self.members.remove(&child);
        let is_member = self.members.contains_key(&parent);
        if is_member {
            self.members.insert(child, start_boottime_ns);
        }
        is_member
    }

    /// Takes the news that a member ended.
    pub fn ended(&mut self, pid: Pid) {
        self.members.remove(&pid);
    }

    /// Whether a process that /proc has belongs to the tree. If the news of its fork was lost, its
    /// parent decides.
    pub fn has(&mut self, pid: Pid, proc_files: &ProcFiles) -> bool {
        let Some(Descent { parent, start_boottime_ns }) = proc_files.descent(pid) else { return false };
        if self.contains(pid, start_boottime_ns) {
            return true;
        }
        let parent_start = self.members.get(&parent).copied();
        let is_member = parent_start.is_some_and(|start| proc_files.is_there(parent, start));
        if is_member {
            self.members.insert(pid, start_boottime_ns);
        }
        is_member
    }

    /// Compares with /proc: finds the root when it first appears, and processes that were missed.
    pub fn scan(&mut self, proc_files: &ProcFiles) {
        let found: BTreeMap<Pid, Descent> =
            proc_files.pids().into_iter().filter_map(|pid| Some((pid, proc_files.descent(pid)?))).collect();
        self.members.retain(|pid, start| found.get(pid).is_some_and(|descent| descent.start_boottime_ns == *start));
        if let Some(root) = found.get(&self.root).filter(|_| !self.has_seen_root) {
            self.has_seen_root = true;
            self.members.insert(self.root, root.start_boottime_ns);
        }
        let mut children: BTreeMap<Pid, Vec<(Pid, u64)>> = BTreeMap::new();
        for (pid, descent) in &found {
            children.entry(descent.parent).or_default().push((*pid, descent.start_boottime_ns));
        }
        // Each process is some process's child once: this ends.
        let mut parents: Vec<Pid> = self.members.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            for (child, start) in children.remove(&parent).unwrap_or_default() {
                self.members.entry(child).or_insert(start);
                parents.push(child);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::procs::proc_files::TICK_NS;

    /// A made-up /proc of these processes: pid, parent, start in ticks.
    fn proc(processes: &[(u32, u32, u64)]) -> (tempfile::TempDir, ProcFiles) {
        let root = tempfile::tempdir().unwrap();
        for (pid, parent, start) in processes {
            let directory = root.path().join(pid.to_string());
            fs::create_dir(&directory).unwrap();
            let stat = format!("{pid} (x) S {parent} 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 {start} 0 0");
            fs::write(directory.join("stat"), stat).unwrap();
        }
        let proc_files = ProcFiles::new(root.path());
        (root, proc_files)
    }

    fn members(tree: &ProcessTree) -> Vec<(u32, u64)> {
        tree.members.iter().map(|(pid, start)| (pid.0, start / TICK_NS)).collect()
    }

    fn tree_of(processes: &[(u32, u32, u64)]) -> ProcessTree {
        let mut tree = ProcessTree::new(Pid(10));
        tree.scan(&proc(processes).1);
        tree
    }

    #[test]
    fn descendants_are_found_whatever_their_numbers() {
        // Numbers have wrapped: a child's is lower than its parent's.
        let tree = tree_of(&[(1, 0, 1), (5, 30, 9), (10, 1, 6), (20, 10, 7), (30, 20, 8), (40, 1, 7)]);
        assert_eq!(members(&tree), [(5, 9), (10, 6), (20, 7), (30, 8)]);
    }

    #[test]
    fn a_root_that_is_not_there_yet_is_waited_for_and_has_no_successor() {
        let mut tree = tree_of(&[(1, 0, 1)]);
        assert_eq!(members(&tree), []);
        tree.scan(&proc(&[(10, 1, 6)]).1);
        assert_eq!(members(&tree), [(10, 6)]);
        tree.scan(&proc(&[(10, 1, 9)]).1);
        assert_eq!(members(&tree), [], "another process with its pid");
    }

    #[test]
    fn forks_are_followed_and_others_are_not() {
        let mut tree = tree_of(&[(10, 1, 6)]);
        assert!(tree.forked(Pid(10), Pid(11), 7) && tree.forked(Pid(11), Pid(12), 8));
        assert!(!tree.forked(Pid(1), Pid(13), 8));
        assert!(tree.contains(Pid(12), 8) && !tree.contains(Pid(12), 9) && !tree.contains(Pid(13), 8));
    }

    #[test]
    fn a_child_whose_parent_ended_stays() {
        let mut tree = tree_of(&[(10, 1, 6), (11, 10, 7)]);
        tree.ended(Pid(10));
        // The first process has adopted it, which makes that none of the tree.
        let (_root, proc_files) = proc(&[(1, 0, 1), (11, 1, 7), (12, 11, 8), (13, 1, 8)]);
        assert!(tree.has(Pid(11), &proc_files) && tree.has(Pid(12), &proc_files));
        assert!(!tree.has(Pid(13), &proc_files) && !tree.has(Pid(1), &proc_files));
        tree.scan(&proc_files);
        assert_eq!(members(&tree), [(11, 7), (12, 8)]);
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let mut tree = tree_of(&[(10, 1, 6), (11, 10, 7)]);
        // The end of 11 went unnoticed; somebody else's child has its pid.
        assert!(!tree.forked(Pid(1), Pid(11), 9));
        assert!(!tree.contains(Pid(11), 9) && !tree.forked(Pid(11), Pid(12), 10));
        let mut tree = tree_of(&[(10, 1, 6), (11, 10, 7)]);
        let (_root, proc_files) = proc(&[(10, 1, 6), (11, 1, 9), (12, 11, 10)]);
        assert!(!tree.has(Pid(12), &proc_files), "its parent is not a member, but has a member's pid");
        tree.scan(&proc_files);
        assert_eq!(members(&tree), [(10, 6)]);
    }
}
