//! Sums one side of a comparison, a selection of a data set, by row and window.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Choices, DiffError, Per, Work,
    estimate::{MIN_RUNS, Replicates},
    identity::{CompareBy, Key, Keys},
    in_window::{InWindow, Pool},
    phases::Phases,
};
use crate::{
    dataset::{
        error::Result,
        store::{self, Store},
    },
    model::{
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    report::{
        measure::Measure,
        profile::{AmountRow, App, Catalog, ChargeBy, DataSet, EnergyRow, Filter, Overview, Run, Watch, WindowSpan},
    },
    text::{escape, seconds},
    totals::lag::Lag,
};

/// One of the two sides of a comparison.
#[derive(Debug)]
pub struct Side {
    /// Where it was read, which after it was attributed again is not where its data set is. `None`: a baseline.
    pub(super) store: Option<Arc<dyn Store>>,
    /// As [`Filter::allows_all_paths`].
    pub is_whole: bool,
    pub data: PathBuf,
    pub runs: Vec<Run>,
    /// Session of each run, by number. Only a baseline tells its sessions apart.
    pub sessions: Vec<usize>,
    pub overview: Overview,
    /// Where energy is known by: windows, or runs if it is from a baseline.
    pub windows: Vec<WindowSpan>,
    /// Number of windows that were recorded.
    pub window_count: usize,
    /// CPU time of the selection, without the filter of methods.
    pub cpu_ns: u64,
    pub total: Spent,
    /// Phases of programs, each with those within it.
    pub phases: BTreeMap<TargetText, Spent>,
    /// How far off the energy of each phase may be because counters lag, where they were watched and no phase is selected.
    pub lags: BTreeMap<TargetText, Lag>,
    pub rows: BTreeMap<Key, Spent>,
    /// By entry of `windows`.
    pub(super) cpu_of_windows: Vec<u64>,
    /// Whether it is from a baseline, which keeps sums of runs and no windows.
    pub is_baseline: bool,
    /// Whether anything of the measure was recorded, though a count may have come to nothing.
    pub has_measure: bool,
}

/// What a row, or all of the selection, spent. If another measure is compared, its amounts take the place of microjoules.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    pub energy: MicroJoules,
    pub samples: u64,
    /// Part of `energy` that is inferred from samples of other windows.
    pub inferred: MicroJoules,
    /// Energy by window; a window may come more than once.
    pub by_window: Vec<(usize, MicroJoules)>,
    /// Variance of the energy by sampling, µJ²: see [`crate::report::profile`].
    pub sampling: f64,
}

impl Side {
    /// # Errors
    /// If there is no run, or a file cannot be read or is damaged.
    pub fn read(root: &Path, filter: &Filter, app: Option<&App>, choices: &Choices) -> Result<Self> {
        Self::of_store(&store::open(root)?, root, filter, app, choices)
    }

