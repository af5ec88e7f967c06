//! Reads table `io`, by window, as attribution wants it.

use std::collections::HashMap;

use joular_ebpf::abi::IoKind;

use super::{Grouped, RowsOf, ThreadId, place, work_rows::claimants};
use crate::{
    attribution::{
        moved::{Moved, MovedRow},
        work::Claimant,
    },
    dataset::{
        error::Result,
        read::{columns::Columns, stacks::ReadStacks},
        tables::{counters, io, shared, work},
    },
    model::byte_costs::BytesByKind,
};

/// A row, without the positions of its thread and of its path.
pub(crate) struct MovedRead {
    /// A group, or a thread and its path.
    pub(crate) claimant: Result<Claimant, (ThreadId, i64)>,
    pub(crate) bytes: BytesByKind,
    pub(crate) samples: u64,
    /// Whether the kernel says what was read from devices and written to them.
    pub(crate) counts_devices: bool,
}

pub(crate) fn moved(columns: &Columns<'_>, rows: &mut Grouped<MovedRead>) -> Result<()> {
    let starts = columns.times(shared::WINDOW_START)?;
    let (claimants, stack_ids) = (claimants(columns, counters::CLAIMANT)?, columns.ints(work::STACK_ID)?);
    let kinds = IoKind::ALL.into_iter().map(|kind| columns.ints(io::bytes_of(kind))).collect::<Result<Vec<_>>>()?;
    let samples = columns.ints(io::SAMPLES)?;
    for row in 0..columns.rows() {
        let claimant = match claimants(row)? {
            Ok(group) => Ok(group),
            Err(thread) => Err((thread, stack_ids.get(row)?)),
        };
        let mut bytes = BytesByKind::default();
        for (sum, of_kind) in bytes.iter_mut().zip(&kinds) {
            *sum = of_kind.maybe_natural(row)?.unwrap_or(0);
        }
        let counts_devices = kinds[IoKind::DeviceRead as usize].maybe(row).is_some();
        rows.entry(starts.get(row)?).or_default().push(MovedRead {
            claimant,
            bytes,
            samples: samples.natural(row)?,
            counts_devices,
        });
    }
    Ok(())
}

impl RowsOf {
    /// `None` if nothing was counted.
    pub(super) fn moved(
        &self,
        positions: &HashMap<ThreadId, usize>,
        stacks: &ReadStacks,
    ) -> Result<Option<Moved>, String> {
        let row = |read: &MovedRead| {
            let (claimant, branch) = match &read.claimant {
                Ok(group) => (*group, None),
                Err((thread, stack_id)) => {
                    let position = place(positions, thread)?;
                    let branch = stacks.get(*stack_id).ok_or_else(|| format!("stack {stack_id} has no row"))?;
                    (Claimant::Thread(position), Some(branch))
                }
            };
            Ok(MovedRow { claimant, branch, bytes: read.bytes, samples: read.samples })
        };
        let Some(first) = self.moved.first() else { return Ok(None) };
        let rows = self.moved.iter().map(row).collect::<Result<Vec<_>, String>>()?;
        Ok(Some(Moved { counts_devices: first.counts_devices, rows }))
    }
}
