//! Compares by simulation how far a path's share is off: windows as recorded, all light windows of a run together, and strata.
//! docs/measured/statistics.md shows the table.

use std::collections::BTreeMap;

use super::*;
use crate::{model::units::UnixMicros, noise::Noise};

const HZ: u32 = 99;
const PACE: Pace = Pace { frequency_hz: HZ, interval_ns: 1_000_000_000 };
const WINDOWS: usize = 60;
const RUNS: u64 = 800;

/// What a thread does in a window: CPU time, power, and the share of path 0; other paths have the rest alike.
#[derive(Clone, Copy, Debug)]
struct Work {
    cpu_s: f64,
    watts: f64,
    share: f64,
}

/// A case: its name, how many paths there are, and the work by window.
type Case = (&'static str, usize, fn(&mut Noise, usize, u64) -> Work);

/// CPU time of a mean, now more, now less.
fn about(noise: &mut Noise, cpu_s: f64) -> f64 {
    cpu_s * (0.2 + 1.6 * noise.uniform())
}

fn steady(noise: &mut Noise, cpu_s: f64, share: f64) -> Work {
    Work { cpu_s: about(noise, cpu_s), watts: 4.0 + 2.0 * noise.uniform(), share }
}

const CASES: [Case; 12] = [
    ("steady, 1.5 % of a CPU", 2, |noise, _, _| steady(noise, 0.015, 0.3)),
    ("steady, 0.5 %", 2, |noise, _, _| steady(noise, 0.005, 0.3)),
    ("steady, 6 %", 2, |noise, _, _| steady(noise, 0.06, 0.3)),
    ("12 paths", 12, |noise, _, _| steady(noise, 0.015, 0.09)),
    ("bursts", 2, |noise, _, _| match steady(noise, 0.005, 0.3) {
        Work { cpu_s, watts, .. } if noise.uniform() < 0.05 => Work { cpu_s: cpu_s * 20.0, watts, share: 0.8 },
        work => work,
    }),
    ("one hard second", 2, |noise, window, run| match steady(noise, 0.005, 0.3) {
        Work { watts, .. } if window as u64 == run % WINDOWS as u64 => Work { cpu_s: 0.9, watts, share: 0.9 },
        work => work,
    }),
    ("half of the time this, then that", 2, |noise, window, _| {
        steady(noise, 0.015, if window < WINDOWS / 2 { 0.1 } else { 0.9 })
    }),
    ("drift", 2, |noise, window, _| steady(noise, 0.015, 0.1 + 0.8 * window as f64 / WINDOWS as f64)),
    ("three times the power in the second half", 2, |noise, window, _| {
        let work = steady(noise, 0.015, if window < WINDOWS / 2 { 0.2 } else { 0.8 });
        Work { watts: work.watts * if window < WINDOWS / 2 { 1.0 } else { 3.0 }, ..work }
    }),
    ("load and mix change each 10 s", 2, |noise, window, _| match window / 10 % 2 {
        0 => steady(noise, 0.005, 0.2),
        _ => steady(noise, 0.05, 0.8),
    }),
    ("mix changes each second", 2, |noise, window, _| steady(noise, 0.015, if window % 2 == 0 { 0.2 } else { 0.8 })),
    ("power follows the mix of each second", 2, |noise, _, _| {
        let share = noise.uniform();
        let work = steady(noise, 0.015, share);
        Work { watts: work.watts * (0.3 + 1.4 * share), ..work }
    }),
];

/// A window as recorded: µJ, ns, and samples by path.
struct Seconds {
    energy: f64,
    cpu_ns: u64,
    samples: Vec<u64>,
}

/// A run, and the true share of path 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn run(noise: &mut Noise, (_, paths, work): &Case, number: u64) -> (Vec<Seconds>, f64) {
    let (mut windows, mut truth, mut all) = (Vec::new(), 0.0, 0.0);
    for window in 0..WINDOWS {
        let Work { cpu_s, watts, share } = work(noise, window, number);
        let energy = cpu_s * watts * 1e6;
        (truth, all) = (truth + energy * share, all + energy);
        let rest = (1.0 - share) / (*paths as f64 - 1.0);
        let expected = |path| cpu_s * f64::from(HZ) * if path == 0 { share } else { rest };
        let samples = (0..*paths).map(|path| noise.poisson(expected(path))).collect();
        windows.push(Seconds { energy, cpu_ns: (cpu_s * 1e9) as u64, samples });
    }
    (windows, truth / all)
}

