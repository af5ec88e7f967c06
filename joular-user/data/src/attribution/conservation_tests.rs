//! Tests 100 000 random windows, in runs of fifty. Whatever sockets, cores, siblings, wraps, failed
//! reads, exits and reused ids do, every microjoule is in exactly one place, and the order of the
//! kernel's rows does not matter.

use joular_ebpf::abi::{Place as KeyPlace, ThreadKey};
use proptest::prelude::*;

use super::{
    Engine,
    window_report::{Amount, WindowReport},
};
use crate::{
    events::{
        CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunInfo, Runtime, SampleCount, Symbol, ThreadTime,
        Window,
    },
    model::{
        domain::{Domain, FaultCause, Label, Meter, Reading, Role},
        frame::{Frame, FrameKind},
        policy::{Baseline, Calibrated, IdlePolicy, InstrumentCosts, Policy, WeightUnit},
        quality::{StackQuality, Unwinder, WalkEnd},
        units::{Address, MonotonicNs, Pid, Tid},
    },
};

const SECOND: u64 = 1_000_000_000;
const WINDOWS_PER_RUN: usize = 50;
const RUNS: u32 = 2_000;
/// Small, so that counters wrap often; large enough for what a window uses.
const RANGE_UJ: u64 = 40_000_000;
const MODULUS_UJ: u64 = RANGE_UJ + 1;
const PROFILER: u32 = 99;

