//! Counts how often intervals hold and warnings are false, on simulated experiments whose truth is known.
//!
//! Figures are printed for docs/measured/growth.md: `cargo test -p joular-data replicates::simulation -- --nocapture`.

use super::*;
use crate::noise::Noise;

const EXPERIMENTS: u32 = 4_000;

/// How runs vary: standard deviations, as parts of the mean.
const DURATION: f64 = 0.4;
const WORK: f64 = 0.3;
const POWER: f64 = 0.1;

/// 100 units of work at 20 W, 0.6 s each: more work takes longer.
fn run(noise: &mut Noise, order: u32) -> Replicate {
    let work = 100.0 * noise.around_one(WORK);
    let seconds = work * 0.6 * noise.around_one(DURATION);
    let joules = 20.0 * seconds * noise.around_one(POWER);
    Replicate {
        order,
        joules,
        seconds,
        cpu_seconds: seconds,
        work: Some(work),
        temperature_celsius: Some(60.0 + 3.0 * noise.normal()),
        frequency_mhz: Some(3000.0 + 50.0 * noise.normal()),
    }
}

/// Equal variants, their runs interleaved.
fn equals(noise: &mut Noise, variants: u32, runs: u32) -> Vec<Variant> {
    let of = |variant: u32, noise: &mut Noise| Variant {
        name: variant.to_string(),
        replicates: (0..runs).map(|place| run(noise, place * variants + variant)).collect(),
    };
    (0..variants).map(|variant| of(variant, noise)).collect()
}

/// Share of experiments for which this holds.
fn share(mut holds: impl FnMut(&mut Noise) -> bool) -> f64 {
    let mut noise = Noise(23);
    f64::from((0..EXPERIMENTS).map(|_| u32::from(holds(&mut noise))).sum::<u32>()) / f64::from(EXPERIMENTS)
}

/// Mean of so many runs that it is the truth to a thousandth.
fn truth(figure: Figure) -> f64 {
    let mut noise = Noise(29);
    let runs = 400_000;
    (0..runs).filter_map(|_| figure.of(&run(&mut noise, 0))).sum::<f64>() / f64::from(runs)
}

#[test]
fn intervals_hold_the_truth_in_19_of_20_experiments() {
    for figure in [Figure::JoulesPerWork, Figure::Joules] {
        let truth = truth(figure);
        for runs in [5, 10, 20] {
            let held = share(|noise| {
                let summary = summarize_by(&equals(noise, 1, runs), figure);
                let (low, high) = summary.variants[0].stats(figure).unwrap().interval.unwrap();
                low <= truth && truth <= high
            });
            println!("{}, {runs} runs: {:.1} % of intervals hold", figure.unit(), held * 100.0);
            assert!((0.93..=0.97).contains(&held), "{figure:?}, {runs} runs: {held}");
        }
    }
}

/// As `run --until-interval` has it unless it is told otherwise.
const MOST_RUNS: usize = 100;
const WANTED_PERCENT: f64 = 2.0;

/// What an experiment comes to that ends when its interval is narrow, after so many runs at least: its runs, whether
/// the interval is as narrow as wanted, and whether it holds the truth.
fn until_narrow(noise: &mut Noise, deviation: f64, least_runs: usize) -> (usize, bool, bool) {
    let mut variant = Variant::default();
    let mut precision = Precision::of(&[], WANTED_PERCENT);
    while variant.replicates.len() < MOST_RUNS && !precision.is_reached {
        let runs = if variant.replicates.is_empty() { least_runs } else { 1 };
        for _ in 0..runs {
            let joules = 100.0 * (1.0 + deviation * noise.normal());
            variant.replicates.push(Replicate { joules, ..Replicate::default() });
        }
        precision = Precision::of(std::slice::from_ref(&variant), WANTED_PERCENT);
    }
    let summary = summarize_by(std::slice::from_ref(&variant), Figure::Joules);
    let stats = summary.variants[0].joules.unwrap();
    let (low, high) = stats.interval.unwrap();
    (stats.n, precision.is_reached, low <= 100.0 && 100.0 <= high)
}

