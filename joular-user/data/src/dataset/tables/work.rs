//! Defines what ran: threads, and their call branches.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, int, joined, kind, label_columns, process_columns,
    shared::{BY_BYTES_UJ, CPU_NS, ENERGY_UJ, SAMPLES, THREAD_START, TID},
    window_columns,
};
use crate::attribution::window_report::{BranchRow, ProcessRef, ThreadRow};

pub(crate) const THREAD_NAME: Column<kind::Name> = Column::new("thread_name", "JVM, else kernel", "thread name");
pub(crate) const CATEGORY: Column<kind::Name> =
    Column::new("category", "attribution", "java, gc, jit, vm, native or kernel");
pub(crate) const BRANCH_ID: Column<kind::Int> =
    Column::new("branch_id", "attribution", "call branch: hash of the methods; equal across processes, hosts and runs");
pub(crate) const STACK_ID: Column<kind::Int> =
    Column::new("stack_id", "attribution", "call path with lines, kinds of code and quality, as in table stacks");

pub struct Threads;

pub struct ThreadRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub thread: &'a ThreadRow,
    pub work: Work,
}

pub struct Branches;

pub struct BranchRecord<'a> {
    pub thread: ThreadRecord<'a>,
    pub branch_id: i64,
    pub stack_id: i64,
}

/// The figures of a thread or of one of its branches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub energy_uj: u64,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Of `energy_uj`.
    pub by_bytes_uj: u64,
}

impl Work {
    pub(crate) const fn of_thread(thread: &ThreadRow) -> Self {
        let ThreadRow { energy, cpu_ns, samples, by_bytes, .. } = *thread;
        Self { energy_uj: energy.0, cpu_ns, samples, by_bytes_uj: by_bytes.0 }
    }

    pub(crate) const fn of_branch(branch: &BranchRow) -> Self {
        let BranchRow { energy, cpu_ns, samples, by_bytes, .. } = *branch;
        Self { energy_uj: energy.0, cpu_ns, samples, by_bytes_uj: by_bytes.0 }
    }
}

/// Rows that are about a thread.
trait OfThread: OfProcess {
    fn thread<'r>(row: &'r Self::Row<'_>) -> &'r ThreadRecord<'r>;
}

impl OfThread for Threads {
    fn thread<'r>(row: &'r ThreadRecord<'_>) -> &'r ThreadRecord<'r> {
        row
    }
}

impl OfThread for Branches {
    fn thread<'r>(row: &'r BranchRecord<'_>) -> &'r ThreadRecord<'r> {
        &row.thread
    }
}

impl InWindow for Threads {
    fn key<'r>(row: &'r ThreadRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl InWindow for Branches {
    fn key<'r>(row: &'r BranchRecord<'_>) -> &'r WindowKey<'r> {
        &row.thread.key
    }
}

impl OfProcess for Threads {
    fn process<'r>(row: &'r ThreadRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl OfProcess for Branches {
    fn process<'r>(row: &'r BranchRecord<'_>) -> &'r ProcessRef {
        row.thread.process
    }
}

fn thread_columns<T: OfThread>() -> Vec<ColumnOf<T>> {
    vec![
        TID.of::<T>(|r| Some(T::thread(r).thread.tid.0.into())),
        THREAD_NAME.of::<T>(|r| Some(T::thread(r).thread.name.raw().into())),
        CATEGORY.of::<T>(|r| Some(T::thread(r).thread.category.name().into())),
    ]
}

fn work_columns<T: OfThread>() -> Vec<ColumnOf<T>> {
    vec![
        ENERGY_UJ.of::<T>(|r| int(T::thread(r).work.energy_uj)),
        CPU_NS.of::<T>(|r| int(T::thread(r).work.cpu_ns)),
        SAMPLES.of::<T>(|r| int(T::thread(r).work.samples)),
        BY_BYTES_UJ.of::<T>(|r| int(T::thread(r).work.by_bytes_uj)),
    ]
}

impl Table for Threads {
    const NAME: &'static str = "threads";
    const ROW: &'static str = "a thread of a target in a window; its branches sum to it";
    const BY_POLICY: bool = true;
    type Row<'a> = ThreadRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let start = THREAD_START.of::<Self>(|r| r.key.boot.wall_time(r.thread.start_boottime_ns));
        let parts =
            [window_columns(), process_columns(), thread_columns(), vec![start], work_columns(), label_columns()];
        joined(parts)
    }
}

impl Table for Branches {
    const NAME: &'static str = "branches";
    const ROW: &'static str =
        "a call path of a thread in a window; a branch has several where lines, kinds of code or quality differ";
    const BY_POLICY: bool = true;
    type Row<'a> = BranchRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let id = BRANCH_ID.of::<Self>(|r| Some(r.branch_id));
        let stack = STACK_ID.of::<Self>(|r| Some(r.stack_id));
        let start = THREAD_START.of::<Self>(|r| r.thread.key.boot.wall_time(r.thread.thread.start_boottime_ns));
        let ids = vec![start, id, stack];
        joined([window_columns(), process_columns(), thread_columns(), ids, work_columns(), label_columns()])
    }
}
