//! Sums what a selection holds beside call paths: the machine's energy and where it went, what JVMs
//! did for themselves, how good stacks are.
//!
//! Windows are of the whole machine. Conditions on processes or threads do not divide them, and
//! apply to JVMs and stacks only.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use foldhash::fast::RandomState;

use super::{
    catalog::{ProcessIndex, Run},
    filter::Filter,
    host_times::{HostTimes, RunTime},
    load::{Load, LoadColumns},
    reader::DataSet,
    sources::ReadFrom,
};
use crate::{
    attribution::window_report::{Category, Unattributed},
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        read::{
            columns::{Columns, Flags, Names, Numbers},
            decode_ahead,
            unreadable::SkippedRuns,
            windows::{LossColumns, UnattributedColumns},
        },
        tables::{Jvms, Quality, Windows, jvms, quality, shared, stacks, windows},
    },
    events::LossCount,
    model::{
        domain::{Label, Role},
        units::{MicroJoules, UnixMicros},
    },
    stacks::JvmWork,
    totals::lag::Lag,
};

/// Sums over the windows of a selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    pub windows: u64,
    /// Time of the host that was recorded longest. Power is energy over this time.
    pub duration_ns: u64,
    /// Times of each run of [`super::Catalog::runs`].
    pub run_times: Vec<RunTime>,
    /// Time in which several runs recorded one host: the machine's energy counts once for each of
    /// them.
    pub overlap_ns: u64,
    /// First window's start and last window's end; `None` without windows.
    pub span: Option<(UnixMicros, UnixMicros)>,
    pub measured: MicroJoules,
    pub attributed: MicroJoules,
    pub static_share: MicroJoules,
    pub unattributed: Unattributed,
    /// Readings of energy counters that were not certain, or that failed.
    pub ambiguous: u64,
    pub read_failed: u64,
    /// Energy for which another counter has a figure, and that figure.
    pub checked: Option<(MicroJoules, MicroJoules)>,
    /// Runs that cannot be read, and whose rows count for nothing.
    pub skipped: SkippedRuns,
    /// What all of this was read from, if there was a choice.
    pub read_from: Option<ReadFrom>,
    /// Rows that belong to no whole window and count for nothing; a crash left them.
    pub left_out: Amounts,
    /// Energy of the selection inferred from samples of other windows: see [`crate::attribution::inference`].
    pub inferred: MicroJoules,
    /// Energy of collectors that stands at paths of the selection: see [`Filter::charge_gc`].
    pub gc_charged: MicroJoules,
    /// Energy of the selection's collectors that is charged to nobody, because no allocation causes it.
    pub gc_kept: MicroJoules,
    /// Samples of targets, whole machine.
    pub samples: u64,
    pub losses: BTreeMap<String, u64>,
    /// By how much times of CPUs may be off.
    pub inexact_cpu_ns: u64,
    /// How far off `attributed` may be because counters lag, if phases are selected and counters were watched.
    pub lag: Option<Lag>,
    /// What the windows ran under.
    pub load: Load,
    /// The weakest label of the runs' energy.
    pub label: Option<Label>,
    /// Names of the energy sources.
    pub sources: Vec<String>,
    /// Groups whose fitted watts weigh CPU time in some of the runs.
    pub watts_by: BTreeSet<String>,
    /// Names of the domains that add up to the energy, each once.
    pub domains: Vec<String>,
    /// Per JVM, in the order of [`super::Catalog::processes`].
    pub jvms: BTreeMap<ProcessIndex, JvmEnergy>,
    pub qualities: BTreeMap<QualityKey, Amounts>,
}

/// A JVM's energy and its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmEnergy {
    pub whole: MicroJoules,
    /// In the order of [`JvmWork::ALL`].
    pub parts: [MicroJoules; JvmWork::ALL.len()],
}

