//! Finds idle power, from windows in which little ran.
//!
//! Nobody can make a machine idle, so windows are taken as they come, and those in which the CPUs
//! were busy do not count. The others still have a little load, which [`AtRest`] takes off.

use joular_data::model::{
    domain::{Domain, Label, Role},
    units::MicroJoules,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    at_rest::{AtRest, Point},
    statistics::Summary,
};

/// Busiest that a window may have been: busy CPU time per CPU time, in thousandths.
pub const MOST_BUSY_PERMILLE: u64 = 50;

/// Fewest windows that a baseline needs.
pub const LEAST_WINDOWS: usize = 4;

/// One window: how busy it was and what each domain's meter said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleWindow {
    /// Busy time over all CPUs.
    pub busy_ns: u64,
    /// CPU time over all CPUs, busy or not.
    pub cpu_ns: u64,
    /// From one reading of the meters to the next.
    pub read_ns: u64,
    /// Per domain, disjoint; `None` where the window's energy is not certain.
    pub energy: Vec<Option<MicroJoules>>,
}

/// Idle power of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdlePower {
    pub domain: String,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    pub label: Label,
    /// Of the windows, as they were.
    pub microwatts: Summary,
    /// What attribution sets apart.
    pub at_rest: AtRest,
}

/// Why there is no baseline.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BaselineError {
    #[error(
        "measuring idle power: the machine is not idle: of {windows} windows only {quiet} were at most {} % busy, \
         the least busy one {} %, half of them {} % and more: stop the load and calibrate again; \
         or give --idle-watts when recording, if you know them",
        percent(&MOST_BUSY_PERMILLE), percent(least_permille), percent(typical_permille)
    )]
    Busy { quiet: usize, windows: usize, least_permille: u64, typical_permille: u64 },
    #[error(
        "measuring idle power of {domain}: only {read} of {windows} idle windows have a reading: \
         `joular-bpf doctor` checks the source; --energy chooses another one"
    )]
    Unread { domain: String, read: usize, windows: usize },
}

fn percent(permille: &u64) -> String {
    format!("{}.{}", permille / 10, permille % 10)
}

/// Whether calibration can measure a domain. A model's idle term is known beforehand, and a replay
/// is another machine's.
pub fn is_measurable(domain: &Domain) -> bool {
    domain.role == Role::Shared
        && (domain.label.is_measured() || matches!(domain.label, Label::Reported | Label::ModelledByProcessor))
}

/// Idle power of each measurable domain.
///
/// # Errors
/// If too few windows were idle, or a domain could not be read in them.
pub fn idle_power(domains: &[Domain], windows: &[IdleWindow]) -> Result<Vec<IdlePower>, BaselineError> {
    let quiet: Vec<&IdleWindow> =
        windows.iter().filter(|window| window.busy_permille() <= MOST_BUSY_PERMILLE).collect();
    if quiet.len() < LEAST_WINDOWS {
        let busy = Summary::of(windows.iter().map(IdleWindow::busy_permille));
        return Err(BaselineError::Busy {
            quiet: quiet.len(),
            windows: windows.len(),
            least_permille: busy.map_or(0, |busy| busy.least),
            typical_permille: busy.map_or(0, |busy| busy.typical),
        });
    }
    let measurable = domains.iter().enumerate().filter(|(_, domain)| is_measurable(domain));
    measurable.map(|(index, domain)| power_of(index, domain, &quiet)).collect()
}

fn power_of(index: usize, domain: &Domain, quiet: &[&IdleWindow]) -> Result<IdlePower, BaselineError> {
    let point = |window: &&IdleWindow| Some(Point { busy: window.busy(), microwatts: window.microwatts(index)? });
    let points: Vec<Point> = quiet.iter().filter_map(point).collect();
    match (Summary::of(points.iter().map(|point| point.microwatts)), AtRest::of(&points)) {
        (Some(microwatts), Some(at_rest)) if points.len() >= LEAST_WINDOWS => Ok(IdlePower {
            domain: domain.name.clone(),
            socket: domain.socket,
            core: domain.core,
            label: domain.label,
            microwatts,
            at_rest,
        }),
        _ => Err(BaselineError::Unread { domain: domain.name.clone(), read: points.len(), windows: quiet.len() }),
    }
}

impl IdleWindow {
    /// Part of the CPU time that was busy.
    #[allow(clippy::cast_precision_loss, reason = "times of half a second")]
    fn busy(&self) -> f64 {
        self.busy_ns as f64 / self.cpu_ns.max(1) as f64
    }

    /// Busy share, rounded up; a window without CPU time counts as busy throughout.
    pub(super) fn busy_permille(&self) -> u64 {
        let share = (u128::from(self.busy_ns) * 1000).div_ceil(u128::from(self.cpu_ns).max(1));
        if self.cpu_ns == 0 { 1000 } else { u64::try_from(share).unwrap_or(u64::MAX) }
    }

