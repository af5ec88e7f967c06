//! Makes data sets for tests, with the code that a live run uses, from events whose every number is
//! chosen here.

use std::{collections::BTreeMap, fs, path::Path};

use joular_ebpf::abi::{Place as KeyPlace, ThreadKey};

use crate::{
    attribution::Engine,
    dataset::{OutputDirectory, ParquetOutput, fixture_collections, fixture_io},
    events::{
        AllocationSample, CpuTimes, EnergyReading, Event, LossCount, Mark, MarkFrom, MarkKind, ProcessInfo, RawStack,
        RunEnd, RunInfo, Runtime, SampleCount, Symbol, ThreadAllocation, ThreadCounts, ThreadTime, Window,
        WindowAllocations, WindowContext, WindowCounters,
    },
    model::{
        counter::Counter,
        domain::{Domain, FaultCause, Label, Meter, Reading, Role},
        frame::{Frame, FrameKind},
        policy::{Baseline, Calibrated, InstrumentCosts, Policy},
        quality::{StackQuality, Unwinder, WalkEnd},
        units::{Address, MonotonicNs, Pid, Tid, UnixMicros},
    },
    output::Output as _,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const WINDOWS: u64 = 30;
/// The window in which the machine is suspended.
pub(crate) const SUSPENDED: u64 = 12;
/// Window time per file: several files, across midnight.
pub(crate) const FLUSH_NS: u64 = 7 * SECOND;
/// Six seconds before a date changes.
pub(crate) const STARTED: i64 = 1_772_409_594_000_000;
pub(crate) const RUN_ID: &str = "node-1-20260301T235954-4711";

/// Two sockets, one of which counts its cores apart; memory; the rest of the platform; a part of a
/// package, and a second counter of one.
pub(crate) fn domains() -> Vec<Domain> {
    let meter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 61, max_watts: 1_000 };
    let domain = |name: &str, socket| Domain::new(name, socket, "test", Label::Measured, meter);
    let core = |core| Domain { core: Some(core), ..domain("core", Some(1)) };
    vec![
        domain("package", Some(0)),
        Domain { less: vec![2, 3], ..domain("uncore", Some(1)) },
        core(0),
        core(1),
        domain("dram", Some(0)),
        Domain { role: Role::Unshared, less: vec![0, 4], ..domain("platform", None) },
        Domain { role: Role::Check { of: 0 }, ..domain("package", Some(0)) },
        Domain { role: Role::Part { of: 0 }, ..domain("core", Some(0)) },
    ]
}

pub(crate) fn calibrated() -> Calibrated {
    let baseline = Baseline { domain: "dram".into(), socket: Some(0), core: None, milliwatts: 1_500 };
    Calibrated { baselines: vec![baseline], costs: InstrumentCosts { sample_ns: 3_000, switch_ns: 200 } }
}

pub(crate) fn run_info(policy: Policy) -> RunInfo {
    RunInfo {
        run_id: RUN_ID.into(),
        host: "node-1".into(),
        started: UnixMicros(STARTED),
        boottime_offset_ns: 77,
        command_line: vec!["joular-bpf".into(), "--all".into()],
        interval_ns: SECOND,
        domains: domains(),
        profiler_pid: Pid(99),
        sockets: 2,
        policy,
        ..RunInfo::default()
    }
}

/// A number that looks random and is always the same.
pub(crate) fn noise(seed: u64, below: u64) -> u64 {
    twox_hash::XxHash64::oneshot(3, &seed.to_le_bytes()) % below
}

