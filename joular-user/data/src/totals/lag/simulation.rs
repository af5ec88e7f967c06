//! Simulates counters that advance every 1, 8 and 100 ms, and phases of 100 and 20 W in turns.
//! docs/measured/statistics.md has the figures.

use super::*;
use crate::{
    attribution::counter::Delta,
    model::domain::{Domain, Label, Meter, Update},
    noise::Noise,
};

const UPDATES_MS: [f64; 3] = [1.0, 8.0, 100.0];
const PHASES_MS: [f64; 3] = [20.0, 50.0, 200.0];
const WATTS: [f64; 2] = [100.0, 20.0];
const NAMES: [&str; 2] = ["more", "less"];

/// All phases of one power.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    true_joules: f64,
    /// What the counter says.
    joules: f64,
    lag: Lag,
}

impl Found {
    fn off_percent(&self) -> f64 {
        100.0 * (self.joules - self.true_joules) / self.true_joules
    }

    fn holds(&self) -> bool {
        (self.joules - self.true_joules).abs() <= self.lag.joules()
    }
}

/// What a machine draws: moments in ms, each with the power from then on and the mJ until then.
struct Machine(Vec<(f64, f64, f64)>);

impl Machine {
    fn draws(&mut self, from_ms: f64, watts: f64) {
        self.0.push((from_ms, watts, self.millijoules(from_ms)));
    }

    fn millijoules(&self, at_ms: f64) -> f64 {
        let after = self.0.partition_point(|(from_ms, ..)| *from_ms <= at_ms);
        after.checked_sub(1).map_or(0.0, |place| {
            let (from_ms, watts, until) = self.0[place];
            until + watts * (at_ms - from_ms)
        })
    }
}

/// A counter that advances every `update_ms`, and phases that vary about `phase_ms` by a tenth. Before them,
/// the machine draws the smaller power for ten phases.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of a simulation")]
fn simulate(update_ms: f64, phase_ms: f64, repetitions: usize, noise: &mut Noise) -> [Found; 2] {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1000 };
    let mut domain = Domain::new("package", Some(0), "test", Label::Measured, meter);
    domain.watched(Update { interval_us: (1e3 * update_ms) as u32, is_least: false }, u64::MAX);
    let mut machine = Machine(Vec::new());
    let mut moments_ms = vec![-10.0 * phase_ms, 0.0];
    for turn in 0..2 * repetitions {
        let begin_ms = moments_ms[turn + 1];
        moments_ms.push(begin_ms + phase_ms * (0.9 + 0.2 * noise.uniform()));
    }
    for (index, at_ms) in moments_ms.iter().enumerate() {
        machine.draws(*at_ms, WATTS[(index + 1) % 2]);
    }
    let offset_ms = noise.uniform() * update_ms;
    let shown = |at_ms: f64| machine.millijoules(((at_ms - offset_ms) / update_ms).floor() * update_ms + offset_ms);
    let (mut lags, mut found) = (Lags::default(), [Found::default(); 2]);
    for (index, ends) in moments_ms.windows(2).enumerate() {
        let energy = |read: &dyn Fn(f64) -> f64| read(ends[1]) - read(ends[0]);
        let measured = MicroJoules((1e3 * energy(&shown)).round() as u64);
        let mut audit = DomainAudit::new(&domain, &Delta { measured, ..Delta::default() });
        audit.attributed = measured;
        let length_ns = (1e6 * (ends[1] - ends[0])) as u64;
        lags.window(&Stretch::of(&WindowReport { length_ns, domains: vec![audit], ..WindowReport::default() }));
        for (path, lag) in lags.opened(&BTreeSet::from([NAMES[index % 2].to_owned()])) {
            let of_power = &mut found[NAMES.iter().position(|name| *name == path).unwrap()];
            of_power.true_joules += energy(&|at_ms| machine.millijoules(at_ms)) / 1e3;
            of_power.joules += measured.joules();
            of_power.lag = of_power.lag.plus(lag);
        }
    }
    found
}

