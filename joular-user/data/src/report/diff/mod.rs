//! Compares two data sets: what changed, by how much, and whether it is more than noise.
//!
//! [`side`] sums each data set by row and window, [`identity`] says which rows are the same in
//! both, [`estimate`] makes rates with their errors, and [`verdict`] tells change from noise. Sides that
//! were divided differently are attributed alike before ([`again`]).
//! docs/comparing.md explains it to users.

mod again;
mod circumstances;
mod common_policy;
mod comparability;
pub mod estimate;
pub mod identity;
mod render;
pub mod side;
#[cfg(test)]
mod simulation;
pub mod student;
pub mod verdict;
mod warnings;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

use self::{
    again::Sides,
    estimate::{Estimate, Replicates},
    side::Spent,
};
pub use self::{
    identity::{CompareBy, Key, View},
    side::Side,
    verdict::{Change, Verdict},
};
use super::{
    Format,
    profile::{App, Filter},
};
use crate::dataset::{error::DataSetError, store::Store};

/// Fewer samples than this on both sides together prove nothing.
const MIN_SAMPLES: u64 = 5;

/// What energy is divided by.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Per {
    /// Time of a host: watts.
    #[default]
    Time,
    /// CPU seconds of the selection.
    Cpu,
    /// Nothing: joules of all runs.
    Nothing,
    /// Runs: joules of a run.
    Run,
    /// Units of work of A and of B.
    Work { a: Work, b: Work },
}

/// Units of work that a side did.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// All runs together.
    Whole(f64),
    /// Each run, in the order of their starts.
    OfRuns(Vec<f64>),
}

impl Per {
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Time => "W",
            Self::Cpu => "J/CPU-s",
            Self::Nothing => "J",
            Self::Run => "J/run",
            Self::Work { .. } => "J/unit",
        }
    }

    /// Whether only whole runs can show how much the figure varies: one run's joules, or its joules
    /// per unit of work, are one number.
    const fn is_of_runs(&self) -> bool {
        !matches!(self, Self::Time | Self::Cpu)
    }
}

/// Why data sets cannot be compared.
#[derive(Debug, Error)]
pub enum DiffError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error("{flag} has {counts} counts of work, and {data} has {runs} runs: give one count for each run")]
    Work { flag: &'static str, counts: usize, data: String, runs: usize },
}

/// Where `--fail-above` looks for an increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    #[default]
    Total,
    Row,
}

/// How to compare, and what to show of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub by: CompareBy,
    pub view: View,
    pub per: Per,
    /// Changes that are certain to be smaller than this ratio count as none.
    pub margin: f64,
    /// The ratio from which on an increase is too much.
    pub fail_above: Option<f64>,
    pub fail_on: FailOn,
    /// `None`: all rows.
    pub top: Option<usize>,
    pub format: Format,
    /// Folder for temporary files, in which sides that were divided differently are attributed alike.
    /// `None`: they are compared as they were attributed.
    pub again_in: Option<PathBuf>,
}

/// A row of both sides.
#[derive(Debug)]
pub struct Compared {
    pub key: Key,
    pub a: Spent,
    pub b: Spent,
    pub change: Change,
    /// Chance of exceeding the gate by so much without a real increase beyond it.
    above: Option<f64>,
}

/// What a comparison found.
#[derive(Debug)]
pub struct Comparison {
    pub a: Side,
    pub b: Side,
    /// Whether runs, not windows, show how much is noise.
    pub of_runs: bool,
    pub total: Compared,
    /// Rows that changed most come first; of equal changes the larger.
    pub rows: Vec<Compared>,
    pub warnings: Vec<String>,
    /// What was done so that both can be compared.
    pub notices: Vec<String>,
    /// Whether the figures of both mean the same: see [`comparability`].
    pub are_comparable: bool,
}

/// Compares the parts of two data sets that `filter` allows, as `app` sees them if given.
///
/// # Errors
/// If there is no run in one, a file cannot be read or is damaged, or work is not counted by run.
pub fn run(a: &Path, b: &Path, filter: &Filter, app: Option<&App>, choices: &Choices) -> Result<Comparison, DiffError> {
    let (a, b) = (Side::read(a, filter, app, choices)?, Side::read(b, filter, app, choices)?);
    if let Per::Work { a: work_a, b: work_b } = &choices.per {
        a.expect_work_of_each_run("--work-a", work_a)?;
        b.expect_work_of_each_run("--work-b", work_b)?;
    }
    let read = |store: &Arc<dyn Store>, root: &Path| Side::of_store(store, root, filter, app, choices);
    Ok(Comparison::of(again::alike(a, b, choices.again_in.as_deref(), read), choices))
}

