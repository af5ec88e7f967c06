//! Sums the windows of a run to longer ones, for `joular-bpf rollup`: a minute of a fleet's hosts instead of
//! a second.
//!
//! A window of a rollup holds the windows that start in its stretch of the wall clock, so windows of all
//! hosts are alike. All sums are exact. What is given up: which thread a call path was of (it is of a
//! category of a process), and what energy is divided by (`weights`), so that a rollup cannot be attributed
//! again. Bytes and counts stay, by call path ([`amounts`]). Energy that no sample hit is shared out before, by the code that reports use ([`inferred`]), and
//! stands beside what was recorded. So a report of the rollup says what one of the recorded run says.

mod amounts;
pub(crate) mod beside;
pub(crate) mod grouped;
mod inferred;
#[cfg(test)]
mod tests;
mod window;

use std::{collections::HashSet, io, path::Path, sync::Arc};

use serde::Serialize;

use self::window::Sum;
use crate::{
    attribution::{Attributor, window_report::WindowReport},
    dataset::{
        OutputDirectory,
        column::Table as _,
        compact::merge_files,
        error::{DataSetError, Result},
        layout::{FilePlace, date},
        read::{
            files::{self, RunFiles},
            footer::Footer,
            run_row::RunRow,
            stacks::ReadStacks,
            windows,
        },
        store::{self, Store, StoredFile},
        tables::{Processes, Stacks},
        write::RollupWriter,
    },
    events::RunInfo,
    redact::Redaction,
    report::profile::{AmountRow, Catalog, DataSet, EnergyRow, Filter, Watch},
    text::{count, seconds},
};

/// Windows that are written together. Of a minute each, they are a quarter of an hour.
const WINDOWS_PER_FILE: usize = 15;

/// Rows of one table in memory before they are written early.
const MAX_LOAD: usize = 500_000;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RolledUp {
    pub runs: u64,
    /// As recorded.
    pub windows_before: u64,
    pub windows_after: u64,
}

/// Rolls a data set up into a new directory that belongs to `owner`. Windows become `length_ns` long, and command lines are
/// as `redaction` shows them.
///
/// # Errors
/// If a run is a rollup already, `length_ns` is not a multiple of its windows' length, or a file cannot be
/// read or written.
pub fn run(
    from: &Path,
    to: &Path,
    length_ns: u64,
    owner: Option<(u32, u32)>,
    redaction: &Redaction,
) -> Result<RolledUp> {
    let to = OutputDirectory::create(to, owner)?;
    of_store(&store::open(from)?, to.store(), length_ns, redaction)
}

/// The same from store to store.
///
/// # Errors
/// As [`run`].
pub fn of_store(from: &Arc<dyn Store>, to: &dyn Store, length_ns: u64, redaction: &Redaction) -> Result<RolledUp> {
    let mut rolled_up = RolledUp::default();
    for (row, files) in files::find_with_rows(from)? {
        let done = of_run(row, &files, to, length_ns, redaction)?;
        rolled_up.runs += done.runs;
        rolled_up.windows_before += done.windows_before;
        rolled_up.windows_after += done.windows_after;
    }
    Ok(rolled_up)
}

impl RolledUp {
    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let (runs, windows) = (count(self.runs, "run"), |number| count(number, "window"));
        writeln!(out, "rolled up {} of {runs} to {}", windows(self.windows_before), windows(self.windows_after))
    }
}

/// The same of one run.
///
/// # Errors
/// As [`run`].
pub(crate) fn of_run(
    row: RunRow,
    files: &RunFiles,
    to: &dyn Store,
    length_ns: u64,
    redaction: &Redaction,
) -> Result<RolledUp> {
    let refused = |problem: String| DataSetError::RollUp { path: files.row.path(), problem };
    let from_ns = row.info.interval_ns;
    if row.rolled_up_from_ns.is_some() {
        return Err(refused("it is a rollup already: roll up what was recorded".to_owned()));
    }
    if from_ns == 0 || length_ns <= from_ns || !length_ns.is_multiple_of(from_ns) {
        let interval = seconds(from_ns);
        return Err(refused(format!("its windows are {interval} s long: name a multiple of that")));
    }
    let length_us = i64::try_from(length_ns / 1000).unwrap_or(i64::MAX);
    let (inferred, amounts) = over_time(files, length_us)?;
    let info = RunInfo { interval_ns: length_ns, ..row.info.redacted(redaction) };
    let mut run = Run {
        to,
        redaction,
        writer: RollupWriter::start(to, info, from_ns)?,
        length_us,
        inferred,
        amounts,
        sum: None,
        copied: Copied::default(),
        waiting: 0,
        next_file: 0,
        date: date(row.info.started),
        done: RolledUp { runs: 1, ..RolledUp::default() },
    };
    let mut attributor = Attributor::new(&row.info);
    // Windows may get energy for call paths of later ones, so all stacks come first.
    let mut stacks = ReadStacks::default();
    for file in files.parts.iter().filter_map(|(_, part)| part.file::<Stacks>()) {
        stacks.read(file)?;
        run.copied.stacks.push(file.clone());
    }
    for (_, part) in &files.parts {
        run.copied.processes.extend(part.file::<Processes>().cloned());
        for window in windows::read(part, &row.info.domains, &stacks)?.0 {
            let report = attributor.attribute(window.work, &stacks.table);
            run.window(&report, &stacks)?;
        }
    }
    run.end_window(&stacks)?;
    run.publish()?;
    run.writer.end(row.end.as_ref().map(|(end, _)| end))?;
    Ok(run.done)
}

