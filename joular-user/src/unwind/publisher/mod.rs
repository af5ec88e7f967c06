//! Keeps the kernel's tables true to the processes that are sampled.
//!
//! A process is published in steps, so that its stacks are walked by what is known already: its
//! mappings first, by which frame pointers are followed through libraries; rows as its files are
//! read; the JVM when its layout is known. Each step writes a new range of mappings and then
//! switches the process over to it, so no program ever sees half of one. The ranges left behind
//! rest for a while.
//!
//! Mappings change while a process runs, and nothing announces it. But a walk that ends at an
//! address in no mapping makes the symbolizer look again, and its count of changes shows it.

mod writing;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    thread,
    time::{Duration, Instant},
};

use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CompilerThread, JvmUnwind, MAX_COMPILER_THREADS_OF_JVM, MAX_JVMS, MAX_MAPPINGS, MAX_PROCESSES};
use writing::Written;

use super::{
    changes::{any_replaced, table_of},
    code::TableKey,
    files::Files,
    interfaces::{ProcessSource, WalkTables},
    tables::Ranges,
};
use crate::{
    bounds::Bound,
    symbols::{
        ProcessKey,
        mapped_code::{CodeOwner, MappedCode},
    },
};

/// Mappings of code of one process: a few dozen are usual.
const MAX_MAPPINGS_OF_PROCESS: usize = 4096;
pub static MAPPINGS: Bound = Bound::new(
    "code_mappings_not_walked",
    MAX_MAPPINGS_OF_PROCESS as u64,
    "mappings of code of a process by which stacks are walked",
    "stacks end in the rest; what a process has generated is left out first",
);
pub static COMPILERS: Bound = Bound::new(
    "compiler_threads_not_watched",
    MAX_COMPILER_THREADS_OF_JVM as u64,
    "compiler threads of a JVM",
    "what the rest compiles is not known",
);
/// While nothing else is to be done than to wait.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Processes looked at in one poll: a window must be able to end.
const MAX_UPDATES: usize = 256;

#[derive(Debug)]
struct Published {
    key: ProcessKey,
    code_version: Option<u64>,
    code: Vec<MappedCode>,
    /// Those of the code, and of what is written.
    files: HashSet<TableKey>,
    jvm: Option<JvmUnwind>,
    written: Option<Written>,
    /// Addresses mean something else than what is written says.
    is_replaced: bool,
    compiler_threads: Vec<(Tid, CompilerThread)>,
    names_version: u64,
    /// Its own: only the low byte is hashed, and others' changes would use that up.
    generation: u32,
    /// In which window.
    last_sampled: u64,
}

