use proptest::prelude::*;

use super::*;
use crate::{
    attribution::counter::{Meters, Usage},
    model::{
        domain::{Label, Meter, Reading},
        units::MonotonicNs,
    },
};

const SECOND: u64 = 1_000_000_000;

/// A whole (first) that counts the others too.
fn whole_of(parts: usize) -> Vec<Domain> {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1000 };
    let mut domains = vec![Domain::new("whole", None, "test", Label::Measured, meter); parts + 1];
    domains[0].less = (1..=parts).collect();
    domains
}

fn good(measured: u64) -> Delta {
    Delta { measured: MicroJoules(measured), ..Delta::default() }
}

fn faulty(fault: FaultCause, measured: u64) -> Delta {
    Delta { fault: Some(fault), ..good(measured) }
}

fn uj(value: u64) -> Reading {
    Reading::CounterUj(value)
}

fn gone() -> Reading {
    Reading::failed(FaultCause::Gone, "gone")
}

/// The rest in each window after the first readings: (whole, part) each.
#[track_caller]
fn check(readings: &[(Reading, Reading)], expected: &[Delta]) {
    let mut meters = Meters::new(&whole_of(1));
    let mut rests = Vec::new();
    for (second, (whole, part)) in readings.iter().enumerate() {
        let (at, now) = (MonotonicNs(second as u64 * SECOND), [whole.clone(), part.clone()]);
        match second {
            0 => meters.start(at, &now),
            _ => rests.push(meters.advance(at, &now, SECOND, &Usage::default())[0]),
        }
    }
    assert_eq!(rests, expected);
}

#[test]
fn the_rest_is_the_whole_without_its_parts() {
    check(&[(uj(0), uj(0)), (uj(100), uj(30)), (uj(150), uj(80))], &[good(70), good(0)]);
}

#[test]
fn parts_that_run_ahead_are_made_up_for_later() {
    check(&[(uj(0), uj(0)), (uj(100), uj(110)), (uj(200), uj(150))], &[good(0), good(50)]);
}

#[test]
fn whoever_of_them_fails_the_rest_comes_whole_with_the_next_good_window() {
    let merged = Delta { merged: 2, ..good(130) };
    let failed = faulty(FaultCause::Gone, 0);
    check(&[(uj(0), uj(0)), (gone(), uj(30)), (uj(200), uj(70)), (uj(210), uj(70))], &[failed, merged, good(10)]);
    check(&[(uj(0), uj(0)), (uj(90), gone()), (uj(200), uj(70))], &[failed, merged]);
    let merged = Delta { merged: 3, ..good(130) };
    check(&[(uj(0), uj(0)), (uj(90), gone()), (gone(), uj(60)), (uj(200), uj(70))], &[failed, failed, merged]);
}

#[test]
fn a_doubt_about_a_part_is_one_about_the_rest() {
    // The part jumps: its energy is unknown, and so is what it leaves.
    check(&[(uj(0), uj(500)), (uj(100), uj(30)), (uj(200), uj(70))], &[faulty(FaultCause::Jumped, 100), good(60)]);
}

#[test]
fn a_whole_that_jumps_owes_nothing_to_its_parts() {
    check(&[(uj(900), uj(0)), (uj(100), uj(30)), (uj(200), uj(70))], &[faulty(FaultCause::Jumped, 0), good(60)]);
    // Nor does it forget what it owed before.
    check(
        &[(uj(900), uj(0)), (uj(910), uj(15)), (uj(100), uj(30)), (uj(200), uj(70))],
        &[good(0), faulty(FaultCause::Jumped, 0), good(55)],
    );
}

#[test]
fn a_whole_that_is_stuck_has_its_energy_later() {
    let (stuck, merged) = (faulty(FaultCause::Stuck, 0), Delta { merged: 2, ..good(130) });
    check(&[(uj(0), uj(0)), (uj(0), uj(30)), (uj(200), uj(70))], &[stuck, merged]);
}

#[test]
fn an_index_that_names_no_part_takes_nothing_off() {
    for less in [vec![0], vec![7], vec![1, 1], vec![2]] {
        let mut domains = whole_of(2);
        domains[2].less = vec![0];
        domains[0].less.clone_from(&less);
        let mut meters = Meters::new(&domains);
        meters.start(MonotonicNs(0), &[uj(0), uj(0), uj(0)]);
        let rest = meters.advance(MonotonicNs(SECOND), &[uj(100), uj(30), uj(200)], SECOND, &Usage::default())[0];
        assert_eq!(rest, good(if less == [1, 1] { 70 } else { 100 }), "{less:?}");
    }
}

proptest! {
    /// Whatever fails and whatever runs ahead: rest and parts are the whole.
    #[test]
    fn rest_and_parts_sum_to_the_whole(
        // Per window: the rest's and two parts' energy, the skew of the whole's
        // read, and which reads fail.
        windows in proptest::collection::vec(((1..9_000_u64, 0..9_000_u64, 0..9_000_u64), 0..500_u64, 0..16_u8), 1..100),
    ) {
        let mut meters = Meters::new(&whole_of(2));
        meters.start(MonotonicNs(0), &[uj(0), uj(0), uj(0)]);
        let (mut total, mut parts, mut seen) = (0, [0, 0], 0);
        let settle = ((1, 0, 0), 0, 0);
        for (index, ((own, first, second), skew, fails)) in windows.iter().chain([&settle]).enumerate() {
            parts = [parts[0] + first, parts[1] + second];
            total += own + first + second;
            let reads = |bit: u8, value: u64| if fails & bit == 0 { uj(value) } else { gone() };
            // The whole always moves: the skew is less than what was used.
            let late = if index == windows.len() { 0 } else { (*skew).min(own + first + second - 1) };
            let readings = [reads(1, total - late), reads(2, parts[0]), reads(4, parts[1])];
            let deltas = meters.advance(MonotonicNs((index as u64 + 1) * SECOND), &readings, SECOND, &Usage::default());
            prop_assert!(!deltas[0].fault.is_some_and(FaultCause::is_ambiguous));
            seen += deltas[0].measured.0;
        }
        prop_assert_eq!(seen, total - parts[0] - parts[1]);
    }
}
