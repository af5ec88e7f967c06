//! Finds whether the runs of two data sets were made alike.
//!
//! Figures of another source, another processor or another idle power are not the same figures, and
//! a difference between them says nothing about the code. Other circumstances, such as another
//! kernel, may matter or not.

use std::collections::BTreeSet;

use crate::{
    model::policy::{Baseline, IdlePolicy},
    report::profile::Run,
    text::escape,
};

/// How far two calibrations of one machine may be apart: `calibrate` finds idle power this well.
const BASELINE_TOLERANCE: f64 = 0.05;

/// What a difference in a fact means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Something else was measured.
    Measured,
    /// The same was divided differently.
    Divided,
    Circumstance,
}

/// A fact of a run that may differ: in words, and of which kind it is.
type Fact = (Kind, &'static str, fn(&Run) -> String);

const FACTS: [Fact; 14] = [
    (Kind::Measured, "energy is from different sources", |run| run.info.energy_source.clone()),
    (Kind::Measured, "energy is of different domains", domains),
    (Kind::Measured, "processors differ", |run| run.info.cpu_model.clone()),
    (Kind::Divided, "idle policies differ", idle_policy),
    (Kind::Divided, "energy is divided by different weights", weights),
    (Kind::Divided, "ratios of hyper-threads differ", smt_ratio),
    (Kind::Circumstance, "costs of the instrument differ", costs),
    (Kind::Circumstance, "hosts differ", |run| run.info.host.to_string()),
    (Kind::Circumstance, "numbers of CPUs differ", |run| run.info.online_cpus.to_string()),
    (Kind::Circumstance, "kernels differ", |run| run.info.kernel.clone()),
    (Kind::Circumstance, "samples are of different events", |run| run.info.sampling_event.clone()),
    (Kind::Circumstance, "sampling frequencies differ", |run| format!("{} Hz", run.info.frequency_hz)),
    (Kind::Circumstance, "window lengths differ", |run| format!("{} ms", run.info.interval_ns / 1_000_000)),
    (Kind::Circumstance, "versions of joular-bpf differ", |run| run.info.version.clone()),
];

/// What two data sets differ in.
#[derive(Debug, Default)]
pub struct Differences {
    /// One line each, names escaped.
    pub warnings: Vec<String>,
    /// Whether something else was measured.
    pub is_other_measured: bool,
    /// How the same was divided differently: some of the warnings.
    pub divided: Vec<String>,
}

impl Differences {
    /// What matters to a measure that is not energy.
    pub fn beside_energy(a: &[Run], b: &[Run]) -> Self {
        let mut found = Self::default();
        for (_, what, of_run) in FACTS.into_iter().filter(|(kind, ..)| *kind == Kind::Circumstance) {
            found.compare(what, &all(a, of_run), &all(b, of_run));
        }
        found
    }

    pub fn of(a: &[Run], b: &[Run]) -> Self {
        let mut found = Self::default();
        for (kind, what, of_run) in FACTS {
            if found.compare(what, &all(a, of_run), &all(b, of_run)) {
                match kind {
                    Kind::Measured => found.is_other_measured = true,
                    Kind::Divided => found.divided.extend(found.warnings.last().cloned()),
                    Kind::Circumstance => {}
                }
            }
        }
        if found.compare("idle power that is set apart differs", &all(a, baseline), &all(b, baseline))
            && !are_near(a.iter().chain(b).map(baseline_milliwatts))
        {
            found.divided.extend(found.warnings.last().cloned());
        }
        if !found.divided.is_empty() {
            let advice = "attribute both alike to compare them: joular-bpf reattribute";
            found.warnings.push(advice.to_owned());
        }
        found
    }

    /// Whether figures of both mean the same.
    pub fn are_comparable(&self) -> bool {
        !self.is_other_measured && self.divided.is_empty()
    }

    /// Adds a warning if the two differ.
    pub fn compare(&mut self, what: &str, a: &str, b: &str) -> bool {
        if a != b {
            self.warnings.push(format!("{what}: {a} in A, {b} in B"));
        }
        a != b
    }
}

/// How energy is divided in the runs of both sides, in words.
pub fn division(sides: [&[Run]; 2]) -> String {
    let runs = || sides.into_iter().flatten();
    format!(
        "idle policy {}, idle power {}, weights of {}, ratio of hyper-threads {}",
        all(runs(), idle_policy),
        all(runs(), baseline),
        all(runs(), weights),
        all(runs(), smt_ratio)
    )
}

/// What all runs of a side say.
fn all<'r>(runs: impl IntoIterator<Item = &'r Run>, of_run: fn(&Run) -> String) -> String {
    let found: BTreeSet<String> = runs.into_iter().map(|run| escape(&of_run(run))).collect();
    found.into_iter().collect::<Vec<_>>().join(", ")
}

