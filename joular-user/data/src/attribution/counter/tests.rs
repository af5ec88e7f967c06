use proptest::prelude::*;

use super::*;
use crate::model::domain::{FaultCause, Label};

const SECOND: u64 = 1_000_000_000;
/// A real register: 2³² steps of 61.035 µJ, of which the unit rounds to 61.
const RANGE: u64 = 262_143_328_850;
const UNIT: u64 = 61;

fn domain(meter: Meter, socket: Option<u32>) -> Domain {
    Domain::new("test", socket, "test", Label::Measured, meter)
}

fn counter(range_uj: u64, max_watts: u32) -> Meter {
    Meter::Counter { range_uj, unit_uj: UNIT, max_watts }
}

const fn on(sockets: &[SocketLoad]) -> Usage<'_> {
    Usage { sockets, moved: [0; 8] }
}

fn good(measured: u64) -> Delta {
    Delta { measured: MicroJoules(measured), ..Delta::default() }
}

fn failed(cause: FaultCause) -> Delta {
    Delta { fault: Some(cause), ..Delta::default() }
}

fn uncertain(cause: FaultCause, measured: u64) -> Delta {
    Delta { fault: Some(cause), ..good(measured) }
}

/// Reads at `(seconds, reading)`, the first of which is the starting point.
#[track_caller]
fn check(meter: Meter, reads: &[(u64, Reading)], expected: &[Delta]) {
    let mut meters = Meters::new(&[domain(meter, None)]);
    let (first, rest) = reads.split_first().unwrap();
    meters.start(MonotonicNs(first.0 * SECOND), std::slice::from_ref(&first.1));
    let deltas: Vec<Delta> = rest
        .iter()
        .flat_map(|(at, reading)| {
            meters.advance(MonotonicNs(at * SECOND), std::slice::from_ref(reading), SECOND, &Usage::default())
        })
        .collect();
    assert_eq!(deltas, expected);
}

fn uj(value: u64) -> Reading {
    Reading::CounterUj(value)
}

fn failure() -> Reading {
    Reading::failed(FaultCause::Unreadable, "EIO")
}

#[test]
fn a_counter_that_advances() {
    check(counter(RANGE, 500), &[(0, uj(1_000)), (1, uj(50_001_000))], &[good(50_000_000)]);
}

