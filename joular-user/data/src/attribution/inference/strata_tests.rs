//! Tests how windows make strata, and what strata give.

use super::{strata::*, *};
use crate::model::units::UnixMicros;

const PACE: Pace = Pace { frequency_hz: 100, interval_ns: 1_000_000_000 };

fn at(second: u64) -> UnixMicros {
    // Clocks are corrected by a little.
    UnixMicros(i64::try_from(second * 1_000_000 + second % 2).unwrap())
}

/// A window of some ms on a CPU, with µJ and the samples of paths. At 100 Hz a sample is expected of each 10 ms.
fn take(strata: &mut Strata<char>, second: u64, cpu_ms: u64, energy: u64, seen: &[(char, u64)]) {
    let window = PACE.window(at(second), cpu_ms * 1_000_000);
    let count: u64 = seen.iter().map(|(_, samples)| samples).sum();
    let part = |samples| Spent {
        energy: MicroJoules(energy * samples / count.max(1)),
        cpu_ns: cpu_ms * 1_000_000 * samples / count.max(1),
    };
    let recorded = |(path, samples): &(char, u64)| {
        let spent = part(*samples);
        let squares = (spent.energy.0 as f64).powi(2) / *samples as f64;
        Recorded { path: *path, samples: *samples, spent, squares }
    };
    let rows: Vec<Recorded<char>> = seen.iter().map(recorded).collect();
    let all = Spent { energy: MicroJoules(energy), cpu_ns: cpu_ms * 1_000_000 };
    strata.take(&window, &rows, if rows.is_empty() { all } else { Spent::default() });
}

type Given = (usize, Vec<(char, u64, u64)>);

/// Strata that are complete: how many windows, and path, energy and ms of each share.
fn given(strata: &mut Strata<char>, now: Option<u64>) -> Vec<Given> {
    let mut given = Vec::new();
    strata.settle(now.map(|second| (at(second), PACE.interval_ns)), |stratum, shares| {
        let parts: Vec<_> = shares.iter().map(|share| (share.path, share.energy.0, share.cpu_ns / 1_000_000)).collect();
        let of_share = |share: &Share<char>| Spent { energy: share.energy, cpu_ns: share.cpu_ns };
        let sum = shares.iter().map(of_share).fold(Spent::default(), Spent::plus);
        assert!(shares.is_empty() || sum == stratum.spent(), "{parts:?} {:?}", stratum.spent());
        given.push((stratum.windows, parts));
    });
    given
}

#[test]
fn time_goes_to_samples_alike_and_energy_by_the_power_of_their_windows() {
    let mut strata = Strata::default();
    take(&mut strata, 0, 60, 600, &[('a', 1)]);
    // Three times the power.
    take(&mut strata, 1, 40, 1_200, &[('b', 1)]);
    take(&mut strata, 2, 60, 200, &[]);
    assert_eq!(given(&mut strata, Some(2)), [], "it waits for those after it");
    assert_eq!(given(&mut strata, None), [(3, vec![('a', 500, 80), ('b', 1_500, 80)])]);
}

#[test]
fn strata_are_cut_by_samples_that_are_expected_and_not_by_those_that_are_found() {
    let mut strata = Strata::default();
    for second in 0..6 {
        take(&mut strata, second, 80, 10, if second < 4 { &[('a', 100)] } else { &[] });
    }
    let first = given(&mut strata, Some(6));
    assert_eq!(first, [(2, vec![('a', 20, 160)]), (2, vec![('a', 20, 160)])]);
    assert_eq!(given(&mut strata, None), [(2, vec![])], "without a sample it is left");
}

#[test]
fn what_is_too_little_joins_those_before_it_if_they_are_near() {
    let few = |gap: u64| {
        let mut strata = Strata::default();
        take(&mut strata, 0, 80, 10, &[('a', 8)]);
        take(&mut strata, 1, 80, 10, &[('a', 8)]);
        take(&mut strata, 1 + gap, 40, 10, &[('b', 4)]);
        let mut found = given(&mut strata, Some(1 + gap));
        found.extend(given(&mut strata, None));
        found
    };
    assert_eq!(few(1), [(3, vec![('a', 20, 160), ('b', 10, 40)])]);
    assert_eq!(few(HORIZON), [(2, vec![('a', 20, 160)]), (1, vec![])]);
}

#[test]
fn what_is_enough_stands_for_itself() {
    let mut strata = Strata::default();
    take(&mut strata, 0, 80, 10, &[('a', 8)]);
    take(&mut strata, 60 - 1, 79, 10, &[('b', 8)]);
    take(&mut strata, 60, 40, 10, &[('b', 4)]);
    take(&mut strata, 60 + 1, 40, 10, &[('c', 4)]);
    let found = given(&mut strata, None);
    assert_eq!(found.iter().map(|(windows, _)| *windows).collect::<Vec<_>>(), [2, 2], "{found:?}");
}

#[test]
fn windows_that_phases_cut_short_join_as_others_do() {
    let mut strata = Strata::default();
    let starts = [0, 5, 10, 2_000, 2_003].map(|ms| UnixMicros(ms * 1_000));
    for start in starts {
        let spent = Spent { energy: MicroJoules(10), cpu_ns: 80_000_000 };
        let row = Recorded { path: 'a', samples: 8, spent, squares: 0.0 };
        strata.take(&PACE.window(start, spent.cpu_ns), &[row], Spent::default());
    }
    let mut windows = Vec::new();
    strata.settle(Some((starts[4], PACE.interval_ns)), |stratum, _| windows.push(stratum.windows));
    assert_eq!(windows, [2]);
    strata.settle(None, |stratum, _| windows.push(stratum.windows));
    assert_eq!(windows, [2, 2, 1]);
}

#[test]
fn memory_holds_no_more_than_the_horizon() {
    let mut strata = Strata::default();
    let (mut taken, mut settled) = (0, 0);
    for second in 0..10_000 {
        taken += 1;
        take(&mut strata, second, second % 37, second, &[('a', 1)]);
        settled += given(&mut strata, Some(second)).iter().map(|(windows, _)| windows).sum::<usize>();
        assert!(taken - settled <= usize::try_from(HORIZON).unwrap(), "at {second}");
    }
}

/// Samples of a stratum stand for its energy, so squares are those of as many equal samples where power is the same.
#[test]
fn squares_are_those_of_what_each_sample_stands_for() {
    let mut strata = Strata::default();
    take(&mut strata, 0, 50, 500, &[('a', 3), ('b', 1)]);
    take(&mut strata, 1, 50, 500, &[('b', 1)]);
    strata.settle(None, |_, shares| {
        let squares: Vec<f64> = shares.iter().map(|share| share.squares).collect();
        let expected = [3.0 * 200.0_f64.powi(2), 2.0 * 200.0_f64.powi(2)];
        assert!(squares.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{squares:?}");
    });
}
