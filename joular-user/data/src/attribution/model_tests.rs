//! Tests that energy which a model computes from CPU time is divided by CPU time: each thread gets
//! what the model would say of it alone, whatever the policy has for counters.

use proptest::prelude::*;

use super::{Engine, window_report::WindowReport};
use crate::{
    events::{CpuTimes, EnergyReading, Event, ProcessInfo, RunInfo, ThreadTime, Window},
    model::{
        domain::{DividedBy, Domain, Meter, Reading},
        policy::{Policy, WeightUnit},
        units::{MonotonicNs, Pid, Tid},
        use_curve::UseCurve,
    },
};

const SECOND: u64 = 1_000_000_000;
const CPUS: u32 = 4;
/// Above idle, of a vCPU: 3 W.
const MODEL: Meter = Meter::Model { idle_uw: 1_000_000, full_uw: 4_000_000 };
const BUSY_UW: u64 = 3_000_000;

/// CPU time of a thread, of which some beside a busy hyper-thread, and its cycles.
#[derive(Clone, Copy, Debug)]
struct Load {
    cpu_ns: u64,
    corun_ns: u64,
    cycles: u64,
}

/// A second of threads with these loads on one socket.
fn report(domain: Domain, policy: &Policy, loads: &[Load]) -> WindowReport {
    let readings = match domain.meter {
        Meter::BusyPower => vec![Reading::BusyPowerUw(BUSY_UW)],
        _ => vec![Reading::Modelled],
    };
    let run = RunInfo { domains: vec![domain], policy: policy.clone(), sockets: 1, ..RunInfo::default() };
    let thread = |(load, tid): (&Load, u32)| ThreadTime {
        tid: Tid(tid),
        pid: Pid(7),
        cpu_ns: load.cpu_ns,
        corun_ns: load.corun_ns,
        cycles: load.cycles,
        ..ThreadTime::default()
    };
    let busy_ns: u64 = loads.iter().map(|load| load.cpu_ns).sum();
    let cpu = |cpu: u32| {
        let busy_ns = busy_ns.saturating_sub(u64::from(cpu) * SECOND).min(SECOND);
        CpuTimes { cpu, busy_ns, idle_ns: SECOND - busy_ns, ..CpuTimes::default() }
    };
    let window = Window {
        end: MonotonicNs(SECOND),
        threads: loads.iter().zip(8..).map(thread).collect(),
        cpus: (0..CPUS).map(cpu).collect(),
        ..Window::default()
    };
    let energy = |at| Event::Energy(EnergyReading { read_at: MonotonicNs(at), readings: readings.clone() });
    let process = ProcessInfo { pid: Pid(7), is_target: true, ..ProcessInfo::default() };
    let events = [
        Event::RunStarted(Box::new(run)),
        Event::Process(Box::new(process)),
        energy(0),
        energy(SECOND),
        Event::Window(Box::new(window)),
    ];
    let mut engine = Engine::default();
    events.iter().find_map(|event| engine.apply(event)).unwrap()
}

fn modelled(meter: Meter) -> Domain {
    Domain::modelled("cpu", None, "test", meter)
}

fn energies(report: &WindowReport) -> Vec<u64> {
    report.threads.iter().map(|thread| thread.energy.0).collect()
}

/// A runs alone on its core, B and C share one, all for the whole second.
const ONE_ALONE_AND_TWO_ON_A_CORE: [Load; 3] = [
    Load { cpu_ns: SECOND, corun_ns: 0, cycles: 3 * SECOND },
    Load { cpu_ns: SECOND, corun_ns: SECOND, cycles: 3 * SECOND },
    Load { cpu_ns: SECOND, corun_ns: SECOND, cycles: 3 * SECOND },
];

#[test]
fn threads_of_a_core_and_one_alone_get_the_same_of_a_model_that_knows_only_time() {
    for meter in [MODEL, Meter::BusyPower] {
        let report = report(modelled(meter), &Policy::default(), &ONE_ALONE_AND_TWO_ON_A_CORE);
        assert_eq!(energies(&report), [BUSY_UW; 3], "{meter:?}");
    }
}

/// 2 + 4u² W: 3 W with two of four CPUs busy, of which 2 W are drawn at rest too.
#[test]
fn what_a_board_draws_above_rest_is_divided_by_cpu_time() {
    let curve = UseCurve::of_watts(&[2.0, 0.0, 4.0]).unwrap();
    let board = Domain::modelled("platform", None, "board", Meter::Use(curve));
    let load = |cpu_ns| Load { cpu_ns, corun_ns: cpu_ns / 2, cycles: 7 };
    let report = report(board, &Policy::default(), &[load(SECOND), load(SECOND / 2), load(SECOND / 2)]);
    assert_eq!(energies(&report), [500_000, 250_000, 250_000]);
}

#[test]
fn a_models_domain_that_says_cpu_weights_is_divided_by_them() {
    let domain = Domain { divided_by: DividedBy::CpuWeights, ..modelled(MODEL) };
    let report = report(domain, &Policy::default(), &ONE_ALONE_AND_TWO_ON_A_CORE);
    // 9 J by 1 : 0.5625 : 0.5625.
    assert_eq!(energies(&report), [4_235_294, 2_382_353, 2_382_353]);
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (0_u64..=SECOND, 0_u64..=SECOND, 0_u64..5 * SECOND).prop_map(|(cpu_ns, corun_ns, cycles)| Load {
        cpu_ns,
        corun_ns: corun_ns.min(cpu_ns),
        cycles,
    });
    // As many as there are CPUs.
    prop::collection::vec(load, 1..=4)
}

proptest! {
    #[test]
    fn a_thread_gets_what_the_model_gives_it_alone(
        loads in loads(), smt_permille in 1_000_u32..=2_000, in_cycles: bool, by_frequency: bool,
    ) {
        let weight_unit = if in_cycles { WeightUnit::Cycles } else { WeightUnit::Time };
        let policy = Policy { smt_permille, weight_unit, ..Policy::default() };
        let domain = modelled(if by_frequency { Meter::BusyPower } else { MODEL });
        let together = energies(&report(domain.clone(), &policy, &loads));
        for (load, together) in loads.iter().zip(together) {
            let alone = energies(&report(domain.clone(), &policy, &[*load]))[0];
            prop_assert!(together.abs_diff(alone) <= 1, "{together} µJ of {alone} µJ");
        }
    }
}
