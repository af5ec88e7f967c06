//! Follows what the threads of one JVM have allocated, from one window to the next.

use std::collections::{BTreeMap, HashMap, HashSet};

use joular_data::{
    events::{ThreadAllocation, ThreadTime},
    model::units::Tid,
};
use joular_ebpf::abi::{Place, ThreadKey};

use crate::symbols::ProcessKey;

#[derive(Debug)]
pub(super) struct Jvm {
    pub(super) key: ProcessKey,
    /// False: it has ended, or runs another program. Its threads are told of until the end of the window.
    pub(super) is_followed: bool,
    /// Whether threads have other numbers in its own namespace.
    pub(super) is_namespaced: bool,
    /// Whether its memory answered when it was last asked.
    pub(super) is_read: bool,
    /// When it was first looked at, in nanoseconds since boot.
    pub(super) opened_boottime_ns: u64,
    /// Threads that it had then, and those that have run since. One that has ended leaves nothing.
    pub(super) threads: HashMap<Tid, Known>,
}

/// What is known of a thread from one window to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Of its key; `None`: it has not run since the JVM was first looked at.
    pub(super) identity: Option<u64>,
    /// In the JVM's own namespace.
    pub(super) number: u32,
    /// What it had allocated when the JVM was first looked at, or what was reported of it until now; `None`: nothing.
    pub(super) bytes: Option<u64>,
}

/// What is known of a thread at the end of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) key: ThreadKey,
    pub(super) start_boottime_ns: u64,
    pub(super) bytes: u64,
    pub(super) objects: u64,
}

impl Jvm {
    /// What is known of a thread that ran, unless it is new.
    pub(super) fn known(&self, time: &ThreadTime) -> Option<&Known> {
        let identity = ThreadKey::new(time.tid.0, time.start_boottime_ns, Place(0)).identity();
        self.threads.get(&time.tid).filter(|known| match known.identity {
            Some(known) => known == identity,
            None => time.start_boottime_ns < self.opened_boottime_ns,
        })
    }

    /// What each thread has allocated since it was last reported.
    pub(super) fn news(&mut self, seen: impl IntoIterator<Item = Seen>) -> Vec<ThreadAllocation> {
        let mut seen: Vec<Seen> = seen.into_iter().collect();
        // Of two that had one number the earlier one has ended.
        seen.sort_by_key(|seen| (seen.key.tid(), seen.start_boottime_ns));
        let mut news = Vec::new();
        for Seen { key, start_boottime_ns, bytes, objects } in seen {
            let (tid, identity) = (Tid(key.tid()), key.identity());
            let is_old = start_boottime_ns < self.opened_boottime_ns;
            let known = self.threads.entry(tid).or_insert(Known { identity: None, number: tid.0, bytes: None });
            let reported = match known.identity {
                Some(known_identity) if known_identity == identity => known.bytes,
                // Of one that was there when the JVM was first looked at, its number then had what it had allocated.
                None if is_old => known.bytes,
                _ => None,
            };
            // One that was not listed then has nothing to be compared with.
            let reported = reported.unwrap_or(if is_old { bytes } else { 0 });
            (known.identity, known.bytes) = (Some(identity), Some(bytes.max(reported)));
            let bytes = bytes.saturating_sub(reported);
            if bytes > 0 {
                news.push(ThreadAllocation { tid, pid: self.key.0, thread_key: key.0, bytes, objects });
            }
        }
        news
    }

    /// What those of its threads have allocated by now that ran.
    pub(super) fn of_threads(&self, times: &[&ThreadTime], by_number: &HashMap<u32, u64>) -> BTreeMap<Tid, u64> {
        let number = |tid: Tid| match self.is_namespaced {
            true => self.threads.get(&tid).map(|known| known.number),
            false => Some(tid.0),
        };
        times.iter().filter_map(|time| Some((time.tid, *by_number.get(&number(time.tid)?)?))).collect()
    }