    /// Mean power of a domain.
    pub(super) fn microwatts(&self, index: usize) -> Option<u64> {
        let MicroJoules(energy_uj) = self.energy.get(index).copied().flatten()?;
        let microwatts = (u128::from(energy_uj) * 1_000_000_000).checked_div(u128::from(self.read_ns))?;
        u64::try_from(microwatts).ok()
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::Meter;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn domain(name: &str) -> Domain {
        Domain::new(name, Some(0), "test", Label::Measured, Meter::Power)
    }

    /// A second of two CPUs.
    fn window(busy_percent: u64, energy_uj: &[Option<u64>]) -> IdleWindow {
        IdleWindow {
            busy_ns: 2 * SECOND * busy_percent / 100,
            cpu_ns: 2 * SECOND,
            read_ns: SECOND,
            energy: energy_uj.iter().map(|energy| energy.map(MicroJoules)).collect(),
        }
    }

    /// Count, and typical milliwatts and those at rest.
    #[track_caller]
    fn check(domains: &[Domain], windows: &[IdleWindow], expected: &[(u32, u64, u64)]) {
        let found = idle_power(domains, windows).unwrap();
        let figures = found.iter().map(|power| (power.microwatts, power.at_rest.microwatts));
        let found: Vec<_> = figures.map(|(of, at_rest)| (of.count, of.typical / 1000, at_rest / 1000)).collect();
        assert_eq!(found, expected);
    }

    fn watts(watts: u64) -> Option<u64> {
        Some(watts * 1_000_000)
    }

    #[test]
    fn a_busy_phase_does_not_count() {
        let busy = [90, 100, 6].map(|percent| window(percent, &[watts(80)]));
        let idle = [(0, 20), (1, 21), (5, 23), (2, 21), (0, 20)].map(|(percent, of)| window(percent, &[watts(of)]));
        check(&[domain("package")], &[busy.as_slice(), &idle].concat(), &[(5, 21_000, 20_069)]);
    }

    #[test]
    fn power_is_energy_by_the_time_between_readings() {
        let late = IdleWindow { read_ns: SECOND / 2, ..window(0, &[watts(20)]) };
        check(&[domain("package")], &vec![late; 4], &[(4, 40_000, 40_000)]);
    }

    #[test]
    fn windows_with_uncertain_energy_do_not_count_for_that_domain() {
        let mut windows = vec![window(0, &[watts(9), watts(3)]); 4];
        windows.push(window(0, &[None, watts(2)]));
        check(&[domain("package"), domain("dram")], &windows, &[(4, 9_000, 9_000), (5, 3_000, 2_800)]);
        windows.iter_mut().for_each(|window| window.energy[1] = None);
        let error = idle_power(&[domain("package"), domain("dram")], &windows).unwrap_err();
        assert_eq!(error, BaselineError::Unread { domain: "dram".into(), read: 0, windows: 5 });
    }

    /// The meters have taken them off already.
    #[test]
    fn what_has_rows_of_its_own_is_not_taken_off_twice() {
        let rest = Domain { less: vec![1], ..domain("uncore") };
        let windows = vec![window(0, &[watts(50), watts(30)]); 4];
        check(&[rest, domain("core")], &windows, &[(4, 50_000, 50_000), (4, 30_000, 30_000)]);
    }

    #[test]
    fn models_replays_parts_and_checks_have_no_baseline() {
        let windows = vec![window(0, &[watts(1)]); 4];
        for (label, role) in [
            (Label::Modelled, Role::Shared),
            (Label::Replayed, Role::Shared),
            (Label::Measured, Role::Part { of: 0 }),
            (Label::Measured, Role::Check { of: 0 }),
            (Label::Measured, Role::Unshared),
        ] {
            check(&[Domain { label, role, ..domain("package") }], &windows, &[]);
        }
    }

    #[test]
    fn a_machine_that_is_not_idle_is_refused_with_how_busy_it_was() {
        let mut windows = vec![window(60, &[watts(80)]); 5];
        windows.extend(vec![window(3, &[watts(20)]); 3]);
        let message = idle_power(&[domain("package")], &windows).unwrap_err().to_string();
        for part in ["of 8 windows only 3", "at most 5.0 %", "least busy one 3.0 %", "60.0 % and more", "--idle-watts"]
        {
            assert!(message.contains(part), "{message}");
        }
        assert!(matches!(idle_power(&[], &[]), Err(BaselineError::Busy { quiet: 0, windows: 0, .. })));
    }

    #[test]
    fn a_window_that_no_cpu_saw_is_not_idle() {
        let unseen = IdleWindow { busy_ns: 0, cpu_ns: 0, ..window(0, &[watts(1)]) };
        assert!(idle_power(&[domain("package")], &vec![unseen; 9]).is_err());
    }
}
