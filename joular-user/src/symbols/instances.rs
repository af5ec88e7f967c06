//! Opens the run-time systems in the processes, as soon as their structures can be read. One that
//! has just started takes a moment.
//!
//! That is done beside the windows ([`deadline`]), a few at a time: a process may make it as slow as it
//! likes.
//!
//! One that is understood is asked for no perf map: its own memory says more. Until it is clear
//! whether it will be, no map is requested either. One that turns out not to be understood is
//! profiled by its perf map, and that is said once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use joular_data::{
    events::JvmNews,
    model::{target_text::TargetText, units::Tid},
};
use joular_ebpf::abi::{CompilerThread, JvmUnwind};

use super::{
    Notice, Symbolizer,
    builds::{Builds, Known, Library},
    files::Copies,
    instance_state::{InstanceError, InstanceState, Opened, Slot, Trial},
    native::NativeSymbols,
    open_instance::{Facts, OpenInstance},
    perf_map::requests::ProcessKey,
    process::Process,
    questions::NoFile,
};
use crate::{
    procs::{
        deadline::{self, Pending, Progress},
        maps::Mapping,
    },
    runtimes::{KernelTables, LoadedLibrary, OpenError, RuntimeSystem},
};

const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time for the dynamic linker to finish with the library. What makes no sense after it never will, but a file system that
/// is slow gets as much time as a start.
const MAX_LOADING: Duration = Duration::from_secs(3);
/// A run-time system starts within this time, unless it is stopped or starved. After it, the
/// process is looked at seldom, for as long as it lasts.
const SLOW_STARTING: Duration = Duration::from_secs(60);
const SLOW_PAUSE: Duration = Duration::from_secs(10);
/// Between two tries lies so many times what the first one took: one that has been made to be slow must not
/// take the time of others.
const PAUSE_FACTOR: u32 = 8;
/// Opened at the same time.
const MAX_OPENING: usize = 4;
/// Time in a window in which nothing else is done than to wait for some to be open, of all processes.
const OPENING_PER_WINDOW: Duration = Duration::from_millis(50);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Index into [`Process::slots`], and so into [`crate::runtimes::Systems`].
type SlotIndex = usize;

/// Limits what run-time systems take of this thread's time.
#[derive(Debug)]
pub struct Pace {
    /// Of this window, to wait for some to be open.
    opening_left: Duration,
    /// When each is to be looked at again.
    looks: BTreeMap<(ProcessKey, SlotIndex), Instant>,
    /// Whether some may not be open yet. If not, nobody has to go through hundreds of processes.
    has_starting: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { opening_left: OPENING_PER_WINDOW, looks: BTreeMap::new(), has_starting: false }
    }
}

