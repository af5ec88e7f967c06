//! Tests what a run's sums say of windows in which no sample hit a thread.

use std::collections::BTreeMap;

use super::*;
use crate::{
    attribution::window_report::{BranchRow, Category, MethodRow, Share as MethodShare},
    events::{RunInfo, SampleKind},
    model::{
        frame::{Frame, FrameKind},
        quality::PathQuality,
        units::{Tid, UnixMicros},
    },
};

const MS: u64 = 1_000_000;

/// A run of one thread: of each window µJ, which are ms on a CPU too, and the methods of its samples.
fn run(windows: &[(i64, u64, &[&str])], totals: Totals) -> Totals {
    run_moving(windows, 0, totals)
}

/// The same, whose thread moves bytes in each window, by calls that no sample hit: they cost `moved_uj`.
fn run_moving(windows: &[(i64, u64, &[&str])], moved_uj: u64, mut totals: Totals) -> Totals {
    let mut stacks = StackTable::default();
    totals.run(&RunInfo { frequency_hz: 99, interval_ns: 1000 * MS, ..RunInfo::default() });
    for (second, energy, seen) in windows {
        let names = if seen.is_empty() { &["[no sample]"][..] } else { *seen };
        let samples = if seen.is_empty() { 0 } else { 1 };
        let count = u64::try_from(names.len()).unwrap();
        let mut report = WindowReport {
            wall_start: UnixMicros(second * 1_000_000),
            length_ns: 1_000_000_000,
            processes: vec![ProcessRef { pid: Pid(1), start_boottime_ns: 0, comm: "java".into() }],
            threads: vec![ThreadRow {
                process: 0,
                tid: Tid(1),
                start_boottime_ns: 0,
                name: "main".into(),
                category: Category::Java,
                cpu_ns: MS * energy,
                samples: samples * count,
                energy: MicroJoules(*energy),
                by_bytes: MicroJoules(0),
            }],
            ..WindowReport::default()
        };
        for name in names {
            let kind = if seen.is_empty() { FrameKind::Marker } else { FrameKind::CompiledC2 };
            let frame = stacks.frame_id(Frame::new(kind, *name));
            let branch = stacks.branch_index(&[frame], PathQuality::default());
            let (cpu_ns, energy) = (MS * energy / count, MicroJoules(energy / count));
            let kind = SampleKind::CpuTime;
            report.branches.push(BranchRow {
                thread: 0,
                kind,
                branch,
                cpu_ns,
                samples,
                energy,
                by_bytes: MicroJoules(0),
            });
            let own = MethodShare { energy, cpu_ns, samples, ..MethodShare::default() };
            report.methods.push(MethodRow { process: 0, method: frame, own, total: own });
        }
        if moved_uj > 0 {
            let frame = stacks.frame_id(Frame::new(FrameKind::Marker, "[no sample]"));
            let energy = MicroJoules(moved_uj);
            match report.branches.iter_mut().find(|row| row.samples == 0) {
                Some(row) => (row.energy, row.by_bytes) = (row.energy.saturating_add(energy), energy),
                None => report.branches.push(BranchRow {
                    thread: 0,
                    kind: SampleKind::CpuTime,
                    branch: stacks.branch_index(&[frame], PathQuality::default()),
                    cpu_ns: 0,
                    samples: 0,
                    energy,
                    by_bytes: energy,
                }),
            }
        }
        totals.window(&report, &stacks);
    }
    totals
}

fn methods(totals: &Totals) -> Vec<(String, u64, u64)> {
    totals
        .methods
        .named(usize::MAX)
        .into_iter()
        .map(|(name, _, tally)| (name.into_raw(), tally.energy.0, tally.inferred.0))
        .collect()
}

const WINDOWS: [(i64, u64, &[&str]); 4] = [(0, 10, &["a"]), (1, 100, &[]), (2, 20, &["b"]), (3, 30, &["c", "c"])];

#[test]
fn the_sums_of_a_run_have_names_when_it_ends() {
    let mut totals = run(&WINDOWS, Totals::default());
    assert_eq!(totals.marker(Marker::NoSample).0, 100, "what comes may be as near as what was");
    totals.finish();
    let expected = [("c", 80, 50), ("a", 40, 25), ("b", 40, 25), ("[no sample]", 0, 0)];
    assert_eq!(methods(&totals), expected.map(|(name, energy, inferred)| (name.to_owned(), energy, inferred)));
    assert_eq!((totals.marker(Marker::NoSample).0, totals.inferred.0), (0, 100));
}

