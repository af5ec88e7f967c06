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
//!
//! On a hybrid processor a weight counts by the coefficient of its core's type, for time or for cycles. Where watts of threads
//! were fitted to measured energy, a weight counts by them, too.
//!
//! All of that is for meters. What a model computed from CPU time is divided by CPU time, with ρ = 2
//! and in nanoseconds, because every other weight would contradict the model.

use super::work::{ClaimedSlice, Factor, Place, Slice};
use crate::model::{
    cores::{CoreType, ONE_PERMILLE},
    domain::DividedBy,
    policy::{InstrumentCosts, Policy, WeightUnit},
};

/// One nanosecond alone on a core.
const SOLO: u128 = 2_000;

/// ρ in thousandths where a hyper-thread counts in full, whatever runs beside it.
const EACH_IN_FULL: u32 = 2_000;

/// How the slices in a domain's place are weighed.
#[derive(Clone, Debug)]
pub(super) struct Weighing<'a> {
    smt_permille: u32,
    unit: WeightUnit,
    costs: InstrumentCosts,
    types: &'a [CoreType],
    /// Whether fitted factors count: they are of energy that CPU weights divide.
    has_factors: bool,
    /// Of places whose core type is not known, then of each type.
    rates: Vec<MeanRate>,
}

impl<'a> Weighing<'a> {
    /// For a domain that is divided by this, in whose place these slices ran.
    pub(super) fn new<'s>(
        divided_by: &'a DividedBy,
        policy: &Policy,
        slices: impl Iterator<Item = &'s ClaimedSlice>,
    ) -> Self {
        let costs = policy.calibration.as_ref().map(|calibrated| calibrated.costs).unwrap_or_default();
        let by_policy = (policy.smt_permille.clamp(1_000, 2_000), policy.weight_unit);
        let ((smt_permille, unit), types) = match divided_by {
            DividedBy::CpuTime => ((EACH_IN_FULL, WeightUnit::Time), &[][..]),
            DividedBy::CpuWeightsByCoreType(types) => (by_policy, &types[..]),
            _ => (by_policy, &[][..]),
        };
        let has_factors = divided_by.is_by_cpu_weights();
        let rates = vec![MeanRate::default(); types.len() + 1];
        let mut weighing = Self { smt_permille, unit, costs, types, has_factors, rates };
        for claimed in slices {
            let of_type = weighing.type_at(claimed.place);
            if let Some(rate) = weighing.rates.get_mut(of_type.map_or(0, |index| index + 1)) {
                rate.add(&claimed.slice);
            }
        }
        weighing
    }

    fn type_at(&self, place: Place) -> Option<usize> {
        self.types.iter().position(|of| of.places.contains(&(place.socket, place.core)))
    }
}

/// A slice's weight: the thread's own, and what the instrument took of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) own: u64,
    pub(super) instrument: u64,
}

/// Cycles per time in a place, over the slices whose cycles are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MeanRate {
    cycles: u128,
    cpu_ns: u128,
}

impl MeanRate {
    fn add(&mut self, slice: &Slice) {
        if slice.cycles > 0 {
            self.cycles += u128::from(slice.cycles);
            self.cpu_ns += u128::from(slice.cpu_ns);
        }
    }

    /// Converts a weight in time to one in cycles; returns it as it is where no cycles are known.
    fn in_cycles(self, by_time: u128) -> u128 {
        by_time.saturating_mul(self.cycles).checked_div(self.cpu_ns).unwrap_or(by_time)
    }
}

impl Weighing<'_> {
    pub(super) fn weigh(&self, claimed: &ClaimedSlice) -> Weight {
        let slice = &claimed.slice;
        let cpu_ns = u128::from(slice.cpu_ns);
        if cpu_ns == 0 {
            return Weight::default();
        }
        let shared = u128::from(self.smt_permille);
        let counted = |all: u64, corun: u64| {
            let corun = u128::from(corun.min(all));
            (u128::from(all) - corun) * SOLO + corun * shared
        };
        let by_time = counted(slice.cpu_ns, slice.corun_ns);
        let of_type = self.type_at(claimed.place);
        let rate = self.rates.get(of_type.map_or(0, |index| index + 1)).copied().unwrap_or_default();
        let alike = match self.unit {
            WeightUnit::Time => by_time,
            WeightUnit::Cycles if slice.cycles > 0 => counted(slice.cycles, slice.corun_cycles),
            WeightUnit::Cycles => rate.in_cycles(by_time),
        };
        let by_type = match (of_type.and_then(|index| self.types.get(index)), self.unit) {
            (None, _) => alike,
            (Some(of), WeightUnit::Time) => alike.saturating_mul(of.time_permille.into()) / u128::from(ONE_PERMILLE),
            (Some(of), WeightUnit::Cycles) => {
                alike.saturating_mul(of.cycles_permille.into()) / u128::from(ONE_PERMILLE)
            }
        };
        let factor = if self.has_factors { claimed.factor } else { Factor::ONE };
        let whole = by_type.saturating_mul(factor.0.into()) / u128::from(ONE_PERMILLE);
        let instrument = whole.saturating_mul(self.instrument_ns(slice)) / cpu_ns;
        Weight { own: bounded(whole - instrument), instrument: bounded(instrument) }
    }

    /// Time that the programs took of a slice; never more than the slice has.
    fn instrument_ns(&self, slice: &Slice) -> u128 {
        let cost = |count: u64, ns: u64| u128::from(count) * u128::from(ns);
        let samples_ns = cost(slice.samples, self.costs.sample_ns);
        samples_ns.saturating_add(cost(slice.switches, self.costs.switch_ns)).min(u128::from(slice.cpu_ns))
    }
}

