mod formats;
mod names;

use proptest::prelude::*;

use super::{
    activations::Activations,
    command::{Report, write},
    groups::Groups,
    rows::Cut,
    text::activation,
    *,
};
use crate::{
    attribution::window_report::Category,
    events::RunInfo,
    model::{
        frame::{Frame, FrameKind},
        units::{MicroJoules, Pid, Tid, UnixMicros},
    },
    report::profile::{
        App, OUTSIDE_APP, PathIndex, Process, ProcessIndex, Profile, Run, Thread, ThreadIndex, ThreadPath,
    },
    sampling::{Interval, Sampled},
};

pub(super) fn java(class: &str, name: &str) -> Frame {
    Frame { class: Some(class.into()), ..Frame::new(FrameKind::CompiledC2, name) }
}

fn native(name: &str, module: &str) -> Frame {
    Frame { module: Some(module.into()), ..Frame::new(FrameKind::Native, name) }
}

/// Of entries that belong to these threads: frames root → leaf, energy, samples.
pub(super) fn profile(threads: usize, entries: &[(u32, &[Frame], u64, u64)]) -> Profile {
    let mut profile = Profile::default();
    let info = RunInfo { host: "node-1".into(), run_id: "run-1".into(), ..RunInfo::default() };
    profile.catalog.runs.push(Run { info, ..Run::default() });
    let process = Process { pid: Pid(7), comm: "java".into(), ..Process::default() };
    profile.catalog.processes.push(process);
    for number in 0..threads {
        profile.catalog.threads.push(Thread {
            process: ProcessIndex(0),
            tid: Tid(100 + u32::try_from(number).unwrap()),
            start: UnixMicros(0),
            name: format!("worker-{number}").into(),
            category: if number == 0 { Category::Java } else { Category::Gc },
        });
    }
    profile.threads = vec![Default::default(); threads];
    profile.sampled = vec![Sampled::default(); threads];
    for (thread, frames, energy, samples) in entries {
        let frames: Vec<_> = frames.iter().map(|frame| profile.catalog.paths.frame_index(frame.clone())).collect();
        let path = profile.catalog.paths.push(frames);
        add(&mut profile, *thread, path, *energy, *samples);
    }
    profile
}

#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn add(profile: &mut Profile, thread: u32, path: PathIndex, energy: u64, samples: u64) {
    let squares = if samples > 0 { (energy as f64).powi(2) / samples as f64 } else { 0.0 };
    let entry = ThreadPath {
        thread: ThreadIndex(thread),
        path,
        energy: MicroJoules(energy),
        cpu_ns: energy * 1_000,
        samples,
        inferred: MicroJoules(0),
        squares,
        by_bytes: MicroJoules(0),
        charged: Sampled::default(),
    };
    profile.entries.push(entry);
    profile.entries.sort_by_key(|entry| (entry.thread, entry.path));
    let whole = &mut profile.threads[entry.thread.index()];
    whole.energy = whole.energy.saturating_add(entry.energy);
    whole.cpu_ns += entry.cpu_ns;
    whole.samples += entry.samples;
    profile.sampled[entry.thread.index()].plus(&entry.sampled());
    profile.overview.attributed = profile.overview.attributed.saturating_add(entry.energy);
}

const ALL: Cut = Cut { top: 0, sort: Sort::Own, is_partial: false };

fn ranking(profile: &Profile, by: By, cut: Cut) -> Ranking {
    Ranking::of(profile, &Groups::of(by, profile), cut, None, None)
}

/// Name, self and total energy of all rows.
pub(super) fn figures(ranking: &Ranking) -> Vec<(String, u64, u64)> {
    ranking
        .all_rows()
        .map(|row| (row.group.name.to_string(), row.own.amounts.energy.0, row.total.amounts.energy.0))
        .collect()
}

fn expected(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    rows.iter().map(|(name, own, total)| ((*name).to_owned(), *own, *total)).collect()
}