/// A single phase of each power is off at random. Many are off by these parts.
#[test]
fn many_phases_are_off_in_one_direction() {
    for (update_ms, phase_ms, expected) in
        [(1.0, 20.0, [-2.0, 9.8]), (1.0, 50.0, [-0.8, 4.1]), (1.0, 200.0, [-0.2, 1.0]), (8.0, 20.0, [-15.0, 77.0])]
    {
        let found = simulate(update_ms, phase_ms, 20_000, &mut Noise(37));
        for (found, expected) in found.into_iter().zip(expected) {
            let off = found.off_percent();
            assert!((off - expected).abs() < 0.1 + 0.1 * expected.abs(), "{update_ms} ms, {phase_ms} ms: {off:+.2} %");
        }
    }
}

/// Phases once, ten and a hundred times: the error, the bound, and how often it holds.
#[test]
fn the_bound_holds_however_often_phases_repeat() {
    for (update_ms, phase_ms) in UPDATES_MS.iter().flat_map(|update| PHASES_MS.map(|phase| (*update, phase))) {
        for (repetitions, count) in [(1, 1_000), (10, 1_000), (100, 300)] {
            let mut noise = Noise(37);
            let runs: Vec<_> = (0..count).map(|_| simulate(update_ms, phase_ms, repetitions, &mut noise)).collect();
            for (place, watts) in WATTS.iter().enumerate() {
                let of_power = runs.iter().map(|found| found[place]);
                let held: u32 = of_power.clone().map(|found| u32::from(found.holds())).sum();
                let mean = |of: &dyn Fn(Found) -> f64| of_power.clone().map(of).sum::<f64>() / f64::from(count);
                println!(
                    "| {update_ms} ms | {phase_ms} ms | {watts} W | {repetitions} | {:+.1} % | ± {:.1} % | {:.1} % |",
                    mean(&|found| found.off_percent()),
                    mean(&|found| 100.0 * found.lag.joules() / found.true_joules),
                    100.0 * f64::from(held) / f64::from(count),
                );
                let is_bounded = update_ms < phase_ms;
                assert_eq!(is_bounded, runs.iter().all(|found| !found[place].lag.is_least));
                assert!(
                    !is_bounded || held * 100 >= 93 * count,
                    "{update_ms} ms, {phase_ms} ms, {repetitions} ×, {watts} W: {held}"
                );
            }
        }
    }
}

/// Windows of two processes, whose phases are open at the same time, and a phase within another.
#[test]
fn phases_overlap_and_nest() {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1000 };
    let mut domain = Domain::new("package", Some(0), "test", Label::Measured, meter);
    domain.watched(Update { interval_us: 1_000, is_least: false }, u64::MAX);
    let mut lags = Lags::default();
    // 100 ms each: watts, and what is open after it.
    let windows: [(u64, &[&str]); 5] =
        [(10, &["a"]), (110, &["a", "a/b"]), (210, &["a", "a/b"]), (10, &["a"]), (10, &[])];
    let mut found = Vec::new();
    for (watts, open) in windows {
        let measured = MicroJoules(watts * 100_000);
        let mut audit = DomainAudit::new(&domain, &Delta { measured, ..Delta::default() });
        // Half of it is the targets'.
        audit.attributed = MicroJoules(measured.0 / 2);
        lags.window(&Stretch::of(&WindowReport {
            length_ns: 100_000_000,
            domains: vec![audit],
            ..WindowReport::default()
        }));
        found.extend(lags.opened(&open.iter().map(ToString::to_string).collect()));
    }
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["a/b", "a"]);
    // From 110 W before it to the stretch of 210 and 10 W, which drew 110 W on average, and from 10 W to 10 W.
    assert!(found[0].1.bias_joules.abs() < 1e-12 && found[1].1.bias_joules.abs() < 1e-12, "{found:?}");
    let variance = |watts: f64| 0.25 * 1e-6 / 12.0 * 2.0 * watts.powi(2);
    for (lag, watts) in found.iter().map(|(_, lag)| lag).zip([110.0, 10.0]) {
        assert!((lag.variance / variance(watts) - 1.0).abs() < 1e-9, "{lag:?}");
    }
}
