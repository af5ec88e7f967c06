//! Compares two data sets: what changed, by how much, and whether it is more than noise.
//!
//! [`side`] sums each data set by row and window, [`identity`] says which rows are the same in
//! both, [`estimate`] makes rates with their errors, and [`verdict`] tells change from noise. Sides that
//! were divided differently are attributed alike before ([`again`]).
//! docs/comparing.md explains it to users.

mod again;
pub mod baseline;
mod circumstances;
mod common_policy;
mod comparability;
pub mod estimate;
mod gate;
pub mod identity;
mod in_window;
mod phases;
mod render;
mod requests;
#[cfg(test)]
mod session_simulation;
pub mod sessions;
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
    sessions::Sessions,
    side::Spent,
};
pub use self::{
    gate::{FailOn, Gate},
    identity::{CompareBy, Key, View},
    side::Side,
    verdict::{Change, Verdict},
};
use super::{
    Format,
    measure::{Measure, Unit},
    profile::{App, Filter, Unreadable},
    requests::RequestsError,
};
use crate::{
    dataset::{
        error::{DataSetError, OfDataSet},
        store::Store,
    },
    model::target_text::TargetText,
    text::{count, escape},
};

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
    /// Requests, which are counted in a file of each side: rows are routes.
    Request { a: PathBuf, b: PathBuf },
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
    /// The unit of a measure's figures.
    pub fn unit(&self, measure: Measure) -> String {
        let (plain, by_time) = match measure.unit() {
            Unit::MicroJoules => ("J", "W"),
            Unit::Bytes => ("B", "B/s"),
            Unit::Count => ("events", "events/s"),
        };
        match self {
            Self::Time => by_time.to_owned(),
            Self::Cpu => format!("{plain}/CPU-s"),
            Self::Nothing => plain.to_owned(),
            Self::Run => format!("{plain}/run"),
            Self::Work { .. } => format!("{plain}/unit"),
            Self::Request { .. } => format!("{plain}/request"),
        }
    }

    /// What the energy of a phase is divided by: whole runs have phases, and a second has none.
    pub fn of_phases(&self) -> Self {
        match self {
            Self::Work { .. } => self.clone(),
            _ => Self::Run,
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
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error("{a} and {b} have nothing of {measure} in this part of them: it is recorded with {flag}")]
    Nothing { a: String, b: String, measure: String, flag: String },
    #[error(
        "{flag} has {} of work, and {data} has {}: give one count for each run",
        count(*counts, "count"),
        count(*runs, "run")
    )]
    Work { flag: &'static str, counts: usize, data: String, runs: usize },
}

impl OfDataSet for DiffError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Data(error) => Some(error),
            Self::Requests(RequestsError::Data(error)) => Some(error),
            _ => None,
        }
    }
}

/// How to compare, and what to show of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub measure: Measure,
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

impl Choices {
    /// The unit of all figures but those of phases.
    fn unit(&self) -> String {
        self.per.unit(self.measure)
    }

    /// What a row is.
    fn row(&self) -> &'static str {
        if matches!(self.per, Per::Request { .. }) { "route" } else { self.by.name() }
    }

    fn unit_of_phases(&self) -> String {
        self.per.of_phases().unit(self.measure)
    }
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
    /// Whether B certainly needs more of it than the gate allows, wherever the gate looks.
    pub exceeds: bool,
}

/// What a comparison found.
#[derive(Debug)]
pub struct Comparison {
    pub a: Side,
    pub b: Side,
    /// Whether runs, not windows, show how much is noise.
    pub of_runs: bool,
    /// In how many times requests were counted, if these show it.
    pub times: Option<[usize; 2]>,
    pub sessions: Sessions,
    pub total: Compared,
    /// Phases of programs, by name: joules of a run, or per unit of work.
    pub phases: Vec<Compared>,
    /// Rows that changed most come first; of equal changes the larger.
    pub rows: Vec<Compared>,
    pub warnings: Vec<String>,
    /// What was done so that both can be compared, and what the intervals leave out.
    pub notices: Vec<String>,
    /// Whether the figures of both mean the same: see [`comparability`].
    pub are_comparable: bool,
}