/// What goes by bytes is not a time without a sample.
#[test]
fn bytes_that_no_sample_saw_do_not_hide_the_samples_of_their_window() {
    let inferred = |mut totals: Totals| {
        totals.finish();
        methods(&totals).into_iter().map(|(name, _, inferred)| (name, inferred)).collect::<BTreeMap<_, _>>()
    };
    let found = inferred(run_moving(&WINDOWS, 7, Totals::default()));
    assert_eq!(found, inferred(run(&WINDOWS, Totals::default())));
}

#[test]
fn what_is_far_from_any_sample_goes_by_the_whole_run() {
    let windows: [(i64, u64, &[&str]); 3] = [(0, 10, &["a"]), (90, 100, &[]), (200, 30, &["c", "c"])];
    let mut totals = run(&windows, Totals::default());
    totals.finish();
    assert_eq!(methods(&totals)[0], ("c".to_owned(), 97, 67));
}

#[test]
fn whoever_wants_none_of_it_sees_what_was_recorded() {
    let mut totals = run(&WINDOWS, Totals::default().without_inference());
    totals.finish();
    assert_eq!((totals.marker(Marker::NoSample).0, totals.inferred.0), (100, 0));
}

/// JVMs' own threads, one after the other: the process, the JVM's version, and the method of its sample.
#[test]
fn a_jvms_own_thread_goes_by_those_in_jvms_of_its_version() {
    let mut totals = Totals::default();
    let mut stacks = StackTable::default();
    for (pid, version, energy, seen) in [(1, "17", 10, Some("a")), (2, "17", 8, None), (3, "11", 6, None)] {
        let runtime = Runtime::Jvm {
            version: Some(version.into()),
            main_class: None,
            collector: Some("Serial".into()),
            debug_non_safepoints: None,
            unwinding: None,
        };
        totals.process(&ProcessInfo { pid: Pid(pid), runtime, ..ProcessInfo::default() });
        let samples = u64::from(seen.is_some());
        let kind = if seen.is_some() { FrameKind::Vm } else { FrameKind::Marker };
        let frame = stacks.frame_id(Frame::new(kind, seen.unwrap_or("[no sample]")));
        let branch = stacks.branch_index(&[frame], PathQuality::default());
        let energy = MicroJoules(energy);
        let own = MethodShare { energy, cpu_ns: 1, samples, ..MethodShare::default() };
        totals.window(
            &WindowReport {
                wall_start: UnixMicros(i64::from(pid) * 1_000_000),
                length_ns: 1_000_000_000,
                processes: vec![ProcessRef { pid: Pid(pid), start_boottime_ns: 0, comm: "java".into() }],
                threads: vec![ThreadRow {
                    process: 0,
                    tid: Tid(pid),
                    start_boottime_ns: 0,
                    name: "VM Thread".into(),
                    category: Category::Vm,
                    cpu_ns: 1,
                    samples,
                    energy,
                    by_bytes: MicroJoules(0),
                }],
                branches: vec![BranchRow {
                    thread: 0,
                    kind: SampleKind::CpuTime,
                    branch,
                    cpu_ns: 1,
                    samples,
                    energy,
                    by_bytes: MicroJoules(0),
                }],
                methods: vec![MethodRow { process: 0, method: frame, own, total: own }],
                ..WindowReport::default()
            },
            &stacks,
        );
    }
    totals.finish();
    let expected = [("a", 18, 8), ("[no sample]", 6, 0)];
    assert_eq!(methods(&totals), expected.map(|(name, energy, inferred)| (name.to_owned(), energy, inferred)));
}

#[test]
fn a_process_that_has_ended_has_the_sums_that_it_would_have_at_the_runs_end() {
    let far: [(i64, u64, &[&str]); 5] =
        [(0, 10, &["a"]), (1, 100, &[]), (2, 20, &["b"]), (90, 200, &[]), (200, 30, &["c", "c"])];
    let of = |ends: bool| {
        let mut totals = run(&far, Totals::default());
        if ends {
            totals.process_ended(Pid(1), 0);
            totals.window(&WindowReport::default(), &StackTable::default());
            assert_eq!(totals.marker(Marker::NoSample).0, 0, "what is left is shared out before the run ends");
        }
        totals.finish();
        (methods(&totals), totals.inferred, totals.marker(Marker::NoSample))
    };
    assert_eq!(of(true), of(false));
}
