//! Defines what was moved through sockets and files.

use joular_ebpf::abi::IoKind;

use super::{
    Column, ColumnOf, InWindow, Table, WindowKey, counters, int, joined, kind, shared, weights, window_columns, work,
};
use crate::{
    attribution::{
        moved::{Moved, MovedRow},
        window_report::{ProcessRef, ThreadRow, WindowReport},
    },
    stacks::StackTable,
};

const COMM: Column<kind::Name> = shared::COMM.null(weights::GROUP);
const THREAD_NAME: Column<kind::Name> = work::THREAD_NAME.null(weights::GROUP);
const CATEGORY: Column<kind::Name> = work::CATEGORY.null(weights::GROUP);
pub(crate) const BRANCH_ID: Column<kind::Int> = work::BRANCH_ID.null(weights::GROUP);
const STACK_ID: Column<kind::Int> = work::STACK_ID.null(weights::GROUP);
pub(crate) const SAMPLES: Column<kind::Int> =
    Column::new("samples", "kernel", "calls that were sampled, once for each kind of bytes").unit("samples");

/// The column of a kind of bytes.
pub(crate) const fn bytes_of(kind: IoKind) -> Column<kind::Int> {
    let (name, meaning) = match kind {
        IoKind::Sent => ("sent_bytes", "sent through sockets of TCP and UDP, to other hosts"),
        IoKind::Received => ("received_bytes", "received through sockets of TCP and UDP, from other hosts"),
        IoKind::LocalSent => ("local_sent_bytes", "sent through such sockets to an address of this host"),
        IoKind::LocalReceived => ("local_received_bytes", "received through such sockets from an address of this host"),
        IoKind::Read => ("read_bytes", "read from regular files, whether or not they were in memory"),
        IoKind::Written => ("written_bytes", "written to regular files"),
        IoKind::DeviceRead => ("device_read_bytes", "that had to be read from a device for the claimant"),
        IoKind::DeviceWritten => ("device_written_bytes", "in pages that the claimant changed and that go to a device"),
    };
    let column = Column::quantity(name, "kernel", meaning).unit("bytes");
    match kind {
        IoKind::DeviceRead | IoKind::DeviceWritten => column.null("this kernel does not count them"),
        _ => column,
    }
}

pub struct Io;

pub struct IoRecord<'a> {
    pub key: WindowKey<'a>,
    pub row: &'a MovedRow,
    /// Of a target's thread.
    pub thread: Option<(&'a ProcessRef, &'a ThreadRow)>,
    pub branch_id: Option<i64>,
    pub stack_id: Option<i64>,
    pub counts_devices: bool,
}

impl<'a> IoRecord<'a> {
    /// Groups first, then threads in the order of their rows, by stack.
    pub(crate) fn of(key: WindowKey<'a>, report: &'a WindowReport, moved: &'a Moved, stacks: &StackTable) -> Vec<Self> {
        let record = |row: &'a MovedRow| Self {
            key,
            row,
            thread: weights::thread_of(report, row.claimant),
            branch_id: row.branch.map(|branch| stacks.branch_id(branch)),
            stack_id: row.branch.map(|branch| stacks.stack_id(branch)),
            counts_devices: moved.counts_devices,
        };
        let mut records: Vec<_> = moved.rows.iter().map(record).collect();
        let identity =
            |(process, thread): (&'a ProcessRef, &ThreadRow)| (process, thread.tid, thread.start_boottime_ns);
        records.sort_by_key(|record| (record.thread.map(identity), record.row.claimant, record.stack_id));
        records
    }

    fn bytes(&self, kind: IoKind) -> Option<i64> {
        let is_counted = self.counts_devices || !matches!(kind, IoKind::DeviceRead | IoKind::DeviceWritten);
        is_counted.then(|| int(self.row.bytes[kind as usize])).flatten()
    }
}

impl InWindow for Io {
    fn key<'r>(row: &'r IoRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Io {
    const NAME: &'static str = "io";
    const ROW: &'static str =
        "what a thread moved through sockets and files in a window, on one call path, or a group of others; with --io";
    const BY_POLICY: bool = false;
    type Row<'a> = IoRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), claimant_columns(), bytes_columns()])
    }
}

fn claimant_columns() -> Vec<ColumnOf<Io>> {
    vec![
        counters::CLAIMANT.of::<Io>(|r| Some(r.row.claimant.name().into())),
        counters::PID.of::<Io>(|r| Some(r.thread?.0.pid.0.into())),
        counters::PROCESS_START.of::<Io>(|r| r.key.boot.wall_time(r.thread?.0.start_boottime_ns)),
        COMM.of::<Io>(|r| Some(r.thread?.0.comm.raw().into())),
        counters::TID.of::<Io>(|r| Some(r.thread?.1.tid.0.into())),
        THREAD_NAME.of::<Io>(|r| Some(r.thread?.1.name.raw().into())),
        CATEGORY.of::<Io>(|r| Some(r.thread?.1.category.name().into())),
        counters::THREAD_START.of::<Io>(|r| r.key.boot.wall_time(r.thread?.1.start_boottime_ns)),
        BRANCH_ID.of::<Io>(|r| r.branch_id),
        STACK_ID.of::<Io>(|r| r.stack_id),
    ]
}

fn bytes_columns() -> Vec<ColumnOf<Io>> {
    vec![
        bytes_of(IoKind::Sent).of::<Io>(|r| r.bytes(IoKind::Sent)),
        bytes_of(IoKind::Received).of::<Io>(|r| r.bytes(IoKind::Received)),
        bytes_of(IoKind::LocalSent).of::<Io>(|r| r.bytes(IoKind::LocalSent)),
        bytes_of(IoKind::LocalReceived).of::<Io>(|r| r.bytes(IoKind::LocalReceived)),
        bytes_of(IoKind::Read).of::<Io>(|r| r.bytes(IoKind::Read)),
        bytes_of(IoKind::Written).of::<Io>(|r| r.bytes(IoKind::Written)),
        bytes_of(IoKind::DeviceRead).of::<Io>(|r| r.bytes(IoKind::DeviceRead)),
        bytes_of(IoKind::DeviceWritten).of::<Io>(|r| r.bytes(IoKind::DeviceWritten)),
        SAMPLES.of::<Io>(|r| int(r.row.samples)),
    ]
}