#[test]
fn a_recursive_method_counts_once_for_each_path() {
    let (main, fib) = (java("a.Main", "main"), java("a.Fib", "fib"));
    let deep = [main.clone(), fib.clone(), fib.clone(), fib.clone()];
    let profile = profile(1, &[(0, &deep, 70, 7), (0, &[main, fib], 30, 3)]);
    let methods = ranking(&profile, By::Method, ALL);
    assert_eq!(figures(&methods), expected(&[("a.Fib.fib", 100, 100), ("a.Main.main", 0, 100)]));
    let branches = ranking(&profile, By::Branch, ALL);
    let names = [("a.Main.main;a.Fib.fib;a.Fib.fib;a.Fib.fib", 70, 70), ("a.Main.main;a.Fib.fib", 30, 30)];
    assert_eq!(figures(&branches), expected(&names));
}

#[test]
fn what_is_cut_is_one_row_and_the_column_adds_up() {
    let main = java("a.Main", "main");
    let leaf = |name: &str| [main.clone(), java("a.B", name)];
    let (p, q, r) = (leaf("p"), leaf("q"), leaf("r"));
    let profile = profile(1, &[(0, &p, 50, 5), (0, &q, 30, 3), (0, &r, 20, 2)]);
    let top = ranking(&profile, By::Method, Cut { top: 2, ..ALL });
    // Its total is that of paths with any of them, each once.
    assert_eq!(figures(&top), expected(&[("a.B.p", 50, 50), ("a.B.q", 30, 30), ("2 others", 20, 100)]));
    let by_total = ranking(&profile, By::Method, Cut { top: 1, sort: Sort::Total, ..ALL });
    assert_eq!(figures(&by_total), expected(&[("a.Main.main", 0, 100), ("3 others", 100, 100)]));
}

#[test]
fn overloads_and_namesakes_are_told_apart_where_a_name_has_several() {
    let of = |signature: &str| Frame { signature: Some(signature.into()), ..java("a.B", "put") };
    let alone = Frame { signature: Some("()V".into()), ..java("a.B", "get") };
    let profile = profile(
        1,
        &[
            (0, &[of("(I)V")], 5, 5),
            (0, &[of("(J)V")], 4, 4),
            (0, &[alone], 3, 3),
            (0, &[native("read", "libc.so")], 2, 2),
            (0, &[native("read", "libzip.so")], 1, 1),
        ],
    );
    let names = [
        ("a.B.put(int)", 5, 5),
        ("a.B.put(long)", 4, 4),
        ("a.B.get", 3, 3),
        ("read (libc.so)", 2, 2),
        ("read (libzip.so)", 1, 1),
    ];
    assert_eq!(figures(&ranking(&profile, By::Method, ALL)), expected(&names));
}

#[test]
fn overloads_that_call_each_other_have_the_whole_once_each() {
    let of = |signature: &str| Frame { signature: Some(signature.into()), ..java("db.Query", "query") };
    let (text, number) = (of("(Ljava/lang/String;)V"), of("(I)V"));
    let profile = profile(1, &[(0, &[number.clone(), text.clone(), number], 6, 6), (0, &[text], 4, 4)]);
    let names = [("db.Query.query(int)", 6, 6), ("db.Query.query(String)", 4, 10)];
    assert_eq!(figures(&ranking(&profile, By::Method, ALL)), expected(&names));
}

#[test]
fn one_method_is_one_row_however_and_wherever_in_it_it_runs() {
    let at = |kind, line| Frame { kind, file: Some("B.java".into()), line: Some(line), ..java("a.B", "run") };
    let (slow, fast) = (at(FrameKind::Interpreted, 3), at(FrameKind::CompiledC2, 4));
    let profile = profile(1, &[(0, &[slow], 6, 6), (0, &[fast], 4, 4)]);
    for (by, names) in [
        (By::Method, &[("a.B.run", 10, 10)][..]),
        (By::Branch, &[("a.B.run", 10, 10)]),
        (By::Class, &[("a.B", 10, 10)]),
        (By::Package, &[("a", 10, 10)]),
        (By::Kind, &[("interpreted", 6, 6), ("compiled-c2", 4, 4)]),
        (By::Line, &[("a.B.run (B.java:3)", 6, 6), ("a.B.run (B.java:4)", 4, 4)]),
        (By::Thread, &[("worker-0 (thread 100 of 7)", 10, 10)]),
        (By::ThreadPool, &[("worker-*", 10, 10)]),
        (By::Process, &[("7 java", 10, 10)]),
        (By::Command, &[("java", 10, 10)]),
        (By::Category, &[("java", 10, 10)]),
        (By::Service, &[("[no service known]", 10, 10)]),
        (By::Container, &[("[no container]", 10, 10)]),
        (By::Pod, &[("[no pod]", 10, 10)]),
        (By::Namespace, &[("[no namespace known]", 10, 10)]),
        (By::Host, &[("node-1", 10, 10)]),
    ] {
        assert_eq!(figures(&ranking(&profile, by, ALL)), expected(names), "{by:?}");
    }
}

