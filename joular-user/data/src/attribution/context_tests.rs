//! Tests what a window's context does to its energy, and that it is passed on.

use super::{Engine, window_report::WindowReport};
use crate::{
    events::{CpuTimes, EnergyReading, Event, ProcessInfo, RunInfo, ThreadTime, Window, WindowContext},
    model::{
        domain::{Domain, FaultCause, Label, Meter, Reading},
        policy::Policy,
        units::{MicroJoules, MonotonicNs, Pid, Tid},
    },
};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;

fn run(idle: &str) -> Event {
    let meter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 61, max_watts: 1_000 };
    Event::RunStarted(Box::new(RunInfo {
        sockets: 1,
        domains: vec![Domain::new("package", Some(0), "test", Label::Measured, meter)],
        policy: Policy { idle: idle.parse().unwrap(), idle_milliwatts: 10_000, ..Policy::default() },
        ..RunInfo::default()
    }))
}

fn target() -> Event {
    Event::Process(Box::new(ProcessInfo { pid: Pid(1), is_target: true, ..ProcessInfo::default() }))
}

fn reading(second: u64, reading: Reading) -> Event {
    Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND), readings: vec![reading] })
}

fn suspended(ns: u64) -> Event {
    Event::Context(Box::new(WindowContext { suspended_ns: ns, ..WindowContext::default() }))
}

/// A thread of a target ran for half of it.
fn window(index: u64, cycles: u64) -> Event {
    let cpu_ns = SECOND / 2;
    Event::Window(Box::new(Window {
        index,
        start: MonotonicNs(index * SECOND),
        end: MonotonicNs((index + 1) * SECOND),
        threads: vec![ThreadTime { tid: Tid(1), pid: Pid(1), cpu_ns, cycles, ..ThreadTime::default() }],
        cpus: vec![CpuTimes { busy_ns: cpu_ns, idle_ns: SECOND - cpu_ns, ..CpuTimes::default() }],
        ..Window::default()
    }))
}

fn reports(events: &[Event]) -> Vec<WindowReport> {
    let mut engine = Engine::default();
    events.iter().filter_map(|event| engine.apply(event)).collect()
}

/// Energy of the thread, the item of suspends, and what is measured, of each window.
fn energies(reports: &[WindowReport]) -> Vec<(u64, u64, u64)> {
    let of = |report: &WindowReport| {
        let audit = &report.domains[0];
        let whole = [audit.attributed, audit.static_share, audit.unattributed.total()].into_iter().sum::<MicroJoules>();
        assert_eq!(whole, audit.measured, "{audit:?}");
        (report.threads[0].energy.0, audit.unattributed.suspended.0, audit.measured.0)
    };
    reports.iter().map(of).collect()
}

#[test]
fn energy_of_a_suspend_is_no_threads() {
    for idle in ["separate", "spread", "active"] {
        let found = reports(&[
            run(idle),
            target(),
            reading(0, Reading::CounterUj(0)),
            reading(1, Reading::CounterUj(1_500_000_000)),
            suspended(HOUR),
            window(0, 0),
            reading(2, Reading::CounterUj(1_500_000_000)),
            suspended(0),
            window(1, 0),
        ]);
        assert_eq!(energies(&found), [(0, 1_500_000_000, 1_500_000_000), (0, 0, 0)], "{idle}");
        assert_eq!(found[0].domains[0].fault, Some(FaultCause::Suspended));
        assert!(found[0].is_ambiguous());
    }
}

#[test]
fn what_was_missed_before_a_suspend_comes_with_it_and_not_later() {
    let found = reports(&[
        run("spread"),
        target(),
        reading(0, Reading::CounterUj(0)),
        reading(1, Reading::failed(FaultCause::Gone, "gone")),
        suspended(0),
        window(0, 0),
        reading(2, Reading::CounterUj(700)),
        suspended(HOUR),
        window(1, 0),
        reading(3, Reading::CounterUj(1_000)),
        suspended(0),
        window(2, 0),
    ]);
    assert_eq!(energies(&found), [(0, 0, 0), (0, 700, 700), (300, 0, 300)]);
}

#[test]
fn a_context_is_of_the_next_window_only() {
    let given = WindowContext {
        governor: Some("performance".into()),
        mean_frequency_khz: Some(1_000),
        ..WindowContext::default()
    };
    let found =
        reports(&[run("spread"), target(), Event::Context(Box::new(given.clone())), window(0, 0), window(1, 0)]);
    assert_eq!((found[0].context.as_ref(), found[1].context.as_ref()), (Some(&given), None));
}

#[test]
fn counted_cycles_say_the_frequency_better_than_anything_else() {
    let sampled = WindowContext { mean_frequency_khz: Some(800_000), ..WindowContext::default() };
    let found = reports(&[run("spread"), target(), Event::Context(Box::new(sampled)), window(0, 1_500_000_000)]);
    // 1.5 · 10⁹ cycles in half a second.
    assert_eq!(found[0].context.as_ref().unwrap().mean_frequency_khz, Some(3_000_000));
}
