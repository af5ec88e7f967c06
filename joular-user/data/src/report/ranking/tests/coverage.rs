//! Tests by simulation whether intervals hold the truth as often as they say.

use crate::{
    model::units::MicroJoules,
    report::{profile::Sampled, ranking::interval::Threads},
};

/// The same numbers in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift64*: there are millions of throws.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How often, in per cent, the interval of a method holds its true energy. Threads
/// have `shares` of it, and as many samples in a window as `samples` says.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "simulation")]
fn coverage(shares: &[f64], samples: std::ops::Range<u64>, windows: u64) -> f64 {
    const RUNS: u32 = 2_000;
    let mut dice = Dice(1);
    let mut held = 0;
    for _ in 0..RUNS {
        let (mut threads, mut truth) = (Threads::default(), 0.0);
        let mut seen: Vec<(Sampled, Sampled)> = Vec::new();
        // Neither shares nor samples are round: coverage of one n alone goes up and down.
        let wobble = 0.8 + 0.4 * dice.real();
        for share in shares {
            let share = (share * wobble).min(1.0 - (1.0 - share) * 0.8);
            let (mut whole, mut part) = (Sampled::default(), Sampled::default());
            for _ in 0..windows {
                let (n, energy) =
                    (samples.start + dice.below(samples.end - samples.start), 500_000 + dice.below(500_000));
                let hits = (0..n).filter(|_| dice.real() < share).count() as u64;
                let of_hits = energy * hits / n;
                truth += energy as f64 * share;
                whole.energy.0 += energy;
                whole.samples += n;
                part.energy.0 += of_hits;
                part.samples += hits;
                for (energy, hits) in [(of_hits, hits), (energy - of_hits, n - hits)] {
                    whole.squares += if hits > 0 { (energy as f64).powi(2) / hits as f64 } else { 0.0 };
                }
                part.squares += if hits > 0 { (of_hits as f64).powi(2) / hits as f64 } else { 0.0 };
            }
            threads.add(&whole);
            seen.push((whole, part));
        }
        let energy: MicroJoules = seen.iter().map(|(_, part)| part.energy).sum();
        let mut estimate = threads.group(energy);
        seen.iter().for_each(|(whole, part)| estimate.see(whole, part));
        let interval = estimate.interval(energy, energy);
        held += u32::from(interval.low.joules() <= truth / 1e6 && truth / 1e6 <= interval.high.joules());
    }
    f64::from(held) * 100.0 / f64::from(RUNS)
}

#[test]
fn a_95_per_cent_interval_holds_the_truth_in_95_of_100_runs() {
    for share in [0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9] {
        for (threads, samples, windows) in [(1, 50..150, 5), (1, 20..60, 16), (8, 10..40, 6)] {
            let held = coverage(&vec![share; threads], samples.clone(), windows);
            assert!((93.0..=97.0).contains(&held), "{share} of {threads} threads, {samples:?}: {held} %");
        }
    }
}

#[test]
fn threads_of_several_shares_are_no_less_certain() {
    for (shares, samples, windows) in
        [(&[0.9, 0.1, 0.1, 0.1][..], 40..120, 5), (&[0.5, 0.02, 0.3], 40..120, 5), (&[0.6, 0.0, 0.0, 0.0], 60..120, 8)]
    {
        let held = coverage(shares, samples, windows);
        assert!((93.0..=97.0).contains(&held), "{shares:?}: {held} %");
    }
}

#[test]
fn a_pool_of_threads_with_a_sample_or_two_each_is_as_good_as_one_with_many() {
    for share in [0.05, 0.3, 0.8] {
        let held = coverage(&[share; 120], 1..4, 2);
        assert!((93.0..=97.0).contains(&held), "{share}: {held} %");
    }
}