#[test]
fn processes_are_summed_by_service_container_and_pod() {
    let mut profile = profile(3, &[]);
    let id = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
    let first = Process { service: Some("shop".into()), ..profile.catalog.processes[0].clone() };
    let second = Process { pid: Pid(8), container: Some(id.into()), pod: Some("1a2b".into()), ..first.clone() };
    let third = Process { pid: Pid(9), service: Some("orders".into()), ..second.clone() };
    profile.catalog.processes = vec![first, second, third];
    for (thread, energy) in [(0, 50), (1, 30), (2, 20)] {
        profile.catalog.threads[thread].process = ProcessIndex(u32::try_from(thread).unwrap());
        let path = profile.catalog.paths.frame_index(java("a.Main", "main"));
        let path = profile.catalog.paths.push([path]);
        add(&mut profile, u32::try_from(thread).unwrap(), path, energy, 1);
    }
    for (by, names) in [
        (By::Service, [("shop", 80, 80), ("orders", 20, 20)]),
        (By::Container, [("[no container]", 50, 50), ("4f2b7c0a9d8e", 50, 50)]),
        (By::Pod, [("1a2b", 50, 50), ("[no pod]", 50, 50)]),
    ] {
        let mut found = figures(&ranking(&profile, by, ALL));
        let mut wanted = expected(&names);
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{by:?}");
    }
    let containers = ranking(&profile, By::Container, ALL);
    let row = containers.rows.iter().find(|row| row.group.name == "4f2b7c0a9d8e").unwrap();
    assert_eq!(row.group.details, [id, "1a2b", "node-1"].map(serde_json::Value::from));
}

#[test]
fn processes_that_run_the_same_are_summed_by_command_and_threads_by_their_pool() {
    let mut profile = profile(4, &[]);
    let first = profile.catalog.processes[0].clone();
    let of_class = |pid, class: &str| Process { pid: Pid(pid), main_class: Some(class.into()), ..first.clone() };
    profile.catalog.processes =
        vec![of_class(7, "com.acme.Job"), of_class(8, "com.acme.Job"), of_class(9, "com.acme.Main"), first.clone()];
    let names = ["exec-1", "exec-12", "main", "8080"];
    for ((thread, name), energy) in names.into_iter().enumerate().zip([40, 30, 20, 10]) {
        let index = u32::try_from(thread).unwrap();
        profile.catalog.threads[thread].process = ProcessIndex(index);
        profile.catalog.threads[thread].name = name.into();
        let path = profile.catalog.paths.frame_index(java("a.Main", "main"));
        let path = profile.catalog.paths.push([path]);
        add(&mut profile, index, path, energy, 1);
    }
    let commands = [("com.acme.Job", 70, 70), ("com.acme.Main", 20, 20), ("java", 10, 10)];
    assert_eq!(figures(&ranking(&profile, By::Command, ALL)), expected(&commands));
    let pools = [("exec-*", 70, 70), ("main", 20, 20), ("8080", 10, 10)];
    assert_eq!(figures(&ranking(&profile, By::ThreadPool, ALL)), expected(&pools));
}

