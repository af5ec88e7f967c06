//! Defines energy by the quality of stacks.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, int, joined, kind, label_columns, process_columns,
    shared::{CPU_NS, ENERGY_UJ, SAMPLES},
    stacks::{OfPaths, quality_columns},
    window_columns,
};
use crate::{
    attribution::window_report::{ProcessRef, QualityRow},
    model::frame::Marker,
    model::quality::PathQuality,
};

pub(crate) const CATEGORY: Column<kind::Name> =
    Column::new("category", "attribution", "category of the threads: java, gc, jit, vm, native or kernel");

pub struct Quality;

pub struct QualityRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub row: &'a QualityRow,
}

impl InWindow for Quality {
    fn key<'r>(row: &'r QualityRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Quality {
    fn process<'r>(row: &'r QualityRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl OfPaths for Quality {
    fn quality(row: &QualityRecord<'_>) -> (PathQuality, Option<Marker>) {
        (row.row.quality, row.row.unnamed)
    }
}

impl Table for Quality {
    const NAME: &'static str = "quality";
    const ROW: &'static str = "stacks of one quality, of a process's threads of one category in a window: how they were obtained, \
                               why they end, whether frames lack names; the rows of a process sum to its threads";
    const BY_POLICY: bool = true;
    type Row<'a> = QualityRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let category = CATEGORY.of::<Self>(|r| Some(r.row.category.name().into()));
        let figures = vec![
            ENERGY_UJ.of::<Self>(|r| int(r.row.amount.energy.0)),
            CPU_NS.of::<Self>(|r| int(r.row.amount.cpu_ns)),
            SAMPLES.of::<Self>(|r| int(r.row.amount.samples)),
        ];
        joined([window_columns(), process_columns(), vec![category], quality_columns(), figures, label_columns()])
    }
}
