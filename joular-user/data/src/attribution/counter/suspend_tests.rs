//! What counters gained while the machine was suspended is nobody's.

use proptest::prelude::*;

use super::*;
use crate::model::domain::Label;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// A real register: 2³² steps of 61.035 µJ.
const RANGE: u64 = 262_143_328_850;

fn domain(name: &str, less: Vec<usize>) -> Domain {
    let meter = Meter::Counter { range_uj: RANGE, unit_uj: 61, max_watts: 1_000 };
    Domain { less, ..Domain::new(name, Some(0), "test", Label::Measured, meter) }
}

/// A window of a second, with readings of all domains and the time suspended in it.
type Step<'a> = (&'a [u64], u64);

/// Measured energy and fault of every domain in every window after the first readings.
fn deltas(domains: &[Domain], steps: &[Step<'_>]) -> Vec<Vec<(u64, Option<FaultCause>)>> {
    let readings = |counters: &[u64]| counters.iter().map(|counter| Reading::CounterUj(*counter)).collect::<Vec<_>>();
    let mut meters = Meters::new(domains);
    meters.start(MonotonicNs(0), &readings(steps[0].0));
    let windows = (1..).zip(&steps[1..]).map(|(second, (counters, suspended_ns))| {
        meters.suspended(*suspended_ns);
        let deltas = meters.advance(MonotonicNs(second * SECOND), &readings(counters), SECOND, &Usage::default());
        deltas.into_iter().map(|delta| (delta.measured.0, delta.fault)).collect()
    });
    windows.collect()
}

const SUSPENDED: Option<FaultCause> = Some(FaultCause::Suspended);

#[test]
fn a_counter_that_went_on_has_all_it_gained_and_is_marked() {
    let package = [domain("package", vec![])];
    // 8 W for an hour are more than the 2 kJ that could be drawn in the window's own second.
    let found = deltas(&package, &[(&[100], 0), (&[28_800_000_100], HOUR), (&[28_830_000_100], 0)]);
    assert_eq!(found, [[(28_800_000_000, SUSPENDED)], [(30_000_000, None)]]);
}

/// Suspend to memory clears the registers. An hour would allow 7 MJ, so a wrap would be plausible.
#[test]
fn a_counter_that_was_reset_has_not_wrapped() {
    let package = [domain("package", vec![])];
    for before in [500_000_000, RANGE - 500_000_000] {
        let found = deltas(&package, &[(&[before], 0), (&[3_000_000], HOUR), (&[23_000_000], 0)]);
        assert_eq!(found, [[(0, SUSPENDED)], [(20_000_000, None)]], "from {before}");
    }
}

#[test]
fn more_than_the_machine_can_draw_is_still_a_jump() {
    let package = [domain("package", vec![])];
    let found = deltas(&package, &[(&[0], 0), (&[100_000_000_000], SECOND)]);
    assert_eq!(found, [[(0, SUSPENDED)]], "100 kJ in two seconds");
}

#[test]
fn a_suspend_while_a_counter_could_not_be_read_is_remembered() {
    let mut meters = Meters::new(&[domain("package", vec![])]);
    let reading = |counter| [Reading::CounterUj(counter)];
    meters.start(MonotonicNs(0), &reading(1));
    meters.suspended(HOUR);
    let failed = meters.advance(
        MonotonicNs(SECOND),
        &[Reading::failed(FaultCause::Unreadable, "EIO")],
        SECOND,
        &Usage::default(),
    );
    assert_eq!(failed[0].fault, Some(FaultCause::Unreadable));
    meters.suspended(0);
    let late = meters.advance(MonotonicNs(2 * SECOND), &reading(9_000_000_001), SECOND, &Usage::default());
    assert_eq!((late[0].measured.0, late[0].fault, late[0].merged), (9_000_000_000, SUSPENDED, 2));
}

#[test]
fn what_is_left_of_a_counter_after_its_parts_is_marked_too() {
    let domains = [domain("platform", vec![1]), domain("package", vec![])];
    let found = deltas(&domains, &[(&[0, 0], 0), (&[900, 300], HOUR), (&[1_500, 500], 0)]);
    assert_eq!(found, [[(600, SUSPENDED), (300, SUSPENDED)], [(400, None), (200, None)]]);
}

#[test]
fn powers_and_models_know_of_no_suspend() {
    let power = Domain::new("machine", None, "test", Label::Reported, Meter::Power);
    let mut meters = Meters::new(&[power]);
    meters.start(MonotonicNs(0), &[Reading::PowerUw(10_000_000)]);
    meters.suspended(HOUR);
    let delta = meters.advance(MonotonicNs(SECOND), &[Reading::PowerUw(10_000_000)], SECOND, &Usage::default())[0];
    assert_eq!(delta, Delta { measured: MicroJoules(10_000_000), ..Delta::default() }, "10 W in the second awake");
}

proptest! {
    /// Whatever is suspended when, the windows after it have exactly what the counter gained in them.
    #[test]
    fn only_windows_with_a_suspend_are_marked(
        steps in prop::collection::vec((1..1_000_000_000_u64, prop::bool::weighted(0.2), any::<bool>()), 1..40),
    ) {
        let mut counter = 0;
        let mut expected = Vec::new();
        let mut readings = vec![([0], 0)];
        for (gain, is_suspended, is_reset) in steps {
            let was_reset = is_suspended && is_reset && gain < counter;
            counter = if was_reset { gain } else { counter + gain };
            readings.push(([counter], if is_suspended { HOUR } else { 0 }));
            expected.push(vec![(if was_reset { 0 } else { gain }, is_suspended.then_some(FaultCause::Suspended))]);
        }
        let steps: Vec<Step<'_>> = readings.iter().map(|(counters, ns)| (counters.as_slice(), *ns)).collect();
        prop_assert_eq!(deltas(&[domain("dram", vec![])], &steps), expected);
    }
}
