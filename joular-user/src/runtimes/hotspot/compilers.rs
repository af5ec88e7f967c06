//! Decides when to search a JVM's threads for those that compile.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CompilerThread, MAX_COMPILER_THREADS_OF_JVM};

use super::jvm::Jvm;
use crate::procs::proc_files::ProcFiles;

/// Compiler threads come and go with the work, but seldom.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_YOUNG: Duration = Duration::from_millis(200);
const YOUNG: Duration = Duration::from_secs(5);
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
    /// When the JVM was opened.
    opened: Instant,
}

impl Compilers {
    pub const fn new(opened: Instant) -> Self {
        Self { threads: Vec::new(), read: None, took: Duration::ZERO, opened }
    }

    pub fn threads(&self) -> &[(Tid, CompilerThread)] {
        &self.threads
    }

    /// How long a search has been due, if it is. A JVM compiles most when it has just started.
    pub fn due_since(&self, now: Instant) -> Option<Duration> {
        let since = |at| now.saturating_duration_since(at);
        let pause = if since(self.opened) < YOUNG { PAUSE_YOUNG } else { PAUSE };
        let pause = pause.max(self.took.saturating_mul(PAUSE_FACTOR));
        let waited = self.read.map_or(Duration::MAX, since);
        (waited >= pause).then_some(waited)
    }

    pub fn read(&mut self, jvm: &Jvm, proc_root: &Path, pid: Pid, now: Instant) {
        let begin = Instant::now();
        let is_compiler = |name: &str| NAMES.iter().any(|prefix| name.starts_with(prefix));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_paced_by_age_and_by_what_they_cost() {
        let opened = Instant::now();
        let ms = Duration::from_millis;
        let compilers = |read_ms: Option<u64>, took_ms| Compilers {
            read: read_ms.map(|at| opened + ms(at)),
            took: ms(took_ms),
            ..Compilers::new(opened)
        };
        for (read, took, now, expected) in [
            (None, 0, 0, Some(Duration::MAX)),
            (Some(0), 1, 199, None),
            (Some(0), 1, 200, Some(ms(200))),
            (Some(0), 10, 499, None),
            (Some(0), 10, 500, Some(ms(500))),
            (Some(4_000), 1, 8_999, None),
            (Some(4_000), 1, 9_000, Some(ms(5_000))),
        ] {
            let due = compilers(read, took).due_since(opened + ms(now));
            assert_eq!(due, expected, "read at {read:?} ms for {took} ms, now {now} ms");
        }
    }
}