fn bounded(weight: u128) -> u64 {
    u64::try_from(weight).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::work::Claimant, model::policy::Calibrated};

    /// The weight of a slice among others, by the rules for meters.
    fn weight<'a>(slice: &Slice, policy: &Policy, others: impl IntoIterator<Item = &'a Slice>) -> Weight {
        let others: Vec<ClaimedSlice> = others.into_iter().map(|slice| claimed(0, *slice)).collect();
        Weighing::new(&DividedBy::CpuWeights, policy, others.iter()).weigh(&claimed(0, *slice))
    }

    fn claimed(core: u32, slice: Slice) -> ClaimedSlice {
        ClaimedSlice { claimant: Claimant::Kernel, place: Place { socket: 0, core }, slice, factor: Factor::ONE }
    }

    /// A CPU of an efficiency core draws a quarter of a performance core's, at three quarters of its
    /// frequency.
    fn hybrid() -> DividedBy {
        let of = |core, time_permille, cycles_permille| CoreType {
            places: vec![(0, core)],
            time_permille,
            cycles_permille,
            ..CoreType::default()
        };
        DividedBy::CpuWeightsByCoreType(vec![of(0, 1_000, 1_000), of(1, 250, 333)])
    }

    #[test]
    fn a_core_type_counts_by_its_coefficient_and_has_no_hyper_threads_of_another() {
        let slice = |corun_ns, cycles| Slice { cpu_ns: 1_000, corun_ns, cycles, ..Slice::default() };
        let (alone, shared, efficient) = (slice(0, 4_000), slice(1_000, 4_000), slice(0, 3_000));
        let own = |unit, slices: &[(u32, Slice)], of: usize| {
            let policy = Policy { weight_unit: unit, ..Policy::default() };
            let slices: Vec<ClaimedSlice> = slices.iter().map(|(core, slice)| claimed(*core, *slice)).collect();
            Weighing::new(&hybrid(), &policy, slices.iter()).weigh(&slices[of]).own
        };
        let slices = [(0, alone), (0, shared), (1, efficient), (7, alone)];
        let in_time = [0, 1, 2, 3].map(|of| own(WeightUnit::Time, &slices, of));
        // Before there were coefficients the efficiency core counted 1.78 times as much as a hyper-thread
        // of a shared performance core; it draws less than half of that.
        assert_eq!(in_time, [2_000_000, 1_125_000, 500_000, 2_000_000]);
        let in_cycles = [0, 2].map(|of| own(WeightUnit::Cycles, &slices, of));
        assert_eq!(in_cycles, [8_000_000, 3_000 * 2_000 * 333 / 1_000]);
    }

    #[test]
    fn cycles_that_are_not_known_count_at_the_rate_of_their_core_type() {
        let slice = |cycles| Slice { cpu_ns: 1_000, cycles, ..Slice::default() };
        let slices = [claimed(0, slice(4_000)), claimed(1, slice(2_000)), claimed(1, slice(0))];
        let policy = Policy { weight_unit: WeightUnit::Cycles, ..Policy::default() };
        let by_type = hybrid();
        let weighing = Weighing::new(&by_type, &policy, slices.iter());
        assert_eq!(weighing.weigh(&slices[2]), weighing.weigh(&slices[1]));
    }

    fn own(slice: Slice, policy: &Policy) -> u64 {
        weight(&slice, policy, []).own
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
        assert_eq!(weight(&unread, &policy, &known).own, 4 * 2_000_000);
        assert_eq!(weight(&unread, &policy, []).own, 2_000_000);
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
        assert_eq!(weight(&slice, &policy, []), Weight { own: 69_000 * 2_000, instrument: 31_000 * 2_000 });
        let all = Slice { cpu_ns: 10, samples: u64::MAX, ..Slice::default() };
        assert_eq!(weight(&all, &policy, []), Weight { own: 0, instrument: 20_000 });
        assert_eq!(weight(&Slice::default(), &policy, []), Weight::default());
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
            weight(&slice, &policy, &[slice]);
            weight(&Slice { cycles: 0, ..slice }, &policy, &[slice]);
        }
    }
}
