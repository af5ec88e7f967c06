//! Decides when to search a JVM's threads for those that compile, and its code for what they made at their start.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CompilerThread, MAX_COMPILER_THREADS_OF_JVM};

use super::jvm::Jvm;
use crate::procs::proc_files::ProcFiles;

/// A new compiler thread is seen by its name. What it makes when it starts comes later, and a busy machine
/// delays that: after a name, each pause is this many times as long as all that passed before it.
const GROWTH: u32 = 3;
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// For names that were missed.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A search takes at most one part in so many of the time: a JVM may have thousands of threads to
/// search.
const PAUSE_FACTOR: u32 = 50;
/// The names that the kernel has of them, which it cuts.
const NAMES: [&str; 2] = ["C1 CompilerThre", "C2 CompilerThre"];

/// The compiler threads of one JVM.
#[derive(Debug)]
pub struct Compilers {
    threads: Vec<(Tid, CompilerThread)>,
    read: Option<Instant>,
    /// How long the last search took.
    took: Duration,
    /// When the JVM was opened, or a thread took a compiler's name, or a compiler's thread another name.
    changed: Instant,
}

impl Compilers {
    pub const fn new(opened: Instant) -> Self {
        Self { threads: Vec::new(), read: None, took: Duration::ZERO, changed: opened }
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

    /// When the next search is due; none: at once.
    pub fn next_search(&self) -> Option<Instant> {
        let read = self.read?;
        let pause = (GROWTH * read.saturating_duration_since(self.changed)).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        Some(read + pause.max(self.took.saturating_mul(PAUSE_FACTOR)))
    }

    pub fn read(&mut self, jvm: &Jvm, proc_root: &Path, pid: Pid, now: Instant) {
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
        self.read = Some(now);
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
    fn searches_become_rare_after_a_change_and_are_paced_by_what_they_cost() {
        let opened = Instant::now();
        assert_eq!(Compilers::new(opened).next_search(), None);
        for (read, took, next) in [
            (0, 1, 200),
            (0, 10, 500),
            (200, 1, 800),
            (800, 1, 3_200),
            (100_000, 1, 160_000),
            (100_000, 2_000, 200_000),
        ] {
            let compilers = Compilers { read: Some(opened + ms(read)), took: ms(took), ..Compilers::new(opened) };
            assert_eq!(compilers.next_search(), Some(opened + ms(next)), "read at {read} ms for {took} ms");
        }
    }

    #[test]
    fn a_search_is_due_when_a_compiler_comes_or_its_thread_becomes_another() {
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
            compilers.read = Some(opened + ms(100_000));
            compilers.named(Tid(tid), name, opened + ms(101_000));
            let next_ms = if is_due { 100_200 } else { 160_000 };
            assert_eq!(compilers.next_search(), Some(opened + ms(next_ms)), "thread {tid} is called {name}");
        }
    }
}
