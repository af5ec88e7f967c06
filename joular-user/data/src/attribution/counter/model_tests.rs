//! Models are computed from what was done in a window.

use super::*;
use crate::model::{domain::Label, use_curve::UseCurve};

const SECOND: u64 = 1_000_000_000;

fn domain(meter: Meter, socket: Option<u32>) -> Domain {
    Domain::new("test", socket, "test", Label::Measured, meter)
}

const fn on(sockets: &[SocketLoad]) -> Usage<'_> {
    Usage { sockets, moved: [0; 8] }
}

fn good(measured: u64) -> Delta {
    Delta { measured: MicroJoules(measured), ..Delta::default() }
}

#[test]
fn a_model_is_linear_between_idle_and_full() {
    let load = [SocketLoad { socket: 0, cpus: 2, busy_ns: SECOND }, SocketLoad { socket: 1, cpus: 2, busy_ns: 0 }];
    let model = Meter::Model { idle_uw: 500_000, full_uw: 2_000_000 };
    let expected = |measured, floor| Delta { static_floor: Some(MicroJoules(floor)), ..good(measured) };
    for (socket, delta) in [
        (None, expected(3_500_000, 2_000_000)),
        (Some(0), expected(2_500_000, 1_000_000)),
        (Some(1), expected(1_000_000, 1_000_000)),
        (Some(7), expected(0, 0)),
    ] {
        let mut meters = Meters::new(&[domain(model, socket)]);
        assert_eq!(meters.advance(MonotonicNs(0), &[Reading::Modelled], SECOND, &on(&load)), [delta], "{socket:?}");
    }
}

/// 1.5 pJ and more a byte, and 2 W: nothing of a µJ is lost over windows.
#[test]
fn bytes_have_what_they_cost_beside_what_is_always_drawn() {
    let costs = ByteCosts { sent_pj: 1_500, device_read_pj: 250_000, ..ByteCosts::default() };
    let mut meters = Meters::new(&[Domain::per_byte("network", "test", 2_000_000, costs)]);
    let delta = |measured, floor| Delta { static_floor: Some(MicroJoules(floor)), ..good(measured) };
    for (window_ns, sent, read, expected) in [
        (SECOND, 1_000_000, 0, delta(2_000_000 + 1_500, 2_000_000)),
        (SECOND / 2, 1, 0, delta(1_000_000, 1_000_000)),
        (0, 0, 3, delta(0, 0)),
        (0, 333, 0, delta(1, 0)),
        (0, 0, 1_000_000, delta(250_000, 0)),
    ] {
        let moved = [sent, 9, 9, 9, 9, 9, read, 9];
        let usage = Usage { sockets: &[], moved };
        assert_eq!(meters.advance(MonotonicNs(0), &[Reading::Modelled], window_ns, &usage), [expected], "{sent}");
    }
}

#[test]
fn a_model_whose_full_is_below_idle_never_goes_negative() {
    let mut meters = Meters::new(&[domain(Meter::Model { idle_uw: u64::MAX, full_uw: 1 }, None)]);
    let load = [SocketLoad { socket: 0, cpus: u32::MAX, busy_ns: u64::MAX }];
    let delta = meters.advance(MonotonicNs(0), &[], u64::MAX, &on(&load))[0];
    assert_eq!(delta.static_floor, Some(delta.measured));
}

/// 2 + 3u − u² + 4u³ W of a machine, however many CPUs it has.
#[test]
fn a_curve_is_of_the_use_of_all_cpus_together() {
    let curve = UseCurve::of_watts(&[2.0, 3.0, -1.0, 4.0]).unwrap();
    let load = |busy_ns| [SocketLoad { socket: 0, cpus: 3, busy_ns }, SocketLoad { socket: 1, cpus: 1, busy_ns: 0 }];
    let delta = |measured, floor| Delta { static_floor: Some(MicroJoules(floor)), ..good(measured) };
    for (busy_ns, window_ns, expected) in [
        (0, SECOND, delta(2_000_000, 2_000_000)),
        (SECOND, SECOND / 2, delta(1_875_000, 1_000_000)),
        (4 * SECOND, SECOND, delta(8_000_000, 2_000_000)),
        (9 * SECOND, SECOND, delta(8_000_000, 2_000_000)),
        (0, 0, delta(0, 0)),
    ] {
        let mut meters = Meters::new(&[domain(Meter::Use(curve), None)]);
        let found = meters.advance(MonotonicNs(0), &[Reading::Modelled], window_ns, &on(&load(busy_ns)));
        assert_eq!(found, [expected], "{busy_ns} of {window_ns}");
    }
}

#[test]
fn what_a_curve_leaves_of_a_microjoule_comes_later() {
    let curve = UseCurve::of_watts(&[1e-6]).unwrap();
    let mut meters = Meters::new(&[domain(Meter::Use(curve), None)]);
    let mut advance = || meters.advance(MonotonicNs(0), &[Reading::Modelled], SECOND / 4, &on(&[]))[0].measured.0;
    assert_eq!([advance(), advance(), advance(), advance(), advance()], [0, 0, 0, 1, 0]);
}

#[test]
fn a_curve_below_what_it_is_at_rest_never_goes_below_it() {
    let curve = UseCurve::of_watts(&[5.0, -9.0]).unwrap();
    let mut meters = Meters::new(&[domain(Meter::Use(curve), None)]);
    let load = [SocketLoad { socket: 0, cpus: 1, busy_ns: SECOND }];
    let delta = meters.advance(MonotonicNs(0), &[Reading::Modelled], SECOND, &on(&load))[0];
    assert_eq!((delta.measured, delta.static_floor), (MicroJoules(5_000_000), Some(MicroJoules(5_000_000))));
}
