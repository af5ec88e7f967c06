//! Defines the tables that a rollup has in place of `branches` and `methods`, under the same names. The
//! other tables of a rollup are as recorded, but for `weights`, which it has not.

use super::{
    Column, ColumnOf, InWindow, MethodRecord, OfProcess, Table, WindowKey, Work, int, joined, kind, label_columns,
    methods::{self, OfMethod},
    process_columns,
    shared::{BY_BYTES_UJ, CPU_NS, ENERGY_UJ, SAMPLES},
    window_columns,
    work::{CATEGORY, STACK_ID},
};
use crate::attribution::window_report::{Category, ProcessRef};

pub(crate) const SQUARES_UJ2: Column<kind::Int> = Column::quantity(
    "squares_uj2",
    "attribution",
    "sum over samples of the squared energy each stands for, to two digits; adds up over rows",
)
.unit("µJ²");
pub(crate) const INFERRED_UJ: Column<kind::Int> = Column::quantity(
    "inferred_uj",
    "attribution",
    "energy in addition to energy_uj that light windows get by samples of several windows; negative where it is taken from",
)
.unit("µJ");
pub(crate) const INFERRED_CPU_NS: Column<kind::Int> =
    Column::quantity("inferred_cpu_ns", "attribution", "the same for cpu_ns").unit("ns");
pub(crate) const INFERRED_SQUARES_UJ2: Column<kind::Int> =
    Column::quantity("inferred_squares_uj2", "attribution", "by how much squares_uj2 grows with inferred_uj, or falls")
        .unit("µJ²");
pub(crate) const UNSAMPLED_UJ: Column<kind::Int> = Column::quantity(
    "unsampled_uj",
    "attribution",
    "part of energy_uj + inferred_uj that is of windows in which no sample hit the thread",
)
.unit("µJ");
pub(crate) const INFERRED_SELF_UJ: Column<kind::Int> = Column::quantity(
    "inferred_self_uj",
    "attribution",
    "energy in addition to self_uj that light windows get by samples of several windows; negative where it is taken from",
)
.unit("µJ");
pub(crate) const INFERRED_TOTAL_UJ: Column<kind::Int> =
    Column::quantity("inferred_total_uj", "attribution", "the same for total_uj").unit("µJ");

/// What samples of several windows say of a call path in light windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inferred {
    /// Negative for a path that it is taken from.
    pub(crate) energy_uj: i64,
    pub(crate) cpu_ns: i64,
    pub(crate) squares_uj2: i64,
    /// Energy with that which is of windows without a sample.
    pub(crate) unsampled_uj: u64,
}

impl Inferred {
    pub(crate) const fn plus(&mut self, other: Self) {
        self.energy_uj = self.energy_uj.saturating_add(other.energy_uj);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.squares_uj2 = self.squares_uj2.saturating_add(other.squares_uj2);
        self.unsampled_uj = self.unsampled_uj.saturating_add(other.unsampled_uj);
    }
}

pub struct RollupBranches;

pub struct RollupBranchRecord<'a> {
    pub(crate) key: WindowKey<'a>,
    pub(crate) process: &'a ProcessRef,
    pub(crate) category: Category,
    pub(crate) stack_id: i64,
    pub(crate) work: Work,
    pub(crate) squares_uj2: u64,
    pub(crate) inferred: Inferred,
}

pub struct RollupMethods;

pub struct RollupMethodRecord<'a> {
    pub(crate) method: MethodRecord<'a>,
    pub(crate) inferred_self_uj: i64,
    pub(crate) inferred_total_uj: i64,
}

impl InWindow for RollupBranches {
    fn key<'r>(row: &'r RollupBranchRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for RollupBranches {
    fn process<'r>(row: &'r RollupBranchRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl InWindow for RollupMethods {
    fn key<'r>(row: &'r RollupMethodRecord<'_>) -> &'r WindowKey<'r> {
        &row.method.key
    }
}

impl OfProcess for RollupMethods {
    fn process<'r>(row: &'r RollupMethodRecord<'_>) -> &'r ProcessRef {
        row.method.method.process
    }
}

impl OfMethod for RollupMethods {
    fn method<'r>(row: &'r RollupMethodRecord<'_>) -> &'r MethodRecord<'r> {
        &row.method
    }
}

impl Table for RollupBranches {
    const NAME: &'static str = "branches";
    const ROW: &'static str = "a call path of all threads of a category in a process, in a window of a rollup; stacks has its \
                               branch_id";
    const BY_POLICY: bool = true;
    type Row<'a> = RollupBranchRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let ids =
            vec![CATEGORY.of::<Self>(|r| Some(r.category.name().into())), STACK_ID.of::<Self>(|r| Some(r.stack_id))];
        let figures = vec![
            ENERGY_UJ.of::<Self>(|r| int(r.work.energy_uj)),
            CPU_NS.of::<Self>(|r| int(r.work.cpu_ns)),
            SAMPLES.of::<Self>(|r| int(r.work.samples)),
            BY_BYTES_UJ.of::<Self>(|r| int(r.work.by_bytes_uj)),
            SQUARES_UJ2.of::<Self>(|r| int(r.squares_uj2)),
            INFERRED_UJ.of::<Self>(|r| Some(r.inferred.energy_uj)),
            INFERRED_CPU_NS.of::<Self>(|r| Some(r.inferred.cpu_ns)),
            INFERRED_SQUARES_UJ2.of::<Self>(|r| Some(r.inferred.squares_uj2)),
            UNSAMPLED_UJ.of::<Self>(|r| int(r.inferred.unsampled_uj)),
        ];
        joined([window_columns(), process_columns(), ids, figures, label_columns()])
    }
}

impl Table for RollupMethods {
    const NAME: &'static str = "methods";
    const ROW: &'static str = "a method of a process, as one kind of code, over the windows of a rollup that were written \
                               together; self figures sum to the threads of these windows";
    const BY_POLICY: bool = true;
    type Row<'a> = RollupMethodRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let inferred = vec![
            INFERRED_SELF_UJ.of::<Self>(|r| Some(r.inferred_self_uj)),
            INFERRED_TOTAL_UJ.of::<Self>(|r| Some(r.inferred_total_uj)),
        ];
        let shares = methods::share_columns();
        joined([methods::span_columns(), process_columns(), methods::name_columns(), shares, inferred, label_columns()])
    }
}
