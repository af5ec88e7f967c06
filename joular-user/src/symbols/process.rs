//! Describes one process as its addresses see it: mappings, files, generated code.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use joular_data::{
    events::ProcessInfo,
    model::units::{Address, Pid},
};
use joular_ebpf::abi::FrameWord;

use super::{
    files::{FileKey, FileUse},
    instance_state::Slot,
    native::NativeSymbols,
    open_instance::{Facts, OpenInstance},
    perf_map::{
        generated_code::{GeneratedCode, Source},
        requests::{ProcessKey, Request},
    },
    questions::{FileIdentity, NoFile, Questions},
};
use crate::{
    bounds::Bound,
    procs::{
        attach::{Target, protocol::perf_map_name},
        deadline,
        maps::{Mapping, MappingKind, Maps},
        namespaces::TargetRoot,
        proc_files::{ProcFiles, TICK_NS},
        quota::Owner,
    },
    runtimes::{Alternatives, RuntimeSystem, Systems},
};

/// While a process is young it still maps its libraries.
const YOUNG: Duration = Duration::from_secs(10);
const MIN_PAUSE_YOUNG: Duration = Duration::from_millis(500);
/// Pause between two readings because an address was in no mapping. It doubles each time that did
/// not help, because some addresses are garbage.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The pause is at least so many times as long as a reading takes: there may be a million mappings.
const PAUSE_FACTOR: u32 = 50;
/// Files kept open for one process; the rest have the names of their modules.
const MAX_FILES: usize = 512;
pub static FILES: Bound = Bound::new(
    "mapped_files_not_opened",
    MAX_FILES as u64,
    "files with code of a process",
    "code of the rest is `[FILE]`, and walked by frame pointers",
);
/// Tells one program in a process from the next.
static NEXT_INCARNATION: AtomicU64 = AtomicU64::new(0);

/// Where an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    File(FileKey, u64),
    /// A file that cannot be read: its name at least.
    Module(Arc<str>),
    Vdso(u64),
    Generated,
    /// Not an address, but a word that only the process's run-time system can tell.
    Word,
    /// In no mapping that is kept, of a process some of whose are not.
    NotKept,
    Nowhere,
}

#[derive(Debug)]
pub struct Process {
    pid: Pid,
    /// Identifies the program in the process: an answer meant for another program does not count.
    pub incarnation: u64,
    target: Target,
    root: Option<Arc<TargetRoot>>,
    /// Whether it had a perf map when it was last asked.
    has_map_file: bool,
    maps: Maps,
    /// Counts changes of `maps`.
    pub maps_version: u64,
    systems: Systems,
    /// One for each of `systems`.
    pub slots: Vec<Slot>,
    first_seen: Instant,
    maps_read: Option<Instant>,
    /// Until the mappings may be read again for an address that is in none.
    pause: Duration,
    /// Of the last reading.
    cost: Duration,
    /// By device and inode as the mappings have them.
    files: HashMap<FileIdentity, Result<FileUse, NoFile>>,
    questions: Questions,
    pub code: Option<GeneratedCode>,
}

impl Process {
    pub fn open(info: &ProcessInfo, proc_root: &Path, systems: Systems, now: Instant) -> Self {
        let target = Target {
            pid: info.pid,
            namespace_pid: if info.namespace_pid == 0 { info.pid.0 } else { info.namespace_pid },
            uid: info.uid,
            gid: info.gid,
            start_ticks: info.start_boottime_ns / TICK_NS,
            proc_root: proc_root.to_owned(),
        };
        let mut process = Self {
            pid: info.pid,
            incarnation: NEXT_INCARNATION.fetch_add(1, Ordering::Relaxed),
            target,
            root: None,
            has_map_file: false,
            maps: Maps::default(),
            maps_version: 0,
            systems,
            slots: systems.iter().map(|alternatives| Slot::of(alternatives, &info.runtime)).collect(),
            first_seen: now,
            maps_read: None,
            pause: MIN_PAUSE,
            cost: Duration::ZERO,
            files: HashMap::new(),
            questions: Questions::to(Owner::of(info)),
            code: None,
        };
        process.read_maps(now);
        let known: Vec<_> = process.slots.iter().filter_map(|slot| slot.system).collect();
        known.into_iter().for_each(|system| process.expect_code(perf_map_source(system), now));
        process
    }