    /// Forgets threads that have ended: those that did not run in the window and that the JVM does not list any more.
    /// Their bytes may be noted late, so the kernel is asked whether there is such a thread.
    pub(super) fn forget_ended(
        &mut self,
        times: &[&ThreadTime],
        by_number: &HashMap<u32, u64>,
        is_there: impl Fn(Tid) -> bool,
    ) {
        let ran: HashSet<Tid> = times.iter().map(|time| time.tid).collect();
        self.threads.retain(|tid, known| ran.contains(tid) || by_number.contains_key(&known.number) || is_there(*tid));
    }
}

/// The threads of a process that ran, and what is known of what they have allocated, by identity.
pub(super) fn seen(
    times: &[&ThreadTime],
    noted: &HashMap<u64, &ThreadAllocation>,
    now: &BTreeMap<Tid, u64>,
) -> BTreeMap<u64, Seen> {
    let mut latest: HashMap<Tid, u64> = HashMap::new();
    for time in times {
        let start = latest.entry(time.tid).or_default();
        *start = time.start_boottime_ns.max(*start);
    }
    let mut seen = BTreeMap::new();
    for time in times {
        let key = ThreadKey::new(time.tid.0, time.start_boottime_ns, Place(0));
        let noted = noted.get(&key.identity());
        // The memory has the last thread of a number.
        let is_last = latest.get(&time.tid) == Some(&time.start_boottime_ns);
        let by_now = now.get(&time.tid).filter(|_| is_last).copied();
        // Later than what was noted, and of the program that runs now.
        let Some(bytes) = by_now.or(noted.map(|thread| thread.bytes)) else { continue };
        let objects = noted.map_or(0, |thread| thread.objects);
        seen.insert(key.identity(), Seen { key, start_boottime_ns: time.start_boottime_ns, bytes, objects });
    }
    seen
}

#[cfg(test)]
mod tests {
    use joular_data::model::units::Pid;

    use super::*;

    const OPENED: u64 = 10_000_000_000;

    fn time(tid: u32, start_boottime_ns: u64) -> ThreadTime {
        ThreadTime { pid: Pid(7), tid: Tid(tid), start_boottime_ns, ..ThreadTime::default() }
    }

    fn noted(tid: u32, start_boottime_ns: u64, bytes: u64) -> ThreadAllocation {
        let thread_key = ThreadKey::new(tid, start_boottime_ns, Place(3)).0;
        ThreadAllocation { tid: Tid(tid), pid: Pid(7), thread_key, bytes, objects: 1 }
    }

    fn news(jvm: &mut Jvm, times: &[ThreadTime], noted: &[ThreadAllocation], now: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let noted = noted.iter().map(|thread| (ThreadKey(thread.thread_key).identity(), thread)).collect();
        let now = now.iter().map(|(tid, bytes)| (Tid(*tid), *bytes)).collect();
        let seen = seen(&times.iter().collect::<Vec<_>>(), &noted, &now);
        jvm.news(seen.into_values()).iter().map(|thread| (thread.tid.0, thread.bytes)).collect()
    }

    fn jvm(before: &[(u32, u64)]) -> Jvm {
        let known =
            |(tid, bytes): &(u32, u64)| (Tid(*tid), Known { identity: None, number: *tid, bytes: Some(*bytes) });
        let threads = before.iter().map(known).collect();
        Jvm {
            key: (Pid(7), 1),
            is_followed: true,
            is_namespaced: false,
            is_read: true,
            opened_boottime_ns: OPENED,
            threads,
        }
    }