#[test]
fn a_pod_has_the_name_that_any_of_its_processes_knows() {
    let mut profile = profile(3, &[]);
    let first = profile.catalog.processes[0].clone();
    let unknown = Process { pid: Pid(8), pod: Some("1a2b".into()), ..first.clone() };
    let known =
        Process { pid: Pid(9), namespace: Some("shop".into()), pod_name: Some("x-1".into()), ..unknown.clone() };
    profile.catalog.processes = vec![first, unknown, known];
    for (thread, energy) in [(0, 50), (1, 30), (2, 10)] {
        profile.catalog.threads[thread].process = ProcessIndex(u32::try_from(thread).unwrap());
        let path = profile.catalog.paths.frame_index(java("a.Main", "main"));
        let path = profile.catalog.paths.push([path]);
        add(&mut profile, u32::try_from(thread).unwrap(), path, energy, 1);
    }
    let pods = ranking(&profile, By::Pod, ALL);
    assert_eq!(figures(&pods), expected(&[("[no pod]", 50, 50), ("shop/x-1", 40, 40)]));
    assert_eq!(pods.rows[1].group.details, ["1a2b", "x-1", "shop"].map(serde_json::Value::from));
    let namespaces = ranking(&profile, By::Namespace, ALL);
    assert_eq!(figures(&namespaces), expected(&[("[no namespace known]", 50, 50), ("shop", 40, 40)]));
}

#[test]
fn code_without_a_class_is_named_by_its_kind() {
    let marker = Frame::new(FrameKind::Marker, "[no sample]");
    let default = java("Main", "main");
    let profile = profile(
        1,
        &[(0, &[native("a", "x")], 4, 4), (0, &[native("b", "x")], 3, 3), (0, &[default], 2, 2), (0, &[marker], 1, 0)],
    );
    let classes = [("[native]", 7, 7), ("Main", 2, 2), ("[no sample]", 1, 1)];
    assert_eq!(figures(&ranking(&profile, By::Class, ALL)), expected(&classes));
    let packages = [("[native]", 7, 7), ("(unnamed package)", 2, 2), ("[no sample]", 1, 1)];
    assert_eq!(figures(&ranking(&profile, By::Package, ALL)), expected(&packages));
}

#[test]
fn the_apps_view_has_only_its_methods_and_what_is_outside() {
    let (main, list) = (java("com.acme.Shop", "sell"), java("java.util.List", "get"));
    let mut profile = profile(1, &[(0, &[main, list.clone()], 60, 6), (0, &[list], 40, 4)]);
    let app = App::of(&["com.acme".to_owned()]).unwrap();
    profile.catalog.paths = profile.catalog.paths.of_app(&app);
    let names = [("com.acme.Shop.sell", 60, 60), (OUTSIDE_APP, 40, 40)];
    assert_eq!(figures(&ranking(&profile, By::Method, ALL)), expected(&names));
}

#[test]
fn threads_are_exact_unless_paths_were_chosen() {
    let main = java("a.Main", "main");
    let mut profile = profile(2, &[(0, std::slice::from_ref(&main), 60, 6), (1, std::slice::from_ref(&main), 40, 4)]);
    for by in [By::Thread, By::ThreadPool, By::Category, By::Process, By::Command, By::Host] {
        for row in ranking(&profile, by, ALL).rows {
            assert_eq!(row.own.interval, Interval::exact(row.own.amounts.energy), "{by:?}");
        }
    }
    // Half of the first thread's samples were of something else.
    profile.threads[0].energy = MicroJoules(120);
    profile.sampled[0] = Sampled { energy: MicroJoules(120), samples: 12, squares: 1_200.0 };
    let partial = ranking(&profile, By::Thread, Cut { is_partial: true, ..ALL });
    let interval = partial.rows[0].own.interval;
    assert!(interval.low.0 < 45 && 75 < interval.high.0 && interval.high.0 <= 120, "{interval:?}");
}

#[test]
fn time_without_a_sample_is_exact() {
    let marker = Frame::new(FrameKind::Marker, "[no sample]");
    let profile = profile(1, &[(0, &[java("a.B", "c")], 900, 9), (0, &[marker], 100, 0)]);
    let ranking = ranking(&profile, By::Method, ALL);
    assert_eq!(ranking.rows[1].own.interval, Interval::exact(MicroJoules(100)));
    let interval = ranking.rows[0].own.interval;
    assert_eq!(interval.high, MicroJoules(900), "it cannot have what nobody sampled");
    assert!((600..900).contains(&interval.low.0), "all of nine samples is not for certain all: {interval:?}");
}

