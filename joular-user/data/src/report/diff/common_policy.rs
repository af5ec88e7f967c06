//! Chooses a policy by which both sides of a comparison can be attributed.
//!
//! What differs is taken from A's first run, because A is what B is measured against, and its figures
//! may be known already. Two things cannot always be taken from there:
//!
//! - Cycles are counted while a run is recorded or never. Where a run did not count them, time counts
//!   for all.
//! - Idle power belongs to a machine. Each run gets that of A's first run on its machine, and none gets
//!   another machine's. If B ran where A did not, A's idle policy can only be had where it needs no
//!   idle power, or both know nearly the same. Otherwise the other idle policies are tried that a run
//!   has.

use std::collections::{BTreeMap, BTreeSet};

use super::comparability::Differences;
use crate::{
    events::{MachineKey, RunInfo},
    model::policy::{Calibrated, IdlePolicy, Policy, WeightUnit},
    report::profile::Run,
};

/// What both sides are attributed by. What is `None` stays as each run has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommonPolicy {
    idle: Option<IdlePolicy>,
    smt_permille: Option<u32>,
    weight_unit: Option<WeightUnit>,
    /// Whether watts that were fitted are put aside: those of one data set are not those of another.
    is_without_watts: bool,
    idle_power: BTreeMap<Machine, IdlePower>,
}

/// Machine, processor, sockets.
type Machine = (MachineKey, String, u32);

/// As the user gave it, and as a calibration found it.
type IdlePower = (u64, Option<Calibrated>);

impl CommonPolicy {
    /// The first policy that makes both sides alike; `None` if none does.
    pub fn of(a: &[Run], b: &[Run]) -> Option<Self> {
        let first = &a.iter().min_by_key(|run| run.info.started)?.info.policy;
        let divided = Self {
            smt_permille: differ(a, b, |policy| policy.smt_permille).then_some(first.smt_permille),
            weight_unit: differ(a, b, |policy| policy.weight_unit.name()).then_some(WeightUnit::Time),
            is_without_watts: differ(a, b, |policy| policy.watts_by.clone()),
            ..Self::default()
        };
        let of_machines = idle_power(a);
        for idle in idle_policies(a, b, first.idle) {
            for idle_power in [&BTreeMap::new(), &of_machines] {
                let common = Self { idle, idle_power: idle_power.clone(), ..divided.clone() };
                let [a, b] = [a, b].map(|runs| common.given_to(runs));
                if Differences::of(&a, &b).divided.is_empty() {
                    return Some(common);
                }
            }
        }
        None
    }

    pub fn for_run(&self, run: &RunInfo) -> Policy {
        let own = run.policy.clone();
        let own_power = (own.idle_milliwatts, own.calibration);
        let (idle_milliwatts, calibration) = self.idle_power.get(&machine(run)).cloned().unwrap_or(own_power);
        Policy {
            idle: self.idle.unwrap_or(own.idle),
            idle_milliwatts,
            smt_permille: self.smt_permille.unwrap_or(own.smt_permille),
            weight_unit: self.weight_unit.unwrap_or(own.weight_unit),
            calibration,
            watts_by: own.watts_by.filter(|_| !self.is_without_watts),
        }
    }

    /// Runs as they are once they have it.
    pub fn given_to(&self, runs: &[Run]) -> Vec<Run> {
        let with =
            |run: &Run| Run { info: RunInfo { policy: self.for_run(&run.info), ..run.info.clone() }, ..run.clone() };
        runs.iter().map(with).collect()
    }
}

fn machine(run: &RunInfo) -> Machine {
    (run.machine().key(), run.cpu_model.clone(), run.sockets)
}

/// The idle power of each machine that A ran on: that of the first run there.
fn idle_power(a: &[Run]) -> BTreeMap<Machine, IdlePower> {
    let mut by_start: Vec<&RunInfo> = a.iter().map(|run| &run.info).collect();
    by_start.sort_by_key(|run| run.started);
    let mut found = BTreeMap::new();
    for run in by_start {
        let power = (run.policy.idle_milliwatts, run.policy.calibration.clone());
        found.entry(machine(run)).or_insert(power);
    }
    found
}

/// Idle policies to try, in order: each run's own if both sides have the same ones, `first`, and all
/// others that a run has.
fn idle_policies(a: &[Run], b: &[Run], first: IdlePolicy) -> Vec<Option<IdlePolicy>> {
    let own = (!differ(a, b, |policy| policy.idle.name())).then_some(None);
    let has = |idle: &IdlePolicy| a.iter().chain(b).any(|run| run.info.policy.idle == *idle);
    let others = IdlePolicy::ALL.into_iter().filter(|idle| *idle != first).filter(has);
    own.into_iter().chain(std::iter::once(first).chain(others).map(Some)).collect()
}

