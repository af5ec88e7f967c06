//! Holds one JVM: what the kernel side needs of it, and names for what the kernel side saw.
//!
//! Answers are kept by frame word. A compile id is given once, so its answer stays true even when
//! the code is gone. Interpreted methods are known by an address that may come to mean another
//! method when a class is unloaded: [`super::pinned`].

use std::{collections::HashMap, sync::Arc};

use joular_data::model::frame::{Frame, FrameKind};
use joular_ebpf::{
    abi::{CompilerThread, FrameRef, FrameWord, JvmUnwind},
    walk::identity::MethodIdentity,
};

use super::{
    JvmBuild, JvmError,
    answers::{Answers, Level},
    code_cache::{Blob, CodeCache, is_compiled},
    continuations::continuation_layout,
    flags::JvmFacts,
    host_walk::Remote,
    leaves::{Leaves, is_same_id},
    memory::{Pages, RemoteMemory, Unreadable},
    nmethod::{LookUp, Nmethod},
    pinned::{ArrivedStack, Pinned},
    reader::{Methods, Reader, evicted, levels},
    stub_code::StubCode,
    stubs::{StubPlaces, Stubs},
    unwind_info::{BlobNames, BlobSurvey, Interpreter, jvm_unwind},
};

use crate::runtimes::{CodeId, OwnCode};

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
    leaves: Leaves,
    stubs: Stubs,
    stub_code: StubCode,
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
        let mut unwind = jvm_unwind(layout, &cache, &interpreter, &survey, call_stub_return);
        unwind.continuation = continuation_layout(&pages, layout, bias);
        let facts = JvmFacts::read(&pages, layout, bias);
        drop(pages);
        let stubs = Stubs::new(StubPlaces::new(&build.libjvm, bias));
        let is_all_described = facts.is_all_described;
        let mut jvm = Self {
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
            leaves: Leaves::default(),
            stubs,
            stub_code: StubCode::default(),
            pinned: Pinned::default(),
            leaf_look_up: if is_all_described { LookUp::AtOrAbove } else { LookUp::Around },
        };
        jvm.find_stubs();
        Ok(jvm)
    }

    /// Looks whether the JVM has made more stubs.
    pub fn find_stubs(&mut self) {
        let Self { memory, build, cache, survey, .. } = self;
        let pages = Pages::new(&**memory);
        if let Some(mut stubs) = self.stubs.news(&pages) {
            stubs.retain(|stub| !survey.continuation_stubs.contains(stub.begin));
            let of_c1 = self.stubs.c1_blobs(&pages);
            self.stub_code.update(&pages, &build.layout, cache, build.number, &stubs, of_c1);
        }
    }

    pub const fn stub_code(&self) -> &StubCode {
        &self.stub_code
    }

    pub fn read_stub_code(&self, id: CodeId) -> Option<OwnCode> {
        self.stub_code.read(&*self.memory, id)
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

    /// The frames that a word stands for, if that needs no memory.
    pub fn known(&mut self, word: FrameWord) -> Option<Vec<Frame>> {
        if !word.is_of_a_jvm() {
            return Some(Vec::new());
        }
        Some(self.known_levels(word)?.iter().map(Level::frame).collect())
    }

    pub fn knows(&mut self, word: FrameWord) -> bool {
        !word.is_of_a_jvm() || self.known_levels(word).is_some()
    }

    fn known_levels(&mut self, word: FrameWord) -> Option<Arc<[Level]>> {
        if let Some(known) = self.answers.get(word) {
            return Some(known);
        }
        let levels = match word.decode() {
            FrameRef::CompiledAt { compile_id, offset } => {
                self.leaves.known_levels(compile_id, self.cache.low().wrapping_add(u64::from(offset)))?
            }
            _ => self.without_memory(word)?,
        };
        self.answers.put(word, levels);
        self.answers.get(word)
    }

    /// What a word stands for that is the same as long as the JVM runs, or was read when its stack arrived.
    fn without_memory(&self, word: FrameWord) -> Option<Vec<Level>> {
        match word.decode() {
            FrameRef::Interpreted { method, bci } => {
                let found = self.pinned.method(method >> 3);
                Some(found.map_or_else(evicted, |found| vec![Level::of(found, FrameKind::Interpreted, bci)]))
            }
            FrameRef::Compiling { method } => {
                let found = self.pinned.method(method >> 3);
                Some(found.map_or_else(evicted, |found| vec![Level::compiling(found)]))
            }
            FrameRef::Blob { offset } => match self.fixed_at(self.cache.low().wrapping_add(u64::from(offset)))? {
                CodeAt::Interpreter => Some(vec![Level::stub(INTERPRETER)]),
                CodeAt::CallStub => Some(vec![Level::stub(CALL_STUB)]),
                CodeAt::Blob(_) => None,
            },
            FrameRef::Native { .. } => Some(Vec::new()),
            FrameRef::CompiledAt { .. } | FrameRef::CompiledCall { .. } | FrameRef::Class { .. } => None,
        }
    }

    /// The frames that words stand for, outermost first; none for native code.
    pub fn resolve_all(&mut self, words: &[FrameWord]) -> Vec<Vec<Frame>> {
        self.learn(words);
        let unread = || evicted().iter().map(Level::frame).collect();
        words.iter().map(|&word| self.known(word).unwrap_or_else(unread)).collect()
    }

    /// Reads what words stand for that are not known yet, as far as it can be read. What they have in common is
    /// read once.
    pub fn learn(&mut self, words: &[FrameWord]) {
        if self.methods.len() > MAX_METHODS {
            self.methods.clear();
        }
        let (mut methods, mut leaves) = (std::mem::take(&mut self.methods), std::mem::take(&mut self.leaves));
        let (mut stubs, mut answers) = (std::mem::take(&mut self.stubs), std::mem::take(&mut self.answers));
        let pages = Pages::unchecked(&*self.memory);
        let mut read = Vec::new();
        for &word in words {
            if !word.is_of_a_jvm() || answers.get(word).is_some() {
                continue;
            }
            let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods: &mut methods };
            // What could not be read is read when it is asked for again.
            if let Ok((levels, nmethod)) = self.look_up(&mut reader, &mut leaves, &mut stubs, word) {
                read.push((word, levels, nmethod));
            }
        }
        drop(pages);
        // One may have gone while its parts were read; then they are not its own. What pages were kept
        // from before would not show it.
        let now = Pages::unchecked(&*self.memory);
        let mut is_still_there = |nmethod: Nmethod| {
            let is_there = nmethod.is_there(&now, &self.build.layout, &self.cache).ok();
            if is_there != Some(true) {
                drop(leaves.forget(nmethod.compile_id));
            }
            is_there
        };
        read.retain_mut(|(_, levels, nmethod)| {
            let is_there = nmethod.take().map_or(Some(true), &mut is_still_there);
            if is_there == Some(false) {
                *levels = evicted();
            }
            is_there.is_some()
        });
        drop(now);
        if self.memory.is_there() {
            read.into_iter().for_each(|(word, levels, _)| answers.put(word, levels));
        } else {
            (methods, leaves) = Default::default();
        }
        (self.methods, self.leaves, self.stubs, self.answers) = (methods, leaves, stubs, answers);
    }

    /// Does what [`Self::pin`] does, if that needs no memory; returns whether it has.
    pub fn pin_known(&self, stack: ArrivedStack<'_>) -> bool {
        stack.pin_known(&self.pinned)
    }

    /// Replaces the methods' addresses in stacks that have just arrived by numbers that stay theirs.
    /// What the stacks have in common is read once.
    pub fn pin<'s>(&mut self, stacks: impl IntoIterator<Item = ArrivedStack<'s>>) {
        let Self { memory, build, unwind, methods, pinned, .. } = self;
        let pages = Pages::new(&**memory);
        let mut reader = Reader { memory: &pages, layout: &build.layout, methods };
        let mut identities = HashMap::new();
        for stack in stacks {
            for method in stack.methods() {
                identities.entry(method).or_insert_with(|| MethodIdentity::read(&Remote(&pages), unwind, method));
            }
            stack.pin(&identities, |method, identity| {
                pinned.number(method, identity, || reader.method(method).ok()).unwrap_or(0)
            });
        }
    }

    /// The frames at an address of the code cache that a walk by frame pointers found, without a
    /// frame word. A return address is given minus 1.
    pub fn resolve_address(&mut self, address: u64) -> Vec<Frame> {
        let mut methods = Methods::new();
        let pages = Pages::new(&*self.memory);
        let mut reader = Reader { memory: &pages, layout: &self.build.layout, methods: &mut methods };
        let levels = match self.blob_at(&pages, address) {
            Ok(Some(CodeAt::Blob(blob))) => reader.blob(blob, address, &mut self.stubs),
            Ok(Some(CodeAt::Interpreter)) => Ok(vec![Level::stub(INTERPRETER)]),
            Ok(Some(CodeAt::CallStub)) => Ok(vec![Level::stub(CALL_STUB)]),
            _ => return Vec::new(),
        };
        levels.unwrap_or_default().iter().map(Level::frame).collect()
    }

    fn blob_at(&self, memory: &dyn RemoteMemory, address: u64) -> Result<Option<CodeAt>, Unreadable> {
        if let fixed @ Some(_) = self.fixed_at(address) {
            return Ok(fixed);
        }
        Ok(self.cache.find_blob(memory, &self.build.layout, address)?.map(CodeAt::Blob))
    }

    /// What is at an address for as long as the JVM runs.
    const fn fixed_at(&self, address: u64) -> Option<CodeAt> {
        if self.interpreter.code.contains(address) {
            return Some(CodeAt::Interpreter);
        }
        // A return address, as it is or minus 1.
        if self.call_stub_return.wrapping_sub(address) <= 1 {
            return Some(CodeAt::CallStub);
        }
        None
    }

    /// See [`super::threads`].
    pub fn compiler_threads(&self, wanted: &[u32]) -> Vec<(u32, CompilerThread)> {
        let layout = self.build.layout.threads.filter(|_| !wanted.is_empty());
        layout.map_or_else(Vec::new, |layout| layout.compilers(&Pages::new(&*self.memory), self.bias, wanted))
    }

    /// What it is a process of, its memory, and where its library is in it.
    pub fn parts(&self) -> (&JvmBuild, &dyn RemoteMemory, u64) {
        (&self.build, &*self.memory, self.bias)
    }

    /// Returns whether methods were forgotten, so that all stacks must be sent again.
    pub fn end_window(&mut self) -> bool {
        self.answers.end_window();
        self.leaves.end_window();
        let was_full = self.pinned.end_window();
        if was_full {
            self.methods.clear();
        }
        was_full
    }

    /// Learns names of blobs. A JVM that has compiled nothing yet does not show how compiled code
    /// is named.
    pub fn learn_names(&mut self) {
        if self.survey.has_nmethod {
            return;
        }
        let layout = &self.build.layout;
        let expected = BlobNames::of_file(&self.build.libjvm, self.bias);
        self.survey = BlobSurvey::take(&Pages::new(&*self.memory), layout, &self.cache, expected);
        self.unwind = jvm_unwind(layout, &self.cache, &self.interpreter, &self.survey, self.call_stub_return);
        self.unwind.continuation = continuation_layout(&Pages::new(&*self.memory), layout, self.bias);
    }
}

enum CodeAt {
    Interpreter,
    CallStub,
    Blob(Blob),
}

mod look_up;
#[cfg(test)]
#[path = "jvm_survey.rs"]
mod survey;
