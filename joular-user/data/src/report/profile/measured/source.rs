//! Reads tables that say what threads have of measures on call paths: allocations, I/O, and a rollup's amounts.

use std::collections::BTreeSet;

use joular_ebpf::abi::IoKind;

use super::{AmountRow, Part};
use crate::{
    attribution::{
        allocated::{self, SampledBy},
        inference::apportion,
        work::Claimant,
    },
    dataset::{
        column::Table,
        error::Result,
        read::{
            columns::{Columns, Names, Numbers},
            decode_ahead,
            span::Span,
        },
        tables::{Allocations, Amounts, Io, allocations, amounts, counters, io, shared, work},
    },
    model::{
        byte_costs::BytesByKind,
        measure::Measure,
        units::{MicroJoules, UnixMicros},
        way::Way,
    },
    report::profile::{Catalog, Filter, filter::Allowed, reader::DataSet, thread_columns::ThreadColumns},
    sampling::Sampled,
};

/// A table whose rows are of a thread and a call path in a window, and have amounts of measures.
pub(super) trait Source: Table {
    /// The columns that amounts are made of.
    type Of<'a>;

    fn of<'a>(columns: &'a Columns<'a>) -> Result<Self::Of<'a>>;

    /// Whether a row is of a thread. Others have no thread and no path.
    fn is_of_thread(_: &Self::Of<'_>, _row: usize) -> Result<bool> {
        Ok(true)
    }

    /// Calls `take` with each amount of a row that is not zero.
    fn parts(of: &Self::Of<'_>, row: usize, take: impl FnMut(Part<'_>)) -> Result<()>;
}

