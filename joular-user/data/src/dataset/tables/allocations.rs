//! Defines what threads allocated on the Java heap.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, ThreadRecord, WindowKey, int, joined, kind, process_columns,
    shared::{THREAD_START, TID},
    window_columns,
    work::{BRANCH_ID, CATEGORY, STACK_ID, THREAD_NAME},
};
use crate::attribution::{allocated::SampledBy, window_report::ProcessRef};

pub(crate) const CLASS: Column<kind::Name> =
    Column::new("class", "JVM", "class of the objects, as Java writes it: java.lang.String, byte[]")
        .null("there is no sample, or the class is not known any more");
pub(crate) const ALLOCATED_BYTES: Column<kind::Int> = Column::quantity(
    "allocated_bytes",
    "JVM",
    "bytes allocated; those of a thread sum to what its JVM counts, and are divided by samples",
)
.unit("bytes");
pub(crate) const SAMPLES: Column<kind::Int> =
    Column::new("samples", "kernel", "objects that were sampled, or samples of CPU time").unit("samples");
pub(crate) const SAMPLED_BY: Column<kind::Name> = Column::new(
    "sampled_by",
    "joular-bpf",
    "what samples are of: objects (allocation), those of a thread in step (allocation-in-step) or CPU time (cpu-time)",
)
.null("there is no sample");
pub(crate) const BYTES_PER_SAMPLE: Column<kind::Int> = Column::new(
    "bytes_per_sample",
    "joular-bpf",
    "for how many bytes an independent sample of a thread in step stands",
)
.unit("bytes/sample")
.null("allocated_bytes / samples");

pub struct Allocations;

pub struct AllocationRecord<'a> {
    pub thread: ThreadRecord<'a>,
    pub branch_id: i64,
    pub stack_id: i64,
    pub class: Option<&'a str>,
    pub bytes: u64,
    pub samples: u64,
    pub by: SampledBy,
    pub bytes_per_sample: Option<u64>,
}

impl InWindow for Allocations {
    fn key<'r>(row: &'r AllocationRecord<'_>) -> &'r WindowKey<'r> {
        &row.thread.key
    }
}

impl OfProcess for Allocations {
    fn process<'r>(row: &'r AllocationRecord<'_>) -> &'r ProcessRef {
        row.thread.process
    }
}

impl Table for Allocations {
    const NAME: &'static str = "allocations";
    const ROW: &'static str = "what a thread allocated in a window, of one class on one call path, with --alloc";
    const BY_POLICY: bool = false;
    type Row<'a> = AllocationRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), process_columns(), allocation_columns()])
    }
}

fn allocation_columns() -> Vec<ColumnOf<Allocations>> {
    vec![
        TID.of::<Allocations>(|r| Some(r.thread.thread.tid.0.into())),
        THREAD_NAME.of::<Allocations>(|r| Some(r.thread.thread.name.raw().into())),
        CATEGORY.of::<Allocations>(|r| Some(r.thread.thread.category.name().into())),
        THREAD_START.of::<Allocations>(|r| r.thread.key.boot.wall_time(r.thread.thread.start_boottime_ns)),
        BRANCH_ID.of::<Allocations>(|r| Some(r.branch_id)),
        STACK_ID.of::<Allocations>(|r| Some(r.stack_id)),
        CLASS.of::<Allocations>(|r| r.class.map(Into::into)),
        ALLOCATED_BYTES.of::<Allocations>(|r| int(r.bytes)),
        SAMPLES.of::<Allocations>(|r| int(r.samples)),
        SAMPLED_BY.of::<Allocations>(|r| (r.samples > 0).then(|| r.by.name().into())),
        BYTES_PER_SAMPLE.of::<Allocations>(|r| r.bytes_per_sample.and_then(int)),
    ]
}
