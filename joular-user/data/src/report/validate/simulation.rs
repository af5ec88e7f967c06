//! Tests on simulated runs whose truth is known that a comparison finds the clock's shift, the offset
//! and the gain, and that its 95 % intervals contain the truth in about 95 % of runs.

use std::{collections::BTreeMap, time::Duration};

use super::{
    ValidateError, Validation, compare,
    fit::{Fit, Interval, Point, fit},
    meter::{MeterLog, MeterReading},
    phases::{Gains, gains, held_out},
    recorded::Recorded,
};
use crate::noise::Noise;

/// Seeds are fixed, so what holds always holds.
const RUNS: u64 = 400;
const START_US: i64 = 1_772_366_400_000_000;

/// Values of deviation 1, of which the part `kept` remains from one to the next.
fn waves(noise: &mut Noise, count: usize, kept: f64) -> Vec<f64> {
    let step = (1.0 - kept * kept).sqrt();
    let mut wave = noise.normal();
    let mut next = || {
        wave = kept * wave + step * noise.normal();
        wave
    };
    (0..count).map(|_| next()).collect()
}

/// Share of seeds for which the interval holds the truth.
fn share(mut holds: impl FnMut(u64) -> bool) -> f64 {
    let held = (0..RUNS).filter(|seed| holds(seed * 7919 + 1)).count();
    f64::from(u32::try_from(held).unwrap()) / 400.0
}

/// A share of 95 % of 400 is within ± 3.3 % but in three of a thousand.
#[track_caller]
fn expect_95_percent(found: f64, what: &str) {
    assert!((0.917..=0.985).contains(&found), "{what}: {found}");
}

/// The fit of a load, with a span more on either side, to a meter that has this noise.
fn fit_of(load: &[f64], noise: &[f64], meter: impl Fn(f64, f64) -> f64) -> Fit {
    let point = |(three, noise): (&[f64], &f64)| Point {
        before: three[0],
        here: three[1],
        after: three[2],
        meter: meter(three[1], *noise),
    };
    fit(&load.windows(3).zip(noise).map(point).collect::<Vec<_>>()).unwrap()
}

#[test]
fn intervals_of_a_fit_hold_however_alike_neighbours_are() {
    let (offset, gain) = (40.0, 1.2);
    for (kept_of_load, kept_of_noise) in [(0.0, 0.0), (0.8, 0.0), (0.0, 0.8), (0.6, 0.6), (0.8, 0.8)] {
        let fits = |seed| {
            let mut noise = Noise(seed);
            let load: Vec<f64> = waves(&mut noise, 302, kept_of_load).iter().map(|wave| 30.0 + 8.0 * wave).collect();
            fit_of(&load, &waves(&mut noise, 300, kept_of_noise), |watts, other| offset + gain * watts + 3.0 * other)
        };
        let case = |what: &str| format!("{what}, load keeps {kept_of_load}, noise {kept_of_noise}");
        expect_95_percent(share(|seed| fits(seed).gain.contains(gain)), &case("gain"));
        expect_95_percent(share(|seed| fits(seed).offset.contains(offset)), &case("offset"));
        // The meter is 40 + 0.2 × 30 W above, on average.
        expect_95_percent(share(|seed| fits(seed).mean_error.contains(-46.0)), &case("mean error"));
        let square: f64 = 46.0 * 46.0 + (0.2 * 8.0 * 0.2 * 8.0) + 9.0;
        expect_95_percent(share(|seed| fits(seed).rmse.contains(square.sqrt())), &case("RMSE"));
    }
}

#[test]
fn intervals_for_independent_spans_would_be_far_too_narrow() {
    let naive = |seed| {
        let mut noise = Noise(seed);
        let load = waves(&mut noise, 302, 0.8);
        let fit = fit_of(&load, &waves(&mut noise, 300, 0.8), |load, other| load + other);
        let xx: f64 = load.iter().map(|load| load * load).sum();
        let half = 1.96 * fit.residual / xx.sqrt();
        Interval { value: fit.gain.value, low: fit.gain.value - half, high: fit.gain.value + half }.contains(1.0)
    };
    assert!(share(naive) < 0.8);
}

