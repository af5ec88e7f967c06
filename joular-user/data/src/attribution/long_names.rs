//! Keeps names of threads that are longer than what the kernel keeps, while their threads run.

use std::collections::HashMap;

use crate::{
    events::{LongName, ThreadTime, decode::comm_text, long_name::is_cut_of},
    model::{
        target_text::TargetText,
        units::{Pid, Tid},
    },
};

/// Windows for which a name is kept after its thread ran last. Who tells names tells them again before.
const KEPT_WINDOWS: u64 = 128;
/// Names that are kept at once. Other threads have the name that the kernel keeps.
const MAX_NAMES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct LongNames {
    /// With the window in which it was used last.
    names: HashMap<(Pid, Tid, u64), (TargetText, u64)>,
    window: u64,
}

impl LongNames {
    pub(super) fn learn(&mut self, LongName { pid, tid, start_boottime_ns, name }: &LongName) {
        let key = (*pid, *tid, *start_boottime_ns);
        if self.names.len() < MAX_NAMES || self.names.contains_key(&key) {
            self.names.insert(key, (name.clone(), self.window));
        }
    }

    /// What a thread that ran in this window is called.
    pub(super) fn of(&mut self, time: &ThreadTime) -> TargetText {
        match self.names.get_mut(&(time.pid, time.tid, time.start_boottime_ns)) {
            Some((name, used)) if is_cut_of(&time.comm, name.raw()) => {
                *used = self.window;
                name.clone()
            }
            _ => comm_text(&time.comm),
        }
    }

    pub(super) fn end_window(&mut self) {
        self.window += 1;
        if self.window.is_multiple_of(KEPT_WINDOWS) {
            let window = self.window;
            self.names.retain(|_, (_, used)| *used + KEPT_WINDOWS >= window);
            self.names.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::decode::comm_bytes;

    fn time(tid: u32, comm: &str) -> ThreadTime {
        ThreadTime { pid: Pid(1), tid: Tid(tid), start_boottime_ns: 5, comm: comm_bytes(comm), ..ThreadTime::default() }
    }

    fn long(tid: u32, name: &str) -> LongName {
        LongName { pid: Pid(1), tid: Tid(tid), start_boottime_ns: 5, name: name.into() }
    }

    #[test]
    fn a_thread_has_its_long_name_until_it_takes_another() {
        let mut names = LongNames::default();
        names.learn(&long(7, "http-nio-8080-exec-1"));
        assert_eq!(names.of(&time(7, "http-nio-8080-e")), "http-nio-8080-exec-1");
        assert_eq!(names.of(&time(8, "http-nio-8080-e")), "http-nio-8080-e", "another thread");
        assert_eq!(names.of(&time(7, "idle")), "idle");
        names.learn(&long(7, "http-nio-8080-exec-2"));
        assert_eq!(names.of(&time(7, "http-nio-8080-e")), "http-nio-8080-exec-2");
    }

    #[test]
    fn names_of_threads_that_run_no_more_are_forgotten() {
        let mut names = LongNames::default();
        for tid in 0..100 {
            names.learn(&long(tid, "a name that is longer than that"));
        }
        for _ in 0..3 * KEPT_WINDOWS {
            names.of(&time(7, "a name that is "));
            names.end_window();
        }
        assert_eq!(names.names.len(), 1);
        for tid in 0..2 * u32::try_from(MAX_NAMES).unwrap() {
            names.learn(&long(tid, "a name that is longer than that"));
        }
        assert_eq!(names.names.len(), MAX_NAMES);
    }
}
