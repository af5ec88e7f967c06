//! Computes what a slice of CPU time counts for when energy is divided.
//!
//! ```text
//! weight = solo + ρ/2 · corun            two busy hyper-threads of a core draw
//!                                        ρ times what one draws, each half of it
//! ```
//!
//! Weights are in nanoseconds, or in cycles where they are counted. Time whose cycles could not be
//! read counts at the mean rate of the place; where no cycles could be read, by time. The part of
//! the weight that joular-bpf's own programs took from the thread (their calibrated least cost per
//! sample and per switch) is the profiler's. Weights are integers in 1/2000 ns (or cycles): ρ has
//! three decimals, and a half of it one more.

use super::work::Slice;
use crate::model::policy::{Policy, WeightUnit};

/// One nanosecond alone on a core.
const SOLO: u128 = 2_000;

/// A slice's weight: the thread's own, and what the instrument took of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) own: u64,
    pub(super) instrument: u64,
}

/// Cycles per time in a place, over the slices whose cycles are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MeanRate {
    cycles: u128,
    cpu_ns: u128,
}

impl MeanRate {
    pub(super) fn of<'a>(slices: impl Iterator<Item = &'a Slice>) -> Self {
        slices.filter(|slice| slice.cycles > 0).fold(Self::default(), |sum, slice| Self {
            cycles: sum.cycles + u128::from(slice.cycles),
            cpu_ns: sum.cpu_ns + u128::from(slice.cpu_ns),
        })
    }

    /// Converts a weight in time to one in cycles; returns it as it is where no cycles are known.
    fn in_cycles(self, by_time: u128) -> u128 {
        by_time.saturating_mul(self.cycles).checked_div(self.cpu_ns).unwrap_or(by_time)
    }
}

pub(super) fn weight(slice: &Slice, policy: &Policy, rate: MeanRate) -> Weight {
    let cpu_ns = u128::from(slice.cpu_ns);
    if cpu_ns == 0 {
        return Weight::default();
    }
    let shared = u128::from(policy.smt_permille.clamp(1_000, 2_000));
    let counted = |all: u64, corun: u64| {
        let corun = u128::from(corun.min(all));
        (u128::from(all) - corun) * SOLO + corun * shared
    };
    let by_time = counted(slice.cpu_ns, slice.corun_ns);
    let whole = match policy.weight_unit {
        WeightUnit::Time => by_time,
        WeightUnit::Cycles if slice.cycles > 0 => counted(slice.cycles, slice.corun_cycles),
        WeightUnit::Cycles => rate.in_cycles(by_time),
    };
    let instrument = whole.saturating_mul(instrument_ns(slice, policy)) / cpu_ns;
    Weight { own: bounded(whole - instrument), instrument: bounded(instrument) }
}

/// Time that the programs took of a slice; never more than the slice has.
fn instrument_ns(slice: &Slice, policy: &Policy) -> u128 {
    let Some(calibrated) = &policy.calibration else { return 0 };
    let cost = |count: u64, ns: u64| u128::from(count) * u128::from(ns);
    let costs = calibrated.costs;
    let samples_ns = cost(slice.samples, costs.sample_ns);
    samples_ns.saturating_add(cost(slice.switches, costs.switch_ns)).min(u128::from(slice.cpu_ns))
}

