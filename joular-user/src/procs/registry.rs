//! Targets as they come and go.
//!
//! The kernel tells of executions, renames and ends; /proc tells the rest.
//! A process that ended is kept for one more window, in which its last time
//! and samples arrive, and only then finished.

use std::collections::BTreeMap;

use super::{proc_files::ProcFiles, selection::Selection};
use crate::{
    events::{
        ProcessInfo, Runtime, ThreadTime,
        decode::{Lifecycle, LifecycleKind, comm_text},
    },
    units::Pid,
};

/// How many windows a process may take to load libjvm after it was found.
const RUNTIME_CHECKS: u32 = 30;

/// What changed about a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new target, or news of a known one; `is_target` may have become false.
    Found(Box<ProcessInfo>),
    /// A target ended and its last window is over.
    Ended(ProcessInfo),
}

#[derive(Clone, Debug)]
struct Target {
    info: ProcessInfo,
    /// Window boundaries passed since it ended.
    ended: Option<u32>,
    runtime_checks: u32,
}

#[derive(Debug)]
pub struct Registry {
    proc_files: ProcFiles,
    selection: Selection,
    profiler: Pid,
    targets: BTreeMap<Pid, Target>,
    ever_matched: bool,
}

impl Registry {
    pub fn new(proc_files: ProcFiles, selection: Selection) -> Self {
        let profiler = Pid(std::process::id());
        Self { proc_files, selection, profiler, targets: BTreeMap::new(), ever_matched: false }
    }

    /// Whether any process matched since the start.
    pub const fn ever_matched(&self) -> bool {
        self.ever_matched
    }

    pub fn target(&self, pid: Pid) -> Option<&ProcessInfo> {
        self.targets.get(&pid).map(|target| &target.info)
    }

    pub fn targets(&self) -> impl Iterator<Item = &ProcessInfo> {
        self.targets.values().map(|target| &target.info)
    }

    /// Finds the targets that are already running.
    pub fn scan(&mut self) -> Vec<Change> {
        let pids = self.proc_files.pids();
        pids.into_iter().filter_map(|pid| self.consider(pid, None)).collect()
    }

    /// Takes news from the kernel.
    pub fn lifecycle(&mut self, event: &Lifecycle) -> Option<Change> {
        match event.kind {
            LifecycleKind::Exec => self.executed(event),
            LifecycleKind::Rename if event.pid.0 == event.tid.0 => self.renamed(event),
            LifecycleKind::Fork { .. } => self.consider(event.pid, Some(&event.comm)),
            LifecycleKind::ProcessEnd => {
                if let Some(target) = self.targets.get_mut(&event.pid) {
                    target.ended = Some(0);
                }
                None
            }
            LifecycleKind::Rename => None,
        }
    }

    fn executed(&mut self, event: &Lifecycle) -> Option<Change> {
        if !self.targets.contains_key(&event.pid) {
            return self.consider(event.pid, Some(&event.comm));
        }
        if self.selection.matches(event.pid, &event.comm) {
            return self.refresh(event.pid);
        }
        // A child that a target forked to run something else.
        let target = self.targets.remove(&event.pid)?;
        let info = ProcessInfo { is_target: false, comm: event.comm.clone(), ..target.info };
        Some(Change::Found(Box::new(info)))
    }

    fn renamed(&mut self, event: &Lifecycle) -> Option<Change> {
        match self.targets.get_mut(&event.pid) {
            Some(target) if target.info.comm != event.comm => {
                target.info.comm.clone_from(&event.comm);
                Some(Change::Found(Box::new(target.info.clone())))
            }
            Some(_) => None,
            None => self.consider(event.pid, Some(&event.comm)),
        }
    }

    /// In a whole-system run, every process that used time is a target, also
    /// one that came and went unseen: its threads tell what is known of it.
    pub fn seen_running(&mut self, threads: &[ThreadTime]) -> Vec<Change> {
        if !self.selection.is_all() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for thread in threads {
            if self.targets.contains_key(&thread.pid) {
                continue;
            }
            changes.extend(self.consider(thread.pid, None).or_else(|| self.vanished(thread)));
        }
        changes
    }

    fn vanished(&mut self, thread: &ThreadTime) -> Option<Change> {
        let info = ProcessInfo {
            pid: thread.pid,
            start_boottime_ns: thread.start_boottime_ns,
            comm: comm_text(&thread.comm),
            ..ProcessInfo::default()
        };
        let change = self.insert(info);
        if let Some(target) = self.targets.get_mut(&thread.pid) {
            target.ended = Some(0);
        }
        change
    }

