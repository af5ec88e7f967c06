//! Supports run-time systems, which make code while they run.
//!
//! What is known of one is kept apart by what it holds for:
//!
//! - [`RuntimeSystem`]: all its versions. Recognises the library among the files
//!   that a process has mapped.
//! - [`Build`]: one version, as one library file has it.
//! - [`Instance`]: one process. Gives the kernel what it needs to walk stacks, and
//!   names for frame words and addresses.
//!
//! [`hotspot`] is understood, [`openj9`] only recognised. Another run-time system is a folder beside them
//! and an entry of [`SYSTEMS`].

use std::{collections::HashMap, error::Error, fmt::Debug, fs::File, path::Path, sync::Arc, time::Instant};

use joular_data::{
    events::{JvmNews, RawStack, Runtime},
    model::{
        frame::Frame,
        units::{Address, Pid, Tid},
    },
};
use joular_ebpf::abi::{CompilerThread, FrameWord, JvmAllocation, JvmCollections, JvmUnwind};

use crate::procs::maps::Mapping;

pub mod hotspot;
pub mod openj9;

/// Run-time systems of which a process has one at most. Where it has mapped libraries of several, the first one counts.
pub type Alternatives = &'static [&'static dyn RuntimeSystem];

/// The run-time systems that are known. A process may have one from each list: Python loads a JVM as a library.
pub type Systems = &'static [Alternatives];

/// OpenJ9 brings a libjvm.so too, so it comes first.
pub const SYSTEMS: Systems = &[&[&openj9::OpenJ9, &hotspot::system::HotSpot]];

/// Bytes kept of the name of one piece of code.
pub const MAX_NAME_BYTES: usize = 1024;

/// Whether a file of this name is the library of a run-time system.
pub fn is_library(file_name: &str) -> bool {
    SYSTEMS.iter().copied().flatten().any(|system| system.is_library(file_name))
}

/// A run-time system, whatever its version.
pub trait RuntimeSystem: Debug + Sync {
    /// Its name in the data set.
    fn name(&self) -> &'static str;

    /// Whether a file of this name holds the run-time system's own code.
    fn is_library(&self, file_name: &str) -> bool;

    /// Whether it runs Java.
    fn is_jvm(&self) -> bool;

    /// Whether this is the runtime that a process was found to have when it was first seen.
    fn is_runtime(&self, runtime: &Runtime) -> bool;

    /// Whether a process writes its perf map on request (by [`crate::procs::attach`]); otherwise a
    /// perf map is read if there is one.
    fn writes_perf_map_on_request(&self) -> bool;

    /// The frame that a name from its perf map stands for.
    fn perf_map_frame(&self, name: &str) -> Frame;

