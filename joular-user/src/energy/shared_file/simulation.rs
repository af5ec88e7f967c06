//! Simulates a virtual machine that learns of its energy late, as its host writes it: which thread gets how much of it.
//! docs/measured/statistics.md has the figures.

use joular_data::{model::units::MicroJoules, noise::Noise};

use super::totals::{Arrived, Totals};

const SECOND: i64 = 1_000_000;
/// Between the end of a window of the host and the file that has it.
const WRITTEN_AFTER_US: i64 = 60_000;
const RUN_S: i64 = 300;
const RUNS: u64 = 200;

/// A thread of 30 W and one of 10 W that take turns on one CPU, from a moment before the run on.
#[derive(Clone, Copy)]
struct Turns {
    length_us: i64,
    before_us: i64,
}

impl Turns {
    /// How long the first thread has run, µs.
    fn first_us(self, until_us: i64) -> i64 {
        let us = until_us + self.before_us;
        us / (2 * self.length_us) * self.length_us + (us % (2 * self.length_us)).min(self.length_us)
    }

    /// µJ.
    fn energy(self, until_us: i64) -> i64 {
        let first_us = self.first_us(until_us);
        30 * first_us + 10 * (until_us + self.before_us - first_us)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A window gets what the total gained since the one before: the rule before.
    WhenRead,
    /// A window gets what is from it.
    Timed,
    /// The same, and the reader's windows end where the writer's do.
    Aligned,
    /// The guest has a counter of its own.
    Own,
}

/// The first thread's part of what was told, by CPU time in windows of a second. Host and guest begin at these moments, and the
/// guest's clock is ahead of the host's.
fn share(rule: Rule, turns: Turns, [host_us, guest_us, ahead_us]: [i64; 3]) -> f64 {
    let (mut arrived, mut file) = (Arrived::default(), Totals::from(0));
    let (mut written_us, mut read_us) = (host_us, None);
    let (mut moments, mut told): (Vec<i64>, Vec<(i64, u64)>) = (Vec::new(), Vec::new());
    let mut now_us = guest_us;
    while now_us < RUN_S * SECOND {
        while written_us + SECOND + WRITTEN_AFTER_US <= now_us {
            let used = turns.energy(written_us + SECOND) - turns.energy(written_us);
            file.add(written_us, written_us + SECOND, MicroJoules(used.unsigned_abs()));
            written_us += SECOND;
        }
        let clock_us = now_us + ahead_us;
        arrived.learn(file.clone(), clock_us, read_us.replace(clock_us));
        moments.push(now_us);
        match rule {
            Rule::WhenRead => told.push((now_us, file.now_uj)),
            Rule::Own => told.push((now_us, turns.energy(now_us).unsigned_abs())),
            Rule::Timed | Rule::Aligned => {
                while let Some(at) = moments.get(told.len()).copied() {
                    let Some(total_uj) = arrived.total_at(at + ahead_us) else { break };
                    told.push((at, total_uj));
                }
            }
        }
        let next = now_us + SECOND;
        now_us = if rule == Rule::Aligned {
            arrived.end_near(next + ahead_us).map_or(next, |end_us| end_us - ahead_us)
        } else {
            next
        };
    }
    let (mut first, mut all) = (0.0, 0.0);
    for window in told.windows(2) {
        let [(start_us, before), (end_us, after)] = window else { continue };
        let energy = float(*after) - float(*before);
        let first_us = turns.first_us(*end_us) - turns.first_us(*start_us);
        first += energy * float(first_us.unsigned_abs()) / float((end_us - start_us).unsigned_abs());
        all += energy;
    }
    first / all
}

#[allow(clippy::cast_precision_loss, reason = "figures of a simulation")]
fn float(of: u64) -> f64 {
    of as f64
}

/// Mean over runs.
fn mean_share(rule: Rule, length_us: i64, ahead_us: i64) -> f64 {
    let mut noise = Noise(12);
    let mut at_random = |below: i64| i64::try_from(noise.below(below.unsigned_abs())).unwrap();
    let shares = (0..RUNS).map(|_| {
        let turns = Turns { length_us, before_us: at_random(2 * length_us) };
        share(rule, turns, [at_random(SECOND), 3 * SECOND + at_random(SECOND), ahead_us])
    });
    shares.sum::<f64>() / float(RUNS)
}

#[test]
fn energy_goes_to_the_windows_that_it_is_from() {
    for length_us in [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND] {
        let rules = [Rule::WhenRead, Rule::Timed, Rule::Aligned, Rule::Own];
        let [late, timed, aligned, own] = rules.map(|rule| mean_share(rule, length_us, 0));
        eprintln!("turns of {} s: {late:.3}, {timed:.3}, {aligned:.3}, {own:.3}", length_us / SECOND);
        assert!(late + 0.01 < aligned && late < timed && timed < aligned, "{length_us}");
        assert!((aligned - own).abs() < 0.01, "{length_us}");
    }
}

#[test]
fn clocks_that_differ_cost_less_than_energy_that_is_late() {
    for tenths in [-100, -10, -2, -1, 1, 2, 5, 100] {
        let [late, aligned] =
            [Rule::WhenRead, Rule::Aligned].map(|rule| mean_share(rule, 2 * SECOND, tenths * SECOND / 10));
        eprintln!("{tenths} tenths of a second ahead: {late:.3}, {aligned:.3}");
        assert!(aligned > late - 0.01, "{tenths}");
    }
}
