//! Tests the engine as a whole: whatever a window holds, every level sums to the one above it, and
//! the same events give the same report.

use joular_ebpf::abi::{Place, ThreadKey};
use proptest::prelude::*;

use super::{Engine, window_report::WindowReport};
use crate::{
    events::{
        CpuTimes, EnergyReading, Event, HostIdentity, ProcessInfo, RawStack, RunInfo, SampleCount, Symbol, ThreadTime,
        Window,
    },
    model::{
        domain::{Domain, FaultCause, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        policy::Policy,
        quality::StackQuality,
        units::{Address, MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
    },
};

const WINDOW_NS: u64 = 1_000_000_000;

fn domain(name: &str, socket: Option<u32>, meter: Meter) -> Domain {
    Domain::new(name, socket, "test", Label::Measured, meter)
}

fn run(idle: &str) -> Event {
    let counter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 61, max_watts: 1000 };
    Event::RunStarted(Box::new(RunInfo {
        run_id: "run".into(),
        host: "host".into(),
        started: UnixMicros(0),
        boottime_offset_ns: 0,
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
        policy: Policy { idle: idle.parse().unwrap(), idle_milliwatts: 10_000, ..Policy::default() },
        profiler_pid: Pid(99),
        identity: HostIdentity::default(),
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
        thread_key: ThreadKey::new(time.tid.0, 0, Place::new(time.socket, 0)).0,
        user_stack: stacks[index % stacks.len()],
        count: time.samples,
        ..SampleCount::default()
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
        Event::Stack(RawStack {
            id,
            is_kernel: false,
            quality: if id == 3 { StackQuality::TRUNCATED } else { StackQuality::default() },
            frames,
        })
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
    let unslotted = report.domains[1].unattributed.unslotted.0;
    assert_eq!(unslotted, 4_002_000 * 5_000 / 5_400 + 1, "rounding gives the largest remainder its unit");
    assert_eq!(energies[1], 4_002_000 * 300 / 5_400);
    assert!(energies[0] < 1_000_000 && energies[0] > 0);
}

#[test]
fn energy_of_a_failed_read_comes_with_the_next_window() {
    let failed = Event::Energy(EnergyReading {
        read_at: MonotonicNs(WINDOW_NS),
        readings: vec![Reading::failed(FaultCause::Gone, "gone"), Reading::CounterUj(0), Reading::CounterUj(0)],
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
    assert!(reports[0].domains[0].read_failed());
    assert_eq!(reports[0].domains[0].measured, MicroJoules(0));
    assert_eq!((reports[1].domains[0].measured, reports[1].domains[0].merged), (MicroJoules(900), 2));
}

/// Reads of all domains fail in window 0 and work again in window 1.
fn failed_then_read(idle_policy: &str, first: Vec<ThreadTime>, second: Vec<ThreadTime>) -> WindowReport {
    let failed =
        EnergyReading { read_at: MonotonicNs(WINDOW_NS), readings: vec![Reading::failed(FaultCause::Gone, "gone"); 3] };
    report(&[
        run(idle_policy),
        process(1),
        process(2),
        readings(0, [0, 0, 0]),
        Event::Energy(failed),
        window(first, Vec::new(), 0),
        readings(2 * WINDOW_NS, [100_000_000, 0, 0]),
        window(second, Vec::new(), 1),
    ])
}

fn on_socket_0(pid: u32, cpu_ns: u64) -> ThreadTime {
    ThreadTime { tid: Tid(pid), pid: Pid(pid), cpu_ns, ..ThreadTime::default() }
}

#[test]
fn energy_of_a_failed_read_goes_to_who_ran_then() {
    // Of socket 0's CPUs, one has 1 000 ns without a slot in each window.
    let first = vec![on_socket_0(1, 400_000_000), on_socket_0(2, 100_000_000), on_socket_0(3, 98_000)];
    let report = failed_then_read("spread", first, vec![on_socket_0(2, 400_000_000), on_socket_0(3, 100_000_000)]);
    check_sums(&report);
    let audit = &report.domains[0];
    assert_eq!(audit.measured.0, 100_000_000);
    let sum = 1_000_100_000_u64;
    let near = |found: MicroJoules, weight: u64| found.0.abs_diff(100_000_000 * weight / sum) <= 1;
    assert!(near(audit.unattributed.failed_reads, 400_000_000), "{audit:?}");
    assert!(near(report.threads[0].energy, 500_000_000), "{audit:?}");
    assert!(near(audit.unattributed.other_processes, 100_098_000), "{audit:?}");
    assert_eq!(report.threads[0].cpu_ns, 400_000_000);
}

#[test]
fn the_idle_share_covers_the_time_of_the_windows_that_were_missed() {
    let report = failed_then_read("separate", Vec::new(), Vec::new());
    // 10 W for two seconds.
    assert_eq!(report.domains[0].static_share, MicroJoules(20_000_000));
}

#[test]
fn dies_of_a_socket_share_its_idle_power() {
    let Event::RunStarted(mut info) = run("separate") else { panic!("no run") };
    info.domains[1].socket = Some(0);
    let events = [
        Event::RunStarted(info),
        readings(0, [0, 0, 0]),
        readings(WINDOW_NS, [90_000_000, 90_000_000, 0]),
        window(Vec::new(), Vec::new(), 0),
    ];
    let shares: Vec<u64> = report(&events).domains.iter().map(|audit| audit.static_share.0).collect();
    assert_eq!(shares, [5_000_000, 5_000_000, 0]);
}

#[test]
fn processes_that_are_no_targets_are_not_kept() {
    let mut engine = Engine::default();
    engine.apply(&run("spread"));
    let info = |pid: u32, start_boottime_ns, is_target, is_helper| {
        let info = ProcessInfo { pid: Pid(pid), start_boottime_ns, is_target, is_helper, ..Default::default() };
        Event::Process(Box::new(info))
    };
    for pid in 200..1_200 {
        engine.apply(&info(pid, 5, true, false));
        engine.apply(&info(pid, 5, false, false));
    }
    assert!(engine.processes.is_empty());
    // A helper of the profiler, and the successor of a process with the same pid.
    for event in [info(7, 5, false, true), info(8, 5, true, false), info(8, 9, false, false)] {
        engine.apply(&event);
    }
    let kept: Vec<(u32, u64)> = engine.processes.keys().map(|(pid, start)| (pid.0, *start)).collect();
    assert_eq!(kept, [(7, 5), (8, 5), (8, 9)]);
}

/// Figures and ids as no kernel gives them.
fn hostile_window() -> impl Strategy<Value = Window> {
    let huge = || prop_oneof![any::<u64>(), Just(u64::MAX), 0_u64..3];
    let small = || prop_oneof![any::<u32>(), Just(u32::MAX), 0_u32..3];
    let time = (small(), small(), small(), huge(), huge(), small(), any::<bool>()).prop_map(
        |(tid, pid, socket, start_boottime_ns, cpu_ns, samples, is_kernel)| ThreadTime {
            tid: Tid(tid),
            pid: Pid(pid),
            socket,
            start_boottime_ns,
            is_kernel,
            cpu_ns,
            samples,
            ..ThreadTime::default()
        },
    );
    let sample =
        (small(), huge(), huge(), huge(), small()).prop_map(|(tid, thread_key, user_stack, kernel_stack, count)| {
            SampleCount {
                tid: Tid(tid),
                pid: Pid(1),
                thread_key,
                user_stack,
                kernel_stack,
                count,
                ..SampleCount::default()
            }
        });
    let cpu = (small(), small(), huge(), huge(), huge(), huge()).prop_map(
        |(cpu, socket, busy_ns, idle_ns, unslotted_ns, switches)| CpuTimes {
            cpu,
            socket,
            busy_ns,
            idle_ns,
            unslotted_ns,
            switches,
            ..CpuTimes::default()
        },
    );
    let many = |count| 0..count;
    let lists = (
        prop::collection::vec(time, many(8)),
        prop::collection::vec(sample, many(8)),
        prop::collection::vec(cpu, many(5)),
    );
    (huge(), huge(), huge(), lists).prop_map(|(index, start, end, (threads, samples, cpus))| Window {
        index,
        start: MonotonicNs(start),
        end: MonotonicNs(end),
        wall_start: UnixMicros(start.cast_signed()),
        threads,
        samples,
        cpus,
        losses: Vec::new(),
    })
}

proptest! {
    #[test]
    fn no_figure_from_a_file_overflows(
        windows in prop::collection::vec(hostile_window(), 1..4),
        values in prop::array::uniform3(any::<u64>()),
        read_at: u64,
        idle_milliwatts: u64,
        sockets: u32,
    ) {
        let Event::RunStarted(mut info) = run("separate") else { panic!("no run") };
        (info.policy.idle_milliwatts, info.sockets) = (idle_milliwatts, sockets);
        info.domains[1].meter = Meter::Model { idle_uw: values[0], full_uw: u64::MAX };
        info.domains[2].meter = Meter::Counter { range_uj: values[1], unit_uj: u64::MAX, max_watts: u32::MAX };
        let mut events = vec![Event::RunStarted(info), readings(read_at, values), process(0), process(1), process(2)];
        events.extend(stacks());
        for window in windows {
            events.push(readings(read_at.wrapping_add(values[0]), [values[2], values[1], values[0]]));
            events.push(Event::Window(Box::new(window)));
        }
        let mut engine = Engine::default();
        for report in events.iter().filter_map(|event| engine.apply(event)) {
            for audit in &report.domains {
                let sum = u128::from(audit.attributed.0) + u128::from(audit.static_share.0);
                prop_assert_eq!(sum + u128::from(audit.unattributed.total().0), u128::from(audit.measured.0));
            }
        }
    }
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
