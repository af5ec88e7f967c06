//! Makes HotSpot one of the run-time systems: its library, its builds, its processes.

use std::{collections::HashMap, fs::File, io, path::Path, sync::Arc, time::Instant};

use joular_data::{
    events::{JvmNews, RawStack, Runtime},
    model::{
        frame::Frame,
        units::{Address, Pid, Tid},
    },
};
use joular_ebpf::abi::{CompilerThread, FrameWord};

use super::{
    JvmBuild, JvmError,
    allocation::{self, KnownThreads},
    collections::{self, CollectionProbes},
    compilers::Compilers,
    flags::JvmFacts,
    java_name::jvm_frame,
    jvm::Jvm,
    libjvm::{Libjvm, LibjvmError},
    memory::ProcessMemory,
    pinned::ArrivedStack,
    thread_names::ThreadNames,
};
use crate::runtimes::{
    AllocationSites, Build, CodeId, CollectionSites, Instance, KernelTables, LoadedLibrary, NotNow, OpenError, OwnCode,
    OwnRange, RuntimeSystem,
};

const NAME: &str = "hotspot";
const LIBRARY: &str = "libjvm.so";

#[derive(Debug)]
pub struct HotSpot;

impl RuntimeSystem for HotSpot {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_library(&self, file_name: &str) -> bool {
        file_name == LIBRARY
    }

    fn is_jvm(&self) -> bool {
        true
    }

    fn is_runtime(&self, runtime: &Runtime) -> bool {
        matches!(runtime, Runtime::Jvm { .. })
    }

    fn writes_perf_map_on_request(&self) -> bool {
        true
    }

    fn perf_map_frame(&self, name: &str) -> Frame {
        jvm_frame(name)
    }

    fn read_build(&self, file: &File, library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        let memory = memory_of(library)?;
        let libjvm = Libjvm::read(file)?;
        let bias = libjvm.bias(library.mapping.start.0, library.mapping.offset);
        let build = JvmBuild::read(&memory, libjvm, bias)?;
        let collections = CollectionProbes::read(file).ok().flatten();
        Ok(Arc::new(JvmBuild { collections, ..build }))
    }
}

impl Build for JvmBuild {
    fn open(self: Arc<Self>, library: &LoadedLibrary<'_>) -> Result<Box<dyn Instance>, OpenError> {
        let bias = self.libjvm.bias(library.mapping.start.0, library.mapping.offset);
        let jvm = Jvm::attach(Box::new(memory_of(library)?), self, bias)?;
        let collections = collections::sites(&jvm);
        Ok(Box::new(JvmInstance {
            jvm,
            compilers: Compilers::new(Instant::now()),
            collections,
            threads: KnownThreads::default(),
            names: ThreadNames::default(),
        }))
    }

    fn of_copy(&self, library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        let bias = self.libjvm.bias(library.mapping.start.0, library.mapping.offset);
        let build = Self::read(&memory_of(library)?, self.libjvm.clone(), bias)?;
        Ok(Arc::new(Self { allocation: Arc::clone(&self.allocation), collections: self.collections, ..build }))
    }
}

/// A JVM with what changes while it runs.
#[derive(Debug)]
struct JvmInstance {
    jvm: Jvm,
    compilers: Compilers,
    collections: Option<CollectionSites>,
    threads: KnownThreads,
    names: ThreadNames,
}

impl Instance for JvmInstance {
    fn has_word(&self, word: FrameWord) -> bool {
        word.is_of_a_jvm()
    }

    fn news(&self) -> Option<JvmNews> {
        let JvmFacts { version, command, collector, debug_non_safepoints, .. } = self.jvm.facts().clone();
        Some(JvmNews { version, command, collector, debug_non_safepoints, unwinding: Some(NAME.into()) })
    }

    fn kernel_tables(&self) -> Option<KernelTables> {
        Some(KernelTables::Jvm(*self.jvm.unwind_info()))
    }

    fn compiler_threads(&self) -> &[(Tid, CompilerThread)] {
        self.compilers.threads()
    }

    fn allocation(&self, library: &File) -> Result<Option<AllocationSites>, NotNow> {
        allocation::sites(&self.jvm, library)
    }

    fn collections(&self) -> Option<CollectionSites> {
        self.collections
    }

    fn allocated_bytes(&mut self, ran: Option<&[u32]>) -> Option<HashMap<u32, u64>> {
        self.threads.allocated_bytes(&self.jvm, ran)
    }

    fn thread_names(&mut self, threads: &[u32]) -> Vec<(u32, String)> {
        self.names.of(&self.jvm, threads)
    }

    fn own_code(&self) -> &[OwnRange] {
        self.jvm.stub_code().ranges()
    }

    fn own_code_version(&self) -> u64 {
        self.jvm.stub_code().version
    }

    fn read_own_code(&self, id: CodeId) -> Option<OwnCode> {
        self.jvm.read_stub_code(id)
    }

    fn has_code(&self, address: Address) -> bool {
        self.jvm.has_code(address.0)
    }

    fn known_frames(&mut self, word: FrameWord) -> Option<Vec<Frame>> {
        self.jvm.known(word)
    }

    fn knows(&mut self, word: FrameWord) -> bool {
        self.jvm.knows(word)
    }

    fn frames_of_words(&mut self, words: &[FrameWord]) -> Vec<Vec<Frame>> {
        self.jvm.resolve_all(words)
    }

    fn learn(&mut self, words: &[FrameWord]) {
        self.jvm.learn(words);
    }

    fn frames_at(&mut self, address: Address) -> Vec<Frame> {
        self.jvm.resolve_address(address.0)
    }

    fn pin_known(&mut self, generation: u8, stack: &mut RawStack) -> bool {
        self.jvm.pin_known(arrived(generation, stack))
    }

    fn pin(&mut self, stacks: &mut [(u8, RawStack)]) {
        self.jvm.pin(stacks.iter_mut().map(|(generation, stack)| arrived(*generation, stack)));
    }

    fn end_window(&mut self) -> bool {
        self.jvm.end_window()
    }

    fn thread_named(&mut self, tid: Tid, name: &str, now: Instant) {
        self.compilers.named(tid, name, now);
    }

    fn next_look(&self, now: Instant) -> Option<Instant> {
        Some(self.compilers.next_look().unwrap_or(now))
    }

    fn look_again(&mut self, proc_root: &Path, pid: Pid, now: Instant) {
        self.compilers.look(&self.jvm, proc_root, pid, now);
        // Compilers make some when they start.
        self.jvm.find_stubs();
        self.jvm.learn_names();
    }
}

fn arrived(generation: u8, stack: &mut RawStack) -> ArrivedStack<'_> {
    let (id, end) = (stack.stack_id(), stack.quality.end.code());
    ArrivedStack { id, generation, end, words: &mut stack.frames }
}

#[derive(Debug, thiserror::Error)]
#[error("opening the memory of the process: {0}: run as root or grant CAP_SYS_PTRACE")]
struct MemoryError(#[from] io::Error);

fn memory_of(library: &LoadedLibrary<'_>) -> Result<ProcessMemory, OpenError> {
    ProcessMemory::open(library.proc_root, library.pid)
        .map_err(|error| OpenError::NotUnderstood(Box::new(MemoryError(error))))
}

impl From<JvmError> for OpenError {
    fn from(error: JvmError) -> Self {
        match error {
            JvmError::Starting => Self::Starting,
            error => Self::NotUnderstood(Box::new(error)),
        }
    }
}

impl From<LibjvmError> for OpenError {
    fn from(error: LibjvmError) -> Self {
        Self::NotUnderstood(Box::new(error))
    }
}
