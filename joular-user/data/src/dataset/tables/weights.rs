//! What energy was divided by, so that it can be divided again.

use super::{Column, Get, InWindow, Table, WindowKey, int, joined, window_columns};
use crate::attribution::{
    report::{ProcessRef, ThreadRow},
    work::ClaimedSlice,
};

pub struct Weights;

pub struct WeightRecord<'a> {
    pub key: WindowKey<'a>,
    /// Of a target's thread.
    pub thread: Option<(&'a ProcessRef, &'a ThreadRow)>,
    pub claimed: &'a ClaimedSlice,
}

impl InWindow for Weights {
    fn key<'r>(row: &'r WeightRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Weights {
    const NAME: &'static str = "weights";
    const ROW: &'static str = "CPU time of one claimant in one place in a window: all that energy is divided by; \
                               joular-bpf reattribute and audit start from it";
    const BY_POLICY: bool = false;
    type Row<'a> = WeightRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        joined([window_columns(), claimant_columns(), place_columns(), slice_columns()])
    }
}

const GROUP: &str = "a group, not a thread of a target";

fn claimant_columns() -> Vec<Column<Weights>> {
    vec![
        Column::<Weights>::new(
            "claimant",
            Get::Name(|r| Some(r.claimed.claimant.name().into())),
            "attribution",
            "thread (of a target), other_processes, kernel, profiler, unslotted or idle",
        ),
        Column::<Weights>::new(
            "pid",
            Get::Int(|r| Some(r.thread?.0.pid.0.into())),
            "kernel",
            "process, host namespace",
        )
        .null(GROUP),
        Column::<Weights>::new(
            "process_start",
            Get::Time(|r| r.key.boot.wall_time(r.thread?.0.start_boottime_ns)),
            "kernel",
            "start of the process; with pid its identity",
        )
        .null(GROUP),
        Column::<Weights>::new("tid", Get::Int(|r| Some(r.thread?.1.tid.0.into())), "kernel", "thread, host namespace")
            .null(GROUP),
        Column::<Weights>::new(
            "thread_start",
            Get::Time(|r| r.key.boot.wall_time(r.thread?.1.start_boottime_ns)),
            "kernel",
            "start of the thread; with tid its identity",
        )
        .null(GROUP),
    ]
}

fn place_columns() -> Vec<Column<Weights>> {
    vec![
        Column::<Weights>::new(
            "socket",
            Get::Int(|r| Some(r.claimed.place.socket.into())),
            "/sys",
            "physical package where it ran",
        ),
        Column::<Weights>::new(
            "core",
            Get::Int(|r| Some(r.claimed.place.core.into())),
            "/sys",
            "physical core where it ran; 0 unless cores have energy counters of their own",
        ),
    ]
}

fn slice_columns() -> Vec<Column<Weights>> {
    let figure = |name: &'static str, get: Get<Weights>, meaning| Column::<Weights>::new(name, get, "kernel", meaning);
    vec![
        figure("cpu_ns", Get::Quantity(|r| int(r.claimed.slice.cpu_ns)), "on-CPU time").unit("ns"),
        figure(
            "corun_ns",
            Get::Quantity(|r| int(r.claimed.slice.corun_ns)),
            "of it: while the core's other hyper-thread was busy too",
        )
        .unit("ns"),
        figure("cycles", Get::Quantity(|r| int(r.claimed.slice.cycles)), "unhalted cycles, 0 unless they are counted")
            .unit("cycles"),
        figure(
            "corun_cycles",
            Get::Quantity(|r| int(r.claimed.slice.corun_cycles)),
            "of them: in corun_ns, in proportion to each thread's time",
        )
        .unit("cycles"),
        figure("samples", Get::Int(|r| int(r.claimed.slice.samples)), "samples that hit it").unit("samples"),
        figure("switches", Get::Int(|r| int(r.claimed.slice.switches)), "times it was switched out"),
    ]
}
