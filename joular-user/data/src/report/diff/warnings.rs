//! Finds what makes two data sets hard to compare.

use std::collections::BTreeSet;

use super::{Choices, Compared, Per, Verdict, Work, side::Side};
use crate::{report::profile::Run, text::escape};

/// A fact that identifies how a run was made.
type Fact = (&'static str, fn(&Run) -> &str);

/// One line each, names escaped.
pub fn of(a: &Side, b: &Side, total: &Compared, choices: &Choices) -> Vec<String> {
    let mut warnings = Vec::new();
    let label = |side: &Side| side.overview.label.map_or("without energy", |label| label.name()).to_owned();
    differ(&mut warnings, "energy is of different kinds", &label(a), &label(b));
    let all = |side: &Side, of_run: fn(&Run) -> &str| {
        let found: BTreeSet<String> = side.runs.iter().map(|run| escape(of_run(run))).collect();
        found.into_iter().collect::<Vec<_>>().join(", ")
    };
    let facts: [Fact; 4] = [
        ("energy is from different sources", |run| &run.info.energy_source),
        ("hosts differ", |run| &run.info.host),
        ("processors differ", |run| &run.info.cpu_model),
        ("idle policies differ", |run| run.info.policy.idle.name()),
    ];
    for (what, of_run) in facts {
        differ(&mut warnings, what, &all(a, of_run), &all(b, of_run));
    }
    for (name, side) in [("A", a), ("B", b)] {
        if side.windows.is_empty() {
            warnings.push(format!("{name} has no window in this part of it"));
        } else if side.total.energy.0 == 0 {
            warnings.push(format!("{name} has no energy in this part of it"));
        }
        if side.overview.ambiguous > 0 {
            let readings = side.overview.ambiguous;
            warnings.push(format!("{name}: {readings} readings of energy counters were uncertain"));
        }
    }
    if total.change.verdict == Verdict::NotEnoughRuns {
        warnings.push(not_enough(a, b, &choices.per).to_owned());
    }
    warnings
}

/// What would tell a change from noise.
fn not_enough(a: &Side, b: &Side, per: &Per) -> &'static str {
    let is_whole = |work: &Work| matches!(work, Work::Whole(_));
    match per {
        Per::Work { a: of_a, b: of_b }
            if a.has_runs_enough() && b.has_runs_enough() && (is_whole(of_a) || is_whole(of_b)) =>
        {
            "nothing tells how work varies from run to run: give the count of each run, such as --work-a 100,98,101"
        }
        per if per.is_of_runs() => {
            "nothing tells how the joules of runs vary: record at least 3 runs on each side, or compare watts"
        }
        _ => "there are too few windows, or they are all of one wave: record longer, or at least 3 runs on each side",
    }
}

fn differ(warnings: &mut Vec<String>, what: &str, a: &str, b: &str) {
    if a != b {
        warnings.push(format!("{what}: {a} in A, {b} in B"));
    }
}
