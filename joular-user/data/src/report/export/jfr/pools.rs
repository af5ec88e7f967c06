//! Keeps what events refer to: threads, stacks, methods, classes. A chunk has each that its events name, once.
//!
//! A constant has the same number in every chunk, because readers may keep what they know of a number from the chunk
//! before.

use std::collections::{HashMap, HashSet};

use super::{
    constants::{FRAME_TYPES, RUNNABLE, frame_type, id},
    names,
    values::Values,
};
use crate::{
    attribution::window_report::Category,
    model::{
        frame::{Frame, Marker},
        target_text::TargetText,
    },
    report::{
        export::dictionary::Strings,
        profile::{Catalog, FrameIndex, PathIndex, Paths, ProcessIndex, ThreadIndex},
    },
};

/// Markers of stacks that lack a part.
const INCOMPLETE: [Marker; 6] =
    [Marker::Truncated, Marker::Broken, Marker::Frozen, Marker::EndingThread, Marker::LostStack, Marker::NoStack];

/// The constants of one type in a chunk.
#[derive(Debug, Default)]
struct Pool {
    of: u64,
    numbers: HashSet<u64>,
    entries: Values,
}

impl Pool {
    fn new(of: u64) -> Self {
        Self { of, ..Self::default() }
    }

    /// Whether the chunk lacks it. If so, [`Self::push`] must follow.
    fn is_new(&mut self, number: u64) -> bool {
        self.numbers.insert(number)
    }

    fn push(&mut self, number: u64, constant: &Values) {
        self.entries.natural(number);
        self.entries.append(constant);
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.entries.clear();
    }
}

/// All constants of a chunk.
pub(super) struct Pools {
    symbols: Pool,
    packages: Pool,
    classes: Pool,
    methods: Pool,
    stacks: Pool,
    groups: Pool,
    threads: Pool,
    /// What a symbol's number is, less 1. It stays from chunk to chunk.
    texts: Strings,
    /// By class, name and descriptor. They stay as well.
    method_numbers: HashMap<[u64; 3], u64>,
    /// Methods of frames that are in the chunk.
    frames: HashMap<FrameIndex, u64>,
    /// The latest name that each thread had.
    thread_names: Vec<TargetText>,
}

impl Pools {
    /// `catalog` has seen all rows, so it knows the latest name of each thread.
    pub(super) fn new(catalog: &Catalog) -> Self {
        Self {
            symbols: Pool::new(id::SYMBOL),
            packages: Pool::new(id::PACKAGE),
            classes: Pool::new(id::CLASS),
            methods: Pool::new(id::METHOD),
            stacks: Pool::new(id::STACK_TRACE),
            groups: Pool::new(id::THREAD_GROUP),
            threads: Pool::new(id::THREAD),
            texts: Strings::new(),
            method_numbers: HashMap::new(),
            frames: HashMap::new(),
            thread_names: catalog.threads.iter().map(|thread| thread.name.clone()).collect(),
        }
    }

    /// The number of a thread. Its group is its process, so threads of several processes stay apart.
    pub(super) fn thread(&mut self, catalog: &Catalog, index: ThreadIndex) -> u64 {
        let number = u64::from(index.0) + 1;
        if self.threads.is_new(number) {
            let thread = catalog.thread(index);
            let group = self.group(catalog, thread.process);
            let name = self.thread_names.get(index.index()).unwrap_or(&thread.name).raw();
            let (tid, is_java) = (u64::from(thread.tid.0), thread.category == Category::Java);
            let mut entry = Values::default();
            entry.text(Some(name));
            entry.natural(tid);
            // Readers take a thread without a Java id for one of native code. The JVM's own numbers are not known.
            entry.text(is_java.then_some(name));
            entry.natural(if is_java { tid } else { 0 });
            entry.natural(group);
            self.threads.push(number, &entry);
        }
        number
    }

    fn group(&mut self, catalog: &Catalog, index: ProcessIndex) -> u64 {
        let number = u64::from(index.0) + 1;
        if self.groups.is_new(number) {
            let mut entry = Values::default();
            entry.natural(0);
            entry.text(Some(&process_title(catalog, index)));
            self.groups.push(number, &entry);
        }
        number
    }

