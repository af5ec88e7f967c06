//! Compares two data sets: what changed, by how much, and whether it is more than noise.
//!
//! [`side`] sums each data set by row and window, [`identity`] says which rows are the same in
//! both, [`estimate`] makes rates with their errors, and [`verdict`] tells change from noise.
//! docs/comparing.md explains it to users.

pub mod estimate;
pub mod identity;
mod render;
pub mod side;
#[cfg(test)]
mod simulation;
pub mod student;
pub mod verdict;
mod warnings;

use std::{collections::BTreeSet, path::Path};

use self::{
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
use crate::dataset::error::Result;

/// Fewer samples than this on both sides together prove nothing.
const MIN_SAMPLES: u64 = 5;

/// What energy is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Per {
    /// Time of a host: watts.
    #[default]
    Time,
    /// CPU seconds of the selection.
    Cpu,
    /// Nothing: joules.
    Nothing,
    /// Units of work of A and of B.
    Work { a: f64, b: f64 },
}

impl Per {
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Time => "W",
            Self::Cpu => "J/CPU-s",
            Self::Nothing => "J",
            Self::Work { .. } => "J/unit",
        }
    }
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
}

/// Compares the parts of two data sets that `filter` allows, as `app` sees them if given.
///
/// # Errors
/// If there is no run in one, or a file cannot be read or is damaged.
pub fn run(a: &Path, b: &Path, filter: &Filter, app: Option<&App>, choices: &Choices) -> Result<Comparison> {
    let a = Side::read(a, filter, app, choices)?;
    let b = Side::read(b, filter, app, choices)?;
    Ok(Comparison::of(a, b, choices))
}

impl Comparison {
    fn of(a: Side, b: Side, choices: &Choices) -> Self {
        let of_runs = a.has_runs_enough() && b.has_runs_enough();
        let pair = Pair {
            replicates: [a.replicates(choices.per, of_runs), b.replicates(choices.per, of_runs)],
            of_runs,
            choices,
            a: &a,
            b: &b,
        };
        let whole = Key { name: "total".to_owned(), signature: None, module: None };
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
        let warnings = warnings::of(&a, &b, &rows);
        Self { a, b, of_runs, total, rows, warnings }
    }

    /// Whether B is certain to need more than the gate allows.
    pub fn has_regressed(&self, choices: &Choices) -> bool {
        let certain = |chances: &[Option<f64>]| {
            verdict::discovery_rates(chances).into_iter().flatten().any(|rate| rate <= verdict::LEVEL)
        };
        choices.fail_above.is_some()
            && match choices.fail_on {
                FailOn::Total => certain(&[self.total.above]),
                FailOn::Row => certain(&self.rows.iter().map(|row| row.above).collect::<Vec<_>>()),
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
        let (work_a, work_b) = match self.choices.per {
            Per::Work { a, b } => (a, b),
            _ => (1.0, 1.0),
        };
        let from = self.estimate(self.a, &a, of_a, work_a);
        let to = self.estimate(self.b, &b, of_b, work_b);
        let mut change = Change::between(from, to);
        if !can_prove {
            change.p = None;
        }
        let above = self.choices.fail_above.filter(|_| change.p.is_some());
        let above = above.map(|above| verdict::chance_above(from, to, 1.0 + above));
        Compared { key, a, b, change, above }
    }

    fn estimate(&self, side: &Side, spent: &Spent, replicates: &Replicates, work: f64) -> Estimate {
        let estimate = replicates.estimate(&side.energies(spent, self.of_runs), spent.sampling / 1e12);
        match self.choices.per {
            Per::Time | Per::Cpu => estimate,
            // Time is what was recorded, so all that varies is the power.
            Per::Nothing | Per::Work { .. } => estimate.scaled(replicates.exposure() / work),
        }
    }
}
