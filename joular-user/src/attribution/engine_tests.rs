//! The engine as a whole: whatever a window holds, every level sums to the one
//! above it, and the same events give the same report.

use proptest::prelude::*;

use super::{Engine, report::WindowReport};
use crate::{
    energy::domain::{Domain, Label, Meter, Reading},
    events::{CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunInfo, SampleCount, Symbol, ThreadTime, Window},
    stacks::{Frame, FrameKind},
    units::{Address, MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
};

const WINDOW_NS: u64 = 1_000_000_000;

fn domain(name: &str, socket: Option<u32>, meter: Meter) -> Domain {
    Domain { name: name.into(), socket, source: "test".into(), label: Label::Measured, meter }
}

fn run(idle_policy: &str) -> Event {
    let counter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 61, max_watts: 1000 };
    Event::RunStarted(Box::new(RunInfo {
        run_id: "run".into(),
        host: "host".into(),
        started: UnixMicros(0),
        version: String::new(),
        kernel: String::new(),
        cpu_model: String::new(),
        arch: String::new(),
        online_cpus: 4,
        sockets: 2,
        memory_bytes: 0,
        command_line: Vec::new(),
        sampling_event: "cpu-clock".into(),
        frequency_hz: 99,
        interval_ns: WINDOW_NS,
        energy_source: "test".into(),
        energy_reason: String::new(),
        domains: vec![
            domain("package", Some(0), counter),
            domain("package", Some(1), counter),
            domain("dram", None, counter),
        ],
        idle_policy: idle_policy.into(),
        idle_milliwatts: 10_000,
        profiler_pid: Pid(99),
    }))
}

fn process(pid: u32) -> Event {
    Event::Process(Box::new(ProcessInfo { pid: Pid(pid), is_target: true, ..ProcessInfo::default() }))
}

fn readings(read_at: u64, values: [u64; 3]) -> Event {
    Event::Energy(EnergyReading { read_at: MonotonicNs(read_at), readings: values.map(Reading::CounterUj).to_vec() })
}

/// Threads of pids 1 and 2 (targets), 3 (other), 99 (the profiler), and the kernel's.
fn thread_times() -> impl Strategy<Value = Vec<ThreadTime>> {
    let one = (prop::sample::select(vec![1_u32, 2, 3, 99, 0]), 1_u32..6, 0_u32..2, 0_u64..WINDOW_NS, 0_u32..100);
    prop::collection::vec(one, 0..20).prop_map(|all| {
        let mut times: Vec<ThreadTime> = all
            .into_iter()
            .map(|(pid, thread, socket, cpu_ns, samples)| ThreadTime {
                tid: Tid(pid * 10 + thread),
                pid: Pid(pid),
                socket,
                is_kernel: pid == 0,
                cpu_ns,
                samples,
                ..ThreadTime::default()
            })
            .collect();
        times.sort_by_key(|time| (time.tid, time.socket));
        times.dedup_by_key(|time| (time.tid, time.socket));
        times
    })
}

/// Samples of those threads, with stacks 1 … 4, of which 4 was never sent.
fn samples_of(times: &[ThreadTime], stacks: &[u64]) -> Vec<SampleCount> {
    let sample = |(index, time): (usize, &ThreadTime)| SampleCount {
        tid: time.tid,
        pid: time.pid,
        thread_key: joular_ebpf::abi::ThreadKey::new(time.tid.0, 0, time.socket).0,
        user_stack: stacks[index % stacks.len()],
        kernel_stack: 0,
        count: time.samples,
    };
    times.iter().enumerate().filter(|(_, time)| time.samples > 0).map(sample).collect()
}

fn window(threads: Vec<ThreadTime>, samples: Vec<SampleCount>, index: u64) -> Event {
    let cpu = |cpu: u32| CpuTimes { cpu, socket: cpu / 2, unslotted_ns: u64::from(cpu) * 1000, ..CpuTimes::default() };
    Event::Window(Box::new(Window {
        index,
        start: MonotonicNs(index * WINDOW_NS),
        end: MonotonicNs((index + 1) * WINDOW_NS),
        threads,
        samples,
        cpus: (0..4).map(cpu).collect(),
        ..Window::default()
    }))
}

fn stacks() -> Vec<Event> {
    let stack = |id: u64| {
        let frames = (1..=id).map(|frame| Address(frame * 0x100)).collect();
        Event::Stack(RawStack { id, is_kernel: false, truncated: id == 3, frames })
    };
    let name = |address: u64| Symbol {
        address: Address(address),
        frames: vec![Frame::new(FrameKind::Native, format!("f{address:x}"))],
    };
    let symbols = vec![name(0x100), name(0x1ff)];
    vec![stack(1), stack(2), stack(3), Event::Symbols { pid: Pid(1), start_boottime_ns: 0, symbols }]
}