fn domains(run: &Run) -> String {
    let names: BTreeSet<&str> = run.info.domains.iter().map(|domain| domain.name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join("+")
}

fn idle_policy(run: &Run) -> String {
    run.info.policy.idle.name().to_owned()
}

fn weights(run: &Run) -> String {
    run.info.policy.weights()
}

fn smt_ratio(run: &Run) -> String {
    format!("{:.3}", f64::from(run.info.policy.smt_permille) / 1000.0)
}

fn costs(run: &Run) -> String {
    run.info.policy.calibration.as_ref().map_or_else(
        || "not calibrated".to_owned(),
        |found| format!("{} ns a sample and {} ns a switch", found.costs.sample_ns, found.costs.switch_ns),
    )
}

/// Idle power that attribution set apart.
fn baseline(run: &Run) -> String {
    match baseline_milliwatts(run) {
        0 => "none".to_owned(),
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        milliwatts => format!("{:.2} W", milliwatts as f64 / 1000.0),
    }
}

fn baseline_milliwatts(run: &Run) -> u64 {
    let policy = &run.info.policy;
    if policy.idle != IdlePolicy::Separate {
        return 0;
    }
    let of_calibration = |baselines: &[Baseline]| baselines.iter().map(|of_domain| of_domain.milliwatts).sum();
    let given = policy.idle_milliwatts.saturating_mul(run.info.sockets.max(1).into());
    if given > 0 { given } else { policy.calibration.as_ref().map_or(0, |found| of_calibration(&found.baselines)) }
}

#[allow(clippy::cast_precision_loss, reason = "for a ratio")]
fn are_near(milliwatts: impl Iterator<Item = u64> + Clone) -> bool {
    let (least, most) = (milliwatts.clone().min().unwrap_or(0), milliwatts.max().unwrap_or(0));
    (most - least) as f64 <= BASELINE_TOLERANCE * most as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::RunInfo,
        model::policy::{Calibrated, Policy, WeightUnit},
    };

    fn run(change: impl FnOnce(&mut RunInfo)) -> Run {
        let mut info = RunInfo { host: "h".into(), sockets: 1, ..RunInfo::default() };
        change(&mut info);
        Run { info, ..Run::default() }
    }

    fn calibrated(milliwatts: u64) -> Option<Calibrated> {
        let package = Baseline { domain: "package".to_owned(), socket: Some(0), core: None, milliwatts };
        Some(Calibrated { baselines: vec![package], ..Calibrated::default() })
    }

    fn differences(change: impl FnOnce(&mut RunInfo)) -> Differences {
        Differences::of(
            &[run(|info| info.policy.calibration = calibrated(20_000))],
            &[run(|info| {
                info.policy.calibration = calibrated(20_000);
                change(info);
            })],
        )
    }

    #[test]
    fn equal_runs_have_no_warning() {
        let found = differences(|_| {});
        assert!(found.are_comparable() && found.warnings.is_empty(), "{found:?}");
    }

    /// How B differs from A, whether both can be compared, and words of the warning.
    type Case = (fn(&mut RunInfo), bool, &'static str);

    #[test]
    fn what_makes_other_figures_forbids_a_comparison_and_circumstances_do_not() {
        let cases: [Case; 9] = [
            (|info| info.energy_source = "model".to_owned(), false, "different sources"),
            (|info| info.cpu_model = "other".to_owned(), false, "processors differ"),
            (|info| info.policy = Policy { idle: IdlePolicy::Spread, ..info.policy.clone() }, false, "idle policies"),
            (|info| info.policy.smt_permille = 2000, false, "1.125 in A, 2.000 in B"),
            (|info| info.policy.weight_unit = WeightUnit::Cycles, false, "different weights"),
            (|info| info.policy.calibration = None, false, "20.00 W in A, none in B"),
            (|info| info.policy.calibration = calibrated(20_500), true, "20.00 W in A, 20.50 W in B"),
            (|info| info.kernel = "6.12".to_owned(), true, "kernels differ"),
            (|info| info.host = "other\n".into(), true, "h in A, other\\x0a in B"),
        ];
        for (change, are_comparable, words) in cases {
            let found = differences(change);
            assert_eq!(found.are_comparable(), are_comparable, "{found:?}");
            assert!(found.warnings.iter().any(|warning| warning.contains(words)), "{words}: {found:?}");
        }
    }

    #[test]
    fn what_attribution_did_differently_it_can_do_again() {
        let advised = |found: &Differences| found.warnings.iter().any(|warning| warning.contains("reattribute"));
        assert!(advised(&differences(|info| info.policy.calibration = None)));
        assert!(!advised(&differences(|info| info.energy_source = "model".to_owned())));
    }
}
