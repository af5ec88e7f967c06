//! Tries the fit on machines whose watts are known: figures are in docs/measured/statistics.md.

use super::{
    LEVEL,
    fit::{Observation, fit, shares},
};
use crate::noise::Noise;

/// Steps of a window of one second.
const STEPS: usize = 100;

/// Threads that run and pause, each on a CPU of its own, and what they draw per CPU second.
struct World<'a> {
    watts: &'a [f64],
    windows: usize,
    /// Mean length of a burst, and of a pause.
    burst_s: f64,
    /// Standard deviation of a window's energy, J.
    error_j: f64,
    /// By which part all threads that run together lower each other's watts: by turbo, or as hyper-threads.
    slowing: f64,
    /// One CPU for all: each runs while the others do not.
    takes_turns: bool,
}

/// What a world did: windows, and the energy that each thread really used.
struct Run {
    observations: Vec<Observation>,
    joules: Vec<f64>,
}

#[allow(clippy::cast_precision_loss, reason = "numbers of a simulation")]
impl World<'_> {
    const fn new(watts: &[f64]) -> World<'_> {
        World { watts, windows: 120, burst_s: 2.0, error_j: 0.3, slowing: 0.0, takes_turns: false }
    }

    fn run(&self, noise: &mut Noise) -> Run {
        let step_s = 1.0 / STEPS as f64;
        let threads = self.watts.len();
        let mut runs: Vec<bool> = (0..threads).map(|_| noise.uniform() < 0.5).collect();
        let (mut turn, mut joules, mut observations) = (0, vec![0.0; threads], Vec::new());
        for _ in 0..self.windows {
            let mut window = Observation { joules: self.error_j * noise.normal(), cpu_s: vec![0.0; threads] };
            for _ in 0..STEPS {
                let mut changes = || noise.uniform() < step_s / self.burst_s;
                if self.takes_turns {
                    turn = (turn + usize::from(changes())) % threads;
                    runs.iter_mut().enumerate().for_each(|(place, runs)| *runs = place == turn);
                } else {
                    runs.iter_mut().for_each(|runs| *runs ^= changes());
                }
                let busy = runs.iter().filter(|runs| **runs).count() as f64 / threads as f64;
                for place in (0..threads).filter(|place| runs[*place]) {
                    let used = step_s * self.watts[place] * (1.0 - self.slowing * busy);
                    joules[place] += used;
                    window.joules += used;
                    window.cpu_s[place] += step_s;
                }
            }
            observations.push(window);
        }
        Run { observations, joules }
    }
}

impl Run {
    /// Watts that a thread really drew.
    fn watts(&self, place: usize) -> f64 {
        self.joules[place] / self.observations.iter().map(|window| window.cpu_s[place]).sum::<f64>()
    }
}

fn root_mean_square(errors: &[f64]) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a number of errors")]
    let count = errors.len() as f64;
    (errors.iter().map(|error| error * error).sum::<f64>() / count).sqrt()
}

/// Root mean squares of errors of threads' shares of all energy, of 100 runs: by time, and by fitted watts.
fn errors(world: &World<'_>) -> [f64; 2] {
    let mut noise = Noise(37);
    let mut errors = [Vec::new(), Vec::new()];
    for _ in 0..100 {
        let run = world.run(&mut noise);
        let fitted: Vec<f64> = fit(&run.observations).unwrap().groups.iter().map(|watts| watts.value).collect();
        let all: f64 = run.joules.iter().sum();
        for (errors, watts) in errors.iter_mut().zip([None, Some(&fitted[..])]) {
            let found = shares(&run.observations, watts);
            errors.extend(found.iter().zip(&run.joules).map(|(share, joules)| share - joules / all));
        }
    }
    errors.map(|errors| root_mean_square(&errors))
}

const SIX: [f64; 6] = [4.0, 6.0, 8.0, 10.0, 13.0, 16.0];
const ALIKE: [f64; 6] = [9.0; 6];

/// Bounds of both errors.
#[track_caller]
fn expect(name: &str, world: &World<'_>, [by_time, by_watts]: [f64; 2]) {
    let found = errors(world);
    println!("{name}: {:.4} by time, {:.4} by watts", found[0], found[1]);
    assert!(found[0] > 0.8 * by_time && found[0] < 1.2 * by_time, "{name}: {found:?}");
    assert!(found[1] < 1.2 * by_watts, "{name}: {found:?}");
}

