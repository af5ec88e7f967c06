//! Table `windows`, row by row.

use super::Start;
use crate::dataset::store::StoredFile;
use crate::{
    attribution::{
        counter::Delta,
        report::{CpuAudit, Part, Parts, Unattributed},
        work::DomainWork,
    },
    dataset::{
        error::{DataSetError, Result},
        read::columns::{Columns, Numbers, TableFile, Texts},
    },
    events::LossCount,
    model::{domain::FaultCause, units::MicroJoules},
};

/// One domain in one window, or a window without any domain.
#[derive(Clone, Debug)]
pub(crate) struct AuditRow {
    pub(crate) start: Start,
    pub(crate) length_ns: u64,
    pub(crate) index: u64,
    pub(crate) domain: Option<String>,
    pub(crate) socket: Option<u32>,
    pub(crate) work: DomainWork,
    pub(crate) parts: Parts,
    pub(crate) check: Option<MicroJoules>,
    /// As written; `None` without a domain.
    pub(crate) shares: Option<Shares>,
    pub(crate) cpu: CpuAudit,
    pub(crate) losses: Vec<LossCount>,
}

/// Where a domain's energy went, as its row says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) domain: String,
    pub(crate) socket: Option<u32>,
    pub(crate) core: Option<u32>,
    pub(crate) measured: MicroJoules,
    pub(crate) attributed: MicroJoules,
    pub(crate) static_share: MicroJoules,
    /// The sum that the row has of the items.
    pub(crate) unattributed: MicroJoules,
    pub(crate) items: Unattributed,
}

