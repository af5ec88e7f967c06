//! Finds what a busy CPU of each type of a hybrid processor draws above idle, from windows in which
//! one CPU of the type ran a loop.
//!
//! The power of all measured domains is taken together. Of every window, what was drawn above idle is
//! divided by the time that CPUs were busy, so that the little else that runs does not count as the
//! loop's. The loop is one of plain integer instructions: other code may have another ratio.

use joular_data::model::{
    cores::{CoreBasis, CoreType, ONE_PERMILLE},
    domain::Domain,
};
use serde::{Deserialize, Serialize};

use super::{
    baseline::{IdleWindow, LEAST_WINDOWS, MOST_BUSY_PERMILLE, is_measurable},
    statistics::Summary,
};

/// A busy CPU that draws less above idle than this, in µW, is lost in the noise of the idle power.
const LEAST_UW: u64 = 100_000;

/// No processor has coefficients outside of these, in thousandths.
const PLAUSIBLE_PERMILLE: std::ops::RangeInclusive<u64> = 10..=100_000;

/// Power of one busy CPU of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePower {
    /// As in [`CoreType`].
    pub name: String,
    /// The CPU that ran.
    pub cpu: u32,
    /// Above idle, per CPU that was busy.
    pub microwatts: Summary,
    /// Frequency at the end of the load; 0 if it is not known.
    pub kilohertz: u64,
}

/// Microwatts above idle for each busy CPU; `None` if too few windows are certain or idle enough.
pub fn busy_cpu_microwatts(domains: &[Domain], idle: &[IdleWindow], loaded: &[IdleWindow]) -> Option<Summary> {
    let quiet = idle.iter().filter(|window| window.busy_permille() <= MOST_BUSY_PERMILLE);
    let idle_uw = Summary::of(quiet.filter_map(|window| machine_microwatts(domains, window)))?.typical;
    let above = |window: &IdleWindow| {
        let above_uw = machine_microwatts(domains, window)?.saturating_sub(idle_uw);
        let per_busy = u128::from(above_uw) * u128::from(window.read_ns);
        u64::try_from(per_busy.checked_div(u128::from(window.busy_ns))?).ok()
    };
    let powers: Vec<u64> = loaded.iter().filter_map(above).collect();
    Summary::of(powers.iter().copied()).filter(|_| powers.len() >= LEAST_WINDOWS)
}

/// All domains together.
fn machine_microwatts(domains: &[Domain], window: &IdleWindow) -> Option<u64> {
    let mut measurable = domains.iter().enumerate().filter(|(_, domain)| is_measurable(domain)).peekable();
    measurable.peek()?;
    measurable.map(|(index, _)| window.microwatts(index)).sum()
}

