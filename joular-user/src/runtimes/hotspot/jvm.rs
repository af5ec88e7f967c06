//! Holds one JVM: what the kernel side needs of it, and names for what the kernel side saw.
//!
//! Answers are kept by frame word. A compile id is given once, so its answer stays true even when
//! the code is gone. Interpreted methods are known by an address that may come to mean another
//! method when a class is unloaded: [`super::pinned`].

use std::{collections::HashMap, sync::Arc};

use joular_data::model::{
    frame::{Frame, FrameKind},
    units::Address,
};
use joular_ebpf::{
    abi::{CompilerThread, FrameRef, FrameWord, JvmUnwind, StackId},
    walk::identity::{MethodIdentity, hash_words},
};

use super::{
    JvmBuild, JvmError,
    answers::{Answers, Level},
    code_cache::{Blob, CodeCache, is_compiled},
    flags::JvmFacts,
    host_walk::Remote,
    memory::{Pages, RemoteMemory, Unreadable},
    nmethod::{LookUp, Nmethod},
    pinned::{Pinned, method_of, with_number},
    reader::{Methods, Reader, evicted},
    unwind_info::{BlobNames, BlobSurvey, Interpreter, jvm_unwind},
};

/// Methods kept with their lines.
const MAX_METHODS: usize = 4096;
/// Code of the interpreter itself: a sample of it says nothing more.
const INTERPRETER: &str = "Interpreter";
/// The stub by which C++ calls Java. It is in every stack, so it has one name whatever the version
/// calls the stubs around it.
const CALL_STUB: &str = "call stub";

/// A JVM whose layout is known.
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
    pinned: Pinned,
    leaf_look_up: LookUp,
}