/// Why there are 10 runs at least, and what docs/experiments.md says of intervals that ended an experiment.
#[test]
fn an_interval_that_ended_an_experiment_holds_less_often_the_fewer_runs_there_may_be() {
    for (least_runs, bounds) in [(10, 0.92..=0.955), (3, 0.89..=0.925)] {
        for deviation in [0.03, 0.05] {
            let (mut runs, mut reached) = (0, 0);
            let held = share(|noise| {
                let (needed, is_reached, holds) = until_narrow(noise, deviation, least_runs);
                runs += needed;
                reached += u32::from(is_reached);
                holds
            });
            println!(
                "at least {least_runs} runs, σ {} %, ±{WANTED_PERCENT} % wanted: {runs} runs in {EXPERIMENTS} experiments, \
                 {:.1} % of intervals hold",
                deviation * 100.0,
                held * 100.0
            );
            assert!(bounds.contains(&held), "{least_runs} runs, {deviation}: {held}");
            assert!(f64::from(reached) > 0.99 * f64::from(EXPERIMENTS), "{deviation}: {reached}");
        }
    }
}

#[test]
fn of_equal_variants_one_is_called_worse_in_at_most_1_of_20_experiments() {
    for variants in [2, 3, 6] {
        for runs in [5, 10] {
            let wrong = share(|noise| {
                let summary = summarize(&equals(noise, variants, runs));
                summary.ranking.rows.iter().any(|row| row.standing == Standing::More)
            });
            println!("{variants} equal variants of {runs} runs: {:.1} % are ranked", wrong * 100.0);
            assert!(wrong <= 0.055, "{variants} variants of {runs} runs: {wrong}");
        }
    }
}

/// Why all pairs are corrected for: the best of six equals is the luckiest.
#[test]
fn corrected_for_the_comparisons_shown_alone_it_would_be_more_than_1_in_20() {
    let wrong = share(|noise| {
        let summary = summarize(&equals(noise, 6, 10));
        let stats = |row: &Ranked| summary.variants[row.variant].joules_per_work.unwrap().estimate();
        let rows = &summary.ranking.rows;
        let chances =
            rows.iter().skip(1).map(|row| crate::report::diff::verdict::chance(stats(&rows[0]), stats(row), 1.0));
        ranking::holm(&chances.collect::<Vec<_>>()).iter().any(|p| *p <= 0.05)
    });
    println!("corrected for the comparisons shown: {:.1} %", wrong * 100.0);
    assert!(wrong > 0.08, "{wrong}");
}

#[test]
fn a_variant_that_needs_a_third_more_is_found() {
    let found = share(|noise| {
        let mut variants = equals(noise, 2, 40);
        variants[1].replicates.iter_mut().for_each(|run| run.joules *= 4.0 / 3.0);
        let summary = summarize(&variants);
        summary.ranking.rows[1].variant == 1 && summary.ranking.rows[1].standing == Standing::More
    });
    println!("a third more, 40 runs a side: {:.1} % are found", found * 100.0);
    assert!(found > 0.85, "{found}");
}

#[test]
fn drift_is_seldom_reported_without_one_and_found_where_it_is() {
    for (variants, runs) in [(1, 10), (2, 10), (4, 5)] {
        let wrong = share(|noise| !summarize(&equals(noise, variants, runs)).drifts.is_empty());
        println!("{variants} variants of {runs} runs without drift: {:.2} % are warned of one", wrong * 100.0);
        assert!(wrong <= 0.016, "{variants} variants of {runs} runs: {wrong}");
    }
    // Half a percent a degree, where runs vary by 1 % besides.
    let found = share(|noise| {
        let mut variants = equals(noise, 2, 10);
        for run in variants.iter_mut().flat_map(|variant| &mut variant.replicates) {
            let warm = 1.0 + 0.005 * (run.temperature_celsius.unwrap() - 60.0);
            (run.joules, run.work) = (500.0 * warm * (1.0 + 0.01 * noise.normal()), None);
        }
        summarize(&variants).drifts.iter().any(|drift| drift.with == Covariate::Temperature)
    });
    println!("half a percent a degree, 2 variants of 10 runs: {:.1} % are found", found * 100.0);
    assert!(found > 0.9, "{found}");
}

#[test]
fn outliers_are_few_among_runs_that_vary_normally() {
    for runs in [10, 20] {
        let pointed = share(|noise| {
            let normal = (0..runs).map(|order| Replicate {
                order,
                joules: 100.0 * (1.0 + 0.03 * noise.normal()),
                ..Replicate::default()
            });
            !outliers::of(&normal.collect::<Vec<_>>(), Figure::Joules).is_empty()
        });
        println!("{runs} normal runs: in {:.1} % one is called an outlier", pointed * 100.0);
        assert!(pointed < 0.12, "{runs}: {pointed}");
    }
}
