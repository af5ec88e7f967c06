//! Lists the tables once. The list decides what a flush writes and in which order, where a run's
//! rows wait, and what is documented. A table's name, its rows and whether they depend on the
//! policy stand beside its columns ([`Table`]).

use super::{
    Ages, Allocations, Amounts, Branches, Collections, Counters, FrameTable, GcCharges, Io, Jvms, Marks, Methods,
    Processes, Quality, RollupBranches, RollupMethods, Runs, Stacks, Threads, Weights, Windows,
};
use crate::dataset::{buffer::Buffer, column::Table};

/// Something to be done for each table.
pub(crate) trait ForTable {
    fn table<T: Table>(&mut self);
}

/// Something to be done with each table's rows.
pub(crate) trait ForRows {
    type Error;

    fn rows<T: Table>(&mut self, rows: &mut Buffer<T>) -> Result<(), Self::Error>;
}

macro_rules! tables {
    ($($rows:ident: $table:ident,)*) => {
        /// Names of the tables that a flush writes, in its order.
        pub(crate) const TABLES: [&str; [$($table::NAME),*].len()] = [$($table::NAME),*];

        /// Rows that wait to be written.
        #[derive(Default)]
        pub(crate) struct Buffers {
            $(pub(crate) $rows: Buffer<$table>,)*
        }

        impl Buffers {
            /// Load of the fullest table.
            pub(crate) fn load(&self) -> usize {
                [$(self.$rows.load()),*].into_iter().max().unwrap_or_default()
            }

            /// In the order of writing, until one fails.
            pub(crate) fn each<V: ForRows>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
                $(visitor.rows(&mut self.$rows)?;)*
                Ok(())
            }
        }

        /// For each table that a flush writes, in its order.
        pub(crate) fn each_flushed(visitor: &mut impl ForTable) {
            $(visitor.table::<$table>();)*
        }
    };
}

// `windows` is last: where its rows are, those of the other tables are whole.
tables! {
    processes: Processes,
    stacks: Stacks,
    branches: Branches,
    methods: Methods,
    quality: Quality,
    jvms: Jvms,
    threads: Threads,
    weights: Weights,
    marks: Marks,
    counters: Counters,
    allocations: Allocations,
    collections: Collections,
    ages: Ages,
    gc_charges: GcCharges,
    io: Io,
    amounts: Amounts,
    windows: Windows,
}

/// For each table, and for the columns of a frame within `stacks`.
pub(crate) fn each(visitor: &mut impl ForTable) {
    visitor.table::<Runs>();
    each_flushed(visitor);
    visitor.table::<FrameTable>();
}

/// Tables that a rollup may have rows of, in the order of [`TABLES`]. What the others have is in these, or left out.
pub(crate) const OF_ROLLUPS: [&str; 9] = [
    Processes::NAME,
    Stacks::NAME,
    Branches::NAME,
    Methods::NAME,
    Quality::NAME,
    Jvms::NAME,
    Threads::NAME,
    Amounts::NAME,
    Windows::NAME,
];

/// For each table that a flush writes, in its order, as a rollup has it.
pub(crate) fn each_in_rollup(visitor: &mut impl ForTable) {
    each_flushed(&mut AsRollup(visitor));
}

struct AsRollup<'a, V>(&'a mut V);

impl<V: ForTable> ForTable for AsRollup<'_, V> {
    fn table<T: Table>(&mut self) {
        match T::NAME {
            Branches::NAME => self.0.table::<RollupBranches>(),
            Methods::NAME => self.0.table::<RollupMethods>(),
            _ => self.0.table::<T>(),
        }
    }
}

/// Tables in which nothing depends on the policy.
pub(crate) fn unchanged_by_policy() -> Vec<&'static str> {
    struct Unchanged(Vec<&'static str>);
    impl ForTable for Unchanged {
        fn table<T: Table>(&mut self) {
            if !T::BY_POLICY {
                self.0.push(T::NAME);
            }
        }
    }
    let mut unchanged = Unchanged(Vec::new());
    each_flushed(&mut unchanged);
    unchanged.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_rollups_are_in_the_order_of_all() {
        let mut all = TABLES.into_iter();
        assert!(OF_ROLLUPS.iter().all(|table| all.any(|other| other == *table)), "{OF_ROLLUPS:?}");
    }

    #[test]
    fn windows_are_written_last_and_what_no_policy_changes_is_known() {
        assert_eq!(TABLES.last(), Some(&"windows"));
        assert_eq!(
            unchanged_by_policy(),
            ["processes", "stacks", "marks", "counters", "allocations", "ages", "io", "amounts"]
        );
    }
}