impl JvmEnergy {
    /// What the JVM did for itself.
    pub fn tax(&self) -> MicroJoules {
        JvmWork::ALL.into_iter().zip(self.parts).filter(|(work, _)| work.is_tax()).map(|(_, energy)| energy).sum()
    }
}

/// What stacks have in common, by the names that table `quality` has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualityKey {
    /// Whether the stacks are of a process in [`Overview::jvms`].
    pub is_of_jvm: bool,
    pub category: Category,
    pub unwinder: Option<String>,
    pub walk_end: String,
    pub is_complete: Option<bool>,
    pub unnamed: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Part of `energy` that is inferred from samples of other windows: see [`crate::attribution::inference`].
    pub inferred: MicroJoules,
    /// Part of `energy` that goes by bytes that were moved or allocated. Samples have no part in it.
    pub by_bytes: MicroJoules,
    /// Of the measure that a call tree has beside energy, in its unit. Entries and rows of the data set have none.
    pub beside: u64,
}

impl DataSet {
    /// Reads tables `windows`, `jvms` and `quality`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn overview(&mut self, filter: &Filter) -> Result<Overview> {
        let (skipped, read_from) = (filter.skipped(), self.read_from.clone());
        let mut overview = Overview { skipped, read_from, ..Overview::default() };
        self.expect(&[Windows::NAME]);
        overview.run_times = overview.read_windows(self, filter)?;
        self.expect(&[Jvms::NAME, Quality::NAME]);
        for run in 0..self.catalog.runs.len() {
            overview.describe(&self.catalog.runs[run]);
            overview.lag = overview.lag.into_iter().chain(self.lag(run, filter)?).reduce(Lag::plus);
            overview.read_jvms(self, run, filter)?;
            overview.read_qualities(self, run, filter)?;
        }
        // Pieces are of different times. In sums a service is a host, and has a run for each label of its energy.
        let mut pieces: BTreeMap<Option<&str>, HostTimes<_>> = BTreeMap::new();
        for (run, time) in self.catalog.runs.iter().zip(&overview.run_times) {
            pieces.entry(run.piece.folder).or_default().add(run.info.machine(), *time);
        }
        let spans = pieces.values().filter_map(HostTimes::span);
        overview.span = spans.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        overview.duration_ns = pieces.values().map(HostTimes::longest_ns).fold(0, u64::saturating_add);
        overview.overlap_ns = pieces.get(&None).map_or(0, HostTimes::overlap_ns);
        Ok(overview)
    }
}

impl Overview {
    /// Sum of the items. With attributed and static energy it gives the measured energy.
    pub fn unattributed_total(&self) -> MicroJoules {
        self.unattributed.total()
    }

    fn describe(&mut self, run: &Run) {
        let counted = run.info.domains.iter().filter(|domain| matches!(domain.role, Role::Shared | Role::Unshared));
        self.label = self.label.max(counted.clone().map(|domain| domain.label).max());
        for domain in counted {
            if !self.domains.contains(&domain.name) {
                self.domains.push(domain.name.clone());
            }
        }
        self.watts_by.extend(run.info.policy.watts_by.clone());
        if !self.sources.contains(&run.info.energy_source) {
            self.sources.push(run.info.energy_source.clone());
        }
    }

