//! Describes the processors of a machine as the model sees them: CPUs of each socket, its TDP, and
//! the power that frequencies and voltages make of it.

use std::{collections::BTreeMap, path::Path};

use joular_data::model::domain::{FaultCause, ReadFault};

use super::{
    cpufreq::{Frequencies, Knowledge},
    options::{MOST_TDP_UW, States, TdpOptions},
};
use crate::energy::{powercap::counter_file::read_number, sysfs, topology::place_in};

/// Constraints that a powercap zone has: long term, short term, peak.
const CONSTRAINTS: u32 = 4;

/// One socket.
#[derive(Debug)]
pub struct Processor {
    pub socket: u32,
    /// What was known of its frequencies at first.
    pub knowledge: Knowledge,
    cpus: Vec<Frequencies>,
    /// Frequency that the TDP is for, kHz.
    rated_khz: u64,
    tdp_uw: u64,
}

/// The sockets with CPUs online, in order; `None` for one whose TDP is known
/// neither from the user nor from powercap.
pub fn processors(sys_root: &Path, powercap_root: &Path, given: &TdpOptions) -> Vec<Option<Processor>> {
    let mut sockets: BTreeMap<u32, Vec<Frequencies>> = BTreeMap::new();
    for (_, cpu) in sysfs::numbered(&sys_root.join("devices/system/cpu"), "cpu").unwrap_or_default() {
        // CPUs that are offline have no topology.
        if cpu.join("topology").exists() {
            sockets.entry(place_in(&cpu).socket).or_default().push(Frequencies::new(&cpu));
        }
    }
    let processor = |(socket, cpus)| {
        let tdp_uw = given.tdp_uw.or_else(|| long_term_limit(powercap_root, socket))?;
        Some(Processor::new(socket, cpus, tdp_uw, &given.states))
    };
    sockets.into_iter().map(processor).collect()
}

/// The largest power that may be set as the long-term limit of a package's
/// powercap zone, µW: its TDP (Linux, Documentation/power/powercap/powercap.rst;
/// the "thermal spec power" of the register behind it).
fn long_term_limit(powercap_root: &Path, socket: u32) -> Option<u64> {
    let name = format!("package-{socket}");
    let zones = sysfs::numbered(powercap_root, "intel-rapl:").ok()?;
    let (_, zone) = zones
        .into_iter()
        .find(|(_, zone)| sysfs::read_value(&zone.join("name")).ok().is_some_and(|text| text == name))?;
    let file = |index: u32, what: &str| zone.join(format!("constraint_{index}_{what}"));
    let is_long_term =
        |index: &u32| sysfs::read_value(&file(*index, "name")).ok().is_some_and(|text| text == "long_term");
    let index = (0..CONSTRAINTS).find(is_long_term)?;
    read_number(&file(index, "max_power_uw")).ok().filter(|limit_uw| (1..=MOST_TDP_UW).contains(limit_uw))
}

impl Processor {
    fn new(socket: u32, cpus: Vec<Frequencies>, tdp_uw: u64, states: &States) -> Self {
        let rated = cpus.iter().filter_map(Frequencies::rated_khz).max().or(states.highest_khz());
        let known = cpus.iter().map(Frequencies::knowledge).min().unwrap_or(Knowledge::None);
        // Without a frequency to compare with, others say nothing.
        let knowledge = if rated.is_some() { known } else { Knowledge::None };
        Self { socket, knowledge, cpus, rated_khz: rated.unwrap_or(1), tdp_uw }
    }