    /// The number of a call path.
    pub(super) fn stack(&mut self, paths: &Paths, path: PathIndex) -> u64 {
        let number = u64::from(path.0) + 1;
        if self.stacks.is_new(number) {
            let is_part = |frame: &Frame| INCOMPLETE.iter().any(|marker| frame.is_marker(*marker));
            let frames = paths.path(path);
            let mut entry = Values::default();
            entry.flag(paths.frames_of(path).any(is_part));
            entry.natural(frames.len() as u64);
            for index in frames.iter().rev() {
                let frame = paths.frame(*index);
                entry.natural(self.method(*index, frame));
                entry.known(frame.line);
                entry.known(None);
                entry.natural(frame_type(frame.kind));
            }
            self.stacks.push(number, &entry);
        }
        number
    }

    /// Code without a class has one without a name, as async-profiler writes it.
    fn method(&mut self, index: FrameIndex, frame: &Frame) -> u64 {
        if let Some(number) = self.frames.get(&index) {
            return *number;
        }
        let signature = frame.signature.as_ref().map_or("", TargetText::raw);
        let key = [
            self.class(frame.class.as_ref().map_or("", TargetText::raw)),
            self.symbol(frame.name.raw()),
            self.symbol(names::descriptor(signature)),
        ];
        let next = self.method_numbers.len() as u64 + 1;
        let number = *self.method_numbers.entry(key).or_insert(next);
        if self.methods.is_new(number) {
            let mut entry = Values::default();
            key.into_iter().for_each(|part| entry.natural(part));
            entry.natural(0);
            entry.flag(false);
            self.methods.push(number, &entry);
        }
        self.frames.insert(index, number);
        number
    }

    /// The number of a class, which is that of its name.
    pub(super) fn class(&mut self, name: &str) -> u64 {
        let name = names::class(name);
        let number = self.symbol(&name);
        if self.classes.is_new(number) {
            let package = names::package(&name).map_or(0, |package| self.package(package));
            let mut entry = Values::default();
            [0, number, package, 0].into_iter().for_each(|part| entry.natural(part));
            entry.flag(false);
            self.classes.push(number, &entry);
        }
        number
    }

    /// The number of a package, which is that of its name.
    fn package(&mut self, name: &str) -> u64 {
        let number = self.symbol(name);
        if self.packages.is_new(number) {
            let mut entry = Values::default();
            entry.natural(number);
            entry.flag(false);
            self.packages.push(number, &entry);
        }
        number
    }

    /// 0 stands for no symbol at all, so the empty one is 1.
    fn symbol(&mut self, text: &str) -> u64 {
        let number = u64::from(self.texts.number(text)) + 1;
        if self.symbols.is_new(number) {
            let mut entry = Values::default();
            entry.text(Some(text));
            self.symbols.push(number, &entry);
        }
        number
    }

    /// How many bytes the chunk's constants have.
    pub(super) fn size(&self) -> usize {
        self.all().into_iter().map(|pool| pool.entries.bytes().len()).sum()
    }

    /// Writes how many pools there are, and then each that is not empty.
    pub(super) fn write(&self, values: &mut Values) {
        let fixed = [(id::FRAME_TYPE, &FRAME_TYPES[..]), (id::THREAD_STATE, &[(RUNNABLE, "STATE_RUNNABLE")])];
        let filled: Vec<&Pool> = self.all().into_iter().filter(|pool| !pool.numbers.is_empty()).collect();
        values.natural((fixed.len() + filled.len()) as u64);
        for (of, constants) in fixed {
            values.natural(of);
            values.natural(constants.len() as u64);
            for (number, text) in constants {
                values.natural(*number);
                values.text(Some(text));
            }
        }
        for pool in filled {
            values.natural(pool.of);
            values.natural(pool.numbers.len() as u64);
            values.append(&pool.entries);
        }
    }

    const fn all(&self) -> [&Pool; 7] {
        [&self.symbols, &self.packages, &self.classes, &self.methods, &self.stacks, &self.groups, &self.threads]
    }

    /// Begins another chunk.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        let Self { symbols, packages, classes, methods, stacks, groups, threads, .. } = self;
        [symbols, packages, classes, methods, stacks, groups, threads].into_iter().for_each(Pool::clear);
    }
}

/// What a process is called, and what tells it from others of that name.
pub(super) fn process_title(catalog: &Catalog, index: ProcessIndex) -> String {
    let process = catalog.process(index);
    let host = catalog.run_of(process).info.host.raw();
    format!("{} ({}) on {host}", process.title().raw(), process.pid.0)
}
