//! Sums a selection of a data set: which thread spent how much on which call path. All reports,
//! graphs, comparisons and exports start from it.
//!
//! [`reader`] reads files, [`filter`] says which rows count, [`catalog`] holds what rows are about,
//! and [`overview`] adds up everything beside call paths.
//!
//! # Error of sampling
//! A thread's time and energy are exact; samples tell which of its paths they go to.
//! A sample stands for `energy / samples` of its row, so a group of rows
//! of one thread with the share `p` of its energy has the variance
//! `(1 − p) · Σ energy² / samples` (binomial; equal samples give the familiar
//! `energy · √((1 − p) / (p · n))`). Variances of threads add up. [`ThreadPath`] keeps
//! the sum; whoever groups entries by thread applies `1 − p`.

pub mod catalog;
pub mod filter;
mod frame_columns;
mod host_times;
pub mod overview;
pub mod places;
pub mod reader;
mod sums;
pub mod windows;

use std::path::Path;

use self::sums::Sums;
pub use self::{
    catalog::{
        App, Catalog, FrameIndex, OUTSIDE_APP, PathIndex, Paths, Process, ProcessIndex, Run, Thread, ThreadIndex,
    },
    filter::{Filter, FilterError, Moment, Names},
    overview::{Amounts, JvmEnergy, Overview, QualityKey},
    places::{PlaceRow, ThreadIdentity},
    reader::{DataSet, Row},
    windows::WindowSpan,
};
use crate::{dataset::error::Result, model::units::MicroJoules};

/// What a thread spent on a call path, over all windows of the selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadPath {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Σ energy² / samples over windows, µJ²: see the module's head.
    pub squares: f64,
}

/// Energy that samples divide among paths, and the number of samples: the base of the error of
/// sampling. Energy of paths without a sample is exact and not included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    pub energy: MicroJoules,
    pub samples: u64,
    /// Sum of [`ThreadPath::squares`].
    pub squares: f64,
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
    pub overview: Overview,
}

impl Profile {
    /// Reads the part of a data set that `filter` allows, as `app` sees it if given.
    ///
    /// # Errors
    /// If there is no run, or a file cannot be read or is damaged.
    pub fn read(root: &Path, filter: &Filter, app: Option<&App>) -> Result<Self> {
        Self::read_watched(root, filter, app, |_, _| {})
    }

    /// [`Profile::read`], which also shows each row of [`DataSet::scan`] to the caller. Rows' paths
    /// have the same indices in the profile.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn read_watched(
        root: &Path,
        filter: &Filter,
        app: Option<&App>,
        watch: impl FnMut(&Catalog, &Row),
    ) -> Result<Self> {
        let mut data = DataSet::open(root, filter)?;
        let overview = data.overview(filter)?;
        Self::sum(data, overview, filter, app, watch)
    }

    /// Sums the rows of a data set whose overview is known, and shows each to `watch`, without the
    /// filter of methods. So figures over time are summed in the same pass.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn sum(
        mut data: DataSet,
        mut overview: Overview,
        filter: &Filter,
        app: Option<&App>,
        mut watch: impl FnMut(&Catalog, &Row),
    ) -> Result<Self> {
        let mut sums = Sums::default();
        data.scan(filter, |catalog, row| {
            watch(catalog, row);
            sums.add(row);
        })?;
        overview.left_out = data.left_out;
        Ok(Self::of(data.catalog, sums.into_entries(), overview, filter, app))
    }

    /// Of entries in the order of thread and path.
    fn of(
        mut catalog: Catalog,
        mut entries: Vec<ThreadPath>,
        overview: Overview,
        filter: &Filter,
        app: Option<&App>,
    ) -> Self {
        let mut threads = vec![Amounts::default(); catalog.threads.len()];
        let mut sampled = vec![Sampled::default(); catalog.threads.len()];
        let allowed: Vec<bool> =
            catalog.paths.indices().map(|path| filter.allows_path(catalog.paths.frames_of(path))).collect();
        for entry in &entries {
            threads[entry.thread.index()].add(entry);
            sampled[entry.thread.index()].add(entry);
        }
        entries.retain(|entry| allowed[entry.path.index()]);
        if let Some(app) = app {
            catalog.paths = catalog.paths.of_app(app);
        }
        Self { catalog, entries, threads, sampled, overview }
    }

    /// Energy of all entries.
    pub fn energy(&self) -> MicroJoules {
        self.entries.iter().map(|entry| entry.energy).sum()
    }
}

impl Sampled {
    pub fn add(&mut self, entry: &ThreadPath) {
        if entry.samples > 0 {
            self.energy = self.energy.saturating_add(entry.energy);
            self.samples = self.samples.saturating_add(entry.samples);
            self.squares += entry.squares;
        }
    }
}

impl Amounts {
    fn add(&mut self, entry: &ThreadPath) {
        self.energy = self.energy.saturating_add(entry.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(entry.cpu_ns);
        self.samples = self.samples.saturating_add(entry.samples);
    }

    /// Adds what others have.
    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
    }
}
