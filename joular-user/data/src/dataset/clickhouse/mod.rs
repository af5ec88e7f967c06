//! Keeps data sets in ClickHouse: the tables that it has there, as SQL, and bundles as it takes them.
//!
//! [`ddl`] makes the SQL of a template, `schema.sql`, and of the tables' columns ([`columns`]). A row of the table `bundles`
//! is a run's bundle: a column for each table that is kept, with the table's rows as a list. The table holds nothing; views
//! bring the rows to where they belong. [`gather`] makes one Parquet file of many bundles, so that one `INSERT` brings all
//! of them, and says what the file has of each run ([`figures`]).

mod align;
mod columns;
mod ddl;
mod figures;
#[cfg(test)]
pub(crate) mod fixture;
mod gather;

pub use self::{
    ddl::{DATABASE, Ddl, VERSION, is_name, mark},
    figures::{Amount, RunFigures},
    gather::{Bundle, Gathered},
};
use super::tables::{ForTable, Processes, RollupBranches, RollupMethods, Runs, Stacks, Windows};

/// For each table of a bundle that ClickHouse gets, in the order of the columns of `bundles`.
fn each(visitor: &mut impl ForTable) {
    visitor.table::<Runs>();
    visitor.table::<Windows>();
    visitor.table::<Processes>();
    visitor.table::<Stacks>();
    visitor.table::<RollupMethods>();
    visitor.table::<RollupBranches>();
}
