//! One JVM: what the kernel side needs of it, and names for what the kernel side
//! saw.
//!
//! Answers are kept by frame word: a compile id is given once, so what it said stays
//! true, even when the code is gone. Interpreted methods are known by an address
//! that may come to mean another method when a class is unloaded; those that were
//! seen are looked at again, some in each window ([`Jvm::revalidate`]).

use std::{collections::HashMap, sync::Arc};

use joular_ebpf::abi::{CompilerThread, FrameRef, FrameWord, JvmUnwind};

use super::{
    JvmBuild, JvmError,
    answers::{Answers, Level},
    code_cache::{Blob, CodeCache, heaps},
    flags::JvmFacts,
    memory::{Pages, RemoteMemory, Unreadable},
    method::Identity,
    nmethod::{LookUp, Nmethod},
    reader::{Methods, Reader, evicted},
    unwind_info::{BlobNames, BlobSurvey, Interpreter, jvm_unwind},
};
use crate::stacks::{Frame, FrameKind};

/// Methods kept with their lines.
const MAX_METHODS: usize = 4096;
/// Interpreted methods that are remembered, and looked at again, in a window.
const MAX_SEEN: usize = 16_384;
const CHECKED_PER_WINDOW: usize = 128;
/// Code of the interpreter itself: a sample of it says nothing more.
const INTERPRETER: &str = "Interpreter";
/// By way of which C++ calls Java. It stands in every stack, so it has one name
/// whatever the version calls the stubs that it is among.
const CALL_STUB: &str = "call stub";

/// See the module's head.
#[derive(Debug)]
pub struct Jvm {
    memory: Box<dyn RemoteMemory + Send>,
    build: Arc<JvmBuild>,
    bias: u64,
    cache: CodeCache,
    interpreter: Interpreter,
    call_stub_return: u64,
    survey: BlobSurvey,
    unwind: JvmUnwind,
    facts: JvmFacts,
    methods: Methods,
    answers: Answers,
    /// Interpreted methods, in the order in which they are looked at again.
    seen: Vec<(u64, Identity)>,
    seen_index: HashMap<u64, usize>,
    next_check: usize,
    leaf_look_up: LookUp,
}

impl Jvm {
    pub fn attach(memory: Box<dyn RemoteMemory + Send>, build: Arc<JvmBuild>, bias: u64) -> Result<Self, JvmError> {
        let layout = &build.layout;
        let pages = Pages::new(&*memory);
        let cache = CodeCache { heaps: heaps(&pages, layout, bias)? };
        let interpreter = Interpreter::read(&pages, layout, bias)?;
        let call_stub_return = pages.u64(bias.wrapping_add(layout.statics.call_stub_return))?;
        if cache.heaps.is_empty() || interpreter.code.start == 0 || call_stub_return == 0 {
            return Err(JvmError::Starting);
        }
        let survey = BlobSurvey::take(&pages, layout, &cache, BlobNames::of_file(&build.libjvm, bias));
        let unwind = jvm_unwind(layout, &cache, &interpreter, &survey, call_stub_return);
        let facts = JvmFacts::read(&pages, layout, bias);
        drop(pages);
        Ok(Self {
            memory,
            build,
            bias,
            cache,
            interpreter,
            call_stub_return,
            survey,
            unwind,
            facts,
            methods: Methods::new(),
            answers: Answers::default(),
            seen: Vec::new(),
            seen_index: HashMap::new(),
            next_check: 0,
            leaf_look_up: LookUp::default(),
        })
    }

    /// For comparisons: how interrupted code is looked up.
    pub fn set_leaf_look_up(&mut self, look_up: LookUp) {
        self.leaf_look_up = look_up;
        self.answers = Answers::default();
    }

    pub const fn unwind_info(&self) -> &JvmUnwind {
        &self.unwind
    }

    pub const fn facts(&self) -> &JvmFacts {
        &self.facts
    }

    /// Whether an address is in its code cache.
    pub fn has_code(&self, address: u64) -> bool {
        self.cache.heaps.iter().any(|heap| heap.memory.contains(address))
    }

    /// The frames that a word stands for, outermost first; none for native code.
    pub fn resolve(&mut self, word: FrameWord) -> Vec<Frame> {
        if !word.is_of_a_jvm() {
            return Vec::new();
        }
        if let Some(levels) = self.answers.get(word) {
            return levels.iter().map(Level::frame).collect();
        }
        let levels = self.look_up(word).unwrap_or_else(|_| evicted());
        let frames = levels.iter().map(Level::frame).collect();
        self.answers.put(word, levels);
        frames
    }