    fn consider(&mut self, pid: Pid, comm: Option<&str>) -> Option<Change> {
        if pid == self.profiler || self.targets.get(&pid).is_some_and(|target| target.ended.is_none()) {
            return None;
        }
        let read;
        let comm = match comm {
            Some(comm) => comm,
            None => {
                read = self.proc_files.comm(pid)?;
                &read
            }
        };
        if !self.selection.matches(pid, comm) {
            return None;
        }
        let info = self.proc_files.process(pid)?;
        self.insert(info)
    }

    fn insert(&mut self, info: ProcessInfo) -> Option<Change> {
        if info.pid == self.profiler {
            return None;
        }
        let info = ProcessInfo { is_target: true, ..info };
        self.ever_matched = true;
        self.targets.insert(info.pid, Target { info: info.clone(), ended: None, runtime_checks: 0 });
        Some(Change::Found(Box::new(info)))
    }

    fn refresh(&mut self, pid: Pid) -> Option<Change> {
        let read = self.proc_files.process(pid)?;
        let target = self.targets.get_mut(&pid)?;
        let info = ProcessInfo { is_target: true, ..read };
        target.runtime_checks = 0;
        if target.info == info {
            return None;
        }
        target.info = info.clone();
        Some(Change::Found(Box::new(info)))
    }

    /// A window is over: finishes who ended a window ago, and looks again at
    /// young processes that may have become JVMs.
    pub fn end_of_window(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut young = Vec::new();
        for (pid, target) in &mut self.targets {
            if let Some(windows) = &mut target.ended {
                *windows += 1;
            } else if target.info.runtime == Runtime::Native && target.runtime_checks < RUNTIME_CHECKS {
                target.runtime_checks += 1;
                young.push((*pid, target.runtime_checks));
            }
        }
        for (pid, checks) in young {
            changes.extend(self.refresh(pid));
            if let Some(target) = self.targets.get_mut(&pid) {
                target.runtime_checks = checks;
            }
        }
        self.targets.retain(|_, target| {
            let over = target.ended.is_some_and(|windows| windows >= 2);
            if over {
                changes.push(Change::Ended(target.info.clone()));
            }
            !over
        });
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procs::selection::NamePattern;
    use crate::units::{MonotonicNs, Tid};

    fn registry(comm: &str) -> Registry {
        let selection = Selection::Names(vec![NamePattern::new(comm).unwrap()]);
        Registry { profiler: Pid(1), ..Registry::new(ProcFiles::new("/proc"), selection) }
    }

    fn event(kind: LifecycleKind, comm: &str) -> Lifecycle {
        let pid = std::process::id();
        Lifecycle { kind, pid: Pid(pid), tid: Tid(pid), time: MonotonicNs(0), start_boottime_ns: 0, comm: comm.into() }
    }

    #[test]
    fn a_process_becomes_a_target_by_its_new_name() {
        let mut registry = registry("wanted");
        assert_eq!(registry.lifecycle(&event(LifecycleKind::Exec, "other")), None);
        let change = registry.lifecycle(&event(LifecycleKind::Rename, "wanted"));
        assert!(matches!(change, Some(Change::Found(info)) if info.is_target));
        assert!(registry.ever_matched());
    }

    #[test]
    fn an_ended_target_is_finished_after_its_last_window() {
        let mut registry = registry("wanted");
        registry.lifecycle(&event(LifecycleKind::Exec, "wanted"));
        registry.lifecycle(&event(LifecycleKind::ProcessEnd, "wanted"));
        let ended = |changes: Vec<Change>| changes.iter().filter(|change| matches!(change, Change::Ended(_))).count();
        assert_eq!(ended(registry.end_of_window()), 0, "its last window is still to come");
        assert_eq!(ended(registry.end_of_window()), 1);
        assert!(registry.target(Pid(std::process::id())).is_none());
    }

    #[test]
    fn the_profiler_is_never_a_target() {
        let selection = Selection::All;
        let mut registry = Registry::new(ProcFiles::new("/proc"), selection);
        let own = Pid(std::process::id());
        assert!(registry.scan().iter().all(|change| !matches!(change, Change::Found(info) if info.pid == own)));
    }
}