impl Symbolizer {
    /// What walking a process's stacks needs, once its JVM is understood.
    pub fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        let tables = self.facts(process).find_map(|facts| facts.kernel_tables.as_ref());
        tables.map(|KernelTables::Jvm(jvm)| jvm)
    }

    /// What is known of its JVM since it was opened, or could not be.
    pub fn jvm_news(&self, process: ProcessKey) -> Option<JvmNews> {
        self.processes.get(&process)?.slots.iter().find_map(Slot::jvm_news)
    }

    /// Its threads that compile, as far as they are known.
    pub fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)] {
        self.facts(process).map(|facts| &*facts.compiler_threads).find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// Changes when words pinned in a process's stacks were dropped: its stacks must be sent again
    /// to get new ones.
    pub fn names_version(&self, process: ProcessKey) -> u64 {
        let slots = self.processes.get(&process).into_iter().flat_map(|process| &process.slots);
        slots.filter_map(|slot| slot.instance.open()).map(|open| open.names_version).sum()
    }

    /// Says that a thread of a process has taken a name.
    pub fn thread_named(&mut self, process: ProcessKey, tid: Tid, name: &str) {
        let slots = self.processes.get_mut(&process).into_iter().flat_map(|process| &mut process.slots);
        for (index, slot) in slots.enumerate() {
            if let Some(instance) = slot.instance.open_mut().and_then(OpenInstance::here) {
                let now = Instant::now();
                instance.thread_named(tid, name, now);
                self.pace.looks.extend(instance.next_look(now).map(|next| ((process, index), next)));
            }
        }
    }

    /// What the run-time systems of a process that are understood have said.
    pub(super) fn facts(&self, process: ProcessKey) -> impl Iterator<Item = &Facts> {
        self.processes.get(&process).into_iter().flat_map(Process::facts)
    }

    /// Ends a window.
    pub(super) fn end_window_of_instances(&mut self, now: Instant) {
        self.pace.opening_left = OPENING_PER_WINDOW;
        for (key, slot) in slots(&mut self.processes) {
            let Some(open) = slot.instance.open_mut() else { continue };
            open.end_window();
            if open.take_lateness() {
                let text = "its memory does not answer: its methods have no names until it does".to_owned();
                self.news.notices.push(Notice { pid: Some(key.0), text });
            }
            if open.is_lost() {
                slot.instance = InstanceState::Starting { since: now, next_try: now + MAX_PAUSE, pause: MAX_PAUSE };
                self.pace.has_starting = true;
            }
        }
    }

    /// Looks again at one instance at a time: the one that has waited longest.
    fn look_again(&mut self, now: Instant) {
        let next = self.pace.looks.iter().min_by_key(|(_, due)| **due);
        let Some((&(key, index), _)) = next.filter(|(_, due)| **due <= now) else { return };
        self.pace.looks.remove(&(key, index));
        let slot = self.processes.get_mut(&key).and_then(|process| process.slots.get_mut(index));
        let Some(open) = slot.and_then(|slot| slot.instance.open_mut()) else { return };
        let proc_root = self.proc_root.clone();
        open.look_again(move |instance| instance.look_again(&proc_root, key.0, now));
        let next = open.here().map_or(Some(now + MAX_PAUSE), |instance| instance.next_look(now));
        self.pace.looks.extend(next.map(|next| ((key, index), next)));
    }

    /// Goes on with those that are starting, and looks again at one that is open.
    pub(super) fn open_instances(&mut self, now: Instant) {
        if self.pace.has_starting {
            self.open_due(now);
            self.pace.has_starting = slots(&mut self.processes).any(|(_, slot)| slot.instance.is_starting());
        }
        self.look_again(now);
    }

    /// Whether some are starting.
    pub(super) const fn has_starting(&self) -> bool {
        self.pace.has_starting
    }

    /// Opens those that it is time for, in the order in which they became due.
    fn open_due(&mut self, now: Instant) {
        let mut due: Vec<(Option<Instant>, ProcessKey)> = Vec::new();
        for (key, slot) in slots(&mut self.processes) {
            match slot.instance {
                // One without a library is looked at when its mappings are read again.
                InstanceState::Starting { next_try, .. } if now >= next_try => due.push((Some(next_try), key)),
                InstanceState::Opening { .. } => due.push((None, key)),
                _ => {}
            }
        }
        due.sort_unstable();
        due.into_iter().for_each(|(_, process)| self.try_open_instances(process, now));
    }

    /// Waits until those are open that can be, for a limited time.
    pub fn settle(&mut self, timeout: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < timeout {
            self.open_instances(Instant::now());
            let now = Instant::now();
            let is_under_way = |state: &InstanceState| state.is_opening() || state.is_starting() && state.is_due(now);
            if !slots(&mut self.processes).any(|(_, slot)| is_under_way(&slot.instance)) {
                return;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Opens a process's run-time systems if it has any and it is time for them. Waits for that as long as
    /// there is time for it in this window; then it goes on beside.
    pub(super) fn try_open_instances(&mut self, key: ProcessKey, now: Instant) {
        for index in 0..self.systems.len() {
            self.begin_opening(key, index, now);
            self.go_on_opening(key, index, now);
        }
    }

    fn go_on_opening(&mut self, key: ProcessKey, index: SlotIndex, now: Instant) {
        let Some(process) = self.processes.get_mut(&key) else { return };
        let Some(slot) = process.slots.get_mut(index) else { return };
        let InstanceState::Opening { since, pause, work } = &mut slot.instance else { return };
        let begun = Instant::now();
        let progress = work.wait(self.pace.opening_left);
        self.pace.opening_left = self.pace.opening_left.saturating_sub(begun.elapsed());
        let (error, took) = match progress {
            Progress::UnderWay => return,
            Progress::Done(Trial { result: Ok(opened), .. }) => {
                self.pace.looks.extend(opened.instance.next_look(now).map(|next| ((key, index), next)));
                let open = OpenInstance::new(opened.instance, process.owner().clone());
                process.slots[index].instance = InstanceState::Open(Box::new(open));
                self.builds.insert(opened.library, opened.build);
                self.news.refreshed.push(key);
                return;
            }
            Progress::Done(Trial { result: Err(error), took }) => (error, took),
            Progress::Failed => (InstanceError::Unfinished, Duration::ZERO),
        };
        let paced = (*pause * 2).min(MAX_PAUSE).max(took * PAUSE_FACTOR);
        let since = *since;
        if let Some(pause) = next_pause(&error, now.saturating_duration_since(since), paced) {
            slot.instance = InstanceState::Starting { since, next_try: now + pause, pause };
            return;
        }
        slot.instance = InstanceState::Failed(error.to_string());
        self.news.refreshed.push(key);
        let text = format!("falling back to the perf map: {error}");
        // One that has ended needs no excuse.
        if process.is_there() {
            self.news.notices.push(Notice { pid: Some(key.0), text });
        }
    }

    fn begin_opening(&mut self, key: ProcessKey, index: SlotIndex, now: Instant) {
        let is_opening = |process: &Process| process.slots.iter().filter(|slot| slot.instance.is_opening()).count();
        let Some(process) = self.processes.get(&key) else { return };
        let Some(slot) = process.slots.get(index).filter(|slot| slot.instance.is_due(now)) else { return };
        let Some((system, mapping)) = process.mapped_system(index) else { return };
        let (since, pause) = slot.instance.trials().unwrap_or((now, MIN_PAUSE / 2));
        let opening: usize = self.processes.values().map(is_opening).sum();
        let Some(process) = self.processes.get_mut(&key) else { return };
        self.pace.has_starting = true;
        let instance = if opening < MAX_OPENING {
            let work = begin_opening(process, (system, mapping), &mut self.native, &self.builds);
            InstanceState::Opening { since, pause, work }
        } else {
            InstanceState::Starting { since, next_try: now, pause }
        };
        process.slots[index].instance = instance;
    }
}

/// The slots of all processes.
fn slots(processes: &mut HashMap<ProcessKey, Process>) -> impl Iterator<Item = (ProcessKey, &mut Slot)> {
    processes.iter_mut().flat_map(|(key, process)| process.slots.iter_mut().map(|slot| (*key, slot)))
}

/// How long to wait before an instance is tried again that has not been understood for so long;
/// none if it never will be.
fn next_pause(error: &InstanceError, since: Duration, pause: Duration) -> Option<Duration> {
    match error {
        InstanceError::Open(OpenError::Starting) if since >= SLOW_STARTING => Some(SLOW_PAUSE),
        InstanceError::Unfinished => Some(SLOW_PAUSE),
        InstanceError::NoFile(_, NoFile::Late) => (since < SLOW_STARTING).then_some(pause),
        InstanceError::Open(OpenError::Starting) => Some(pause),
        _ => (since < MAX_LOADING).then_some(pause),
    }
}

/// Begins to read the run-time system that is mapped.
fn begin_opening(
    process: &mut Process,
    (system, mapping): (&'static dyn RuntimeSystem, Mapping),
    native: &mut NativeSymbols,
    builds: &Builds,
) -> Pending<Trial> {
    let (proc_root, pid) = (process.proc_root().to_owned(), process.pid());
    let name: TargetText = mapping.file_name().unwrap_or_default().into();
    let no_file = move |why| InstanceError::NoFile(name.clone(), why);
    let library = process.file_use(&mapping, native).map(|file| Library { file, user: process.user() });
    let known = library.as_ref().map_or(Known::Nothing, |library| builds.of(*library));
    let file = library.as_ref().ok().and_then(|library| native.open(library.file.key));
    let open = move || {
        let library = library.map_err(&no_file)?;
        let loaded = LoadedLibrary { proc_root: &proc_root, pid, mapping: &mapping };
        let build = match known {
            Known::Build(build) => build,
            Known::Copy(copy) => copy.of_copy(&loaded)?,
            Known::Nothing => {
                let file = file.as_ref().and_then(Copies::readable).ok_or_else(|| no_file(NoFile::Changed))?;
                system.read_build(file, &loaded)?
            }
        };
        let instance = Arc::clone(&build).open(&loaded)?;
        Ok(Opened { instance, build, library })
    };
    deadline::begin(Some(process.owner()), move || {
        let begun = Instant::now();
        Trial { result: open(), took: begun.elapsed() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_still_starting_is_never_given_up() {
        let starting = InstanceError::Open(OpenError::Starting);
        let no_file = |why| InstanceError::NoFile("libjvm.so".into(), why);
        let (late, changed) = (no_file(NoFile::Late), no_file(NoFile::Changed));
        for (error, since_s, expected) in [
            (&starting, 0, Some(MIN_PAUSE)),
            (&starting, 59, Some(MIN_PAUSE)),
            (&starting, 60, Some(SLOW_PAUSE)),
            (&starting, 100_000, Some(SLOW_PAUSE)),
            (&changed, 2, Some(MIN_PAUSE)),
            (&changed, 3, None),
            (&late, 59, Some(MIN_PAUSE)),
            (&late, 60, None),
        ] {
            assert_eq!(next_pause(error, Duration::from_secs(since_s), MIN_PAUSE), expected, "{error} {since_s} s");
        }
    }
}