    /// The frames at an address of the code cache of which only the address is known,
    /// as a walk by frame pointers sees it. A return address is given minus 1.
    pub fn resolve_address(&self, address: u64) -> Vec<Frame> {
        let mut methods = Methods::new();
        let pages = Pages::new(&*self.memory);
        let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods: &mut methods };
        let levels = match self.blob_at(&pages, address) {
            Ok(Some(Place::Blob(blob))) => reader.blob(blob, address),
            Ok(Some(Place::Interpreter)) => Ok(vec![Level::stub(INTERPRETER)]),
            Ok(Some(Place::CallStub)) => Ok(vec![Level::stub(CALL_STUB)]),
            _ => return Vec::new(),
        };
        levels.unwrap_or_default().iter().map(Level::frame).collect()
    }

    fn look_up(&mut self, word: FrameWord) -> Result<Vec<Level>, Unreadable> {
        if self.methods.len() > MAX_METHODS {
            self.methods.clear();
        }
        let mut methods = std::mem::take(&mut self.methods);
        let levels = self.look_up_with(&mut methods, word);
        self.methods = methods;
        if let FrameRef::Interpreted { method, .. } = word.decode()
            && let Some(identity) = self.methods.get(&method).map(|found| found.identity)
        {
            self.note_seen(method, identity);
        }
        levels
    }

    fn look_up_with(&self, methods: &mut Methods, word: FrameWord) -> Result<Vec<Level>, Unreadable> {
        let pages = Pages::new(&*self.memory);
        let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods };
        match word.decode() {
            FrameRef::Interpreted { method, bci } => {
                let found = reader.method(method)?;
                Ok(vec![Level::of(&found, FrameKind::Interpreted, bci)])
            }
            FrameRef::Compiling { method } => {
                let found = reader.method(method)?;
                let class = found.names.class.as_deref().unwrap_or_default();
                let name = format!("compiling {class}.{}", found.names.name);
                Ok(vec![Level { kind: FrameKind::Vm, ..Level::stub(&name) }])
            }
            FrameRef::CompiledAt { compile_id, offset } => {
                self.compiled(&mut reader, compile_id, offset, self.leaf_look_up)
            }
            // Of a return address there is always one.
            FrameRef::CompiledCall { compile_id, offset } => {
                self.compiled(&mut reader, compile_id, offset, LookUp::AtOrAbove)
            }
            FrameRef::Blob { offset } => {
                let address = self.cache.low().wrapping_add(u64::from(offset));
                match self.blob_at(&pages, address)? {
                    Some(Place::Interpreter) => Ok(vec![Level::stub(INTERPRETER)]),
                    Some(Place::CallStub) => Ok(vec![Level::stub(CALL_STUB)]),
                    Some(Place::Blob(blob)) => reader.blob(blob, address),
                    None => Ok(evicted()),
                }
            }
            FrameRef::Native { .. } => Ok(Vec::new()),
        }
    }

    fn compiled(
        &self,
        reader: &mut Reader<'_>,
        compile_id: u32,
        offset: u32,
        look_up: LookUp,
    ) -> Result<Vec<Level>, Unreadable> {
        let pc = self.cache.low().wrapping_add(u64::from(offset));
        let layout = &self.build.layout;
        let Some(blob) = self.cache.find_blob(reader.memory, layout, pc)? else { return Ok(evicted()) };
        let nmethod = Nmethod::read(reader.memory, layout, blob)?;
        // Words have 30 bits of it.
        let is_same = |id: u32| (id ^ compile_id) & ((1 << 30) - 1) == 0;
        if !is_same(nmethod.compile_id) {
            return Ok(evicted());
        }
        let levels = reader.nmethod(&nmethod, pc, look_up)?;
        // It may have gone while its parts were read; then they are not its own.
        let now = self.memory.field(blob.start, layout.blob.compile_id)?;
        Ok(if is_same(u32::try_from(now).unwrap_or(0)) { levels } else { evicted() })
    }

    fn blob_at(&self, memory: &dyn RemoteMemory, address: u64) -> Result<Option<Place>, Unreadable> {
        if self.interpreter.code.contains(address) {
            return Ok(Some(Place::Interpreter));
        }
        // A return address, as it is or minus 1.
        if self.call_stub_return.wrapping_sub(address) <= 1 {
            return Ok(Some(Place::CallStub));
        }
        Ok(self.cache.find_blob(memory, &self.build.layout, address)?.map(Place::Blob))
    }

    /// See [`super::threads`].
    pub fn compiler_threads(&self, wanted: &[u32]) -> Vec<(u32, CompilerThread)> {
        let layout = self.build.layout.threads.filter(|_| !wanted.is_empty());
        layout.map_or_else(Vec::new, |layout| layout.compilers(&Pages::new(&*self.memory), self.bias, wanted))
    }

    fn note_seen(&mut self, method: u64, identity: Identity) {
        if let Some(&index) = self.seen_index.get(&method) {
            if let Some(entry) = self.seen.get_mut(index) {
                entry.1 = identity;
            }
        } else if self.seen.len() < MAX_SEEN {
            self.seen_index.insert(method, self.seen.len());
            self.seen.push((method, identity));
        }
    }

    /// At the end of a window. Looks again at some of the interpreted methods that
    /// were seen; says whether memory of one was used again, so that stacks that
    /// have it must be told apart from those before.
    pub fn revalidate(&mut self) -> bool {
        self.answers.end_window();
        if !self.survey.has_nmethod {
            self.learn_names();
        }
        let mut was_reused = false;
        for _ in 0..CHECKED_PER_WINDOW.min(self.seen.len()) {
            self.next_check = (self.next_check + 1) % self.seen.len().max(1);
            let Some(&(method, known)) = self.seen.get(self.next_check) else { break };
            match Identity::read(&*self.memory, &self.build.layout, method) {
                Ok(now) if now == known => {}
                // Memory that is gone will not run; what may come next is new.
                _ => was_reused = true,
            }
        }
        if was_reused {
            self.methods.clear();
            self.answers.forget_interpreted();
            self.seen.clear();
            self.seen_index.clear();
        }
        was_reused
    }

    /// A JVM that has compiled nothing yet does not show how compiled code is named.
    fn learn_names(&mut self) {
        let layout = &self.build.layout;
        let expected = BlobNames::of_file(&self.build.libjvm, self.bias);
        self.survey = BlobSurvey::take(&Pages::new(&*self.memory), layout, &self.cache, expected);
        self.unwind = jvm_unwind(layout, &self.cache, &self.interpreter, &self.survey, self.call_stub_return);
    }
}

