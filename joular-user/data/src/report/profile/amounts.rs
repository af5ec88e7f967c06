//! Reads amounts of measures, a row each, as a rollup keeps bytes and counts. Reports take what was allocated in the same form.

use super::{Filter, PathIndex, ThreadIndex, filter::Allowed, reader::DataSet, thread_rows};
use crate::{
    attribution::allocated::SampledBy,
    dataset::{
        column::Named,
        error::Result,
        read::{
            columns::{Columns, TableFile},
            decode_ahead,
        },
        tables::{Amounts, allocations, amounts},
    },
    model::{measure::Measure, units::UnixMicros},
    sampling::Sampled,
};

/// What a thread has of a measure on a path in a window; in a rollup, all threads of a category of a process.
#[derive(Clone, Copy, Debug)]
pub struct AmountRow<'a> {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub window_start: UnixMicros,
    pub window_ns: u64,
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// Whether the filter allows the path.
    pub is_path_allowed: bool,
    pub measure: Measure,
    /// Of allocated bytes, if a sample says which.
    pub class: Option<&'a str>,
    /// Whether samples of CPU time say where bytes were allocated.
    pub by_cpu_time: bool,
    pub amount: u64,
    /// What of it samples divide.
    pub sampled: Sampled,
}

/// Calls with each row of the windows, processes and threads that `filter` allows. What was recorded has none.
///
/// # Errors
/// If a file cannot be read or is damaged.
pub(super) fn each(data: &mut DataSet, filter: &Filter, mut take: impl FnMut(&AmountRow<'_>)) -> Result<()> {
    let mut allowed = Allowed::default();
    for run in 0..data.catalog.runs.len() {
        let span = filter.span(&data.catalog.runs[run]);
        decode_ahead::batches(
            &data.files::<Amounts>(run),
            |file| TableFile::open_span(file, &thread_rows::with(&COLUMNS), &span),
            |columns| rows((&mut *data, run), (filter, &mut allowed), columns, &mut take),
        )?;
    }
    Ok(())
}

fn rows(
    data: (&mut DataSet, usize),
    filter: (&Filter, &mut Allowed),
    columns: &Columns<'_>,
    take: &mut impl FnMut(&AmountRow<'_>),
) -> Result<()> {
    let run = data.1;
    let (measures, classes) = (columns.names(amounts::MEASURE)?, columns.names(allocations::CLASS)?);
    let (all, samples) = (columns.ints(amounts::AMOUNT)?, columns.ints(amounts::SAMPLES)?);
    let (per_sample, sampled_by) = (columns.ints(amounts::MILLI_PER_SAMPLE)?, columns.names(allocations::SAMPLED_BY)?);
    thread_rows::each(
        data,
        filter,
        columns,
        |_| Ok(true),
        |row| {
            let amount = all.natural(row.index)?;
            let per_sample = per_sample.maybe_natural::<u64>(row.index)?;
            take(&AmountRow {
                run,
                window_start: row.window_start,
                window_ns: row.window_ns,
                thread: row.thread,
                path: row.path,
                is_path_allowed: row.is_path_allowed,
                measure: measures.name_of(row.index, |name| name.parse::<Measure>().ok())?,
                class: classes.maybe(row.index)?,
                by_cpu_time: sampled_by.maybe(row.index)? == Some(SampledBy::CpuTime.name()),
                amount,
                sampled: amounts::sampled(amount, samples.natural(row.index)?, per_sample),
            });
            Ok(())
        },
    )
}

const COLUMNS: [&dyn Named; 6] = [
    &amounts::MEASURE,
    &allocations::CLASS,
    &amounts::AMOUNT,
    &amounts::SAMPLES,
    &amounts::MILLI_PER_SAMPLE,
    &allocations::SAMPLED_BY,
];