/// What the gate of `--fail-above` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// There is none, or B is not certain to need more than it allows.
    Passed,
    Exceeded,
    /// Nobody can tell: see [`Verdict::NotEnoughRuns`].
    NotEnoughRuns,
    /// The runs were made differently, so their difference is not the code's.
    NotComparable,
}

impl Comparison {
    fn of(sides: Sides, choices: &Choices) -> Self {
        let Sides { a, b, notices, obstacle } = sides;
        let of_runs = choices.per.is_of_runs() || (a.has_runs_enough() && b.has_runs_enough());
        let [of_a, of_b] = match &choices.per {
            Per::Work { a: work_a, b: work_b } => [a.replicates_by_work(work_a), b.replicates_by_work(work_b)],
            per => [a.replicates(per, of_runs), b.replicates(per, of_runs)],
        };
        let pair = Pair { replicates: [of_a, of_b], of_runs, choices, a: &a, b: &b };
        let whole = Key { name: "total".into(), signature: None, module: None };
        let mut total = pair.compare(whole, a.total.clone(), b.total.clone(), true);
        verdict::judge(std::iter::once(&mut total.change), choices.margin);
        let keys: BTreeSet<&Key> = a.rows.keys().chain(b.rows.keys()).collect();
        let compared = keys.into_iter().map(|key| {
            let (of_a, of_b) = (a.spent(key, choices.by), b.spent(key, choices.by));
            let is_exact = !choices.by.is_sampled() && a.is_whole && b.is_whole;
            let can_prove = is_exact || of_a.samples.saturating_add(of_b.samples) >= MIN_SAMPLES;
            pair.compare(key.clone(), of_a, of_b, can_prove)
        });
        let mut rows: Vec<Compared> = compared.collect();
        verdict::judge(rows.iter_mut().map(|row| &mut row.change), choices.margin);
        let size = |row: &Compared| (row.change.difference().abs(), row.change.a.max(row.change.b));
        rows.sort_by(|x, y| {
            let (x, y) = (size(x), size(y));
            y.0.total_cmp(&x.0).then(y.1.total_cmp(&x.1))
        });
        let found = warnings::of(&a, &b, obstacle.as_ref(), &total, choices);
        let are_comparable = found.are_comparable();
        Self { a, b, of_runs, total, rows, warnings: found.warnings, notices, are_comparable }
    }

    /// Whether B is certain to need more than `--fail-above` allows.
    pub fn gate(&self, choices: &Choices) -> Gate {
        let certain = |chances: &[Option<f64>]| {
            verdict::discovery_rates(chances).into_iter().flatten().any(|rate| rate <= verdict::LEVEL)
        };
        let is_exceeded = match choices.fail_on {
            FailOn::Total => certain(&[self.total.above]),
            FailOn::Row => certain(&self.rows.iter().map(|row| row.above).collect::<Vec<_>>()),
        };
        match choices.fail_above {
            Some(_) if !self.are_comparable => Gate::NotComparable,
            Some(_) if is_exceeded => Gate::Exceeded,
            Some(_) if self.total.change.verdict == Verdict::NotEnoughRuns => Gate::NotEnoughRuns,
            _ => Gate::Passed,
        }
    }
}

/// Both sides, ready for rows to be compared.
struct Pair<'a> {
    a: &'a Side,
    b: &'a Side,
    replicates: [Replicates; 2],
    of_runs: bool,
    choices: &'a Choices,
}

impl Pair<'_> {
    fn compare(&self, key: Key, a: Spent, b: Spent, can_prove: bool) -> Compared {
        let [of_a, of_b] = &self.replicates;
        let (from, to) = (self.estimate(self.a, &a, of_a), self.estimate(self.b, &b, of_b));
        let mut change = Change::between(from, to);
        if !can_prove {
            change.p = None;
        }
        let above = self.choices.fail_above.filter(|_| change.p.is_some());
        let above = above.map(|above| verdict::chance_above(from, to, 1.0 + above));
        Compared { key, a, b, change, above }
    }

    fn estimate(&self, side: &Side, spent: &Spent, replicates: &Replicates) -> Estimate {
        let estimate = replicates.estimate(&side.energies(spent, self.of_runs), spent.sampling / 1e12);
        // Joules of all runs are those of a run, as often as there are runs.
        if self.choices.per == Per::Nothing { estimate.scaled(replicates.exposure()) } else { estimate }
    }
}
