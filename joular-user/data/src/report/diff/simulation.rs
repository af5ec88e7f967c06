//! Tests whether a verdict holds what it promises, on thousands of simulated runs whose truth is
//! known: load comes in waves, and samples divide it among methods.

use super::{
    estimate::{Estimate, Replicates},
    verdict::{self, Change, LEVEL, Verdict},
};

const PAIRS: u32 = 1_000;

/// Numbers that look random and are always the same (splitmix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to 1.
    fn uniform(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// Nearly normal: twelve uniforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Power by window: a mean, and waves of which the part `kept` remains from one window to the next.
fn load(noise: &mut Noise, windows: usize, mean: f64, deviation: f64, kept: f64) -> Vec<f64> {
    let mut wave = noise.normal();
    let step = (1.0 - kept * kept).sqrt();
    (0..windows)
        .map(|_| {
            wave = kept * wave + step * noise.normal();
            mean * (1.0 + deviation * wave)
        })
        .collect()
}

fn estimate(powers: &[f64]) -> Estimate {
    let energies: Vec<(usize, f64)> = powers.iter().copied().enumerate().collect();
    Replicates::of_windows(vec![1.0; powers.len()]).estimate(&energies, 0.0)
}

fn change(a: Estimate, b: Estimate) -> Change {
    let mut change = Change::between(a, b);
    verdict::judge(std::iter::once(&mut change), 0.05);
    change
}

/// Share of the pairs for which this holds.
fn share(mut holds: impl FnMut(&mut Noise) -> bool) -> f64 {
    let mut noise = Noise(7);
    f64::from((0..PAIRS).map(|_| u32::from(holds(&mut noise))).sum::<u32>()) / f64::from(PAIRS)
}

/// How far a share of one in twenty may be off with so many pairs: three standard deviations.
fn slack() -> f64 {
    3.0 * (LEVEL * (1.0 - LEVEL) / f64::from(PAIRS)).sqrt()
}

fn is_called_changed(change: &Change) -> bool {
    matches!(change.verdict, Verdict::More | Verdict::Less)
}

#[test]
fn two_runs_of_the_same_workload_seldom_differ() {
    for (windows, kept) in [(20, 0.0), (20, 0.3), (60, 0.0), (60, 0.6), (300, 0.6), (300, 0.8)] {
        let wrong = share(|noise| {
            let [a, b] = [0, 1].map(|_| estimate(&load(noise, windows, 20.0, 0.1, kept)));
            is_called_changed(&change(a, b))
        });
        assert!(wrong <= LEVEL + slack(), "{windows} windows, {kept}: {wrong}");
    }
}

#[test]
fn windows_taken_as_independent_would_err_three_times_as_often() {
    let wrong = share(|noise| {
        let [a, b] = [0, 1].map(|_| {
            let powers = load(noise, 60, 20.0, 0.1, 0.6);
            // Whole runs are what is independent.
            Replicates::of_runs(vec![1.0; 60]).estimate(&powers.into_iter().enumerate().collect::<Vec<_>>(), 0.0)
        });
        is_called_changed(&change(a, b))
    });
    assert!(wrong > 3.0 * LEVEL, "{wrong}");
}

#[test]
fn a_change_of_a_tenth_is_found() {
    for (windows, deviation, kept) in [(60, 0.1, 0.3), (300, 0.1, 0.6)] {
        let found = share(|noise| {
            let a = estimate(&load(noise, windows, 20.0, deviation, kept));
            let b = estimate(&load(noise, windows, 22.0, deviation, kept));
            change(a, b).verdict == Verdict::More
        });
        assert!(found > 0.8, "{windows} windows: {found}");
    }
}

#[test]
fn intervals_have_the_truth_in_them() {
    let (mut absolute, mut relative) = (0, 0);
    let mut noise = Noise(11);
    for _ in 0..PAIRS {
        let a = estimate(&load(&mut noise, 60, 20.0, 0.1, 0.4));
        let b = estimate(&load(&mut noise, 60, 21.0, 0.1, 0.4));
        let change = change(a, b);
        let has = |interval: Option<(f64, f64)>, truth: f64| {
            interval.is_some_and(|(low, high)| low <= truth && truth <= high)
        };
        absolute += u32::from(has(change.interval, 1.0));
        relative += u32::from(has(change.relative, 0.05));
    }
    for found in [absolute, relative] {
        let share = f64::from(found) / f64::from(PAIRS);
        assert!((1.0 - LEVEL - slack()..=0.99).contains(&share), "{share}");
    }
}

#[test]
fn no_change_is_said_of_runs_that_are_long_enough() {
    let calm = share(|noise| {
        let [a, b] = [0, 1].map(|_| estimate(&load(noise, 300, 20.0, 0.1, 0.3)));
        change(a, b).verdict == Verdict::NoChange
    });
    assert!(calm > 0.8, "{calm}");
}

#[test]
fn runs_as_replicates_err_no_more_often() {
    let wrong = share(|noise| {
        let [a, b] = [0, 1].map(|_| {
            let runs: Vec<(usize, f64)> = (0..4).map(|run| (run, 1200.0 * (1.0 + 0.05 * noise.normal()))).collect();
            Replicates::of_runs(vec![60.0; 4]).estimate(&runs, 0.0)
        });
        is_called_changed(&change(a, b))
    });
    assert!(wrong <= LEVEL + slack(), "{wrong}");
}

/// Samples of each method in each window, of a load that comes in waves.
fn methods(noise: &mut Noise, shares: &[f64]) -> Vec<Estimate> {
    const WINDOWS: usize = 40;
    let load = load(noise, WINDOWS, 20.0, 0.1, 0.3);
    let mut energies = vec![Vec::new(); shares.len()];
    for (window, energy) in load.into_iter().enumerate() {
        let mut samples = vec![0.0; shares.len()];
        for _ in 0..50 {
            let mut place = noise.uniform() * shares.iter().sum::<f64>();
            let hit = shares.iter().position(|share| {
                place -= share;
                place <= 0.0
            });
            samples[hit.unwrap_or(0)] += 1.0;
        }
        for (energies, samples) in energies.iter_mut().zip(samples) {
            energies.push((window, energy * samples / 50.0));
        }
    }
    let replicates = Replicates::of_windows(vec![1.0; WINDOWS]);
    let one_sample: f64 = 20.0 / 50.0;
    energies.iter().map(|energies| replicates.estimate(energies, one_sample.powi(2))).collect()
}

#[test]
fn of_many_methods_few_are_called_changed_that_are_not() {
    let before: Vec<f64> = (1..=30).map(|rank| 1.0 / f64::from(rank)).collect();
    let mut after = before.clone();
    after[0] *= 2.0;
    let (mut false_shares, mut found, mut noise) = (0.0, 0, Noise(13));
    let pairs = 100;
    for _ in 0..pairs {
        let (a, b) = (methods(&mut noise, &before), methods(&mut noise, &before));
        // Nothing changed: anything found is false.
        let mut same: Vec<Change> = a.iter().zip(&b).map(|(a, b)| Change::between(*a, *b)).collect();
        verdict::judge(same.iter_mut(), 0.05);
        false_shares += f64::from(u32::from(same.iter().any(is_called_changed)));
        let b = methods(&mut noise, &after);
        let mut changed: Vec<Change> = a.iter().zip(&b).map(|(a, b)| Change::between(*a, *b)).collect();
        verdict::judge(changed.iter_mut(), 0.05);
        found += u32::from(changed[0].verdict == Verdict::More);
    }
    let slack = 3.0 * (LEVEL * (1.0 - LEVEL) / f64::from(pairs)).sqrt();
    assert!(false_shares / f64::from(pairs) <= LEVEL + slack, "{false_shares} of {pairs}");
    assert!(found > pairs * 8 / 10, "{found} of {pairs}");
}
