//! Asks JVMs for names of threads that are longer than what the kernel keeps.
//!
//! A thread is asked for when it runs with a name that may be cut, when the kernel says that it has taken a name, even the
//! same one, and again after 1, 2, 4, … windows, because what the kernel says can be lost.

use std::collections::{BTreeMap, HashMap};

use joular_data::{
    events::{
        Event, LongName, Runtime, ThreadTime,
        decode::Lifecycle,
        long_name::{is_cut_of, may_be_cut},
    },
    model::units::{Pid, Tid},
};
use joular_ebpf::abi::Comm;

use super::{LiveError, Run};

/// Threads of one process that are asked for in a window. Others wait for the next one.
const MOST_ASKED: usize = 64;
/// Windows for which a thread is known after it ran last, and the longest pause between two questions.
const KEPT_WINDOWS: u64 = 64;

/// Identity of a thread.
type Key = (Pid, Tid, u64);

/// Threads that were asked for.
#[derive(Debug, Default)]
pub(super) struct LongNames {
    known: HashMap<Key, Known>,
    window: u64,
}

#[derive(Debug)]
struct Known {
    /// What the kernel called it.
    comm: Comm,
    name: Option<String>,
    /// Windows: when to ask again, how long to wait then, and when it ran last.
    next: u64,
    pause: u64,
    used: u64,
}

impl LongNames {
    /// The threads that are to be asked for now, with what the kernel calls them, by process.
    fn due(&mut self, threads: &[ThreadTime]) -> BTreeMap<Pid, Vec<(Key, Comm)>> {
        let mut due: BTreeMap<Pid, Vec<(Key, Comm)>> = BTreeMap::new();
        for time in threads.iter().filter(|time| !time.is_kernel && may_be_cut(&time.comm)) {
            let key = (time.pid, time.tid, time.start_boottime_ns);
            if let Some(known) = self.known.get_mut(&key).filter(|known| known.comm == time.comm) {
                known.used = self.window;
                if self.window < known.next {
                    continue;
                }
            }
            let asked = due.entry(time.pid).or_default();
            if asked.len() < MOST_ASKED && asked.last().is_none_or(|(last, _)| *last != key) {
                asked.push((key, time.comm));
            }
        }
        due
    }

    /// Notes that a thread has taken a name: its whole name may be another one.
    pub(super) fn taken(&mut self, event: &Lifecycle) {
        if let Some(known) = self.known.get_mut(&(event.pid, event.tid, event.start_boottime_ns)) {
            (known.next, known.pause) = (self.window, 1);
        }
    }

    /// Takes an answer. Returns the name if it is new.
    fn take(&mut self, key: Key, comm: Comm, answer: Option<String>) -> Option<LongName> {
        let answer = answer.filter(|name| is_cut_of(&comm, name));
        let window = self.window;
        let new = || Known { comm, name: None, next: window, pause: 1, used: window };
        let known = self.known.entry(key).or_insert_with(new);
        if known.comm != comm {
            *known = new();
        }
        (known.next, known.pause) = (window + known.pause, (known.pause * 2).min(KEPT_WINDOWS));
        let name = answer.filter(|name| known.name.as_ref() != Some(name))?;
        known.name = Some(name.clone());
        let (pid, tid, start_boottime_ns) = key;
        Some(LongName { pid, tid, start_boottime_ns, name: name.into() })
    }

    fn end_window(&mut self) {
        self.window += 1;
        if self.window.is_multiple_of(KEPT_WINDOWS) {
            let window = self.window;
            self.known.retain(|_, known| known.used + KEPT_WINDOWS >= window);
            self.known.shrink_to_fit();
        }
    }
}

impl Run<'_> {
    /// Learns what threads of JVMs are called that ran in the window that has ended.
    pub(super) fn learn_long_names(&mut self, threads: &[ThreadTime]) -> Result<(), LiveError> {
        for (pid, due) in self.long_names.due(threads) {
            let Some(process) = self.live.registry.target(pid).filter(|info| info.runtime != Runtime::Native) else {
                continue;
            };
            let (key, is_namespaced) = ((pid, process.start_boottime_ns), process.namespace_pid != pid.0);
            let registry = &self.live.registry;
            let number = |tid: Tid| if is_namespaced { registry.thread_number(pid, tid) } else { Some(tid.0) };
            let numbered: Vec<_> = due.into_iter().map(|(key, comm)| (key, comm, number(key.1))).collect();
            let numbers: Vec<u32> = numbered.iter().filter_map(|(.., number)| *number).collect();
            let mut names: HashMap<u32, String> =
                self.live.symbolizer.thread_names(key, &numbers).into_iter().collect();
            for (key, comm, number) in numbered {
                let answer = number.and_then(|number| names.remove(&number));
                if let Some(name) = self.long_names.take(key, comm, answer) {
                    self.consumer.take(&Event::LongName(Box::new(name)))?;
                }
            }
        }
        self.long_names.end_window();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use joular_data::events::decode::comm_bytes;

    use super::*;

    fn time(tid: u32, comm: &str) -> ThreadTime {
        ThreadTime { pid: Pid(1), tid: Tid(tid), start_boottime_ns: 5, comm: comm_bytes(comm), ..ThreadTime::default() }
    }

    fn asked(names: &mut LongNames, threads: &[ThreadTime]) -> Vec<(Key, Comm)> {
        names.due(threads).into_values().flatten().collect()
    }

    #[test]
    fn a_thread_is_asked_for_less_and_less_often_until_it_takes_another_name() {
        let mut names = LongNames::default();
        let (first, second) = ("http-nio-8080-exec-1", "http-nio-8081-exec-1");
        let mut windows = Vec::new();
        for window in 0..20 {
            let name = if window < 12 { first } else { second };
            for (key, comm) in asked(&mut names, &[time(7, name), time(8, "main")]) {
                windows.push(window);
                assert_eq!(names.take(key, comm, Some(name.to_owned())).is_some(), [0, 12].contains(&window));
            }
            names.end_window();
        }
        assert_eq!(windows, [0, 1, 3, 7, 12, 13, 15, 19]);
    }

    #[test]
    fn what_does_not_begin_as_the_kernel_has_it_is_not_a_name() {
        let mut names = LongNames::default();
        let (key, comm) = asked(&mut names, &[time(7, "http-nio-8080-exec-1")])[0];
        for answer in [None, Some("\u{0}garbage"), Some("http-nio-8080-e"), Some("http-nio-9090-exec-1")] {
            assert_eq!(names.take(key, comm, answer.map(ToOwned::to_owned)), None);
        }
        let name = names.take(key, comm, Some("http-nio-8080-exec-1".to_owned())).unwrap();
        assert_eq!((name.tid, name.name.raw()), (Tid(7), "http-nio-8080-exec-1"));
    }

    #[test]
    fn few_are_asked_for_at_once_and_none_is_kept_for_long() {
        let mut names = LongNames::default();
        let threads: Vec<ThreadTime> = (0..200).map(|tid| time(tid, "a name that is longer")).collect();
        for _ in 0..3 {
            let all = asked(&mut names, &threads);
            assert_eq!(all.len(), MOST_ASKED);
            for (key, comm) in all {
                names.take(key, comm, None);
            }
        }
        assert_eq!(names.known.len(), 3 * MOST_ASKED);
        for _ in 0..=2 * KEPT_WINDOWS {
            names.end_window();
        }
        assert!(names.known.is_empty());
    }
}
