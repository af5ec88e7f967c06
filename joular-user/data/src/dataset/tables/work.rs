//! What ran: threads, and their call branches.

use super::window_columns;
use super::{Column, Get, InWindow, OfProcess, Table, WindowKey, int, joined, label_columns, process_columns};
use crate::attribution::report::{ProcessRef, ThreadRow};

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

fn thread_columns<T: OfThread>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new(
            "tid",
            Get::Int(|r| Some(T::thread(r).thread.tid.0.into())),
            "kernel",
            "thread, host namespace",
        ),
        Column::<T>::new(
            "thread_name",
            Get::Name(|r| Some(T::thread(r).thread.name.as_str().into())),
            "JVM, else kernel",
            "thread name",
        ),
        Column::<T>::new(
            "category",
            Get::Name(|r| Some(T::thread(r).thread.category.name().into())),
            "attribution",
            "java, gc, jit, vm, native or kernel",
        ),
    ]
}

fn work_columns<T: OfThread>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new("energy_uj", Get::Quantity(|r| int(T::thread(r).work.energy_uj)), "attribution", "energy")
            .unit("µJ"),
        Column::<T>::new("cpu_ns", Get::Quantity(|r| int(T::thread(r).work.cpu_ns)), "kernel", "on-CPU time")
            .unit("ns"),
        Column::<T>::new("samples", Get::Int(|r| int(T::thread(r).work.samples)), "kernel", "samples taken")
            .unit("samples"),
    ]
}

impl Table for Threads {
    const NAME: &'static str = "threads";
    const ROW: &'static str = "a thread of a target in a window; its branches sum to it";
    const BY_POLICY: bool = true;
    type Row<'a> = ThreadRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let start = Column::<Self>::new(
            "thread_start",
            Get::Time(|r| r.key.boot.wall_time(r.thread.start_boottime_ns)),
            "kernel",
            "start of the thread; with tid its identity",
        );
        let parts =
            [window_columns(), process_columns(), thread_columns(), vec![start], work_columns(), label_columns()];
        joined(parts)
    }
}

impl Table for Branches {
    const NAME: &'static str = "branches";
    const ROW: &'static str =
        "a call path of a thread in a window; one branch has several where lines, kinds of code or quality differ";
    const BY_POLICY: bool = true;
    type Row<'a> = BranchRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let id = Column::<Self>::new(
            "branch_id",
            Get::Int(|r| Some(r.branch_id)),
            "attribution",
            "call branch: hash of the methods; equal across processes, hosts and runs",
        );
        let stack = Column::<Self>::new(
            "stack_id",
            Get::Int(|r| Some(r.stack_id)),
            "attribution",
            "call path with lines, kinds of code and quality, as in table stacks",
        );
        let start = Column::<Self>::new(
            "thread_start",
            Get::Time(|r| r.thread.key.boot.wall_time(r.thread.thread.start_boottime_ns)),
            "kernel",
            "start of the thread; with tid its identity",
        );
        let ids = vec![start, id, stack];
        joined([window_columns(), process_columns(), thread_columns(), ids, work_columns(), label_columns()])
    }
}