fn report(events: &[Event]) -> WindowReport {
    let mut engine = Engine::default();
    events.iter().filter_map(|event| engine.apply(event)).last().unwrap()
}

fn check_sums(report: &WindowReport) {
    for audit in &report.domains {
        let sum = audit.attributed.0 + audit.static_share.0 + audit.unattributed.total().0;
        assert_eq!(sum, audit.measured.0, "{} {:?}", audit.domain, audit.socket);
    }
    let attributed: MicroJoules = report.domains.iter().map(|audit| audit.attributed).sum();
    assert_eq!(report.threads.iter().map(|row| row.energy).sum::<MicroJoules>(), attributed);
    for (position, thread) in report.threads.iter().enumerate() {
        let rows = || report.branches.iter().filter(|row| row.thread == position);
        assert_eq!(rows().map(|row| row.energy).sum::<MicroJoules>(), thread.energy);
        assert_eq!(rows().map(|row| row.cpu_ns).sum::<u64>(), thread.cpu_ns);
        assert_eq!(rows().map(|row| row.samples).sum::<u64>(), thread.samples);
    }
    let own: MicroJoules = report.methods.iter().map(|row| row.own.energy).sum();
    assert_eq!(own, attributed);
    assert!(report.methods.iter().all(|row| row.own.energy <= row.total.energy));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_level_sums_to_the_one_above(
        times in thread_times(),
        stack_ids in prop::collection::vec(0_u64..5, 1..5),
        used in prop::array::uniform3(0_u64..500_000_000),
        spread: bool,
    ) {
        let policy = if spread { "spread" } else { "separate" };
        let mut events = vec![run(policy), process(1), process(2), readings(0, [7, 8, 9])];
        events.extend(stacks());
        events.push(readings(WINDOW_NS, [7 + used[0], 8 + used[1], 9 + used[2]]));
        let samples = samples_of(&times, &stack_ids);
        events.push(window(times, samples, 0));
        let first = report(&events);
        check_sums(&first);
        prop_assert_eq!(first.domains.iter().map(|audit| audit.measured.0).collect::<Vec<_>>(), used.to_vec());
        prop_assert_eq!(report(&events), first, "the same events give the same report");
    }
}

#[test]
fn a_package_is_divided_among_what_ran_on_it() {
    let time = |pid: u32, socket: u32, cpu_ns: u64| ThreadTime {
        tid: Tid(pid),
        pid: Pid(pid),
        socket,
        cpu_ns,
        ..ThreadTime::default()
    };
    let times = vec![time(1, 0, 100), time(2, 1, 300), time(3, 1, 100)];
    let events = [
        run("spread"),
        process(1),
        process(2),
        readings(0, [0, 0, 0]),
        readings(WINDOW_NS, [1_000_000, 4_002_000, 0]),
        window(times, Vec::new(), 0),
    ];
    let report = report(&events);
    let energies: Vec<u64> = report.threads.iter().map(|row| row.energy.0).collect();
    // Socket 1 also has 2 000 + 3 000 ns of time without a slot.
    assert_eq!(report.domains[1].unattributed.unslotted.0, 4_002_000 * 5_000 / 5_400);
    assert_eq!(energies[1], 4_002_000 * 300 / 5_400 + 1, "rounding gives the largest remainder its unit");
    assert!(energies[0] < 1_000_000 && energies[0] > 0);
}

#[test]
fn energy_of_a_failed_read_comes_with_the_next_window() {
    let failed = Event::Energy(EnergyReading {
        read_at: MonotonicNs(WINDOW_NS),
        readings: vec![Reading::Failed("gone".into()), Reading::CounterUj(0), Reading::CounterUj(0)],
    });
    let mut engine = Engine::default();
    let events = [
        run("separate"),
        readings(0, [0, 0, 0]),
        failed,
        window(Vec::new(), Vec::new(), 0),
        readings(2 * WINDOW_NS, [900, 0, 0]),
        window(Vec::new(), Vec::new(), 1),
    ];
    let reports: Vec<WindowReport> = events.iter().filter_map(|event| engine.apply(event)).collect();
    assert!(reports[0].domains[0].read_failed);
    assert_eq!(reports[0].domains[0].measured, MicroJoules(0));
    assert_eq!((reports[1].domains[0].measured, reports[1].domains[0].merged), (MicroJoules(900), 2));
}

#[test]
fn a_stack_that_never_arrived_stays_visible() {
    let times = vec![ThreadTime { tid: Tid(1), pid: Pid(1), cpu_ns: 10, samples: 2, ..ThreadTime::default() }];
    let samples = samples_of(&times, &[4]);
    let mut engine = Engine::default();
    let events = [run("spread"), process(1), window(times, samples, 0)];
    let report = events.iter().filter_map(|event| engine.apply(event)).last().unwrap();
    assert_eq!(engine.table().folded(report.branches[0].branch), "[lost stack]");
}
