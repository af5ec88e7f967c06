//! Counts how often the class is right and the interval of a prediction holds, on simulated sweeps whose
//! truth is known.

use super::*;
use crate::noise::Noise;

const SWEEPS: u32 = 200;

/// What a sweep measures: the class, the values of the parameter and the energy there.
struct Truth {
    class: Class,
    values: Vec<f64>,
    joules: fn(f64) -> f64,
}

/// Twelve values from 10³ to 10⁶ in equal ratios. All start with 2 J and end near 50 J.
fn truths() -> Vec<Truth> {
    let spread: Vec<f64> = (0..12).map(|step| (10_f64).powf(3.0 + 3.0 * f64::from(step) / 11.0).round()).collect();
    let doubling: Vec<f64> = (0..12).map(|step| (10.0 + 16.0 * f64::from(step) / 11.0_f64).round()).collect();
    let of = |class, values: &[f64], joules| Truth { class, values: values.to_vec(), joules };
    vec![
        of(Class::Constant, &spread, |_| 20.0),
        of(Class::Logarithmic, &spread, |n| 2.0 + 3.5 * n.ln()),
        of(Class::Linear, &spread, |n| 2.0 + 50e-6 * n),
        of(Class::Linearithmic, &spread, |n| 2.0 + 3.6e-6 * n * n.ln()),
        of(Class::Quadratic, &spread, |n| 2.0 + 50e-12 * n * n),
        of(Class::Cubic, &spread, |n| 2.0 + 50e-18 * n.powi(3)),
        of(Class::Exponential, &doubling, |n| 2.0 + 0.75e-6 * n.exp2()),
        of(Class::Power, &spread, |n| 2.0 + 50e-9 * n.powf(1.5)),
    ]
}

/// Of sweeps: how many found the class, how many were certain, how many were certain of another class, how many had
/// the truth in the interval at four times the range.
#[derive(Default)]
struct Counted {
    right: u32,
    certain: u32,
    wrong_and_certain: u32,
    held: u32,
}

fn count(truth: &Truth, noise_of_runs: f64) -> Counted {
    let mut noise = Noise(17);
    let mut counted = Counted::default();
    let largest = truth.values.last().copied().unwrap();
    // Four times the range; of 2ⁿ four times the energy.
    let far = if truth.class == Class::Exponential { largest + 2.0 } else { 4.0 * largest };
    for _ in 0..SWEEPS {
        let runs = truth.values.iter().flat_map(|value| [*value; 3]).map(|value| Point {
            value,
            joules: (truth.joules)(value) * noise.around_one(noise_of_runs),
            variance: 0.0,
        });
        let found = Growth::of(&runs.collect::<Vec<_>>()).unwrap();
        let is_right = found.class == truth.class;
        counted.right += u32::from(is_right);
        counted.certain += u32::from(found.is_certain);
        counted.wrong_and_certain += u32::from(found.is_certain && !is_right);
        let run = (truth.joules)(far) * noise.around_one(noise_of_runs);
        counted.held += u32::from(found.predict(far).is_some_and(|far| far.joules.contains(run)));
    }
    counted
}

/// Is printed for docs/measured/growth.md: `cargo test -p joular-data growth::simulation -- --nocapture`.
#[test]
fn the_class_is_right_and_a_prediction_holds() {
    println!(
        "| class | noise | right class | certain | certain of another | prediction holds |\n|---|--:|--:|--:|--:|--:|"
    );
    for noise in [0.01, 0.05, 0.15] {
        for truth in truths() {
            let counted = count(&truth, noise);
            let percent = |count: u32| f64::from(count) * 100.0 / f64::from(SWEEPS);
            let [right, certain, other, held] =
                [counted.right, counted.certain, counted.wrong_and_certain, counted.held].map(percent);
            println!(
                "| {} | {:.0} % | {right:.1} | {certain:.1} | {other:.1} | {held:.1} |",
                truth.class.name(),
                noise * 100.0
            );
            let (what, least) = (truth.class.name(), if noise < 0.1 { 95.0 } else { 75.0 });
            assert!(right >= least, "{what} at {noise}: {right} % right");
            assert!(other <= 5.0, "{what} at {noise}: {other} % are certain of another class");
            // Three standard deviations of a share of 95 % in so many sweeps.
            assert!(held >= 90.4, "{what} at {noise}: {held} % of predictions hold");
        }
    }
}

/// A method whose energy samples tell, 20 mJ each: at small values few hit it or none. Runs vary by 2 % besides.
#[test]
fn a_method_of_few_samples_has_the_right_class_too() {
    const SAMPLE: f64 = 0.02;
    let values: Vec<f64> = (0..10).map(|step| (10_f64).powf(3.0 + f64::from(step) / 3.0).round()).collect();
    for (class, joules) in [
        (Class::Constant, (|_| 0.2) as fn(f64) -> f64),
        (Class::Linear, |n| 20e-6 * n),
        (Class::Linearithmic, |n| 1.45e-6 * n * n.ln()),
        (Class::Quadratic, |n| 20e-12 * n * n),
    ] {
        let (mut noise, mut right, mut wrong_and_certain, mut held) = (Noise(19), 0, 0, 0);
        for _ in 0..SWEEPS {
            let mut points = Vec::new();
            for value in &values {
                let runs = [0; 3].map(|_| {
                    let expected = joules(*value) * noise.around_one(0.02) / SAMPLE;
                    f64::from(u32::try_from(noise.poisson(expected)).unwrap())
                });
                // As `sweep` has it: the same for all runs of a value, and that of one sample at least.
                let variance = (runs.iter().sum::<f64>() / 3.0).max(1.0) * SAMPLE.powi(2);
                points.extend(runs.map(|hits| Point { value: *value, joules: hits * SAMPLE, variance }));
            }
            let found = Growth::of(&points).unwrap();
            right += u32::from(found.class == class);
            wrong_and_certain += u32::from(found.is_certain && found.class != class);
            let run = joules(4e6) * noise.around_one(0.02);
            held += u32::from(found.predict(4e6).is_some_and(|far| far.joules.contains(run)));
        }
        let percent = |count: u32| f64::from(count) * 100.0 / f64::from(SWEEPS);
        let [right, other, held] = [right, wrong_and_certain, held].map(percent);
        println!("| {} by samples | {right:.1} | {other:.1} | {held:.1} |", class.name());
        assert!(right >= 94.0, "{class:?}: {right} % right");
        assert!(other <= 5.0, "{class:?}: {other} % are certain of another class");
        assert!(held >= 90.4, "{class:?}: {held} % of predictions hold");
    }
}
