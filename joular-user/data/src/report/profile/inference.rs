//! Divides what threads spent in light windows anew ([`crate::attribution::inference`]) while rows are read.
//!
//! [`Inference`] takes the rows of a scan and gives them on. Those of light windows wait until their stratum is
//! complete; what is left then waits until all samples are known ([`super::quotas`]).

use super::{Catalog, PathIndex, Paths, ThreadIndex, row::EnergyRow};
use crate::{
    attribution::inference::{Pace, Recorded, Share, Spent, Strata, Stratum},
    model::{frame::Marker, units::UnixMicros},
};

/// Where rows go.
pub(super) trait Sink {
    /// A row that stays as it is.
    fn row(&mut self, row: &EnergyRow);
    /// A light window of a thread, which waits.
    fn light(&mut self, window: &LightWindow<'_>);
    /// Light windows of a thread are divided: as many of those that wait as the stratum has, the first ones. Without shares
    /// they are left.
    fn divide(&mut self, thread: ThreadIndex, stratum: &Stratum<PathIndex>, shares: &[Share<PathIndex>]);
}

/// What a thread did in a light window.
#[derive(Clone, Copy, Debug)]
pub(super) struct LightWindow<'a> {
    /// Its rows with samples.
    pub(super) rows: &'a [EnergyRow],
    /// All that it spent without any, as one row of `[no sample]`.
    pub(super) unsampled: Option<&'a EnergyRow>,
}

/// The path that stands for time without a sample.
pub(super) fn no_sample(paths: &Paths) -> Option<PathIndex> {
    let stands_for_it = |path: &PathIndex| {
        let mut frames = paths.frames_of(*path);
        frames.next().is_some_and(|frame| frame.is_marker(Marker::NoSample)) && frames.next().is_none()
    };
    paths.indices().find(stands_for_it)
}

/// Rows of a thread in a window.
#[derive(Debug, Default)]
struct Group {
    /// Those with samples.
    rows: Vec<EnergyRow>,
    unsampled: Option<EnergyRow>,
}

impl Group {
    fn first(&self) -> Option<&EnergyRow> {
        self.rows.first().or(self.unsampled.as_ref())
    }
}

/// A thread's light windows whose stratum is not complete.
#[derive(Debug, Default)]
struct Waiting {
    strata: Strata<PathIndex>,
    /// Whether it is in [`Inference::waiting`].
    is_listed: bool,
}

/// Takes rows as they come: those of a window stand together, and in them those of a thread.
#[derive(Debug)]
pub(super) struct Inference {
    /// Stands for time without a sample.
    unsampled: Option<PathIndex>,
    /// By run.
    paces: Vec<Pace>,
    threads: Vec<Waiting>,
    /// Threads whose windows wait, each once.
    waiting: Vec<ThreadIndex>,
    group: Group,
    recorded: Vec<Recorded<PathIndex>>,
    /// Whose rows come.
    run: usize,
}

impl Inference {
    pub(super) fn of(catalog: &Catalog) -> Self {
        Self {
            unsampled: no_sample(&catalog.paths),
            paces: catalog.runs.iter().map(|run| Pace::of(&run.info)).collect(),
            threads: Vec::new(),
            waiting: Vec::new(),
            group: Group::default(),
            recorded: Vec::new(),
            run: 0,
        }
    }

    /// Takes a row.
    pub(super) fn take(&mut self, row: &EnergyRow, sink: &mut impl Sink) {
        if let Some(pooled) = &row.pooled {
            row.divided(pooled).for_each(|row| sink.row(&row));
            return;
        }
        let is_same = |group: &EnergyRow| {
            (group.run, group.thread, group.window_start) == (row.run, row.thread, row.window_start)
        };
        if !self.group.first().is_some_and(is_same) {
            self.end_group(sink);
            if row.run != self.run {
                self.settle_all(None, sink);
                self.run = row.run;
            }
        }
        if row.samples > 0 {
            self.group.rows.push(*row);
        } else if Some(row.path) == self.unsampled {
            match &mut self.group.unsampled {
                Some(sum) => {
                    sum.energy = sum.energy.saturating_add(row.energy);
                    sum.cpu_ns = sum.cpu_ns.saturating_add(row.cpu_ns);
                }
                None => self.group.unsampled = Some(*row),
            }
        } else {
            sink.row(row);
        }
    }

    /// Gives on all strata to which nothing from this row's window on belongs.
    pub(super) fn advance(&mut self, row: &EnergyRow, sink: &mut impl Sink) {
        self.end_group(sink);
        let now = (row.run == self.run).then_some((row.window_start, self.pace(row.run).interval_ns));
        self.settle_all(now, sink);
    }

    /// Ends the rows of a thread in a window. Of a heavy one, only what it spent without samples waits.
    fn end_group(&mut self, sink: &mut impl Sink) {
        let Some(EnergyRow { run, thread, window_start, .. }) = self.group.first().copied() else { return };
        let pace = self.pace(run);
        let window = |cpu_ns| pace.window(window_start, cpu_ns);
        let cpu_ns = self.group.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.cpu_ns));
        let unsampled = self.group.unsampled.take();
        if !window(cpu_ns).is_light() {
            self.group.rows.drain(..).for_each(|row| sink.row(&row));
        }
        if unsampled.is_some() || !self.group.rows.is_empty() {
            sink.light(&LightWindow { rows: &self.group.rows, unsampled: unsampled.as_ref() });
            self.recorded.clear();
            self.recorded.extend(self.group.rows.iter().map(recorded));
            let unsampled = unsampled.as_ref().map(spent).unwrap_or_default();
            let all_ns = self.recorded.iter().fold(unsampled.cpu_ns, |sum, row| sum.saturating_add(row.spent.cpu_ns));
            if self.threads.len() <= thread.index() {
                self.threads.resize_with(thread.index() + 1, Waiting::default);
            }
            let waiting = &mut self.threads[thread.index()];
            waiting.strata.take(&window(all_ns), &self.recorded, unsampled);
            waiting
                .strata
                .settle(Some((window_start, pace.interval_ns)), |stratum, shares| sink.divide(thread, stratum, shares));
            if !std::mem::replace(&mut waiting.is_listed, true) {
                self.waiting.push(thread);
            }
        }
        self.group.rows.clear();
    }

    /// Gives on all strata to which no window from `now` on belongs, whichever thread they are of;
    /// without `now` all of them.
    fn settle_all(&mut self, now: Option<(UnixMicros, u64)>, sink: &mut impl Sink) {
        let threads = &mut self.threads;
        self.waiting.retain(|thread| {
            let Some(waiting) = threads.get_mut(thread.index()) else { return false };
            waiting.strata.settle(now, |stratum, shares| sink.divide(*thread, stratum, shares));
            waiting.is_listed = !waiting.strata.is_empty();
            waiting.is_listed
        });
    }

    fn pace(&self, run: usize) -> Pace {
        self.paces.get(run).copied().unwrap_or_default()
    }

    /// Gives on all that waits.
    pub(super) fn finish(mut self, sink: &mut impl Sink) {
        self.end_group(sink);
        self.settle_all(None, sink);
    }
}

pub(super) const fn spent(row: &EnergyRow) -> Spent {
    Spent { energy: row.energy, cpu_ns: row.cpu_ns }
}

fn recorded(row: &EnergyRow) -> Recorded<PathIndex> {
    Recorded { path: row.path, samples: row.samples, spent: spent(row), squares: row.squares() }
}
