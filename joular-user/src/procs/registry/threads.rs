//! Asks /proc about threads of processes, and what people call a process.

use joular_data::model::{
    target_text::TargetText,
    units::{Pid, Tid},
};

use super::Registry;

impl Registry {
    /// The name that /proc has for a thread now.
    pub fn thread_comm(&self, pid: Pid, tid: Tid) -> Option<TargetText> {
        self.proc_files.thread_comm(pid, tid)
    }

    /// All threads of a process, each with its number in its own namespace.
    pub fn numbered_threads(&self, pid: Pid) -> Vec<(Tid, u32)> {
        self.proc_files.threads_named(pid, |_| true)
    }

    /// The number of one of them.
    pub fn thread_number(&self, pid: Pid, tid: Tid) -> Option<u32> {
        self.proc_files.thread_number(pid, tid)
    }

    /// Whether a process has such a thread.
    pub fn has_thread(&self, pid: Pid, tid: Tid) -> bool {
        self.proc_files.has_thread(pid, tid)
    }

    /// A process as people are told of it.
    pub fn named(&self, pid: Pid) -> String {
        let known = self.entries.get(&pid).map(|entry| entry.info.comm.clone());
        match known.or_else(|| self.proc_files.comm(pid)) {
            Some(comm) => format!("process {pid} ({comm})"),
            None => format!("process {pid}"),
        }
    }
}
