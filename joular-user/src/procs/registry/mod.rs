//! Tracks targets as they come and go.
//!
//! The kernel tells of executions, renames and ends; /proc tells the rest. A process that ended is
//! kept for one more window, in which its last time and samples arrive. Events can be lost and pids
//! are reused. So pid and start time identify a process, and now and then everything is compared
//! with /proc.
//!
//! A child that was only forked is not looked at, because most execute something else at once. It
//! becomes a target when it executes something that matches, or when it has lived for a while. Only
//! in a selected tree it is one from the start.

mod candidates;
mod jvms;
mod late;
mod reading;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeMap;

use joular_data::{
    events::{
        ProcessInfo, ThreadTime,
        decode::{Lifecycle, LifecycleKind, comm_text},
    },
    model::{target_text::TargetText, units::Pid},
};

use self::{candidates::Candidates, jvms::Others, late::Seen, reading::Reading};
use super::{
    own_processes::OwnProcesses,
    proc_files::{ProcFiles, TICK_NS},
    selection::Selection,
    tree::ProcessTree,
};
use crate::clock;

/// After so many windows everything is compared with /proc.
const WINDOWS_BETWEEN_SCANS: u64 = 30;
/// Windows for which a process is new: one that has ended may be there until its parent asks for its exit code.
const NEW: u32 = 2;

/// What changed about a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new target, or news of a known one; `is_target` may have become false.
    Found(Box<ProcessInfo>),
    /// A known target runs another program now, or the same one anew.
    Executed(Box<ProcessInfo>),
    /// A target ended and its last window is over.
    Ended(Box<ProcessInfo>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Target,
    /// A helper of the profiler.
    Own,
    /// A target that has become something else.
    Dismissed,
}

#[derive(Clone, Debug)]
struct KnownProcess {
    info: ProcessInfo,
    role: Role,
    /// Window boundaries passed since it ended.
    ended: Option<u32>,
    /// Window boundaries passed since it was found.
    windows: u32,
}

#[derive(Debug)]
pub struct Registry {
    proc_files: ProcFiles,
    selection: Selection,
    /// The members, if a tree is selected.
    tree: Option<ProcessTree>,
    profiler: Pid,
    own: &'static OwnProcesses,
    entries: BTreeMap<Pid, KnownProcess>,
    candidates: Candidates,
    /// If JVMs are selected.
    others: Others,
    windows: u64,
    ever_matched: bool,
    reading: Reading,
    seen: Seen,
}

impl Registry {
    pub fn new(proc_files: ProcFiles, selection: Selection) -> Self {
        let tree = match selection {
            Selection::Tree(root) => Some(ProcessTree::new(root)),
            _ => None,
        };
        Self {
            seen: Seen::of(&proc_files),
            proc_files,
            selection,
            tree,
            profiler: Pid(std::process::id()),
            own: OwnProcesses::ours(),
            entries: BTreeMap::new(),
            candidates: Candidates::default(),
            others: Others::default(),
            windows: 0,
            ever_matched: false,
            reading: Reading::default(),
        }
    }

    /// Whether any process matched since the start.
    pub const fn ever_matched(&self) -> bool {
        self.ever_matched
    }

    /// Whether most targets are never sampled: on a whole host, or of a command that
    /// starts others all the time.
    pub const fn selects_many(&self) -> bool {
        self.selection.is_all() || self.tree.is_some()
    }

    pub fn target(&self, pid: Pid) -> Option<&ProcessInfo> {
        self.entries.get(&pid).filter(|entry| entry.role == Role::Target).map(|entry| &entry.info)
    }

    pub fn targets(&self) -> impl Iterator<Item = &ProcessInfo> {
        self.entries.values().filter(|entry| entry.role == Role::Target).map(|entry| &entry.info)
    }

    /// Finds the targets that are already running.
    pub fn scan(&mut self) -> Vec<Change> {
        if let Some(tree) = &mut self.tree {
            tree.scan(&self.proc_files);
        }
        if self.selection.is_of_jvms() {
            return self.find_jvms();
        }
        let pids = self.proc_files.pids();
        pids.into_iter().flat_map(|pid| self.consider(pid, None)).collect()
    }

