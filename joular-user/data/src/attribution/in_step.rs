//! Finds threads that allocate in step with their buffers, and says how much less their samples tell.
//!
//! The kernel's programs count ends of buffers that fell where they were foreseen, and how many would have by chance (see
//! `abi::ends`). That tells the part ρ of a thread's samples that repeat each other. Which paths that part of its bytes is
//! really of, nobody can tell, so the 95 % interval of a path has to allow for any. Wilson's interval of a
//! path that has all samples begins at 1 − ρ if one independent sample stands for `S · ρ / (z² · (1 − ρ))` of the S bytes
//! more.
//!
//! Windows do not make this better, and neither do other threads: a thread keeps step for as long as it runs, and threads
//! that run one program keep it alike. So S is what all threads of the process that are in step have allocated until
//! now, and what a window adds to the sum of squares is by how much S² grows.

use std::collections::{HashMap, HashSet};

use joular_ebpf::abi::{CERTAIN, ThreadKey};

use super::work::ProcessKey;
use crate::{
    events::{BufferEnds, ThreadAllocation},
    sampling::DEVIATIONS,
};

/// Standard deviations by which more ends have to be foreseen than chance explains. Many threads are asked, again and
/// again.
const SIGNIFICANT: f64 = 3.0;
/// Fewer ends show nothing.
const LEAST_ENDS: u64 = 8;
/// Beyond that it does not matter: the interval begins at a fortieth.
const MOST_IN_STEP: f64 = 0.975;
/// Threads that are kept. With more, those that did not allocate in the window are forgotten: they are noticed again
/// after [`LEAST_ENDS`].
const MAX_THREADS: usize = 1 << 15;

/// What is known of threads that allocate.
#[derive(Debug, Default)]
pub(super) struct InStep {
    /// Those that have had ends, by the identity in a thread's key.
    threads: HashMap<u64, Thread>,
    /// What the threads of a process in step have allocated.
    bytes: HashMap<ProcessKey, f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    process: ProcessKey,
    seen: u64,
    foreseen: u64,
    /// In parts of [`CERTAIN`].
    by_chance: u64,
    /// What it has allocated since its first ends were counted.
    bytes: f64,
    /// What of it counts in its process's bytes.
    counted: f64,
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
impl InStep {
    /// Takes what threads allocated in a window, and where their buffers ended. Returns of each thread in step for how
    /// many bytes more each of its samples stands. `position` has the place of a thread in the window, and its process.
    pub(super) fn window(
        &mut self,
        threads: &[ThreadAllocation],
        ends: &[BufferEnds],
        position: impl Fn(u64) -> Option<(usize, ProcessKey)>,
    ) -> HashMap<usize, f64> {
        let ends: HashMap<u64, &BufferEnds> = ends.iter().map(|ends| (identity_of(ends.thread_key), ends)).collect();
        let mut more = HashMap::new();
        if self.threads.len() > MAX_THREADS {
            let there: HashSet<u64> = threads.iter().map(|thread| identity_of(thread.thread_key)).collect();
            self.threads.retain(|identity, _| there.contains(identity));
            // Else a table of which most was forgotten doubles when places of the forgotten have filled it.
            self.threads.shrink_to_fit();
        }
        for allocated in threads {
            let Some((place, process)) = position(allocated.thread_key) else { continue };
            let identity = identity_of(allocated.thread_key);
            let ends = ends.get(&identity);
            // Threads of which each ends after its first buffer must leave nothing.
            let thread = match ends {
                Some(_) => self.threads.entry(identity).or_default(),
                None => match self.threads.get_mut(&identity) {
                    Some(thread) => thread,
                    None => continue,
                },
            };
            if thread.process != process {
                *thread = Thread { process, ..Thread::default() };
            }
            let bytes = allocated.bytes as f64;
            thread.bytes += bytes;
            if let Some(ends) = ends {
                thread.add(ends);
            }
            let part = thread.in_step();
            if part > 0.0 && bytes > 0.0 {
                let of_process = self.bytes.entry(process).or_default();
                let news = thread.bytes - thread.counted;
                let squares = news * (2.0 * *of_process + news);
                (thread.counted, *of_process) = (thread.bytes, *of_process + news);
                more.insert(place, squares * part / (DEVIATIONS * DEVIATIONS * (1.0 - part)) / bytes);
            }
        }
        more
    }

    pub(super) fn forget(&mut self, process: ProcessKey) {
        self.threads.retain(|_, thread| thread.process != process);
        self.bytes.remove(&process);
    }
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
impl Thread {
    const fn add(&mut self, ends: &BufferEnds) {
        self.seen = self.seen.saturating_add(ends.seen);
        self.foreseen = self.foreseen.saturating_add(ends.foreseen);
        self.by_chance = self.by_chance.saturating_add(ends.by_chance);
    }