    /// Returns the time of each run.
    fn read_windows(&mut self, data: &DataSet, filter: &Filter) -> Result<Vec<RunTime>> {
        let mut seen: HashSet<(usize, UnixMicros), RandomState> = HashSet::default();
        let files = data.allowed::<Windows>(filter);
        let mut times = vec![RunTime::default(); files.len()];
        decode_ahead::batches_of_runs(&files, |run, columns| {
            filter.stop.check()?;
            let rows = WindowColumns::of(columns)?;
            let (Some((_, span)), Some(time)) = (files.get(run), times.get_mut(run)) else { return Ok(()) };
            for row in 0..columns.rows() {
                let start = UnixMicros(rows.starts.get(row)?);
                if span.allows(start) {
                    self.take_domain(&rows, row)?;
                    if seen.insert((run, start)) {
                        let length_ns = rows.lengths.natural(row)?;
                        time.add(start, length_ns);
                        time.add_cpus(rows.load.elapsed_cpu_ns(row)?);
                        self.load.take(&rows.load, row, length_ns)?;
                        self.take_window(&rows, &rows.losses.of_row(columns, row)?, row)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(times)
    }

    fn take_domain(&mut self, rows: &WindowColumns<'_>, row: usize) -> Result<()> {
        if rows.domains.key(row).is_none() {
            return Ok(());
        }
        let energy = |column: &Numbers<'_>| Ok::<_, DataSetError>(MicroJoules(column.natural(row)?));
        self.measured = self.measured.saturating_add(energy(&rows.measured)?);
        self.attributed = self.attributed.saturating_add(energy(&rows.attributed)?);
        self.static_share = self.static_share.saturating_add(energy(&rows.static_share)?);
        self.unattributed = self.unattributed.plus(rows.unattributed.of_row(row)?);
        self.ambiguous += u64::from(rows.ambiguous.maybe(row) == Some(true));
        self.read_failed += u64::from(rows.read_failed.maybe(row) == Some(true));
        let is_plain = rows.faults.key(row).is_none() && rows.merged.maybe(row).unwrap_or(0) == 0;
        if let Some(check) = rows.checks.maybe_natural(row)?.filter(|_| is_plain) {
            let (ours, theirs) = self.checked.unwrap_or_default();
            let both = (ours.saturating_add(energy(&rows.measured)?), theirs.saturating_add(MicroJoules(check)));
            self.checked = Some(both);
        }
        Ok(())
    }

    /// Takes what is repeated on each row of a window and counts once.
    fn take_window(&mut self, rows: &WindowColumns<'_>, losses: &[LossCount], row: usize) -> Result<()> {
        self.windows += 1;
        self.samples = self.samples.saturating_add(rows.samples.natural(row)?);
        let inexact_ns = rows.inexact.natural(row)?;
        self.inexact_cpu_ns = self.inexact_cpu_ns.saturating_add(inexact_ns);
        for LossCount { cause, count } in losses {
            let sum = self.losses.entry(cause.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        Ok(())
    }

    fn read_jvms(&mut self, data: &mut DataSet, run: usize, filter: &Filter) -> Result<()> {
        let parts = JvmWork::ALL.map(jvms::part_uj);
        let span = filter.span(&data.catalog.runs[run]);
        decode_ahead::batches(&data.files::<Jvms>(run), &span, |columns| {
            let whole = columns.ints(jvms::ENERGY_UJ)?;
            let parts = parts.iter().map(|column| columns.ints(*column)).collect::<Result<Vec<_>>>()?;
            rows_of_processes(data, run, filter, columns, |row, process| {
                let jvm = self.jvms.entry(process).or_default();
                jvm.whole = jvm.whole.saturating_add(MicroJoules(whole.natural(row)?));
                for (sum, part) in jvm.parts.iter_mut().zip(&parts) {
                    *sum = sum.saturating_add(MicroJoules(part.natural(row)?));
                }
                Ok(())
            })
        })
    }

    fn read_qualities(&mut self, data: &mut DataSet, run: usize, filter: &Filter) -> Result<()> {
        use shared::{CPU_NS, ENERGY_UJ, SAMPLES};
        use stacks::{IS_COMPLETE, UNNAMED, UNWINDER, WALK_END};

        let span = filter.span(&data.catalog.runs[run]);
        decode_ahead::batches(&data.files::<Quality>(run), &span, |columns| {
            filter.stop.check()?;
            let (categories, unwinders) = (columns.names(quality::CATEGORY)?, columns.names(UNWINDER)?);
            let (ends, unnamed) = (columns.names(WALK_END)?, columns.names(UNNAMED)?);
            let complete = columns.flags(IS_COMPLETE)?;
            let (energies, times) = (columns.ints(ENERGY_UJ)?, columns.ints(CPU_NS)?);
            let samples = columns.ints(SAMPLES)?;
            rows_of_processes(data, run, filter, columns, |row, process| {
                let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
                let key = QualityKey {
                    is_of_jvm: self.jvms.contains_key(&process),
                    category: categories.name_of(row, |name| Category::ALL.into_iter().find(|is| is.name() == name))?,
                    unwinder: owned(unwinders.maybe(row)?),
                    walk_end: ends.get(row)?.to_owned(),
                    is_complete: complete.maybe(row),
                    unnamed: owned(unnamed.maybe(row)?),
                };
                if !filter.categories.is_empty() && !filter.categories.contains(&key.category) {
                    return Ok(());
                }
                let sums = self.qualities.entry(key).or_default();
                sums.energy = sums.energy.saturating_add(MicroJoules(energies.natural(row)?));
                sums.cpu_ns = sums.cpu_ns.saturating_add(times.natural(row)?);
                sums.samples = sums.samples.saturating_add(samples.natural(row)?);
                Ok(())
            })
        })
    }
}

/// Columns of table `windows`.
struct WindowColumns<'a> {
    starts: Numbers<'a>,
    lengths: Numbers<'a>,
    domains: Names<'a>,
    measured: Numbers<'a>,
    attributed: Numbers<'a>,
    static_share: Numbers<'a>,
    unattributed: UnattributedColumns<'a>,
    checks: Numbers<'a>,
    merged: Numbers<'a>,
    faults: Names<'a>,
    ambiguous: Flags,
    read_failed: Flags,
    samples: Numbers<'a>,
    load: LoadColumns<'a>,
    inexact: Numbers<'a>,
    losses: LossColumns<'a>,
}

impl<'a> WindowColumns<'a> {
    fn of(columns: &'a Columns<'a>) -> Result<Self> {
        Ok(Self {
            starts: columns.times(shared::WINDOW_START)?,
            lengths: columns.ints(shared::WINDOW_NS)?,
            domains: columns.names(windows::DOMAIN)?,
            measured: columns.ints(windows::MEASURED_UJ)?,
            attributed: columns.ints(windows::ATTRIBUTED_UJ)?,
            static_share: columns.ints(windows::STATIC_UJ)?,
            unattributed: UnattributedColumns::of(columns)?,
            checks: columns.ints(windows::CHECK_UJ)?,
            merged: columns.ints(windows::MERGED)?,
            faults: columns.names(windows::FAULT)?,
            ambiguous: columns.flags(windows::AMBIGUOUS)?,
            read_failed: columns.flags(windows::READ_FAILED)?,
            samples: columns.ints(windows::SAMPLES)?,
            load: LoadColumns::of(columns)?,
            inexact: columns.ints(windows::CPU_INEXACT_NS)?,
            losses: LossColumns::of(columns)?,
        })
    }
}

/// Calls `take` for the rows of windows and processes that `filter` allows.
fn rows_of_processes(
    data: &mut DataSet,
    run: usize,
    filter: &Filter,
    columns: &Columns<'_>,
    mut take: impl FnMut(usize, ProcessIndex) -> Result<()>,
) -> Result<()> {
    let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
    let (process_starts, comms) = (columns.times(shared::PROCESS_START)?, columns.names(shared::COMM)?);
    let span = filter.span(&data.catalog.runs[run]);
    // Rows of a window stand together, so the last answer is kept.
    let mut last = None;
    for row in 0..columns.rows() {
        let start = UnixMicros(starts.get(row)?);
        let counts = match last {
            Some((last, counts)) if last == start => counts,
            _ => span.allows(start) && data.is_whole(run, start),
        };
        last = Some((start, counts));
        if !counts {
            continue;
        }
        let process = data.process_index(run, pids.natural(row)?, process_starts.get(row)?, comms.get(row)?);
        if filter.allows_process(&data.catalog, data.catalog.process(process)) {
            take(row, process)?;
        }
    }
    Ok(())
}
