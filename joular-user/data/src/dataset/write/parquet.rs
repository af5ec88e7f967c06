//! The data set on disk: `TABLE/date=YYYY-MM-DD/host=HOST/RUN-NNNN.parquet`.
//!
//! Files are rotated by the time of the windows, not by a clock, so that a
//! replay gives the files that the live run gave. `windows` is written last:
//! where its rows are, those of the other tables are whole.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{encode, rows::Rows, run_row};
use crate::{
    attribution::report::WindowReport,
    dataset::{
        column::{Buffer, Table},
        store::directory::OutputDirectory,
    },
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::UnixMicros,
    output::{Output, OutputError, Result},
    stacks::StackTable,
    totals::Sums,
};

/// Window time that a file holds unless the caller wants otherwise.
pub const DEFAULT_FLUSH_NS: u64 = 30_000_000_000;

/// Rows of one table, or frames of its stacks, in memory before they are
/// written early: below 100 MB.
const MAX_LOAD: usize = 500_000;

/// Writes a run into an [`OutputDirectory`].
pub struct ParquetOutput {
    directory: OutputDirectory,
    flush_ns: u64,
    state: State,
}

enum State {
    Idle,
    Running(Box<Run>),
    /// A write failed: whatever came after it would be a data set with a hole.
    Failed,
}

/// What exists between a run's start and its end.
struct Run {
    info: RunInfo,
    rows: Rows,
    sums: Sums,
    /// Window time buffered.
    buffered_ns: u64,
    /// Date that the buffered rows belong to.
    date: String,
    /// Number of the next file.
    next: u32,
}

impl ParquetOutput {
    pub fn new(directory: OutputDirectory, flush_ns: u64) -> Self {
        Self { directory, flush_ns, state: State::Idle }
    }
}

impl Output for ParquetOutput {
    fn run_started(&mut self, info: &RunInfo) -> Result<()> {
        let run = Run {
            info: info.clone(),
            rows: Rows::new(info),
            sums: Sums::default(),
            buffered_ns: 0,
            date: date(info.started),
            next: 0,
        };
        run_row::must_be_new(&self.directory, info)?;
        run_row::publish(&self.directory, info, None)?;
        self.state = State::Running(Box::new(run));
        Ok(())
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
            State::Failed => return Err(OutputError::AfterFailure),
        };
        let result = run.window(&self.directory, self.flush_ns, report, stacks);
        if result.is_err() {
            self.state = State::Failed;
        }
        result
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(()),
            State::Running(run) => run.end(&self.directory, end),
            State::Failed => Err(OutputError::AfterFailure),
        }
    }
}

impl Run {
    fn window(
        &mut self,
        directory: &OutputDirectory,
        flush_ns: u64,
        report: &WindowReport,
        stacks: &StackTable,
    ) -> Result<()> {
        let date = date(report.wall_start);
        if date != self.date {
            self.flush(directory)?;
            self.date = date;
        }
        self.sums.add(report);
        self.rows.window(report, stacks)?;
        self.buffered_ns = self.buffered_ns.saturating_add(report.length_ns);
        if self.buffered_ns >= flush_ns || self.rows.load() >= MAX_LOAD {
            self.flush(directory)?;
        }
        Ok(())
    }

    fn end(mut self, directory: &OutputDirectory, end: &RunEnd) -> Result<()> {
        self.rows.process_rows(None)?;
        self.flush(directory)?;
        run_row::publish(directory, &self.info, Some((end, &self.sums)))
    }

    fn flush(&mut self, directory: &OutputDirectory) -> Result<()> {
        if self.rows.load() == 0 {
            return Ok(());
        }
        let place = Place { directory, info: &self.info, date: &self.date, number: self.next };
        self.next += 1;
        self.buffered_ns = 0;
        place.write(&mut self.rows.processes)?;
        place.write(&mut self.rows.stacks)?;
        place.write(&mut self.rows.branches)?;
        place.write(&mut self.rows.methods)?;
        place.write(&mut self.rows.quality)?;
        place.write(&mut self.rows.jvms)?;
        place.write(&mut self.rows.threads)?;
        place.write(&mut self.rows.weights)?;
        place.write(&mut self.rows.windows)
    }
}

/// Where the files of one flush go.
pub(crate) struct Place<'a> {
    pub(crate) directory: &'a OutputDirectory,
    pub(crate) info: &'a RunInfo,
    pub(crate) date: &'a str,
    pub(crate) number: u32,
}

impl Place<'_> {
    pub(crate) fn write<T: Table>(&self, rows: &mut Buffer<T>) -> Result<()> {
        write(self.directory, self.info, &self.folder::<T>(), &self.name(), rows)
    }

    pub(crate) fn folder<T: Table>(&self) -> PathBuf {
        let host = path_part(&self.info.host);
        [T::NAME, &format!("date={}", self.date), &format!("host={host}")].iter().collect()
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{:04}.parquet", path_part(&self.info.run_id), self.number)
    }
}

/// Publishes rows as a file, unless there are none.
pub(crate) fn write<T: Table>(
    directory: &OutputDirectory,
    info: &RunInfo,
    folder: &Path,
    name: &str,
    rows: &mut Buffer<T>,
) -> Result<()> {
    if rows.load() == 0 {
        return Ok(());
    }
    let batch = rows.finish().map_err(OutputError::encode(T::NAME))?;
    directory.publish(folder, name, &encode::file::<T>(&batch, info)?)
}

/// UTC date of a moment.
pub(crate) fn date(moment: UnixMicros) -> String {
    Timestamp::from_microsecond(moment.0)
        .map_or_else(|_| "unknown".to_owned(), |moment| moment.strftime("%Y-%m-%d").to_string())
}

/// A name as a part of a path: letters, digits, `.`, `_` and `-`, not hidden, not too long.
fn path_part(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let part: String = name.trim_start_matches('.').chars().take(100).map(kept).collect();
    if part.is_empty() { "unknown".to_owned() } else { part }
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
mod tests;
