//! Defines what threads allocated on the Java heap in a window, and samples of it.

use serde::{Deserialize, Serialize};

use crate::model::units::{Pid, Tid};

/// Allocations of the coming window, in JVMs whose allocations can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowAllocations {
    /// Threads that allocated anything, by process, thread id and key.
    pub threads: Vec<ThreadAllocation>,
    /// By process, thread key and stack.
    pub samples: Vec<AllocationSample>,
}

/// What one thread allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAllocation {
    pub tid: Tid,
    pub pid: Pid,
    /// Start time of the thread as its key keeps it: see `abi::ThreadKey`.
    pub thread_key: u64,
    /// Exact, as the JVM counts them.
    pub bytes: u64,
    /// Objects that were seen: those that a new buffer began with, or that were allocated outside of one.
    pub objects: u64,
}

/// Objects of one class that were sampled, allocated by one thread on one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationSample {
    pub tid: Tid,
    pub pid: Pid,
    pub thread_key: u64,
    /// Id of the stack, whose leaf is the class.
    pub stack: u64,
    /// What the samples stand for, about: [`ThreadAllocation::bytes`] are divided in proportion.
    pub bytes: u64,
    pub samples: u64,
}

/// Ends of one thread's allocation buffers in a window, and how many fell where the thread's earlier ends let foresee:
/// see `abi::ends`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferEnds {
    pub pid: Pid,
    pub thread_key: u64,
    pub seen: u64,
    pub foreseen: u64,
    /// How many would have been by chance, in parts of `abi::CERTAIN`.
    pub by_chance: u64,
}
