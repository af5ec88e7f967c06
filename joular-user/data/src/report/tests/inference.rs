//! What no sample hit is shared out, the same in all views: on data sets whose every number is chosen.

use std::path::Path;

use joular_ebpf::abi::{Place as KeyPlace, ThreadKey};

use crate::{
    attribution::Engine,
    dataset::{OutputDirectory, ParquetOutput, fixture::SECOND},
    events::{
        CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunEnd, RunInfo, Runtime, SampleCount, Symbol,
        ThreadTime, Window,
    },
    model::{
        domain::{Domain, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        quality::{StackQuality, Unwinder, WalkEnd},
        units::{Address, MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
    },
    output::Output as _,
    report::profile::{Catalog, DataSet, EnergyRow, Filter, Names, Profile},
};

/// What a thread did in a window: µs on a CPU, which are µJ too, and samples by method.
#[derive(Clone, Debug)]
pub(super) struct Did {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) name: &'static str,
    pub(super) cpu_us: u64,
    pub(super) seen: Vec<(u64, u32)>,
}

pub(super) fn did(tid: u32, name: &'static str, cpu_us: u64, seen: &[(u64, u32)]) -> Did {
    Did { pid: tid / 100, tid, name, cpu_us, seen: seen.to_vec() }
}

/// Runs an older version of the JVM than others do.
const OLD_JVM: Pid = Pid(9);

/// Writes a data set of windows of one second. Methods have numbers from 1 and are called `m1`….
pub(super) fn write(root: &Path, methods: u64, windows: &[Vec<Did>]) {
    write_drawing(root, methods, windows, |did| did.cpu_us);
}

/// The same, of threads that use so many µJ.
pub(super) fn write_drawing(root: &Path, methods: u64, windows: &[Vec<Did>], uj: impl Fn(&Did) -> u64) {
    let meter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 1, max_watts: 1_000 };
    let run = RunInfo {
        run_id: "run-1".into(),
        host: "node-1".into(),
        started: UnixMicros(0),
        interval_ns: SECOND,
        frequency_hz: 99,
        domains: vec![Domain::new("package", Some(0), "test", Label::Measured, meter)],
        profiler_pid: Pid(1),
        sockets: 1,
        ..RunInfo::default()
    };
    let mut pids: Vec<u32> = windows.iter().flatten().map(|did| did.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut events = vec![Event::RunStarted(Box::new(run))];
    for pid in pids.iter().map(|pid| Pid(*pid)) {
        let (comm, mut runtime) = ("java".into(), Runtime::UNKNOWN_JVM);
        if let Runtime::Jvm { version, .. } = &mut runtime {
            *version = Some(if pid == OLD_JVM { "11" } else { "17" }.into());
        }
        events.push(Event::Process(Box::new(ProcessInfo {
            pid,
            comm,
            runtime,
            is_target: true,
            ..ProcessInfo::default()
        })));
        let symbol = |method: u64| Symbol {
            address: Address(method * 0x100 - 1),
            frames: vec![Frame { class: Some("A".into()), ..Frame::new(FrameKind::CompiledC2, format!("m{method}")) }],
        };
        events.push(Event::Symbols {
            pid,
            start_boottime_ns: 0,
            symbols: (1..=methods)
                .flat_map(|method| [symbol(method), Symbol { address: Address(method * 0x100), ..symbol(method) }])
                .collect(),
        });
    }
    events.extend((1..=methods).map(|id| {
        let quality = StackQuality { unwinder: Unwinder::Tables, end: WalkEnd::Root };
        Event::Stack(RawStack { id, is_kernel: false, quality, frames: vec![Address(id * 0x100)] })
    }));
    let reading = |second: u64, counter: u64| {
        let read_at = MonotonicNs(second * SECOND + 50_000);
        Event::Energy(EnergyReading { read_at, readings: vec![Reading::CounterUj(counter)] })
    };
    let mut counter = 0;
    events.push(reading(0, counter));
    for (index, threads) in (0..).zip(windows) {
        counter += threads.iter().map(&uj).sum::<u64>();
        events.extend([reading(index + 1, counter), window(index, threads)]);
    }
    events.push(Event::RunEnded(RunEnd { ended: UnixMicros(1), reason: "duration".into() }));
    let mut output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), 7 * SECOND);
    let mut engine = Engine::default();
    for event in events {
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

fn window(index: u64, threads: &[Did]) -> Event {
    let time = |did: &Did| {
        let mut comm = [0; 16];
        comm[..did.name.len()].copy_from_slice(did.name.as_bytes());
        ThreadTime {
            tid: Tid(did.tid),
            pid: Pid(did.pid),
            start_boottime_ns: u64::from(did.tid) * SECOND,
            comm,
            cpu_ns: did.cpu_us * 1000,
            samples: did.seen.iter().map(|(_, count)| count).sum(),
            ..ThreadTime::default()
        }
    };
    let samples = threads.iter().flat_map(|did| {
        did.seen.iter().map(|(method, count)| SampleCount {
            tid: Tid(did.tid),
            pid: Pid(did.pid),
            thread_key: ThreadKey::new(Tid(did.tid).0, u64::from(did.tid) * SECOND, KeyPlace::new(0, 0)).0,
            user_stack: *method,
            count: *count,
            ..SampleCount::default()
        })
    });
    let busy_ns = threads.iter().map(|did| did.cpu_us * 1000).sum();
    let length_ns = SECOND.max(busy_ns);
    Event::Window(Box::new(Window {
        index,
        start: MonotonicNs(index * SECOND),
        end: MonotonicNs((index + 1) * SECOND),
        wall_start: UnixMicros(i64::try_from(index * 1_000_000).unwrap()),
        losses: Vec::new(),
        cpus: vec![CpuTimes { busy_ns, idle_ns: length_ns - busy_ns, ..CpuTimes::default() }],
        threads: threads.iter().map(time).collect(),
        samples: samples.collect(),
    }))
}

fn written(windows: &[Vec<Did>]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, windows);
    root
}

