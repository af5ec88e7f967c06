//! Finds what makes two data sets hard to compare.

use super::{
    Choices, Compared, FailOn, Per, Verdict, Work,
    again::Obstacle,
    circumstances,
    comparability::Differences,
    sessions::{MIN_SESSIONS, Sessions},
    side::Side,
};
use crate::{
    report::measure::Measure,
    text::{count, escape},
};

/// How the runs of the two were made differently.
pub fn differences(a: &Side, b: &Side) -> Differences {
    let mut found = Differences::of(&a.runs, &b.runs);
    let label = |side: &Side| side.overview.label.map_or("without energy", |label| label.name()).to_owned();
    found.is_other_measured |= found.compare("energy is of different kinds", &label(a), &label(b));
    found
}

/// What the two differ in, and what is missing to judge them.
pub fn of(a: &Side, b: &Side, obstacle: Option<&Obstacle>, total: &Compared, choices: &Choices) -> Differences {
    let is_of_energy = choices.measure == Measure::Energy;
    let mut found = if is_of_energy { differences(a, b) } else { Differences::beside_energy(&a.runs, &b.runs) };
    if let Some(obstacle) = obstacle {
        found.warnings.push(format!("A and B are not attributed alike: {}", escape(&obstacle.to_string())));
    }
    circumstances::compare(&mut found, &a.overview.load, &b.overview.load);
    let warnings = &mut found.warnings;
    for (name, side) in [("A", a), ("B", b)] {
        if side.windows.is_empty() {
            warnings.push(format!("{name} has no window in this part of it"));
        } else if side.total.energy.0 == 0 {
            let nothing = if is_of_energy { "no energy".to_owned() } else { format!("no {}", choices.measure.name()) };
            warnings.push(format!("{name} has {nothing} in this part of it"));
        }
        if is_of_energy && side.overview.ambiguous > 0 {
            let readings = count(side.overview.ambiguous, "uncertain reading");
            warnings.push(format!("{name}: {readings} of energy counters"));
        }
        warnings.extend(lag(side).map(|said| format!("{name}: energy counters are behind, so {said}")));
    }
    if choices.fail_on == FailOn::Phase && a.phases.is_empty() && b.phases.is_empty() {
        warnings.push("--fail-on phase looks at phases, and no program named any".to_owned());
    }
    if total.change.verdict == Verdict::NotEnoughRuns {
        warnings.push(not_enough(a, b, &choices.per).to_owned());
    }
    found
}

/// How far off phases may be: those that are selected, or the one of all that is most.
fn lag(side: &Side) -> Option<String> {
    if let Some(lag) = side.overview.lag {
        return Some(format!("the targets' energy in these phases may be off by {lag}"));
    }
    let (phase, lag) = side.lags.iter().max_by(|(_, one), (_, other)| one.joules().total_cmp(&other.joules()))?;
    Some(format!("the targets' energy of all runs in phase {phase} may be off by {lag}, that in others by no more"))
}

/// What would tell a change from noise.
fn not_enough(a: &Side, b: &Side, per: &Per) -> &'static str {
    let is_whole = |work: &Work| matches!(work, Work::Whole(_));
    match per {
        Per::Work { a: of_a, b: of_b }
            if a.has_runs_enough() && b.has_runs_enough() && (is_whole(of_a) || is_whole(of_b)) =>
        {
            "it is not known how work varies from run to run: give the count of each run, such as --work-a 100,98,101"
        }
        Per::Request { .. } => {
            "it is not known how the figures vary: count requests in at least 20 times on each side (joular-bpf requests \
             writes one every 10 s), or in at least 3 runs, each of its own time"
        }
        per if per.is_of_runs() => {
            "it is not known how the figures of runs vary: record at least 3 runs on each side, or compare rates: --per time"
        }
        _ => "there are too few windows, or they are all of one wave: record longer, or at least 3 runs on each side",
    }
}

/// What a baseline lacks, if it does not show how sessions differ.
pub fn too_few(sessions: Sessions) -> Option<String> {
    let Sessions::TooFew(count) = sessions else { return None };
    let missing = MIN_SESSIONS.saturating_sub(count);
    Some(format!(
        "the baseline has runs of {count} session{}, so it is not known how much sessions differ (restarts, heat, \
         neighbours): intervals and --fail-above rest on the noise of runs only. Add {missing} session{} or more, \
         recorded at other times: joular-bpf baseline save DATA FILE --session",
        if count == 1 { "" } else { "s" },
        if missing == 1 { "" } else { "s" },
    ))
}

/// What the intervals of two data sets leave out.
pub fn apart(sessions: Sessions) -> Option<String> {
    (sessions == Sessions::Apart).then(|| {
        "A and B were recorded one after the other, so intervals leave out how much sessions differ (restarts, heat, \
         neighbours). Record them in turns, so that both have the same session (joular-bpf run --repeat 10 \
         --variant …), or compare with a baseline of several sessions (joular-bpf baseline)"
            .to_owned()
    })
}
