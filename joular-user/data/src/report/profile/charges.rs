//! Moves the energy of garbage collectors to the call paths that are charged for it, if that is asked for
//! ([`Filter::charge_gc`]).
//!
//! In each window the rows of a collector lose what paths are charged, and these get rows of their own. So every view has
//! the same energy as before, with the collector's at the methods that allocated. Rows are moved before anything else
//! sees them.

use std::collections::{BTreeMap, HashMap};

use super::{
    Catalog, ChargeBy, Filter, PathIndex, ProcessIndex,
    filter::Allowed,
    reader::DataSet,
    row::{EnergyRow, Pooled},
    thread_columns::ThreadColumns,
};
use crate::{
    attribution::window_report::Category,
    dataset::{
        column::{Column, kind},
        error::{DataSetError, Result},
        read::{columns::Columns, decode_ahead},
        tables::{GcCharges, Jvms, collections, jvms, shared, work},
    },
    model::units::{MicroJoules, UnixMicros},
    stacks::JvmWork,
};

/// What is moved of one run.
#[derive(Debug, Default)]
pub(super) struct Charges {
    run: usize,
    windows: HashMap<(UnixMicros, ProcessIndex), Collector>,
    /// What is charged to paths of threads that are selected.
    pub(super) to_selected: MicroJoules,
    /// Rows of paths that are charged, by window.
    charged: BTreeMap<UnixMicros, Vec<EnergyRow>>,
    /// Whether a path of the VM thread is a collection.
    collects: HashMap<PathIndex, bool>,
}

/// A JVM's collector in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Collector {
    energy_uj: u64,
    /// Of that: what is charged to paths, whether or not they are selected.
    charged_uj: u64,
    /// Of its energy: what rows so far had.
    seen_uj: u64,
}

impl Collector {
    /// What is left of a row of it. The rows of a window lose what is charged, to the microjoule.
    fn left_of(&mut self, energy: MicroJoules) -> MicroJoules {
        let lost = |seen_uj: u64| {
            let lost = u128::from(self.charged_uj) * u128::from(seen_uj);
            lost.checked_div(self.energy_uj.into()).and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0)
        };
        let seen_uj = self.seen_uj.saturating_add(energy.0);
        let of_row = lost(seen_uj).saturating_sub(lost(self.seen_uj));
        self.seen_uj = seen_uj;
        MicroJoules(energy.0.saturating_sub(of_row))
    }
}

impl Charges {
    /// Reads what is charged in the windows of a run that `filter` allows.
    pub(super) fn read(data: &mut DataSet, run: usize, filter: &Filter) -> Result<Self> {
        let mut charges = Self { run, ..Self::default() };
        let span = filter.span(&data.catalog.runs[run]);
        let files = data.files::<GcCharges>(run);
        if files.is_empty() {
            return Ok(charges);
        }
        let mut allowed = Allowed::default();
        decode_ahead::batches(&files, &span, |columns| charges.take_charges(data, filter, &mut allowed, columns))?;
        decode_ahead::batches(&data.files::<Jvms>(run), &span, |columns| charges.take_jvms(data, columns))?;
        Ok(charges)
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
        let mut threads = ThreadColumns::of(columns)?;
        let span = filter.span(&data.catalog.runs[self.run]);
        for row in 0..columns.rows() {
            let (window_start, energy) = (UnixMicros(starts.get(row)?), MicroJoules(charged.natural(row)?));
            if energy == MicroJoules(0) || !span.allows(window_start) || !data.is_whole(self.run, window_start) {
                continue;
            }
            let thread = threads.thread(data, self.run, row)?;
            let process = data.catalog.thread(thread).process;
            let collector = self.windows.entry((window_start, process)).or_default();
            collector.charged_uj = collector.charged_uj.saturating_add(energy.0);
            if allowed.thread(&data.catalog, filter, thread) {
                self.to_selected = self.to_selected.saturating_add(energy);
                self.charged.entry(window_start).or_default().push(EnergyRow {
                    run: self.run,
                    window_start,
                    window_ns: lengths.natural(row)?,
                    thread,
                    path: data.path_of(stacks.get(row)?, columns)?,
                    energy,
                    cpu_ns: 0,
                    samples: 0,
                    inferred: None,
                    pooled: Some(Pooled::COMPLETE),
                    is_by_bytes: false,
                });
            }
        }
        Ok(())
    }

    fn take_jvms(&mut self, data: &mut DataSet, columns: &Columns<'_>) -> Result<()> {
        let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
        let (process_starts, comms) = (columns.times(shared::PROCESS_START)?, columns.texts(shared::COMM)?);
        let energies = columns.ints(GC_UJ)?;
        for row in 0..columns.rows() {
            let process = data.process_index(self.run, pids.natural(row)?, process_starts.get(row)?, comms.get(row)?);
            if let Some(collector) = self.windows.get_mut(&(UnixMicros(starts.get(row)?), process)) {
                collector.energy_uj = energies.natural(row)?;
            }
        }
        Ok(())
    }

    /// Gives on a row, without what is charged to others, and before the first row of a window those of paths that are
    /// charged in the windows before.
    pub(super) fn pass(&mut self, catalog: &Catalog, row: &EnergyRow, mut take: impl FnMut(&Catalog, &EnergyRow)) {
        while let Some(entry) = self.charged.first_entry().filter(|entry| *entry.key() < row.window_start) {
            entry.remove().iter().for_each(|row| take(catalog, row));
        }
        let thread = catalog.thread(row.thread);
        let is_collector = match thread.category {
            Category::Gc => true,
            Category::Vm => *self
                .collects
                .entry(row.path)
                .or_insert_with(|| JvmWork::of_vm_path(catalog.paths.frames_of(row.path)) == JvmWork::Gc),
            _ => false,
        };
        match self.windows.get_mut(&(row.window_start, thread.process)) {
            Some(collector) if is_collector => {
                take(catalog, &EnergyRow { energy: collector.left_of(row.energy), ..*row });
            }
            _ => take(catalog, row),
        }
    }

    /// Gives on the rows of the last windows.
    pub(super) fn finish(self, catalog: &Catalog, mut take: impl FnMut(&Catalog, &EnergyRow)) {
        self.charged.values().flatten().for_each(|row| take(catalog, row));
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

const GC_UJ: Column<kind::Int> = jvms::part_uj(JvmWork::Gc);
