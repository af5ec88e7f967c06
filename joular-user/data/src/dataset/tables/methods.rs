//! Defines energy by method, summed over the windows of a file ([`crate::dataset::method_sums`]).

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, int, joined, kind, label_columns, process_columns,
    shared::{self, RUN_ID},
};
use crate::{
    attribution::window_report::ProcessRef,
    dataset::method_sums::{SummedMethod, two_digits},
};

const WINDOW_START: Column<kind::Time> = shared::WINDOW_START.meaning("start of the first window that the row covers");
const WINDOW_NS: Column<kind::Int> = shared::WINDOW_NS.meaning("length of all windows that the row covers");
pub(crate) const METHOD: Column<kind::Name> = Column::new(
    "method",
    "symbols",
    "package.Class.name; plain name outside Java; a [marker] where the name is not known",
);
pub(crate) const SIGNATURE: Column<kind::Name> =
    Column::new("signature", "symbols", "JVM signature; it distinguishes overloads").null("not Java, or not known");
pub(crate) const KIND: Column<kind::Name> = Column::new(
    "kind",
    "symbols",
    "interpreted, compiled, compiled-c1, compiled-c2, inlined, native-wrapper, stub, vm, native, kernel, marker",
);
pub(crate) const MODULE: Column<kind::Name> =
    Column::new("module", "symbols", "library, executable or kernel module").null("Java, or not known");
pub(crate) const SELF_UJ: Column<kind::Int> =
    Column::quantity("self_uj", "attribution", "energy of branches that end in the method").unit("µJ");
pub(crate) const TOTAL_UJ: Column<kind::Int> = Column::quantity(
    "total_uj",
    "attribution",
    "energy of branches that contain the method, each once; do not sum over methods",
)
.unit("µJ");
pub(crate) const SELF_CPU_NS: Column<kind::Int> =
    Column::quantity("self_cpu_ns", "kernel", "on-CPU time of branches that end in it").unit("ns");
pub(crate) const TOTAL_CPU_NS: Column<kind::Int> =
    Column::quantity("total_cpu_ns", "kernel", "on-CPU time of branches that contain it").unit("ns");
pub(crate) const SELF_SAMPLES: Column<kind::Int> =
    Column::new("self_samples", "kernel", "samples of branches that end in it").unit("samples");
pub(crate) const TOTAL_SAMPLES: Column<kind::Int> =
    Column::new("total_samples", "kernel", "samples of branches that contain it").unit("samples");
pub(crate) const SELF_SIGMA_UJ: Column<kind::Int> = Column::quantity(
    "self_sigma_uj",
    "attribution",
    "standard deviation of self_uj from sampling, of this row alone, to two digits; self_squares_uj2 adds up",
)
.unit("µJ");
pub(crate) const TOTAL_SIGMA_UJ: Column<kind::Int> =
    Column::quantity("total_sigma_uj", "attribution", "the same for total_uj").unit("µJ");
pub(crate) const SELF_SQUARES_UJ2: Column<kind::Int> = Column::quantity(
    "self_squares_uj2",
    "attribution",
    "sum over self_samples of the squared energy each stands for, to two digits; adds up over rows",
)
.unit("µJ²");
pub(crate) const TOTAL_SQUARES_UJ2: Column<kind::Int> =
    Column::quantity("total_squares_uj2", "attribution", "the same for total_samples").unit("µJ²");

pub(crate) const SELF_BY_BYTES_UJ: Column<kind::Int> = Column::quantity(
    "self_by_bytes_uj",
    "attribution",
    "part of self_uj that goes by bytes, whatever samples say: network, disk, and memory with --dram-by allocation",
)
.unit("µJ");
pub(crate) const TOTAL_BY_BYTES_UJ: Column<kind::Int> =
    Column::quantity("total_by_bytes_uj", "attribution", "the same part of total_uj").unit("µJ");
pub(crate) const GC_CHARGED_UJ: Column<kind::Int> = Column::quantity(
    "gc_charged_uj",
    "attribution",
    "part of jvms.gc_uj that it is charged for, by bytes that it allocated; no part of self_uj",
)
.unit("µJ");
pub(crate) const TOTAL_GC_CHARGED_UJ: Column<kind::Int> = Column::quantity(
    "total_gc_charged_uj",
    "attribution",
    "the same by bytes allocated while it stood anywhere in the path; no part of total_uj",
)
.unit("µJ");

