//! Opens the run-time systems in the processes, as soon as their structures can be read. One that
//! has just started takes a moment.
//!
//! One that is understood is asked for no perf map: its own memory says more. Until it is clear
//! whether it will be, no map is requested either. One that turns out not to be understood is
//! profiled by its perf map, and that is said once.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::{
    events::{JvmNews, RawStack},
    model::units::Tid,
};
use joular_ebpf::abi::{CompilerThread, JvmUnwind};

use super::{
    Notice, Symbolizer,
    native::{FileKey, NativeSymbols},
    perf_map::requests::ProcessKey,
    process::Process,
};
use crate::runtimes::{Build, Instance, LoadedLibrary, OpenError};

const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time for the dynamic linker to finish with the library. What makes no sense after it never will.
const MAX_LOADING: Duration = Duration::from_secs(3);
/// A run-time system starts within this time, unless it is stopped or starved. After it, the
/// process is looked at seldom, for as long as it lasts.
const SLOW_STARTING: Duration = Duration::from_secs(60);
const SLOW_PAUSE: Duration = Duration::from_secs(10);
/// Builds known at the same time.
const MAX_BUILDS: usize = 64;

/// What is known of a process's run-time system.
#[derive(Debug, Default)]
pub enum InstanceState {
    /// No library of one was seen in it.
    #[default]
    Unknown,
    /// A library was seen, and cannot be read yet.
    Starting {
        since: Instant,
        next_try: Instant,
        pause: Duration,
    },
    Open(OpenInstance),
    /// Why nothing more will come.
    Failed(String),
}

#[derive(Debug)]
pub struct OpenInstance {
    instance: Box<dyn Instance>,
    /// Counts how often words that it had pinned were dropped.
    names_version: u64,
    /// Whether anything was asked in this window.
    is_asked: bool,
}

impl InstanceState {
    fn open(&self) -> Option<&OpenInstance> {
        match self {
            Self::Open(open) => Some(open),
            _ => None,
        }
    }

    /// The instance, to ask it something.
    pub fn asked(&mut self) -> Option<&mut dyn Instance> {
        match self {
            Self::Open(open) => {
                open.is_asked = true;
                Some(&mut *open.instance)
            }
            _ => None,
        }
    }

    /// Whether a perf map would be useless, now or at all.
    pub const fn needs_no_map(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Open(_))
    }

    fn is_due(&self, now: Instant) -> bool {
        match self {
            Self::Unknown => true,
            Self::Starting { next_try, .. } => now >= *next_try,
            Self::Open(_) | Self::Failed(_) => false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum InstanceError {
    #[error("reading {0}: it cannot be opened")]
    NoFile(String),
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// What is known of library files. What a process shows of one is used only for processes of the
/// same user: it could show anything.
pub type Builds = HashMap<(FileKey, u32), Arc<dyn Build>>;

impl Symbolizer {
    /// Fixes what the words of a stack mean that has just arrived.
    pub fn pin(&mut self, process: ProcessKey, generation: u8, stack: &mut RawStack) {
        if let Some(instance) = self.processes.get_mut(&process).and_then(|process| process.instance.asked()) {
            instance.pin(generation, stack);
        }
    }

    /// What walking a process's stacks needs, once its run-time system is understood.
    pub fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        self.open_instance(process)?.instance.kernel_tables()
    }

    /// What is known of its run-time system since it was opened, or could not be.
    pub fn jvm_news(&self, process: ProcessKey) -> Option<JvmNews> {
        match &self.processes.get(&process)?.instance {
            InstanceState::Open(open) => Some(open.instance.news()),
            InstanceState::Failed(why) => Some(JvmNews { unwinding: Some(why.clone()), ..JvmNews::default() }),
            InstanceState::Unknown | InstanceState::Starting { .. } => None,
        }
    }

    /// Its threads that compile, as far as they are known.
    pub fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)] {
        self.open_instance(process).map_or(&[], |open| open.instance.compiler_threads())
    }

    /// Changes when words pinned in a process's stacks were dropped: its stacks must be sent again
    /// to get new ones.
    pub fn names_version(&self, process: ProcessKey) -> u64 {
        self.open_instance(process).map_or(0, |open| open.names_version)
    }

    fn open_instance(&self, process: ProcessKey) -> Option<&OpenInstance> {
        self.processes.get(&process)?.instance.open()
    }

    /// Ends a window.
    pub(super) fn end_window_of_instances(&mut self) {
        for process in self.processes.values_mut() {
            let InstanceState::Open(open) = &mut process.instance else { continue };
            if std::mem::take(&mut open.is_asked) {
                open.names_version += u64::from(open.instance.end_window());
            }
        }
    }

    /// Looks again at one instance at a time: the one that has waited longest.
    fn look_again(&mut self, now: Instant) {
        let due = self.processes.iter_mut().filter_map(|(key, process)| match &mut process.instance {
            InstanceState::Open(open) => Some((open.instance.look_is_due(now)?, key.0, open)),
            _ => None,
        });
        if let Some((_, pid, open)) = due.max_by_key(|(waited, ..)| *waited) {
            open.instance.look_again(&self.proc_root, pid, now);
        }
    }

    /// Opens those instances that it is time for.
    pub(super) fn open_instances(&mut self, now: Instant) {
        let due = |process: &&ProcessKey| {
            self.processes.get(process).is_some_and(|known| {
                // One without a library is looked at when its mappings are read again.
                matches!(known.instance, InstanceState::Starting { .. }) && known.instance.is_due(now)
            })
        };
        let due: Vec<ProcessKey> = self.processes.keys().filter(due).copied().collect();
        due.into_iter().for_each(|process| self.try_open_instance(process, now));
        self.look_again(now);
    }

    /// Opens a process's run-time system if it has one and it is time for it.
    pub(super) fn try_open_instance(&mut self, key: ProcessKey, now: Instant) {
        let Some(process) = self.processes.get_mut(&key) else { return };
        if !process.instance.is_due(now) {
            return;
        }
        let Some(opened) = open(process, &mut self.native, &mut self.builds) else { return };
        let error = match opened {
            Ok(instance) => {
                process.instance = InstanceState::Open(OpenInstance { instance, names_version: 0, is_asked: false });
                self.news.refreshed.push(key);
                return;
            }
            Err(error) => error,
        };
        let (since, pause) = match process.instance {
            InstanceState::Starting { since, pause, .. } => (since, (pause * 2).min(MAX_PAUSE)),
            _ => (now, MIN_PAUSE),
        };
        if let Some(pause) = next_pause(&error, now.saturating_duration_since(since), pause) {
            process.instance = InstanceState::Starting { since, next_try: now + pause, pause };
            return;
        }
        process.instance = InstanceState::Failed(error.to_string());
        self.news.refreshed.push(key);
        let text = format!("falling back to the perf map: {error}");
        // One that has ended needs no excuse.
        if process.is_there() {
            self.news.notices.push(Notice { pid: Some(key.0), text });
        }
    }
}

