//! Sums a selection of a data set: which thread spent how much on which call path. All reports,
//! graphs, comparisons and exports start from it.
//!
//! [`reader`] reads files, [`filter`] says which rows count, [`catalog`] holds what rows are about,
//! and [`overview`] adds up everything beside call paths. [`measured`] sums bytes and counts.
//!
//! Light windows, in which few samples hit a thread or none, are divided by samples of several windows, unless
//! [`Filter::no_infer`] says otherwise: [`inference`] does it while rows pass, [`quotas`] with what is
//! left at the end, [`in_time`] offers both as sums and as rows in the order of time.
//!
//! # Error of sampling
//! A thread's time and energy are exact; samples show which of its paths they go to.
//! A sample stands for `energy / samples` of its row. [`ThreadPath`] keeps the sum of
//! squares that [`crate::sampling`] makes intervals of. Windows without a sample make samples of others
//! stand for more energy, and do not make more samples.

mod access;
pub mod catalog;
mod charge_by;
mod charged;
mod charges;
mod chosen;
pub mod collected;
mod facts;
pub mod filter;
mod frame_columns;
pub mod handlers;
mod host_times;
pub mod in_time;
mod inference;
mod lag;
mod listed;
pub mod live;
pub mod load;
pub mod measured;
mod moment;
mod names;
mod of_table;
pub mod overview;
mod parts;
pub mod places;
mod process_columns;
mod quotas;
pub mod reader;
pub mod row;
mod sources;
mod stop;
mod sums;
mod thread_columns;
pub mod windows;

use std::{path::Path, sync::Arc};

#[cfg(test)]
pub(crate) use self::load::made_up;
pub use self::{
    access::{Access, Allowance},
    catalog::{
        App, Catalog, FrameIndex, OUTSIDE_APP, PathIndex, Paths, Process, ProcessIndex, Run, Thread, ThreadIndex,
    },
    charge_by::ChargeBy,
    charged::{Charged, Division},
    chosen::Chosen,
    collected::{Collected, CollectionKey, SeenCollection},
    filter::{Filter, FilterError},
    handlers::{Handler, Handlers, Rules, RulesError},
    host_times::RunTime,
    in_time::Summed,
    listed::{Listed, has_run},
    live::LiveProfile,
    load::Load,
    measured::{AmountRow, Fact, Measured, Part, Watch},
    moment::Moment,
    names::{Labels, Names},
    overview::{Amounts, JvmEnergy, Overview, QualityKey},
    places::{PlaceRow, ThreadIdentity},
    reader::DataSet,
    row::{DividedBy, EnergyRow, Inferred, Pooled},
    sources::{Choice, Choose, Piece, ReadFrom, RunPiece, Sources},
    stop::Stop,
    windows::{DomainEnergy, WindowSpan},
};
pub use crate::dataset::read::unreadable::{Skipped, SkippedRuns, Unreadable};
use crate::{
    dataset::{error::Result, store::Store},
    model::{measure::Measure, units::MicroJoules},
    sampling::Sampled,
};

/// What a thread spent on a call path, over all windows of the selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadPath {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Part of `energy` that is inferred from samples of other windows.
    pub inferred: MicroJoules,
    /// As [`Sampled::squares`], µJ².
    pub squares: f64,
    /// Part of `energy` that goes by bytes that were moved or allocated: samples have no part in it.
    pub by_bytes: MicroJoules,
    /// Part of `energy` that it is charged for a collector, which samples of objects divide: see [`Filter::charge_gc`].
    pub charged: Sampled,
}

/// A selection of a data set, summed by thread and call path.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub catalog: Catalog,
    /// By thread, then path.
    pub entries: Vec<ThreadPath>,
    /// The sums of each thread of [`Catalog::threads`], without the filter of methods.
    pub threads: Vec<Amounts>,
    /// What samples divide of the same threads.
    pub sampled: Vec<Sampled>,
    /// What they are charged for collectors, and by what.
    pub charges: Option<Charged>,
    pub overview: Overview,
    /// Bytes and counts.
    pub measured: Measured,
}

impl Profile {
    /// Reads the part of a data set that `filter` allows, as `app` sees it if given.
    ///
    /// # Errors
    /// If there is no run, or a file cannot be read or is damaged.
    pub fn read(root: &Path, filter: &Filter, app: Option<&App>) -> Result<Self> {
        Self::read_watched(root, filter, app, &mut |_, _| {})
    }

