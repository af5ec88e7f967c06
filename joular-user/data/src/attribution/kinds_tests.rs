//! Tests that samples of different kinds, and domains that are divided by different things, do not
//! affect each other.

use joular_ebpf::abi::{Place, ThreadKey};

use super::{Engine, window_report::WindowReport};
use crate::{
    events::{
        CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunInfo, SampleCount, SampleKind, Symbol, ThreadTime,
        Window,
    },
    model::{
        byte_costs::ByteCosts,
        domain::{DividedBy, Domain, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        quality::StackQuality,
        units::{Address, MicroJoules, MonotonicNs, Pid, Tid},
    },
};

const SECOND: u64 = 1_000_000_000;
const ENERGY_UJ: u64 = 9_000_000;
/// Of one thread on its CPU: seen three times in one place and once in another.
const CPU_TIME: [(SampleKind, u64, u32); 2] = [(SampleKind::CpuTime, 1, 3), (SampleKind::CpuTime, 2, 1)];

/// A window of one thread with these samples (kind, stack and count), and of a domain
/// divided so.
fn report(samples: &[(SampleKind, u64, u32)], divided_by: DividedBy) -> WindowReport {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1_000 };
    let domain = Domain { divided_by, ..Domain::new("package", None, "test", Label::Measured, meter) };
    let run = RunInfo { domains: vec![domain], sockets: 1, profiler_pid: Pid(99), ..RunInfo::default() };
    let process = ProcessInfo { pid: Pid(7), is_target: true, ..ProcessInfo::default() };
    let stack = |id: u64| {
        let frames = vec![Address(id)];
        Event::Stack(RawStack { id, is_kernel: false, quality: StackQuality::default(), frames })
    };
    let symbol = |address: u64| {
        let frames = vec![Frame::new(FrameKind::Native, format!("f{address}"))];
        Symbol { address: Address(address), frames }
    };
    let reading = |second: u64| {
        let readings = vec![Reading::CounterUj(second * ENERGY_UJ)];
        Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND), readings })
    };
    let thread_key = ThreadKey::new(8, 0, Place::default()).0;
    let sample = |&(kind, user_stack, count): &(SampleKind, u64, u32)| SampleCount {
        kind,
        tid: Tid(8),
        pid: Pid(7),
        thread_key,
        user_stack,
        count,
        ..SampleCount::default()
    };
    let time = ThreadTime { tid: Tid(8), pid: Pid(7), cpu_ns: SECOND, samples: 4, ..ThreadTime::default() };
    let window = Window {
        end: MonotonicNs(SECOND),
        threads: vec![time],
        samples: samples.iter().map(sample).collect(),
        cpus: vec![CpuTimes::default()],
        ..Window::default()
    };
    let events = [
        Event::RunStarted(Box::new(run)),
        Event::Process(Box::new(process)),
        stack(1),
        stack(2),
        Event::Symbols { pid: Pid(7), start_boottime_ns: 0, symbols: [1, 2].map(symbol).to_vec() },
        reading(0),
        reading(1),
        Event::Window(Box::new(window)),
    ];
    let mut engine = Engine::default();
    events.iter().find_map(|event| engine.apply(event)).unwrap()
}

#[test]
fn energy_of_cpu_time_is_divided_by_samples_of_cpu_time_only() {
    let expected = report(&CPU_TIME, DividedBy::CpuWeights);
    let energies: Vec<u64> = expected.branches.iter().map(|row| row.energy.0).collect();
    assert_eq!(energies.iter().sum::<u64>(), ENERGY_UJ);
    assert!(energies.contains(&(ENERGY_UJ / 4 * 3)), "{energies:?}");
    // Where it allocated, and that it did, changes no figure.
    let allocated = [(SampleKind::Allocation, 2, 1_000), (SampleKind::Allocation, 1, 7)];
    let both = [&CPU_TIME[..], &allocated].concat();
    assert_eq!(report(&both, DividedBy::CpuWeights), expected);
}

#[test]
fn samples_of_another_kind_do_not_stand_for_lost_ones() {
    let report = report(&[(SampleKind::Allocation, 1, 4)], DividedBy::CpuWeights);
    let rows: Vec<_> = report.branches.iter().map(|row| (row.kind, row.samples, row.energy.0)).collect();
    assert_eq!(rows, [(SampleKind::CpuTime, 4, ENERGY_UJ)], "the four samples of CPU time have lost their stacks");
}

/// Where no bytes were counted, nobody has a claim on what goes by bytes: it is not given to whoever ran.
#[test]
fn a_domain_that_is_divided_by_bytes_goes_to_nobody_for_its_cpu_time() {
    let report = report(&CPU_TIME, DividedBy::Bytes(ByteCosts { sent_pj: 1, ..ByteCosts::default() }));
    let [audit] = report.domains.as_slice() else { panic!("{:?}", report.domains) };
    assert_eq!((audit.measured, audit.attributed), (MicroJoules(ENERGY_UJ), MicroJoules(0)));
    assert_eq!(audit.unattributed.total(), MicroJoules(ENERGY_UJ));
    assert!(report.threads.iter().all(|thread| thread.energy == MicroJoules(0) && thread.cpu_ns == SECOND));
}
