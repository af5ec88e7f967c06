//! Keeps the kernel's tables true to the processes that are sampled.
//!
//! A process is published in steps, so that its stacks are walked by whatever is
//! known already: its mappings first, by which frame pointers are followed through
//! libraries; rows as its files are read; the JVM when its layout is known. Each
//! step writes a new range of mappings and then switches the process over to it,
//! so no program ever sees a half of one. The ranges left behind rest for a while.
//!
//! Mappings change while a process runs. Nobody tells; but a walk that ends at an
//! address in no mapping makes the symbolizer look again, and its count of changes
//! tells us.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    thread,
    time::{Duration, Instant},
};

use joular_ebpf::abi::{CodeMapping, CompilerThread, JvmUnwind, MAX_JVMS, MAX_MAPPINGS, MAX_PROCESSES, ProcessUnwind};

use super::{
    files::Files,
    interfaces::{ProcessSource, WalkTables},
    tables::{Range, Ranges},
};
use crate::{
    kernel::KernelError,
    symbols::{
        ProcessKey,
        mapped_code::{CodeOwner, MappedCode},
        native::FileKey,
    },
    units::{Pid, Tid},
};

/// Mappings of code of one process: a few dozen are usual.
const MAX_MAPPINGS_OF_PROCESS: usize = 4096;
/// While nothing else is to be done than to wait.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Processes looked at in one poll: a window must be able to end.
const MAX_UPDATES: usize = 256;

#[derive(Debug)]
struct Published {
    key: ProcessKey,
    maps_version: Option<u64>,
    code: Vec<MappedCode>,
    files: HashSet<FileKey>,
    /// What the kernel has, and where.
    mappings: Vec<CodeMapping>,
    range: Range,
    jvm: Option<(Range, JvmUnwind)>,
    unwind: Option<ProcessUnwind>,
    compiler_threads: Vec<(Tid, CompilerThread)>,
    names_version: u64,
    generation: u32,
    /// In which window.
    last_sampled: u64,
}

impl Published {
    fn is_outdated(&self, source: &impl ProcessSource) -> bool {
        self.maps_version != source.maps_version(self.key)
            || self.names_version != source.names_version(self.key)
            || self.jvm.as_ref().map(|(_, jvm)| jvm) != source.jvm_unwind(self.key)
            || self.compiler_threads != source.compiler_threads(self.key)
    }
}

/// Everything published, and what is to be.
#[derive(Debug)]
pub struct Publisher<T> {
    tables: T,
    files: Files,
    mappings: Ranges,
    jvms: Ranges,
    processes: HashMap<Pid, Published>,
    /// To be looked at in the next poll.
    outdated: BTreeSet<Pid>,
    /// JVMs whose layout is not known yet.
    awaited: BTreeSet<Pid>,
    generation: u32,
    window: u64,
    notices: Vec<String>,
    /// Kinds of notices that were given.
    noticed: HashSet<&'static str>,
}

impl<T: WalkTables> Publisher<T> {
    pub fn new(tables: T) -> Self {
        Self {
            tables,
            files: Files::default(),
            mappings: Ranges::new(MAX_MAPPINGS),
            jvms: Ranges::new(MAX_JVMS),
            processes: HashMap::new(),
            outdated: BTreeSet::new(),
            awaited: BTreeSet::new(),
            generation: 0,
            window: 0,
            notices: Vec::new(),
            noticed: HashSet::new(),
        }
    }

    /// A process was sampled, or surely will be. Publishes it at once if it is not
    /// known yet, and looks at it again in the next poll otherwise.
    pub fn sampled(&mut self, process: ProcessKey, source: &mut impl ProcessSource) {
        let pid = process.0;
        match self.processes.get_mut(&pid) {
            Some(known) if known.key == process => {
                known.last_sampled = self.window;
                if known.is_outdated(source) {
                    self.outdated.insert(pid);
                }
            }
            _ => self.start(process, source),
        }
    }

    fn start(&mut self, process: ProcessKey, source: &mut impl ProcessSource) {
        self.ended(process.0);
        if self.processes.len() >= MAX_PROCESSES as usize && !self.drop_oldest() {
            return self.notice("processes", "more processes are sampled than can be walked by unwind tables");
        }
        let generation = self.next_generation();
        let published = Published {
            key: process,
            maps_version: None,
            code: Vec::new(),
            files: HashSet::new(),
            mappings: Vec::new(),
            range: Range::default(),
            jvm: None,
            unwind: None,
            compiler_threads: Vec::new(),
            names_version: source.names_version(process),
            generation,
            last_sampled: self.window,
        };
        self.processes.insert(process.0, published);
        self.update(process.0, source);
    }