/// The events of a run: reads fail, threads come and go, one thread exits while a read is missing,
/// names and lines change.
pub(crate) fn events(policy: Policy) -> Vec<Event> {
    let mut events = vec![Event::RunStarted(Box::new(run_info(policy)))];
    events.extend([1, 2].map(|pid| {
        let comm = format!("java{pid}").into();
        let runtime = if pid == 1 { Runtime::UNKNOWN_JVM } else { Runtime::Native };
        let info = ProcessInfo { pid: Pid(pid), comm, runtime, is_target: true, ..ProcessInfo::default() };
        Event::Process(Box::new(info))
    }));
    for id in 1..6 {
        let frames = (1..=id).map(|frame| Address(frame * 0x100)).collect();
        events.push(Event::Stack(RawStack {
            id,
            is_kernel: false,
            quality: match id {
                2 => StackQuality { unwinder: Unwinder::Tables, end: WalkEnd::Root },
                4 => StackQuality::TRUNCATED,
                _ => StackQuality::default(),
            },
            frames,
        }));
    }
    let mut counters = vec![1_000_u64; domains().len()];
    events.push(reading(0, &counters));
    for index in 0..WINDOWS {
        if index % 10 == 0 {
            events.push(symbols(index));
        }
        counters.iter_mut().zip(0..).for_each(|(counter, domain)| *counter += noise(index * 100 + domain, 40_000_000));
        events.push(reading(index + 1, &counters));
        events.push(context(index));
        events.extend(marks(index));
        let window = window(index);
        events.extend(counts(&window));
        events.extend(allocations(&window));
        events.push(fixture_collections::collections(&window));
        events.extend(fixture_io::moved(&window));
        events.push(window);
    }
    events.push(Event::RunEnded(RunEnd { ended: UnixMicros(STARTED + 30_000_000), reason: "duration".into() }));
    events
}

/// Later names have other kinds and lines: the same branches, other stacks.
pub(crate) fn symbols(index: u64) -> Event {
    let kinds = [FrameKind::Interpreted, FrameKind::CompiledC1, FrameKind::CompiledC2];
    let frame = |address: u64| Frame {
        class: Some("com.example.\"Weird;Cl'ass\n".into()),
        file: Some("Weird.java".into()),
        line: u32::try_from(index + 1).ok(),
        ..Frame::new(kinds[usize::try_from(index / 10).unwrap()], format!("m{address:x}"))
    };
    let symbol = |address| Symbol { address: Address(address), frames: vec![frame(address)] };
    let symbols = [0x100, 0x1ff, 0x2ff, 0x3ff].map(symbol).to_vec();
    Event::Symbols { pid: Pid(1), start_boottime_ns: 0, symbols }
}

pub(crate) fn reading(second: u64, counters: &[u64]) -> Event {
    let value = |(domain, counter): (u64, &u64)| match noise(second * 1000 + domain, 8) {
        0 if second > 0 => Reading::failed(FaultCause::Gone, "gone"),
        _ => Reading::CounterUj(*counter),
    };
    let readings = (0..).zip(counters).map(value).collect();
    Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND + 50_000), readings })
}

/// What a program says: `load` is from window 3 to 9, within it `parse` from 5 to 6 and from 8 to 9; `serve` begins in window
/// 20 and never ends.
fn marks(index: u64) -> Vec<Event> {
    let said: &[(MarkKind, Option<&str>)] = match index {
        2 => &[(MarkKind::Begin, Some("load"))],
        4 | 7 => &[(MarkKind::Begin, Some("parse"))],
        6 => &[(MarkKind::End, None)],
        9 => &[(MarkKind::End, Some("parse")), (MarkKind::Event, Some("loaded")), (MarkKind::End, Some("load"))],
        19 => &[(MarkKind::End, Some("nothing")), (MarkKind::Begin, Some("serve"))],
        _ => &[],
    };
    let mark = |(kind, name): &(MarkKind, Option<&str>)| {
        Event::Mark(Box::new(Mark {
            at: MonotonicNs((index + 1) * SECOND - 2_000_000),
            kind: *kind,
            name: name.map(Into::into),
            attributes: (*kind == MarkKind::Event).then(|| "rows=7".into()),
            pid: Some(Pid(1)),
            from: MarkFrom::Socket,
        }))
    };
    said.iter().map(mark).collect()
}