    /// Takes news from the kernel.
    pub fn lifecycle(&mut self, event: &Lifecycle) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.is_late(event, &mut changes) {
            return changes;
        }
        match event.kind {
            LifecycleKind::Exec => changes.extend(self.executed(event)),
            LifecycleKind::Rename if event.pid.0 == event.tid.0 => changes.extend(self.renamed(event)),
            LifecycleKind::Fork { parent } => changes.extend(self.forked(event, parent)),
            LifecycleKind::ProcessEnd => {
                self.candidates.remove(event.pid);
                self.reading.forget(event.pid);
                if let Some(tree) = &mut self.tree {
                    tree.ended(event.pid);
                }
                if let Some(entry) = self.entries.get_mut(&event.pid) {
                    entry.ended = entry.ended.or(Some(0));
                }
            }
            LifecycleKind::Rename => {}
        }
        changes
    }

    /// Whether an event is of an earlier process with a known pid. One of a
    /// later process means that the known one has ended, unnoticed.
    fn is_late(&mut self, event: &Lifecycle, changes: &mut Vec<Change>) -> bool {
        let start = whole_ticks(event.start_boottime_ns);
        // The last thread of a process need not be its first.
        if start == 0 || event.pid.0 != event.tid.0 {
            return false;
        }
        let Some(known) = self.entries.get(&event.pid).map(|entry| entry.info.start_boottime_ns) else { return false };
        if start > known {
            changes.extend(self.finish(event.pid));
        }
        start < known
    }

    fn finish(&mut self, pid: Pid) -> Option<Change> {
        self.entries.remove(&pid).map(|entry| Change::Ended(Box::new(entry.info)))
    }

    fn is_running(&self, pid: Pid) -> bool {
        self.entries.get(&pid).is_some_and(|entry| entry.ended.is_none())
    }

    fn forked(&mut self, event: &Lifecycle, parent: Pid) -> Vec<Change> {
        // Whoever had this pid is gone.
        let mut changes: Vec<Change> = self.finish(event.pid).into_iter().collect();
        let start_boottime_ns = whole_ticks(event.start_boottime_ns);
        let in_tree = self.tree.as_mut().map(|tree| tree.forked(parent, event.pid, start_boottime_ns));
        let (pid, comm) = (event.pid, event.comm.clone());
        let told = ProcessInfo { pid, start_boottime_ns, parent, comm, ..ProcessInfo::default() };
        // Asking may mean to wait: others' children are not asked for.
        if parent == self.profiler && self.own.contains(event.pid, start_boottime_ns) {
            changes.extend(self.insert(told, Role::Own));
        } else if in_tree == Some(true) {
            let read = self
                .reading
                .read(&self.proc_files, event.pid)
                .filter(|read| read.start_boottime_ns == start_boottime_ns);
            let info = read.unwrap_or_else(|| self.proc_files.with_service(told));
            changes.extend(self.insert(info, Role::Target));
        } else if in_tree.is_none() && self.selection.matches(event.pid, event.comm.raw()) {
            self.candidates.insert(event.pid, event.time);
        }
        changes
    }

    /// Whether a running process is selected. `comm`: its name, if it has just been told.
    fn is_wanted(&mut self, pid: Pid, comm: Option<&TargetText>) -> bool {
        match (&mut self.tree, comm) {
            (Some(tree), _) => tree.has(pid, &self.proc_files),
            (None, Some(comm)) => self.selection.matches(pid, comm.raw()),
            (None, None) if self.selection.is_of_jvms() => reading::maps_libjvm(&self.proc_files, pid),
            (None, None) => self.proc_files.comm(pid).is_some_and(|comm| self.selection.matches(pid, comm.raw())),
        }
    }

    fn executed(&mut self, event: &Lifecycle) -> Vec<Change> {
        self.candidates.remove(event.pid);
        self.reading.forget(event.pid);
        if !self.is_running(event.pid) {
            return self.consider(event.pid, Some(&event.comm));
        }
        let is_match = match &self.tree {
            Some(tree) => tree.contains(event.pid, whole_ticks(event.start_boottime_ns)),
            None => self.selection.matches(event.pid, event.comm.raw()),
        };
        let read = is_match.then(|| self.read_again(event.pid)).flatten();
        let is_match = is_match && read.as_ref().is_none_or(|info| self.selection.matches_info(info));
        let Some(entry) = self.entries.get_mut(&event.pid).filter(|entry| entry.role == Role::Target) else {
            return Vec::new();
        };
        if is_match {
            // If it has gone already, its name is all that is known.
            entry.info = read.unwrap_or_else(|| self.proc_files.renamed(&entry.info, &event.comm));
            entry.windows = 0;
            return vec![Change::Executed(Box::new(entry.info.clone()))];
        }
        entry.role = Role::Dismissed;
        entry.ended = Some(0);
        entry.info = ProcessInfo { is_target: false, comm: event.comm.clone(), ..entry.info.clone() };
        vec![Change::Found(Box::new(entry.info.clone()))]
    }

    fn renamed(&mut self, event: &Lifecycle) -> Vec<Change> {
        if !self.is_running(event.pid) {
            return self.consider(event.pid, Some(&event.comm));
        }
        match self.entries.get_mut(&event.pid) {
            Some(entry) if entry.role == Role::Target && entry.info.comm != event.comm => {
                entry.info = self.proc_files.renamed(&entry.info, &event.comm);
                vec![Change::Found(Box::new(entry.info.clone()))]
            }
            _ => Vec::new(),
        }
    }

    /// In a whole-system run, makes every process that used time a target, even one that came and
    /// went unseen: its threads tell what is known of it.
    pub fn seen_running(&mut self, threads: &[ThreadTime]) -> Vec<Change> {
        if !self.selection.is_all() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for thread in threads {
            if self.entries.contains_key(&thread.pid) {
                continue;
            }
            let found = self.consider(thread.pid, None);
            changes.extend(if found.is_empty() { self.vanished(thread) } else { found });
        }
        changes
    }

    fn vanished(&mut self, thread: &ThreadTime) -> Vec<Change> {
        if thread.pid == self.profiler {
            return Vec::new();
        }
        let start_boottime_ns = whole_ticks(thread.start_boottime_ns);
        let comm = comm_text(&thread.comm);
        let info = ProcessInfo { pid: thread.pid, start_boottime_ns, comm, ..ProcessInfo::default() };
        let info = self.proc_files.with_service(info);
        let role = self.role_of(&info);
        let changes = self.insert(info, role);
        if let Some(entry) = self.entries.get_mut(&thread.pid) {
            entry.ended = Some(0);
        }
        changes
    }

    fn consider(&mut self, pid: Pid, comm: Option<&TargetText>) -> Vec<Change> {
        if pid == self.profiler || self.is_running(pid) {
            return Vec::new();
        }
        let is_wanted = self.is_wanted(pid, comm) && self.selection.matches_cgroup(|| self.proc_files.cgroup(pid));
        let read = is_wanted.then(|| self.reading.read(&self.proc_files, pid)).flatten();
        let Some(info) = read.filter(|info| self.selection.matches_info(info)) else {
            return Vec::new();
        };
        self.candidates.remove(pid);
        let role = self.role_of(&info);
        self.insert(info, role)
    }

    /// The role of a process that is selected.
    fn role_of(&self, info: &ProcessInfo) -> Role {
        if self.own.contains(info.pid, info.start_boottime_ns) { Role::Own } else { Role::Target }
    }

    fn insert(&mut self, info: ProcessInfo, role: Role) -> Vec<Change> {
        let pid = info.pid;
        let is_another = |entry: &KnownProcess| entry.info.start_boottime_ns != info.start_boottime_ns;
        let mut changes = Vec::new();
        if self.entries.get(&pid).is_some_and(is_another) {
            changes.extend(self.finish(pid));
        }
        self.ever_matched |= role == Role::Target;
        let info = ProcessInfo { is_target: role == Role::Target, is_helper: role == Role::Own, ..info };
        changes.push(Change::Found(Box::new(info.clone())));
        self.entries.insert(pid, KnownProcess { info, role, ended: None, windows: 0 });
        changes
    }

    /// What /proc says now of a known target, if the target is still there.
    fn read_again(&mut self, pid: Pid) -> Option<ProcessInfo> {
        let known = self.entries.get(&pid)?.info.start_boottime_ns;
        let read = self.reading.read(&self.proc_files, pid)?;
        (read.start_boottime_ns == known).then_some(ProcessInfo { is_target: true, ..read })
    }

    /// Ends a window: finishes processes that ended a window ago, and looks again at young
    /// processes that may have become JVMs.
    pub fn end_of_window(&mut self) -> Vec<Change> {
        self.windows += 1;
        let settled = self.candidates.take_settled(clock::monotonic_now());
        let mut changes: Vec<Change> = settled.into_iter().flat_map(|pid| self.consider(pid, None)).collect();
        self.find_early_ends();
        changes.extend(self.become_jvms());
        if self.selection.is_of_jvms() {
            changes.extend(self.find_jvms());
        }
        changes.extend(self.learn_pods());
        changes.extend(self.follow_rules());
        if self.windows.is_multiple_of(WINDOWS_BETWEEN_SCANS) {
            self.find_lost_ends();
            if !self.selection.is_of_jvms() {
                changes.extend(self.scan());
            }
        }
        self.entries.retain(|_, entry| {
            let windows = entry.ended.map(|windows| windows + 1);
            entry.ended = windows;
            let over = windows.is_some_and(|windows| windows >= 2);
            if over {
                changes.push(Change::Ended(Box::new(entry.info.clone())));
            }
            !over
        });
        changes
    }

    /// Finds ends that the kernel did not tell of, because the process was not a target yet: one that ends while it is
    /// looked at.
    fn find_early_ends(&mut self) {
        // In a whole-system run the kernel tells of all.
        if !self.selection.is_all() {
            self.find_ends(|entry| entry.windows < NEW);
        }
    }

    /// Finds ends that were missed, because events can be lost.
    fn find_lost_ends(&mut self) {
        self.find_ends(|_| true);
    }

    /// A process that is gone has ended.
    fn find_ends(&mut self, may_have_ended: impl Fn(&KnownProcess) -> bool) {
        for (pid, entry) in &mut self.entries {
            let may_have_ended = entry.ended.is_none() && may_have_ended(entry);
            if may_have_ended && !self.proc_files.is_there(*pid, entry.info.start_boottime_ns) {
                entry.ended = Some(0);
            }
        }
    }
}

/// Rounded as /proc rounds the start of a process.
const fn whole_ticks(boottime_ns: u64) -> u64 {
    boottime_ns / TICK_NS * TICK_NS
}