impl Published {
    fn is_outdated(&self, source: &impl ProcessSource) -> bool {
        self.code_version != source.code_version(self.key)
            || self.names_version != source.names_version(self.key)
            || self.jvm.as_ref() != source.jvm_unwind(self.key)
            || self.compiler_threads != compiler_threads(source, self.key)
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
    /// To be tried again in the next window.
    unfinished: BTreeSet<Pid>,
    /// JVMs whose layout is not known yet.
    awaited: BTreeSet<Pid>,
    /// That the process found last began with.
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
            unfinished: BTreeSet::new(),
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
            return self.notice(
                "processes",
                "there are more processes than unwind tables can hold: some are walked by frame pointers",
            );
        }
        let generation = self.first_generation();
        let published = Published {
            key: process,
            code_version: None,
            code: Vec::new(),
            files: HashSet::new(),
            jvm: None,
            written: None,
            is_replaced: false,
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

    /// The process has ended, runs another program, or is not a target any more.
    pub fn ended(&mut self, pid: Pid) {
        self.outdated.remove(&pid);
        self.unfinished.remove(&pid);
        self.awaited.remove(&pid);
        let Some(mut known) = self.processes.remove(&pid) else { return };
        self.unpublish(&mut known);
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
        self.outdated.append(&mut self.unfinished);
    }

    /// Whether the kernel has everything that could be found out.
    fn is_settled(&self) -> bool {
        self.outdated.is_empty() && self.files.are_settled()
    }

    /// Whether something is under way that only a poll goes on with.
    pub fn is_waiting(&self) -> bool {
        !self.is_settled() || !self.awaited.is_empty()
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

    /// Where a process begins to count. Processes in a row differ, such as a program
    /// and the next one with its number; if two have the same, only their words tell
    /// their stacks apart.
    const fn first_generation(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1);
        self.generation
    }

    fn notice(&mut self, kind: &'static str, text: &str) {
        if self.noticed.insert(kind) {
            self.notices.push(text.to_owned());
        }
    }

    /// Brings one process up to date, as far as possible.
    fn update(&mut self, pid: Pid, source: &mut impl ProcessSource) {
        let Some(mut known) = self.processes.remove(&pid) else { return };
        self.learn(&mut known, source);
        let outcome = self.publish(&mut known);
        if !matches!(outcome, Ok(true)) {
            self.unfinished.insert(pid);
        }
        if let Err(error) = outcome {
            self.notice("kernel", &format!("process {pid}: {error}: some stacks are walked by frame pointers"));
        }
        self.processes.insert(pid, known);
    }

    fn learn(&mut self, known: &mut Published, source: &mut impl ProcessSource) {
        let version = source.code_version(known.key);
        if version != known.code_version {
            known.code_version = version;
            self.take_code(known, source.mapped_code(known.key));
        }
        if known.names_version != source.names_version(known.key) {
            known.names_version = source.names_version(known.key);
            known.generation = known.generation.wrapping_add(1);
        }
        self.take_jvm(known, source);
        self.take_compiler_threads(known, source);
    }

    fn take_code(&mut self, known: &mut Published, mut code: Vec<MappedCode>) {
        if code.len() > MAX_MAPPINGS_OF_PROCESS {
            MAPPINGS.cut_of(known.key.0, (code.len() - MAX_MAPPINGS_OF_PROCESS) as u64);
            keep_files_first(&mut code);
        }
        let files: HashSet<TableKey> = code.iter().filter_map(table_of).collect();
        files.difference(&known.files).for_each(|file| self.files.acquire(*file));
        // Those that are gone are let go of when the kernel no longer has them.
        known.files.extend(files);
        if any_replaced(&known.code, &code) {
            known.is_replaced = true;
            known.generation = known.generation.wrapping_add(1);
        }
        known.code = code;
    }

    fn take_jvm(&mut self, known: &mut Published, source: &impl ProcessSource) {
        let pid = known.key.0;
        if let Some(jvm) = source.jvm_unwind(known.key) {
            self.awaited.remove(&pid);
            known.jvm = Some(*jvm);
        } else if known.jvm.is_none() && source.is_jvm(known.key) {
            self.awaited.insert(pid);
        }
    }

    fn take_compiler_threads(&mut self, known: &mut Published, source: &impl ProcessSource) {
        let threads = compiler_threads(source, known.key);
        if threads == known.compiler_threads {
            return;
        }
        let all = source.compiler_threads(known.key).len();
        COMPILERS.cut_of(known.key.0, all.saturating_sub(threads.len()) as u64);
        for (tid, _) in known.compiler_threads.drain(..) {
            if !threads.iter().any(|(other, _)| *other == tid) {
                self.tables.remove_compiler_thread(tid);
            }
        }
        known.compiler_threads.extend_from_slice(threads);
        for (tid, thread) in threads {
            if let Err(error) = self.tables.set_compiler_thread(*tid, *thread) {
                self.notice("compilers", &format!("{error}: what some threads compile is not known"));
            }
        }
    }
}

/// Leaves out what is too much: of generated code nothing is known anyway.
fn keep_files_first(code: &mut Vec<MappedCode>) {
    let is_generated = |code: &MappedCode| code.owner == CodeOwner::Generated;
    let known = code.iter().filter(|code| !is_generated(code)).count();
    let mut room = MAX_MAPPINGS_OF_PROCESS.saturating_sub(known);
    code.retain(|code| {
        let is_kept = !is_generated(code) || room > 0;
        room -= usize::from(is_generated(code) && is_kept);
        is_kept
    });
    code.truncate(MAX_MAPPINGS_OF_PROCESS);
}

fn compiler_threads(source: &impl ProcessSource, process: ProcessKey) -> &[(Tid, CompilerThread)] {
    let threads = source.compiler_threads(process);
    threads.get(..MAX_COMPILER_THREADS_OF_JVM).unwrap_or(threads)
}

#[cfg(test)]
mod tests;