/// Compares the parts of two data sets that `filter` allows, as `app` sees them if given.
///
/// # Errors
/// If there is no run in one, a file cannot be read or is damaged, or work is not counted by run.
pub fn run(a: &Path, b: &Path, filter: &Filter, app: Option<&App>, choices: &Choices) -> Result<Comparison, DiffError> {
    let read = |root: &Path| Side::read(root, filter, app, choices);
    let (mut a, b) = filter.unreadable.reading(|| Ok::<_, DataSetError>((read(a)?, read(b)?)))?;
    // Those of B, too.
    a.overview.skipped = filter.skipped();
    let own = Filter { unreadable: Unreadable::default(), ..filter.clone() };
    let read = |store: &Arc<dyn Store>, root: &Path| Side::of_store(store, root, &own, app, choices);
    of_sides(a, b, filter, choices, read)
}

/// Compares two parts of one data set, as they were attributed.
///
/// # Errors
/// As [`run`].
pub fn run_parts(
    data: &Path,
    [a, b]: [&Filter; 2],
    app: Option<&App>,
    choices: &Choices,
) -> Result<Comparison, DiffError> {
    let choices = Choices { again_in: None, ..choices.clone() };
    let read = |filter: &Filter| filter.unreadable.reading(|| Side::read(data, filter, app, &choices));
    of_sides(read(a)?, read(b)?, a, &choices, |_, _| Err(DataSetError::Stopped))
}

/// `read` reads a side that was attributed again.
fn of_sides(
    a: Side,
    b: Side,
    filter: &Filter,
    choices: &Choices,
    read: impl Fn(&Arc<dyn Store>, &Path) -> Result<Side, DataSetError>,
) -> Result<Comparison, DiffError> {
    let skipped = a.overview.skipped.clone();
    if let Per::Work { a: work_a, b: work_b } = &choices.per {
        a.expect_work_of_each_run("--work-a", work_a)?;
        b.expect_work_of_each_run("--work-b", work_b)?;
    }
    if let Some(flag) = choices.measure.flag() {
        if !a.has_measure && !b.has_measure {
            let [a, b] = [a, b].map(|side| escape(&side.data.display().to_string()));
            return Err(DiffError::Nothing { a, b, measure: choices.measure.title().to_lowercase(), flag });
        }
        // How energy is divided does not matter to it.
        return Ok(Comparison::of(Sides::as_they_are(a, b), choices));
    }
    let mut sides = again::alike(a, b, filter, choices.again_in.as_deref(), read);
    sides.a.overview.skipped = skipped;
    match &choices.per {
        Per::Request { a, b } => Ok(requests::compare(sides, choices, [a, b])?),
        _ => Ok(Comparison::of(sides, choices)),
    }
}

impl Comparison {
    fn of(sides: Sides, choices: &Choices) -> Self {
        let Sides { a, b, mut notices, obstacle } = sides;
        let has_windows = !a.is_baseline && !b.is_baseline;
        let of_runs = choices.per.is_of_runs() || !has_windows || (a.has_runs_enough() && b.has_runs_enough());
        let sessions = Sessions::of(&a, &b);
        let pair = Pair::of([&a, &b], &choices.per, of_runs, choices);
        let mut total = pair.compare(Key::named("total"), a.total.clone(), b.total.clone(), true);
        gate::judge(std::slice::from_mut(&mut total), choices.margin, sessions);
        let phases = phases_of(&a, &b, sessions, choices);
        let keys: BTreeSet<&Key> = a.rows.keys().chain(b.rows.keys()).collect();
        let compared = keys.into_iter().map(|key| {
            let (of_a, of_b) = (a.spent(key, choices.by), b.spent(key, choices.by));
            let is_exact = !choices.by.is_sampled() && a.is_whole && b.is_whole;
            let can_prove = is_exact || has_samples(&of_a, &of_b);
            pair.compare(key.clone(), of_a, of_b, can_prove)
        });
        let mut rows: Vec<Compared> = compared.collect();
        gate::judge(&mut rows, choices.margin, sessions);
        largest_first(&mut rows);
        let mut found = warnings::of(&a, &b, obstacle.as_ref(), &total, choices);
        found.warnings.extend(warnings::too_few(sessions));
        notices.extend(warnings::apart(sessions));
        notices.extend(a.overview.skipped.line());
        let are_comparable = found.are_comparable();
        let warnings = found.warnings;
        Self { a, b, of_runs, times: None, sessions, total, phases, rows, warnings, notices, are_comparable }
    }
}

