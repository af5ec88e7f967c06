//! Reads the rows of a selection one by one, with the methods' filter applied.

use std::{collections::BTreeMap, path::Path};

use super::Result;
use crate::{
    model::{units::UnixMicros, way::Way},
    report::{
        measure::Measure,
        profile::{
            AmountRow, App, Catalog, Collected, DataSet, DomainEnergy, Filter, Overview, ProcessIndex, Summed,
            ThreadPath, Watch, row::EnergyRow,
        },
    },
};

/// What a process has of a measure in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfProcess {
    pub(super) measure: Measure,
    pub(super) process: ProcessIndex,
    pub(super) window_start: UnixMicros,
    pub(super) window_ns: u64,
    /// In the measure's unit.
    pub(super) amount: u64,
}

/// What takes rows of a selection.
pub(super) trait Take {
    fn row(&mut self, catalog: &Catalog, row: &EnergyRow) -> Result<()>;

    /// Takes bytes and counts, some of them after all rows of energy.
    fn amount(&mut self, _: &Catalog, _: &AmountRow<'_>) -> Result<()> {
        Ok(())
    }
}

impl<F: FnMut(&Catalog, &EnergyRow) -> Result<()>> Take for F {
    fn row(&mut self, catalog: &Catalog, row: &EnergyRow) -> Result<()> {
        self(catalog, row)
    }
}

pub(super) struct Timeline<'a> {
    data: DataSet,
    summed: Summed,
    filter: &'a Filter,
    /// By path: whether the filter allows it.
    allowed: Vec<bool>,
    beside_energy: BTreeMap<Place, OfProcess>,
    pub(super) overview: Overview,
}

impl<'a> Timeline<'a> {
    pub(super) fn open(root: &Path, filter: &'a Filter, app: Option<&App>) -> Result<Self> {
        let mut data = DataSet::open(root, filter)?;
        let mut overview = data.overview(filter)?;
        let summed = data.sums(filter, &mut |_, _| {})?;
        let allowed = filter.allowed_paths(&data.catalog);
        let is_allowed = |entry: &&ThreadPath| allowed.get(entry.path.index()).copied().unwrap_or(false);
        overview.inferred = summed.entries.iter().filter(is_allowed).map(|entry| entry.inferred).sum();
        if let Some(app) = app {
            data.catalog.paths = data.catalog.paths.of_app(app);
        }
        Ok(Self { data, summed, filter, allowed, beside_energy: BTreeMap::new(), overview })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.data.catalog
    }

    /// When the first window starts.
    pub(super) fn start(&self) -> UnixMicros {
        self.overview.span.map_or(UnixMicros(0), |(start, _)| start)
    }

    /// Calls `take` for every row, in the order in which they were written: windows of a run one
    /// after the other. It stops at the first error of `take`.
    pub(super) fn scan(&mut self, mut take: impl FnMut(&Catalog, &EnergyRow) -> Result<()>) -> Result<()> {
        self.scan_with_amounts(&mut take)
    }

    /// [`Self::scan`], with bytes and counts where they are wanted.
    pub(super) fn scan_with_amounts(&mut self, take: &mut impl Take) -> Result<()> {
        let (result, beside_energy) = (Ok(()), BTreeMap::new());
        let mut scan = Scan { allowed: &self.allowed, take, result, beside_energy };
        self.data.measured(self.filter, &self.summed, &mut scan)?;
        self.beside_energy = scan.beside_energy;
        scan.result
    }

    /// Calls `take` with what each domain measured in each window. It stops at the first error of `take`.
    pub(super) fn domains(&self, mut take: impl FnMut(&Catalog, &DomainEnergy<'_>) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        self.data.domains(self.filter, |catalog, domain| {
            if result.is_ok() {
                result = take(catalog, domain);
            }
        })?;
        result
    }

    /// Garbage collections of the selection's processes.
    pub(super) fn collected(&mut self) -> Result<Collected> {
        Ok(Collected::read(&mut self.data, self.filter)?)
    }

    /// What processes have of bytes and counts, by measure, process and time, in the rows that were scanned. Bytes are in
    /// each once.
    pub(super) fn beside_energy(&self) -> Vec<OfProcess> {
        self.beside_energy.values().copied().collect()
    }
}

/// Measure, process, run and window.
type Place = (Measure, ProcessIndex, usize, UnixMicros);

/// Gives on rows of paths that are allowed, and sums what there is beside them.
struct Scan<'a, T> {
    allowed: &'a [bool],
    take: &'a mut T,
    result: Result<()>,
    beside_energy: BTreeMap<Place, OfProcess>,
}

impl<T: Take> Watch for Scan<'_, T> {
    fn wants_time(&self) -> bool {
        true
    }

    fn in_time(&mut self, catalog: &Catalog, row: &EnergyRow) {
        if self.result.is_ok() && self.allowed.get(row.path.index()).copied().unwrap_or(false) {
            self.result = self.take.row(catalog, row);
        }
    }

    fn amount(&mut self, catalog: &Catalog, row: &AmountRow<'_>) {
        if self.result.is_ok() && row.is_path_allowed {
            self.result = self.take.amount(catalog, row);
        }
        let is_apart = |measure: &Measure| !matches!(measure, Measure::Moved(way) if !Way::APART.contains(way));
        let whole = Measure::all().filter(is_apart).find(|measure| measure.includes(row.part.measure));
        let Some(measure) = whole.filter(|_| row.is_path_allowed) else { return };
        let AmountRow { run, window_start, window_ns, thread, .. } = *row;
        let process = catalog.thread(thread).process;
        let none = OfProcess { measure, process, window_start, window_ns, amount: 0 };
        let sum = self.beside_energy.entry((measure, process, run, window_start)).or_insert(none);
        sum.amount = sum.amount.saturating_add(row.part.amount);
    }
}

/// Nanoseconds since 1970, 0 before.
pub(super) fn unix_ns(moment: UnixMicros) -> u64 {
    u64::try_from(moment.0).unwrap_or(0).saturating_mul(1000)
}