/// 300 spans in which arithmetic (50 W on average) and memory (35 W) take turns of 30 spans. Each raises the meter by its own gain.
fn in_turns(seed: u64, gains: [f64; 2], kept: f64) -> (Vec<Point>, Vec<Option<usize>>) {
    const COUNT: usize = 302;
    let mut noise = Noise(seed);
    let (load, other) = (waves(&mut noise, COUNT, kept), waves(&mut noise, COUNT, kept));
    let phase = |at: usize| (at / 30) % 2;
    let watts: Vec<f64> = load.iter().enumerate().map(|(at, wave)| [50.0, 35.0][phase(at)] + 8.0 * wave).collect();
    let point = |at: usize| Point {
        before: watts[at - 1],
        here: watts[at],
        after: watts[at + 1],
        meter: 40.0 + gains[phase(at)] * watts[at] + 2.0 * other[at],
    };
    let is_inside = |at: usize| phase(at - 1) == phase(at) && phase(at) == phase(at + 1);
    ((1..COUNT - 1).map(point).collect(), (1..COUNT - 1).map(|at| is_inside(at).then(|| phase(at))).collect())
}

/// docs/measured/statistics.md has the figures.
#[test]
fn gains_of_phases_are_found_and_said_to_differ_where_they_do() {
    for kept in [0.0, 0.6, 0.8] {
        for (of_arithmetic, of_memory) in [(1.15, 1.40), (1.15, 1.20), (1.20, 1.20)] {
            let truth = [of_arithmetic, of_memory];
            let runs = (0..RUNS).map(|run| in_turns(run * 7919 + 1, truth, kept));
            let found: Vec<(Gains, Fit)> =
                runs.map(|(points, phases)| (gains(&points, &phases).unwrap(), fit(&points).unwrap())).collect();
            let part = |holds: &dyn Fn(&Gains, &Fit) -> bool| {
                let held = found.iter().filter(|(gains, fit)| holds(gains, fit)).count();
                f64::from(u32::try_from(held).unwrap()) / f64::from(u32::try_from(found.len()).unwrap())
            };
            let of_phase = |gains: &Gains, phase| gains.phases.iter().find(|of| of.phase == phase).unwrap().gain;
            let held = [0, 1].map(|phase| part(&|gains, _| of_phase(gains, phase).contains(truth[phase])));
            let unequal = part(&|gains, _| gains.are_unequal());
            let one = part(&|_, fit| truth.iter().all(|gain| fit.gain.contains(*gain)));
            eprintln!("{truth:?}, {kept} is left: held {held:?}, unequal {unequal}, one gain holds both {one}");
            held.iter().for_each(|held| expect_95_percent(*held, "a phase's gain"));
            match of_memory - of_arithmetic {
                0.0 => assert!(unequal < 0.08, "{unequal}"),
                difference => assert!(unequal > if difference > 0.2 { 0.99 } else { 0.5 }, "{unequal}"),
            }
        }
    }
}

#[test]
fn phases_with_few_spans_are_counted() {
    let (points, mut phases) = in_turns(1, [1.15, 1.40], 0.6);
    assert_eq!(gains(&points, &phases).unwrap().left_out, 0);
    phases[..5].fill(Some(7));
    let found = gains(&points, &phases).unwrap();
    assert_eq!((found.left_out, found.phases.len()), (1, 2));
}