    #[test]
    fn threads_are_reported_what_they_allocated_since_the_probes_came_and_nothing_twice() {
        let mut jvm = jvm(&[(1, 1_000)]);
        let (old, new) = (time(1, OPENED - 1), time(2, OPENED + 1));
        let times = [old.clone(), new.clone()];
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 1_500), (2, 300)]), [(1, 500), (2, 300)]);
        // What was noted is older than what the memory has by now.
        let seen = [noted(1, OPENED - 1, 1_600)];
        assert_eq!(news(&mut jvm, &times, &seen, &[(1, 1_700), (2, 300)]), [(1, 200)]);
        // A thread that has ended is in no list.
        assert_eq!(news(&mut jvm, &[new], &[noted(2, OPENED + 1, 350)], &[(1, 1_700)]), [(2, 50)]);
        // One that did not run cannot have allocated.
        assert_eq!(news(&mut jvm, &[], &[], &[(1, 1_800)]), []);
    }

    #[test]
    fn a_thread_that_was_not_listed_when_the_probes_came_has_nothing_to_be_compared_with() {
        let mut jvm = jvm(&[]);
        let times = [time(1, OPENED - 1)];
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 9_000)]), []);
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 9_100)]), [(1, 100)]);
    }

    #[test]
    fn two_threads_that_had_one_number_are_told_apart() {
        let mut jvm = jvm(&[]);
        let (first, second) = (OPENED + 1_000_000_000, OPENED + 2_000_000_000);
        assert_eq!(news(&mut jvm, &[time(1, first)], &[], &[(1, 700)]), [(1, 700)]);
        let times = [time(1, first), time(1, second)];
        let mut found = news(&mut jvm, &times, &[noted(1, first, 900)], &[(1, 40)]);
        found.sort_unstable();
        assert_eq!(found, [(1, 40), (1, 200)]);
    }

    #[test]
    fn a_thread_that_has_ended_leaves_nothing_once_its_bytes_are_told() {
        let mut jvm = jvm(&[(1, 1_000), (2, 500)]);
        let forget = |jvm: &mut Jvm, ran: &[ThreadTime], listed: &[u32], there: &[u32]| {
            let listed = listed.iter().map(|number| (*number, 0)).collect();
            jvm.forget_ended(&ran.iter().collect::<Vec<_>>(), &listed, |tid| there.contains(&tid.0));
            let mut tids: Vec<u32> = jvm.threads.keys().map(|tid| tid.0).collect();
            tids.sort_unstable();
            tids
        };
        let ran = [time(3, OPENED + 1), time(4, OPENED + 1)];
        assert_eq!(news(&mut jvm, &ran, &[], &[(3, 70), (4, 80)]), [(3, 70), (4, 80)]);
        assert_eq!(forget(&mut jvm, &ran, &[1, 2, 3], &[]), [1, 2, 3, 4], "4 has left the list while it ran");
        // It says of itself how much it was, and only then ends.
        assert_eq!(forget(&mut jvm, &[], &[1, 2], &[3, 4]), [1, 2, 3, 4]);
        let last = [time(4, OPENED + 1)];
        assert_eq!(news(&mut jvm, &last, &[noted(4, OPENED + 1, 95)], &[]), [(4, 15)]);
        assert_eq!(forget(&mut jvm, &last, &[1], &[]), [1, 4]);
        assert_eq!(forget(&mut jvm, &[], &[1], &[]), [1]);
    }

    #[test]
    fn millions_of_threads_are_not_kept() {
        let mut jvm = jvm(&[(1, 1_000)]);
        for window in 0..100_u64 {
            // Each window has another thousand, and numbers come again.
            let tid = |index: u64| u32::try_from(2 + (1_000 * window + index) % 30_000).unwrap();
            let start = OPENED + (window << 30);
            let ran: Vec<_> = (0..1_000).map(|index| time(tid(index), start)).collect();
            let noted: Vec<_> = (0..1_000).map(|index| noted(tid(index), start, 64)).collect();
            assert_eq!(news(&mut jvm, &ran, &noted, &[]).iter().map(|(_, bytes)| bytes).sum::<u64>(), 64_000);
            jvm.forget_ended(&ran.iter().collect::<Vec<_>>(), &HashMap::from([(1, 0)]), |_| false);
            assert!(jvm.threads.len() <= 1_001, "{} threads are kept", jvm.threads.len());
        }
    }
}
