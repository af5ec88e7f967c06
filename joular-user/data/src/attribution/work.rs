//! Holds what the attribution of a window starts from: who ran where for how long, what was
//! measured, which stacks were seen. It has everything that a policy divides and nothing that
//! depends on a policy, so the same work can be attributed again under another one. The data set
//! keeps all of it. (What a run's first window owes comes from the recording's run before it, and holds under the same policy
//! only.)

use super::{
    allocated::AllocationRow,
    collector::{ChargeRow, CollectionRow},
    counts::Counts,
    moved::Moved,
    window_report::{BranchRow, CpuAudit, ProcessRef, ThreadRow},
};
use crate::{
    attribution::counter::Delta,
    events::{LossCount, Mark, WindowContext},
    model::{
        cores::ONE_PERMILLE,
        units::{MicroJoules, MonotonicNs, Pid, UnixMicros},
    },
};

/// A process that a reused pid cannot confuse: pid and start time.
pub(super) type ProcessKey = (Pid, u64);

/// One window's work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowWork {
    pub index: u64,
    pub start: MonotonicNs,
    pub wall_start: UnixMicros,
    pub length_ns: u64,
    /// Parallel to the run's domains.
    pub domains: Vec<DomainWork>,
    /// CPU time by claimant and place, each pair once, in order.
    pub slices: Vec<ClaimedSlice>,
    pub processes: Vec<ProcessRef>,
    /// Without energy, by process, thread id and start.
    pub threads: Vec<ThreadRow>,
    /// Without energy; those of a thread stand together, by kind and stack id.
    pub branches: Vec<BranchRow>,
    /// Those of a thread stand together.
    pub allocations: Vec<AllocationRow>,
    /// Without energy, by process.
    pub collections: Vec<CollectionRow>,
    /// Without energy, by process.
    pub charges: Vec<ChargeRow>,
    /// `None` if nothing was counted.
    pub moved: Option<Moved>,
    pub cpu: CpuAudit,
    /// `None` if nothing was noted.
    pub context: Option<WindowContext>,
    pub marks: Vec<Mark>,
    /// `None` if nothing was counted beside CPU time.
    pub counts: Option<Counts>,
    pub losses: Vec<LossCount>,
}

/// What a domain's meter said of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainWork {
    pub delta: Delta,
    /// Why a read failed, for people; not kept in data sets.
    pub detail: Option<String>,
    /// Real time of the read minus the window's end.
    pub read_delay_ns: i64,
    /// As [`super::window_report::DomainAudit::owed`], as a data set has it. Of a run's first window alone it counts.
    pub owed: Option<MicroJoules>,
}

/// Who CPU time counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claimant {
    /// Index into [`WindowWork::threads`].
    Thread(usize),
    OtherProcesses,
    Kernel,
    Profiler,
    /// Threads that found no slot in the kernel's map.
    Unslotted,
    /// Nothing ran.
    Idle,
}

impl Claimant {
    /// All but threads.
    pub const GROUPS: [Self; 5] = [Self::OtherProcesses, Self::Kernel, Self::Profiler, Self::Unslotted, Self::Idle];

    /// As in data sets.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread(_) => "thread",
            Self::OtherProcesses => "other_processes",
            Self::Kernel => "kernel",
            Self::Profiler => "profiler",
            Self::Unslotted => "unslotted",
            Self::Idle => "idle",
        }
    }
}

/// Where CPU time was spent: a socket, or a core of it where cores have energy
/// counters of their own (else the core is the number of its type, 0 unless the
/// processor is hybrid).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub socket: u32,
    pub core: u32,
}

/// CPU time of one claimant in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedSlice {
    pub claimant: Claimant,
    pub place: Place,
    pub slice: Slice,
    pub factor: Factor,
}

/// What a claimant's CPU time counts for where it was fitted to measured energy, relative to the mean, in thousandths; not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(pub u32);

impl Factor {
    /// As all CPU time counts where nothing was fitted.
    pub const ONE: Self = Self(ONE_PERMILLE);
}

/// CPU time, and everything that weights are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    pub cpu_ns: u64,
    /// Of `cpu_ns`: while the core's other hyper-thread was busy too.
    pub corun_ns: u64,
    /// Unhalted cycles, 0 unless they are counted.
    pub cycles: u64,
    /// Of `cycles`: those of `corun_ns`, in proportion to the thread's time.
    pub corun_cycles: u64,
    pub samples: u64,
    pub switches: u64,
}

impl Slice {
    pub(super) fn add(&mut self, other: Self) {
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.corun_ns = self.corun_ns.saturating_add(other.corun_ns);
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.corun_cycles = self.corun_cycles.saturating_add(other.corun_cycles);
        self.samples = self.samples.saturating_add(other.samples);
        self.switches = self.switches.saturating_add(other.switches);
    }
}
