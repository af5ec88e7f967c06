use std::collections::{BTreeMap, BTreeSet};

use joular_data::{
    attribution::{
        allocated::AllocationRow,
        window_report::{Category, ProcessRef, ThreadRow, WindowReport},
    },
    events::Runtime,
    fixture::{self, BUSY, SMALL},
    model::units::MicroJoules,
};

use super::{registry::KEPT_NS, *};

/// Series by name with labels, checked against the grammar of OpenMetrics: families stand together, each
/// with its type before its samples, labels are quoted, no series comes twice, and the end is marked.
fn parsed(text: &str) -> BTreeMap<String, u128> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with its mark");
    let (mut families, mut series) = (BTreeSet::new(), BTreeMap::new());
    let (mut family, mut suffix) = ("", "");
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "TYPE", name, kind] => {
                assert!(families.insert(*name), "{name} comes twice");
                family = *name;
                suffix = BTreeMap::from([("counter", "_total"), ("gauge", ""), ("info", "_info")])[kind];
            }
            ["#", "UNIT", name, unit] => assert!(*name == family && name.ends_with(&format!("_{unit}")), "{line}"),
            ["#", "HELP", name, _] => assert_eq!(*name, family),
            _ => {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                let labels = name.strip_prefix(family).and_then(|rest| rest.strip_prefix(suffix)).expect(line);
                check_labels(labels);
                assert!(series.insert(name.to_owned(), micro(value)).is_none(), "{name} comes twice");
            }
        }
    }
    series
}

/// The figure in millionths, or ten thousandths of them where it has nine digits.
fn micro(value: &str) -> u128 {
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    assert!([0, 6, 9].contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()), "{value}");
    format!("{whole}{part}").parse().expect(value)
}

fn check_labels(labels: &str) {
    let Some(mut rest) = labels.strip_prefix('{') else { return assert_eq!(labels, "") };
    loop {
        let (name, value) = rest.split_once("=\"").expect(labels);
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && !name.is_empty(), "{labels}");
        let mut characters = value.char_indices();
        let end = loop {
            match characters.next().expect(labels) {
                (end, '"') => break end,
                (_, '\\') => assert!(matches!(characters.next(), Some((_, '\\' | '"' | 'n'))), "{labels}"),
                (_, character) => assert!(!character.is_control(), "{labels}"),
            }
        };
        match &value[end + 1..] {
            "}" => return,
            more => rest = more.strip_prefix(',').expect(labels),
        }
    }
}

fn sum(series: &BTreeMap<String, u128>, name: &str) -> u128 {
    let is_of = |key: &str| key == name || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
    series.iter().filter(|(key, _)| is_of(key)).map(|(_, value)| value).sum()
}

/// With bytes that each thread allocated.
fn allocating(mut report: WindowReport) -> WindowReport {
    let branch = report.branches[0].branch;
    let allocated = |thread: usize| AllocationRow::new(thread, branch, 1000 + thread as u64, 1);
    report.allocations = (0..report.threads.len()).map(allocated).collect();
    report
}

fn registry(limits: Limits) -> Registry {
    Registry::new(limits, &fixture::run())
}

fn shown(registry: &Registry) -> BTreeMap<String, u128> {
    let shipped = Shipped { waiting_runs: 3, last_success: Some(UnixMicros(1_500_000)), ..Shipped::default() };
    let service = ServiceFigures { unwritten_windows: Some(7), shipped: Some(shipped) };
    let mut text = Exposition::default();
    tell(&mut text, registry, Own { lag_ns: 5, resident_bytes: Some(7), service, pushed: Some(Pushed::default()) });
    parsed(&text.finish())
}

/// Whether each series that is a counter and still there has not gone back.
fn goes_on(before: &BTreeMap<String, u128>, after: &BTreeMap<String, u128>) -> bool {
    let is_counter = |key: &str| key.split('{').next().is_some_and(|name| name.ends_with("_total"));
    before.iter().filter(|(key, _)| is_counter(key)).all(|(key, value)| after.get(key).is_none_or(|now| now >= value))
}