impl Compared {
    /// What two estimates say, not judged yet.
    fn between(key: Key, [a, b]: [Spent; 2], [from, to]: [Estimate; 2], can_prove: bool, choices: &Choices) -> Self {
        let mut change = Change::between(from, to);
        if !can_prove {
            change.p = None;
        }
        let above = choices.fail_above.filter(|_| change.p.is_some());
        let above = above.map(|above| verdict::chance_above(from, to, 1.0 + above));
        Self { key, a, b, change, above, exceeds: false }
    }
}

/// Largest changes come first; of equal changes the larger rows.
fn largest_first(rows: &mut [Compared]) {
    let size = |row: &Compared| (row.change.difference().abs(), row.change.a.max(row.change.b));
    rows.sort_by(|x, y| {
        let (x, y) = (size(x), size(y));
        y.0.total_cmp(&x.0).then(y.1.total_cmp(&x.1))
    });
}

/// Compares what phases need of a run, or per unit of work. Their power would say less: a phase that
/// takes twice as long may draw as many watts.
fn phases_of(a: &Side, b: &Side, sessions: Sessions, choices: &Choices) -> Vec<Compared> {
    let per = choices.per.of_phases();
    let pair = Pair::of([a, b], &per, true, choices);
    let names: BTreeSet<&TargetText> = a.phases.keys().chain(b.phases.keys()).collect();
    let mut phases: Vec<Compared> = names
        .into_iter()
        .map(|name| {
            let [of_a, of_b] = [a, b].map(|side| side.phases.get(name).cloned().unwrap_or_default());
            let can_prove = (a.is_whole && b.is_whole) || has_samples(&of_a, &of_b);
            pair.compare(Key::named(name.clone()), of_a, of_b, can_prove)
        })
        .collect();
    gate::judge(&mut phases, choices.margin, sessions);
    phases
}

fn has_samples(a: &Spent, b: &Spent) -> bool {
    a.samples.saturating_add(b.samples) >= MIN_SAMPLES
}

/// Both sides, ready for rows to be compared.
struct Pair<'a> {
    a: &'a Side,
    b: &'a Side,
    replicates: [Replicates; 2],
    of_runs: bool,
    choices: &'a Choices,
    per: &'a Per,
}

impl<'a> Pair<'a> {
    fn of([a, b]: [&'a Side; 2], per: &'a Per, of_runs: bool, choices: &'a Choices) -> Self {
        let replicates = match per {
            Per::Work { a: work_a, b: work_b } => [a.replicates_by_work(work_a), b.replicates_by_work(work_b)],
            per => [a.replicates(per, of_runs), b.replicates(per, of_runs)],
        };
        Self { a, b, replicates, of_runs, choices, per }
    }

    fn compare(&self, key: Key, a: Spent, b: Spent, can_prove: bool) -> Compared {
        let estimates = self.estimates(&a, &b);
        Compared::between(key, [a, b], estimates, can_prove, self.choices)
    }

    fn estimates(&self, a: &Spent, b: &Spent) -> [Estimate; 2] {
        let [of_a, of_b] = &self.replicates;
        let energies = self.a.energies(a, self.of_runs);
        let from = of_a.estimate(&energies, a.sampling / 1e12);
        let to = of_b.estimate(&self.b.energies(b, self.of_runs), b.sampling / 1e12);
        let by_run = self.a.sessions_of_runs().zip(of_a.rates(&energies));
        let by_session = if self.of_runs { sessions::estimates(by_run, from, to) } else { None };
        let [from, to] = by_session.unwrap_or([from, to]);
        [self.scaled(from, of_a), self.scaled(to, of_b)]
    }

    /// In the unit of the choices.
    fn scaled(&self, estimate: Estimate, replicates: &Replicates) -> Estimate {
        // Joules are millions of what was summed; other measures have units without a prefix.
        let scale = if self.choices.measure == Measure::Energy { 1.0 } else { 1e6 };
        // Joules of all runs are those of a run, as often as there are runs.
        estimate.scaled(if *self.per == Per::Nothing { scale * replicates.exposure() } else { scale })
    }
}
