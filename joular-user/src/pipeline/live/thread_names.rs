//! Names threads. A thread starts with its parent's name and takes its own soon after.
//!
//! The kernel's programs note a thread's name once for each window, when it first runs, and report each name that a
//! thread takes later. Reports are read after a window's boundary, so some of them are of the next window already.

use std::collections::HashMap;

use joular_data::{
    events::{
        ThreadTime,
        decode::{self, Lifecycle},
    },
    model::units::{MonotonicNs, Pid, Tid},
};
use joular_ebpf::abi::Comm;

/// What threads are called, as far as that was learned in the running window.
#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    /// By the thread's number and start.
    taken: HashMap<(Tid, u64), (Comm, MonotonicNs)>,
    /// When targets were found. The kernel does not report names that their threads took before.
    new_targets: HashMap<Pid, MonotonicNs>,
}

impl ThreadNames {
    /// Notes the name that a thread has taken.
    pub(super) fn taken(&mut self, event: &Lifecycle) {
        let name = decode::comm_bytes(event.comm.raw());
        self.taken.insert((event.tid, event.start_boottime_ns), (name, event.time));
    }

    /// Notes when a process became a target. True: for the first time in this window.
    pub(super) fn target_found(&mut self, pid: Pid, at: MonotonicNs) -> bool {
        self.new_targets.insert(pid, at).is_none()
    }

    /// Names the threads of the window that has ended. `read` asks the kernel what a thread is called now.
    pub(super) fn name(
        &mut self,
        threads: &mut [ThreadTime],
        end: MonotonicNs,
        read: impl Fn(Pid, Tid) -> Option<Comm>,
    ) {
        for thread in threads {
            let taken = self.taken.get(&(thread.tid, thread.start_boottime_ns)).map(|(name, _)| *name);
            let is_new = self.new_targets.contains_key(&thread.pid);
            if let Some(name) = taken.or_else(|| is_new.then(|| read(thread.pid, thread.tid)).flatten()) {
                thread.comm = name;
            }
        }
        // What came after the boundary is needed at the next one.
        self.taken.retain(|_, (_, at)| *at >= end);
        // A window of many new threads would leave the room that they needed.
        self.taken.shrink_to_fit();
        self.new_targets.retain(|_, at| *at >= end);
    }
}

#[cfg(test)]
mod tests {
    use joular_data::events::decode::{LifecycleKind, comm_bytes, comm_text};

    use super::*;

    fn thread(pid: u32, tid: u32, start_boottime_ns: u64) -> ThreadTime {
        let comm = comm_bytes("parent");
        ThreadTime { pid: Pid(pid), tid: Tid(tid), start_boottime_ns, comm, ..ThreadTime::default() }
    }

    fn taken(tid: u32, start_boottime_ns: u64, name: &str, at: u64) -> Lifecycle {
        Lifecycle {
            kind: LifecycleKind::Rename,
            pid: Pid(1),
            tid: Tid(tid),
            time: MonotonicNs(at),
            start_boottime_ns,
            comm: name.into(),
        }
    }

    /// Names of threads of a window that ends then.
    fn named(names: &mut ThreadNames, mut threads: Vec<ThreadTime>, end: u64) -> Vec<String> {
        names.name(&mut threads, MonotonicNs(end), |_, tid| Some(comm_bytes(&format!("read {tid}"))));
        threads.iter().map(|thread| comm_text(&thread.comm).raw().to_owned()).collect()
    }

    #[test]
    fn a_thread_has_the_name_that_it_took_last() {
        let mut names = ThreadNames::default();
        names.taken(&taken(5, 50, "first", 60));
        names.taken(&taken(5, 50, "second", 70));
        assert_eq!(named(&mut names, vec![thread(1, 5, 50), thread(1, 6, 55)], 100), ["second", "parent"]);
    }

    #[test]
    fn a_name_that_is_read_before_the_window_ends_and_taken_after_it_holds_in_the_next_window_too() {
        let mut names = ThreadNames::default();
        names.taken(&taken(5, 50, "before", 99));
        // These ran only after the boundary, and were read of before the ended window was handed on.
        names.taken(&taken(6, 100, "at", 100));
        names.taken(&taken(7, 101, "after", 102));
        assert_eq!(named(&mut names, vec![thread(1, 5, 50)], 100), ["before"]);
        let threads = || vec![thread(1, 5, 50), thread(1, 6, 100), thread(1, 7, 101)];
        assert_eq!(named(&mut names, threads(), 200), ["parent", "at", "after"]);
        // By then the kernel's programs note it themselves.
        assert_eq!(named(&mut names, threads(), 300), ["parent", "parent", "parent"]);
    }

    #[test]
    fn two_threads_that_had_one_number_keep_their_names() {
        let mut names = ThreadNames::default();
        names.taken(&taken(5, 50, "first", 60));
        names.taken(&taken(5, 80, "second", 81));
        assert_eq!(named(&mut names, vec![thread(1, 5, 50), thread(1, 5, 80)], 100), ["first", "second"]);
    }

    #[test]
    fn names_of_a_new_targets_threads_are_read_until_the_first_window_that_began_with_it_has_ended() {
        let mut names = ThreadNames::default();
        assert!(names.target_found(Pid(1), MonotonicNs(100)));
        assert!(!names.target_found(Pid(1), MonotonicNs(101)), "it executes another program");
        names.taken(&taken(6, 55, "taken", 60));
        let threads = || vec![thread(1, 5, 50), thread(1, 6, 55), thread(2, 7, 55)];
        assert_eq!(named(&mut names, threads(), 100), ["read 5", "taken", "parent"]);
        assert_eq!(named(&mut names, threads(), 200), ["read 5", "read 6", "parent"]);
        assert_eq!(named(&mut names, threads(), 300), ["parent", "parent", "parent"]);
    }
}