    /// Learns the version that a process has loaded. `file` is the library.
    fn read_build(&self, file: &File, library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError>;

    fn is_mapped_by(&self, mapping: &Mapping) -> bool {
        mapping.file_name().is_some_and(|name| self.is_library(name))
    }
}

/// What is the same for all processes that run one library file.
pub trait Build: Debug + Send + Sync {
    /// Opens one process that runs it.
    fn open(self: Arc<Self>, library: &LoadedLibrary<'_>) -> Result<Box<dyn Instance>, OpenError>;

    /// The build of a copy of the same file, which need not be read again: with what a process that
    /// runs the copy shows.
    fn of_copy(&self, library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError>;
}

/// The run-time system in one process. What reads the process's memory says so: it may take as long as the
/// process likes.
pub trait Instance: Debug + Send {
    /// What the run-time system says of itself; `None`: nothing.
    fn news(&self) -> Option<JvmNews> {
        None
    }

    /// What the kernel's programs need to walk through its code. Code of an instance without tables is walked by frame
    /// pointers.
    fn kernel_tables(&self) -> Option<KernelTables> {
        None
    }

    /// Its threads that compile, sorted, as far as they are known.
    fn compiler_threads(&self) -> &[(Tid, CompilerThread)] {
        &[]
    }

    /// Where its allocations can be seen; `None`: nowhere. `library` is the file that it runs. Reads that, and memory.
    fn allocation(&self, _library: &File) -> Result<Option<AllocationSites>, NotNow> {
        Ok(None)
    }

    /// Where it reports its collections; `None`: nowhere, or it is not known.
    fn collections(&self) -> Option<CollectionSites> {
        None
    }

    /// What each of its threads has allocated, in bytes, by the thread's number in the process's own namespace. Reads
    /// memory. If no new thread `ran` since the last time, what the others have may be as of then. `None`: some could
    /// not be read.
    fn allocated_bytes(&mut self, _ran: Option<&[u32]>) -> Option<HashMap<u32, u64>> {
        None
    }

    /// Names of these threads as it has them, by the thread's number in the process's own namespace. Reads memory.
    fn thread_names(&mut self, _threads: &[u32]) -> Vec<(u32, String)> {
        Vec::new()
    }

    /// Code that it wrote for itself and that can be read by its [`CodeId`], in the order of its
    /// addresses.
    fn own_code(&self) -> &[OwnRange] {
        &[]
    }

    /// Changes when [`Instance::own_code`] does.
    fn own_code_version(&self) -> u64 {
        0
    }

    /// Reads memory.
    fn read_own_code(&self, _id: CodeId) -> Option<OwnCode> {
        None
    }

    /// Whether the code at an address is its own.
    fn has_code(&self, address: Address) -> bool;

    /// Whether a word of the kernel's walk is its own.
    fn has_word(&self, word: FrameWord) -> bool;

    /// What [`Instance::frames_of_words`] says, if that is known without reading memory.
    fn known_frames(&mut self, _word: FrameWord) -> Option<Vec<Frame>> {
        None
    }

    /// Whether [`Instance::known_frames`] has an answer.
    fn knows(&mut self, word: FrameWord) -> bool {
        self.known_frames(word).is_some()
    }

    /// The frames that each of its words stands for, outermost first. Reads memory.
    fn frames_of_words(&mut self, words: &[FrameWord]) -> Vec<Vec<Frame>>;

    /// Reads what words stand for, so that [`Instance::known_frames`] has answers.
    fn learn(&mut self, words: &[FrameWord]) {
        drop(self.frames_of_words(words));
    }

    /// The frames at an address of its code, outermost first, where only the address
    /// is known. A return address is given minus 1. Reads memory.
    fn frames_at(&mut self, address: Address) -> Vec<Frame>;

    /// Does what [`Instance::pin`] does for a stack, if that needs no memory; returns whether it has.
    fn pin_known(&mut self, _generation: u8, _stack: &mut RawStack) -> bool {
        false
    }

    /// Fixes what the words of stacks mean that have just arrived, each with its generation. Reads memory.
    fn pin(&mut self, _stacks: &mut [(u8, RawStack)]) {}

    /// Ends a window in which it was asked something. Returns whether words that it has pinned mean
    /// something else from now on, so that stacks must be sent again.
    fn end_window(&mut self) -> bool {
        false
    }

    /// Says that one of its threads has taken a name.
    fn thread_named(&mut self, _tid: Tid, _name: &str, _now: Instant) {}

    /// When [`Instance::look_again`] is due, if ever. Only opening it, a look and a thread's name change that.
    fn next_look(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Reads again what changes while it runs, memory too. Only one instance at a time is asked.
    fn look_again(&mut self, _proc_root: &Path, _pid: Pid, _now: Instant) {}
}

/// The answer is not known now: what it depends on has just changed. Asking again will help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// What the kernel's programs know how to walk through.
#[derive(Clone, Copy, Debug)]
pub enum KernelTables {
    Jvm(JvmUnwind),
}

/// Where a run-time system's allocations can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSites {
    pub functions: AllocationFunctions,
    pub fields: JvmAllocation,
}

/// Functions that a run-time system calls when it allocates, and when a thread ends: offsets in its library's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationFunctions {
    pub in_new_buffer: u64,
    pub outside_buffer: u64,
    pub thread_ended: u64,
}

/// Where a run-time system reports its collections: offsets in its library's file, and what is read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionSites {
    pub begin_offset: u64,
    pub end_offset: u64,
    pub jvm: JvmCollections,
}

/// Stands for code that is the same, byte for byte or nearly so, in all processes that have it: the
/// same instructions in the same places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeId(pub u64);

/// Where a process has such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRange {
    pub start: Address,
    /// First address behind it.
    pub end: Address,
    pub id: CodeId,
}

/// Such code, without the places that it was moved to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnCode {
    pub bytes: Vec<u8>,
    /// Functions that are called at their beginning, by offset, without overlap.
    pub called: Vec<std::ops::Range<u32>>,
    /// Words that callers push for it beyond their frames, and pop themselves.
    pub pushed_words: i8,
}

/// A library that a process has mapped.
#[derive(Clone, Copy, Debug)]
pub struct LoadedLibrary<'a> {
    pub proc_root: &'a Path,
    pub pid: Pid,
    /// Of its code.
    pub mapping: &'a Mapping,
}

/// Why an instance cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Asking again will help, however long it takes.
    #[error("the run-time system has not started yet")]
    Starting,
    #[error(transparent)]
    NotUnderstood(Box<dyn Error + Send + Sync>),
}
