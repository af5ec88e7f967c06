//! Sums up what a bundle says of its run, to be compared with what a database says.

use arrow_array::{
    Array as _, Int64Array, RecordBatch, StructArray,
    cast::AsArray as _,
    types::{Int64Type, TimestampMicrosecondType},
};

use crate::{
    dataset::{
        column::{Column, Table as _, kind},
        tables::{Processes, RollupBranches, RollupMethods, Runs, Windows, methods, rollup, runs, shared, windows},
    },
    model::units::UnixMicros,
};

/// Rows of a table, and their energy if rows have some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub rows: u64,
    pub energy_uj: i64,
}

/// What there is of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFigures {
    pub run_id: String,
    /// Of the schema that wrote it.
    pub schema_version: i64,
    pub runs: u64,
    pub processes: u64,
    /// With the energy that was measured.
    pub windows: Amount,
    /// With the energy of methods themselves.
    pub methods: Amount,
    /// Energy of call paths.
    pub paths_uj: i64,
    /// Start of the first and of the last window; `None` without windows.
    pub span: Option<(UnixMicros, UnixMicros)>,
}

impl RunFigures {
    /// Of a bundle as [`super::align`] leaves it.
    pub(super) fn of(bundle: &RecordBatch) -> Self {
        let windows = Rows::of(bundle, Windows::NAME);
        let methods = Rows::of(bundle, RollupMethods::NAME);
        let branches = Rows::of(bundle, RollupBranches::NAME);
        let runs = Rows::of(bundle, Runs::NAME);
        let inferred = |rows: &Rows, own, more| rows.sum(own).saturating_add(rows.sum(more));
        Self {
            run_id: runs.text(&runs::RUN_ID.name()),
            schema_version: runs.first(runs::SCHEMA_VERSION),
            runs: runs.count(),
            processes: Rows::of(bundle, Processes::NAME).count(),
            windows: Amount { rows: windows.count(), energy_uj: windows.sum(windows::MEASURED_UJ) },
            methods: Amount {
                rows: methods.count(),
                energy_uj: inferred(&methods, methods::SELF_UJ, rollup::INFERRED_SELF_UJ),
            },
            paths_uj: inferred(&branches, shared::ENERGY_UJ, rollup::INFERRED_UJ),
            span: windows.span(),
        }
    }
}

/// All rows of a table in a bundle. What is not there has no rows.
struct Rows(Option<StructArray>);

impl Rows {
    fn of(bundle: &RecordBatch, table: &str) -> Self {
        let list = bundle.column_by_name(table).and_then(|column| column.as_list_opt::<i32>());
        Self(list.and_then(|list| list.values().as_struct_opt().cloned()))
    }

    fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |rows| rows.len() as u64)
    }

    fn numbers(&self, column: Column<kind::Int>) -> Option<&Int64Array> {
        self.0.as_ref()?.column_by_name(&column.name())?.as_primitive_opt::<Int64Type>()
    }

    fn sum(&self, column: Column<kind::Int>) -> i64 {
        self.numbers(column).into_iter().flatten().flatten().fold(0, i64::saturating_add)
    }

    fn first(&self, column: Column<kind::Int>) -> i64 {
        self.numbers(column).into_iter().flatten().next().flatten().unwrap_or_default()
    }

    fn text(&self, name: &str) -> String {
        let texts = self.0.as_ref().and_then(|rows| rows.column_by_name(name)?.as_string_opt::<i32>());
        texts.into_iter().flatten().next().flatten().unwrap_or_default().to_owned()
    }

    fn span(&self) -> Option<(UnixMicros, UnixMicros)> {
        let starts = self.0.as_ref()?.column_by_name(&shared::WINDOW_START.name())?;
        let starts = starts.as_primitive_opt::<TimestampMicrosecondType>()?;
        let (first, last) = (starts.iter().flatten().min()?, starts.iter().flatten().max()?);
        Some((UnixMicros(first), UnixMicros(last)))
    }
}