    /// Takes over what was read anew; the files and snapshots remain.
    pub fn succeed_by(&mut self, fresh: Self) {
        self.target = fresh.target;
        (self.maps_read, self.cost) = (fresh.maps_read, fresh.cost);
        for (slot, fresh) in self.slots.iter_mut().zip(fresh.slots) {
            slot.system = slot.system.or(fresh.system);
        }
        if !fresh.maps.is_empty() {
            self.set_maps(fresh.maps);
        }
        if fresh.root.is_some() {
            self.root = fresh.root;
        }
        match (&mut self.code, fresh.code) {
            (Some(code), Some(new)) if code.source == Source::File && code.finished == 0 => code.source = new.source,
            (code @ None, new) => *code = new,
            _ => {}
        }
    }

    /// The run-time system that it runs, as far as is known; the first one if there are several.
    pub fn system(&self) -> Option<&'static dyn RuntimeSystem> {
        self.slots.iter().find_map(|slot| slot.system)
    }

    /// The run-time system of a slot whose code is mapped, and where.
    pub fn mapped_system(&self, slot: usize) -> Option<(&'static dyn RuntimeSystem, Mapping)> {
        find_system(&self.maps, self.systems.get(slot)?).map(|(system, mapping)| (system, mapping.clone()))
    }

    /// The run-time systems that are understood, to ask them something.
    pub fn open_instances(&mut self) -> impl Iterator<Item = &mut OpenInstance> {
        self.slots.iter_mut().filter_map(|slot| slot.instance.open_mut())
    }

    /// What they have said.
    pub fn facts(&self) -> impl Iterator<Item = &Facts> {
        self.slots.iter().filter_map(|slot| slot.instance.facts())
    }

    /// Whether a perf map would be useless, now or at all.
    pub fn needs_no_map(&self) -> bool {
        self.slots.iter().any(|slot| slot.instance.needs_no_map())
    }

    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// The user that it runs as.
    pub const fn user(&self) -> u32 {
        self.target.uid
    }

    pub fn proc_root(&self) -> &Path {
        &self.target.proc_root
    }

    /// Whether it has not ended yet.
    pub fn is_there(&self) -> bool {
        self.target.proc_root.join(self.pid.to_string()).exists()
    }

    /// Reads the mappings again if what we have may be out of date.
    pub fn freshen(&mut self, addresses: &[Address], now: Instant) {
        let pause = self.maps_read.map_or(Duration::MAX, |at| now.saturating_duration_since(at));
        let least = self.cost.saturating_mul(PAUSE_FACTOR).min(MAX_PAUSE);
        let is_young = now.saturating_duration_since(self.first_seen) < YOUNG;
        if is_young && pause >= MIN_PAUSE_YOUNG.max(least) {
            self.read_maps(now);
        } else if pause >= self.pause.max(least) {
            let missing = |process: &Self| {
                let addresses = addresses.iter().filter(|at| !FrameWord(at.0).is_of_a_runtime());
                addresses.filter(|at| process.maps.find(**at).is_none()).count()
            };
            let before = missing(self);
            if before > 0 {
                self.read_maps(now);
                let has_helped = missing(self) < before;
                self.pause = if has_helped { MIN_PAUSE } else { (self.pause * 2).min(MAX_PAUSE) };
            }
        }
    }

    fn read_maps(&mut self, now: Instant) {
        self.maps_read = Some(now);
        let Some(survey) = self.questions.survey(&self.target, self.root.as_ref()) else { return };
        if survey.root.is_some() {
            self.root = survey.root;
        }
        self.has_map_file = survey.has_map_file;
        self.cost = survey.cost;
        // When it has ended, what we had last is what counts.
        let Ok(maps) = survey.maps else { return };
        if maps.is_empty() {
            return;
        }
        for (index, alternatives) in self.systems.iter().enumerate() {
            let Some((system, _)) = find_system(&maps, alternatives) else { continue };
            let known = self.slots[index].system.replace(system);
            let is_another = known.is_some_and(|known| known.name() != system.name());
            self.expect_code(perf_map_source(system), now);
            if is_another && let Some(code) = &mut self.code {
                // What it was taken for may be asked for its perf map, and this one not.
                code.source = perf_map_source(system);
            }
        }
        self.set_maps(maps);
    }

    fn set_maps(&mut self, maps: Maps) {
        self.maps_version += u64::from(maps != self.maps);
        self.maps = maps;
    }

    /// Code as mapped when the mappings were last read.
    pub const fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Notes that the process makes code.
    pub fn expect_code(&mut self, source: Source, now: Instant) {
        match &mut self.code {
            None => {
                self.code = Some(GeneratedCode::new(source, self.has_map_file, now));
            }
            // It was a stranger that turns out to write a map when it is asked to.
            Some(code) if code.source == Source::File && source == Source::Attach && code.finished == 0 => {
                code.source = source;
            }
            Some(_) => {}
        }
    }

    /// Reads its user again: daemons change their user after the start.
    pub fn read_user(&mut self) {
        if let Some((uid, gid)) = ProcFiles::new(&self.target.proc_root).user(self.pid) {
            (self.target.uid, self.target.gid) = (uid, gid);
        }
    }

    fn map_file(&self) -> String {
        perf_map_name(self.target.namespace_pid)
    }

    pub fn place(&mut self, address: Address, native: &mut NativeSymbols) -> Location {
        if FrameWord(address.0).is_of_a_runtime() {
            return Location::Word;
        }
        let Some(mapping) = self.maps.find(address) else {
            return if self.maps.left_out.mappings > 0 { Location::NotKept } else { Location::Nowhere };
        };
        if mapping.is_generated_code() {
            return Location::Generated;
        }
        match mapping.kind {
            MappingKind::Vdso => return Location::Vdso(address.0.saturating_sub(mapping.start.0)),
            MappingKind::File | MappingKind::Deleted => {}
            _ => return mapping.path.clone().map_or(Location::Nowhere, Location::Module),
        }
        let offset = mapping.file_offset(address);
        // A file whose name is too long to be kept is nowhere.
        let Some(module) = mapping.file_name() else { return Location::Nowhere };
        let module: Arc<str> = module.into();
        let mapping = mapping.clone();
        self.file(&mapping, native).map_or(Location::Module(module), |key| Location::File(key, offset))
    }

    /// The file behind a mapping, which is kept open from now on: the key of it and its copies.
    pub fn file(&mut self, mapping: &Mapping, native: &mut NativeSymbols) -> Option<FileKey> {
        self.file_use(mapping, native).ok().map(|used| used.key)
    }

    /// The same, with its own key too.
    pub fn file_use(&mut self, mapping: &Mapping, native: &mut NativeSymbols) -> Result<FileUse, NoFile> {
        let identity = (mapping.device, mapping.inode);
        if let Some(known) = self.files.get(&identity) {
            return known.clone();
        }
        if self.files.len() >= MAX_FILES {
            FILES.cut_of(self.pid, 1);
            return Err(NoFile::TooMany);
        }
        let opened = self.questions.open_file(&self.target, self.root.as_ref(), mapping).ok_or(NoFile::Late)?;
        let module = mapping.file_name().unwrap_or_default();
        let used = opened.and_then(|file| native.acquire(file, module).ok_or(NoFile::Changed));
        self.files.insert(identity, used.clone());
        used
    }

    /// Whose it is.
    pub const fn owner(&self) -> &Owner {
        self.questions.owner()
    }

    /// A request to start now, if one is due or `force`d.
    pub fn request(&self, key: ProcessKey, helper: Option<&PathBuf>, force: bool, now: Instant) -> Option<Request> {
        let code = self.code.as_ref()?;
        if !(code.is_due(now) || force && !code.in_flight && code.source != Source::None) {
            return None;
        }
        let helper = match code.source {
            Source::Attach => Some(helper?.clone()),
            _ => None,
        };
        let root = Arc::clone(self.root.as_ref()?);
        Some(Request { process: key, incarnation: self.incarnation, root, target: self.target.clone(), helper })
    }

    /// Releases everything; removes the perf map that was made for us.
    pub fn close(self, native: &mut NativeSymbols) {
        let now = Instant::now();
        self.files.values().flatten().for_each(|used| native.release(*used, now));
        self.remove_map_file();
    }

    pub fn remove_map_file(&self) {
        if let (Some(root), Some(code)) = (&self.root, &self.code)
            && code.was_written_for_us
            && !code.file_was_there
        {
            let (root, name, uid) = (Arc::clone(root), self.map_file(), self.target.uid);
            // Gone already, or put there by someone else: neither is ours.
            let _late = deadline::within_deadline(Some(self.owner()), move || drop(root.remove_tmp_file(&name, uid)));
        }
    }
}

fn find_system(maps: &Maps, alternatives: Alternatives) -> Option<(&'static dyn RuntimeSystem, &Mapping)> {
    let mapping_of = |system: &dyn RuntimeSystem| maps.iter().find(|mapping| system.is_mapped_by(mapping));
    alternatives.iter().find_map(|system| Some((*system, mapping_of(*system)?)))
}

fn perf_map_source(system: &dyn RuntimeSystem) -> Source {
    if system.writes_perf_map_on_request() { Source::Attach } else { Source::File }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
