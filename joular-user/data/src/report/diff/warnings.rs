//! Finds what makes two data sets hard to compare.

use std::collections::BTreeSet;

use super::{Compared, side::Side};
use crate::{report::profile::Run, text::escape};

/// A fact that identifies how a run was made.
type Fact = (&'static str, fn(&Run) -> &str);

/// One line each, names escaped.
pub fn of(a: &Side, b: &Side, rows: &[Compared]) -> Vec<String> {
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
    if rows.iter().all(|row| row.change.p.is_none()) && !rows.is_empty() {
        warnings.push("too few windows or samples to tell a change from noise: record longer, or more runs".to_owned());
    }
    warnings
}

fn differ(warnings: &mut Vec<String>, what: &str, a: &str, b: &str) {
    if a != b {
        warnings.push(format!("{what}: {a} in A, {b} in B"));
    }
}
