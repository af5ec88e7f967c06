//! The part of a domain's energy that is set apart because it does not depend
//! on load, by the run's idle policy.

use super::claims::CpuShare;
use crate::{
    energy::{
        counter::Delta,
        domain::{Domain, Role},
        policy::{IdlePolicy, Policy},
    },
    units::MicroJoules,
};

/// Time that a window's energy covers, earlier windows whose read failed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Covered {
    pub(super) window_ns: u64,
    pub(super) cpus: CpuShare,
}

/// Energy to set apart; the caller bounds it by what was measured.
pub(super) fn static_wish(
    domain: &Domain,
    delta: &Delta,
    covered: Covered,
    policy: &Policy,
    machine: Machine<'_>,
) -> MicroJoules {
    match policy.idle {
        IdlePolicy::Spread => MicroJoules(0),
        IdlePolicy::Active => idle_time_share(delta, covered.cpus),
        IdlePolicy::Separate => delta.static_floor.unwrap_or_else(|| {
            let energy = machine.baseline_mw(domain, policy).per(covered.window_ns);
            MicroJoules(u64::try_from(energy).unwrap_or(u64::MAX))
        }),
    }
}

/// Kepler's division: energy in proportion to idle and to busy CPU time.
fn idle_time_share(delta: &Delta, cpus: CpuShare) -> MicroJoules {
    let elapsed = u128::from(cpus.elapsed_ns.max(1));
    let share = u128::from(delta.measured.0) * u128::from(cpus.idle_ns.min(cpus.elapsed_ns)) / elapsed;
    MicroJoules(u64::try_from(share).unwrap_or(u64::MAX))
}

/// What a baseline depends on beside the domain: those it shares it with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine<'a> {
    pub(super) domains: &'a [Domain],
    pub(super) sockets: u32,
}

/// A fraction of watts: milliwatts over a number of domains that share them.
struct SharedMilliwatts {
    milliwatts: u128,
    among: u128,
}

impl SharedMilliwatts {
    /// µJ in a time: mW · ns = 10⁻¹² J = 10⁻⁶ µJ.
    fn per(&self, ns: u64) -> u128 {
        self.milliwatts.saturating_mul(u128::from(ns)) / (1_000_000 * self.among)
    }
}

impl Machine<'_> {
    /// Idle power of a domain: what the user said, else what a calibration found.
    fn baseline_mw(&self, domain: &Domain, policy: &Policy) -> SharedMilliwatts {
        let among = self.alike(domain);
        if policy.idle_milliwatts > 0 {
            let sockets = match (domain.socket, domain.name.as_str()) {
                (Some(_), "package" | "uncore") => 1,
                (Some(_), _) => 0,
                (None, _) => u128::from(self.sockets.max(1)),
            };
            return SharedMilliwatts { milliwatts: u128::from(policy.idle_milliwatts).saturating_mul(sockets), among };
        }
        let baselines = policy.calibration.iter().flat_map(|calibrated| &calibrated.baselines);
        let mine = baselines.filter(|baseline| {
            baseline.domain == domain.name && baseline.socket == domain.socket && baseline.core == domain.core
        });
        SharedMilliwatts { milliwatts: mine.map(|baseline| u128::from(baseline.milliwatts)).sum(), among }
    }

    /// How many domains share a baseline: one, or the dies of a socket.
    fn alike(&self, domain: &Domain) -> u128 {
        let is_alike = |other: &&Domain| {
            (other.socket, other.core, &other.name) == (domain.socket, domain.core, &domain.name)
                && other.role == Role::Shared
        };
        self.domains.iter().filter(is_alike).count().max(1) as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::{
        domain::{Label, Meter},
        policy::{Baseline, Calibrated},
    };

    const SECOND: u64 = 1_000_000_000;

    fn domain(name: &str, socket: Option<u32>) -> Domain {
        Domain::new(name, socket, "test", Label::Measured, Meter::Power)
    }

    #[track_caller]
    fn check(domains: &[Domain], index: usize, policy: &Policy, expected_uj: u64) {
        let delta = Delta { measured: MicroJoules(40_000_000), ..Delta::default() };
        let cpus = CpuShare { idle_ns: 3 * SECOND, elapsed_ns: 4 * SECOND };
        let covered = Covered { window_ns: SECOND, cpus };
        let machine = Machine { domains, sockets: 2 };
        assert_eq!(static_wish(&domains[index], &delta, covered, policy, machine), MicroJoules(expected_uj));
    }

    #[test]
    fn each_policy_sets_its_own_share_apart() {
        let domains = [domain("package", Some(0))];
        for (idle, expected) in
            [(IdlePolicy::Spread, 0), (IdlePolicy::Active, 30_000_000), (IdlePolicy::Separate, 10_000_000)]
        {
            let policy = Policy { idle, idle_milliwatts: 10_000, ..Policy::default() };
            check(&domains, 0, &policy, expected);
        }
    }

    #[test]
    fn idle_watts_are_a_sockets() {
        let policy = Policy { idle_milliwatts: 10_000, ..Policy::default() };
        let two_dies = [domain("package", Some(0)), domain("package", Some(0)), domain("dram", Some(0))];
        check(&two_dies, 0, &policy, 5_000_000);
        check(&two_dies, 2, &policy, 0);
        check(&[domain("machine", None)], 0, &policy, 20_000_000);
    }

    #[test]
    fn a_calibration_knows_every_domain_and_the_user_knows_better() {
        let baseline =
            |domain: &str, milliwatts| Baseline { domain: domain.into(), socket: Some(0), core: None, milliwatts };
        let baselines = vec![baseline("package", 7_000), baseline("dram", 2_000)];
        let calibration = Some(Calibrated { baselines, ..Calibrated::default() });
        let domains = [domain("package", Some(0)), domain("dram", Some(0)), domain("dram", Some(1))];
        let policy = Policy { calibration, ..Policy::default() };
        for (index, expected) in [(0, 7_000_000), (1, 2_000_000), (2, 0)] {
            check(&domains, index, &policy, expected);
        }
        check(&domains, 0, &Policy { idle_milliwatts: 10_000, ..policy }, 10_000_000);
    }

    #[test]
    fn a_model_knows_its_own_idle_power() {
        let floor = Delta { measured: MicroJoules(9), static_floor: Some(MicroJoules(4)), ..Delta::default() };
        let domains = [domain("cpu", None)];
        let policy = Policy { idle_milliwatts: 10_000, ..Policy::default() };
        let machine = Machine { domains: &domains, sockets: 1 };
        assert_eq!(static_wish(&domains[0], &floor, Covered::default(), &policy, machine), MicroJoules(4));
    }
}