impl Jvm {
    pub fn attach(memory: Box<dyn RemoteMemory + Send>, build: Arc<JvmBuild>, bias: u64) -> Result<Self, JvmError> {
        let layout = &build.layout;
        let pages = Pages::new(&*memory);
        let cache = CodeCache::read(&pages, layout, bias)?;
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
            pinned: Pinned::default(),
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

    /// Replaces the methods' addresses in a stack that has just arrived, leaf first, by numbers
    /// that stay theirs. Methods whose memory is not what it was when the stack was read have no
    /// names.
    pub fn pin(&mut self, id: StackId, generation: u8, end: u8, words: &mut [Address]) {
        let memory = Pages::new(&*self.memory);
        let mut identities = HashMap::new();
        for method in words.iter().filter_map(|word| method_of(FrameWord(word.0))) {
            identities.entry(method).or_insert_with(|| MethodIdentity::read(&Remote(&memory), &self.unwind, method));
        }
        drop(memory);
        if identities.is_empty() {
            return;
        }
        let of_word = |word: &Address| {
            let word = FrameWord(word.0);
            (word, method_of(word).and_then(|method| identities.get(&method)).copied())
        };
        let is_unchanged = hash_words(generation, words.iter().map(of_word), end) == id;
        for word in words {
            if let (was, Some(identity)) = of_word(word) {
                word.0 = if is_unchanged { self.pinned_word(was, identity) } else { with_number(was, 0) }.0;
            }
        }
    }

    /// The word for the method that is at its address now.
    fn pinned_word(&mut self, word: FrameWord, identity: MethodIdentity) -> FrameWord {
        let Some(method) = method_of(word) else { return word };
        let (memory, layout, methods) = (&*self.memory, &self.build.layout, &mut self.methods);
        let number = self
            .pinned
            .number(method, identity, || Reader { memory: &Pages::new(memory), layout, methods }.method(method).ok());
        with_number(word, number.unwrap_or(0))
    }

    /// The frames at an address of the code cache that a walk by frame pointers found, without a
    /// frame word. A return address is given minus 1.
    pub fn resolve_address(&self, address: u64) -> Vec<Frame> {
        let mut methods = Methods::new();
        let pages = Pages::new(&*self.memory);
        let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods: &mut methods };
        let levels = match self.blob_at(&pages, address) {
            Ok(Some(CodeAt::Blob(blob))) => reader.blob(blob, address),
            Ok(Some(CodeAt::Interpreter)) => Ok(vec![Level::stub(INTERPRETER)]),
            Ok(Some(CodeAt::CallStub)) => Ok(vec![Level::stub(CALL_STUB)]),
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
        levels
    }

    fn look_up_with(&self, methods: &mut Methods, word: FrameWord) -> Result<Vec<Level>, Unreadable> {
        let pages = Pages::new(&*self.memory);
        let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods };
        match word.decode() {
            FrameRef::Interpreted { method, bci } => {
                let found = self.pinned.method(method >> 3);
                Ok(found.map_or_else(evicted, |found| vec![Level::of(found, FrameKind::Interpreted, bci)]))
            }
            FrameRef::Compiling { method } => {
                let Some(found) = self.pinned.method(method >> 3) else { return Ok(evicted()) };
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
                    Some(CodeAt::Interpreter) => Ok(vec![Level::stub(INTERPRETER)]),
                    Some(CodeAt::CallStub) => Ok(vec![Level::stub(CALL_STUB)]),
                    // It was none when it was sampled: that had its compile id in its word.
                    Some(CodeAt::Blob(blob)) if is_compiled(&pages, &blob) => Ok(evicted()),
                    Some(CodeAt::Blob(blob)) => reader.blob(blob, address),
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
        // Without a method it was unloaded.
        if !is_same(nmethod.compile_id) || nmethod.method == 0 {
            return Ok(evicted());
        }
        let levels = reader.nmethod(&nmethod, pc, look_up)?;
        // It may have gone while its parts were read; then they are not its own. What
        // pages were kept from before would not show it.
        let memory = &*self.memory;
        let now = self.cache.find_blob(memory, layout, pc)?;
        let is_there = now == Some(blob) && Nmethod::read(memory, layout, blob)? == nmethod;
        Ok(if is_there { levels } else { evicted() })
    }

    fn blob_at(&self, memory: &dyn RemoteMemory, address: u64) -> Result<Option<CodeAt>, Unreadable> {
        if self.interpreter.code.contains(address) {
            return Ok(Some(CodeAt::Interpreter));
        }
        // A return address, as it is or minus 1.
        if self.call_stub_return.wrapping_sub(address) <= 1 {
            return Ok(Some(CodeAt::CallStub));
        }
        Ok(self.cache.find_blob(memory, &self.build.layout, address)?.map(CodeAt::Blob))
    }

    /// See [`super::threads`].
    pub fn compiler_threads(&self, wanted: &[u32]) -> Vec<(u32, CompilerThread)> {
        let layout = self.build.layout.threads.filter(|_| !wanted.is_empty());
        layout.map_or_else(Vec::new, |layout| layout.compilers(&Pages::new(&*self.memory), self.bias, wanted))
    }

    /// Returns whether numbers of methods were dropped, so that all stacks must be sent again.
    pub fn end_window(&mut self) -> bool {
        self.answers.end_window();
        if !self.survey.has_nmethod {
            self.learn_names();
        }
        let was_full = self.pinned.bound();
        if was_full {
            self.methods.clear();
            self.answers.forget_interpreted();
        }
        was_full
    }

    /// Learns names of blobs. A JVM that has compiled nothing yet does not show how compiled code
    /// is named.
    fn learn_names(&mut self) {
        let layout = &self.build.layout;
        let expected = BlobNames::of_file(&self.build.libjvm, self.bias);
        self.survey = BlobSurvey::take(&Pages::new(&*self.memory), layout, &self.cache, expected);
        self.unwind = jvm_unwind(layout, &self.cache, &self.interpreter, &self.survey, self.call_stub_return);
    }
}

enum CodeAt {
    Interpreter,
    CallStub,
    Blob(Blob),
}

#[cfg(test)]
mod survey {
    use super::{Blob, FrameWord, Jvm, MethodIdentity, Nmethod, Pages, Remote, method_of};
    use crate::runtimes::hotspot::code_cache::blob_name;

    /// All that lives, for tests that ask for each.
    impl Jvm {
        pub fn all_compiled(&self) -> Vec<Blob> {
            let mut blobs = Vec::new();
            let pages = Pages::new(&*self.memory);
            self.cache.walk(&pages, &self.build.layout, |blob| {
                if blob_name(&pages, &blob).is_some_and(|name| name.ends_with("nmethod")) {
                    blobs.push(blob);
                }
                true
            });
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

        /// A word for the method at an address, as of a stack that has just arrived.
        pub fn pinned(&mut self, word: FrameWord) -> FrameWord {
            let identity = self.identity(method_of(word).unwrap_or_default());
            self.pinned_word(word, identity)
        }

        pub fn identity(&self, method: u64) -> MethodIdentity {
            MethodIdentity::read(&Remote(&*self.memory), &self.unwind, method)
        }

        /// `Method*`s that have code.
        pub fn all_methods(&self) -> Vec<u64> {
            self.all_nmethods().iter().map(|nmethod| nmethod.method).collect()
        }
    }
}
