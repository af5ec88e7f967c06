//! Reads table `windows`, row by row.

use super::{LossColumns, Start};
use crate::{
    attribution::{
        counter::Delta,
        window_report::{CpuAudit, Part, Parts, Unattributed},
        work::DomainWork,
    },
    dataset::{
        error::{DataSetError, Result},
        read::columns::{Columns, Numbers, TableFile, Texts},
        store::StoredFile,
        tables::{context, shared, windows},
    },
    events::{LossCount, WindowContext},
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
    pub(crate) context: Option<WindowContext>,
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
    pub(crate) owed: MicroJoules,
    /// The row's own sum of the items.
    pub(crate) unattributed: MicroJoules,
    pub(crate) items: Unattributed,
}

pub(crate) fn read(file: &StoredFile) -> Result<Vec<AuditRow>> {
    let mut rows = Vec::new();
    TableFile::open(file)?.batches(|columns| {
        let (domains, faults) = (columns.texts(windows::DOMAIN)?, columns.texts(windows::FAULT)?);
        let losses = LossColumns::of(columns)?;
        for row in 0..columns.rows() {
            rows.push(audit_row(columns, row, domains.maybe(row), &faults, &losses)?);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn audit_row(
    columns: &Columns<'_>,
    row: usize,
    domain: Option<&str>,
    faults: &Texts<'_>,
    losses: &LossColumns<'_>,
) -> Result<AuditRow> {
    Ok(AuditRow {
        start: columns.times(shared::WINDOW_START)?.get(row)?,
        length_ns: columns.ints(shared::WINDOW_NS)?.natural(row)?,
        index: columns.ints(windows::WINDOW_INDEX)?.natural(row)?,
        socket: columns.ints(windows::SOCKET)?.maybe_natural(row)?,
        work: domain_work(columns, row, faults)?,
        parts: parts(columns, row)?,
        check: columns.ints(windows::CHECK_UJ)?.maybe_natural(row)?.map(MicroJoules),
        shares: domain.map(|domain| shares(columns, row, domain)).transpose()?,
        domain: domain.map(ToOwned::to_owned),
        cpu: cpu_audit(columns, row)?,
        context: context(columns, row)?,
        losses: losses.of_row(columns, row)?,
    })
}

fn parts(columns: &Columns<'_>, row: usize) -> Result<Parts> {
    let mut parts = Parts::default();
    for part in Part::ALL {
        let column = match part {
            Part::Package => windows::PACKAGE_UJ,
            Part::Core => windows::CORE_UJ,
            Part::Uncore => windows::UNCORE_UJ,
            Part::Dram => windows::DRAM_UJ,
            Part::Gpu => windows::GPU_UJ,
            Part::Network => windows::NETWORK_UJ,
            Part::Disk => windows::DISK_UJ,
        };
        let energy: Option<u64> = columns.ints(column)?.maybe_natural(row)?;
        parts.set(part, energy.map(MicroJoules));
    }
    Ok(parts)
}

fn domain_work(columns: &Columns<'_>, row: usize, faults: &Texts<'_>) -> Result<DomainWork> {
    let number = |column| columns.ints(column)?.maybe_natural::<u64>(row);
    let fault = match faults.maybe(row) {
        None => None,
        Some(_) => Some(faults.name_of(row, |name| FaultCause::ALL.into_iter().find(|fault| fault.name() == name))?),
    };
    Ok(DomainWork {
        delta: Delta {
            measured: MicroJoules(number(windows::MEASURED_UJ)?.unwrap_or(0)),
            merged: columns.ints(windows::MERGED)?.maybe_natural(row)?.unwrap_or(0),
            fault,
            static_floor: number(windows::FLOOR_UJ)?.map(MicroJoules),
        },
        detail: None,
        read_delay_ns: columns.ints(windows::READ_DELAY_NS)?.maybe(row).unwrap_or(0),
        owed: number(windows::OWED_UJ)?.map(MicroJoules),
    })
}

fn shares(columns: &Columns<'_>, row: usize, domain: &str) -> Result<Shares> {
    let energy = |column| Ok::<_, DataSetError>(MicroJoules(columns.ints(column)?.natural(row)?));
    Ok(Shares {
        domain: domain.to_owned(),
        socket: columns.ints(windows::SOCKET)?.maybe_natural(row)?,
        core: columns.ints(windows::CORE)?.maybe_natural(row)?,
        measured: energy(windows::MEASURED_UJ)?,
        attributed: energy(windows::ATTRIBUTED_UJ)?,
        static_share: energy(windows::STATIC_UJ)?,
        owed: energy(windows::OWED_UJ)?,
        unattributed: energy(windows::UNATTRIBUTED_UJ)?,
        items: UnattributedColumns::of(columns)?.of_row(row)?,
    })
}

/// Columns of the energy that no target's thread got, by item.
pub(crate) struct UnattributedColumns<'a> {
    other_processes: Numbers<'a>,
    kernel: Numbers<'a>,
    profiler: Numbers<'a>,
    unslotted: Numbers<'a>,
    failed_reads: Numbers<'a>,
    idle: Numbers<'a>,
    unshared: Numbers<'a>,
    suspended: Numbers<'a>,
}

impl<'a> UnattributedColumns<'a> {
    pub(crate) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        Ok(Self {
            other_processes: columns.ints(windows::OTHER_PROCESSES_UJ)?,
            kernel: columns.ints(windows::KERNEL_UJ)?,
            profiler: columns.ints(windows::PROFILER_UJ)?,
            unslotted: columns.ints(windows::UNSLOTTED_UJ)?,
            failed_reads: columns.ints(windows::FAILED_READS_UJ)?,
            idle: columns.ints(windows::IDLE_UJ)?,
            unshared: columns.ints(windows::UNSHARED_UJ)?,
            suspended: columns.ints(windows::SUSPENDED_UJ)?,
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
            suspended: energy(&self.suspended)?,
        })
    }
}

fn cpu_audit(columns: &Columns<'_>, row: usize) -> Result<CpuAudit> {
    let number = |column| columns.ints(column)?.natural::<u64>(row);
    Ok(CpuAudit {
        elapsed_ns: number(windows::CPU_ELAPSED_NS)?,
        busy_ns: number(windows::CPU_BUSY_NS)?,
        idle_ns: number(windows::CPU_IDLE_NS)?,
        unslotted_ns: number(windows::CPU_UNSLOTTED_NS)?,
        switches: number(windows::SWITCHES)?,
        target_ns: number(windows::CPU_TARGET_NS)?,
        other_ns: number(windows::CPU_OTHER_NS)?,
        kernel_ns: number(windows::CPU_KERNEL_NS)?,
        profiler_ns: number(windows::CPU_PROFILER_NS)?,
        samples: number(windows::SAMPLES)?,
        inexact_ns: number(windows::CPU_INEXACT_NS)?,
    })
}

/// `None` where the recording does not say.
fn context(columns: &Columns<'_>, row: usize) -> Result<Option<WindowContext>> {
    let number = |column| columns.ints(column)?.maybe_natural::<u64>(row);
    let signed = |column| Ok::<_, DataSetError>(columns.ints(column)?.maybe(row));
    let Some(suspended_ns) = number(context::SUSPENDED_NS)? else { return Ok(None) };
    Ok(Some(WindowContext {
        mean_frequency_khz: number(context::MEAN_FREQUENCY_KHZ)?,
        governor: columns.texts(context::GOVERNOR)?.maybe(row).map(ToOwned::to_owned),
        steal_ns: number(context::STEAL_NS)?,
        temperature_millicelsius: signed(context::TEMPERATURE_MILLICELSIUS)?,
        suspended_ns,
        clock_step_us: signed(context::CLOCK_STEP_US)?.unwrap_or(0),
        clock_offset_us: signed(context::CLOCK_OFFSET_US)?.unwrap_or(0),
    }))
}
