//! Sets apart the part of a domain's energy that does not depend on load, by the run's idle policy.

use super::claims::CpuShare;
use crate::{
    attribution::counter::Delta,
    model::{
        domain::{Domain, Role},
        policy::{IdlePolicy, Policy},
        units::MicroJoules,
    },
};

/// Time that a window's energy covers, with earlier windows whose read failed.
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
        // What a card or a disk draws while nothing is moved is its own: it has nothing to do with the processor's idle
        // time, nor with the idle power that the user gave for it.
        _ if domain.byte_costs().is_some() => delta.static_floor.unwrap_or_default(),
        IdlePolicy::Active => idle_time_share(delta, covered.cpus),
        IdlePolicy::Separate if policy.idle_milliwatts > 0 => machine.given(domain, policy).over(covered.window_ns),
        IdlePolicy::Separate => {
            delta.static_floor.unwrap_or_else(|| machine.calibrated(domain, policy).over(covered.window_ns))
        }
    }
}

/// Kepler's division: energy in proportion to idle and to busy CPU time.
fn idle_time_share(delta: &Delta, cpus: CpuShare) -> MicroJoules {
    let elapsed = u128::from(cpus.elapsed_ns.max(1));
    let share = u128::from(delta.measured.0) * u128::from(cpus.idle_ns.min(cpus.elapsed_ns)) / elapsed;
    MicroJoules(u64::try_from(share).unwrap_or(u64::MAX))
}

/// What a baseline depends on besides the domain: the domains that share it.
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
    /// Energy in a time: mW · ns = 10⁻¹² J = 10⁻⁶ µJ.
    fn over(&self, ns: u64) -> MicroJoules {
        let energy = self.milliwatts.saturating_mul(u128::from(ns)) / (1_000_000 * self.among.max(1));
        MicroJoules(u64::try_from(energy).unwrap_or(u64::MAX))
    }
}

impl Machine<'_> {
    /// Idle power that the user gave for a socket. The processor's dies share it and its memory has
    /// none of it; domains without a socket share that of all sockets.
    fn given(&self, domain: &Domain, policy: &Policy) -> SharedMilliwatts {
        let is_processor = |name: &str| matches!(name, "package" | "uncore" | "cpu");
        let sockets = match domain.socket {
            Some(_) => u128::from(is_processor(&domain.name)),
            None => u128::from(self.sockets.max(1)),
        };
        let among =
            self.shared(|other| other.socket == domain.socket && (other.socket.is_none() || is_processor(&other.name)));
        SharedMilliwatts { milliwatts: u128::from(policy.idle_milliwatts).saturating_mul(sockets), among }
    }

    /// Idle power that a calibration found; dies of a socket share it.
    fn calibrated(&self, domain: &Domain, policy: &Policy) -> SharedMilliwatts {
        let baselines = policy.calibration.iter().flat_map(|calibrated| &calibrated.baselines);
        let mine = baselines.filter(|baseline| {
            baseline.domain == domain.name && baseline.socket == domain.socket && baseline.core == domain.core
        });
        let among =
            self.shared(|other| (other.socket, other.core, &other.name) == (domain.socket, domain.core, &domain.name));
        SharedMilliwatts { milliwatts: mine.map(|baseline| u128::from(baseline.milliwatts)).sum(), among }
    }

    fn shared(&self, is_alike: impl Fn(&Domain) -> bool) -> u128 {
        let of_cpus = |other: &&Domain| other.role == Role::Shared && other.byte_costs().is_none();
        self.domains.iter().filter(of_cpus).filter(|other| is_alike(other)).count() as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        byte_costs::ByteCosts,
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
        let zones = [domain("soc", None), domain("ddr", None)];
        check(&zones, 1, &policy, 10_000_000);
        check(&[domain("cpu", Some(0)), domain("cpu", Some(1))], 1, &policy, 10_000_000);
        check(&[domain("core", Some(0)), domain("uncore", Some(0))], 0, &policy, 0);
    }

    #[test]
    fn network_and_disk_have_an_idle_power_of_their_own_and_no_part_of_the_processors() {
        let network = Domain::per_byte("network", "test", 4, ByteCosts::default());
        let domains = [domain("machine", None), network];
        let floor = Delta { measured: MicroJoules(9), static_floor: Some(MicroJoules(4)), ..Delta::default() };
        let machine = Machine { domains: &domains, sockets: 2 };
        let cpus = CpuShare { idle_ns: SECOND, elapsed_ns: SECOND };
        let covered = Covered { window_ns: SECOND, cpus };
        for (idle, expected) in [(IdlePolicy::Separate, 4), (IdlePolicy::Active, 4), (IdlePolicy::Spread, 0)] {
            let policy = Policy { idle, idle_milliwatts: 10_000, ..Policy::default() };
            assert_eq!(static_wish(&domains[1], &floor, covered, &policy, machine), MicroJoules(expected));
        }
        check(&domains, 0, &Policy { idle_milliwatts: 10_000, ..Policy::default() }, 20_000_000);
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
    fn a_model_knows_its_own_idle_power_and_the_user_knows_better() {
        let floor = Delta { measured: MicroJoules(9), static_floor: Some(MicroJoules(4)), ..Delta::default() };
        let domains = [domain("cpu", None)];
        let machine = Machine { domains: &domains, sockets: 1 };
        let covered = Covered { window_ns: SECOND, ..Covered::default() };
        for (idle_milliwatts, expected) in [(0, 4), (2_000, 2_000_000)] {
            let policy = Policy { idle_milliwatts, ..Policy::default() };
            assert_eq!(static_wish(&domains[0], &floor, covered, &policy, machine), MicroJoules(expected));
        }
    }
}