/// The machine is suspended in one window, and its clock is set back in another one.
pub(crate) fn context(index: u64) -> Event {
    Event::Context(Box::new(WindowContext {
        mean_frequency_khz: (index > 3).then_some(2_000_000 + index),
        governor: Some(if index < 5 { "schedutil".into() } else { WindowContext::MIXED.into() }),
        steal_ns: Some(index * 10_000_000),
        temperature_millicelsius: Some(45_000 - 9_000 * i64::try_from(index).unwrap()),
        suspended_ns: if index == SUSPENDED { 3600 * SECOND } else { 0 },
        clock_step_us: if index == SUSPENDED + 2 { -500_000 } else { 0 },
        clock_offset_us: if index > SUSPENDED + 2 { -500_000 } else { 0 },
    }))
}

pub(crate) fn window(index: u64) -> Event {
    let thread = |number: u64| {
        let seed = index * 10_000 + number * 10;
        let pid = [0, 1, 2, 3, 99][usize::try_from(number % 5).unwrap()];
        let cpu_ns = noise(seed, SECOND / 8);
        ThreadTime {
            tid: Tid(pid * 100 + u32::try_from(number).unwrap()),
            pid: Pid(pid),
            is_kernel: pid == 0,
            socket: u32::from(noise(seed + 1, 2) == 1),
            core: if noise(seed + 1, 2) == 1 { u32::try_from(noise(seed + 2, 2)).unwrap() } else { 0 },
            start_boottime_ns: number * SECOND + 123_456_789,
            cpu_ns,
            corun_ns: noise(seed + 3, cpu_ns + 1),
            cycles: noise(seed + 4, 3 * cpu_ns + 1),
            samples: u32::try_from(noise(seed + 5, 30)).unwrap(),
            switches: 7,
            comm: [*b"a thread\0\0\0\0\0\0\0\0", *b"GC Thread#0\0\0\0\0\0"][usize::from(number == 6)],
        }
    };
    // Some threads do not run in some windows.
    let threads: Vec<ThreadTime> = (0..20).filter(|number| noise(index * 77 + number, 4) > 0).map(thread).collect();
    let samples = threads.iter().flat_map(|time| samples(index, time)).collect();
    let cpu = |cpu: u32| CpuTimes {
        cpu,
        socket: cpu / 2,
        core: cpu.saturating_sub(2),
        unslotted_ns: 1_000,
        ..CpuTimes::default()
    };
    Event::Window(Box::new(Window {
        index,
        start: MonotonicNs(index * SECOND),
        end: MonotonicNs((index + 1) * SECOND),
        wall_start: UnixMicros(STARTED + i64::try_from(index).unwrap() * 1_000_000),
        losses: vec![LossCount { cause: "stack_ring_full".into(), count: index % 3 }],
        cpus: (0..4).map(cpu).map(|cpu| balanced(cpu, &threads)).collect(),
        threads,
        samples,
    }))
}

/// What its threads counted: no major fault, and in every third thread nothing.
fn counts(window: &Event) -> Option<Event> {
    let Event::Window(window) = window else { return None };
    let counted = |time: &ThreadTime| ThreadCounts {
        tid: time.tid,
        pid: time.pid,
        start_boottime_ns: time.start_boottime_ns,
        is_kernel: time.is_kernel,
        counts: if time.tid.0.is_multiple_of(3) {
            vec![0; 3]
        } else {
            vec![time.cpu_ns / 1_000, 0, time.switches.into()]
        },
    };
    Some(Event::Counters(Box::new(WindowCounters {
        counters: vec![Counter::CacheMisses, Counter::MajorFaults, Counter::ContextSwitches],
        threads: window.threads.iter().map(counted).collect(),
    })))
}