#[test]
fn where_watts_differ_shares_are_many_times_nearer_to_the_truth() {
    expect("six threads", &World::new(&SIX), [0.062, 0.0011]);
    expect("windows ± 2 J", &World { error_j: 2.0, ..World::new(&SIX) }, [0.062, 0.0073]);
    expect("bursts of 0.1 s", &World { burst_s: 0.1, ..World::new(&SIX) }, [0.070, 0.0030]);
    let turns: World<'_> = World { takes_turns: true, windows: 300, burst_s: 1.0, ..World::new(&[30.0, 10.0]) };
    expect("two in turns", &turns, [0.108, 0.0006]);
    expect("two in turns of five windows", &World { burst_s: 5.0, ..turns }, [0.03, 0.0006]);
    expect("two in turns of 0.2 s", &World { burst_s: 0.2, ..turns }, [0.2, 0.003]);
}

#[test]
fn where_watts_do_not_add_up_shares_are_still_nearer() {
    expect("10 % less beside others", &World { slowing: 0.1, ..World::new(&SIX) }, [0.062, 0.003]);
    expect("30 % less beside others", &World { slowing: 0.3, ..World::new(&SIX) }, [0.062, 0.008]);
}

/// A fit costs a little where all are alike: the error of windows, seen as one of threads.
#[test]
fn where_watts_are_the_same_little_is_lost() {
    expect("alike", &World::new(&ALIKE), [0.00016, 0.00042]);
    expect("alike, windows ± 2 J", &World { error_j: 2.0, ..World::new(&ALIKE) }, [0.0011, 0.0029]);
    expect("alike, 30 % less beside others", &World { slowing: 0.3, ..World::new(&ALIKE) }, [0.00034, 0.0028]);
}

/// Parts of 200 runs with six threads: intervals that hold the truth, and runs whose threads are said to differ.
fn found(spread: f64, error_j: f64, slowing: f64) -> [f64; 2] {
    let mut noise = Noise(11);
    let (mut held, mut differ) = (0, 0);
    for _ in 0..200 {
        let watts: Vec<f64> = (0..6).map(|_| (9.0 + spread * noise.normal()).max(1.0)).collect();
        let run = World { error_j, slowing, ..World::new(&watts) }.run(&mut noise);
        let fitted = fit(&run.observations).unwrap();
        let holds = |(place, group): (usize, &super::Watts)| (group.low..=group.high).contains(&run.watts(place));
        held += fitted.groups.iter().enumerate().filter(|group| holds(*group)).count();
        differ += usize::from(fitted.equal < LEVEL);
    }
    #[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
    let parts = [held as f64 / 1200.0, differ as f64 / 200.0];
    println!("± {spread} W, windows ± {error_j} J, {slowing} less: {parts:.3?}");
    parts
}

#[test]
fn intervals_hold_the_truth_and_equal_watts_are_seldom_called_different() {
    for (spread, error_j) in [(3.0, 0.3), (3.0, 2.0)] {
        let [held, differ] = found(spread, error_j, 0.0);
        assert!((0.93..=0.98).contains(&held) && differ > 0.99, "{held} {differ}");
    }
    // Watts that hardly differ are put together, and intervals are as wide as if they were not.
    let [held, _] = found(0.3, 1.0, 0.0);
    assert!(held >= 0.95, "{held}");
    let [held, differ] = found(0.0, 0.5, 0.0);
    assert!(held >= 0.95 && differ <= 0.09, "{held} {differ}");
}

#[test]
fn where_watts_do_not_add_up_intervals_hold_less() {
    let [held, _] = found(3.0, 0.3, 0.2);
    assert!(held > 0.5, "{held}");
}

#[test]
fn threads_that_always_run_together_are_not_told_apart() {
    let mut noise = Noise(5);
    let mut observations = World::new(&SIX).run(&mut noise).observations;
    for window in &mut observations {
        window.joules += SIX[1] * (window.cpu_s[0] - window.cpu_s[1]);
        window.cpu_s[1] = window.cpu_s[0];
    }
    let fitted = fit(&observations).unwrap();
    let width = |place: usize| fitted.groups[place].high - fitted.groups[place].value;
    assert!(width(0) > fitted.common && width(1) > fitted.common && width(5) < 0.1 * fitted.common, "{fitted:?}");
    assert!(fitted.equal < 0.001, "the others differ");
    assert_eq!(fit(&observations[..50]), None, "too few");
}