/// Gives types the coefficients that were measured, or leaves them as they are if any type was not
/// measured, or not plausibly.
pub fn apply(types: &mut [CoreType], powers: &[CorePower]) {
    let power_of = |of: &CoreType| powers.iter().find(|power| power.name == of.name);
    let Some(first) = types.first().and_then(power_of).cloned() else { return };
    let coefficients = |of: &CoreType| {
        let power = power_of(of)?;
        let permille = |ratio: u128| u64::try_from(ratio).ok().filter(|ratio| PLAUSIBLE_PERMILLE.contains(ratio));
        let one = u128::from(ONE_PERMILLE);
        let time = permille(u128::from(power.microwatts.typical) * one / u128::from(first.microwatts.typical))?;
        let cycles = match (first.kilohertz, power.kilohertz) {
            (0, _) | (_, 0) => time,
            (fast, slow) => permille(u128::from(time) * u128::from(fast) / u128::from(slow))?,
        };
        Some((u32::try_from(time).ok()?, u32::try_from(cycles).ok()?))
    };
    if first.microwatts.typical < LEAST_UW {
        return;
    }
    let Some(found) = types.iter().map(coefficients).collect::<Option<Vec<_>>>() else { return };
    for (of, (time_permille, cycles_permille)) in types.iter_mut().zip(found) {
        (of.time_permille, of.cycles_permille) = (time_permille, cycles_permille);
        of.basis = CoreBasis::Calibrated;
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::{
        domain::{Label, Meter},
        units::MicroJoules,
    };

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn domains() -> Vec<Domain> {
        let domain = |name: &str| Domain::new(name, Some(0), "test", Label::Measured, Meter::Power);
        vec![domain("package"), domain("dram")]
    }

    /// A second of eight CPUs: busy time, and watts of package and memory.
    fn window(busy_ms: u64, watts: [u64; 2]) -> IdleWindow {
        let energy = watts.map(|watts| Some(MicroJoules(watts * 1_000_000))).to_vec();
        IdleWindow { busy_ns: busy_ms * 1_000_000, cpu_ns: 8 * SECOND, read_ns: SECOND, energy }
    }

    fn power(name: &str, typical: u64, kilohertz: u64) -> CorePower {
        let microwatts = Summary { count: 8, least: typical, typical, spread: 0 };
        CorePower { name: name.into(), cpu: 0, microwatts, kilohertz }
    }

    fn types() -> Vec<CoreType> {
        let of = |name: &str| CoreType {
            name: name.into(),
            time_permille: ONE_PERMILLE,
            cycles_permille: ONE_PERMILLE,
            ..CoreType::default()
        };
        vec![of("performance"), of("efficiency")]
    }

    #[test]
    fn power_above_idle_is_of_the_cpus_that_were_busy() {
        let idle = vec![window(100, [10, 2]); 4];
        let found = busy_cpu_microwatts(&domains(), &idle, &vec![window(1_000, [30, 4]); 4]).unwrap();
        assert_eq!((found.count, found.typical), (4, 22_000_000));
        // A quarter of a CPU more that something else used.
        let found = busy_cpu_microwatts(&domains(), &idle, &vec![window(1_250, [35, 4]); 4]).unwrap();
        assert_eq!(found.typical, 21_600_000);
    }

    #[test]
    fn windows_that_are_uncertain_or_too_few_give_nothing() {
        let idle = vec![window(0, [10, 2]); 4];
        let unread = IdleWindow { energy: vec![Some(MicroJoules(1)), None], ..window(1_000, [30, 4]) };
        for (idle, loaded) in [
            (idle.clone(), vec![window(1_000, [30, 4]); 3]),
            (idle.clone(), vec![unread; 9]),
            (vec![window(8_000, [30, 4]); 9], vec![window(1_000, [30, 4]); 9]),
            (idle, vec![window(0, [30, 4]); 9]),
        ] {
            assert_eq!(busy_cpu_microwatts(&domains(), &idle, &loaded), None);
        }
        assert_eq!(busy_cpu_microwatts(&[], &[window(0, [1, 1])], &vec![window(1_000, [9, 9]); 9]), None);
    }

    #[test]
    fn coefficients_are_relative_to_the_first_type() {
        let mut found = types();
        apply(&mut found, &[power("efficiency", 5_000_000, 3_000_000), power("performance", 20_000_000, 4_000_000)]);
        let figures: Vec<_> = found.iter().map(|of| (of.time_permille, of.cycles_permille, of.basis)).collect();
        assert_eq!(figures, [(1_000, 1_000, CoreBasis::Calibrated), (250, 333, CoreBasis::Calibrated)]);
        let mut found = types();
        apply(&mut found, &[power("efficiency", 5_000_000, 0), power("performance", 20_000_000, 4_000_000)]);
        assert_eq!((found[1].time_permille, found[1].cycles_permille), (250, 250));
    }

    #[test]
    fn what_was_not_measured_for_every_type_changes_nothing() {
        for powers in [
            vec![],
            vec![power("performance", 20_000_000, 0)],
            vec![power("efficiency", 5_000_000, 0)],
            vec![power("performance", 50_000, 0), power("efficiency", 20_000, 0)],
            vec![power("performance", 20_000_000, 0), power("efficiency", 0, 0)],
        ] {
            let mut found = types();
            apply(&mut found, &powers);
            assert_eq!(found, types(), "{powers:?}");
        }
    }
}
