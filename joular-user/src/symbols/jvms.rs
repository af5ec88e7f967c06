//! The JVMs among the processes: attached to as soon as their structures can be
//! read, which for one that has just started takes a moment.
//!
//! A JVM that is understood is asked for no perf map: its own memory says more.
//! Until it is clear whether it will be, no map is requested either; one that turns
//! out not to be is profiled by its perf map, and that is said once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::{
    events::{JvmNews, RawStack},
    model::units::{Pid, Tid},
};
use joular_ebpf::abi::{CompilerThread, JvmUnwind, MAX_COMPILER_THREADS_OF_JVM};

use super::{
    Notice, Symbolizer,
    native::{FileKey, NativeSymbols},
    process::Process,
    requests::ProcessKey,
};
use crate::{
    procs::proc_files::ProcFiles,
    runtimes::hotspot::{
        JvmBuild, JvmError,
        elf_symbols::{Libjvm, LibjvmError},
        flags::JvmFacts,
        jvm::Jvm,
        memory::ProcessMemory,
    },
};

const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// For the dynamic linker to be done with libjvm; what makes no sense then never will.
const MAX_LOADING: Duration = Duration::from_secs(3);
/// A JVM makes its code cache within this time, if not stopped or starved: then it is
/// looked at seldom, for as long as it lasts.
const SLOW_STARTING: Duration = Duration::from_secs(60);
const SLOW_PAUSE: Duration = Duration::from_secs(10);
/// Compiler threads come and go with the work, seldom.
const THREADS_PAUSE: Duration = Duration::from_secs(5);
const THREADS_PAUSE_YOUNG: Duration = Duration::from_millis(200);
const YOUNG: Duration = Duration::from_secs(5);
/// A look takes at most one part in so many of the time: a JVM may have thousands of
/// threads to look through.
const THREADS_PAUSE_FACTOR: u32 = 50;
const COMPILER_THREADS: [&str; 2] = ["C1 CompilerThre", "C2 CompilerThre"];
/// Builds of libjvm known at the same time.
const MAX_BUILDS: usize = 64;

/// How far a process's JVM is known.
#[derive(Debug, Default)]
pub enum JvmState {
    /// No libjvm was seen in it.
    #[default]
    Unknown,
    /// It was seen, and cannot be read yet.
    Starting {
        since: Instant,
        next_try: Instant,
        pause: Duration,
    },
    Attached(Box<Attached>),
    /// Why nothing more will come.
    Failed(String),
}

/// A JVM with what changes while it runs.
#[derive(Debug)]
pub struct Attached {
    jvm: Jvm,
    /// Counts how often numbers of its methods were let go.
    names_version: u64,
    compiler_threads: Vec<(Tid, CompilerThread)>,
    threads_read: Option<Instant>,
    /// What that took.
    threads_took: Duration,
    /// Since when.
    attached: Instant,
    /// Whether anything was asked in this window.
    is_asked: bool,
}

impl JvmState {
    fn attached(&self) -> Option<&Attached> {
        match self {
            Self::Attached(attached) => Some(attached),
            _ => None,
        }
    }

    /// To ask it something.
    pub fn asked(&mut self) -> Option<&mut Jvm> {
        match self {
            Self::Attached(attached) => {
                attached.is_asked = true;
                Some(&mut attached.jvm)
            }
            _ => None,
        }
    }

    /// Whether a perf map would be of no use, now or at all.
    pub const fn needs_no_map(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Attached(_))
    }

    fn is_due(&self, now: Instant) -> bool {
        match self {
            Self::Unknown => true,
            Self::Starting { next_try, .. } => now >= *next_try,
            Self::Attached(_) | Self::Failed(_) => false,
        }
    }
}

impl Attached {
    /// A JVM compiles most when it has just started.
    fn threads_are_due(&self, now: Instant) -> bool {
        let since = |at| now.saturating_duration_since(at);
        let pause = if since(self.attached) < YOUNG { THREADS_PAUSE_YOUNG } else { THREADS_PAUSE };
        let pause = pause.max(self.threads_took.saturating_mul(THREADS_PAUSE_FACTOR));
        self.threads_read.is_none_or(|at| since(at) >= pause)
    }

