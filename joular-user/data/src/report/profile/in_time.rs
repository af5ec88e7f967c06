//! Reads a selection with what light windows spent divided anew: summed ([`DataSet::sums`]), or row by row in the
//! order of time ([`DataSet::scan_in_time`]).

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::{
    Catalog, Filter, PathIndex, ThreadIndex, ThreadPath,
    inference::{Inference, LightWindow, Sink},
    parts::{Parts, WaitingWindow},
    quotas::{Quotas, Summing},
    reader::DataSet,
    row::EnergyRow,
};
use crate::{
    attribution::inference::{HORIZON, Pace, Share, Stratum},
    dataset::error::Result,
    model::units::UnixMicros,
};

/// A selection's sums by thread and path.
#[derive(Clone, Debug, Default)]
pub struct Summed {
    /// In the order of thread and path.
    pub entries: Vec<ThreadPath>,
    /// What light windows were left with.
    quotas: Quotas,
}

impl DataSet {
    /// Sums what `filter` allows, conditions on methods apart, and shows each row to `watch` as it was
    /// recorded.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn sums(&mut self, filter: &Filter, watch: &mut dyn FnMut(&Catalog, &EnergyRow)) -> Result<Summed> {
        let mut summing = Summing::default();
        let mut inference = self.inference(filter);
        self.scan(filter, &mut |catalog, row| {
            watch(catalog, row);
            match &mut inference {
                Some(inference) => inference.take(row, &mut summing),
                None => summing.row(row),
            }
        })?;
        inference.into_iter().for_each(|inference| inference.finish(&mut summing));
        let (sums, quotas) = summing.finish(&self.catalog, &self.stack_ids, self.no_sample());
        Ok(Summed { entries: sums.into_entries(), quotas })
    }

    /// Calls `take` for every row that `filter` allows, conditions on methods apart: windows of a run
    /// one after the other. Rows sum to `summed`, which is of the same filter.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn scan_in_time(
        &mut self,
        filter: &Filter,
        summed: &Summed,
        take: &mut dyn FnMut(&Catalog, &EnergyRow),
    ) -> Result<()> {
        let Some(mut inference) = self.inference(filter) else { return self.scan(filter, take) };
        let paces = self.catalog.runs.iter().map(|run| Pace::of(&run.info)).collect();
        let mut windows = Windows::new(summed, self.no_sample(), paces);
        self.scan(filter, &mut |catalog, row| {
            if windows.open.back().is_none_or(|window| !window.has(row)) {
                inference.advance(row, &mut windows);
                windows.close(row, |row| take(catalog, row));
                windows.open.push_back(Window::of(row));
            }
            inference.take(row, &mut windows);
        })?;
        inference.finish(&mut windows);
        windows.open.iter().flat_map(|window| &window.rows).for_each(|row| take(&self.catalog, row));
        Ok(())
    }

    /// `None`: rows stay as they are.
    fn inference(&self, filter: &Filter) -> Option<Inference> {
        (!filter.no_infer).then(|| Inference::of(&self.catalog))
    }
}

/// A window to which rows may still come.
struct Window {
    run: usize,
    start: UnixMicros,
    rows: Vec<EnergyRow>,
}

impl Window {
    const fn of(row: &EnergyRow) -> Self {
        Self { run: row.run, start: row.window_start, rows: Vec::new() }
    }

    fn has(&self, row: &EnergyRow) -> bool {
        (self.run, self.start) == (row.run, row.window_start)
    }
}

/// The windows within the horizon.
struct Windows {
    open: VecDeque<Window>,
    /// Light windows of threads.
    waiting: HashMap<ThreadIndex, VecDeque<WaitingWindow>, RandomState>,
    left: HashMap<ThreadIndex, Parts, RandomState>,
    no_sample: Option<PathIndex>,
    /// By run.
    paces: Vec<Pace>,
}

impl Windows {
    fn new(summed: &Summed, no_sample: Option<PathIndex>, paces: Vec<Pace>) -> Self {
        let parts = summed.quotas.iter().map(|(thread, shares)| (*thread, Parts::of(shares, no_sample)));
        Self { open: VecDeque::new(), waiting: HashMap::default(), left: parts.collect(), no_sample, paces }
    }

    /// Gives on all windows to which nothing can come once rows of `now` do.
    fn close(&mut self, now: &EnergyRow, mut take: impl FnMut(&EnergyRow)) {
        let pace = self.paces.get(now.run).copied().unwrap_or_default();
        let is_done =
            |window: &Window| window.run != now.run || pace.distance(window.start, now.window_start) > HORIZON;
        while self.open.front().is_some_and(is_done) {
            self.open.pop_front().iter().flat_map(|window| &window.rows).for_each(&mut take);
        }
    }
}

impl Sink for Windows {
    fn row(&mut self, row: &EnergyRow) {
        place(&mut self.open, row);
    }

    fn light(&mut self, window: &LightWindow<'_>) {
        if let Some(window) = WaitingWindow::of(window) {
            self.waiting.entry(window.thread()).or_default().push_back(window);
        }
    }

    fn divide(&mut self, thread: ThreadIndex, stratum: &Stratum<PathIndex>, shares: &[Share<PathIndex>]) {
        let mut of_stratum = Parts::of(shares, self.no_sample);
        let parts = if shares.is_empty() { self.left.get_mut(&thread) } else { Some(&mut of_stratum) };
        let (Some(parts), Some(waiting)) = (parts, self.waiting.get_mut(&thread)) else { return };
        for window in waiting.drain(..stratum.windows.min(waiting.len())) {
            parts.take(&window, |row| place(&mut self.open, row));
        }
    }
}

/// Puts a row into its window, which is one of the last.
fn place(open: &mut VecDeque<Window>, row: &EnergyRow) {
    if let Some(window) = open.iter_mut().rev().find(|window| window.has(row)) {
        window.rows.push(*row);
    } else {
        let mut window = Window::of(row);
        window.rows.push(*row);
        open.push_front(window);
    }
}
