//! Defines columns that many tables share: which window, process and thread a row is about, and how
//! far its energies can be trusted.

use super::{Column, ColumnOf, Table, int, kind};
use crate::{
    attribution::window_report::ProcessRef,
    model::{
        domain::Label,
        units::{MonotonicNs, UnixMicros},
    },
};

pub(crate) const RUN_ID: Column<kind::Name> = Column::new("run_id", "run", "run, as in table runs");
pub(crate) const WINDOW_START: Column<kind::Time> = Column::new(
    "window_start",
    "wall clock",
    "start of the window; with run_id its key, so it never goes back, see windows.clock_offset_us",
);
pub(crate) const WINDOW_NS: Column<kind::Int> =
    Column::new("window_ns", "monotonic clock", "length of the window").unit("ns");
pub(crate) const PID: Column<kind::Int> = Column::new("pid", "kernel", "process, in the host's namespace");
pub(crate) const PROCESS_START: Column<kind::Time> =
    Column::new("process_start", "kernel", "start of the process; pid and start identify it");
pub(crate) const COMM: Column<kind::Name> = Column::new("comm", "kernel", "process name");
pub(crate) const TID: Column<kind::Int> = Column::new("tid", "kernel", "thread, in the host's namespace");
pub(crate) const THREAD_START: Column<kind::Time> =
    Column::new("thread_start", "kernel", "start of the thread; tid and start identify it");
pub(crate) const ENERGY_UJ: Column<kind::Int> = Column::quantity("energy_uj", "attribution", "energy").unit("µJ");
pub(crate) const BY_BYTES_UJ: Column<kind::Int> = Column::quantity(
    "by_bytes_uj",
    "attribution",
    "part of energy_uj that goes by bytes, whatever samples say: network, disk, and memory with --dram-by allocation",
)
.unit("µJ");
pub(crate) const CPU_NS: Column<kind::Int> = Column::quantity("cpu_ns", "kernel", "on-CPU time").unit("ns");
pub(crate) const SAMPLES: Column<kind::Int> = Column::new("samples", "kernel", "samples taken").unit("samples");
pub(crate) const ENERGY_LABEL: Column<kind::Name> = Column::new(
    "energy_label",
    "energy source",
    "measured, measured_coarsely, reported, modelled_by_processor, modelled or replayed: the weakest of its domains",
)
.null("no energy source");
pub(crate) const AMBIGUOUS: Column<kind::Flag> =
    Column::new("ambiguous", "energy source", "a domain that its energy comes from is not certain, see windows.fault");

/// What the rows of one window have in common.
#[derive(Clone, Copy, Debug)]
pub struct WindowKey<'a> {
    pub run_id: &'a str,
    pub start: UnixMicros,
    pub length_ns: u64,
    /// The weakest of the window's shared domains.
    pub label: Option<Label>,
    pub ambiguous: bool,
    pub boot: Boot,
}

/// When the machine started, as wall-clock time. One value for a whole run,
/// so that start times computed from it are keys that can be joined on.
#[derive(Clone, Copy, Debug)]
pub struct Boot(i64);

impl Boot {
    /// `offset_ns`: how far the clock of start times is ahead of the monotonic one.
    pub fn new(moment: MonotonicNs, offset_ns: u64, wall: UnixMicros) -> Self {
        let since_boot_us = moment.0.saturating_add(offset_ns) / 1000;
        Self(wall.0.saturating_sub(int(since_boot_us).unwrap_or_default()))
    }

    pub fn wall_time(self, since_boot_ns: u64) -> Option<i64> {
        int(since_boot_ns / 1000).map(|micros| micros.saturating_add(self.0))
    }
}

/// A table whose rows belong to a window.
pub(crate) trait InWindow: Table {
    fn key<'r>(row: &'r Self::Row<'_>) -> &'r WindowKey<'r>;
}

/// A table whose rows belong to a process in a window.
pub(crate) trait OfProcess: InWindow {
    fn process<'r>(row: &'r Self::Row<'_>) -> &'r ProcessRef;
}

pub(crate) fn window_columns<T: InWindow>() -> Vec<ColumnOf<T>> {
    vec![
        RUN_ID.of::<T>(|r| Some(T::key(r).run_id.into())),
        WINDOW_START.of::<T>(|r| Some(T::key(r).start.0)),
        WINDOW_NS.of::<T>(|r| int(T::key(r).length_ns)),
    ]
}

pub(crate) fn process_columns<T: OfProcess>() -> Vec<ColumnOf<T>> {
    vec![
        PID.of::<T>(|r| Some(T::process(r).pid.0.into())),
        PROCESS_START.of::<T>(|r| T::key(r).boot.wall_time(T::process(r).start_boottime_ns)),
        COMM.of::<T>(|r| Some(T::process(r).comm.raw().into())),
    ]
}

/// How far the energies of a row can be trusted: every table with energies
/// says so in the row itself.
pub(crate) fn label_columns<T: InWindow>() -> Vec<ColumnOf<T>> {
    vec![
        ENERGY_LABEL.of::<T>(|r| T::key(r).label.map(|label| label.name().into())),
        AMBIGUOUS.of::<T>(|r| Some(T::key(r).ambiguous)),
    ]
}

pub(crate) fn joined<T: Table>(parts: impl IntoIterator<Item = Vec<ColumnOf<T>>>) -> Vec<ColumnOf<T>> {
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_know_of_suspends() {
        // Up for 100 s, then suspended for 50 s: a process of the 30th second.
        let boot = Boot::new(MonotonicNs(100_000_000_000), 50_000_000_000, UnixMicros(1_000_000_000));
        assert_eq!(boot.wall_time(30_000_000_000), Some(1_000_000_000 - 120_000_000));
    }
}