/// Calls `take` with each amount of whole windows, processes and threads that `filter` allows. `is_allowed` says by path
/// whether it allows the path.
pub(super) fn each<S: Source>(
    data: &mut DataSet,
    filter: &Filter,
    is_allowed: &[bool],
    take: &mut dyn FnMut(&Catalog, &AmountRow<'_>),
) -> Result<()> {
    for run in 0..data.catalog.runs.len() {
        let span = filter.span(&data.catalog.runs[run]);
        each_of_run::<S>(data, (run, &span), filter, is_allowed, take)?;
    }
    Ok(())
}

/// Adds the measures of which threads have any amount, in whatever windows, processes and threads.
pub(super) fn measures<S: Source>(data: &DataSet, filter: &Filter, found: &mut BTreeSet<Measure>) -> Result<()> {
    for run in 0..data.catalog.runs.len() {
        let span = filter.span(&data.catalog.runs[run]);
        decode_ahead::batches(&data.files::<S>(run), &span, |columns| {
            filter.stop.check()?;
            let of = S::of(columns)?;
            for row in 0..columns.rows() {
                if S::is_of_thread(&of, row)? {
                    S::parts(&of, row, |part| {
                        if part.amount > 0 {
                            found.insert(part.measure);
                        }
                    })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `take` with what threads allocated in a run's windows of `span`.
pub(in crate::report::profile) fn allocations(
    data: &mut DataSet,
    at: (usize, &Span),
    filter: &Filter,
    take: &mut dyn FnMut(&Catalog, &AmountRow<'_>),
) -> Result<()> {
    each_of_run::<Allocations>(data, at, filter, &[], take)
}

fn each_of_run<S: Source>(
    data: &mut DataSet,
    (run, span): (usize, &Span),
    filter: &Filter,
    is_allowed: &[bool],
    take: &mut dyn FnMut(&Catalog, &AmountRow<'_>),
) -> Result<()> {
    let mut allowed = Allowed::default();
    decode_ahead::batches(&data.files::<S>(run), span, |columns| {
        filter.stop.check()?;
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        let (stacks, of) = (columns.ints(work::STACK_ID)?, S::of(columns)?);
        let mut threads = ThreadColumns::of(columns)?;
        for row in 0..columns.rows() {
            let window_start = UnixMicros(starts.get(row)?);
            if !S::is_of_thread(&of, row)? || !span.allows(window_start) || !data.is_whole(run, window_start) {
                continue;
            }
            let thread = threads.thread(data, run, row)?;
            if !allowed.thread(&data.catalog, filter, thread) {
                continue;
            }
            let (path, window_ns) = (data.path_of(stacks.get(row)?, columns)?, lengths.natural(row)?);
            let is_path_allowed = is_allowed.get(path.index()).copied().unwrap_or(false);
            S::parts(&of, row, |part| {
                let row = AmountRow { run, window_start, window_ns, thread, path, is_path_allowed, part };
                take(&data.catalog, &row);
            })?;
        }
        Ok(())
    })
}

/// Columns of table `allocations`.
pub(super) struct AllocationColumns<'a> {
    classes: Names<'a>,
    bytes: Numbers<'a>,
    samples: Numbers<'a>,
    sampled_by: Names<'a>,
    bytes_per_sample: Numbers<'a>,
}

impl Source for Allocations {
    type Of<'a> = AllocationColumns<'a>;

    fn of<'a>(columns: &'a Columns<'a>) -> Result<Self::Of<'a>> {
        Ok(AllocationColumns {
            classes: columns.names(allocations::CLASS)?,
            bytes: columns.ints(allocations::ALLOCATED_BYTES)?,
            samples: columns.ints(allocations::SAMPLES)?,
            sampled_by: columns.names(allocations::SAMPLED_BY)?,
            bytes_per_sample: columns.ints(allocations::BYTES_PER_SAMPLE)?,
        })
    }

    fn parts(of: &Self::Of<'_>, row: usize, mut take: impl FnMut(Part<'_>)) -> Result<()> {
        let (amount, class) = (of.bytes.natural(row)?, of.classes.maybe(row)?);
        let per_sample = of.bytes_per_sample.maybe_natural(row)?;
        let sampled = allocated::sampled(amount, of.samples.natural(row)?, per_sample);
        let sampled_by = sampled_by(&of.sampled_by, row)?;
        take(Part { measure: Measure::Allocated, class, sampled_by, amount, sampled });
        Ok(())
    }
}

/// Where no sample says anything, none is of an unusual kind.
fn sampled_by(names: &Names<'_>, row: usize) -> Result<SampledBy> {
    let name = names.maybe(row)?;
    Ok(SampledBy::ALL.into_iter().find(|by| name == Some(by.name())).unwrap_or_default())
}

/// Columns of table `io`.
pub(super) struct IoColumns<'a> {
    claimants: Names<'a>,
    bytes: Vec<Numbers<'a>>,
    samples: Numbers<'a>,
}

impl Source for Io {
    type Of<'a> = IoColumns<'a>;

    fn of<'a>(columns: &'a Columns<'a>) -> Result<Self::Of<'a>> {
        let bytes = IoKind::ALL.into_iter().map(|kind| columns.ints(io::bytes_of(kind))).collect::<Result<_>>()?;
        Ok(IoColumns { claimants: columns.names(counters::CLAIMANT)?, bytes, samples: columns.ints(io::SAMPLES)? })
    }

    fn is_of_thread(of: &Self::Of<'_>, row: usize) -> Result<bool> {
        Ok(of.claimants.get(row)? == Claimant::Thread(0).name())
    }

    fn parts(of: &Self::Of<'_>, row: usize, take: impl FnMut(Part<'_>)) -> Result<()> {
        let mut bytes = BytesByKind::default();
        for (sum, of_kind) in bytes.iter_mut().zip(&of.bytes) {
            // Not every kernel knows of devices.
            *sum = of_kind.maybe_natural(row)?.unwrap_or(0);
        }
        moved(&bytes, of.samples.natural(row)?).for_each(take);
        Ok(())
    }
}

/// Bytes by kind, and the calls that were sampled where they went. A sample stands for about as many bytes whatever
/// their kind, so each kind has its part of the samples.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
pub(in crate::report::profile) fn moved(bytes: &BytesByKind, samples: u64) -> impl Iterator<Item = Part<'static>> {
    let all: f64 = bytes.iter().map(|bytes| *bytes as f64).sum();
    let kinds = IoKind::ALL.into_iter().zip(*bytes).zip(apportion(samples, bytes));
    kinds.filter(|((_, amount), _)| *amount > 0).map(move |((kind, amount), part)| {
        let squares = amount as f64 * all / samples as f64;
        let sampled = Sampled { energy: MicroJoules(amount), samples: part, squares };
        let sampled = if samples > 0 { sampled } else { Sampled::default() };
        let sampled_by = SampledBy::default();
        Part { measure: Measure::Moved(Way::of_kind(kind)), class: None, sampled_by, amount, sampled }
    })
}

/// Columns of a rollup's table `amounts`.
pub(super) struct AmountColumns<'a> {
    measures: Names<'a>,
    classes: Names<'a>,
    amounts: Numbers<'a>,
    samples: Numbers<'a>,
    milli_per_sample: Numbers<'a>,
    sampled_by: Names<'a>,
}

impl Source for Amounts {
    type Of<'a> = AmountColumns<'a>;

    fn of<'a>(columns: &'a Columns<'a>) -> Result<Self::Of<'a>> {
        Ok(AmountColumns {
            measures: columns.names(amounts::MEASURE)?,
            classes: columns.names(allocations::CLASS)?,
            amounts: columns.ints(amounts::AMOUNT)?,
            samples: columns.ints(amounts::SAMPLES)?,
            milli_per_sample: columns.ints(amounts::MILLI_PER_SAMPLE)?,
            sampled_by: columns.names(allocations::SAMPLED_BY)?,
        })
    }

    fn parts(of: &Self::Of<'_>, row: usize, mut take: impl FnMut(Part<'_>)) -> Result<()> {
        let (amount, per_sample) = (of.amounts.natural(row)?, of.milli_per_sample.maybe_natural::<u64>(row)?);
        take(Part {
            measure: of.measures.name_of(row, |name| name.parse::<Measure>().ok())?,
            class: of.classes.maybe(row)?,
            sampled_by: sampled_by(&of.sampled_by, row)?,
            amount,
            sampled: amounts::sampled(amount, of.samples.natural(row)?, per_sample),
        });
        Ok(())
    }
}
