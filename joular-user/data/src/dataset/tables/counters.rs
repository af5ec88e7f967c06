//! Defines what was counted beside CPU time.

use super::{Column, ColumnOf, InWindow, Table, WindowKey, int, joined, kind, shared, weights, window_columns};
use crate::{
    attribution::{
        counts::Counts,
        window_report::{ProcessRef, ThreadRow, WindowReport},
        work::Claimant,
    },
    model::counter::Counter,
};

pub(crate) const CLAIMANT: Column<kind::Name> = Column::new(
    "claimant",
    "attribution",
    "thread (of a target), other_processes, kernel, profiler, or unslotted (around switches that the kernel did not report)",
);
pub(crate) const PID: Column<kind::Int> = shared::PID.null(weights::GROUP);
pub(crate) const PROCESS_START: Column<kind::Time> = shared::PROCESS_START.null(weights::GROUP);
pub(crate) const TID: Column<kind::Int> = shared::TID.null(weights::GROUP);
pub(crate) const THREAD_START: Column<kind::Time> = shared::THREAD_START.null(weights::GROUP);
pub(crate) const COUNTER: Column<kind::Name> =
    Column::new("counter", "--counters", "what is counted, by perf's name: instructions, page-faults, …");
pub(crate) const COUNT: Column<kind::Int> =
    Column::quantity("count", "kernel", "how often the claimant did it in the window; threads have no rows of 0");

pub struct Counters;

pub struct CounterRecord<'a> {
    pub key: WindowKey<'a>,
    pub claimant: Claimant,
    /// Of a target's thread.
    pub thread: Option<(&'a ProcessRef, &'a ThreadRow)>,
    pub counter: Counter,
    pub count: u64,
}

impl<'a> CounterRecord<'a> {
    /// Threads have rows of what they counted, groups of everything that was asked for.
    pub(crate) fn of(key: WindowKey<'a>, report: &'a WindowReport, counts: &'a Counts) -> impl Iterator<Item = Self> {
        counts.rows.iter().flat_map(move |row| {
            let thread = weights::thread_of(report, row.claimant);
            let is_thread = matches!(row.claimant, Claimant::Thread(_));
            let counted = counts.counters.iter().zip(&row.counts);
            counted.filter(move |(_, count)| !is_thread || thread.is_some() && **count > 0).map(
                move |(counter, count)| Self { key, claimant: row.claimant, thread, counter: *counter, count: *count },
            )
        })
    }
}

impl InWindow for Counters {
    fn key<'r>(row: &'r CounterRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Counters {
    const NAME: &'static str = "counters";
    const ROW: &'static str = "what one claimant counted in a window, of one of the counters that --counters names";
    const BY_POLICY: bool = false;
    type Row<'a> = CounterRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), counter_columns()])
    }
}

fn counter_columns() -> Vec<ColumnOf<Counters>> {
    vec![
        CLAIMANT.of::<Counters>(|r| Some(r.claimant.name().into())),
        PID.of::<Counters>(|r| Some(r.thread?.0.pid.0.into())),
        PROCESS_START.of::<Counters>(|r| r.key.boot.wall_time(r.thread?.0.start_boottime_ns)),
        TID.of::<Counters>(|r| Some(r.thread?.1.tid.0.into())),
        THREAD_START.of::<Counters>(|r| r.key.boot.wall_time(r.thread?.1.start_boottime_ns)),
        COUNTER.of::<Counters>(|r| Some(r.counter.name().into())),
        COUNT.of::<Counters>(|r| int(r.count)),
    ]
}