/// What threads of the first process allocated, its collector apart; every third allocated without being seen. The leaf of a stack is the
/// class.
fn allocations(window: &Event) -> Option<Event> {
    let Event::Window(window) = window else { return None };
    let key = |time: &ThreadTime| ThreadKey::new(time.tid.0, time.start_boottime_ns, KeyPlace::new(0, 0)).0;
    let is_collector = |time: &&ThreadTime| time.comm.starts_with(b"GC");
    let allocating = || window.threads.iter().filter(|time| time.pid == Pid(1) && !is_collector(time));
    let thread = |time: &ThreadTime| {
        let bytes = 1_000_003 * u64::from(time.tid.0);
        ThreadAllocation { tid: time.tid, pid: time.pid, thread_key: key(time), bytes, objects: 7 }
    };
    let sample = |time: &ThreadTime, stack: u64| AllocationSample {
        tid: time.tid,
        pid: time.pid,
        thread_key: key(time),
        stack,
        bytes: stack * 1_000,
        samples: stack,
    };
    let is_seen = |time: &&ThreadTime| !time.tid.0.is_multiple_of(3);
    Some(Event::Allocations(Box::new(WindowAllocations {
        threads: allocating().map(thread).collect(),
        samples: allocating().filter(is_seen).flat_map(|time| [2, 3].map(|stack| sample(time, stack))).collect(),
    })))
}

/// What each thread allocates in the whole run.
pub(crate) fn allocated_by_thread() -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for event in events(Policy::default()) {
        let Event::Allocations(allocations) = event else { continue };
        for thread in &allocations.threads {
            *all.entry(thread.tid.0).or_default() += thread.bytes;
        }
    }
    all
}

/// The CPUs were busy for as long as the threads ran, in equal parts.
pub(crate) fn balanced(cpu: CpuTimes, threads: &[ThreadTime]) -> CpuTimes {
    let all: u64 = threads.iter().map(|time| time.cpu_ns).sum();
    let busy_ns = all / 4 + if cpu.cpu == 0 { all % 4 } else { 0 };
    CpuTimes { busy_ns, idle_ns: SECOND - busy_ns - cpu.unslotted_ns, ..cpu }
}

pub(crate) fn samples(index: u64, time: &ThreadTime) -> Vec<SampleCount> {
    let key = ThreadKey::new(time.tid.0, time.start_boottime_ns, KeyPlace::new(time.socket, time.core)).0;
    let sample = |part: u32| SampleCount {
        tid: time.tid,
        pid: time.pid,
        thread_key: key,
        user_stack: 1 + noise(index + u64::from(time.tid.0 + part), 6),
        count: time.samples / 3,
        ..SampleCount::default()
    };
    (0..2).map(sample).filter(|sample| sample.count > 0).collect()
}

/// Writes a data set as a run with this policy does.
pub(crate) fn write(root: &Path, policy: Policy) {
    write_as(root, policy, RUN_ID);
}

pub(crate) fn write_as(root: &Path, policy: Policy, run_id: &str) {
    let directory = OutputDirectory::create(root, None).unwrap();
    play(ParquetOutput::new(directory, FLUSH_NS), policy, run_id);
}

/// Gives a run to an output.
pub(crate) fn play(output: ParquetOutput, policy: Policy, run_id: &str) {
    play_run(output, policy, |run| run.run_id = run_id.into());
}

/// The same, of a run that differs a little.
pub(crate) fn play_run(output: ParquetOutput, policy: Policy, change: impl Fn(&mut RunInfo)) {
    play_changed(output, policy, |event| {
        if let Event::RunStarted(run) = event {
            change(run);
        }
    });
}

/// The same, of a run with other events.
pub(crate) fn play_changed(mut output: ParquetOutput, policy: Policy, change: impl Fn(&mut Event)) {
    let mut engine = Engine::default();
    for mut event in events(policy) {
        change(&mut event);
        match &event {
            Event::RunStarted(run) => output.run_started(run).unwrap(),
            Event::Process(process) => output.process(process),
            Event::RunEnded(end) => output.run_ended(end).unwrap(),
            _ => {}
        }
        if let Some(report) = engine.apply(&event) {
            output.window(&report, engine.table()).unwrap();
        }
    }
}

/// All Parquet files below a directory, by relative path.
pub(crate) fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
