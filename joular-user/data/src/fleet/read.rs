//! Reads a source: a run that was rolled up, or one of a tier.

use std::collections::HashMap;

use super::{
    erase::{Rules, in_source},
    names::Name,
    unit::Unit,
};
use crate::{
    attribution::{
        allocated::SampledBy,
        window_report::{Category, ProcessRef},
    },
    dataset::{
        error::{DataSetError, Result},
        read::{
            columns::{Columns, TableFile},
            files::RunFiles,
            footer::Footer,
            rollup::{self, ReadRollupWindow},
            run_row,
            stacks::ReadStacks,
        },
        tables::{
            Amounts, Processes, Stacks, Windows, allocations, amounts, processes,
            shared::{COMM, PID, PROCESS_START, WINDOW_START},
            work::{CATEGORY, STACK_ID},
        },
        write::{Amount, AmountKey},
    },
    model::{
        domain::{Label, Role},
        measure::Measure,
        target_text::TargetText,
        units::{Pid, UnixMicros},
    },
    text::seconds,
};

/// A process, and when it started in nanoseconds since 1970.
pub(super) type ProcessKey = (Pid, u64);

/// What a source has of a unit.
#[derive(Default)]
pub(super) struct Source {
    /// The folder of its host.
    pub(super) host: String,
    /// The weakest of the domains whose energy is divided.
    pub(super) label: Option<Label>,
    /// Length of the windows that were recorded, nanoseconds.
    pub(super) interval_ns: u64,
    pub(super) processes: HashMap<ProcessKey, Name>,
    pub(super) windows: Vec<ReadRollupWindow>,
    /// Each with the start of its window, µs since 1970.
    pub(super) amounts: Vec<(i64, AmountKey, Amount)>,
}

/// What a run has of a unit; `None` if it has no window in it, or its host is erased. Its stacks are added to those of others.
/// What is erased is so here, whether or not it is so in the run.
///
/// # Errors
/// If it is not a rollup, its windows do not fit into those of the tier, or it cannot be read.
pub(super) fn source(run: &RunFiles, unit: Unit, rules: &Rules, stacks: &mut ReadStacks) -> Result<Option<Source>> {
    if !may_have(run, unit)? {
        return Ok(None);
    }
    let row = run_row::read(&run.row)?;
    if rules.have_host(&row.info) {
        return Ok(None);
    }
    let refused = |problem: String| DataSetError::Damaged { path: run.row.path(), problem };
    let Some(interval_ns) = row.rolled_up_from_ns else {
        return Err(refused("it is not a rollup: ship windows of a minute".to_owned()));
    };
    let window_ns = unit.tier.window_us().cast_unsigned().saturating_mul(1000);
    if row.info.interval_ns == 0 || !window_ns.is_multiple_of(row.info.interval_ns) {
        let (found, tier) = (seconds(row.info.interval_ns), seconds(window_ns));
        return Err(refused(format!(
            "its windows are {found} s long, and those of the tier, {tier} s, are no multiple of it"
        )));
    }
    let domains = row.info.domains.iter();
    let shared = domains.clone().filter(|domain| domain.role == Role::Shared).map(|domain| domain.label).max();
    let mut source = Source {
        host: run.place.run().0,
        label: shared.or_else(|| domains.map(|domain| domain.label).max()),
        interval_ns,
        processes: HashMap::new(),
        windows: Vec::new(),
        amounts: Vec::new(),
    };
    for (_, part) in &run.parts {
        if let Some(file) = part.file::<Stacks>() {
            stacks.read(file)?;
        }
        if let Some(file) = part.file::<Processes>() {
            TableFile::open(file)?.batches(|columns| names(columns, &mut source.processes))?;
        }
        if let Some(file) = part.file::<Amounts>() {
            let is_wanted = |start| unit.has(UnixMicros(start));
            TableFile::open(file)?.batches(|columns| take_amounts(columns, is_wanted, &mut source.amounts))?;
        }
        let (windows, _) = rollup::read(part, stacks)?;
        source.windows.extend(windows.into_iter().filter(|read| unit.has(read.window.report.wall_start)));
    }
    in_source(&mut source, &rules.processes(run, row.info.started)?, stacks);
    Ok(Some(source))
}