    /// The same of a data set as it lies in a store.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn of_store(store: &Arc<dyn Store>, filter: &Filter, app: Option<&App>) -> Result<Self> {
        Self::of_data(DataSet::of_store(store, filter)?, filter, app, &mut |_, _| {})
    }

    /// [`Profile::read`], which also shows each row to the caller as it was recorded. Rows' paths have
    /// the same indices in the profile.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn read_watched(
        root: &Path,
        filter: &Filter,
        app: Option<&App>,
        as_recorded: &mut dyn FnMut(&Catalog, &EnergyRow),
    ) -> Result<Self> {
        Self::of_data(DataSet::open(root, filter)?, filter, app, as_recorded)
    }

    fn of_data(
        mut data: DataSet,
        filter: &Filter,
        app: Option<&App>,
        as_recorded: &mut dyn FnMut(&Catalog, &EnergyRow),
    ) -> Result<Self> {
        let overview = data.overview(filter)?;
        let summed = data.sums(filter, as_recorded)?;
        Self::of(data, summed, overview, filter, app, &mut ())
    }

    /// Of sums of a data set whose overview is known, by the same filter. `watch` sees what is read beside them.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn of(
        mut data: DataSet,
        summed: Summed,
        mut overview: Overview,
        filter: &Filter,
        app: Option<&App>,
        watch: &mut impl Watch,
    ) -> Result<Self> {
        let measured = data.measured(filter, &summed, watch)?;
        (overview.left_out, overview.gc_charged, overview.gc_kept) = (data.left_out, data.gc_charged, data.gc_kept);
        Ok(Self { measured, ..Self::of_entries(data.catalog, summed.entries, overview, filter, app) })
    }

    /// Of entries in the order of thread and path.
    fn of_entries(
        mut catalog: Catalog,
        mut entries: Vec<ThreadPath>,
        mut overview: Overview,
        filter: &Filter,
        app: Option<&App>,
    ) -> Self {
        let mut threads = vec![Amounts::default(); catalog.threads.len()];
        let mut sampled = vec![Sampled::default(); catalog.threads.len()];
        let allowed = filter.allowed_paths(&catalog);
        for entry in &entries {
            threads[entry.thread.index()].plus(&entry.amounts());
            sampled[entry.thread.index()].plus(&entry.sampled());
        }
        let charges = filter.charge_gc.map(|by| Charged::of(by, &catalog, &entries));
        entries.retain(|entry| allowed[entry.path.index()]);
        overview.inferred = entries.iter().map(|entry| entry.inferred).sum();
        if let Some(app) = app {
            catalog.paths = catalog.paths.of_app(app);
        }
        Self { catalog, entries, threads, sampled, charges, overview, ..Self::default() }
    }

    /// What `show` makes of the profile as `app` sees it. The profile stays as it is.
    pub fn seen_by<T>(&mut self, app: &App, show: impl FnOnce(&Self) -> T) -> T {
        let seen = self.catalog.paths.of_app(app);
        let whole = std::mem::replace(&mut self.catalog.paths, seen);
        let shown = show(self);
        self.catalog.paths = whole;
        shown
    }

    /// Energy of all entries.
    pub fn energy(&self) -> MicroJoules {
        self.entries.iter().map(|entry| entry.energy).sum()
    }
}

impl ThreadPath {
    /// Whether it is known from samples, of its window or of others.
    pub const fn is_sampled(&self) -> bool {
        self.samples > 0 || self.inferred.0 > 0
    }

    /// What of it samples divide, of its window or of others. The rest is exact.
    pub fn sampled(&self) -> Sampled {
        let Self { energy, samples, squares, by_bytes, charged, .. } = *self;
        let energy = MicroJoules(energy.0.saturating_sub(by_bytes.0).saturating_sub(charged.energy.0));
        if self.is_sampled() { Sampled { energy, samples, squares } } else { Sampled::default() }
    }
}

impl Amounts {
    pub const fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Energy => self.energy.0,
            _ => self.beside,
        }
    }

    /// Adds what others have.
    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.inferred = self.inferred.saturating_add(other.inferred);
        self.by_bytes = self.by_bytes.saturating_add(other.by_bytes);
        self.beside = self.beside.saturating_add(other.beside);
    }
}
