//! Moves the energy of garbage collectors to the call paths that are charged for it, if that is asked for
//! ([`Filter::charge_gc`]).
//!
//! Of a window, either all is charged that a JVM's collector used for collections, or nothing. Where it is, the rows of the
//! collector have no energy any more, and paths that are charged get rows of their own. So every view has the same energy as
//! before, with the collector's at the methods that allocated. Rows are moved before anything else sees them. What threads
//! of a collector did for themselves ([`GcThread::Own`]) stays with it.
//!
//! Sampled objects show who is charged, and samples of CPU time have no part in it. So charges are a division of their own,
//! and how far they may be off follows from the objects ([`objects`]).

#[cfg(test)]
mod coverage;
mod objects;
mod rates;

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;

use self::{
    objects::{JvmWindow, Objects, PathOfThread},
    rates::WindowCharges,
};
use super::{
    Catalog, ChargeBy, Filter, PathIndex, ProcessIndex,
    filter::Allowed,
    measured::source,
    reader::DataSet,
    row::{DividedBy, EnergyRow, Pooled},
    thread_columns::ThreadColumns,
};
use crate::{
    attribution::{
        collector::{CollectionKind, GcThread},
        window_report::Category,
    },
    dataset::{
        error::{DataSetError, Result},
        read::{
            columns::{Columns, Numbers},
            decode_ahead,
            span::Span,
        },
        tables::{Collections, GcCharges, collections, shared, work},
    },
    model::units::{MicroJoules, UnixMicros},
    stacks::JvmWork,
};

/// What is moved of one run.
#[derive(Debug, Default)]
pub(super) struct Charges {
    run: usize,
    /// Where the collector's energy is charged to paths, whether or not they are selected.
    windows: HashSet<JvmWindow>,
    /// What is charged to paths of threads that are selected.
    pub(super) to_selected: MicroJoules,
    /// What the selected threads of collectors did for themselves, and keep.
    pub(super) kept: MicroJoules,
    /// What each JVM's bytes are charged by.
    counted: HashMap<ProcessIndex, BTreeMap<UnixMicros, WindowCharges>, RandomState>,
    /// Bytes that paths are charged for because they survived, by window.
    survived: Vec<(PathOfThread, JvmWindow, u64)>,
    /// Rows of paths that are charged, by window.
    charged: BTreeMap<UnixMicros, Vec<EnergyRow>>,
    /// Whether a path of the VM thread is a collection.
    collects: HashMap<PathIndex, bool>,
}

impl Charges {
    /// Reads what is charged in the windows of a run that `filter` allows.
    pub(super) fn read(data: &mut DataSet, run: usize, filter: &Filter) -> Result<Self> {
        let mut charges = Self { run, ..Self::default() };
        let span = filter.span(&data.catalog.runs[run]);
        let files = data.files::<GcCharges>(run);
        let Some(by) = filter.charge_gc.filter(|_| !files.is_empty()) else { return Ok(charges) };
        let mut allowed = Allowed::default();
        decode_ahead::batches(&files, &span, |columns| charges.take_charges(data, filter, &mut allowed, columns))?;
        // What is collected in the span may have been allocated before it.
        let until = Span { until: span.until, ..Span::default() };
        decode_ahead::batches(&data.files::<Collections>(run), &until, |columns| {
            charges.take_collections(data, &span, columns)
        })?;
        charges.take_objects(data, filter, &until, by)?;
        Ok(charges)
    }

    /// Reads the objects that were sampled, and gives rows their parts.
    fn take_objects(&mut self, data: &mut DataSet, filter: &Filter, until: &Span, by: ChargeBy) -> Result<()> {
        let mut objects = Objects::of(&self.counted, by);
        self.charged.values().flatten().for_each(|row| objects.charge(row));
        source::allocations(data, (self.run, until), filter, &mut |catalog, row| {
            let process = catalog.thread(row.thread).process;
            objects.allocated((row.thread, row.path), (process, row.window_start), &row.part.sampled);
        })?;
        std::mem::take(&mut self.survived).into_iter().for_each(|(path, at, bytes)| objects.survived(path, at, bytes));
        self.charged.values_mut().flatten().for_each(|row| objects.divide(row));
        self.counted.clear();
        Ok(())
    }

    fn take_charges(
        &mut self,
        data: &mut DataSet,
        filter: &Filter,
        allowed: &mut Allowed,
        columns: &Columns<'_>,
    ) -> Result<()> {
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        let stacks = columns.ints(work::STACK_ID)?;
        let charged = columns.ints(match filter.charge_gc {
            Some(ChargeBy::Survived) => collections::GC_CHARGED_BY_SURVIVAL_UJ,
            _ => collections::GC_CHARGED_UJ,
        })?;
        let counted = CountedColumns::of(columns)?;
        let mut threads = ThreadColumns::of(columns)?;
        let span = filter.span(&data.catalog.runs[self.run]);
        for row in 0..columns.rows() {
            let (window_start, energy) = (UnixMicros(starts.get(row)?), MicroJoules(charged.natural(row)?));
            if !span.allows(window_start) || !data.is_whole(self.run, window_start) {
                continue;
            }
            let thread = threads.thread(data, self.run, row)?;
            let process = data.catalog.thread(thread).process;
            let of_window = self.counted.entry(process).or_default().entry(window_start).or_default();
            let survived = counted.add_to(of_window, row)?;
            of_window.charged = of_window.charged.saturating_add(energy);
            if energy == MicroJoules(0) {
                continue;
            }
            self.windows.insert((process, window_start));
            if allowed.thread(&data.catalog, filter, thread) {
                self.to_selected = self.to_selected.saturating_add(energy);
                let path = data.path_of(stacks.get(row)?, columns)?;
                if filter.charge_gc == Some(ChargeBy::Survived) && survived > 0 {
                    self.survived.push(((thread, path), (process, window_start), survived));
                }
                self.charged.entry(window_start).or_default().push(EnergyRow {
                    run: self.run,
                    window_start,
                    window_ns: lengths.natural(row)?,
                    thread,
                    path,
                    energy,
                    cpu_ns: 0,
                    samples: 0,
                    inferred: None,
                    pooled: Some(Pooled::COMPLETE),
                    divided_by: DividedBy::Objects(0),
                });
            }
        }
        Ok(())
    }

