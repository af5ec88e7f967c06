//! Keeps the processes that joular-bpf starts for itself: their time is its own, and they are never
//! targets.
//!
//! A child is one of them because it was started here, not because it is a child. Other children
//! may be a command that is profiled, or orphans that joular-bpf inherits as the first process of a
//! namespace.

use std::{
    collections::VecDeque,
    io,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

use joular_data::model::units::Pid;

use super::proc_files::ProcFiles;

/// Only the last ones are remembered: the kernel's news of one comes within moments.
const MAX_REMEMBERED: usize = 256;

/// What this process started for itself.
#[derive(Debug)]
pub struct OwnProcesses {
    /// Pid and start, if it could be read; the start tells a process from a later one.
    started: Mutex<VecDeque<(Pid, Option<u64>)>>,
}

impl OwnProcesses {
    pub const fn new() -> Self {
        Self { started: Mutex::new(VecDeque::new()) }
    }

    /// The processes of joular-bpf.
    pub fn ours() -> &'static Self {
        static OURS: OwnProcesses = OwnProcesses::new();
        &OURS
    }

    /// Starts a process. The kernel may tell of it before its pid is known here, so
    /// [`Self::contains`] waits meanwhile.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mut started = self.lock();
        let child = command.spawn()?;
        let pid = Pid(child.id());
        // It is there until it is waited for, even if it has ended.
        let start = ProcFiles::new("/proc").descent(pid).map(|descent| descent.start_boottime_ns);
        if started.len() >= MAX_REMEMBERED {
            started.pop_front();
        }
        started.push_back((pid, start));
        Ok(child)
    }

    /// Whether the process with this pid and this start, as /proc rounds it, is one of them.
    pub fn contains(&self, pid: Pid, start_boottime_ns: u64) -> bool {
        let is_it =
            |(own, start): &(Pid, Option<u64>)| *own == pid && start.is_none_or(|start| start == start_boottime_ns);
        self.lock().iter().any(is_it)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Pid, Option<u64>)>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn with(processes: &[(Pid, u64)]) -> &'static Self {
        let started = processes.iter().map(|(pid, start)| (*pid, Some(*start))).collect();
        Box::leak(Box::new(Self { started: Mutex::new(started) }))
    }
}

impl Default for OwnProcesses {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_here_is_known_by_its_pid_and_start() {
        let own = OwnProcesses::new();
        let mut child = own.start(&mut Command::new("true")).unwrap();
        let mut other = Command::new("true").spawn().unwrap();
        let descent = |child: &Child| ProcFiles::new("/proc").descent(Pid(child.id())).unwrap();
        let (pid, start) = (Pid(child.id()), descent(&child).start_boottime_ns);
        assert_eq!(descent(&child).parent, Pid(std::process::id()));
        assert!(own.contains(pid, start));
        assert!(!own.contains(pid, start + 1), "a later process with that pid");
        assert!(!own.contains(Pid(other.id()), descent(&other).start_boottime_ns), "a child, and not our own");
        child.wait().unwrap();
        other.wait().unwrap();
        assert!(own.contains(pid, start), "news of it may come late");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let own = OwnProcesses::with(&(0..256).map(|pid| (Pid(pid), 1)).collect::<Vec<_>>());
        let mut child = own.start(&mut Command::new("true")).unwrap();
        child.wait().unwrap();
        assert!(!own.contains(Pid(0), 1) && own.contains(Pid(1), 1));
        assert_eq!(own.lock().len(), MAX_REMEMBERED);
    }
}