enum Place {
    Interpreter,
    CallStub,
    Blob(Blob),
}

#[cfg(test)]
mod survey {
    use super::{Blob, CodeCache, Jvm, Nmethod, Pages};
    use crate::symbols::hotspot::code_cache::blob_name;

    /// All that lives, for tests that ask for each.
    impl Jvm {
        pub fn all_compiled(&self) -> Vec<Blob> {
            let mut blobs = Vec::new();
            let pages = Pages::new(&*self.memory);
            for heap in &self.cache.heaps {
                CodeCache::walk(&pages, &self.build.layout, heap, |blob| {
                    if blob_name(&pages, &blob).is_some_and(|name| name.ends_with("nmethod")) {
                        blobs.push(blob);
                    }
                    true
                });
            }
            blobs
        }

        fn all_nmethods(&self) -> Vec<Nmethod> {
            let pages = Pages::new(&*self.memory);
            self.all_compiled()
                .into_iter()
                .filter_map(|blob| Nmethod::read(&pages, &self.build.layout, blob).ok())
                .collect()
        }

        pub fn all_debug_information(&self) -> Vec<(u64, u64)> {
            self.all_nmethods().iter().flat_map(Nmethod::debug_information).collect()
        }

        /// Compile id and address of every place that compilers have described.
        pub fn all_described(&self) -> Vec<(u32, u64)> {
            let pages = Pages::new(&*self.memory);
            let mut places = Vec::new();
            for nmethod in self.all_nmethods() {
                let described = nmethod.described(&pages, &self.build.layout);
                places.extend(described.into_iter().map(|pc| (nmethod.compile_id, pc)));
            }
            places
        }

        /// `Method*`s that have code.
        pub fn all_methods(&self) -> Vec<u64> {
            self.all_nmethods().iter().map(|nmethod| nmethod.method).collect()
        }
    }
}
