//! Records of the ring buffer. Each starts with a `u32` kind.

/// Length of a thread name in the kernel, terminator included.
pub const COMM_LEN: usize = 16;

pub type Comm = [u8; COMM_LEN];

/// First word of every ring-buffer record.
#[derive(Debug)]
pub struct RecordKind;

impl RecordKind {
    pub const STACK: u32 = 1;
    /// A process replaced its image.
    pub const EXEC: u32 = 2;
    /// A process or a target's thread was created.
    pub const FORK: u32 = 3;
    /// A thread ended; the process too if `tid == tgid`… of its last thread.
    pub const EXIT: u32 = 4;
    /// A thread changed its name.
    pub const COMM: u32 = 5;
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
    /// 1 when the last thread of the process ends.
    pub process_ends: u32,
    pub pad: u32,
    /// Monotonic nanoseconds.
    pub time_ns: u64,
    pub start_boottime_ns: u64,
    pub comm: Comm,
}