/// How long to wait before an instance is tried again that has not been understood for so long;
/// none if it never will be.
fn next_pause(error: &InstanceError, since: Duration, pause: Duration) -> Option<Duration> {
    match error {
        InstanceError::Open(OpenError::Starting) if since >= SLOW_STARTING => Some(SLOW_PAUSE),
        InstanceError::Open(OpenError::Starting) => Some(pause),
        _ => (since < MAX_LOADING).then_some(pause),
    }
}

/// `None`: no library of a run-time system is mapped.
fn open(
    process: &mut Process,
    native: &mut NativeSymbols,
    builds: &mut Builds,
) -> Option<Result<Box<dyn Instance>, InstanceError>> {
    let (system, mapping) = process.mapped_system()?;
    let mut open = || {
        let proc_root = process.proc_root().to_owned();
        let no_file = || InstanceError::NoFile(mapping.file_name().unwrap_or_default().to_owned());
        let key = process.file(&mapping, &proc_root, native).ok_or_else(no_file)?;
        let library = LoadedLibrary { proc_root: &proc_root, pid: process.pid(), mapping: &mapping };
        let of_user = (key, process.user());
        let build = match builds.get(&of_user) {
            Some(known) => Arc::clone(known),
            None => system.read_build(&native.open(key).ok_or_else(no_file)?, &library)?,
        };
        let instance = Arc::clone(&build).open(&library)?;
        if builds.len() >= MAX_BUILDS {
            builds.clear();
        }
        // Only what has served: tables may have been read half relocated.
        builds.insert(of_user, build);
        Ok(instance)
    };
    Some(open())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_still_starting_is_never_given_up() {
        let starting = InstanceError::Open(OpenError::Starting);
        let no_file = InstanceError::NoFile("libjvm.so".into());
        for (error, since_s, expected) in [
            (&starting, 0, Some(MIN_PAUSE)),
            (&starting, 59, Some(MIN_PAUSE)),
            (&starting, 60, Some(SLOW_PAUSE)),
            (&starting, 100_000, Some(SLOW_PAUSE)),
            (&no_file, 2, Some(MIN_PAUSE)),
            (&no_file, 3, None),
        ] {
            assert_eq!(next_pause(error, Duration::from_secs(since_s), MIN_PAUSE), expected, "{error} {since_s} s");
        }
    }
}
