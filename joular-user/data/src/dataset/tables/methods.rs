//! Energy by method.

use super::{
    Column, Get, InWindow, OfProcess, Table, WindowKey, int, joined, label_columns, process_columns, window_columns,
};
use crate::{
    attribution::report::{MethodRow, ProcessRef},
    model::frame::Frame,
};

pub struct Methods;

pub struct MethodRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub row: &'a MethodRow,
    pub frame: &'a Frame,
}

impl InWindow for Methods {
    fn key<'r>(row: &'r MethodRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Methods {
    fn process<'r>(row: &'r MethodRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl Table for Methods {
    const NAME: &'static str = "methods";
    const ROW: &'static str = "a method of a process, as one kind of code, in a window; self figures sum to threads";
    const BY_POLICY: bool = true;
    type Row<'a> = MethodRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        joined([window_columns(), process_columns(), name_columns(), share_columns(), label_columns()])
    }
}

fn name_columns() -> Vec<Column<Methods>> {
    vec![
        Column::<Methods>::new(
            "method",
            Get::Name(|r| Some(r.frame.method().into())),
            "symbols",
            "package.Class.name; plain name outside Java; a [marker] for what is not known",
        ),
        Column::<Methods>::new(
            "signature",
            Get::Name(|r| r.frame.signature.as_deref().map(Into::into)),
            "symbols",
            "JVM signature, tells overloads apart",
        )
        .null("not Java, or not known"),
        Column::<Methods>::new(
            "kind",
            Get::Name(|r| Some(r.frame.kind.name().into())),
            "symbols",
            "interpreted, compiled, compiled-c1, compiled-c2, inlined, native-wrapper, stub, vm, native, kernel, marker",
        ),
        Column::<Methods>::new(
            "module",
            Get::Name(|r| r.frame.module.as_deref().map(Into::into)),
            "symbols",
            "library, executable or kernel module",
        )
        .null("Java, or not known"),
    ]
}

fn share_columns() -> Vec<Column<Methods>> {
    vec![
        Column::<Methods>::new(
            "self_uj",
            Get::Quantity(|r| int(r.row.own.energy.0)),
            "attribution",
            "energy while it was the leaf",
        )
        .unit("µJ"),
        Column::<Methods>::new(
            "total_uj",
            Get::Quantity(|r| int(r.row.total.energy.0)),
            "attribution",
            "energy of branches with it, each once; not to be summed over methods",
        )
        .unit("µJ"),
        Column::<Methods>::new(
            "self_cpu_ns",
            Get::Quantity(|r| int(r.row.own.cpu_ns)),
            "kernel",
            "on-CPU time as the leaf",
        )
        .unit("ns"),
        Column::<Methods>::new(
            "total_cpu_ns",
            Get::Quantity(|r| int(r.row.total.cpu_ns)),
            "kernel",
            "on-CPU time with it",
        )
        .unit("ns"),
        Column::<Methods>::new("self_samples", Get::Int(|r| int(r.row.own.samples)), "kernel", "samples as the leaf")
            .unit("samples"),
        Column::<Methods>::new("total_samples", Get::Int(|r| int(r.row.total.samples)), "kernel", "samples with it")
            .unit("samples"),
        Column::<Methods>::new(
            "self_sigma_uj",
            Get::Quantity(|r| int(r.row.own.sigma.0)),
            "attribution",
            "standard deviation of self_uj from sampling; adds in quadrature over windows",
        )
        .unit("µJ"),
        Column::<Methods>::new(
            "total_sigma_uj",
            Get::Quantity(|r| int(r.row.total.sigma.0)),
            "attribution",
            "the same for total_uj",
        )
        .unit("µJ"),
    ]
}
