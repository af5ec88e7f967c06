//! What attribution says about one window: every row of every table, as
//! integers, before anything is formatted or written.

use crate::{
    energy::domain::{FaultCause, Label},
    events::LossCount,
    stacks::{BranchIndex, FrameId},
    units::{MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
};

/// What kind of work a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Java,
    Gc,
    Jit,
    Vm,
    Native,
    Kernel,
}

impl Category {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Vm => "vm",
            Self::Native => "native",
            Self::Kernel => "kernel",
        }
    }
}

/// A process as rows refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessRef {
    pub pid: Pid,
    pub start_boottime_ns: u64,
    pub comm: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowReport {
    pub index: u64,
    pub start: MonotonicNs,
    pub wall_start: UnixMicros,
    pub length_ns: u64,
    pub domains: Vec<DomainAudit>,
    pub cpu: CpuAudit,
    /// Processes that rows below refer to by position.
    pub processes: Vec<ProcessRef>,
    pub threads: Vec<ThreadRow>,
    pub branches: Vec<BranchRow>,
    pub methods: Vec<MethodRow>,
    pub losses: Vec<LossCount>,
}

/// Where a domain's energy went:
/// `attributed + static + unattributed.total() = measured`, exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainAudit {
    pub domain: String,
    pub socket: Option<u32>,
    pub source: String,
    pub label: Label,
    /// ΔE of the window.
    pub measured: MicroJoules,
    /// To threads of targets.
    pub attributed: MicroJoules,
    /// Idle share, by policy.
    pub static_share: MicroJoules,
    pub unattributed: Unattributed,
    /// How many windows' energy this one holds because earlier reads failed,
    /// including its own, so at least 2; 0 normally.
    pub merged: u32,
    /// What is wrong with ΔE: after a failed read it is 0 here and will come with
    /// a later window, otherwise it is not certain.
    pub fault: Option<FaultCause>,
    /// Real time of the read minus the window's end.
    pub read_delay_ns: i64,
}

impl DomainAudit {
    pub fn read_failed(&self) -> bool {
        self.fault.is_some_and(FaultCause::is_failed_read)
    }

    pub fn is_ambiguous(&self) -> bool {
        self.fault.is_some_and(FaultCause::is_ambiguous)
    }
}

/// Energy that no target's thread gets, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unattributed {
    /// Processes that were not selected.
    pub other_processes: MicroJoules,
    /// Kernel threads.
    pub kernel: MicroJoules,
    /// joular-bpf itself.
    pub profiler: MicroJoules,
    /// Time of threads that found no slot in the kernel's map.
    pub unslotted: MicroJoules,
    /// Threads of windows whose read failed that did not run in the window
    /// that brought the energy, and so have no row to give it to.
    pub failed_reads: MicroJoules,
    /// Nothing ran at all: there is nobody to give it to.
    pub idle: MicroJoules,
}

impl Unattributed {
    pub fn total(&self) -> MicroJoules {
        [self.other_processes, self.kernel, self.profiler, self.unslotted, self.failed_reads, self.idle]
            .into_iter()
            .sum()
    }
}

/// CPU time of the window over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAudit {
    /// Window length × CPUs.
    pub elapsed_ns: u64,
    pub busy_ns: u64,
    pub idle_ns: u64,
    pub unslotted_ns: u64,
    pub switches: u64,
    /// Time of targets, of other processes, of kernel threads, of the profiler.
    pub target_ns: u64,
    pub other_ns: u64,
    pub kernel_ns: u64,
    pub profiler_ns: u64,
    /// Samples of targets.
    pub samples: u64,
}

/// A thread of a target. All sockets and domains together. Where earlier reads
/// failed, `energy` includes what those windows owe it; `cpu_ns` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Index into [`WindowReport::processes`].
    pub process: usize,
    pub tid: Tid,
    pub start_boottime_ns: u64,
    pub name: String,
    pub category: Category,
    pub cpu_ns: u64,
    pub samples: u64,
    pub energy: MicroJoules,
}

/// A call path of one thread. The rows of a thread sum to its row, exactly,
/// in energy and in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// Index into [`WindowReport::threads`].
    pub thread: usize,
    pub branch: BranchIndex,
    pub cpu_ns: u64,
    pub samples: u64,
    pub energy: MicroJoules,
}

/// A method of one process. The self figures of a process sum to its threads'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodRow {
    /// Index into [`WindowReport::processes`].
    pub process: usize,
    pub method: FrameId,
    pub own: Share,
    pub total: Share,
}

/// A method's part of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// One standard deviation of `energy` from sampling alone. Over several
    /// windows these add in quadrature.
    pub sigma: MicroJoules,
}
