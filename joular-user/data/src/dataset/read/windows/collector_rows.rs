//! Reads tables `collections` and `gc_charges`, by window, as attribution wants them: without energy.

use super::{Grouped, ThreadId, work_rows::since_1970_ns, work_rows::thread_ids};
use crate::{
    attribution::{
        collector::{ChargeRow, CollectionRow},
        window_report::{Category, ProcessRef},
    },
    dataset::{
        error::Result,
        read::columns::{Columns, Texts},
        tables::{collections, shared, work},
    },
    model::{
        target_text::TargetText,
        units::{MicroJoules, Pid, Tid},
    },
};

/// A row, without the position of its process.
pub(crate) struct CollectionRead {
    pub(crate) process: ProcessRef,
    pub(crate) row: CollectionRow,
    pub(crate) written: MicroJoules,
}

/// The same, without the position of its path.
pub(crate) struct ChargeRead {
    pub(crate) thread: ThreadId,
    pub(crate) comm: TargetText,
    pub(crate) stack_id: i64,
    name: TargetText,
    category: Category,
    since_young_bytes: u64,
    since_old_bytes: u64,
    window_bytes: u64,
    young_survived_bytes: u64,
    old_survived_bytes: u64,
    /// By allocation, by survival.
    pub(crate) written: [MicroJoules; 2],
}

impl ChargeRead {
    pub(crate) fn process(&self) -> ProcessRef {
        ProcessRef { pid: Pid(self.thread.0), start_boottime_ns: since_1970_ns(self.thread.1), comm: self.comm.clone() }
    }

    pub(crate) fn row(&self, process: usize, branch: crate::stacks::BranchIndex) -> ChargeRow {
        ChargeRow {
            process,
            tid: Tid(self.thread.2),
            start_boottime_ns: since_1970_ns(self.thread.3),
            name: self.name.clone(),
            category: self.category,
            branch,
            since_young_bytes: self.since_young_bytes,
            since_old_bytes: self.since_old_bytes,
            window_bytes: self.window_bytes,
            young_survived_bytes: self.young_survived_bytes,
            old_survived_bytes: self.old_survived_bytes,
            charged: MicroJoules(0),
            charged_by_survival: MicroJoules(0),
        }
    }
}

pub(crate) fn collections(columns: &Columns<'_>, rows: &mut Grouped<CollectionRead>) -> Result<()> {
    let starts = columns.times(shared::WINDOW_START)?;
    let (pids, process_starts) = (columns.ints(shared::PID)?, columns.times(shared::PROCESS_START)?);
    let (comms, collectors) = (columns.texts(shared::COMM)?, columns.texts(collections::COLLECTOR)?);
    let (causes, since_starts) = (columns.texts(collections::CAUSE)?, columns.ints(collections::SINCE_START_NS)?);
    let [durations, befores, afters, energies] =
        [collections::DURATION_NS, collections::BEFORE_BYTES, collections::AFTER_BYTES, collections::ENERGY_UJ]
            .map(|column| columns.ints(column));
    let (durations, befores, afters, energies) = (durations?, befores?, afters?, energies?);
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(CollectionRead {
            process: ProcessRef {
                pid: Pid(pids.natural(row)?),
                start_boottime_ns: since_1970_ns(process_starts.get(row)?),
                comm: comms.get(row)?.into(),
            },
            row: CollectionRow {
                process: 0,
                collector: collectors.get(row)?.into(),
                cause: causes.maybe(row).map(Into::into),
                since_start_ns: since_starts.get(row)?,
                duration_ns: durations.maybe_natural(row)?,
                before_bytes: befores.natural(row)?,
                after_bytes: afters.maybe_natural(row)?,
                // Their table is copied.
                ages: Vec::new(),
                energy: MicroJoules(0),
            },
            written: MicroJoules(energies.natural(row)?),
        });
    }
    Ok(())
}

pub(crate) fn charges(columns: &Columns<'_>, rows: &mut Grouped<ChargeRead>) -> Result<()> {
    let (starts, ids) = (columns.times(shared::WINDOW_START)?, thread_ids(columns)?);
    let (comms, names) = (columns.texts(shared::COMM)?, columns.texts(work::THREAD_NAME)?);
    let (categories, stack_ids) = (columns.texts(work::CATEGORY)?, columns.ints(work::STACK_ID)?);
    let [young, old, window] =
        [collections::SINCE_YOUNG_BYTES, collections::SINCE_OLD_BYTES, collections::WINDOW_BYTES]
            .map(|column| columns.ints(column));
    let (young, old, window) = (young?, old?, window?);
    let young_survived = columns.ints(collections::YOUNG_SURVIVED_BYTES)?;
    let old_survived = columns.ints(collections::OLD_SURVIVED_BYTES)?;
    let charged = columns.ints(collections::GC_CHARGED_UJ)?;
    let by_survival = columns.ints(collections::GC_CHARGED_BY_SURVIVAL_UJ)?;
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(ChargeRead {
            thread: ids(row)?,
            comm: comms.get(row)?.into(),
            stack_id: stack_ids.get(row)?,
            name: names.get(row)?.into(),
            category: category(&categories, row)?,
            since_young_bytes: young.natural(row)?,
            since_old_bytes: old.natural(row)?,
            window_bytes: window.natural(row)?,
            young_survived_bytes: young_survived.natural(row)?,
            old_survived_bytes: old_survived.natural(row)?,
            written: [MicroJoules(charged.natural(row)?), MicroJoules(by_survival.natural(row)?)],
        });
    }
    Ok(())
}

fn category(categories: &Texts<'_>, row: usize) -> Result<Category> {
    categories.name_of(row, |name| Category::ALL.into_iter().find(|category| category.name() == name))
}