    /// Which part of the ends that chance does not explain is in step; 0: chance explains it. An end is foreseen if it is in
    /// step and the one that it is compared with was, too, so of a part ρ that is in step ρ² are foreseen.
    fn in_step(&self) -> f64 {
        if self.seen < LEAST_ENDS {
            return 0.0;
        }
        let (seen, foreseen) = (self.seen as f64, self.foreseen as f64);
        let by_chance = self.by_chance as f64 / CERTAIN as f64;
        let variance = (by_chance * (1.0 - by_chance / seen)).max(1.0);
        let beyond = foreseen - by_chance;
        if beyond <= SIGNIFICANT * variance.sqrt() {
            return 0.0;
        }
        (beyond / (seen - by_chance).max(1.0)).sqrt().min(MOST_IN_STEP)
    }
}

fn identity_of(thread_key: u64) -> u64 {
    ThreadKey(thread_key).identity()
}

#[cfg(test)]
mod tests {
    use joular_ebpf::abi::Place;

    use super::*;
    use crate::{
        model::units::{MicroJoules, Pid, Tid},
        sampling::{Pool, Sampled},
    };

    const PROCESS: ProcessKey = (Pid(1), 5);

    /// Ends of a thread in a window in which it allocated a million bytes.
    fn window(in_step: &mut InStep, tid: u32, (seen, foreseen, by_chance): (u64, u64, u64)) -> Option<f64> {
        let thread_key = ThreadKey::new(tid, 0, Place(0)).0;
        let by_chance = by_chance * CERTAIN;
        let ends = BufferEnds { pid: Pid(1), thread_key, seen, foreseen, by_chance };
        let allocated = ThreadAllocation { tid: Tid(tid), pid: Pid(1), thread_key, bytes: 1_000_000, objects: seen };
        in_step.window(&[allocated], &[ends], |_| Some((0, PROCESS))).get(&0).copied()
    }

    #[test]
    fn threads_are_in_step_if_more_ends_are_foreseen_than_by_chance() {
        for (what, ends, expected) in [
            ("independent", (1000, 60, 63), false),
            ("few ends", (7, 7, 0), false),
            ("one thing only", (1000, 1000, 1000), false),
            ("no more than chance may bring", (1000, 85, 63), false),
            ("all", (1000, 1000, 60), true),
            ("a part", (1000, 200, 63), true),
        ] {
            assert_eq!(window(&mut InStep::default(), 1, ends).is_some(), expected, "{what}");
        }
    }

    /// The interval of a path that has all samples of 60 windows and several threads, and what begins it.
    fn low(threads: u32, ends: (u64, u64, u64)) -> f64 {
        let (mut in_step, mut all) = (InStep::default(), Sampled::default());
        for window_number in 0..60 {
            for thread in 1..=threads {
                // Of a thread the first windows are not noticed.
                let ends = if window_number < 5 { (1, 1, 0) } else { ends };
                let more = window(&mut in_step, thread, ends).unwrap_or(0.0);
                all.plus(&Sampled::standing_for(MicroJoules(1_000_000), 10, 100_000.0 + more));
            }
        }
        Pool::of(all).interval(all.energy, &all).low.0 as f64 / all.energy.0 as f64
    }

    #[test]
    fn neither_windows_nor_threads_make_an_interval_narrower_that_is_wide_because_of_steps() {
        for (ends, expected) in [((20, 20, 0), 0.025), ((20, 10, 0), 0.29), ((20, 2, 0), 0.68), ((20, 1, 1), 0.99)] {
            for threads in [1, 4, 200] {
                let low = low(threads, ends);
                assert!((low / expected - 1.0).abs() < 0.15, "{ends:?}, {threads} threads: {low}");
            }
        }
    }

    #[test]
    fn millions_of_threads_need_no_more_memory_than_the_first_ones() {
        const A_WINDOW: u32 = 4_000;
        for (what, seen, most) in [("one buffer each", 0, 0), ("many buffers each", 20, 2 * MAX_THREADS)] {
            let mut in_step = InStep::default();
            for window in 0..500_u64 {
                let keys = (1..=A_WINDOW).map(|tid| ThreadKey::new(tid, window << 30, Place(0)).0);
                let allocated: Vec<_> = keys
                    .map(|thread_key| ThreadAllocation {
                        tid: Tid(ThreadKey(thread_key).tid()),
                        pid: Pid(1),
                        thread_key,
                        bytes: 128,
                        objects: 1,
                    })
                    .collect();
                let ends = |thread: &ThreadAllocation| BufferEnds {
                    pid: Pid(1),
                    thread_key: thread.thread_key,
                    seen,
                    foreseen: seen,
                    by_chance: 0,
                };
                let ends: Vec<_> = allocated.iter().filter(|_| seen > 0).map(ends).collect();
                in_step.window(&allocated, &ends, |_| Some((0, PROCESS)));
                assert!(
                    in_step.threads.capacity() <= most,
                    "{what}: {} in window {window}",
                    in_step.threads.capacity()
                );
            }
        }
    }

    #[test]
    fn a_process_that_has_ended_leaves_nothing() {
        let mut in_step = InStep::default();
        window(&mut in_step, 1, (100, 100, 0));
        in_step.forget(PROCESS);
        assert!(in_step.threads.is_empty() && in_step.bytes.is_empty());
    }
}