fn leaf(catalog: &Catalog, path: crate::report::profile::PathIndex) -> String {
    catalog.paths.frames_of(path).next_back().unwrap().method().into_raw()
}

/// Thread, method, energy, what of it is inferred, samples.
type Entry = (u32, String, u64, u64, u64);

fn entries(root: &tempfile::TempDir, filter: &Filter) -> Vec<Entry> {
    let profile = Profile::read(root.path(), filter, None).unwrap();
    let thread = |entry: &crate::report::profile::ThreadPath| profile.catalog.thread(entry.thread).tid.0;
    let mut entries: Vec<Entry> = profile
        .entries
        .iter()
        .map(|entry| {
            (thread(entry), leaf(&profile.catalog, entry.path), entry.energy.0, entry.inferred.0, entry.samples)
        })
        .collect();
    entries.sort_unstable();
    entries
}

fn expected(entries: &[(u32, &str, u64, u64, u64)]) -> Vec<Entry> {
    entries
        .iter()
        .map(|(tid, name, energy, inferred, samples)| (*tid, (*name).to_owned(), *energy, *inferred, *samples))
        .collect()
}

const AS_RECORDED: fn() -> Filter = || Filter { no_infer: true, ..Filter::default() };

#[test]
fn a_window_without_a_sample_gets_those_of_the_threads_other_light_windows() {
    let root = written(&[
        vec![did(100, "main", 10, &[(1, 1)])],
        vec![did(100, "main", 100, &[])],
        vec![did(100, "main", 10, &[(2, 1)])],
    ]);
    assert_eq!(entries(&root, &Filter::default()), expected(&[(100, "A.m1", 60, 50, 1), (100, "A.m2", 60, 50, 1)]));
    let recorded = [(100, "A.m1", 10, 0, 1), (100, "A.m2", 10, 0, 1), (100, "[no sample]", 100, 0, 0)];
    assert_eq!(entries(&root, &AS_RECORDED()), expected(&recorded));
}