#[test]
fn the_text_is_open_metrics_and_its_sums_are_the_windows() {
    let (mut registry, mut stacks) = (registry(Limits::new(3)), StackTable::default());
    (0..SMALL.processes).for_each(|index| registry.process(&fixture::process(index)));
    let (mut measured, mut targets, mut methods, mut before) = (0, 0, 0, BTreeMap::new());
    let mut bytes = 0;
    for index in 0..20 {
        let report = allocating(fixture::window(SMALL, &mut stacks, index));
        bytes += report.allocations.iter().map(|row| u128::from(row.bytes)).sum::<u128>();
        measured += report.domains.iter().map(|audit| u128::from(audit.measured.0)).sum::<u128>();
        targets += report.threads.iter().map(|thread| u128::from(thread.energy.0)).sum::<u128>();
        methods += report.methods.iter().map(|row| u128::from(row.own.energy.0)).sum::<u128>();
        registry.window(&report, &stacks);
        let series = shown(&registry);
        assert!(methods > 0 && measured > 0 && targets > 0);
        assert_eq!(sum(&series, "joular_domain_joules_total"), measured);
        assert_eq!(sum(&series, "joular_domain_part_joules_total"), measured);
        assert_eq!(sum(&series, "joular_targets_joules_total"), targets);
        assert_eq!(sum(&series, "joular_process_joules_total"), targets);
        assert_eq!(sum(&series, "joular_targets_bytes_total"), bytes);
        assert_eq!(sum(&series, "joular_process_bytes_total"), bytes);
        assert_eq!(sum(&series, "joular_method_joules_total"), methods);
        assert_eq!(sum(&series, "joular_process_other_joules_total"), 0);
        assert_eq!(sum(&series, "joular_windows_total"), u128::from(index) + 1);
        assert_eq!(sum(&series, "joular_last_window_index"), u128::from(index));
        let start = u128::try_from(report.wall_start.0).unwrap();
        assert_eq!(sum(&series, "joular_last_window_start_seconds"), start);
        assert!(goes_on(&before, &series), "{before:?} {series:?}");
        before = series;
    }
}

#[test]
fn probes_know_when_the_last_window_ended() {
    let mut output = MetricsOutput::new(None, 0, Arc::new(ServiceFigures::default), None);
    let live = output.live();
    let well = |live: &LiveMetrics| (live.is_alive().0, live.is_ready().0);
    assert_eq!(well(&live), (true, false), "the run has not begun");
    output.run_started(&fixture::run()).unwrap();
    assert_eq!(well(&live), (true, false), "the first window is under way");
    let mut stacks = StackTable::default();
    let window = fixture::window(SMALL, &mut stacks, 0);
    let ending = |ended_ns: u64| WindowReport { start: MonotonicNs(ended_ns - window.length_ns), ..window.clone() };
    let now = clock::monotonic_now().0;
    output.window(&ending(now - 10_000_000_000), &stacks).unwrap();
    assert_eq!(well(&live), (true, true));
    output.window(&ending(now - 40_000_000_000), &stacks).unwrap();
    assert_eq!(well(&live), (false, true));
    assert!(live.is_alive().1.starts_with("the last window ended 4"), "{:?}", live.is_alive());
}

/// docs/metrics.md has the table.
#[test]
fn a_jvm_has_as_many_series_as_the_document_says() {
    for (methods, most) in [(0, 15), (3, 15 + 1 + 4 * 3)] {
        let (mut registry, mut stacks) = (registry(Limits::new(methods)), StackTable::default());
        (0..SMALL.processes).for_each(|index| registry.process(&fixture::process(index)));
        for index in 0..20 {
            registry.window(&fixture::window(SMALL, &mut stacks, index), &stacks);
        }
        let series = shown(&registry);
        let of_processes = series.keys().filter(|key| key.contains("pid=\"")).count();
        let jvms = SMALL.processes as usize;
        assert!(of_processes >= 15 * jvms && of_processes <= most * jvms, "{methods}: {of_processes} of {jvms} JVMs");
    }
}

#[test]
fn before_the_first_window_there_is_a_valid_text() {
    let series = shown(&registry(Limits::new(20)));
    assert_eq!(sum(&series, "joular_windows_total"), 0);
    assert_eq!(sum(&series, "joular_targets_joules_total"), 0);
}

#[test]
fn series_are_bounded_and_nothing_is_missing_from_their_sum() {
    let limits = Limits { processes: 2, ended: 1, methods: 5, top_methods: 4 };
    let (mut registry, mut stacks, mut targets) = (registry(limits), StackTable::default(), 0);
    for index in 0..5 {
        let report = allocating(fixture::window(BUSY, &mut stacks, index));
        targets += report.threads.iter().map(|thread| u128::from(thread.energy.0)).sum::<u128>();
        registry.window(&report, &stacks);
    }
    let series = shown(&registry);
    let count = |name: &str| series.keys().filter(|key| key.starts_with(name)).count();
    assert_eq!(count("joular_process_joules_total{"), 2);
    // The rest of each process is one more.
    assert_eq!(count("joular_method_joules_total{"), 5 + 2);
    let other = sum(&series, "joular_process_other_joules_total");
    assert!(other > 0);
    assert_eq!(sum(&series, "joular_process_joules_total") + other, targets);
    let of = |name: &str| sum(&series, name);
    let with_series = of("joular_process_bytes_total");
    assert!(with_series > 0);
    assert_eq!(with_series + of("joular_process_other_bytes_total"), of("joular_targets_bytes_total"));
}

