//! The tables of the data set, one definition per column. What a table's rows
//! are made of stands beside its columns.

mod jvms;
pub(crate) mod list;
mod methods;
mod processes;
mod quality;
mod runs;
mod stacks;
mod weights;
mod windows;
mod work;

pub(crate) use self::list::{Buffers, ForRows, ForTable, TABLES};
pub use self::{
    jvms::{JvmRecord, Jvms},
    methods::{MethodRecord, Methods},
    processes::{ProcessRecord, Processes},
    quality::{Quality, QualityRecord},
    runs::{RunRecord, Runs},
    stacks::{FrameTable, StackRecord, Stacks},
    weights::{WeightRecord, Weights},
    windows::{WindowRecord, Windows},
    work::{BranchRecord, Branches, ThreadRecord, Threads, Work},
};
use super::column::{Column, Get, Table, int};
use crate::{
    attribution::report::ProcessRef,
    model::{
        domain::Label,
        units::{MonotonicNs, UnixMicros},
    },
};

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
trait InWindow: Table {
    fn key<'r>(row: &'r Self::Row<'_>) -> &'r WindowKey<'r>;
}

/// A table whose rows belong to a process in a window.
trait OfProcess: InWindow {
    fn process<'r>(row: &'r Self::Row<'_>) -> &'r ProcessRef;
}

fn window_columns<T: InWindow>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new("run_id", Get::Name(|r| Some(T::key(r).run_id.into())), "run", "run, as in table runs"),
        Column::<T>::new("window_start", Get::Time(|r| Some(T::key(r).start.0)), "wall clock", "start of the window"),
        Column::<T>::new(
            "window_ns",
            Get::Int(|r| int(T::key(r).length_ns)),
            "monotonic clock",
            "length of the window",
        )
        .unit("ns"),
    ]
}

fn process_columns<T: OfProcess>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new("pid", Get::Int(|r| Some(T::process(r).pid.0.into())), "kernel", "process, host namespace"),
        Column::<T>::new(
            "process_start",
            Get::Time(|r| T::key(r).boot.wall_time(T::process(r).start_boottime_ns)),
            "kernel",
            "start of the process; with pid its identity",
        ),
        Column::<T>::new("comm", Get::Name(|r| Some(T::process(r).comm.as_str().into())), "kernel", "process name"),
    ]
}

/// How far the energies of a row can be trusted: every table with energies
/// says so in the row itself.
fn label_columns<T: InWindow>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new(
            "energy_label",
            Get::Name(|r| T::key(r).label.map(|label| label.name().into())),
            "energy source",
            "measured, reported, modelled or replayed: the weakest of the domains it has a share of",
        )
        .null("no energy source"),
        Column::<T>::new(
            "ambiguous",
            Get::Flag(|r| Some(T::key(r).ambiguous)),
            "energy source",
            "the energy of a domain it has a share of is not certain, see windows.fault",
        ),
    ]
}

fn joined<T: Table>(parts: impl IntoIterator<Item = Vec<Column<T>>>) -> Vec<Column<T>> {
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