    /// Power of one busy CPU since the last look, µW: the processor's, averaged
    /// over its CPUs, divided by their number. CPUs that cannot be looked at,
    /// because they went offline, do not count in the average.
    ///
    /// # Errors
    /// If none can be looked at.
    pub fn busy_cpu_uw(&mut self, states: &States) -> Result<u64, ReadFault> {
        let (tdp_uw, rated_khz) = (self.tdp_uw, self.rated_khz);
        let power = |khz| power_uw(tdp_uw, states, rated_khz, khz);
        let cpus = self.cpus.len();
        if self.knowledge == Knowledge::None {
            return Ok(share(power(rated_khz).into(), cpus));
        }
        let (mut sum_uw, mut looked_at, mut fault) = (0_u128, 0, None);
        for cpu in &mut self.cpus {
            match cpu.mean(power) {
                Ok(uw) => (sum_uw, looked_at) = (sum_uw + u128::from(uw), looked_at + 1),
                Err(cause) => fault = Some((cpu.place().to_string(), cause)),
            }
        }
        match fault.filter(|_| looked_at == 0) {
            Some((place, cause)) => Err(ReadFault {
                cause: FaultCause::of(&cause),
                text: format!("reading a frequency in {place}: {cause}: is the cpufreq driver still loaded?"),
            }),
            None => Ok(share(sum_uw, cpus * looked_at)),
        }
    }
}

/// Equation 7 of the model without the process's share: the processor's power
/// at a frequency and its voltage, `0.7 × TDP × f × V² ÷ (f_TDP × V_TDP²)`, µW,
/// rounded to the nearest.
///
/// No product overflows: TDP ≤ 10¹⁰ µW, f ≤ 10⁸ kHz and V² ≤ 10¹⁴ µV² make
/// less than 10³³, and a u128 holds 10³⁸.
fn power_uw(tdp_uw: u64, states: &States, rated_khz: u64, khz: u64) -> u64 {
    let load = |khz: u64| {
        let uv = u128::from(states.uv_at(khz));
        u128::from(khz) * uv * uv
    };
    let (above, below) = (7 * u128::from(tdp_uw) * load(khz), 10 * load(rated_khz).max(1));
    u64::try_from((above + below / 2) / below).unwrap_or(u64::MAX)
}

/// One of `parts`, rounded to the nearest.
fn share(whole: u128, parts: usize) -> u64 {
    let parts = parts.max(1) as u128;
    u64::try_from((whole + parts / 2) / parts).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_seven_tenths_of_the_tdp_at_its_frequency_and_voltage() {
        let states: States = "1000:0.8,2000:1.0,3000:1.2".parse().unwrap();
        let constant = States::default();
        for (states, mhz, expected_uw, why) in [
            (&constant, 2000, 70_000_000, "f = f_TDP"),
            (&constant, 1000, 35_000_000, "half the frequency"),
            (&constant, 3000, 105_000_000, "turbo"),
            (&states, 2000, 70_000_000, "f = f_TDP, V = V_TDP"),
            (&states, 1000, 22_400_000, "70 W × 1/2 × 0.8²"),
            (&states, 1500, 42_525_000, "70 W × 3/4 × 0.9²"),
            (&states, 3000, 151_200_000, "70 W × 3/2 × 1.2²"),
        ] {
            assert_eq!(power_uw(100_000_000, states, 2_000_000, mhz * 1000), expected_uw, "{why}");
        }
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let states: States = "0.001:0.000001,100000:10".parse().unwrap();
        assert_eq!(power_uw(MOST_TDP_UW, &states, 100_000_000, 100_000_000), 7_000_000_000);
        assert_eq!(power_uw(MOST_TDP_UW, &states, 1, 100_000_000), u64::MAX);
        assert_eq!(power_uw(1, &states, 100_000_000, 1), 0);
    }

    proptest::proptest! {
        #[test]
        fn power_grows_with_frequency(tdp_uw in 1..=MOST_TDP_UW, rated in 1_u64..=100_000_000, khz in 1_u64..100_000_000) {
            let states: States = "800:0.7,2400:1.1".parse().unwrap();
            for states in [&States::default(), &states] {
                proptest::prop_assert!(power_uw(tdp_uw, states, rated, khz) <= power_uw(tdp_uw, states, rated, khz + 1));
            }
        }
    }
}
