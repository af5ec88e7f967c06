//! Says whether B is certain to need more than `--fail-above` allows.

use super::{Choices, Compared, Comparison, Verdict, sessions::Sessions, verdict};

/// Where `--fail-above` looks for an increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    #[default]
    Total,
    Row,
    Phase,
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
    /// It looks at phases, and no program named any.
    NoPhases,
}

impl Comparison {
    /// Whether B is certain to need more than `--fail-above` allows.
    pub fn gate(&self, choices: &Choices) -> Gate {
        let judged = self.judged(choices.fail_on);
        let is_unknown = |row: &Compared| row.change.verdict == Verdict::NotEnoughRuns;
        match choices.fail_above {
            None => Gate::Passed,
            Some(_) if !self.are_comparable => Gate::NotComparable,
            Some(_) if judged.iter().any(|row| row.exceeds) => Gate::Exceeded,
            Some(_) if is_unknown(&self.total) || judged.iter().any(is_unknown) => Gate::NotEnoughRuns,
            Some(_) if choices.fail_on == FailOn::Phase && judged.is_empty() => Gate::NoPhases,
            Some(_) => Gate::Passed,
        }
    }

    /// What the gate looks at.
    pub fn judged(&self, fail_on: FailOn) -> &[Compared] {
        match fail_on {
            FailOn::Total => std::slice::from_ref(&self.total),
            FailOn::Row => &self.rows,
            FailOn::Phase => &self.phases,
        }
    }
}

/// Judges figures that are tested together: which changed, and which exceed the gate. A baseline of too few sessions
/// has the gate only, by the noise of runs.
pub(super) fn judge(compared: &mut [Compared], margin: f64, sessions: Sessions) {
    verdict::judge(compared.iter_mut().map(|row| &mut row.change), margin);
    let chances: Vec<Option<f64>> = compared.iter().map(|row| row.above).collect();
    for (row, rate) in compared.iter_mut().zip(verdict::discovery_rates(&chances)) {
        row.exceeds = rate.is_some_and(|rate| rate <= verdict::LEVEL);
        if matches!(sessions, Sessions::TooFew(_)) {
            row.change.verdict = row.change.verdict.of_one_session();
        }
    }
}