#[test]
fn a_fit_is_judged_where_it_was_not_fitted() {
    let (points, _) = in_turns(1, [1.15, 1.40], 0.6);
    let of = |runs: &[usize]| held_out(&points, runs).unwrap();
    let [fifths, runs] = [of(&[0; 300]), of(&[[0; 150], [1; 150]].concat())];
    assert!(!fifths.is_of_runs && runs.is_of_runs);
    let inside = fit(&points).unwrap();
    assert!(fifths.rmse_w > inside.residual * 0.99 && runs.rmse_w > inside.residual * 0.99, "{fifths:?} {runs:?}");
    // Least power is memory's alone, most is that of arithmetic: one line is wrong for both.
    assert!(fifths.by_load_w.iter().any(|watts| watts.abs() > 0.3), "{fifths:?}");
    // What a run does not have, its fit does not know.
    let other: Vec<Point> = points.iter().map(|of| Point { meter: of.meter + 20.0, ..*of }).collect();
    let both = [points.clone(), other].concat();
    let found = held_out(&both, &[[0; 300], [1; 300]].concat()).unwrap();
    assert!((19.0..23.0).contains(&found.rmse_w) && found.predicted < 0.0, "{found:?}");
}

/// A run of windows of a second whose load moves in steps, and a meter that reads `offset + gain ×
/// power` twice a second, with noise, by a clock that is ahead.
struct Simulated {
    recorded: Recorded,
    log: MeterLog,
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive powers")]
fn simulated(seed: u64, offset: f64, gain: f64, deviation: f64, ahead_us: i64) -> Simulated {
    const SECONDS: usize = 600;
    /// The true power is known each tenth of a second.
    const STEP_US: i64 = 100_000;
    let mut noise = Noise(seed);
    let mut watts = 20.0;
    let powers: Vec<f64> = (0..10 * SECONDS)
        .map(|_| {
            if noise.uniform() < 0.02 {
                watts = 10.0 + 60.0 * noise.uniform();
            }
            watts
        })
        .collect();
    let drift = waves(&mut noise, 2 * SECONDS, 0.9);
    let windows: BTreeMap<i64, (u64, usize)> = (0_i64..)
        .zip(powers.chunks(10))
        .map(|(second, powers)| (START_US + second * 1_000_000, ((powers.iter().sum::<f64>() * 1e5) as u64, 0)))
        .collect();
    let readings = (0_i64..).zip(powers.chunks(5)).zip(drift).map(|((half, powers), drift)| MeterReading {
        // The mean of the half second around it.
        at_us: START_US + ahead_us + half * 5 * STEP_US + 5 * STEP_US / 2,
        watts: offset + gain * powers.iter().sum::<f64>() / 5.0 + deviation * drift,
    });
    Simulated {
        recorded: Recorded::of_seconds(windows, &[""]),
        log: MeterLog { readings: readings.collect(), ..MeterLog::default() },
    }
}

fn validated(seed: u64, ahead_us: i64) -> Validation {
    let Simulated { recorded, log } = simulated(seed, 35.0, 1.15, 0.8, ahead_us);
    compare(&recorded, &log, Duration::from_secs(20)).unwrap()
}

#[test]
fn a_meters_offset_gain_and_clock_are_found() {
    let (mut gains, mut offsets) = (0, 0);
    for seed in 0..100 {
        let ahead_us = i64::try_from(seed).unwrap() * 317_000 - 15_000_000;
        let found = validated(seed * 7919 + 1, ahead_us);
        assert!(found.alignment.is_found && !found.alignment.is_at_limit, "{found:?}");
        assert!((found.alignment.shift_us - ahead_us).abs() < 150_000, "{ahead_us}: {:?}", found.alignment);
        assert!(
            (found.fit.gain.value - 1.15).abs() < 0.03 && found.held_out.unwrap().predicted > 0.98,
            "{:?}",
            found.fit
        );
        gains += u32::from(found.fit.gain.contains(1.15));
        offsets += u32::from(found.fit.offset.contains(35.0));
    }
    // Of 100, 95 are within ± 7 but in three of a thousand.
    assert!(gains >= 88 && offsets >= 88, "{gains} {offsets}");
}

#[test]
fn the_verdict_is_in_words_and_the_figures_are_in_both_formats() {
    let found = validated(1, 2_000_000);
    let written = |is_json| {
        let mut out = Vec::new();
        found.write(is_json, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = written(false);
    for expected in
        ["package (test)", "of 600 windows", "s ahead", "offset", "gain", "RMSE", "For each watt of joular-bpf"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&written(true)).unwrap();
    assert!((json["gain"]["value"].as_f64().unwrap() - found.fit.gain.value).abs() < 1e-9);
    assert_eq!(json["domains"][0]["domain"], "package");
    let same = compare(&simulated(3, 0.0, 1.0, 0.8, 0).recorded, &simulated(3, 0.0, 1.0, 0.8, 0).log, Duration::ZERO);
    let verdict = same.unwrap().verdict();
    assert!(verdict.starts_with("joular-bpf and the meter agree"), "{verdict}");
}

#[test]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive powers")]
fn a_gain_that_depends_on_the_phase_is_told() {
    const SECONDS: usize = 600;
    let mut noise = Noise(1);
    let (load, drift) = (waves(&mut noise, SECONDS, 0.8), waves(&mut noise, SECONDS, 0.6));
    let phase = |second: usize| 1 + (second / 60) % 2;
    let watts = |second: usize| [50.0, 35.0][phase(second) - 1] + 6.0 * load[second];
    let at_us = |second: usize| START_US + i64::try_from(second).unwrap() * 1_000_000;
    let window = |second: usize| (at_us(second), ((watts(second) * 1e6).round() as u64, phase(second)));
    let recorded = Recorded::of_seconds((0..SECONDS).map(window).collect(), &["", "compute", "memory"]);
    let reading = |half: usize| {
        let second = half / 2;
        let meter = 40.0 + [1.15, 1.40][phase(second) - 1] * watts(second) + 0.5 * drift[second];
        MeterReading { at_us: at_us(second) + if half.is_multiple_of(2) { 250_000 } else { 750_000 }, watts: meter }
    };
    let log = MeterLog { readings: (0..2 * SECONDS).map(reading).collect(), ..MeterLog::default() };
    let found = Validation { meter_class: Some(1.0), ..compare(&recorded, &log, Duration::ZERO).unwrap() };
    let written = |is_json| {
        let mut out = Vec::new();
        found.write(is_json, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&written(true)).unwrap();
    for (phase, gain) in [("compute", 1.15), ("memory", 1.40)] {
        let of_phase = json["gain_by_phase"].as_array().unwrap().iter().find(|of| of["phase"] == phase).unwrap();
        let [low, high] = ["low", "high"].map(|end| of_phase["gain"][end].as_f64().unwrap());
        assert!(low <= gain && gain <= high && high - low < 0.1, "{of_phase}");
    }
    assert_eq!((&json["gains_differ"], &json["meter_class_percent"]), (&true.into(), &1.0.into()));
    let text = written(false);
    for expected in
        ["class 1 %", "gain by phase", "they differ", "each fifth of the run", "The gain depends on the load"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_meter_of_something_else_is_not_taken_for_this_machine() {
    let recorded = simulated(1, 0.0, 1.0, 0.8, 0).recorded;
    let other = simulated(2, 0.0, 1.0, 0.8, 0).log;
    let found = compare(&recorded, &other, Duration::from_secs(20)).unwrap();
    assert!(!found.alignment.is_found, "{:?}", found.alignment);
    assert!(found.verdict().starts_with("The two do not go together"), "{}", found.verdict());
    let later = simulated(1, 0.0, 1.0, 0.8, 3_600_000_000).log;
    let error = compare(&recorded, &later, Duration::from_secs(20)).unwrap_err();
    assert!(matches!(error, ValidateError::TooFew { found: 0, .. }), "{error}");
    assert!(error.to_string().contains("the log from 2026-03-01T13:00:00"), "{error}");
}
