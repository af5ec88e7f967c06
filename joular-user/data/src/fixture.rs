//! Makes up a run for tests: every figure follows from its position, and the audits add up as
//! attribution's do.

#![allow(clippy::unwrap_used, reason = "made-up runs, for tests only")]

use crate::{
    attribution::{
        jvms::jvm_rows,
        methods::method_rows,
        quality::quality_rows,
        window_report::{
            BranchRow, Category, CpuAudit, DomainAudit, ProcessRef, ThreadRow, Unattributed, WindowReport,
        },
        work::{Claimant, ClaimedSlice, Factor, Place, Slice},
    },
    events::{
        HostIdentity, LossCount, ProcessInfo, RunEnd, RunInfo, Runtime, SampleKind, Service, ServiceFrom, WindowContext,
    },
    model::{
        domain::{Domain, Label, Meter},
        frame::{Frame, FrameKind, Marker},
        policy::Policy,
        quality::{PathQuality, StackQuality, Unwinder, WalkEnd},
        units::{MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
    },
    output::{Output, Result},
    stacks::{BranchIndex, FrameId, StackTable},
};

/// 2026-03-01T23:59:30Z: half a minute before a date changes.
pub const START: UnixMicros = UnixMicros(1_772_409_570_000_000);
pub const SECOND: u64 = 1_000_000_000;

/// How much happens in each window.
#[derive(Clone, Copy)]
pub struct Load {
    pub processes: u32,
    pub threads: u32,
    pub branches: u32,
    pub methods: u32,
}

pub const SMALL: Load = Load { processes: 2, threads: 3, branches: 7, methods: 5 };
/// Three busy JVMs, as sizes are measured with.
pub const BUSY: Load = Load { processes: 3, threads: 40, branches: 120, methods: 200 };

/// A stream of numbers that looks random and always is the same.
fn noise(seed: u64) -> u64 {
    twox_hash::XxHash64::oneshot(7, &seed.to_le_bytes())
}

pub fn run() -> RunInfo {
    RunInfo {
        run_id: "node-1-20260301T235930-4711".into(),
        host: "node-1".into(),
        started: START,
        boottime_offset_ns: 0,
        version: "0.1.0".into(),
        kernel: "6.12.0".into(),
        cpu_model: "Example CPU".into(),
        arch: "x86_64".into(),
        online_cpus: 8,
        sockets: 1,
        memory_bytes: 16 << 30,
        command_line: vec!["joular-bpf".into(), "--comm".into(), "java".into()],
        sampling_event: "cpu-clock".into(),
        frequency_hz: 99,
        interval_ns: SECOND,
        energy_source: "model".into(),
        energy_reason: "no counter was found".into(),
        domains: vec![Domain::new("cpu", None, "model", Label::Modelled, Meter::Model { idle_uw: 1, full_uw: 2 })],
        policy: Policy { idle_milliwatts: 5_000, ..Policy::default() },
        profiler_pid: crate::model::units::Pid(1),
        identity: HostIdentity::default(),
    }
}

pub fn end() -> RunEnd {
    RunEnd { ended: UnixMicros(START.0 + 60_000_000), reason: "duration".into() }
}

pub fn process(index: u32) -> ProcessInfo {
    ProcessInfo {
        pid: Pid(1000 + index),
        start_boottime_ns: 50 * SECOND + u64::from(index) * 10_000_000,
        parent: Pid(1),
        comm: "java".into(),
        command_line: vec!["java".into(), "-jar".into(), format!("app-{index}.jar").into()],
        executable: Some("/usr/bin/java".into()),
        uid: 1000,
        gid: 1000,
        namespace_pid: 7,
        cgroup: Some("/system.slice/shop.service".into()),
        unit: Some("shop.service".into()),
        service: Some(Service { name: "shop".into(), version: Some("1.2".into()), from: ServiceFrom::Unit }),
        runtime: Runtime::Jvm {
            version: Some("21.0.2".into()),
            main_class: Some(format!("com.example.App{index}").into()),
            collector: Some("G1".into()),
            debug_non_safepoints: Some(false),
            unwinding: Some("hotspot".into()),
        },
        is_target: true,
        ..ProcessInfo::default()
    }
}

/// Method number `index`: mostly Java, some markers.
pub fn frame(index: u32) -> Frame {
    if index % 50 == 4 {
        return Frame::marker(Marker::Unresolved);
    }
    Frame {
        class: Some(format!("com.example.service.module{}.Component{}", index % 9, index % 61).into()),
        signature: Some("(Ljava/lang/String;I)V".into()),
        file: Some(format!("Component{}.java", index % 61).into()),
        line: Some(index),
        ..Frame::new(FrameKind::CompiledC2, format!("handleRequest{index}"))
    }
}

fn branches(load: Load, stacks: &mut StackTable, window: u64) -> Vec<BranchIndex> {
    let path = |branch: u32| {
        // A few branches are new in every window, most are known already.
        let seed = if branch < 5 { u64::from(branch) + 1000 * window } else { u64::from(branch) };
        let depth = 3 + noise(seed) % 40;
        let frame_at = |level: u64| u32::try_from(noise(seed * 64 + level) % u64::from(load.methods));
        (0..depth).filter_map(|level| frame_at(level).ok()).collect::<Vec<_>>()
    };
    (0..load.branches)
        .map(|branch| {
            let ids: Vec<FrameId> = path(branch).into_iter().map(|index| stacks.frame_id(frame(index))).collect();
            stacks.branch_index(&ids, quality(branch))
        })
        .collect()
}

fn quality(branch: u32) -> PathQuality {
    let end = match branch % 10 {
        3 => WalkEnd::Depth,
        6 => WalkEnd::NoMapping,
        _ => WalkEnd::Root,
    };
    PathQuality::Walked(StackQuality { unwinder: Unwinder::Tables, end })
}

/// Window number `index` of the run.
pub fn window(load: Load, stacks: &mut StackTable, index: u64) -> WindowReport {
    let branch_indices = branches(load, stacks, index);
    let threads: Vec<ThreadRow> = (0..load.processes * load.threads).map(|n| thread(load, index, n)).collect();
    let attributed = threads.iter().map(|thread| thread.energy).sum();
    let work = |n: u32| noise(index * 100_000 + u64::from(n)) % 90_000;
    let branch_row = |(n, branch): (u32, BranchIndex)| BranchRow {
        thread: (n % (load.processes * load.threads)) as usize,
        kind: SampleKind::CpuTime,
        branch,
        cpu_ns: work(n) * 1000,
        samples: work(n) / 9000,
        energy: MicroJoules(work(n)),
        by_bytes: MicroJoules(0),
    };
    let branches: Vec<BranchRow> = (0..).zip(branch_indices).map(branch_row).collect();
    let methods = method_rows(&threads, &branches, &[], stacks);
    WindowReport {
        index,
        start: MonotonicNs(100 * SECOND + index * SECOND),
        wall_start: UnixMicros(START.0 + i64::try_from(index).unwrap() * 1_000_000),
        length_ns: SECOND,
        domains: vec![audit(attributed)],
        cpu: CpuAudit { elapsed_ns: 8 * SECOND, busy_ns: 3 * SECOND, idle_ns: 5 * SECOND, ..CpuAudit::default() },
        context: Some(context(index)),
        marks: Vec::new(),
        counts: None,
        allocations: Vec::new(),
        collections: Vec::new(),
        charges: Vec::new(),
        moved: None,
        processes: (0..load.processes).map(process_ref).collect(),
        methods,
        qualities: quality_rows(&threads, &branches, |branch| stacks.facts(branch)),
        jvms: jvm_rows(&threads, &branches, |branch| stacks.facts(branch)),
        branches,
        slices: slices(&threads),
        threads,
        losses: vec![LossCount { cause: "stack_ring_full".into(), count: index % 2 }],
    }
}

/// A processor that gets warmer.
fn context(index: u64) -> WindowContext {
    WindowContext {
        mean_frequency_khz: Some(2_400_000 + noise(index) % 100_000),
        governor: Some("schedutil".into()),
        steal_ns: Some(index % 3 * 10_000_000),
        temperature_millicelsius: Some(41_000 + i64::try_from(index).unwrap()),
        ..WindowContext::default()
    }
}

fn slices(threads: &[ThreadRow]) -> Vec<ClaimedSlice> {
    let slice = |(index, thread): (usize, &ThreadRow)| ClaimedSlice {
        claimant: Claimant::Thread(index),
        place: Place::default(),
        slice: Slice { cpu_ns: thread.cpu_ns, samples: thread.samples, switches: 3, ..Slice::default() },
        factor: Factor::ONE,
    };
    let idle = Slice { cpu_ns: 5 * SECOND, ..Slice::default() };
    let idle = ClaimedSlice { claimant: Claimant::Idle, place: Place::default(), slice: idle, factor: Factor::ONE };
    threads.iter().enumerate().map(slice).chain([idle]).collect()
}

pub fn process_ref(index: u32) -> ProcessRef {
    let info = process(index);
    ProcessRef { pid: info.pid, start_boottime_ns: info.start_boottime_ns, comm: info.comm }
}

fn thread(load: Load, window: u64, n: u32) -> ThreadRow {
    let cpu_us = noise(window * 1000 + u64::from(n)) % 25_000;
    let is_gc = n % load.threads == 2;
    ThreadRow {
        process: (n / load.threads) as usize,
        tid: Tid(2000 + n),
        start_boottime_ns: 51 * SECOND + u64::from(n) * 10_000_000,
        name: if is_gc { format!("GC Thread#{n}").into() } else { format!("http-nio-8080-exec-{n}").into() },
        category: if is_gc { Category::Gc } else { Category::Java },
        cpu_ns: cpu_us * 1000,
        samples: cpu_us / 10_000,
        energy: MicroJoules(cpu_us * 11),
        by_bytes: MicroJoules(0),
    }
}

fn audit(attributed: MicroJoules) -> DomainAudit {
    let unattributed = Unattributed { kernel: MicroJoules(70_000), profiler: MicroJoules(9_000), ..Default::default() };
    let static_share = MicroJoules(5_000_000);
    let measured = MicroJoules(attributed.0 + static_share.0 + unattributed.total().0);
    let audit = DomainAudit::new(&run().domains[0], &Default::default());
    DomainAudit { measured, attributed, static_share, unattributed, read_delay_ns: 41_000, ..audit }
}

/// Plays `windows` windows of a run, from its start to its end.
pub fn play(output: &mut dyn Output, load: Load, windows: u64) -> Result<()> {
    let mut stacks = StackTable::default();
    output.run_started(&run())?;
    for index in 0..load.processes {
        output.process(&process(index));
    }
    for index in 0..windows {
        let report = window(load, &mut stacks, index);
        output.window(&report, &stacks)?;
    }
    output.run_ended(&end())
}