#[test]
fn windows_that_have_none_to_join_are_divided_together() {
    let mut windows = vec![vec![did(100, "main", 10, &[(1, 1)])], vec![did(100, "main", 10, &[(2, 3)])]];
    windows.resize(200, Vec::new());
    windows.push(vec![did(100, "main", 100, &[])]);
    assert_eq!(
        entries(&written(&windows), &Filter::default()),
        expected(&[(100, "A.m1", 30, 25, 1), (100, "A.m2", 90, 75, 3)])
    );
}

#[test]
fn heavy_windows_stay_as_they_are_and_speak_only_where_no_light_one_does() {
    let heavy = did(100, "main", 200_000, &[(2, 20)]);
    let mut windows = vec![vec![did(100, "main", 10, &[(1, 1)])], vec![heavy], vec![did(100, "main", 100, &[])]];
    assert_eq!(
        entries(&written(&windows), &Filter::default()),
        expected(&[(100, "A.m1", 110, 100, 1), (100, "A.m2", 200_000, 0, 20)])
    );
    windows.remove(0);
    assert_eq!(entries(&written(&windows), &Filter::default()), expected(&[(100, "A.m2", 200_100, 100, 20)]));
}

/// Of three strata of a thread, each is divided by its own samples.
#[test]
fn light_windows_are_divided_by_their_neighbours() {
    let light = |method| move |second: u64| vec![did(100, "main", 20_000 + second, &[(method, 2)])];
    let mut windows: Vec<Vec<Did>> = (0..9).map(light(1)).chain((9..18).map(light(2))).collect();
    windows[4] = vec![did(100, "main", 20_000, &[])];
    windows[13] = vec![did(100, "main", 20_000, &[(1, 1)])];
    let found = entries(&written(&windows), &Filter::default());
    // Nine windows of 20 ms are full.
    let [first, second] = [0..9, 9..18].map(|of| windows[of].iter().map(|window| window[0].cpu_us).sum::<u64>());
    let [(_, _, one, inferred, 17), (_, _, two, 0, 16)] = found[..] else { panic!("{found:?}") };
    assert_eq!((one + two, inferred), (first + second, 20_000));
    assert!(one.abs_diff(first + second / 17) <= 10, "{one} of {first} and {second}");
}

#[test]
fn a_thread_without_any_sample_goes_by_namesakes_in_its_process_only() {
    let root = written(&[vec![
        did(100, "pool", 30, &[(1, 3)]),
        did(101, "pool", 10, &[(2, 1)]),
        did(102, "pool", 7, &[]),
        did(103, "other", 5, &[]),
        did(200, "pool", 3, &[]),
    ]]);
    let found = entries(&root, &Filter::default());
    let named =
        [(102, "A.m1", 5, 5, 0), (102, "A.m2", 2, 2, 0), (103, "[no sample]", 5, 0, 0), (200, "[no sample]", 3, 0, 0)];
    assert_eq!(found[2..], expected(&named), "{found:?}");
}

#[test]
fn a_jvms_own_thread_without_namesakes_goes_by_those_in_jvms_of_its_version() {
    let root = written(&[vec![
        did(100, "VM Thread", 10, &[(1, 1)]),
        did(200, "VM Thread", 20, &[(2, 1)]),
        did(300, "VM Thread", 8, &[]),
        did(301, "Signal Dispatch", 4, &[]),
        did(900, "VM Thread", 6, &[]),
    ]]);
    let found = entries(&root, &Filter::default());
    let named =
        [(300, "A.m1", 4, 4, 0), (300, "A.m2", 4, 4, 0), (301, "[no sample]", 4, 0, 0), (900, "[no sample]", 6, 0, 0)];
    assert_eq!(found[2..], expected(&named), "{found:?}");
    // Only samples of the selection count.
    let alone = entries(&root, &Filter { pids: vec![Pid(3)], ..Filter::default() });
    assert_eq!(alone, expected(&[(300, "[no sample]", 8, 0, 0), (301, "[no sample]", 4, 0, 0)]));
}