proptest! {
    #[test]
    fn intervals_hold_the_figure_and_stay_within_the_threads(
        parts in prop::collection::vec((0u64..1_000_000, 0u64..50, 0u64..1_000_000, 0u64..50), 1..10),
    ) {
        let (one, other) = (java("a.B", "one"), java("a.B", "other"));
        let entries: Vec<(u32, [Frame; 1], u64, u64)> = (0..)
            .zip(&parts)
            .flat_map(|(thread, (e, n, f, m))| [(thread, [one.clone()], *e, *n), (thread, [other.clone()], *f, *m)])
            .collect();
        let entries: Vec<(u32, &[Frame], u64, u64)> = entries.iter().map(|(t, f, e, n)| (*t, &f[..], *e, *n)).collect();
        let profile = profile(parts.len(), &entries);
        for by in By::ALL {
            let ranking = ranking(&profile, by, Cut { top: 1, is_partial: true, ..ALL });
            prop_assert_eq!(ranking.all_rows().map(|row| row.own.amounts.energy).sum::<MicroJoules>(), profile.energy());
            for figures in ranking.all_rows().flat_map(|row| [row.own, row.total]) {
                let Interval { low, high } = figures.interval;
                prop_assert!(low <= figures.amounts.energy && figures.amounts.energy <= high);
                prop_assert!(high.0 <= profile.energy().0 + 1);
            }
        }
    }
}

#[test]
fn calls_are_counted_as_windows_show_them() {
    let (main, io) = (java("a.Main", "main"), java("a.Io", "read"));
    let profile = profile(1, &[(0, &[main.clone(), io], 10, 1), (0, &[main], 10, 1)]);
    let mut calls = Activations::of(By::Method, None).unwrap();
    for (second, path) in [(0, 0), (1, 1), (2, 0), (3, 0), (4, 1), (5, 0)] {
        let row = crate::report::profile::EnergyRow {
            run: 0,
            window_start: UnixMicros(second * 1_000_000),
            window_ns: 1_000_000_000,
            thread: ThreadIndex(0),
            path: PathIndex(path),
            energy: MicroJoules(10),
            cpu_ns: 1,
            samples: 1,
            inferred: None,
            pooled: None,
            divided_by: crate::report::profile::DividedBy::CpuTime,
        };
        calls.see(&profile.catalog, &row);
    }
    let counts = calls.counts();
    let ranking = Ranking::of(&profile, &Groups::of(By::Method, &profile), ALL, Some(&counts), None);
    let row = |name: &str| ranking.rows.iter().find(|row| row.group.name == name).unwrap();
    assert_eq!(row("a.Main.main").activations, Some(1));
    assert_eq!(row("a.Io.read").activations, Some(3));
    assert_eq!(activation(row("a.Io.read")), Some(MicroJoules(4)), "10 µJ over three calls, rounded up: a bound");
    assert!(Activations::of(By::Thread, None).is_none());
}

#[test]
fn having_been_seen_once_makes_nothing_more_certain_than_never() {
    let (busy, rare) = (java("a.B", "busy"), java("a.B", "rare"));
    // A thread that hardly ran, and all of whose one sample was of it.
    let seen =
        profile(2, &[(0, std::slice::from_ref(&busy), 1_000_000, 1_000), (1, std::slice::from_ref(&rare), 100, 1)]);
    let high = |profile: &Profile, name: &str| {
        let ranking = ranking(profile, By::Method, ALL);
        ranking.rows.iter().find(|row| row.group.name == name).unwrap().own.interval.high.0
    };
    let never = profile(1, &[(0, &[java("a.B", "caller"), busy], 1_000_000, 1_000)]);
    assert!(high(&seen, "a.B.rare") >= high(&never, "a.B.caller"), "{} µJ", high(&seen, "a.B.rare"));
}
