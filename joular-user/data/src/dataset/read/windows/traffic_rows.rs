//! Reads what memory's energy may be divided by, by window: bytes allocated, and cache misses.

use std::collections::HashMap;

use super::{
    Grouped, RowsOf, ThreadId, place,
    work_rows::{ReadClaimant, claimants, thread_ids},
};
use crate::{
    attribution::{
        allocated::AllocationRow,
        counts::{CountRow, Counts},
        work::Claimant,
    },
    dataset::{
        error::Result,
        read::{columns::Columns, stacks::ReadStacks},
        tables::{allocations, counters, shared, work},
    },
    model::counter::Counter,
};

/// What a thread allocated on one path.
pub(crate) struct AllocatedRead {
    pub(crate) thread: ThreadId,
    pub(crate) stack_id: i64,
    pub(crate) bytes: u64,
    pub(crate) samples: u64,
}

/// Cache misses of a group or a thread.
pub(crate) struct MissesRead {
    pub(crate) claimant: ReadClaimant,
    pub(crate) misses: u64,
}

pub(crate) fn allocated(columns: &Columns<'_>, rows: &mut Grouped<AllocatedRead>) -> Result<()> {
    let (starts, ids) = (columns.times(shared::WINDOW_START)?, thread_ids(columns)?);
    let (stack_ids, bytes) = (columns.ints(work::STACK_ID)?, columns.ints(allocations::ALLOCATED_BYTES)?);
    let samples = columns.ints(allocations::SAMPLES)?;
    for row in 0..columns.rows() {
        rows.entry(starts.get(row)?).or_default().push(AllocatedRead {
            thread: ids(row)?,
            stack_id: stack_ids.get(row)?,
            bytes: bytes.natural(row)?,
            samples: samples.natural(row)?,
        });
    }
    Ok(())
}

pub(crate) fn misses(columns: &Columns<'_>, rows: &mut Grouped<MissesRead>) -> Result<()> {
    let (starts, claimants) = (columns.times(shared::WINDOW_START)?, claimants(columns, counters::CLAIMANT)?);
    let names = columns.texts(counters::COUNTER)?;
    let counts = columns.ints(counters::COUNT)?;
    for row in 0..columns.rows() {
        if names.get(row)? != Counter::CacheMisses.name() {
            continue;
        }
        rows.entry(starts.get(row)?)
            .or_default()
            .push(MissesRead { claimant: claimants(row)?, misses: counts.natural(row)? });
    }
    Ok(())
}

impl RowsOf {
    /// Without classes and what showed where, by which nothing is divided.
    pub(super) fn allocations(
        &self,
        positions: &HashMap<ThreadId, usize>,
        stacks: &ReadStacks,
    ) -> Result<Vec<AllocationRow>, String> {
        let row = |read: &AllocatedRead| {
            let branch = stacks.get(read.stack_id).ok_or_else(|| format!("stack {} has no row", read.stack_id))?;
            let AllocatedRead { thread, bytes, samples, .. } = *read;
            Ok(AllocationRow::new(place(positions, &thread)?, branch, bytes, samples))
        };
        self.allocated.iter().map(row).collect()
    }

    /// Cache misses only; `None` if none were counted.
    pub(super) fn counts(&self, positions: &HashMap<ThreadId, usize>) -> Result<Option<Counts>, String> {
        let row = |read: &MissesRead| {
            let claimant = match &read.claimant {
                Ok(group) => *group,
                Err(thread) => Claimant::Thread(place(positions, thread)?),
            };
            Ok(CountRow { claimant, counts: vec![read.misses] })
        };
        let rows = self.misses.iter().map(row).collect::<Result<Vec<_>, String>>()?;
        Ok((!rows.is_empty()).then(|| Counts { counters: vec![Counter::CacheMisses], rows }))
    }
}