/// Reads a run twice in the order of time: what is left at its end goes back to windows before.
fn over_time(files: &RunFiles, length_us: i64) -> Result<(inferred::OfRun, amounts::OfRun)> {
    let filter = Filter::default();
    let mut data = DataSet::of_files(vec![files.clone()], &filter)?;
    let stack_ids = data.stack_ids.clone();
    let summed = data.sums(&filter, &mut |_, _| {})?;
    let inferred = inferred::OfRun::new(length_us);
    let mut over_time = OverTime { stack_ids: &stack_ids, inferred, amounts: amounts::Reading::new(length_us) };
    data.measured(&filter, &summed, &mut over_time)?;
    let OverTime { inferred, amounts, .. } = over_time;
    Ok((inferred, amounts.finish(&data.catalog, &stack_ids)))
}

/// What is read of a run.
struct OverTime<'a> {
    stack_ids: &'a [i64],
    inferred: inferred::OfRun,
    amounts: amounts::Reading,
}

impl Watch for OverTime<'_> {
    fn wants_time(&self) -> bool {
        true
    }

    fn in_time(&mut self, catalog: &Catalog, row: &EnergyRow) {
        self.inferred.take_row(catalog, self.stack_ids, row);
    }

    fn amount(&mut self, _: &Catalog, row: &AmountRow<'_>) {
        self.amounts.take(row);
    }
}

/// A run that is being rolled up.
struct Run<'a> {
    to: &'a dyn Store,
    redaction: &'a Redaction,
    writer: RollupWriter<'a>,
    length_us: i64,
    inferred: inferred::OfRun,
    amounts: amounts::OfRun,
    /// The window that is being summed, and its number on the wall clock.
    sum: Option<(i64, Sum)>,
    copied: Copied,
    /// Windows that wait to be written.
    waiting: usize,
    next_file: u32,
    /// Of the windows that wait.
    date: String,
    done: RolledUp,
}

/// Files whose rows are copied, since the last file was written.
#[derive(Default)]
struct Copied {
    processes: Vec<StoredFile>,
    stacks: Vec<StoredFile>,
}

impl Run<'_> {
    fn window(&mut self, report: &WindowReport, stacks: &ReadStacks) -> Result<()> {
        let number = report.wall_start.0.div_euclid(self.length_us);
        if self.sum.as_ref().is_some_and(|(of, _)| *of != number) {
            self.end_window(stacks)?;
        }
        self.done.windows_before += 1;
        match &mut self.sum {
            Some((_, sum)) => sum.add(report, &stacks.table),
            None => {
                let date = date(report.wall_start);
                if date != self.date && self.waiting > 0 {
                    self.publish()?;
                }
                self.date = date;
                self.sum = Some((number, Sum::of(self.done.windows_after, report, &stacks.table)));
            }
        }
        Ok(())
    }

    fn end_window(&mut self, stacks: &ReadStacks) -> Result<()> {
        let Some((number, sum)) = self.sum.take() else { return Ok(()) };
        let mut window = sum.finish(&self.inferred.take(number), stacks);
        window.amounts = self.amounts.take(number);
        self.writer.window(&window, &stacks.table)?;
        self.done.windows_after += 1;
        self.waiting += 1;
        if self.waiting >= WINDOWS_PER_FILE || self.writer.load() >= MAX_LOAD { self.publish() } else { Ok(()) }
    }

    /// Writes what waits. Rows of processes and stacks come first: windows refer to them.
    fn publish(&mut self) -> Result<()> {
        let place = FilePlace::new(self.writer.info(), &self.date, self.next_file);
        let Copied { processes, stacks } = &mut self.copied;
        if self.waiting == 0 && processes.is_empty() && stacks.is_empty() {
            return Ok(());
        }
        for (table, files) in [(Processes::NAME, processes), (Stacks::NAME, stacks)] {
            copy(table, &std::mem::take(files), self.to, &place, self.redaction)?;
        }
        self.writer.publish(&place)?;
        self.waiting = 0;
        self.next_file += 1;
        Ok(())
    }
}

fn copy(
    table: &'static str,
    files: &[StoredFile],
    to: &dyn Store,
    place: &FilePlace,
    redaction: &Redaction,
) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let footer = Footer::read(first)?;
    for file in files {
        let other = Footer::read(file)?;
        if (&other.schema, &other.metadata) != (&footer.schema, &footer.metadata) {
            let problem = "its columns are not those of the run's other files: copy it anew from where it was recorded"
                .to_owned();
            return Err(DataSetError::RollUp { path: file.path(), problem });
        }
    }
    let into = (place.folder(table), place.name.clone());
    merge_files(table, files, &footer, (&mut HashSet::new(), redaction), to, &into)?;
    Ok(())
}