#[test]
fn an_ended_process_keeps_its_series_for_a_while_and_then_is_in_the_rest() {
    let (mut registry, mut stacks) = (registry(Limits::new(3)), StackTable::default());
    let report = fixture::window(SMALL, &mut stacks, 0);
    registry.window(&report, &stacks);
    let process = report.processes[0].clone();
    registry.process_ended((process.pid, process.start_boottime_ns));
    let label = format!("joular_process_joules_total{{pid=\"{}\"", process.pid);
    let mut later = WindowReport { length_ns: 1, start: report.start, ..WindowReport::default() };
    let ended = report.start.0 + report.length_ns;
    for (start_ns, is_there) in [(ended + KEPT_NS, true), (ended + KEPT_NS + 1, false)] {
        later.start.0 = start_ns;
        let before = shown(&registry);
        registry.window(&later, &stacks);
        let series = shown(&registry);
        assert_eq!(series.keys().any(|key| key.starts_with(&label)), is_there);
        assert_eq!(
            sum(&series, "joular_process_joules_total") + sum(&series, "joular_process_other_joules_total"),
            sum(&series, "joular_targets_joules_total")
        );
        assert!(goes_on(&before, &series));
    }
}

#[test]
fn of_too_many_ended_processes_those_with_the_most_energy_stay() {
    let mut registry = registry(Limits { ended: 1, ..Limits::new(0) });
    let mut report = WindowReport { length_ns: 1, ..WindowReport::default() };
    for (pid, energy) in [(1, 5), (2, 9), (3, 7)] {
        let process = ProcessRef { pid: Pid(pid), start_boottime_ns: 1, comm: "x".into() };
        report.threads.push(ThreadRow {
            process: report.processes.len(),
            tid: joular_data::model::units::Tid(pid),
            start_boottime_ns: 1,
            name: "x".into(),
            category: Category::Native,
            cpu_ns: 1,
            samples: 0,
            energy: MicroJoules(energy),
            by_bytes: MicroJoules(0),
        });
        report.processes.push(process);
    }
    registry.window(&report, &StackTable::default());
    (1..=3).for_each(|pid| registry.process_ended((Pid(pid), 1)));
    registry.window(&WindowReport::default(), &StackTable::default());
    let series = shown(&registry);
    assert_eq!(series["joular_process_joules_total{pid=\"2\",comm=\"x\"}"], 9);
    assert_eq!(sum(&series, "joular_process_joules_total"), 9);
    assert_eq!(sum(&series, "joular_process_other_joules_total"), 12);
}

#[test]
fn a_process_with_the_pid_of_an_ended_one_takes_its_place() {
    let mut registry = registry(Limits::new(0));
    let process = |start_boottime_ns| ProcessInfo {
        pid: Pid(7),
        start_boottime_ns,
        comm: "same".into(),
        is_target: true,
        ..ProcessInfo::default()
    };
    registry.process(&process(1));
    registry.process_ended((Pid(7), 1));
    registry.process(&process(2));
    assert_eq!(shown(&registry).keys().filter(|key| key.starts_with("joular_process_joules_total{")).count(), 1);
}

#[test]
fn texts_of_targets_cannot_break_the_format() {
    let mut registry = registry(Limits::new(0));
    let hostile = "\"} 9\njoular_targets_joules_total 1\\\u{202e}\0".repeat(1000);
    registry.process(&ProcessInfo {
        pid: Pid(7),
        comm: hostile.as_str().into(),
        container: Some(hostile.as_str().into()),
        pod: Some(hostile.as_str().into()),
        runtime: Runtime::Jvm {
            version: None,
            main_class: Some(hostile.as_str().into()),
            collector: None,
            debug_non_safepoints: None,
            unwinding: None,
        },
        is_target: true,
        ..ProcessInfo::default()
    });
    let series = shown(&registry);
    assert_eq!(sum(&series, "joular_targets_joules_total"), 0);
    assert!(series.keys().all(|key| key.len() < 2000));
}

#[test]
fn a_process_found_before_the_first_window_begins_with_the_first_methods_only() {
    let (mut registry, mut stacks) = (registry(Limits::new(1)), StackTable::default());
    (0..SMALL.processes).for_each(|index| registry.process(&fixture::process(index)));
    let mut report = fixture::window(SMALL, &mut stacks, 0);
    report.start = MonotonicNs(10 * 3_600_000_000_000);
    registry.window(&report, &stacks);
    assert!(registry.processes.values().all(|process| process.methods.series().len() == 1));
}