    /// By the names that the kernel has of them, which it cuts.
    fn read_compiler_threads(&mut self, files: &ProcFiles, pid: Pid) {
        let is_compiler = |name: &str| COMPILER_THREADS.iter().any(|prefix| name.starts_with(prefix));
        let mut threads = files.threads_named(pid, is_compiler);
        threads.truncate(MAX_COMPILER_THREADS_OF_JVM);
        let numbers: Vec<u32> = threads.iter().map(|(_, number)| *number).collect();
        let found = self.jvm.compiler_threads(&numbers);
        let tid_of = |number| threads.iter().find(|(_, other)| *other == number).map(|(tid, _)| *tid);
        let of_this = |thread| CompilerThread { tgid: pid.0, ..thread };
        self.compiler_threads =
            found.into_iter().filter_map(|(number, thread)| Some((tid_of(number)?, of_this(thread)))).collect();
        self.compiler_threads.sort_by_key(|(tid, _)| *tid);
    }
}

#[derive(Debug, thiserror::Error)]
enum AttachJvmError {
    #[error("reading libjvm.so: it cannot be opened")]
    NoFile,
    #[error(transparent)]
    File(#[from] LibjvmError),
    #[error("opening the memory of the process: {0}: run as root or grant CAP_SYS_PTRACE")]
    Memory(#[from] std::io::Error),
    #[error(transparent)]
    Jvm(#[from] JvmError),
}

/// What is known of libjvm files. What a process shows of one holds for its user's
/// processes only: it could show anything.
pub type Builds = std::collections::HashMap<(FileKey, u32), Arc<JvmBuild>>;

impl Symbolizer {
    /// Holds fast what the methods' addresses in a stack mean that has just arrived.
    pub fn pin(&mut self, process: ProcessKey, generation: u8, stack: &mut RawStack) {
        if let Some(jvm) = self.processes.get_mut(&process).and_then(|process| process.jvm.asked()) {
            jvm.pin(stack.stack_id(), generation, stack.quality.end.code(), &mut stack.frames);
        }
    }

    /// What walking a process's stacks needs, once its JVM is understood.
    pub fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        self.attached(process).map(|attached| attached.jvm.unwind_info())
    }

    /// What is known of its JVM since it was attached to, or could not be.
    pub fn jvm_news(&self, process: ProcessKey) -> Option<JvmNews> {
        match &self.processes.get(&process)?.jvm {
            JvmState::Attached(attached) => {
                let JvmFacts { version, collector, debug_non_safepoints, .. } = attached.jvm.facts().clone();
                Some(JvmNews { version, collector, debug_non_safepoints, unwinding: Some("hotspot".into()) })
            }
            JvmState::Failed(why) => Some(JvmNews { unwinding: Some(why.clone()), ..JvmNews::default() }),
            JvmState::Unknown | JvmState::Starting { .. } => None,
        }
    }

    /// Its threads that compile, as far as they are known.
    pub fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)] {
        self.attached(process).map_or(&[], |attached| &attached.compiler_threads)
    }

    /// Changes when numbers of a process's methods were let go: its stacks must be sent
    /// again to get new ones.
    pub fn names_version(&self, process: ProcessKey) -> u64 {
        self.attached(process).map_or(0, |attached| attached.names_version)
    }

    fn attached(&self, process: ProcessKey) -> Option<&Attached> {
        self.processes.get(&process)?.jvm.attached()
    }

    /// A window is over.
    pub(super) fn end_jvm_window(&mut self) {
        for process in self.processes.values_mut() {
            let JvmState::Attached(attached) = &mut process.jvm else { continue };
            if std::mem::take(&mut attached.is_asked) {
                attached.names_version += u64::from(attached.jvm.end_window());
            }
        }
    }

    /// Of one JVM at a time: the one that has waited longest.
    fn read_compiler_threads(&mut self, now: Instant) {
        let files = ProcFiles::new(&self.proc_root);
        let due = self.processes.iter_mut().filter_map(|(key, process)| match &mut process.jvm {
            JvmState::Attached(attached) if attached.threads_are_due(now) => Some((key.0, attached)),
            _ => None,
        });
        if let Some((pid, attached)) = due.min_by_key(|(_, attached)| attached.threads_read) {
            let begin = Instant::now();
            attached.read_compiler_threads(&files, pid);
            attached.threads_read = Some(now);
            attached.threads_took = begin.elapsed();
        }
    }

    /// Attaches to those JVMs that it is time for.
    pub(super) fn attach_jvms(&mut self, now: Instant) {
        let due = |process: &&ProcessKey| {
            self.processes.get(process).is_some_and(|known| {
                // One without libjvm is looked at when its mappings are read again.
                matches!(known.jvm, JvmState::Starting { .. }) && known.jvm.is_due(now)
            })
        };
        let due: Vec<ProcessKey> = self.processes.keys().filter(due).copied().collect();
        due.into_iter().for_each(|process| self.attach_jvm(process, now));
        self.read_compiler_threads(now);
    }

