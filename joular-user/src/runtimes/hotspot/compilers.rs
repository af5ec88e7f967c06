//! Decides when to look at a JVM again: to search its threads for those that compile, and its code for the
//! stubs that they make when they start.
//!
//! A new compiler thread is seen by its name, and what it makes comes later. So looks follow a name, and
//! become rare after it. A search has to read the names of all threads, so there are few.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CompilerThread, MAX_COMPILER_THREADS_OF_JVM};

use super::jvm::Jvm;
use crate::procs::proc_files::ProcFiles;

/// A busy machine delays what a compiler makes: each pause is this many times as long as all that passed
/// since the name.
const GROWTH: u32 = 3;
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// By then a thread that has a name is listed.
const SETTLED: Duration = Duration::from_millis(500);
/// A name can be missed.
const LONGEST_UNSEARCHED: Duration = Duration::from_secs(300);
/// A search takes at most one part in so many of the time: a JVM may have thousands of threads to
/// search.
const PAUSE_FACTOR: u32 = 50;
/// The names that the kernel has of them, which it cuts.
const NAMES: [&str; 2] = ["C1 CompilerThre", "C2 CompilerThre"];

/// The compiler threads of one JVM.
#[derive(Debug)]
pub struct Compilers {
    threads: Vec<(Tid, CompilerThread)>,
    looked: Option<Instant>,
    searched: Option<Instant>,
    /// How long the last search took.
    took: Duration,
    /// When the JVM was opened, or a thread took a compiler's name, or a compiler's thread another name.
    changed: Instant,
}

impl Compilers {
    pub const fn new(opened: Instant) -> Self {
        Self { threads: Vec::new(), looked: None, searched: None, took: Duration::ZERO, changed: opened }
    }

    pub fn threads(&self) -> &[(Tid, CompilerThread)] {
        &self.threads
    }

    /// Says that a thread has taken a name.
    pub fn named(&mut self, tid: Tid, name: &str, now: Instant) {
        if is_compiler(name) || self.threads.binary_search_by_key(&tid, |(tid, _)| *tid).is_ok() {
            self.changed = now;
        }
    }

    /// When the next look is due; none: at once.
    pub fn next_look(&self) -> Option<Instant> {
        let looked = self.looked?;
        let pause = (GROWTH * looked.saturating_duration_since(self.changed)).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        Some(looked + pause.max(self.took.saturating_mul(PAUSE_FACTOR)))
    }

    /// Searches the threads, if that is to be done in this look.
    pub fn look(&mut self, jvm: &Jvm, proc_root: &Path, pid: Pid, now: Instant) {
        if self.needs_search(now) {
            self.search(jvm, proc_root, pid);
            self.searched = Some(now);
        }
        self.looked = Some(now);
    }

    fn needs_search(&self, now: Instant) -> bool {
        self.searched.is_none_or(|searched| {
            searched < self.changed + SETTLED || now.saturating_duration_since(searched) >= LONGEST_UNSEARCHED
        })
    }

    fn search(&mut self, jvm: &Jvm, proc_root: &Path, pid: Pid) {
        let begin = Instant::now();
        let mut threads = ProcFiles::new(proc_root).threads_named(pid, is_compiler);
        threads.truncate(MAX_COMPILER_THREADS_OF_JVM);
        let numbers: Vec<u32> = threads.iter().map(|(_, number)| *number).collect();
        let found = jvm.compiler_threads(&numbers);
        let tid_of = |number| threads.iter().find(|(_, other)| *other == number).map(|(tid, _)| *tid);
        let of_this = |thread| CompilerThread { tgid: pid.0, ..thread };
        self.threads =
            found.into_iter().filter_map(|(number, thread)| Some((tid_of(number)?, of_this(thread)))).collect();
        self.threads.sort_by_key(|(tid, _)| *tid);
        self.took = begin.elapsed();
    }
}

fn is_compiler(name: &str) -> bool {
    NAMES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn looks_become_rare_after_a_change_and_are_paced_by_what_they_cost() {
        let opened = Instant::now();
        assert_eq!(Compilers::new(opened).next_look(), None);
        for (read, took, next) in [
            (0, 1, 200),
            (0, 10, 500),
            (200, 1, 800),
            (800, 1, 3_200),
            (100_000, 1, 160_000),
            (100_000, 2_000, 200_000),
        ] {
            let compilers = Compilers { looked: Some(opened + ms(read)), took: ms(took), ..Compilers::new(opened) };
            assert_eq!(compilers.next_look(), Some(opened + ms(next)), "read at {read} ms for {took} ms");
        }
    }

    #[test]
    fn threads_are_searched_until_a_change_is_over_and_seldom_else() {
        let opened = Instant::now();
        for (searched_ms, now_ms, is_searched) in [
            (None, 0, true),
            (Some(0), 200, true),
            (Some(499), 800, true),
            (Some(500), 3_200, false),
            (Some(500), 300_499, false),
            (Some(500), 300_500, true),
        ] {
            let searched = searched_ms.map(|at| opened + ms(at));
            let compilers = Compilers { searched, ..Compilers::new(opened) };
            let now = opened + ms(now_ms);
            assert_eq!(compilers.needs_search(now), is_searched, "searched at {searched_ms:?} ms, now {now_ms} ms");
        }
    }

    #[test]
    fn a_look_is_due_when_a_compiler_comes_or_its_thread_becomes_another() {
        let opened = Instant::now();
        let compiler = CompilerThread { tgid: 1, ..CompilerThread::default() };
        for (tid, name, is_due) in [
            (7, "C2 CompilerThre", true),
            (7, "C1 CompilerThre", true),
            (7, "GC Thread#0", false),
            (5, "Thread-3", true),
        ] {
            let mut compilers = Compilers::new(opened);
            compilers.threads = vec![(Tid(5), compiler)];
            compilers.looked = Some(opened + ms(100_000));
            compilers.named(Tid(tid), name, opened + ms(101_000));
            let next_ms = if is_due { 100_200 } else { 160_000 };
            assert_eq!(compilers.next_look(), Some(opened + ms(next_ms)), "thread {tid} is called {name}");
        }
    }
}