    /// The same of the data set `root`, as it lies in a store.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_store(
        store: &Arc<dyn Store>,
        root: &Path,
        filter: &Filter,
        app: Option<&App>,
        choices: &Choices,
    ) -> Result<Self> {
        let mut data = DataSet::of_store(store, filter)?;
        if choices.by == CompareBy::Handler && filter.handler_rules.is_none() {
            data.catalog.handlers = filter.find_handlers(&data.catalog.paths);
        }
        let windows = data.windows(filter);
        let mut overview = data.overview(filter)?;
        let mut sums = SideSums::new(&data, windows, filter, app, choices);
        let summed = data.sums(filter, &mut |_, _| {})?;
        let measured = data.measured(filter, &summed, &mut sums)?;
        overview.gc_charged = data.gc_charged;
        let has_lags = choices.measure == Measure::Energy && filter.phases.allow_all();
        let lags = if has_lags { data.lags()? } else { BTreeMap::new() };
        let mut side = Self {
            store: Some(store.clone()),
            data: root.to_owned(),
            sessions: vec![0; data.catalog.runs.len()],
            runs: data.catalog.runs,
            overview,
            window_count: sums.windows.len(),
            windows: sums.windows,
            cpu_ns: sums.cpu.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
            is_whole: filter.allows_all_paths(),
            total: Spent::default(),
            phases: BTreeMap::new(),
            lags,
            rows: BTreeMap::new(),
            cpu_of_windows: sums.cpu,
            is_baseline: false,
            has_measure: choices.measure == Measure::Energy || measured.has(choices.measure),
        };
        sums.total.finish(&sums.pools);
        side.total = sums.total.spent;
        for (name, (mut sum, pools)) in sums.phases.into_names().into_iter().zip(sums.of_phases) {
            sum.finish(&pools);
            side.phases.insert(name, sum.spent);
        }
        let least = if choices.by.is_sampled() { side.one_sample().powi(2) } else { 0.0 };
        for (key, mut sum) in sums.keys.into_keys().into_iter().zip(sums.rows) {
            sum.finish(&sums.pools);
            sum.spent.sampling = sum.spent.sampling.max(least);
            side.rows.insert(key, sum.spent);
        }
        Ok(side)
    }

    pub fn has_runs_enough(&self) -> bool {
        self.runs_with_windows() >= MIN_RUNS
    }

    pub fn runs_with_windows(&self) -> usize {
        self.sessions_of_runs().count()
    }

    pub fn sessions_with_windows(&self) -> usize {
        self.sessions_of_runs().collect::<BTreeSet<_>>().len()
    }

    /// The session of each run with windows, in the order of the runs.
    pub fn sessions_of_runs(&self) -> impl Iterator<Item = usize> {
        let runs: BTreeSet<usize> = self.windows.iter().map(|window| window.run).collect();
        runs.into_iter().map(|run| self.sessions.get(run).copied().unwrap_or_default())
    }

    /// What a row spent here. It may be nothing: so little that no sample hit it.
    pub fn spent(&self, key: &Key, by: CompareBy) -> Spent {
        self.rows.get(key).cloned().unwrap_or_else(|| Spent {
            sampling: if by.is_sampled() { self.one_sample().powi(2) } else { 0.0 },
            ..Spent::default()
        })
    }

    /// Energy that a sample stands for on the average, µJ.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn one_sample(&self) -> f64 {
        self.total.energy.0 as f64 / self.total.samples.max(1) as f64
    }

    /// What energy is divided by: seconds, or CPU seconds, of windows or of whole runs.
    pub fn replicates(&self, per: &Per, of_runs: bool) -> Replicates {
        if per.is_of_runs() {
            return Replicates::of_runs(vec![1.0; self.runs_with_windows()]);
        }
        let lengths = self.windows.iter().map(|window| window.length_ns);
        let ns: Vec<u64> = if *per == Per::Cpu { self.cpu_of_windows.clone() } else { lengths.collect() };
        if !of_runs {
            return Replicates::of_windows(ns.into_iter().map(seconds).collect());
        }
        Replicates::of_runs(self.seconds_of_runs(ns))
    }

    /// CPU time of each run with windows, s.
    pub fn cpu_seconds_of_runs(&self) -> Vec<f64> {
        self.seconds_of_runs(self.cpu_of_windows.iter().copied())
    }

    /// Sums of times of windows by run, in the order of the runs. Runs without windows are not replicates.
    fn seconds_of_runs(&self, ns: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let mut runs: BTreeMap<usize, f64> = BTreeMap::new();
        for (window, ns) in self.windows.iter().zip(ns) {
            *runs.entry(window.run).or_default() += seconds(ns);
        }
        runs.into_values().collect()
    }

    /// Units of work of each run with windows. Without a count for each, nothing is known of how
    /// work varies.
    pub fn replicates_by_work(&self, work: &Work) -> Replicates {
        match work {
            Work::Whole(count) => Replicates::unknown(*count),
            Work::OfRuns(counts) => {
                let mut by_start: Vec<usize> = (0..self.runs.len()).collect();
                by_start.sort_by_key(|run| (self.runs[*run].info.started, *run));
                let counts: BTreeMap<usize, f64> = by_start.into_iter().zip(counts.iter().copied()).collect();
                let runs: BTreeSet<usize> = self.windows.iter().map(|window| window.run).collect();
                Replicates::of_runs(runs.iter().filter_map(|run| counts.get(run)).copied().collect())
            }
        }
    }

    /// # Errors
    /// If counts of work are not as many as there are runs.
    pub fn expect_work_of_each_run(&self, flag: &'static str, work: &Work) -> Result<(), DiffError> {
        match work {
            Work::OfRuns(counts) if counts.len() != self.runs.len() => Err(DiffError::Work {
                flag,
                counts: counts.len(),
                data: escape(&self.data.display().to_string()),
                runs: self.runs.len(),
            }),
            _ => Ok(()),
        }
    }

    /// Energy by replicate, in joules.
    pub fn energies(&self, spent: &Spent, of_runs: bool) -> Vec<(usize, f64)> {
        if !of_runs {
            return spent.by_window.iter().map(|(window, energy)| (*window, energy.joules())).collect();
        }
        let mut runs: BTreeMap<usize, MicroJoules> =
            self.windows.iter().map(|window| (window.run, MicroJoules(0))).collect();
        for (window, energy) in &spent.by_window {
            let run = self.windows.get(*window).and_then(|window| runs.get_mut(&window.run));
            if let Some(sum) = run {
                *sum = sum.saturating_add(*energy);
            }
        }
        runs.into_values().map(MicroJoules::joules).enumerate().collect()
    }
}

/// A row being summed.
#[derive(Clone, Debug, Default)]
struct Sum {
    spent: Spent,
    /// Energy and Σ energy² / samples, by what samples divide.
    of_pools: HashMap<Pool, (u64, f64)>,
}