#[test]
fn a_counter_that_stands_still_is_stuck_where_it_always_moves() {
    let still = [uj(7), uj(7), uj(7), uj(9)];
    for (name, expected) in [
        ("package", [failed(FaultCause::Stuck), failed(FaultCause::Stuck), Delta { merged: 3, ..good(2) }]),
        ("platform", [failed(FaultCause::Stuck), failed(FaultCause::Stuck), Delta { merged: 3, ..good(2) }]),
        ("dram", [good(0), good(0), good(2)]),
        ("core", [good(0), good(0), good(2)]),
        ("gpu", [good(0), good(0), good(2)]),
    ] {
        let meter = Domain { name: name.into(), ..domain(counter(RANGE, 500), None) };
        let mut meters = Meters::new(&[meter]);
        meters.start(MonotonicNs(0), &still[..1]);
        let deltas = (1..).zip(&still[1..]).map(|(second, reading)| {
            meters.advance(MonotonicNs(second * SECOND), std::slice::from_ref(reading), SECOND, &Usage::default())[0]
        });
        assert_eq!(deltas.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn a_counter_may_rest_between_two_updates() {
    let package = Domain { name: "package".into(), ..domain(counter(RANGE, 500), None) };
    for (elapsed_ns, fault) in [(1_000_000, None), (49_999_999, None), (50_000_000, Some(FaultCause::Stuck))] {
        let mut meters = Meters::new(std::slice::from_ref(&package));
        meters.start(MonotonicNs(0), &[uj(7)]);
        assert_eq!(
            meters.advance(MonotonicNs(elapsed_ns), &[uj(7)], elapsed_ns, &Usage::default())[0].fault,
            fault,
            "{elapsed_ns}"
        );
    }
}

/// Windows of half a second of a package that starts at 0.
#[track_caller]
fn check_halves(meter: Meter, readings: &[Reading], expected: &[Delta]) {
    let package = Domain { name: "package".into(), ..domain(meter, None) };
    let mut meters = Meters::new(&[package]);
    meters.start(MonotonicNs(0), &[uj(0)]);
    let half = SECOND / 2;
    let deltas = (1..).zip(readings).flat_map(|(window, reading)| {
        meters.advance(MonotonicNs(window * half), std::slice::from_ref(reading), half, &Usage::default())
    });
    assert_eq!(deltas.collect::<Vec<_>>(), expected);
}

#[test]
fn a_counter_that_advances_once_a_second_is_exact_over_two_windows_of_half_a_second() {
    // 9 W of a domain that may draw 5 W, twice that at most: each step is more
    // than half a second allows.
    let nine = Delta { merged: 2, ..good(9_000_000) };
    let stuck = failed(FaultCause::Stuck);
    let readings = [0, 9, 9, 18, 18, 27].map(|joules| uj(joules * 1_000_000));
    check_halves(counter(RANGE, 5), &readings, &[stuck, nine, stuck, nine, stuck, nine]);
}

#[test]
fn failed_reads_of_a_counter_that_stands_still_merge_with_it() {
    let (stuck, lost) = (failed(FaultCause::Stuck), failed(FaultCause::Unreadable));
    let merged = |merged, measured| Delta { merged, ..good(measured) };
    let readings = [uj(0), failure(), uj(0), uj(5), uj(7)];
    check_halves(counter(RANGE, 5), &readings, &[stuck, lost, stuck, merged(4, 5), good(2)]);
    let jumped = Delta { merged: 2, ..uncertain(FaultCause::Jumped, 0) };
    check_halves(counter(RANGE, 5), &[uj(0), uj(20_000_000), uj(20_000_003)], &[stuck, jumped, good(3)]);
}

#[test]
fn who_missed_a_window_waits_until_the_counter_moves_however_soon_it_is_read_again() {
    let package = Domain { name: "package".into(), ..domain(counter(RANGE, 500), None) };
    let mut meters = Meters::new(&[package]);
    meters.start(MonotonicNs(0), &[uj(7)]);
    let lost = failed(FaultCause::Unreadable);
    let merged = Delta { merged: 3, ..good(2) };
    for (at, reading, expected) in [(1, failure(), lost), (2, uj(7), failed(FaultCause::Stuck)), (3, uj(9), merged)] {
        assert_eq!(
            meters.advance(MonotonicNs(at * 1_000_000), &[reading], 1_000_000, &Usage::default()),
            [expected],
            "{at} ms"
        );
    }
}

#[test]
fn a_counter_that_moves_after_it_stood_still_for_a_wrap_is_ambiguous() {
    let package = Domain { name: "package".into(), ..domain(counter(RANGE, 500), None) };
    let mut meters = Meters::new(&[package]);
    meters.start(MonotonicNs(0), &[uj(0)]);
    assert_eq!(
        meters.advance(MonotonicNs(599 * SECOND), &[uj(0)], SECOND, &Usage::default()),
        [failed(FaultCause::Stuck)]
    );
    let expected = Delta { merged: 2, ..uncertain(FaultCause::MayHaveWrapped, 9) };
    assert_eq!(meters.advance(MonotonicNs(600 * SECOND), &[uj(9)], SECOND, &Usage::default()), [expected]);
}

#[test]
fn a_wrap_counts_the_step_from_the_last_value_to_zero() {
    check(counter(RANGE, 500), &[(0, uj(RANGE)), (1, uj(0))], &[good(UNIT)]);
    check(counter(RANGE, 500), &[(0, uj(RANGE - 10_000_000)), (1, uj(5_000_000))], &[good(15_000_000 + UNIT)]);
}

#[test]
fn a_failed_read_merges_windows() {
    let merged = Delta { merged: 3, ..good(30_000_000) };
    let reads = [(0, uj(0)), (1, failure()), (2, failure()), (3, uj(30_000_000)), (4, uj(40_000_000))];
    check(
        counter(RANGE, 500),
        &reads,
        &[failed(FaultCause::Unreadable), failed(FaultCause::Unreadable), merged, good(10_000_000)],
    );
}

#[test]
fn a_reading_of_another_kind_or_none_is_a_failed_read() {
    check(counter(RANGE, 500), &[(0, uj(0)), (1, Reading::PowerUw(5))], &[failed(FaultCause::Malformed)]);
    let mut meters = Meters::new(&[domain(counter(RANGE, 500), None)]);
    assert_eq!(meters.advance(MonotonicNs(0), &[], SECOND, &Usage::default()), [failed(FaultCause::Malformed)]);
}

#[test]
fn a_gap_longer_than_a_wrap_is_ambiguous() {
    // 500 W need 524 s for the whole range.
    check(counter(RANGE, 500), &[(0, uj(0)), (600, uj(1_000))], &[uncertain(FaultCause::MayHaveWrapped, 1_000)]);
    check(counter(RANGE, 500), &[(0, uj(0)), (500, uj(1_000))], &[good(1_000)]);
}

#[test]
fn a_jump_backwards_is_not_energy_and_sets_a_new_base() {
    let reads = [(0, uj(100_000_000_000)), (1, uj(3_000_000)), (2, uj(4_000_000))];
    check(counter(RANGE, 500), &reads, &[uncertain(FaultCause::Jumped, 0), good(1_000_000)]);
}

#[test]
fn a_jump_forwards_is_not_energy_and_sets_a_new_base() {
    let reads = [(0, uj(0)), (1, uj(100_000_000_000)), (2, uj(100_001_000_000))];
    check(counter(RANGE, 500), &reads, &[uncertain(FaultCause::Jumped, 0), good(1_000_000)]);
}

#[test]
fn without_a_range_backwards_is_ambiguous_and_long_gaps_are_not() {
    check(counter(0, 500), &[(0, uj(500)), (1, uj(400)), (2, uj(450))], &[uncertain(FaultCause::Jumped, 0), good(50)]);
    check(counter(0, 500), &[(0, uj(0)), (9_000, uj(1_000))], &[good(1_000)]);
}

#[test]
fn values_beyond_the_range_are_ambiguous() {
    check(counter(RANGE, 500), &[(0, uj(u64::MAX)), (1, uj(0))], &[uncertain(FaultCause::Jumped, 0)]);
    check(
        counter(u64::MAX, u32::MAX),
        &[(0, uj(u64::MAX)), (u64::MAX / SECOND, uj(5))],
        &[uncertain(FaultCause::MayHaveWrapped, 5)],
    );
}

#[test]
fn without_a_starting_point_the_first_reading_becomes_it() {
    let reads = [(0, failure()), (1, uj(1_000)), (2, uj(3_000))];
    check(counter(RANGE, 500), &reads, &[uncertain(FaultCause::NoStart, 0), good(2_000)]);
}

#[test]
fn time_that_does_not_advance_allows_only_the_update_step() {
    check(counter(RANGE, 500), &[(1, uj(0)), (1, uj(1_000))], &[good(1_000)]);
    check(counter(RANGE, 500), &[(1, uj(0)), (0, uj(90_000_000))], &[uncertain(FaultCause::Jumped, 0)]);
}

fn uw(value: u64) -> Reading {
    Reading::PowerUw(value)
}

#[test]
fn power_is_the_mean_of_two_readings_over_real_time() {
    check(Meter::Power, &[(0, uw(10_000_000)), (1, uw(20_000_000))], &[good(15_000_000)]);
    check(Meter::Power, &[(0, uw(10_000_000)), (3, uw(10_000_000))], &[good(30_000_000)]);
}

#[test]
fn power_merges_windows_too() {
    let merged = Delta { merged: 2, ..good(20_000_000) };
    check(
        Meter::Power,
        &[(0, uw(10_000_000)), (1, failure()), (2, uw(10_000_000))],
        &[failed(FaultCause::Unreadable), merged],
    );
}

#[test]
fn the_power_of_a_long_gap_is_not_known_and_the_next_reading_is_a_start() {
    let lost = failed(FaultCause::Unreadable);
    let after = |merged, measured| Delta { merged, ..good(measured) };
    let unknown = |merged| Delta { merged, ..uncertain(FaultCause::NoStart, 0) };
    let ten_watts = || uw(10_000_000);
    for (reads, expected) in [
        // 10 s are bridged, more are not, however many windows that is.
        (vec![(0, ten_watts()), (5, failure()), (10, ten_watts())], vec![lost, after(2, 100_000_000)]),
        (
            vec![(0, ten_watts()), (5, failure()), (11, ten_watts()), (12, ten_watts())],
            vec![lost, unknown(2), good(10_000_000)],
        ),
        (vec![(0, ten_watts()), (7, failure()), (14, failure()), (21, ten_watts())], vec![lost, lost, unknown(3)]),
        // A long window is not a gap.
        (vec![(0, ten_watts()), (60, ten_watts())], vec![good(600_000_000)]),
    ] {
        check(Meter::Power, &reads, &expected);
    }
    // A counter remembers.
    let reads = [(0, uj(0)), (30, failure()), (60, uj(600_000_000))];
    check(counter(RANGE, 500), &reads, &[lost, after(2, 600_000_000)]);
}

#[test]
fn busy_time_whose_power_is_not_known_waits_for_the_next_that_is() {
    let mut meters = Meters::new(&[domain(Meter::BusyPower, Some(0))]);
    let reading = |watts: u64| Reading::BusyPowerUw(watts * 1_000_000);
    let merged = |merged, measured| Delta { merged, ..good(measured) };
    for (window, (busy_ns, reading, expected)) in (1..).zip([
        (SECOND, reading(2), good(2_000_000)),
        (SECOND, failure(), failed(FaultCause::Unreadable)),
        (SECOND / 2, failure(), failed(FaultCause::Unreadable)),
        (SECOND / 4, reading(4), merged(3, 7_000_000)),
        (SECOND, reading(4), good(4_000_000)),
    ]) {
        let load = [SocketLoad { socket: 0, cpus: 2, busy_ns }];
        assert_eq!(
            meters.advance(MonotonicNs(window * SECOND), &[reading], SECOND, &on(&load)),
            [expected],
            "{window}"
        );
    }
}

#[test]
fn half_microjoules_of_power_are_not_lost() {
    let reads: Vec<_> = (0..=4).map(|second| (second, uw(second % 2))).collect();
    check(Meter::Power, &reads, &[good(0), good(1), good(0), good(1)]);
}

#[test]
fn absurd_power_saturates() {
    let mut meters = Meters::new(&[domain(Meter::Power, None)]);
    meters.start(MonotonicNs(0), &[uw(u64::MAX)]);
    let deltas = meters.advance(MonotonicNs(u64::MAX), &[uw(u64::MAX)], SECOND, &Usage::default());
    assert_eq!(deltas, [good(u64::MAX)]);
}

proptest! {
    /// Whatever wraps and however many reads fail: the sum is what was used.
    #[test]
    fn counter_deltas_sum_to_the_true_total(
        start in 0..=1_000_000_u64,
        // (µJ used in this window, whether its read fails)
        windows in proptest::collection::vec((0..200_000_u64, any::<bool>()), 1..200),
    ) {
        let range = 1_000_000;
        let modulus = range + UNIT;
        // One joule of range at 1 W: at most 2 windows may go unread in a row.
        let mut meters = Meters::new(&[domain(counter(range, 1), None)]);
        meters.start(MonotonicNs(0), &[uj(start)]);
        let (mut used, mut seen, mut unread) = (0, 0, 0);
        for (index, (amount, fails)) in windows.iter().enumerate() {
            used += amount;
            let last = index + 1 == windows.len();
            let fails = *fails && unread < 2 && !last;
            unread = if fails { unread + 1 } else { 0 };
            let reading = if fails { failure() } else { uj((start + used) % modulus) };
            // 0.25 s per window: up to 0.8 W.
            let at = MonotonicNs((index as u64 + 1) * SECOND / 4);
            let delta = meters.advance(at, &[reading], SECOND / 4, &Usage::default())[0];
            prop_assert!(!delta.fault.is_some_and(FaultCause::is_ambiguous));
            prop_assert_eq!(delta.fault.is_some_and(FaultCause::is_failed_read), fails);
            seen += delta.measured.0;
        }
        prop_assert_eq!(seen, used);
    }

    #[test]
    fn power_loses_less_than_one_microjoule_over_time(
        powers in proptest::collection::vec((0..100_000_000_000_u64, 1..5_000_000_000_u64), 2..100),
    ) {
        let mut meters = Meters::new(&[domain(Meter::Power, None)]);
        let (mut at, mut before, mut doubled, mut seen) = (0, powers[0].0, 0_u128, 0_u128);
        meters.start(MonotonicNs(0), &[uw(before)]);
        for (power, elapsed) in &powers[1..] {
            at += elapsed;
            doubled += u128::from(before + power) * u128::from(*elapsed);
            seen += u128::from(meters.advance(MonotonicNs(at), &[uw(*power)], SECOND, &Usage::default())[0].measured.0);
            before = *power;
        }
        prop_assert_eq!(seen, doubled / (2 * UW_NS_PER_UJ));
    }

    #[test]
    fn no_reading_panics(values in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..20), range: u64, unit: u64, watts: u32) {
        let meter = Meter::Counter { range_uj: range, unit_uj: unit, max_watts: watts };
        let mut meters = Meters::new(&[domain(meter, None), domain(Meter::Power, Some(1))]);
        for (at, value) in values {
            meters.advance(MonotonicNs(at), &[uj(value), uw(value)], at, &Usage::default());
        }
    }
}