fn bounded(weight: u128) -> u64 {
    u64::try_from(weight).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::{Calibrated, InstrumentCosts};

    fn own(slice: Slice, policy: &Policy) -> u64 {
        weight(&slice, policy, MeanRate::default()).own
    }

    #[test]
    fn time_beside_a_busy_hyper_thread_counts_for_less() {
        let policy = |smt_permille| Policy { smt_permille, ..Policy::default() };
        let slice = |corun_ns| Slice { cpu_ns: 1_000, corun_ns, ..Slice::default() };
        for (smt_permille, corun_ns, expected) in [
            (1_125, 0, 2_000_000),
            (1_125, 1_000, 1_125_000),
            (1_125, 400, 600 * 2_000 + 400 * 1_125),
            // Each thread counts in full: as if co-running were nothing special.
            (2_000, 1_000, 2_000_000),
            // The second thread is free.
            (1_000, 1_000, 1_000_000),
            // Whatever a file says, ρ stays between 1 and 2, and co-run within the slice.
            (0, 1_000, 1_000_000),
            (u32::MAX, u64::MAX, 2_000_000),
        ] {
            assert_eq!(own(slice(corun_ns), &policy(smt_permille)), expected, "{smt_permille} {corun_ns}");
        }
    }

    #[test]
    fn cycles_count_instead_of_time() {
        let policy = Policy { weight_unit: WeightUnit::Cycles, ..Policy::default() };
        let slice = |cycles, corun_cycles| Slice { cpu_ns: 1_000, cycles, corun_cycles, ..Slice::default() };
        assert_eq!(own(slice(3_000, 0), &policy), 6_000_000);
        assert_eq!(own(slice(3_000, 3_000), &policy), 3_000 * 1_125);
        assert_eq!(own(slice(3_000, 1_000), &policy), 2_000 * 2_000 + 1_000 * 1_125);
    }

    #[test]
    fn time_without_cycles_counts_at_the_mean_rate_or_as_time() {
        let policy = Policy { weight_unit: WeightUnit::Cycles, ..Policy::default() };
        let known = [Slice { cpu_ns: 100, cycles: 400, ..Slice::default() }, Slice { cpu_ns: 900, ..Slice::default() }];
        let unread = Slice { cpu_ns: 1_000, ..Slice::default() };
        assert_eq!(weight(&unread, &policy, MeanRate::of(known.iter())).own, 4 * 2_000_000);
        assert_eq!(weight(&unread, &policy, MeanRate::of([].iter())).own, 2_000_000);
    }

    #[test]
    fn what_a_group_weighs_is_what_its_threads_weigh() {
        let policy = Policy { weight_unit: WeightUnit::Cycles, ..Policy::default() };
        let alone = Slice { cpu_ns: 1_000, cycles: 3_000, ..Slice::default() };
        let beside = Slice { cpu_ns: 1_000, corun_ns: 1_000, cycles: 1_000, corun_cycles: 1_000, ..Slice::default() };
        let mut group = alone;
        group.add(beside);
        assert_eq!(own(group, &policy), own(alone, &policy) + own(beside, &policy));
    }

    #[test]
    fn what_the_programs_took_is_the_profilers() {
        let costs = InstrumentCosts { sample_ns: 3_000, switch_ns: 200 };
        let calibration = Some(Calibrated { baselines: Vec::new(), costs });
        let policy = Policy { calibration, ..Policy::default() };
        let slice = Slice { cpu_ns: 100_000, samples: 10, switches: 5, ..Slice::default() };
        assert_eq!(
            weight(&slice, &policy, MeanRate::default()),
            Weight { own: 69_000 * 2_000, instrument: 31_000 * 2_000 }
        );
        let all = Slice { cpu_ns: 10, samples: u64::MAX, ..Slice::default() };
        assert_eq!(weight(&all, &policy, MeanRate::default()), Weight { own: 0, instrument: 20_000 });
        assert_eq!(weight(&Slice::default(), &policy, MeanRate::default()), Weight::default());
    }

    proptest::proptest! {
        #[test]
        fn no_slice_overflows(cpu_ns: u64, corun_ns: u64, cycles: u64, samples: u64, smt_permille: u32, unit: bool) {
            let costs = InstrumentCosts { sample_ns: samples, switch_ns: cycles };
            let policy = Policy {
                smt_permille,
                weight_unit: if unit { WeightUnit::Time } else { WeightUnit::Cycles },
                calibration: Some(Calibrated { baselines: Vec::new(), costs }),
                ..Policy::default()
            };
            let slice = Slice { cpu_ns, corun_ns, cycles, corun_cycles: corun_ns, samples, switches: samples };
            weight(&slice, &policy, MeanRate::of([slice].iter()));
            weight(&Slice { cycles: 0, ..slice }, &policy, MeanRate::of([slice].iter()));
        }
    }
}
