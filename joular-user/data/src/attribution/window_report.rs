//! Holds what attribution says about one window: every row of every table, as integers, before
//! anything is formatted or written.

use super::work::ClaimedSlice;
pub use super::{
    category::Category,
    share::{Share, pools, squares_of},
};
use crate::{
    attribution::{
        allocated::AllocationRow,
        collector::{ChargeRow, CollectionRow},
        counter::Delta,
        counts::Counts,
        moved::Moved,
    },
    events::{LossCount, Mark, SampleKind, WindowContext},
    model::{
        domain::{Domain, FaultCause, Label, Role, Update},
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

/// Where a domain's energy went:
/// `attributed + static + unattributed.total() = measured`, exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainAudit {
    pub domain: String,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    pub source: String,
    pub label: Label,
    /// How often its counter advances, if that was measured.
    pub update: Option<Update>,
    /// As [`crate::model::domain::DividedBy::name`] has it.
    pub divided_by: &'static str,
    /// Whether anybody gets a share of it; see [`Role::Unshared`].
    pub is_shared: bool,
    /// ΔE of the window.
    pub measured: MicroJoules,
    /// To threads of targets.
    pub attributed: MicroJoules,
    /// Idle share, by policy.
    pub static_share: MicroJoules,
    /// Idle energy that earlier windows lacked, which this one's idle share makes up for first.
    pub owed: MicroJoules,
    pub unattributed: Unattributed,
    /// The part of `measured` that does not depend on load, if the meter knows it.
    pub floor: Option<MicroJoules>,
    /// Parts of `measured` that have counters of their own.
    pub parts: Parts,
    /// The same energy by another counter.
    pub check: Option<MicroJoules>,
    /// How many windows' energy this one holds because earlier reads failed. The count includes
    /// this window, so it is at least 2; normally 0.
    pub merged: u32,
    /// What is wrong with ΔE. After a failed read it is 0 here and comes with a later window;
    /// otherwise it is not certain.
    pub fault: Option<FaultCause>,
    /// Why the read failed, for people.
    pub detail: Option<String>,
    /// Real time of the read minus the window's end.
    pub read_delay_ns: i64,
}

/// What a domain contains that may be counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Package,
    Core,
    Uncore,
    Dram,
    Gpu,
    Network,
    Disk,
}

impl Part {
    pub const ALL: [Self; 7] =
        [Self::Package, Self::Core, Self::Uncore, Self::Dram, Self::Gpu, Self::Network, Self::Disk];

    /// The part that a domain of this name is.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "package" => Self::Package,
            "core" => Self::Core,
            "uncore" => Self::Uncore,
            "dram" => Self::Dram,
            "network" => Self::Network,
            "disk" => Self::Disk,
            name if name.starts_with("gpu") => Self::Gpu,
            _ => return None,
        })
    }
}

/// Energy of what a domain contains, by [`Part`]; all parts of a kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([Option<MicroJoules>; Part::ALL.len()]);

impl Parts {
    /// `None`: it has no counter of its own, or what the counter says is not certain.
    pub const fn get(&self, part: Part) -> Option<MicroJoules> {
        self.0[part as usize]
    }

    pub const fn set(&mut self, part: Part, energy: Option<MicroJoules>) {
        self.0[part as usize] = energy;
    }
}

impl DomainAudit {
    /// Before anything is divided.
    pub fn new(domain: &Domain, delta: &Delta) -> Self {
        Self {
            domain: domain.name.clone(),
            socket: domain.socket,
            core: domain.core,
            source: domain.source.clone(),
            label: domain.label,
            update: domain.update(),
            divided_by: domain.divided_by.name(),
            is_shared: domain.role == Role::Shared,
            measured: delta.measured,
            attributed: MicroJoules(0),
            static_share: MicroJoules(0),
            owed: MicroJoules(0),
            unattributed: Unattributed::default(),
            floor: delta.static_floor,
            parts: Parts::default(),
            check: None,
            merged: delta.merged,
            fault: delta.fault,
            detail: None,
            read_delay_ns: 0,
        }
    }

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
    /// Threads of windows whose read failed, if they did not run in the window that brought the
    /// energy: they have no row that could get it.
    pub failed_reads: MicroJoules,
    /// Nothing ran at all, so there is nobody to give the energy to.
    pub idle: MicroJoules,
    /// Domains that CPU time says nothing about: the rest of the platform, GPUs.
    pub unshared: MicroJoules,
    /// What counters gained from before a suspend to after it: nobody knows how much of it is the
    /// window's.
    pub suspended: MicroJoules,
}

impl Unattributed {
    /// All items, by the names they have in data sets.
    pub const fn items(&self) -> [(&'static str, MicroJoules); 8] {
        [
            ("other_processes", self.other_processes),
            ("kernel", self.kernel),
            ("profiler", self.profiler),
            ("unslotted", self.unslotted),
            ("failed_reads", self.failed_reads),
            ("idle", self.idle),
            ("unshared", self.unshared),
            ("suspended", self.suspended),
        ]
    }

    pub fn total(&self) -> MicroJoules {
        self.items().into_iter().map(|(_, energy)| energy).sum()
    }

    /// Item by item.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            other_processes: self.other_processes.saturating_add(other.other_processes),
            kernel: self.kernel.saturating_add(other.kernel),
            profiler: self.profiler.saturating_add(other.profiler),
            unslotted: self.unslotted.saturating_add(other.unslotted),
            failed_reads: self.failed_reads.saturating_add(other.failed_reads),
            idle: self.idle.saturating_add(other.idle),
            unshared: self.unshared.saturating_add(other.unshared),
            suspended: self.suspended.saturating_add(other.suspended),
        }
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