    /// When collections ended, and what young ones used in the windows of `span`.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn take_collections(&mut self, data: &mut DataSet, span: &Span, columns: &Columns<'_>) -> Result<()> {
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        let since_starts = columns.ints(collections::SINCE_START_NS)?;
        let (durations, energies) = (columns.ints(collections::DURATION_NS)?, columns.ints(collections::ENERGY_UJ)?);
        let (pids, process_starts) = (columns.ints(shared::PID)?, columns.times(shared::PROCESS_START)?);
        let (comms, collectors) = (columns.texts(shared::COMM)?, columns.texts(collections::COLLECTOR)?);
        for row in 0..columns.rows() {
            let window_start = UnixMicros(starts.get(row)?);
            let kind = CollectionKind::of(collectors.get(row)?);
            let process = data.process_index(self.run, pids.natural(row)?, process_starts.get(row)?, comms.get(row)?);
            let of_window = self.counted.entry(process).or_default().entry(window_start).or_default();
            if kind == CollectionKind::Young && span.allows(window_start) {
                of_window.young = of_window.young.saturating_add(MicroJoules(energies.natural(row)?));
            }
            if let Some(duration_ns) = durations.maybe_natural::<u64>(row)? {
                let end_ns = since_starts.get(row)? as f64 + duration_ns as f64;
                let window_ns = lengths.natural::<u64>(row)?.max(1) as f64;
                of_window.end(kind, (1.0 - end_ns / window_ns).clamp(0.0, 1.0));
            }
        }
        Ok(())
    }

    /// Gives on a row, without what is charged to others, and before the first row of a window those of paths that are
    /// charged in the windows before.
    pub(super) fn pass(&mut self, catalog: &Catalog, row: &EnergyRow, take: &mut dyn FnMut(&Catalog, &EnergyRow)) {
        while let Some(entry) = self.charged.first_entry().filter(|entry| *entry.key() < row.window_start) {
            entry.remove().iter().for_each(|row| take(catalog, row));
        }
        let thread = catalog.thread(row.thread);
        let collects = match thread.category {
            Category::Gc if GcThread::of(thread.name.raw()) == GcThread::Own => {
                self.kept = self.kept.saturating_add(row.energy);
                false
            }
            Category::Gc => true,
            Category::Vm => *self
                .collects
                .entry(row.path)
                .or_insert_with(|| JvmWork::of_vm_path(catalog.paths.frames_of(row.path)) == JvmWork::Gc),
            _ => false,
        };
        let is_charged = collects && self.windows.contains(&(thread.process, row.window_start));
        let energy = if is_charged { MicroJoules(0) } else { row.energy };
        take(catalog, &EnergyRow { energy, ..*row });
    }

    /// Gives on the rows of the last windows.
    pub(super) fn finish(self, catalog: &Catalog, take: &mut dyn FnMut(&Catalog, &EnergyRow)) {
        self.charged.values().flatten().for_each(|row| take(catalog, row));
    }
}

/// The columns that say what bytes of a path count.
struct CountedColumns<'a> {
    young: [Numbers<'a>; 2],
    old: [Numbers<'a>; 2],
    in_window: Numbers<'a>,
}

impl<'a> CountedColumns<'a> {
    fn of(columns: &'a Columns<'a>) -> Result<Self> {
        let ints = |column| columns.ints(column);
        Ok(Self {
            young: [ints(collections::SINCE_YOUNG_BYTES)?, ints(collections::YOUNG_SURVIVED_BYTES)?],
            old: [ints(collections::SINCE_OLD_BYTES)?, ints(collections::OLD_SURVIVED_BYTES)?],
            in_window: ints(collections::WINDOW_BYTES)?,
        })
    }

    /// Adds a row's bytes, and returns how many were seen to survive in its window.
    fn add_to(&self, of_window: &mut WindowCharges, row: usize) -> Result<u64> {
        let survived = self.young[1].natural(row)?;
        of_window.since_young.add(self.young[0].natural(row)?, survived);
        of_window.since_old.add(self.old[0].natural(row)?, self.old[1].natural(row)?);
        of_window.in_window = of_window.in_window.saturating_add(self.in_window.natural(row)?);
        Ok(survived)
    }
}

impl DataSet {
    /// Fails if no run has charges: the report would silently ignore `--charge-gc`.
    ///
    /// # Errors
    /// If charges are asked for and no run has any.
    pub(super) fn must_have_charges(&self, filter: &Filter) -> Result<()> {
        let has_charges = |run: usize| !self.files::<GcCharges>(run).is_empty();
        let runs = self.catalog.runs.len();
        match self.first_row() {
            Some(path) if filter.charge_gc.is_some() && !(0..runs).any(has_charges) => {
                Err(DataSetError::NoCharges { path })
            }
            _ => Ok(()),
        }
    }
}