/// package 0, package 1, dram 0, three cores of socket 1, the platform's rest, a
/// second counter of package 0, and the cores within it.
fn domains() -> Vec<Domain> {
    let meter = Meter::Counter { range_uj: RANGE_UJ, unit_uj: 1, max_watts: 19 };
    let domain = |name: &str, socket| Domain::new(name, socket, "test", Label::Measured, meter);
    let core = |core| Domain { core: Some(core), ..domain("core", Some(1)) };
    vec![
        domain("package", Some(0)),
        Domain { less: vec![3, 4, 5], ..domain("uncore", Some(1)) },
        domain("dram", Some(0)),
        core(0),
        core(1),
        core(2),
        Domain { role: Role::Unshared, less: vec![0, 2], ..domain("platform", None) },
        Domain { role: Role::Check { of: 0 }, ..domain("package", Some(0)) },
        Domain { role: Role::Part { of: 0 }, ..domain("core", Some(0)) },
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let idle = prop::sample::select(IdlePolicy::ALL.to_vec());
    let unit = prop::sample::select(vec![WeightUnit::Time, WeightUnit::Cycles]);
    (idle, 0_u64..12_000, 1_000_u32..=2_000, unit, any::<bool>()).prop_map(
        |(idle, idle_milliwatts, smt_permille, weight_unit, is_calibrated)| {
            let baseline = Baseline { domain: "dram".into(), socket: Some(0), core: None, milliwatts: 2_000 };
            let costs = InstrumentCosts { sample_ns: 3_000, switch_ns: 200 };
            let calibration = is_calibrated.then(|| Calibrated { baselines: vec![baseline], costs });
            Policy { idle, idle_milliwatts, smt_permille, weight_unit, calibration, watts_by: None }
        },
    )
}

/// One window: who ran, how much each counter advanced, and which reads fail.
#[derive(Clone, Debug)]
struct Step {
    times: Vec<ThreadTime>,
    used_uj: Vec<u64>,
    fails: Vec<bool>,
    stacks: Vec<u64>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let time = (
        prop::sample::select(vec![0_u32, 1, 2, 3, PROFILER]),
        (1_u32..4, 0_u64..2, 0_u32..2, 0_u32..3),
        prop_oneof![3 => 0_u64..SECOND, 1 => Just(0)],
        (0_u64..SECOND, 0_u64..4 * SECOND, 0_u32..20, 0_u32..50),
    );
    let time = time.prop_map(|(pid, (thread, reuse, socket, core), cpu_ns, (corun_ns, cycles, samples, switches))| {
        ThreadTime {
            // A reused id is a later thread of the same number.
            tid: Tid(pid * 10 + thread),
            start_boottime_ns: reuse * SECOND,
            pid: Pid(pid),
            is_kernel: pid == 0,
            socket,
            core: if socket == 1 { core } else { 0 },
            cpu_ns,
            corun_ns: corun_ns.min(cpu_ns),
            cycles,
            samples,
            switches,
            comm: [*b"a thread\0\0\0\0\0\0\0\0", *b"GC Thread#0\0\0\0\0\0"][usize::from(thread == 3)],
        }
    });
    let step = (
        prop::collection::vec(time, 0..10),
        prop::collection::vec(0_u64..15_000_000, domains().len()),
        prop::collection::vec(prop::bool::weighted(0.1), domains().len()),
        prop::collection::vec(0_u64..4, 1..4),
    );
    let step = step.prop_map(|(mut times, used_uj, fails, stacks)| {
        times.sort_by_key(|time| (time.tid, time.start_boottime_ns, time.socket, time.core));
        times.dedup_by_key(|time| (time.tid, time.start_boottime_ns, time.socket, time.core));
        Step { times, used_uj, fails, stacks }
    });
    prop::collection::vec(step, WINDOWS_PER_RUN)
}

/// The events of a run; `is_reversed` gives each window's rows the other way around.
fn events(policy: &Policy, steps: &[Step], is_reversed: bool) -> Vec<Event> {
    let info = RunInfo {
        domains: domains(),
        policy: policy.clone(),
        profiler_pid: Pid(PROFILER),
        sockets: 2,
        ..RunInfo::default()
    };
    let mut events = vec![Event::RunStarted(Box::new(info))];
    events.extend([(1, Runtime::UNKNOWN_JVM), (2, Runtime::Native)].map(|(pid, runtime)| {
        let info = ProcessInfo { pid: Pid(pid), runtime, is_target: true, ..ProcessInfo::default() };
        Event::Process(Box::new(info))
    }));
    for (id, end) in [(1, WalkEnd::Root), (2, WalkEnd::Chain), (3, WalkEnd::NoRule)] {
        let frames = (1..=id).map(|frame| Address(frame * 0x100)).collect();
        let quality = StackQuality { unwinder: Unwinder::Tables, end };
        events.push(Event::Stack(RawStack { id, is_kernel: false, quality, frames }));
    }
    let name = |address: u64| Symbol {
        address: Address(address),
        frames: vec![Frame::new(
            if address == 0x100 { FrameKind::CompiledC2 } else { FrameKind::Interpreted },
            format!("f{address:x}"),
        )],
    };
    let symbols = vec![name(0x100), name(0x1ff), name(0x2ff)];
    events.push(Event::Symbols { pid: Pid(1), start_boottime_ns: 0, symbols });
    let mut counters = vec![7_u64; domains().len()];
    events.push(reading(0, &counters, &[]));
    for (index, step) in (0..).zip(steps) {
        counters.iter_mut().zip(&step.used_uj).for_each(|(counter, used)| *counter = (*counter + used) % MODULUS_UJ);
        // The last window brings everything that is still owed.
        let is_last = index + 1 == steps.len() as u64;
        events.push(reading(index + 1, &counters, if is_last { &[] } else { &step.fails }));
        events.push(window(index, step, is_reversed));
    }
    events
}

fn reading(second: u64, counters: &[u64], fails: &[bool]) -> Event {
    let value = |(index, counter): (usize, &u64)| match fails.get(index) {
        Some(true) => Reading::failed(FaultCause::Gone, "gone"),
        _ => Reading::CounterUj(*counter),
    };
    let readings = counters.iter().enumerate().map(value).collect();
    Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND), readings })
}

fn window(index: u64, step: &Step, is_reversed: bool) -> Event {
    let samples = |(index, time): (usize, &ThreadTime)| SampleCount {
        tid: time.tid,
        pid: time.pid,
        thread_key: ThreadKey::new(time.tid.0, time.start_boottime_ns, KeyPlace::new(time.socket, time.core)).0,
        user_stack: step.stacks[index % step.stacks.len()],
        count: time.samples,
        ..SampleCount::default()
    };
    let mut samples: Vec<_> = step.times.iter().enumerate().map(samples).filter(|sample| sample.count > 0).collect();
    let cpu = |cpu: u32| CpuTimes {
        cpu,
        socket: cpu / 3,
        core: cpu.saturating_sub(3),
        idle_ns: SECOND / 4,
        unslotted_ns: u64::from(cpu) * 1000,
        ..CpuTimes::default()
    };
    let mut cpus: Vec<CpuTimes> = (0..6).map(cpu).collect();
    let mut threads = step.times.clone();
    if is_reversed {
        samples.reverse();
        cpus.reverse();
        threads.reverse();
    }
    let start = MonotonicNs(index * SECOND);
    let end = MonotonicNs((index + 1) * SECOND);
    Event::Window(Box::new(Window { index, start, end, threads, samples, cpus, ..Window::default() }))
}

