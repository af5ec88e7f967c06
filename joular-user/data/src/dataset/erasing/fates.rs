//! Says once of each table what becomes of its rows about processes that are erased.

use crate::dataset::{
    column::Table as _,
    tables::{
        Ages, Allocations, Amounts, Branches, Collections, Counters, GcCharges, Io, Jvms, Marks, Methods, Processes,
        Quality, Runs, Stacks, Threads, Weights, Windows,
    },
};

/// What becomes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No row is about a process.
    Kept,
    /// The same, but for the words that joular-bpf was called with: they may name a command that is erased.
    Unsaid,
    /// One row in place of theirs, which says that they were erased.
    Described,
    /// Only those stay that rows of others refer to.
    Referred,
    /// Sums in place of them: an audit needs what they have.
    Summed,
    /// They go. No sum is made of them but within the process.
    Removed,
    /// A rollup has no such rows: bytes and counts are amounts in it, and a run as it was recorded is rolled up first.
    RolledUp,
}

/// All tables of a data set.
pub(crate) const FATES: [(&str, Fate); 18] = [
    (Runs::NAME, Fate::Unsaid),
    (Processes::NAME, Fate::Described),
    (Stacks::NAME, Fate::Referred),
    (Branches::NAME, Fate::Summed),
    (Methods::NAME, Fate::Summed),
    (Quality::NAME, Fate::Summed),
    // Parts of a JVM: what stands for the erased is no JVM.
    (Jvms::NAME, Fate::Removed),
    (Threads::NAME, Fate::Summed),
    (Weights::NAME, Fate::RolledUp),
    (Marks::NAME, Fate::RolledUp),
    (Counters::NAME, Fate::RolledUp),
    (Allocations::NAME, Fate::RolledUp),
    (Collections::NAME, Fate::RolledUp),
    (Ages::NAME, Fate::RolledUp),
    (GcCharges::NAME, Fate::RolledUp),
    (Io::NAME, Fate::RolledUp),
    (Amounts::NAME, Fate::Summed),
    // Of the whole host.
    (Windows::NAME, Fate::Kept),
];

/// That of a table; one that is not known has no rows.
pub(crate) fn of(table: &str) -> Fate {
    FATES.into_iter().find(|(name, _)| *name == table).map_or(Fate::Removed, |(_, fate)| fate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{
        column::Table,
        tables::{ForTable, FrameTable, OF_ROLLUPS, TABLES, list, shared},
    };

    /// Each table, and whether its rows may be about a process.
    struct Tables(Vec<(&'static str, bool)>);

    impl ForTable for Tables {
        fn table<T: Table>(&mut self) {
            // Within `stacks`.
            if T::NAME != FrameTable::NAME {
                let pid = shared::PID.name();
                self.0.push((T::NAME, T::columns().iter().any(|column| column.name() == pid)));
            }
        }
    }

    #[test]
    fn no_table_is_forgotten_and_none_with_processes_is_kept() {
        let mut tables = Tables(Vec::new());
        list::each(&mut tables);
        let names: Vec<&str> = tables.0.iter().map(|(name, _)| *name).collect();
        assert_eq!(FATES.map(|(name, _)| name).to_vec(), names, "say in FATES what becomes of each table");
        for (name, has_pids) in tables.0 {
            assert_eq!(has_pids, !matches!(of(name), Fate::Kept | Fate::Unsaid | Fate::Referred), "{name}");
        }
        for table in TABLES {
            assert_eq!(of(table) == Fate::RolledUp, !OF_ROLLUPS.contains(&table), "{table}");
        }
    }
}