impl Sum {
    fn add(&mut self, row: &InWindow, window: usize) {
        let (spent, amount) = (&mut self.spent, MicroJoules(row.amount));
        spent.energy = spent.energy.saturating_add(amount);
        spent.samples = spent.samples.saturating_add(row.samples);
        spent.inferred = spent.inferred.saturating_add(MicroJoules(row.inferred));
        match spent.by_window.last_mut() {
            Some((last, energy)) if *last == window => *energy = energy.saturating_add(amount),
            _ => spent.by_window.push((window, amount)),
        }
        let (energy, squares) = self.of_pools.entry(row.pool).or_default();
        *energy = energy.saturating_add(row.amount);
        *squares += row.squares;
    }

    /// A row with the share p of a pool's energy has the variance (1 − p) · Σ energy² / samples.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn finish(&mut self, pools: &Pools) {
        let variance = |(pool, (energy, squares)): (&Pool, &(u64, f64))| {
            let whole = pools.get(pool).copied().unwrap_or_default().max(1);
            (1.0 - *energy as f64 / whole as f64).max(0.0) * squares
        };
        self.spent.sampling = self.of_pools.iter().map(variance).sum();
    }
}

/// What samples divide, µJ.
type Pools = HashMap<Pool, u64>;

/// The rows of a data set, as they come.
struct SideSums {
    measure: Measure,
    charge_gc: Option<ChargeBy>,
    keys: Keys,
    rows: Vec<Sum>,
    total: Sum,
    /// Without the filter of methods.
    pools: Pools,
    phases: Phases,
    /// Energy of a phase, and that of pools in it without the filter of methods.
    of_phases: Vec<(Sum, Pools)>,
    windows: Vec<WindowSpan>,
    /// CPU time of each window.
    cpu: Vec<u64>,
    places: HashMap<(usize, UnixMicros), usize>,
    is_allowed: Vec<bool>,
    of_app: Option<Catalog>,
}

impl Watch for SideSums {
    fn wants_time(&self) -> bool {
        true
    }

    fn in_time(&mut self, catalog: &Catalog, row: &EnergyRow) {
        let window = self.places.get(&(row.run, row.window_start));
        if let Some(cpu) = window.and_then(|window| self.cpu.get_mut(*window)) {
            *cpu = cpu.saturating_add(row.cpu_ns);
        }
        if self.measure == Measure::Energy {
            self.take(catalog, &InWindow::of_energy(row, self.charge_gc, catalog));
        }
    }

    fn amount(&mut self, catalog: &Catalog, row: &AmountRow<'_>) {
        if self.measure.includes(row.part.measure) {
            self.take(catalog, &InWindow::of_amount(row));
        }
    }
}

impl SideSums {
    fn new(data: &DataSet, windows: Vec<WindowSpan>, filter: &Filter, app: Option<&App>, choices: &Choices) -> Self {
        let (catalog, paths) = (&data.catalog, &data.catalog.paths);
        let phases = Phases::of(&catalog.runs, &windows);
        let handlers = catalog.handlers.clone();
        let of_app = app.map(|app| Catalog { paths: paths.of_app(app), handlers, ..Catalog::default() });
        Self {
            measure: choices.measure,
            charge_gc: filter.charge_gc,
            keys: Keys::new(choices.by, choices.view),
            rows: Vec::new(),
            total: Sum::default(),
            pools: HashMap::new(),
            of_phases: vec![Default::default(); phases.len()],
            phases,
            cpu: vec![0; windows.len()],
            places: windows.iter().enumerate().map(|(at, window)| ((window.run, window.start), at)).collect(),
            windows,
            is_allowed: filter.allowed_paths(catalog),
            of_app,
        }
    }

    fn take(&mut self, catalog: &Catalog, row: &InWindow) {
        // A scan has rows of whole windows only.
        let Some(window) = self.places.get(&(row.run, row.window_start)).copied() else { return };
        let is_allowed = self.is_allowed.get(row.path.index()).copied().unwrap_or_default();
        let whole = self.pools.entry(row.pool).or_default();
        *whole = whole.saturating_add(row.amount);
        for phase in self.phases.of_window(window) {
            let Some((sum, pools)) = self.of_phases.get_mut(*phase) else { continue };
            let whole = pools.entry(row.pool).or_default();
            *whole = whole.saturating_add(row.amount);
            if is_allowed {
                sum.add(row, window);
            }
        }
        if !is_allowed {
            return;
        }
        self.total.add(row, window);
        let by_code = self.of_app.as_ref().filter(|_| self.keys.is_of_paths());
        for key in self.keys.of(by_code.unwrap_or(catalog), row.thread, row.path) {
            if self.rows.len() <= *key {
                self.rows.resize_with(key + 1, Sum::default);
            }
            if let Some(sum) = self.rows.get_mut(*key) {
                sum.add(row, window);
            }
        }
    }
}