/// Whether a window of the run may be in the unit, by what its files say.
fn may_have(run: &RunFiles, unit: Unit) -> Result<bool> {
    for (_, part) in &run.parts {
        let Some(file) = part.file::<Windows>() else { continue };
        let spans = Footer::read(file)?.windows;
        if spans.is_none_or(|(first, last)| unit.overlaps(first, last)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Later rows say what is known later.
fn names(columns: &Columns<'_>, known: &mut HashMap<ProcessKey, Name>) -> Result<()> {
    let (pids, starts) = (columns.ints(PID)?, columns.times(PROCESS_START)?);
    let [services, versions] = [processes::SERVICE, processes::VERSION].map(|column| columns.texts(column));
    let (services, versions) = (services?, versions?);
    let (main_classes, namespaces) = (columns.texts(processes::MAIN_CLASS)?, columns.texts(processes::NAMESPACE)?);
    let comms = columns.texts(COMM)?;
    let text = |text: Option<&str>| text.map(TargetText::from);
    for row in 0..columns.rows() {
        // A process without a window has no start, and nothing else.
        let Some(start) = starts.maybe(row) else { continue };
        let name = Name {
            service: text(services.maybe(row)),
            version: text(versions.maybe(row)),
            namespace: text(namespaces.maybe(row)),
            main_class: text(main_classes.maybe(row)),
            comm: None,
        };
        let comm = comms.get(row)?;
        let name = name.or_comm(|| comm.into());
        known.insert((Pid(pids.natural(row)?), start_ns(start)), name);
    }
    Ok(())
}

/// Adds what rows have whose windows start at a time that is wanted.
pub(super) fn take_amounts(
    columns: &Columns<'_>,
    is_wanted: impl Fn(i64) -> bool,
    found: &mut Vec<(i64, AmountKey, Amount)>,
) -> Result<()> {
    let (windows, pids) = (columns.times(WINDOW_START)?, columns.ints(PID)?);
    let (starts, comms) = (columns.times(PROCESS_START)?, columns.texts(COMM)?);
    let (categories, stack_ids) = (columns.texts(CATEGORY)?, columns.ints(STACK_ID)?);
    let (measures, classes) = (columns.texts(amounts::MEASURE)?, columns.texts(allocations::CLASS)?);
    let [amount_of, samples, per_sample] =
        [amounts::AMOUNT, amounts::SAMPLES, amounts::MILLI_PER_SAMPLE].map(|column| columns.ints(column));
    let (amount_of, samples, per_sample) = (amount_of?, samples?, per_sample?);
    let sampled_by = columns.texts(allocations::SAMPLED_BY)?;
    for row in 0..columns.rows() {
        let start = windows.get(row)?;
        if !is_wanted(start) {
            continue;
        }
        let category = |name: &str| Category::ALL.into_iter().find(|category| category.name() == name);
        let by = sampled_by.maybe(row);
        let amount = amount_of.natural(row)?;
        let key = AmountKey {
            process: ProcessRef {
                pid: Pid(pids.natural(row)?),
                start_boottime_ns: start_ns(starts.get(row)?),
                comm: comms.get(row)?.into(),
            },
            category: categories.name_of(row, category)?,
            stack_id: stack_ids.get(row)?,
            measure: measures.name_of(row, |name| name.parse::<Measure>().ok())?,
            class: classes.maybe(row).map(ToOwned::to_owned),
            sampled_by: SampledBy::ALL.into_iter().find(|known| by == Some(known.name())),
        };
        let sampled = amounts::sampled(amount, samples.natural(row)?, per_sample.maybe_natural(row)?);
        found.push((start, key, Amount { amount, sampled }));
    }
    Ok(())
}

/// As windows of a rollup have it.
pub(super) fn start_ns(start_us: i64) -> u64 {
    u64::try_from(start_us).unwrap_or(0).saturating_mul(1000)
}
