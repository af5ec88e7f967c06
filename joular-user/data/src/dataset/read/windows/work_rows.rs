//! Reads tables `threads`, `branches` and `weights`, by window.

use super::{Grouped, ThreadId};
use crate::{
    attribution::{
        window_report::{Category, ProcessRef, ThreadRow},
        work::{Claimant, Factor, Place, Slice},
    },
    dataset::{
        column::{Column, kind},
        error::Result,
        read::columns::Columns,
        tables::{shared, weights, work},
    },
    model::{
        target_text::TargetText,
        units::{MicroJoules, Pid, Tid},
    },
};

pub(crate) struct ThreadRead {
    pub(crate) id: ThreadId,
    comm: TargetText,
    name: TargetText,
    category: Category,
    cpu_ns: u64,
    samples: u64,
    pub(crate) energy: MicroJoules,
    pub(crate) by_bytes: MicroJoules,
}

impl ThreadRead {
    pub(crate) fn process(&self) -> ProcessRef {
        ProcessRef { pid: Pid(self.id.0), start_boottime_ns: since_1970_ns(self.id.1), comm: self.comm.clone() }
    }

    pub(crate) fn row(&self, process: usize) -> ThreadRow {
        ThreadRow {
            process,
            tid: Tid(self.id.2),
            start_boottime_ns: since_1970_ns(self.id.3),
            name: self.name.clone(),
            category: self.category,
            cpu_ns: self.cpu_ns,
            samples: self.samples,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        }
    }
}

/// Start times are wall-clock times in a data set: see `WindowWork::start`.
pub(super) fn since_1970_ns(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).saturating_mul(1000)
}

pub(crate) struct BranchRead {
    pub(crate) thread: ThreadId,
    pub(crate) stack_id: i64,
    pub(crate) cpu_ns: u64,
    pub(crate) samples: u64,
    pub(crate) energy: MicroJoules,
    pub(crate) by_bytes: MicroJoules,
}

impl BranchRead {
    /// Whether the row is there for what the path moved, and for nothing else.
    pub(crate) const fn is_by_bytes(&self) -> bool {
        self.samples == 0 && self.cpu_ns == 0 && self.by_bytes.0 > 0
    }
}

pub(crate) struct WeightRead {
    pub(crate) claimant: ReadClaimant,
    pub(crate) place: Place,
    pub(crate) slice: Slice,
    pub(crate) factor: Factor,
}

pub(crate) fn threads(columns: &Columns<'_>, rows: &mut Grouped<ThreadRead>) -> Result<()> {
    let starts = columns.times(shared::WINDOW_START)?;
    let ids = thread_ids(columns)?;
    let (comms, names, categories) =
        (columns.texts(shared::COMM)?, columns.texts(work::THREAD_NAME)?, columns.texts(work::CATEGORY)?);
    let (energies, times, samples) =
        (columns.ints(shared::ENERGY_UJ)?, columns.ints(shared::CPU_NS)?, columns.ints(shared::SAMPLES)?);
    let by_bytes = columns.ints(shared::BY_BYTES_UJ)?;
    for row in 0..columns.rows() {
        let category = |name: &str| Category::ALL.into_iter().find(|category| category.name() == name);
        rows.entry(starts.get(row)?).or_default().push(ThreadRead {
            id: ids(row)?,
            comm: comms.get(row)?.into(),
            name: names.get(row)?.into(),
            category: categories.name_of(row, category)?,
            cpu_ns: times.natural(row)?,
            samples: samples.natural(row)?,
            energy: MicroJoules(energies.natural(row)?),
            by_bytes: MicroJoules(by_bytes.natural(row)?),
        });
    }
    Ok(())
}

pub(crate) fn branches(columns: &Columns<'_>, rows: &mut Grouped<BranchRead>) -> Result<()> {
    let starts = columns.times(shared::WINDOW_START)?;
    let ids = thread_ids(columns)?;
    let stack_ids = columns.ints(work::STACK_ID)?;
    let (energies, times, samples) =
        (columns.ints(shared::ENERGY_UJ)?, columns.ints(shared::CPU_NS)?, columns.ints(shared::SAMPLES)?);
    let by_bytes = columns.ints(shared::BY_BYTES_UJ)?;
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(BranchRead {
            thread: ids(row)?,
            stack_id: stack_ids.get(row)?,
            cpu_ns: times.natural(row)?,
            samples: samples.natural(row)?,
            energy: MicroJoules(energies.natural(row)?),
            by_bytes: MicroJoules(by_bytes.natural(row)?),
        });
    }
    Ok(())
}

pub(crate) fn weights(columns: &Columns<'_>, rows: &mut Grouped<WeightRead>) -> Result<()> {
    let starts = columns.times(shared::WINDOW_START)?;
    let claimants = claimants(columns, weights::CLAIMANT)?;
    let (sockets, cores) = (columns.ints(weights::SOCKET)?, columns.ints(weights::CORE)?);
    let [times, coruns, cycles, corun_cycles] =
        [weights::CPU_NS, weights::CORUN_NS, weights::CYCLES, weights::CORUN_CYCLES].map(|column| columns.ints(column));
    let (times, coruns, cycles, corun_cycles) = (times?, coruns?, cycles?, corun_cycles?);
    let (samples, switches) = (columns.ints(weights::SAMPLES)?, columns.ints(weights::SWITCHES)?);
    let factors = columns.ints(weights::FACTOR_PERMILLE)?;
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(WeightRead {
            claimant: claimants(row)?,
            place: Place { socket: sockets.natural(row)?, core: cores.natural(row)? },
            slice: Slice {
                cpu_ns: times.natural(row)?,
                corun_ns: coruns.natural(row)?,
                cycles: cycles.natural(row)?,
                corun_cycles: corun_cycles.natural(row)?,
                samples: samples.natural(row)?,
                switches: switches.natural(row)?,
            },
            factor: Factor(factors.natural(row)?),
        });
    }
    Ok(())
}

pub(super) fn thread_ids<'a>(columns: &'a Columns<'a>) -> Result<impl Fn(usize) -> Result<ThreadId> + use<'a>> {
    let (pids, tids) = (columns.ints(shared::PID)?, columns.ints(shared::TID)?);
    let (process_starts, thread_starts) = (columns.times(shared::PROCESS_START)?, columns.times(shared::THREAD_START)?);
    Ok(move |row| Ok((pids.natural(row)?, process_starts.get(row)?, tids.natural(row)?, thread_starts.get(row)?)))
}

/// A group, or a thread by its identity.
pub(crate) type ReadClaimant = Result<Claimant, ThreadId>;

/// What each row is about, by the table's column that tells threads from groups.
pub(super) fn claimants<'a>(
    columns: &'a Columns<'a>,
    column: Column<kind::Name>,
) -> Result<impl Fn(usize) -> Result<ReadClaimant> + use<'a>> {
    let (names, ids) = (columns.texts(column)?, thread_ids(columns)?);
    let group = |name: &str| Claimant::GROUPS.into_iter().find(|group| group.name() == name);
    Ok(move |row| match names.get(row)? {
        "thread" => Ok(Err(ids(row)?)),
        _ => Ok(Ok(names.name_of(row, group)?)),
    })
}