#[test]
fn time_goes_the_way_of_energy_and_threads_keep_theirs() {
    let root = written(&made_up());
    let [inferred, recorded] =
        [Filter::default(), AS_RECORDED()].map(|filter| Profile::read(root.path(), &filter, None).unwrap());
    assert_eq!(inferred.threads.len(), recorded.threads.len());
    let mut shared = MicroJoules(0);
    for (ours, theirs) in inferred.threads.iter().zip(&recorded.threads) {
        assert_eq!((ours.energy, ours.cpu_ns, ours.samples), (theirs.energy, theirs.cpu_ns, theirs.samples));
        shared = shared.saturating_add(ours.inferred);
        assert_eq!(theirs.inferred.0, 0);
    }
    assert!(shared.0 > 0 && inferred.energy() == inferred.overview.attributed);
}

/// Threads of two processes, of which some are seldom hit, over several horizons.
fn made_up() -> Vec<Vec<Did>> {
    let noise = |seed: u64, below: u64| twox_hash::XxHash64::oneshot(5, &seed.to_le_bytes()) % below;
    let thread = |second: u64, number: u32| {
        let seed = second * 100 + u64::from(number) * 7;
        let tid = 100 * (1 + number % 2) + number;
        let count = if noise(seed, 2 + u64::from(number) * 40) < 2 { 1 + noise(seed + 1, 3) } else { 0 };
        let seen: Vec<(u64, u32)> = (0..count).map(|n| (1 + noise(seed + 2 + n, 4), 1)).collect();
        let name = if number < 4 { "pool" } else { "alone" };
        did(tid, name, 1 + noise(seed + 9, 977), &seen)
    };
    let ran = |second: u64| (0..8).filter(move |number| noise(second * 31 + u64::from(*number), 3) > 0);
    (0..150).map(|second| ran(second).map(|number| thread(second, number)).collect()).collect()
}

#[test]
fn rows_in_time_sum_to_the_sums_and_windows_keep_what_they_had() {
    let root = written(&made_up());
    for filter in [
        Filter::default(),
        AS_RECORDED(),
        Filter { threads: Names::parse(&["pool".into()]).unwrap(), ..Filter::default() },
    ] {
        let profile = Profile::read(root.path(), &filter, None).unwrap();
        let mut data = DataSet::open(root.path(), &filter).unwrap();
        let summed = data.sums(&filter, &mut |_, _| {}).unwrap();
        assert_eq!(summed.entries, profile.entries);
        let mut by_path = std::collections::BTreeMap::new();
        let [mut in_windows, mut recorded] = [(); 2].map(|()| std::collections::BTreeMap::new());
        let mut last = UnixMicros(i64::MIN);
        let add = |sums: &mut std::collections::BTreeMap<_, _>, row: &EnergyRow| {
            let sum: &mut (u64, u64) = sums.entry((row.window_start, row.thread)).or_default();
            *sum = (sum.0 + row.energy.0, sum.1 + row.cpu_ns);
        };
        data.scan_in_time(&filter, &summed, &mut |_, row| {
            assert!(row.window_start >= last, "windows come in the order of time");
            last = row.window_start;
            add(&mut in_windows, row);
            let sum: &mut (u64, u64, u64, u64) = by_path.entry((row.thread, row.path)).or_default();
            let inferred = row.amounts().inferred.0;
            *sum = (sum.0 + row.energy.0, sum.1 + row.cpu_ns, sum.2 + row.samples, sum.3 + inferred);
        })
        .unwrap();
        data.scan(&filter, &mut |_, row| add(&mut recorded, row)).unwrap();
        assert_eq!(in_windows, recorded);
        let entries: std::collections::BTreeMap<_, _> = profile
            .entries
            .iter()
            .map(|entry| ((entry.thread, entry.path), (entry.energy.0, entry.cpu_ns, entry.samples, entry.inferred.0)))
            .collect();
        assert_eq!(by_path, entries);
    }
}
