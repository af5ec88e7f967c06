//! Turns a window's collections, and what paths are charged for them, into rows.

use arrow_schema::ArrowError;

use super::rows::Rows;
use crate::{
    attribution::{
        collector::{ChargeRow, CollectionRow},
        window_report::WindowReport,
    },
    dataset::tables::{AgeRecord, ChargeRecord, CollectionRecord, WindowKey},
    stacks::StackTable,
};

impl Rows {
    pub(super) fn collection_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        records(key, report).iter().try_for_each(|record| self.tables.collections.push(record))
    }

    pub(super) fn age_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        for CollectionRecord { process, row, .. } in records(key, report) {
            for (age, bytes) in (1..).zip(&row.ages) {
                let collection = CollectionRecord { key, process, row };
                self.tables.ages.push(&AgeRecord { collection, age, bytes: *bytes })?;
            }
        }
        Ok(())
    }

    pub(super) fn charge_rows<'r>(
        &mut self,
        key: WindowKey<'r>,
        report: &'r WindowReport,
        stacks: &StackTable,
    ) -> Result<(), ArrowError> {
        let record = |row: &'r ChargeRow| {
            let (branch_id, stack_id) = (stacks.branch_id(row.branch), stacks.stack_id(row.branch));
            Some(ChargeRecord { key, process: report.processes.get(row.process)?, row, branch_id, stack_id })
        };
        let mut records: Vec<_> = report.charges.iter().filter_map(record).collect();
        records.sort_by_key(|record| (record.process, record.row.tid, record.row.start_boottime_ns, record.stack_id));
        records.iter().try_for_each(|record| self.tables.gc_charges.push(record))
    }
}

/// In the order of rows: processes, and of one the order in which they began.
fn records<'a>(key: WindowKey<'a>, report: &'a WindowReport) -> Vec<CollectionRecord<'a>> {
    let record =
        |row: &'a CollectionRow| Some(CollectionRecord { key, process: report.processes.get(row.process)?, row });
    let mut records: Vec<_> = report.collections.iter().filter_map(record).collect();
    records.sort_by_key(|record| (record.process, record.row.since_start_ns));
    records
}