/// Share of path 0 in windows that samples hit, as recorded.
fn as_recorded(windows: &[Seconds]) -> f64 {
    let (mut of_path, mut all) = (0.0, 0.0);
    for Seconds { energy, samples, .. } in windows {
        let count: u64 = samples.iter().sum();
        if count > 0 {
            (of_path, all) = (of_path + energy * samples[0] as f64 / count as f64, all + energy);
        }
    }
    of_path / all
}

/// The share with light windows divided: by strata, or all together.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn divided(windows: &[Seconds], is_together: bool) -> f64 {
    let (mut strata, mut left, mut all) = (Strata::default(), Stratum::default(), Stratum::default());
    let (mut energies, mut heavy) = (BTreeMap::<usize, f64>::new(), 0.0);
    let mut give = |stratum: &Stratum<usize>, shares: &[Share<usize>]| {
        all.join(stratum);
        if is_together || shares.is_empty() {
            left.join(stratum);
            return;
        }
        for share in shares {
            *energies.entry(share.path).or_default() += share.energy.0 as f64;
        }
    };
    for (second, Seconds { energy, cpu_ns, samples }) in (0..).zip(windows) {
        let start = UnixMicros(second * 1_000_000);
        let window = PACE.window(start, *cpu_ns);
        let count: u64 = samples.iter().sum();
        if !window.is_light() && count > 0 {
            heavy += energy * samples[0] as f64 / count as f64;
            continue;
        }
        let of_path = |samples: u64| {
            let part = samples as f64 / count as f64;
            Spent { energy: MicroJoules((energy * part) as u64), cpu_ns: (*cpu_ns as f64 * part) as u64 }
        };
        let rows: Vec<Recorded<usize>> = (0..)
            .zip(samples)
            .filter(|(_, samples)| **samples > 0)
            .map(|(path, samples)| Recorded { path, samples: *samples, spent: of_path(*samples), squares: 0.0 })
            .collect();
        let unsampled = Spent { energy: MicroJoules(*energy as u64), cpu_ns: *cpu_ns };
        strata.take(&window, &rows, if count == 0 { unsampled } else { Spent::default() });
        strata.settle(Some((start, PACE.interval_ns)), &mut give);
    }
    strata.settle(None, &mut give);
    let seen: Vec<Seen<usize>> =
        all.recorded().map(|row| Seen { path: row.path, samples: row.samples, energy: row.spent.energy }).collect();
    let shares = if left.is_enough() { left.divided() } else { left.divided_by(&seen) };
    for share in shares {
        *energies.entry(share.path).or_default() += share.energy.0 as f64;
    }
    (heavy + energies.get(&0).copied().unwrap_or_default()) / windows.iter().map(|window| window.energy).sum::<f64>()
}

/// Root mean square of errors of the three rules, and the mean error of strata.
fn errors(case: &Case) -> ([f64; 3], f64) {
    let (mut noise, mut squares, mut bias) = (Noise(37), [0.0; 3], 0.0);
    for number in 0..RUNS {
        let (windows, truth) = run(&mut noise, case, number);
        let found = [as_recorded(&windows), divided(&windows, true), divided(&windows, false)];
        for (sum, found) in squares.iter_mut().zip(found) {
            *sum += (found - truth).powi(2);
        }
        bias += found[2] - truth;
    }
    (squares.map(|sum| (sum / RUNS as f64).sqrt()), bias / RUNS as f64)
}

#[test]
fn strata_are_as_good_as_any_other_rule_whatever_a_thread_does() {
    for case in &CASES {
        let ([recorded, together, strata], bias) = errors(case);
        println!("| {} | {recorded:.4} | {together:.4} | {strata:.4} | {bias:+.4} |", case.0);
        assert!(strata <= recorded * 1.03, "{}: {strata} instead of {recorded}", case.0);
        assert!(strata <= together * 1.06, "{}: {strata} instead of {together}", case.0);
        assert!(bias.abs() <= 0.01, "{}: {bias}", case.0);
    }
}
