//! How good stacks are.

use super::{
    Column, Get, InWindow, OfProcess, Table, WindowKey, int, joined, label_columns, process_columns,
    stacks::{OfPaths, quality_columns},
    window_columns,
};
use crate::{
    attribution::report::{ProcessRef, QualityRow},
    model::frame::Marker,
    model::quality::PathQuality,
};

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
    const ROW: &'static str = "what the stacks of one process's threads of a category have in common in a window: how they were \
                               obtained, why they end, whether frames lack names; the rows of a process sum to its threads";
    const BY_POLICY: bool = true;
    type Row<'a> = QualityRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let category = Column::<Self>::new(
            "category",
            Get::Name(|r| Some(r.row.category.name().into())),
            "attribution",
            "of the threads: java, gc, jit, vm, native or kernel",
        );
        let figures = vec![
            Column::<Self>::new("energy_uj", Get::Quantity(|r| int(r.row.amount.energy.0)), "attribution", "energy")
                .unit("µJ"),
            Column::<Self>::new("cpu_ns", Get::Quantity(|r| int(r.row.amount.cpu_ns)), "kernel", "on-CPU time")
                .unit("ns"),
            Column::<Self>::new("samples", Get::Int(|r| int(r.row.amount.samples)), "kernel", "samples taken")
                .unit("samples"),
        ];
        joined([window_columns(), process_columns(), vec![category], quality_columns(), figures, label_columns()])
    }
}