    /// Attaches to a process's JVM if it is one and it is time for it.
    pub(super) fn attach_jvm(&mut self, key: ProcessKey, now: Instant) {
        let Some(process) = self.processes.get_mut(&key) else { return };
        if !process.jvm.is_due(now) || !process.maps().has_libjvm() {
            return;
        }
        let error = match attach(process, &mut self.native, &mut self.builds) {
            Ok(jvm) => {
                let attached = Attached {
                    jvm,
                    names_version: 0,
                    compiler_threads: Vec::new(),
                    threads_read: None,
                    threads_took: Duration::ZERO,
                    attached: now,
                    is_asked: false,
                };
                process.jvm = JvmState::Attached(attached.into());
                self.news.refreshed.push(key);
                return;
            }
            Err(error) => error,
        };
        let (since, pause) = match process.jvm {
            JvmState::Starting { since, pause, .. } => (since, (pause * 2).min(MAX_PAUSE)),
            _ => (now, MIN_PAUSE),
        };
        if let Some(pause) = next_pause(&error, now.saturating_duration_since(since), pause) {
            process.jvm = JvmState::Starting { since, next_try: now + pause, pause };
            return;
        }
        process.jvm = JvmState::Failed(error.to_string());
        self.news.refreshed.push(key);
        let text = format!("falling back to the perf map: {error}");
        // One that has ended needs no excuse.
        if process.is_there() {
            self.news.notices.push(Notice { pid: Some(key.0), text });
        }
    }
}

/// How long to wait before a JVM is tried again that is not understood since so long;
/// none: it never will be.
fn next_pause(error: &AttachJvmError, since: Duration, pause: Duration) -> Option<Duration> {
    match error {
        AttachJvmError::Jvm(JvmError::Starting) if since >= SLOW_STARTING => Some(SLOW_PAUSE),
        AttachJvmError::Jvm(JvmError::Starting) => Some(pause),
        _ => (since < MAX_LOADING).then_some(pause),
    }
}

fn attach(process: &mut Process, native: &mut NativeSymbols, builds: &mut Builds) -> Result<Jvm, AttachJvmError> {
    let is_libjvm = |mapping: &&_| is_libjvm_code(mapping);
    let mapping = process.maps().iter().find(is_libjvm).cloned().ok_or(AttachJvmError::NoFile)?;
    let proc_root = process.proc_root().to_owned();
    let key = process.file(&mapping, &proc_root, native).ok_or(AttachJvmError::NoFile)?;
    let memory = ProcessMemory::open(&proc_root, process.pid())?;
    let builder = (key, process.user());
    let (build, bias) = if let Some(known) = builds.get(&builder) {
        (Arc::clone(known), known.libjvm.bias(mapping.start.0, mapping.offset))
    } else {
        let libjvm = Libjvm::read(&native.open(key).ok_or(AttachJvmError::NoFile)?)?;
        let bias = libjvm.bias(mapping.start.0, mapping.offset);
        (Arc::new(JvmBuild::read(&memory, libjvm, bias)?), bias)
    };
    let jvm = Jvm::attach(Box::new(memory), Arc::clone(&build), bias)?;
    if builds.len() >= MAX_BUILDS {
        builds.clear();
    }
    // Only what has served: tables may have been read half relocated.
    builds.insert(builder, build);
    Ok(jvm)
}

fn is_libjvm_code(mapping: &crate::procs::maps::Mapping) -> bool {
    mapping.executable && mapping.file_name() == Some("libjvm.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jvm_that_is_still_starting_is_never_given_up() {
        let starting = AttachJvmError::Jvm(JvmError::Starting);
        for (error, since_s, expected) in [
            (&starting, 0, Some(MIN_PAUSE)),
            (&starting, 59, Some(MIN_PAUSE)),
            (&starting, 60, Some(SLOW_PAUSE)),
            (&starting, 100_000, Some(SLOW_PAUSE)),
            (&AttachJvmError::NoFile, 2, Some(MIN_PAUSE)),
            (&AttachJvmError::NoFile, 3, None),
        ] {
            assert_eq!(next_pause(error, Duration::from_secs(since_s), MIN_PAUSE), expected, "{error} {since_s} s");
        }
    }
}