    /// Makes room: the process that was not sampled for the longest time goes.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.processes.iter().map(|(pid, known)| (known.last_sampled, *pid)).min();
        // One sampled in this window or the last would come back at once.
        let dropped = oldest.filter(|(window, _)| window + 1 < self.window);
        if let Some((_, pid)) = dropped {
            self.ended(pid);
        }
        dropped.is_some()
    }

    /// The process has ended, runs another program, or is no target any more.
    pub fn ended(&mut self, pid: Pid) {
        self.outdated.remove(&pid);
        self.awaited.remove(&pid);
        let Some(known) = self.processes.remove(&pid) else { return };
        self.tables.remove_process(pid);
        self.mappings.give_back(known.range);
        if let Some((index, _)) = known.jvm {
            self.jvms.give_back(index);
        }
        known.compiler_threads.iter().for_each(|(tid, _)| self.tables.remove_compiler_thread(*tid));
        known.files.into_iter().for_each(|file| self.files.release(file));
    }

    /// Goes on with what is under way; to be called often. Gives what the user
    /// should know, each thing once.
    pub fn poll(&mut self, source: &mut impl ProcessSource) -> Vec<String> {
        let (files, tables) = (&mut self.files, &mut self.tables);
        match files.poll(|file| source.open(file), |first, rows| tables.write_rows(first, rows)) {
            Ok(ready) if !ready.is_empty() => {
                let users = self.processes.iter().filter(|(_, known)| !known.files.is_disjoint(&ready));
                self.outdated.extend(users.map(|(pid, _)| *pid));
            }
            Ok(_) => {}
            Err(error) => self.notice("rows", &format!("{error}: some files are walked by frame pointers")),
        }
        if self.files.without_room > 0 {
            self.notice(
                "files",
                "there are more unwind tables than there is room for: some files are walked by frame pointers",
            );
        }
        let known = self
            .awaited
            .iter()
            .filter(|pid| self.processes.get(pid).is_some_and(|known| source.jvm_unwind(known.key).is_some()));
        self.outdated.extend(known);
        for _ in 0..MAX_UPDATES {
            let Some(pid) = self.outdated.pop_first() else { break };
            self.update(pid, source);
        }
        std::mem::take(&mut self.notices)
    }

    /// A window has ended.
    pub fn pass_window(&mut self) {
        self.window += 1;
        self.files.pass_window();
        self.mappings.pass_window();
        self.jvms.pass_window();
    }

    /// Whether the kernel has everything that could be found out.
    fn is_settled(&self) -> bool {
        self.outdated.is_empty() && self.files.are_settled()
    }

    /// Waits until the kernel has everything, but not for long. Notices keep until
    /// the next poll.
    pub fn settle(&mut self, source: &mut impl ProcessSource, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while !self.is_settled() && Instant::now() < deadline {
            let notices = self.poll(source);
            self.notices.extend(notices);
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Never one that a process with this number had before.
    const fn next_generation(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1);
        self.generation
    }

    fn notice(&mut self, kind: &'static str, text: &str) {
        if self.noticed.insert(kind) {
            self.notices.push(text.to_owned());
        }
    }

    /// Brings one process up to date.
    fn update(&mut self, pid: Pid, source: &mut impl ProcessSource) {
        let Some(mut known) = self.processes.remove(&pid) else { return };
        let outcome = self.write(&mut known, source);
        if !matches!(outcome, Ok(true)) {
            self.tables.remove_process(pid);
            known.unwind = None;
            known.mappings.clear();
        }
        if let Err(error) = outcome {
            self.notice("kernel", &format!("process {pid}: {error}: its stacks are walked by frame pointers"));
        }
        self.processes.insert(pid, known);
    }

    /// Says whether the process is published.
    fn write(&mut self, known: &mut Published, source: &mut impl ProcessSource) -> Result<bool, KernelError> {
        let version = source.maps_version(known.key);
        if version != known.maps_version {
            known.maps_version = version;
            self.take_code(known, source.mapped_code(known.key));
        }
        if known.names_version != source.names_version(known.key) {
            known.names_version = source.names_version(known.key);
            known.generation = self.next_generation();
        }
        self.take_jvm(known, source)?;
        self.take_compiler_threads(known, source)?;
        let mappings = self.mappings_of(known);
        if mappings != known.mappings {
            let count = u32::try_from(mappings.len()).unwrap_or(u32::MAX);
            let Some(range) = self.mappings.take(count) else {
                self.notice("mappings", "there are more mappings of code than there is room for: some processes are walked by frame pointers");
                return Ok(false);
            };
            self.mappings.give_back(std::mem::replace(&mut known.range, range));
            self.tables.write_mappings(range.first, &mappings)?;
            known.mappings = mappings;
        }
        if known.mappings.is_empty() {
            return Ok(false);
        }
        let unwind = ProcessUnwind {
            first_mapping: known.range.first,
            mapping_count: known.range.count,
            jvm: known.jvm.as_ref().map_or(0, |(index, _)| index.first + 1),
            generation: known.generation,
        };
        if known.unwind != Some(unwind) {
            self.tables.set_process(known.key.0, unwind)?;
            known.unwind = Some(unwind);
        }
        Ok(true)
    }

    fn take_code(&mut self, known: &mut Published, code: Vec<MappedCode>) {
        let files: HashSet<FileKey> = code.iter().filter_map(file_of).collect();
        files.difference(&known.files).for_each(|file| self.files.acquire(*file));
        known.files.difference(&files).for_each(|file| self.files.release(*file));
        known.files = files;
        if known.code.iter().any(|old| code.iter().any(|new| is_replaced(old, new))) {
            known.generation = self.next_generation();
        }
        known.code = code;
    }

    fn take_jvm(&mut self, known: &mut Published, source: &impl ProcessSource) -> Result<(), KernelError> {
        let pid = known.key.0;
        let Some(jvm) = source.jvm_unwind(known.key) else {
            if known.jvm.is_none() && source.is_jvm(known.key) {
                self.awaited.insert(pid);
            }
            return Ok(());
        };
        self.awaited.remove(&pid);
        if known.jvm.as_ref().is_some_and(|(_, written)| written == jvm) {
            return Ok(());
        }
        let Some(index) = self.jvms.take(1) else {
            self.notice("jvms", "there are more JVMs than there is room for: some are walked by frame pointers");
            return Ok(());
        };
        if let Some((old, _)) = known.jvm.replace((index, *jvm)) {
            self.jvms.give_back(old);
        }
        self.tables.set_jvm(index.first, jvm)
    }

    fn take_compiler_threads(&mut self, known: &mut Published, source: &impl ProcessSource) -> Result<(), KernelError> {
        let threads = source.compiler_threads(known.key);
        if threads == known.compiler_threads {
            return Ok(());
        }
        for (tid, _) in known.compiler_threads.drain(..) {
            if !threads.iter().any(|(other, _)| *other == tid) {
                self.tables.remove_compiler_thread(tid);
            }
        }
        known.compiler_threads.extend_from_slice(threads);
        threads.iter().try_for_each(|(tid, thread)| self.tables.set_compiler_thread(*tid, *thread))
    }

    fn mappings_of(&self, known: &Published) -> Vec<CodeMapping> {
        let mut mappings: Vec<CodeMapping> = Vec::with_capacity(known.code.len());
        for code in &known.code {
            let mapping = |bias, rows: Range| CodeMapping {
                start: code.start.0,
                end: code.end.0,
                bias,
                first_row: rows.first,
                row_count: rows.count,
            };
            match (code.owner, mappings.last_mut()) {
                // The kernel side knows the code cache better, and nothing of what
                // else a JVM may make.
                (CodeOwner::Generated, _) if known.jvm.is_some() => {}
                // Such memory grows in pieces, by thousands in some runtimes.
                (CodeOwner::Generated, Some(last)) if last.end == code.start.0 && last.row_count == 0 => {
                    last.end = code.end.0;
                }
                (CodeOwner::Generated | CodeOwner::Unreadable, _) => mappings.push(mapping(0, Range::default())),
                (CodeOwner::File(file), _) => {
                    let placed = self.files.place(file, code.start.0, code.offset);
                    mappings.push(mapping(placed.bias, placed.rows));
                }
            }
        }
        mappings.truncate(MAX_MAPPINGS_OF_PROCESS);
        mappings
    }
}

const fn file_of(code: &MappedCode) -> Option<FileKey> {
    match code.owner {
        CodeOwner::File(file) => Some(file),
        _ => None,
    }
}

/// Whether an address of a file's code means something else now. Memory in which
/// code is made changes all the time, and whoever names it looks after that.
fn is_replaced(old: &MappedCode, new: &MappedCode) -> bool {
    let overlap = old.start < new.end && new.start < old.end;
    let same_place = old.start.0.wrapping_sub(old.offset) == new.start.0.wrapping_sub(new.offset);
    let both_generated = old.owner == CodeOwner::Generated && new.owner == CodeOwner::Generated;
    overlap && !both_generated && (old.owner != new.owner || !same_place)
}

#[cfg(test)]
#[path = "publisher_tests.rs"]
mod tests;