pub(crate) fn read(file: &StoredFile) -> Result<Vec<AuditRow>> {
    let mut rows = Vec::new();
    TableFile::open(file)?.batches(|columns| {
        let (domains, faults) = (columns.texts("domain")?, columns.texts("fault")?);
        for row in 0..columns.rows() {
            rows.push(audit_row(columns, row, domains.maybe(row), &faults)?);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn audit_row(columns: &Columns<'_>, row: usize, domain: Option<&str>, faults: &Texts<'_>) -> Result<AuditRow> {
    let energy = |name: &str| {
        let value: Option<u64> = columns.ints(name)?.maybe_natural(row)?;
        Ok::<_, DataSetError>(value.map(MicroJoules))
    };
    Ok(AuditRow {
        start: columns.times("window_start")?.get(row)?,
        length_ns: columns.ints("window_ns")?.natural(row)?,
        index: columns.ints("window_index")?.natural(row)?,
        socket: columns.ints("socket")?.maybe_natural(row)?,
        work: domain_work(columns, row, faults)?,
        parts: parts(columns, row)?,
        check: energy("check_uj")?,
        shares: domain.map(|domain| shares(columns, row, domain)).transpose()?,
        domain: domain.map(ToOwned::to_owned),
        cpu: cpu_audit(columns, row)?,
        losses: losses(columns, row)?,
    })
}

fn parts(columns: &Columns<'_>, row: usize) -> Result<Parts> {
    let mut parts = Parts::default();
    for part in Part::ALL {
        let column = match part {
            Part::Package => "package_uj",
            Part::Core => "core_uj",
            Part::Uncore => "uncore_uj",
            Part::Dram => "dram_uj",
            Part::Gpu => "gpu_uj",
        };
        let energy: Option<u64> = columns.ints(column)?.maybe_natural(row)?;
        parts.set(part, energy.map(MicroJoules));
    }
    Ok(parts)
}

fn domain_work(columns: &Columns<'_>, row: usize, faults: &Texts<'_>) -> Result<DomainWork> {
    let number = |name: &str| columns.ints(name)?.maybe_natural::<u64>(row);
    let fault = match faults.maybe(row) {
        None => None,
        Some(_) => Some(faults.name_of(row, |name| FaultCause::ALL.into_iter().find(|fault| fault.name() == name))?),
    };
    Ok(DomainWork {
        delta: Delta {
            measured: MicroJoules(number("measured_uj")?.unwrap_or(0)),
            merged: columns.ints("merged")?.maybe_natural(row)?.unwrap_or(0),
            fault,
            static_floor: number("floor_uj")?.map(MicroJoules),
        },
        detail: None,
        read_delay_ns: columns.ints("read_delay_ns")?.maybe(row).unwrap_or(0),
    })
}

fn shares(columns: &Columns<'_>, row: usize, domain: &str) -> Result<Shares> {
    let energy = |name: &str| Ok::<_, DataSetError>(MicroJoules(columns.ints(name)?.natural(row)?));
    Ok(Shares {
        domain: domain.to_owned(),
        socket: columns.ints("socket")?.maybe_natural(row)?,
        core: columns.ints("core")?.maybe_natural(row)?,
        measured: energy("measured_uj")?,
        attributed: energy("attributed_uj")?,
        static_share: energy("static_uj")?,
        unattributed: energy("unattributed_uj")?,
        items: UnattributedColumns::of(columns)?.of_row(row)?,
    })
}

/// Columns that say what went to nobody's threads, by item.
pub(crate) struct UnattributedColumns<'a> {
    other_processes: Numbers<'a>,
    kernel: Numbers<'a>,
    profiler: Numbers<'a>,
    unslotted: Numbers<'a>,
    failed_reads: Numbers<'a>,
    idle: Numbers<'a>,
    unshared: Numbers<'a>,
}

impl<'a> UnattributedColumns<'a> {
    pub(crate) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        Ok(Self {
            other_processes: columns.ints("other_processes_uj")?,
            kernel: columns.ints("kernel_uj")?,
            profiler: columns.ints("profiler_uj")?,
            unslotted: columns.ints("unslotted_uj")?,
            failed_reads: columns.ints("failed_reads_uj")?,
            idle: columns.ints("idle_uj")?,
            unshared: columns.ints("unshared_uj")?,
        })
    }

    pub(crate) fn of_row(&self, row: usize) -> Result<Unattributed> {
        let energy = |column: &Numbers<'_>| Ok::<_, DataSetError>(MicroJoules(column.natural(row)?));
        Ok(Unattributed {
            other_processes: energy(&self.other_processes)?,
            kernel: energy(&self.kernel)?,
            profiler: energy(&self.profiler)?,
            unslotted: energy(&self.unslotted)?,
            failed_reads: energy(&self.failed_reads)?,
            idle: energy(&self.idle)?,
            unshared: energy(&self.unshared)?,
        })
    }
}

fn cpu_audit(columns: &Columns<'_>, row: usize) -> Result<CpuAudit> {
    let number = |name: &str| columns.ints(name)?.natural::<u64>(row);
    Ok(CpuAudit {
        elapsed_ns: number("cpu_elapsed_ns")?,
        busy_ns: number("cpu_busy_ns")?,
        idle_ns: number("cpu_idle_ns")?,
        unslotted_ns: number("cpu_unslotted_ns")?,
        switches: number("switches")?,
        target_ns: number("cpu_target_ns")?,
        other_ns: number("cpu_other_ns")?,
        kernel_ns: number("cpu_kernel_ns")?,
        profiler_ns: number("cpu_profiler_ns")?,
        samples: number("samples")?,
    })
}

/// Losses outside the kernel, times that are not exact among them.
pub(crate) const OTHER_LOSS: &str = "other";

/// Causes of losses that have columns: those outside the kernel were written as one.
pub(crate) fn loss_causes() -> impl Iterator<Item = &'static str> {
    joular_ebpf::abi::Loss::ALL.map(joular_ebpf::abi::Loss::name).into_iter().chain([OTHER_LOSS])
}

fn losses(columns: &Columns<'_>, row: usize) -> Result<Vec<LossCount>> {
    let mut losses = Vec::new();
    for cause in loss_causes() {
        let count: u64 = columns.ints(&format!("lost_{cause}"))?.natural(row)?;
        if count > 0 {
            losses.push(LossCount { cause: cause.to_owned(), count });
        }
    }
    Ok(losses)
}