pub struct Methods;

pub struct MethodRecord<'a> {
    /// Of the windows that the row is a sum of.
    pub key: WindowKey<'a>,
    pub method: &'a SummedMethod<'a>,
}

/// Rows that are about a method.
pub(super) trait OfMethod: OfProcess {
    fn method<'r>(row: &'r Self::Row<'_>) -> &'r MethodRecord<'r>;
}

impl OfMethod for Methods {
    fn method<'r>(row: &'r MethodRecord<'_>) -> &'r MethodRecord<'r> {
        row
    }
}

impl InWindow for Methods {
    fn key<'r>(row: &'r MethodRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Methods {
    fn process<'r>(row: &'r MethodRecord<'_>) -> &'r ProcessRef {
        row.method.process
    }
}

impl Table for Methods {
    const NAME: &'static str = "methods";
    const ROW: &'static str = "a method of a process, as one kind of code, over the windows that were written together (60 s, \
                               unless --flush says otherwise); self figures sum to the threads of these windows";
    const BY_POLICY: bool = true;
    type Row<'a> = MethodRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let charged = vec![
            GC_CHARGED_UJ.of::<Self>(|r| int(r.method.own.gc_charged.0)),
            TOTAL_GC_CHARGED_UJ.of::<Self>(|r| int(r.method.total.gc_charged.0)),
        ];
        joined([span_columns(), process_columns(), name_columns(), share_columns(), charged, label_columns()])
    }
}

pub(super) fn span_columns<T: OfMethod>() -> Vec<ColumnOf<T>> {
    vec![
        RUN_ID.of::<T>(|r| Some(T::key(r).run_id.into())),
        WINDOW_START.of::<T>(|r| Some(T::key(r).start.0)),
        WINDOW_NS.of::<T>(|r| int(T::key(r).length_ns)),
    ]
}

pub(super) fn name_columns<T: OfMethod>() -> Vec<ColumnOf<T>> {
    vec![
        METHOD.of::<T>(|r| Some(T::method(r).method.frame.method().into_raw().into())),
        SIGNATURE.of::<T>(|r| T::method(r).method.frame.signature.as_ref().map(|text| text.raw().into())),
        KIND.of::<T>(|r| Some(T::method(r).method.frame.kind.name().into())),
        MODULE.of::<T>(|r| T::method(r).method.frame.module.as_ref().map(|text| text.raw().into())),
    ]
}

pub(super) fn share_columns<T: OfMethod>() -> Vec<ColumnOf<T>> {
    vec![
        SELF_UJ.of::<T>(|r| int(T::method(r).method.own.energy.0)),
        TOTAL_UJ.of::<T>(|r| int(T::method(r).method.total.energy.0)),
        SELF_CPU_NS.of::<T>(|r| int(T::method(r).method.own.cpu_ns)),
        TOTAL_CPU_NS.of::<T>(|r| int(T::method(r).method.total.cpu_ns)),
        SELF_SAMPLES.of::<T>(|r| int(T::method(r).method.own.samples)),
        TOTAL_SAMPLES.of::<T>(|r| int(T::method(r).method.total.samples)),
        SELF_SIGMA_UJ.of::<T>(|r| int(two_digits(T::method(r).method.sigmas[0].0.into()))),
        TOTAL_SIGMA_UJ.of::<T>(|r| int(two_digits(T::method(r).method.sigmas[1].0.into()))),
        SELF_SQUARES_UJ2.of::<T>(|r| int(two_digits(T::method(r).method.own.squares))),
        TOTAL_SQUARES_UJ2.of::<T>(|r| int(two_digits(T::method(r).method.total.squares))),
        SELF_BY_BYTES_UJ.of::<T>(|r| int(T::method(r).method.own.by_bytes.0)),
        TOTAL_BY_BYTES_UJ.of::<T>(|r| int(T::method(r).method.total.by_bytes.0)),
    ]
}
