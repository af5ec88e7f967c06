//! Holds what attribution says about one window: every row of every table, as integers, before
//! anything is formatted or written.

use super::work::ClaimedSlice;
pub use super::{
    category::Category,
    domain_audit::{DomainAudit, Part, Parts, Unattributed},
    share::{Share, pools, squares_of},
};
use crate::{
    attribution::{
        allocated::AllocationRow,
        collector::{ChargeRow, CollectionRow},
        counts::Counts,
        moved::Moved,
    },
    events::{LossCount, Mark, SampleKind, WindowContext},
    model::{
        domain::Label,
        frame::Marker,
        quality::PathQuality,
        target_text::TargetText,
        units::{MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
    },
    stacks::{BranchIndex, FrameId, JvmWork},
};

/// A process as rows refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessRef {
    pub pid: Pid,
    pub start_boottime_ns: u64,
    pub comm: TargetText,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowReport {
    pub index: u64,
    pub start: MonotonicNs,
    pub wall_start: UnixMicros,
    pub length_ns: u64,
    pub domains: Vec<DomainAudit>,
    pub cpu: CpuAudit,
    /// `None` if nothing was noted.
    pub context: Option<WindowContext>,
    /// What programs said. Begins and ends of phases hold from the window's end on.
    pub marks: Vec<Mark>,
    /// `None` if nothing was counted beside CPU time.
    pub counts: Option<Counts>,
    /// Processes that rows below refer to by position.
    pub processes: Vec<ProcessRef>,
    pub threads: Vec<ThreadRow>,
    /// Those of CPU time.
    pub branches: Vec<BranchRow>,
    /// Those of a thread stand together.
    pub allocations: Vec<AllocationRow>,
    /// By process, as charges are; empty unless allocations are recorded.
    pub collections: Vec<CollectionRow>,
    pub charges: Vec<ChargeRow>,
    /// `None` if nothing was counted.
    pub moved: Option<Moved>,
    pub methods: Vec<MethodRow>,
    pub qualities: Vec<QualityRow>,
    pub jvms: Vec<JvmRow>,
    /// What the energy was divided by.
    pub slices: Vec<ClaimedSlice>,
    pub losses: Vec<LossCount>,
}

impl WindowReport {
    /// The weakest label of the domains that threads have a share of.
    pub fn label(&self) -> Option<Label> {
        self.shared().map(|audit| audit.label).max()
    }

    /// Whether the energy of a domain that threads have a share of is not certain.
    pub fn is_ambiguous(&self) -> bool {
        self.shared().any(DomainAudit::is_ambiguous)
    }

    fn shared(&self) -> impl Iterator<Item = &DomainAudit> {
        self.domains.iter().filter(|audit| audit.is_shared)
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
    /// By how much these times may be off, because a CPU went online or offline, or the window began or ended late.
    pub inexact_ns: u64,
}

impl CpuAudit {
    /// Why times may be off, for people.
    pub const WHY_INEXACT: &str = "a CPU went online or offline, or windows began late";

    /// Thousandths of CPUs that were busy on average; `None` for a window without length.
    pub fn busy_cpus_milli(&self, window_ns: u64) -> Option<i64> {
        let busy_ns = u128::from(self.busy_ns) + u128::from(self.unslotted_ns);
        i64::try_from((busy_ns * 1000).checked_div(window_ns.into())?).ok()
    }
}

/// A thread of a target, over all sockets and domains. Where earlier reads failed, `energy`
/// includes what came late from those windows; `cpu_ns` does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Index into [`WindowReport::processes`].
    pub process: usize,
    pub tid: Tid,
    pub start_boottime_ns: u64,
    pub name: TargetText,
    pub category: Category,
    pub cpu_ns: u64,
    pub samples: u64,
    pub energy: MicroJoules,
    /// Of `energy`: what goes by bytes that were moved or allocated.
    pub by_bytes: MicroJoules,
}

/// A call path of one thread. The rows of CPU time of a thread sum to its row, exactly, in energy
/// and in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// Index into [`WindowReport::threads`].
    pub thread: usize,
    /// What `samples` counts. Paths of different kinds are different rows.
    pub kind: SampleKind,
    pub branch: BranchIndex,
    pub cpu_ns: u64,
    pub samples: u64,
    pub energy: MicroJoules,
    /// Of `energy`: by what the path moved or allocated, whatever samples say.
    pub by_bytes: MicroJoules,
}

impl BranchRow {
    /// What samples divide of its energy.
    pub const fn by_samples(&self) -> MicroJoules {
        MicroJoules(self.energy.0.saturating_sub(self.by_bytes.0))
    }
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

/// Time, energy and samples of branches that have something in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
}

impl Amount {
    pub(super) fn add(&mut self, branch: &BranchRow) {
        self.energy = self.energy.saturating_add(branch.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(branch.cpu_ns);
        self.samples = self.samples.saturating_add(branch.samples);
    }
}

/// How good the stacks of one process are, by the kind of thread. The rows of a
/// process sum to its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualityRow {
    /// Index into [`WindowReport::processes`].
    pub process: usize,
    pub category: Category,
    pub quality: PathQuality,
    /// The marker that stands for frames without a name.
    pub unnamed: Option<Marker>,
    pub amount: Amount,
}

/// A JVM, and what its threads did. The parts sum to the whole, and so do the process's threads,
/// exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmRow {
    /// Index into [`WindowReport::processes`].
    pub process: usize,
    pub whole: Amount,
    /// By [`JvmWork`].
    pub parts: [Amount; JvmWork::ALL.len()],
}

impl JvmRow {
    pub const fn part(&self, work: JvmWork) -> Amount {
        self.parts[work as usize]
    }

    /// What the JVM did for itself: see [`JvmWork::is_tax`].
    pub fn tax(&self) -> Amount {
        let parts = JvmWork::ALL.into_iter().filter(|work| work.is_tax()).map(|work| self.part(work));
        parts.fold(Amount::default(), |sum, part| Amount {
            energy: sum.energy.saturating_add(part.energy),
            cpu_ns: sum.cpu_ns.saturating_add(part.cpu_ns),
            samples: sum.samples.saturating_add(part.samples),
        })
    }
}
