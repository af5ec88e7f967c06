//! Defines the records of the ring buffer. Each starts with a `u32` kind.

/// Length of a thread name in the kernel, terminator included.
pub const COMM_LEN: usize = 16;

pub type Comm = [u8; COMM_LEN];

/// First word of every ring-buffer record.
#[derive(Debug)]
pub struct RecordKind;

impl RecordKind {
    /// A stack's addresses.
    pub const STACK: u32 = 1;
    /// A process replaced its image.
    pub const EXEC: u32 = 2;
    /// A process was created. (A thread shows up with its first slice of time.)
    pub const FORK: u32 = 3;
    /// The last thread of a process ended.
    pub const EXIT: u32 = 4;
    /// A thread changed its name: of a target, or the first of any process.
    pub const COMM: u32 = 5;
    /// A memory pool of a JVM as a collection begins or ends.
    pub const POOL: u32 = 6;
}

/// A change in the life of a process or thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifecycleRecord {
    /// One of [`RecordKind`]'s, not `STACK`.
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    /// Process that forked; 0 where it does not apply.
    pub parent_tgid: u32,
    /// Monotonic nanoseconds.
    pub time_ns: u64,
    pub start_boottime_ns: u64,
    pub comm: Comm,
}

/// Why a process is told of that may be no target: bits of the map's values.
pub mod followed {
    /// The profiler started it.
    pub const CHILD: u32 = 0;
    /// It belongs to the selected tree, and so do its children.
    pub const TREE: u32 = 1;
}
