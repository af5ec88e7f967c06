//! Tests by simulation whether intervals hold the truth as often as they say.

use super::{Group, Sampled, Threads};
use crate::{model::units::MicroJoules, noise::Noise};

/// How often, in per cent, the interval of a method holds its true energy. Threads
/// have `shares` of it, and as many samples in a window as `samples` says.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "simulation")]
fn coverage(shares: &[f64], samples: std::ops::Range<u64>, windows: u64) -> f64 {
    const RUNS: u32 = 2_000;
    let mut noise = Noise(1);
    let mut held = 0;
    for _ in 0..RUNS {
        let (mut threads, mut truth) = (Threads::default(), 0.0);
        let mut seen: Vec<(Sampled, Sampled)> = Vec::new();
        // Neither shares nor samples are round: coverage of one n alone goes up and down.
        let wobble = 0.8 + 0.4 * noise.uniform();
        for share in shares {
            let share = (share * wobble).min(1.0 - (1.0 - share) * 0.8);
            let (mut whole, mut part) = (Sampled::default(), Sampled::default());
            for _ in 0..windows {
                let (n, energy) =
                    (samples.start + noise.below(samples.end - samples.start), 500_000 + noise.below(500_000));
                let hits = (0..n).filter(|_| noise.uniform() < share).count() as u64;
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
        let mut group = Group::default();
        seen.iter().for_each(|(whole, part)| group.see(whole, part));
        let interval = threads.interval(&group, energy, energy);
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

/// Samples a second of CPU time.
const RATE: f64 = 99.0;

/// What becomes of the energy of windows that no sample hit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unsampled {
    /// It stays apart, as `[no sample]`: intervals are about the rest.
    Apart,
    /// It goes to the samples before and after it.
    ToNearest,
}

/// A thread, how it is looked at, and for how long.
#[derive(Clone, Copy, Debug)]
struct Pooled {
    /// Of a CPU.
    load: f64,
    window_s: f64,
    /// Samples that can be expected of the whole run.
    expected: f64,
    share: f64,
    unsampled: Unsampled,
}

/// A window with samples, and what they stand for.
struct Window {
    energy: f64,
    hits: u64,
    misses: u64,
}

impl Pooled {
    /// Windows of a run, and the energy that its samples stand for. The thread's time on CPU and
    /// the machine's power differ from window to window.
    fn run(&self, noise: &mut Noise, share: f64) -> (Vec<Window>, f64) {
        let mean = RATE * self.load * self.window_s;
        let (mut windows, mut waiting, mut energy_of_all) = (Vec::<Window>::new(), 0.0, 0.0);
        let mut left = self.expected;
        while left > 0.0 {
            let expected = mean * if mean < RATE * self.window_s { 0.5 + noise.uniform() } else { 1.0 };
            left -= mean;
            let energy = expected * 1e5 * (0.5 + noise.uniform());
            let (hits, misses) = (noise.poisson(expected * share), noise.poisson(expected * (1.0 - share)));
            if hits + misses == 0 {
                waiting += energy;
                continue;
            }
            let mut window = Window { energy, hits, misses };
            if self.unsampled == Unsampled::ToNearest {
                let before = if windows.is_empty() { 0.0 } else { waiting / 2.0 };
                window.energy += waiting - before;
                windows.last_mut().into_iter().for_each(|last| last.energy += before);
            }
            waiting = 0.0;
            windows.push(window);
        }
        if self.unsampled == Unsampled::ToNearest {
            windows.last_mut().into_iter().for_each(|last| last.energy += waiting);
        }
        windows.iter().for_each(|window| energy_of_all += window.energy);
        (windows, energy_of_all)
    }

    /// How often, in per cent, the interval holds what the method truly had of that energy.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "simulation"
    )]
    fn coverage(&self, runs: u32) -> f64 {
        let mut noise = Noise(1);
        let (mut held, mut of) = (0, 0);
        for _ in 0..runs {
            // Shares are not round: coverage of one share alone goes up and down with each sample.
            let wobble = 0.8 + 0.4 * noise.uniform();
            let share = if self.share < 0.5 { self.share * wobble } else { 1.0 - (1.0 - self.share) * wobble };
            let (windows, energy) = self.run(&mut noise, share);
            let (mut whole, mut part) = (Sampled::default(), Sampled::default());
            for Window { energy, hits, misses } in windows {
                let of_hits = energy * hits as f64 / (hits + misses) as f64;
                let row = |energy: f64, samples| Sampled::of(MicroJoules(energy.round() as u64), samples);
                part.plus(&row(of_hits, hits));
                whole.plus(&row(of_hits, hits));
                whole.plus(&row(energy - of_hits, misses));
            }
            if whole.samples == 0 {
                continue;
            }
            let (mut threads, mut group) = (Threads::default(), Group::default());
            threads.add(&whole);
            group.see(&whole, &part);
            let interval = threads.interval(&group, part.energy, part.energy);
            let truth = share * energy / 1e6;
            held += u32::from(interval.low.joules() <= truth && truth <= interval.high.joules());
            of += 1;
        }
        f64::from(held) * 100.0 / f64::from(of)
    }
}

/// Every load and window of the documents, both ways to deal with time that no sample hit.
fn cases(samples: f64, shares: &[f64]) -> Vec<Pooled> {
    let mut cases = Vec::new();
    for unsampled in [Unsampled::Apart, Unsampled::ToNearest] {
        for load in [0.002, 0.01, 0.1, 1.0] {
            for window_s in [0.1, 1.0, 10.0, 60.0] {
                // A run has a window at least.
                let expected = f64::max(samples, RATE * load * window_s);
                cases.extend(shares.iter().map(|share| Pooled { load, window_s, expected, share: *share, unsampled }));
            }
        }
    }
    cases
}

#[test]
fn pooled_windows_hold_the_truth_in_95_of_100_runs_whatever_the_load_and_the_window() {
    let mut of_share = [(0.05, 0.0), (0.3, 0.0), (0.9, 0.0)];
    let cases = cases(200.0, &of_share.map(|(share, _)| share));
    for case in &cases {
        let held = case.coverage(1_500);
        println!("{held:.1} % {case:?}");
        assert!((93.0..=97.0).contains(&held), "{held} %: {case:?}");
        of_share.iter_mut().filter(|(share, _)| *share == case.share).for_each(|(_, sum)| *sum += held);
    }
    // One case leaves half a per cent to chance, a third of them a tenth of that.
    for (share, sum) in of_share {
        let mean = sum * 3.0 / cases.len() as f64;
        println!("{mean:.2} % at {share}");
        assert!((94.0..=96.5).contains(&mean), "{mean} % at {share}");
    }
}

/// A method of which two or three samples are expected, or in which two or three are missing. What
/// few samples say comes in steps; intervals are rather too wide.
#[test]
fn of_few_samples_an_interval_holds_no_less() {
    for case in cases(25.0, &[0.1, 0.5, 0.9]).into_iter().filter(|case| case.expected < 30.0) {
        let held = case.coverage(1_500);
        println!("{held:.1} % {case:?}");
        assert!((92.5..=99.0).contains(&held), "{held} %: {case:?}");
    }
}

#[test]
fn the_only_sample_does_not_make_a_figure_certain() {
    let whole = Sampled::of(MicroJoules(1_000), 1);
    for (part, expected) in [(whole, (207, 1_000)), (Sampled::default(), (0, 793))] {
        let (mut threads, mut group) = (Threads::default(), Group::default());
        threads.add(&whole);
        group.see(&whole, &part);
        let interval = threads.interval(&group, part.energy, part.energy);
        assert_eq!((interval.low.0, interval.high.0), expected);
    }
}
