//! Shares out what threads spent without a sample ([`crate::attribution::inference`]) while rows are read.
//!
//! [`Inference`] takes the rows of a scan and gives them on, with rows of `[no sample]` replaced by rows
//! of other paths. What no near sample explains is left until all samples are known ([`super::quotas`]).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{
    PathIndex, Paths, ThreadIndex,
    row::{DividedBy, EnergyRow, Inferred},
};
use crate::{
    attribution::inference::{Nearest, Share, Unsampled},
    model::{
        frame::{Frame, FrameKind, Marker},
        units::{MicroJoules, UnixMicros},
    },
};

/// Where rows go, and what no near sample explains.
pub(super) trait Sink {
    fn row(&mut self, row: &EnergyRow);
    /// A row of `[no sample]` that is left.
    fn left(&mut self, row: &EnergyRow);
}

/// By thread and path, windows with one sample: how many, and the energy that their samples stand for.
pub(super) type Singles = HashMap<(ThreadIndex, PathIndex), (u64, MicroJoules), RandomState>;

/// The path that stands for time without a sample.
pub(super) fn no_sample(paths: &Paths) -> Option<PathIndex> {
    let is_marker = |frame: &Frame| frame.kind == FrameKind::Marker && frame.name == Marker::NoSample.name();
    let stands_for_it = |path: &PathIndex| {
        let mut frames = paths.frames_of(*path);
        frames.next().is_some_and(is_marker) && frames.next().is_none()
    };
    paths.indices().find(stands_for_it)
}

/// Rows of a thread in a window.
#[derive(Debug)]
struct Group {
    /// The first of them.
    row: EnergyRow,
    /// Of all of them.
    samples: u64,
    /// Of the last one with samples.
    path: PathIndex,
    energy: MicroJoules,
    /// Energy and time without a sample.
    unsampled: Option<(MicroJoules, u64)>,
}

/// A thread's windows within the horizon.
#[derive(Debug, Default)]
struct Near {
    windows: Nearest<PathIndex>,
    /// Whether it is in [`Inference::waiting`].
    is_listed: bool,
}

/// Shares out rows as they come: those of a window stand together, and in them those of a thread.
#[derive(Debug)]
pub(super) struct Inference {
    /// Stands for time without a sample.
    unsampled: PathIndex,
    threads: Vec<Near>,
    /// Threads that may have windows that wait for samples after them, each once.
    waiting: Vec<ThreadIndex>,
    group: Option<Group>,
    /// Whose rows come.
    run: usize,
    singles: Singles,
}

impl Inference {
    /// `None`: no path stands for time without a sample.
    pub(super) fn of(paths: &Paths) -> Option<Self> {
        no_sample(paths).map(|unsampled| Self {
            unsampled,
            threads: Vec::new(),
            waiting: Vec::new(),
            group: None,
            run: 0,
            singles: HashMap::default(),
        })
    }

    /// Takes a row. Sampled ones go on at once, others when the samples around them are known.
    pub(super) fn take(&mut self, row: &EnergyRow, sink: &mut impl Sink) {
        if let Some(pooled) = &row.pooled {
            let (left, gets) = row.divided(pooled);
            sink.row(&left);
            gets.iter().for_each(|row| sink.row(row));
            return;
        }
        let is_sampled = row.samples > 0 || row.path != self.unsampled;
        let is_same = |group: &Group| {
            (group.row.thread, group.row.window_start) == (row.thread, row.window_start) && row.run == self.run
        };
        if !self.group.as_ref().is_some_and(is_same) {
            self.end_group(sink);
            if row.run != self.run {
                self.settle_all(None, sink);
                self.run = row.run;
            }
        }
        let new = || Group { row: *row, samples: 0, path: row.path, energy: row.energy, unsampled: None };
        let group = self.group.get_or_insert_with(new);
        if is_sampled {
            if row.samples > 0 {
                group.samples = group.samples.saturating_add(row.samples);
                (group.path, group.energy) = (row.path, row.energy);
            }
            sink.row(row);
        } else {
            let (energy, cpu_ns) = group.unsampled.unwrap_or_default();
            group.unsampled = Some((energy.saturating_add(row.energy), cpu_ns.saturating_add(row.cpu_ns)));
        }
    }

    /// Gives on all windows that no sample from this row's window on can be near to.
    pub(super) fn advance(&mut self, row: &EnergyRow, sink: &mut impl Sink) {
        self.end_group(sink);
        let now = (row.run == self.run).then_some((row.window_start, row.window_ns));
        self.settle_all(now, sink);
    }

    /// Ends the rows of a thread in a window.
    fn end_group(&mut self, sink: &mut impl Sink) {
        let Some(Group { row, samples, path, energy, unsampled }) = self.group.take() else { return };
        // Of most threads that are busy nothing waits, and windows with many samples say nothing.
        if samples != 1 && unsampled.is_none() {
            return;
        }
        let thread = row.thread;
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Near::default);
        }
        let near = &mut self.threads[thread.index()];
        if samples == 1 {
            let (count, sum) = self.singles.entry((thread, path)).or_default();
            *count += 1;
            *sum = sum.saturating_add(energy);
            near.windows.single(row.window_start, path, energy);
        }
        if let Some((energy, cpu_ns)) = unsampled {
            let EnergyRow { window_start: start, window_ns: length_ns, .. } = row;
            near.windows.unsampled(Unsampled { start, length_ns, energy, cpu_ns });
            if !std::mem::replace(&mut near.is_listed, true) {
                self.waiting.push(thread);
            }
        }
        let now = Some((row.window_start, row.window_ns));
        near.windows.settle(now, giving(&mut self.singles, self.unsampled, (self.run, thread), sink));
    }

    /// Gives on all windows that no sample from `now` on can be near to, whichever thread they are of;
    /// without `now` all windows.
    fn settle_all(&mut self, now: Option<(UnixMicros, u64)>, sink: &mut impl Sink) {
        let (threads, singles, unsampled, run) = (&mut self.threads, &mut self.singles, self.unsampled, self.run);
        self.waiting.retain(|thread| {
            let Some(near) = threads.get_mut(thread.index()) else { return false };
            near.windows.settle(now, giving(singles, unsampled, (run, *thread), sink));
            near.is_listed = near.windows.is_waiting();
            near.is_listed
        });
    }

    /// Gives on all that waits, and returns what windows with one sample say.
    pub(super) fn finish(mut self, sink: &mut impl Sink) -> Singles {
        self.end_group(sink);
        self.settle_all(None, sink);
        self.singles
    }
}

/// Makes rows of a thread of what its windows were shared into.
fn giving(
    singles: &mut Singles,
    unsampled: PathIndex,
    (run, thread): (usize, ThreadIndex),
    sink: &mut impl Sink,
) -> impl FnMut(Unsampled, &[Share<PathIndex>]) {
    move |what, shares| {
        let whole = EnergyRow {
            run,
            window_start: what.start,
            window_ns: what.length_ns,
            thread,
            path: unsampled,
            energy: what.energy,
            cpu_ns: what.cpu_ns,
            samples: 0,
            inferred: None,
            pooled: None,
            divided_by: DividedBy::CpuTime,
        };
        if shares.is_empty() {
            sink.left(&whole);
        }
        for share in shares {
            if let Some((_, energy)) = singles.get_mut(&(thread, share.path)) {
                *energy = energy.saturating_add(share.energy);
            }
            let Share { path, energy, cpu_ns, squares } = *share;
            sink.row(&EnergyRow { path, energy, cpu_ns, inferred: Some(Inferred { squares }), ..whole });
        }
    }
}