/// Whether the runs of the sides do not have the same values.
fn differ<T: Ord>(a: &[Run], b: &[Run], of: fn(&Policy) -> T) -> bool {
    let [a, b] = [a, b].map(|runs| runs.iter().map(|run| of(&run.info.policy)).collect::<BTreeSet<T>>());
    a != b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{policy::Baseline, units::UnixMicros};

    /// A run on a host.
    fn run(host: &str, policy: Policy) -> Run {
        Run { info: RunInfo { host: host.into(), sockets: 1, policy, ..RunInfo::default() }, ..Run::default() }
    }

    fn separate(idle_milliwatts: u64) -> Policy {
        Policy { idle_milliwatts, ..Policy::default() }
    }

    fn of(idle: IdlePolicy, idle_milliwatts: u64) -> Policy {
        Policy { idle, ..separate(idle_milliwatts) }
    }

    fn of_weights(weight_unit: WeightUnit) -> Policy {
        Policy { weight_unit, ..Policy::default() }
    }

    /// The policies of all runs, A's first.
    fn common(a: &[Run], b: &[Run]) -> Option<Vec<Policy>> {
        let common = CommonPolicy::of(a, b)?;
        Some(a.iter().chain(b).map(|run| common.for_run(&run.info)).collect())
    }

    /// Policies of A and of B on one machine, and the one that both get.
    type Case = (Policy, Policy, Policy);

    #[test]
    fn on_one_machine_both_get_what_a_has() {
        let calibrated = |milliwatts| {
            let baselines = vec![Baseline { domain: "package".to_owned(), socket: Some(0), core: None, milliwatts }];
            Policy { calibration: Some(Calibrated { baselines, ..Calibrated::default() }), ..Policy::default() }
        };
        let spread = of(IdlePolicy::Spread, 0);
        let cases: [Case; 7] = [
            (spread.clone(), of(IdlePolicy::Active, 0), spread.clone()),
            (separate(5_000), spread, separate(5_000)),
            (separate(5_000), separate(9_000), separate(5_000)),
            (separate(0), separate(9_000), separate(0)),
            (calibrated(20_000), calibrated(30_000), calibrated(20_000)),
            (calibrated(20_000), separate(0), calibrated(20_000)),
            (Policy { smt_permille: 1_300, ..separate(0) }, separate(0), Policy { smt_permille: 1_300, ..separate(0) }),
        ];
        for (a, b, expected) in cases {
            let found = common(&[run("h", a.clone())], &[run("h", b.clone())]);
            assert_eq!(found, Some(vec![expected; 2]), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn cycles_count_only_where_all_counted_them() {
        let [time, cycles] = [WeightUnit::Time, WeightUnit::Cycles].map(of_weights);
        for (a, b) in [(&time, &cycles), (&cycles, &time)] {
            let found = common(&[run("h", a.clone())], &[run("h", b.clone())]);
            assert_eq!(found, Some(vec![time.clone(); 2]));
        }
        let by_cycles = Policy { idle: IdlePolicy::Spread, ..cycles.clone() };
        let found = common(&[run("h", cycles)], &[run("h", by_cycles)]).unwrap();
        assert!(found.iter().all(|policy| policy.weight_unit == WeightUnit::Cycles), "{found:?}");
    }

    #[test]
    fn what_does_not_differ_stays_as_each_run_has_it() {
        let ratio = Policy { smt_permille: 1_300, ..separate(5_100) };
        let found = common(&[run("h", separate(5_000))], &[run("h", ratio)]).unwrap();
        assert_eq!(found, [separate(5_000), separate(5_100)], "idle power is near enough");
    }

    #[test]
    fn no_machine_gets_the_idle_power_of_another() {
        let [active, spread] = [IdlePolicy::Active, IdlePolicy::Spread].map(|idle| of(idle, 9_000));
        let cases = [
            (separate(5_000), separate(9_000), None),
            (separate(5_000), active.clone(), Some(vec![of(IdlePolicy::Active, 5_000), active.clone()])),
            (active.clone(), separate(5_000), Some(vec![active, of(IdlePolicy::Active, 5_000)])),
            (separate(9_000), spread, Some(vec![separate(9_000), separate(9_000)])),
        ];
        for (a, b, expected) in cases {
            let found = common(&[run("h", a.clone())], &[run("other", b.clone())]);
            assert_eq!(found, expected, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn each_machine_has_the_idle_power_of_the_first_run_there() {
        let at = |host, started, milliwatts| {
            let mut run = run(host, separate(milliwatts));
            run.info.started = UnixMicros(started);
            run
        };
        let a = [at("x", 2, 6_000), at("x", 1, 5_000), at("y", 3, 7_000)];
        let b = [at("y", 4, 9_000), at("x", 5, 9_000)];
        let found = common(&a, &b).unwrap();
        assert_eq!(found, [5_000, 5_000, 7_000, 7_000, 5_000].map(separate));
        assert_eq!(common(&[], &b), None);
    }
}
