//! Writes a run as files of the data set ([`crate::dataset::layout`]).
//!
//! The time of the windows decides when a new file starts, not a clock, so a replay gives the files
//! that the live run gave. `windows` is written last: where its rows are, those of the other tables
//! are whole.

use super::{
    broken::{BrokenRun, Written},
    flush::FlushWriter,
    rows::Rows,
    run_row,
};
use crate::{
    attribution::window_report::WindowReport,
    dataset::{
        layout::{FilePlace, date},
        store::{Claim, OutputDirectory, Store},
        tables::Boot,
    },
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::UnixMicros,
    output::{Output, OutputError, Result},
    stacks::StackTable,
    totals::RunSums,
};

/// Window time that a file holds unless the caller wants otherwise.
pub const DEFAULT_FLUSH_NS: u64 = 60_000_000_000;

/// Rows of one table, or frames of its stacks, in memory before they are
/// written early: below 100 MB.
const MAX_LOAD: usize = 500_000;

/// Writes a run into a store that it has a claim on.
pub struct ParquetOutput {
    store: Box<dyn Store>,
    _claim: Claim,
    flush_ns: u64,
    /// When the machine started, as the last run has it.
    boot: Option<Boot>,
    state: State,
    has_let_go: bool,
}

enum State {
    Idle,
    Running(Box<Run>),
    /// A write failed. Whatever came after it would make a data set with a hole.
    Failed(Box<BrokenRun>),
}

/// What exists between a run's start and its end.
struct Run {
    info: RunInfo,
    rows: Rows,
    sums: RunSums,
    /// Window time buffered.
    buffered_ns: u64,
    /// Windows that no complete file has yet.
    buffered_windows: u64,
    /// Date that the buffered rows belong to.
    date: String,
    /// Number of the next file.
    next: u32,
    /// The end of the last window.
    until: UnixMicros,
    written: Written,
    /// The files that are being written.
    incomplete: Option<FilePlace>,
}

impl ParquetOutput {
    /// Writes into a directory that is this run's alone.
    pub fn new(directory: OutputDirectory, flush_ns: u64) -> Self {
        let (directory, claim) = directory.into_parts();
        Self::into_store(Box::new(directory), claim, flush_ns)
    }

    /// Writes into a store, for as long as `claim` on it is held.
    pub fn into_store(store: Box<dyn Store>, claim: Claim, flush_ns: u64) -> Self {
        Self { store, _claim: claim, flush_ns, boot: None, state: State::Idle, has_let_go: false }
    }

    /// Begins a run. `first_index` is the number of its first window in the recording: in the data set it
    /// has number 0. Start times are computed as in the run before it, so that they are the same.
    pub(super) fn begin(&mut self, info: &RunInfo, first_index: u64) -> Result<()> {
        let run = Run {
            info: info.clone(),
            rows: Rows::new(info, first_index, self.boot),
            sums: RunSums::default(),
            buffered_ns: 0,
            buffered_windows: 0,
            date: date(info.started),
            next: 0,
            until: info.started,
            written: Written::default(),
            incomplete: None,
        };
        run_row::must_be_new(&*self.store, info)?;
        run_row::publish(&*self.store, info, None)?;
        self.state = State::Running(Box::new(run));
        Ok(())
    }

    /// Windows that are lost if the next write fails.
    pub(super) fn buffered_windows(&self) -> u64 {
        match &self.state {
            State::Running(run) => run.buffered_windows,
            State::Idle | State::Failed(_) => 0,
        }
    }

    /// Ends the run whose writing failed, if there is one. Another one may begin then.
    pub(super) fn end_broken(&mut self) -> Result<()> {
        if let State::Failed(broken) = &self.state {
            broken.end(&*self.store)?;
            self.state = State::Idle;
        }
        Ok(())
    }

    fn fail(&mut self, run: Run) {
        self.boot = run.rows.boot;
        self.state =
            State::Failed(Box::new(BrokenRun { info: run.info, written: run.written, incomplete: run.incomplete }));
    }
}

impl Output for ParquetOutput {
    fn run_started(&mut self, info: &RunInfo) -> Result<()> {
        self.boot = None;
        self.begin(info, 0)
    }

    fn process(&mut self, info: &ProcessInfo) {
        if let State::Running(run) = &mut self.state {
            run.rows.process(info);
        }
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let run = match &mut self.state {
            State::Idle => return Ok(()),
            State::Running(run) => run,
            State::Failed(_) => return Err(OutputError::AfterFailure),
        };
        let result = run.window(&*self.store, self.flush_ns, report, stacks);
        self.has_let_go |= run.buffered_ns == 0;
        if result.is_err()
            && let State::Running(run) = std::mem::replace(&mut self.state, State::Idle)
        {
            self.fail(*run);
        }
        result
    }

    fn has_let_go(&mut self) -> bool {
        std::mem::take(&mut self.has_let_go)
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(()),
            State::Running(mut run) => {
                self.boot = run.rows.boot;
                run.end(&*self.store, end).inspect_err(|_| self.fail(*run))
            }
            State::Failed(broken) => {
                self.state = State::Failed(broken);
                Err(OutputError::AfterFailure)
            }
        }
    }
}

impl Run {
    fn window(&mut self, store: &dyn Store, flush_ns: u64, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let date = date(report.wall_start);
        if date != self.date {
            self.flush(store)?;
            self.date = date;
        }
        self.buffered_windows += 1;
        self.sums.add(report);
        let length_us = i64::try_from(report.length_ns / 1000).unwrap_or(i64::MAX);
        self.until = UnixMicros(report.wall_start.0.saturating_add(length_us));
        self.rows.window(report, stacks)?;
        self.buffered_ns = self.buffered_ns.saturating_add(report.length_ns);
        if self.buffered_ns >= flush_ns || self.rows.load() >= MAX_LOAD {
            self.flush(store)?;
        }
        Ok(())
    }

    fn end(&mut self, store: &dyn Store, end: &RunEnd) -> Result<()> {
        self.rows.process_rows(None)?;
        self.flush(store)?;
        run_row::publish(store, &self.info, Some((end, &self.sums)))
    }

    fn flush(&mut self, store: &dyn Store) -> Result<()> {
        self.rows.method_rows()?;
        if self.rows.load() == 0 {
            return Ok(());
        }
        let place = FilePlace::new(&self.info, &self.date, self.next);
        self.next += 1;
        self.buffered_ns = 0;
        let place = self.incomplete.insert(place);
        self.rows.tables.each(&mut FlushWriter { store, info: &self.info, place })?;
        self.incomplete = None;
        self.written = Written { sums: self.sums.clone(), until: self.until };
        self.buffered_windows = 0;
        Ok(())
    }
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
mod tests;
