//! Holds where the energy of each domain of a window went.

use crate::{
    attribution::counter::Delta,
    model::{
        domain::{Domain, FaultCause, Label, Role, Update},
        units::MicroJoules,
    },
};

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
