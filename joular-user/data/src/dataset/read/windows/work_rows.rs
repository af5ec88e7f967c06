//! Tables `threads`, `branches` and `weights`, by window.

use super::{Grouped, ThreadId};
use crate::{
    attribution::{
        report::{Category, ProcessRef, ThreadRow},
        work::{Claimant, Place, Slice},
    },
    dataset::{error::Result, read::columns::Columns},
    model::units::{MicroJoules, Pid, Tid},
};

pub(crate) struct ThreadRead {
    pub(crate) id: ThreadId,
    comm: String,
    name: String,
    category: Category,
    cpu_ns: u64,
    samples: u64,
    pub(crate) energy: MicroJoules,
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
        }
    }
}

/// Start times are wall-clock times in a data set: see `WindowWork::start`.
fn since_1970_ns(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).saturating_mul(1000)
}

pub(crate) struct BranchRead {
    pub(crate) thread: ThreadId,
    pub(crate) stack_id: i64,
    pub(crate) cpu_ns: u64,
    pub(crate) samples: u64,
    pub(crate) energy: MicroJoules,
}

pub(crate) struct WeightRead {
    /// A group, or a thread by its identity.
    pub(crate) claimant: Result<Claimant, ThreadId>,
    pub(crate) place: Place,
    pub(crate) slice: Slice,
}

pub(crate) fn threads(columns: &Columns<'_>, rows: &mut Grouped<ThreadRead>) -> Result<()> {
    let starts = columns.times("window_start")?;
    let ids = thread_ids(columns)?;
    let (comms, names, categories) =
        (columns.texts("comm")?, columns.texts("thread_name")?, columns.texts("category")?);
    let (energies, times, samples) = (columns.ints("energy_uj")?, columns.ints("cpu_ns")?, columns.ints("samples")?);
    for row in 0..columns.rows() {
        let category = |name: &str| Category::ALL.into_iter().find(|category| category.name() == name);
        rows.entry(starts.get(row)?).or_default().push(ThreadRead {
            id: ids(row)?,
            comm: comms.get(row)?.to_owned(),
            name: names.get(row)?.to_owned(),
            category: categories.name_of(row, category)?,
            cpu_ns: times.natural(row)?,
            samples: samples.natural(row)?,
            energy: MicroJoules(energies.natural(row)?),
        });
    }
    Ok(())
}

pub(crate) fn branches(columns: &Columns<'_>, rows: &mut Grouped<BranchRead>) -> Result<()> {
    let starts = columns.times("window_start")?;
    let ids = thread_ids(columns)?;
    let stack_ids = columns.ints("stack_id")?;
    let (energies, times, samples) = (columns.ints("energy_uj")?, columns.ints("cpu_ns")?, columns.ints("samples")?);
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(BranchRead {
            thread: ids(row)?,
            stack_id: stack_ids.get(row)?,
            cpu_ns: times.natural(row)?,
            samples: samples.natural(row)?,
            energy: MicroJoules(energies.natural(row)?),
        });
    }
    Ok(())
}

pub(crate) fn weights(columns: &Columns<'_>, rows: &mut Grouped<WeightRead>) -> Result<()> {
    let starts = columns.times("window_start")?;
    let claimants = columns.texts("claimant")?;
    let ids = thread_ids(columns)?;
    let (sockets, cores) = (columns.ints("socket")?, columns.ints("core")?);
    let [times, coruns, cycles, corun_cycles] =
        ["cpu_ns", "corun_ns", "cycles", "corun_cycles"].map(|name| columns.ints(name));
    let (times, coruns, cycles, corun_cycles) = (times?, coruns?, cycles?, corun_cycles?);
    let (samples, switches) = (columns.ints("samples")?, columns.ints("switches")?);
    for row in 0..columns.rows() {
        let group = |name: &str| Claimant::GROUPS.into_iter().find(|group| group.name() == name);
        let claimant = match claimants.get(row)? {
            "thread" => Err(ids(row)?),
            _ => Ok(claimants.name_of(row, group)?),
        };
        rows.entry(starts.get(row)?).or_default().push(WeightRead {
            claimant,
            place: Place { socket: sockets.natural(row)?, core: cores.natural(row)? },
            slice: Slice {
                cpu_ns: times.natural(row)?,
                corun_ns: coruns.natural(row)?,
                cycles: cycles.natural(row)?,
                corun_cycles: corun_cycles.natural(row)?,
                samples: samples.natural(row)?,
                switches: switches.natural(row)?,
            },
        });
    }
    Ok(())
}

fn thread_ids<'a>(columns: &'a Columns<'a>) -> Result<impl Fn(usize) -> Result<ThreadId> + use<'a>> {
    let (pids, tids) = (columns.ints("pid")?, columns.ints("tid")?);
    let (process_starts, thread_starts) = (columns.times("process_start")?, columns.times("thread_start")?);
    Ok(move |row| Ok((pids.natural(row)?, process_starts.get(row)?, tids.natural(row)?, thread_starts.get(row)?)))
}