/// A branch as thread, name and energy.
type NamedBranch = (usize, String, u64);

/// A report with its branches by name: the numbers of a stack table depend on
/// the order in which stacks came.
fn run(events: &[Event]) -> Vec<(WindowReport, Vec<NamedBranch>)> {
    let mut engine = Engine::default();
    let mut reports = Vec::new();
    for event in events {
        if let Some(mut report) = engine.apply(event) {
            let table = engine.table();
            let named = report.branches.iter().map(|row| (row.thread, table.folded(row.branch), row.energy.0));
            let named = named.collect();
            report.branches.clear();
            report.methods.clear();
            reports.push((report, named));
        }
    }
    reports
}

/// Every sum of a window is what it should be.
fn check_sums(report: &WindowReport, branches: &[NamedBranch]) {
    let mut attributed = 0;
    for audit in &report.domains {
        let sum = audit.attributed.0 + audit.static_share.0 + audit.unattributed.total().0;
        assert_eq!(sum, audit.measured.0, "{} {:?} {:?}", audit.domain, audit.socket, audit.core);
        attributed += audit.attributed.0;
    }
    assert_eq!(report.threads.iter().map(|row| row.energy.0).sum::<u64>(), attributed);
    for (position, thread) in report.threads.iter().enumerate() {
        let rows = branches.iter().filter(|(thread, _, _)| *thread == position);
        assert_eq!(rows.map(|(_, _, energy)| energy).sum::<u64>(), thread.energy.0);
    }
    check_sums_of_processes(report);
}

/// Qualities of stacks and parts of JVMs sum to the threads of their process.
fn check_sums_of_processes(report: &WindowReport) {
    let sum = |amounts: &mut dyn Iterator<Item = Amount>| {
        amounts.fold((0, 0, 0), |(energy, cpu_ns, samples), amount| {
            (energy + amount.energy.0, cpu_ns + amount.cpu_ns, samples + amount.samples)
        })
    };
    for (process, of) in report.processes.iter().enumerate() {
        let threads = report.threads.iter().filter(|thread| thread.process == process);
        let threads = threads.map(|row| Amount { energy: row.energy, cpu_ns: row.cpu_ns, samples: row.samples });
        let expected = sum(&mut threads.into_iter());
        let qualities = report.qualities.iter().filter(|row| row.process == process);
        assert_eq!(sum(&mut qualities.map(|row| row.amount)), expected, "qualities");
        let jvms: Vec<_> = report.jvms.iter().filter(|row| row.process == process).collect();
        assert_eq!(jvms.len(), usize::from(of.pid == Pid(1)));
        for row in jvms {
            assert_eq!(sum(&mut [row.whole].into_iter()), expected, "a JVM");
            assert_eq!(sum(&mut row.parts.into_iter()), expected, "its parts");
        }
    }
}

/// Whatever failed and wrapped, the windows together hold what the counters
/// advanced; of the two rests at least that, as what their parts used later
/// cannot be taken back from an earlier window.
fn check_totals(reports: &[(WindowReport, Vec<NamedBranch>)], steps: &[Step]) {
    let used = |index: usize| steps.iter().map(|step| step.used_uj[index]).sum::<u64>();
    let audits = |index: usize| reports.iter().map(move |(report, _)| &report.domains[index]);
    let measured = |index: usize| audits(index).map(|audit| audit.measured.0).sum::<u64>();
    let is_certain = |index: usize| audits(index).all(|audit| !audit.is_ambiguous());
    for index in [0, 2, 3, 4, 5].into_iter().filter(|index| is_certain(*index)) {
        assert_eq!(measured(index), used(index), "domain {index}");
    }
    for (rest, parts) in [(1, vec![3, 4, 5]), (6, vec![0, 2])] {
        if is_certain(rest) {
            let of_parts: u64 = parts.into_iter().map(used).sum();
            assert!(measured(rest) >= used(rest).saturating_sub(of_parts), "domain {rest}");
            assert!(measured(rest) <= used(rest), "domain {rest}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(RUNS) })]

    #[test]
    fn no_microjoule_is_lost_or_made_in_100_000_windows(policy in policies(), steps in steps()) {
        let reports = run(&events(&policy, &steps, false));
        prop_assert_eq!(reports.len(), WINDOWS_PER_RUN);
        reports.iter().for_each(|(report, branches)| check_sums(report, branches));
        check_totals(&reports, &steps);
        prop_assert_eq!(run(&events(&policy, &steps, true)), reports, "rows in another order");
    }
}
