//! Tests whether a verdict holds what it promises, on thousands of simulated runs whose truth is
//! known: load comes in waves, and samples divide it among methods.

use super::{
    estimate::{Estimate, Replicates},
    verdict::{self, Change, LEVEL, Verdict},
};
use crate::noise::Noise;

const PAIRS: u32 = 2_000;

/// Of pairs that are equal, the share that may be called changed. Seeds are fixed, so it holds always
/// or never.
const MOST_WRONG: f64 = 0.06;

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

/// Of pairs that are equal, the share that was called changed, and that for which there were not
/// enough runs.
fn judged(mut side: impl FnMut(&mut Noise) -> Estimate) -> (f64, f64) {
    let mut noise = Noise(7);
    let (mut changed, mut unknown) = (0, 0);
    for _ in 0..PAIRS {
        let (a, b) = (side(&mut noise), side(&mut noise));
        let change = change(a, b);
        changed += u32::from(is_called_changed(&change));
        unknown += u32::from(change.verdict == Verdict::NotEnoughRuns);
    }
    (f64::from(changed) / f64::from(PAIRS), f64::from(unknown) / f64::from(PAIRS))
}

/// Is printed for docs/measured/comparing.md: `cargo test -p joular-data simulation -- --nocapture`.
#[test]
fn two_runs_of_the_same_workload_seldom_differ() {
    for windows in [20, 60, 300, 1000] {
        for kept in [0.0, 0.3, 0.6, 0.8, 0.9, 0.95] {
            let (wrong, unknown) = judged(|noise| estimate(&load(noise, windows, 20.0, 0.1, kept)));
            println!("{windows} windows, {kept} kept: {wrong:.3} wrong, {unknown:.3} not enough");
            assert!(wrong <= MOST_WRONG, "{windows} windows, {kept}: {wrong}");
        }
    }
}

/// How much runs of one program vary: standard deviations, as parts of the mean.
struct Varying {
    duration: f64,
    work: f64,
    power: f64,
}

/// Estimates by time, by run and by work, of so many runs.
fn by_each(noise: &mut Noise, runs: usize, varying: &Varying) -> [Estimate; 3] {
    let (mut seconds, mut work, mut energies) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let mut vary = |deviation: f64| (1.0 + deviation * noise.normal()).max(0.1);
        let units = 100.0 * vary(varying.work);
        // More work takes longer.
        let length = units * 0.6 * vary(varying.duration);
        energies.push((run, 20.0 * length * vary(varying.power)));
        seconds.push(length);
        work.push(units);
    }
    [seconds, vec![1.0; runs], work].map(|exposures| Replicates::of_runs(exposures).estimate(&energies, 0.0))
}

#[test]
fn runs_that_vary_in_duration_work_and_power_seldom_differ() {
    for runs in [3, 4, 6, 10] {
        for (duration, work, power) in
            [(0.0, 0.03, 0.02), (0.05, 0.05, 0.02), (0.2, 0.0, 0.05), (0.0, 0.1, 0.1), (0.4, 0.05, 0.05)]
        {
            let varying = Varying { duration, work, power };
            for (place, per) in ["time", "run", "work"].into_iter().enumerate() {
                let (wrong, _) = judged(|noise| by_each(noise, runs, &varying)[place]);
                println!("{runs} runs, {duration} {work} {power}, per {per}: {wrong:.3} wrong");
                assert!(wrong <= MOST_WRONG, "{runs} runs, {duration} {work} {power}, per {per}: {wrong}");
            }
        }
    }
}

/// Dividing a side's watts by one count of work hides that some runs do more work than others.
#[test]
fn work_that_is_taken_as_exact_would_err_many_times_as_often() {
    let varying = Varying { duration: 0.0, work: 0.05, power: 0.002 };
    let (wrong, _) = judged(|noise| {
        let [by_time, by_run, _] = by_each(noise, 3, &varying);
        Estimate { rate: by_run.rate, ..by_time.scaled(by_run.rate / by_time.rate) }
    });
    assert!(wrong > 5.0 * LEVEL, "{wrong}");
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
        let a = estimate(&load(&mut noise, 200, 20.0, 0.1, 0.4));
        let b = estimate(&load(&mut noise, 200, 21.0, 0.1, 0.4));
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

/// Share of runs in which an interval of the sampling error alone holds what a method had. `part_at` is the method's
/// part of the work at a time from 0 to 1 of the run.
fn held_by_sampling(part_at: impl Fn(f64) -> f64) -> f64 {
    const WINDOWS: u32 = 60;
    share(|noise| {
        let (mut of_method, mut whole, mut truth, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for window in 0..WINDOWS {
            let expected = 10.0 * (0.5 + noise.uniform());
            let energy = expected * (0.5 + noise.uniform());
            let part = part_at(f64::from(window) / f64::from(WINDOWS));
            #[allow(clippy::cast_precision_loss, reason = "numbers of samples")]
            let [hits, misses] = [part, 1.0 - part].map(|part| noise.poisson(expected * part) as f64);
            if hits + misses > 0.0 {
                let of_sample = energy / (hits + misses);
                whole += energy;
                truth += part * energy;
                of_method += hits * of_sample;
                squares += hits * of_sample.powi(2);
            }
        }
        let error = ((1.0 - of_method / whole) * squares).sqrt();
        (of_method - truth).abs() <= 1.96 * error
    })
}

#[test]
fn the_sampling_error_is_rather_too_large_where_work_changes() {
    let phases = |most: f64| move |time: f64| if time * 6.0 % 2.0 < 1.0 { most } else { 1.0 - most };
    for (name, held, range) in [
        ("steady", held_by_sampling(|_| 0.3), 0.935..=0.965),
        ("from a fifth to four fifths", held_by_sampling(|time| 0.2 + 0.6 * time), 0.95..=0.98),
        ("phases of 80 and 20 %", held_by_sampling(phases(0.8)), 0.97..=1.0),
        ("phases of 90 and 10 %", held_by_sampling(phases(0.9)), 0.98..=1.0),
        ("phases of all and nothing", held_by_sampling(phases(1.0)), 0.99..=1.0),
    ] {
        println!("{name}: {held:.4} held");
        assert!(range.contains(&held), "{name}: {held}");
    }
}
