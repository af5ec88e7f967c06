//! Defines what energy was divided by, so that it can be divided again.

use super::{Column, ColumnOf, InWindow, Table, WindowKey, int, joined, kind, shared, window_columns};
use crate::attribution::{
    window_report::{ProcessRef, ThreadRow, WindowReport},
    work::{Claimant, ClaimedSlice},
};

pub(crate) const CLAIMANT: Column<kind::Name> = Column::new(
    "claimant",
    "attribution",
    "thread (of a target), other_processes, kernel, profiler, unslotted or idle",
);
const PID: Column<kind::Int> = shared::PID.null(GROUP);
const PROCESS_START: Column<kind::Time> = shared::PROCESS_START.null(GROUP);
const TID: Column<kind::Int> = shared::TID.null(GROUP);
const THREAD_START: Column<kind::Time> = shared::THREAD_START.null(GROUP);
pub(crate) const SOCKET: Column<kind::Int> = Column::new("socket", "/sys", "physical package where the claimant ran");
pub(crate) const CORE: Column<kind::Int> = Column::new(
    "core",
    "/sys",
    "physical core, if cores have energy counters; else the core type's number on a hybrid processor, else 0",
);
pub(crate) const CPU_NS: Column<kind::Int> = Column::quantity("cpu_ns", "kernel", "on-CPU time").unit("ns");
pub(crate) const CORUN_NS: Column<kind::Int> =
    Column::quantity("corun_ns", "kernel", "of cpu_ns: while the core's other hyper-thread was busy too").unit("ns");
pub(crate) const CYCLES: Column<kind::Int> =
    Column::quantity("cycles", "kernel", "unhalted cycles, 0 unless they are counted").unit("cycles");
pub(crate) const CORUN_CYCLES: Column<kind::Int> =
    Column::quantity("corun_cycles", "kernel", "of cycles: those of corun_ns, in proportion to each thread's time")
        .unit("cycles");
pub(crate) const SAMPLES: Column<kind::Int> =
    Column::new("samples", "kernel", "samples that hit the claimant").unit("samples");
pub(crate) const SWITCHES: Column<kind::Int> =
    Column::new("switches", "kernel", "how often the claimant was switched out");

pub(crate) const FACTOR_PERMILLE: Column<kind::Int> = Column::new(
    "factor_permille",
    "attribution",
    "what the time counts for, in thousandths of the mean: 1000 unless watts were fitted",
);

pub struct Weights;

pub struct WeightRecord<'a> {
    pub key: WindowKey<'a>,
    /// Of a target's thread.
    pub thread: Option<(&'a ProcessRef, &'a ThreadRow)>,
    pub claimed: &'a ClaimedSlice,
}

/// The thread that a claimant is; `None` for a group, and for an index that leads nowhere.
pub(crate) fn thread_of(report: &WindowReport, claimant: Claimant) -> Option<(&ProcessRef, &ThreadRow)> {
    let Claimant::Thread(index) = claimant else { return None };
    let thread = report.threads.get(index)?;
    Some((report.processes.get(thread.process)?, thread))
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
    const BY_POLICY: bool = true;
    type Row<'a> = WeightRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), claimant_columns(), place_columns(), slice_columns()])
    }
}

pub(crate) const GROUP: &str = "a group, not a thread of a target";

fn claimant_columns() -> Vec<ColumnOf<Weights>> {
    vec![
        CLAIMANT.of::<Weights>(|r| Some(r.claimed.claimant.name().into())),
        PID.of::<Weights>(|r| Some(r.thread?.0.pid.0.into())),
        PROCESS_START.of::<Weights>(|r| r.key.boot.wall_time(r.thread?.0.start_boottime_ns)),
        TID.of::<Weights>(|r| Some(r.thread?.1.tid.0.into())),
        THREAD_START.of::<Weights>(|r| r.key.boot.wall_time(r.thread?.1.start_boottime_ns)),
    ]
}

fn place_columns() -> Vec<ColumnOf<Weights>> {
    vec![
        SOCKET.of::<Weights>(|r| Some(r.claimed.place.socket.into())),
        CORE.of::<Weights>(|r| Some(r.claimed.place.core.into())),
    ]
}

fn slice_columns() -> Vec<ColumnOf<Weights>> {
    vec![
        CPU_NS.of::<Weights>(|r| int(r.claimed.slice.cpu_ns)),
        CORUN_NS.of::<Weights>(|r| int(r.claimed.slice.corun_ns)),
        CYCLES.of::<Weights>(|r| int(r.claimed.slice.cycles)),
        CORUN_CYCLES.of::<Weights>(|r| int(r.claimed.slice.corun_cycles)),
        SAMPLES.of::<Weights>(|r| int(r.claimed.slice.samples)),
        SWITCHES.of::<Weights>(|r| int(r.claimed.slice.switches)),
        FACTOR_PERMILLE.of::<Weights>(|r| Some(r.claimed.factor.0.into())),
    ]
}
