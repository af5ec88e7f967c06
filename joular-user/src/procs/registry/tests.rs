use std::fs;

use joular_data::{
    events::{JvmNews, Runtime},
    model::units::{MonotonicNs, Tid},
};

use super::*;
use crate::procs::selection::NamePattern;

mod jvms;
mod late_answers;
mod part_of;

const PROFILER: Pid = Pid(99_999_999);

fn wanted() -> Selection {
    Selection::Names(vec![NamePattern::new("wanted").unwrap()])
}

/// A made-up /proc.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn registry(&self, selection: Selection) -> Registry {
        Registry { profiler: PROFILER, ..Registry::new(ProcFiles::new(self.0.path()), selection) }
    }

    fn process(&self, pid: u32, comm: &str, start_ticks: u64) {
        self.child(pid, 1, comm, start_ticks);
    }

    fn child(&self, pid: u32, parent: u32, comm: &str, start_ticks: u64) {
        let directory = self.0.path().join(pid.to_string());
        fs::create_dir_all(&directory).unwrap();
        let stat = format!("{pid} ({comm}) S {parent} 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 {start_ticks} 0 0");
        for (file, text) in [("stat", &*stat), ("comm", comm), ("status", "Uid:\t0\t0\n"), ("cmdline", comm)] {
            fs::write(directory.join(file), text).unwrap();
        }
    }

    fn maps(&self, pid: u32, text: &str) {
        fs::write(self.0.path().join(pid.to_string()).join("maps"), text).unwrap();
    }

    fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
    }
}

fn event(kind: LifecycleKind, comm: &str, start_ticks: u64) -> Lifecycle {
    Lifecycle {
        kind,
        pid: Pid(7),
        tid: Tid(7),
        time: MonotonicNs(0),
        // The kernel is more precise than /proc.
        start_boottime_ns: start_ticks * TICK_NS + 1234,
        comm: comm.into(),
    }
}

/// What happened, in short.
fn told(changes: &[Change]) -> Vec<String> {
    let short = |what: &str, info: &ProcessInfo| {
        format!("{what} {}@{} {}", info.comm, info.start_boottime_ns / TICK_NS, info.is_target)
    };
    changes
        .iter()
        .map(|change| match change {
            Change::Found(info) => short("found", info),
            Change::Executed(info) => short("executed", info),
            Change::Ended(info) => short("ended", info),
        })
        .collect()
}

#[test]
fn a_process_becomes_a_target_by_its_new_name() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Exec, "other", 1)), []);
    let changes = registry.lifecycle(&event(LifecycleKind::Rename, "wanted", 1));
    assert_eq!(told(&changes), ["found wanted@1 true"]);
    assert!(registry.ever_matched());
}

#[test]
fn an_ended_target_is_finished_after_its_last_window() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1));
    registry.lifecycle(&event(LifecycleKind::ProcessEnd, "wanted", 1));
    assert_eq!(registry.end_of_window(), [], "its last window is still to come");
    assert_eq!(told(&registry.end_of_window()), ["ended wanted@1 true"]);
    assert!(registry.target(Pid(7)).is_none());
}

/// It was not a target yet when it ended, so that the kernel told nobody.
#[test]
fn a_target_that_ended_while_it_was_looked_at_is_finished_soon() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    tree.process(8, "wanted", 1);
    let mut registry = tree.registry(wanted());
    assert_eq!(told(&registry.scan()).len(), 2);
    tree.remove(7);
    assert_eq!(registry.end_of_window(), [], "its last window is still to come");
    assert_eq!(told(&registry.end_of_window()), ["ended wanted@1 true"]);
    // Later the kernel tells, and nobody asks in each window.
    tree.remove(8);
    assert_eq!((0..4).flat_map(|_| registry.end_of_window()).count(), 0);
    assert!(registry.target(Pid(7)).is_none() && registry.target(Pid(8)).is_some());
}

#[test]
fn the_profiler_is_never_a_target() {
    let mut registry = Registry::new(ProcFiles::new("/proc"), Selection::All);
    let own = Pid(std::process::id());
    assert!(registry.scan().iter().all(|change| !matches!(change, Change::Found(info) if info.pid == own)));
}

#[test]
fn a_helper_of_the_profiler_is_its_own() {
    let tree = Tree::new();
    tree.process(7, "joular-bpf", 1);
    let own = OwnProcesses::with(&[(Pid(7), TICK_NS)]);
    let mut registry = Registry { own, ..tree.registry(Selection::All) };
    let changes = registry.lifecycle(&event(LifecycleKind::Fork { parent: PROFILER }, "perf-map", 1));
    assert!(
        matches!(&changes[..], [Change::Found(info)] if info.parent == PROFILER && info.is_helper && !info.is_target)
    );
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Exec, "joular-bpf", 1)), []);
    let thread = ThreadTime { pid: Pid(7), start_boottime_ns: TICK_NS, ..ThreadTime::default() };
    assert_eq!(registry.seen_running(&[thread]), []);
    assert!(registry.target(Pid(7)).is_none());
    registry.lifecycle(&event(LifecycleKind::ProcessEnd, "joular-bpf", 1));
    registry.end_of_window();
    assert_eq!(told(&registry.end_of_window()), ["ended perf-map@1 false"]);
    // Of which nothing was told, and which /proc does not have any more.
    tree.remove(7);
    let mut registry = Registry { own, ..tree.registry(Selection::All) };
    let thread = |pid: u32| ThreadTime { pid: Pid(pid), start_boottime_ns: TICK_NS, ..ThreadTime::default() };
    assert_eq!(told(&registry.seen_running(&[thread(7), thread(8)])), ["found @1 false", "found @1 true"]);
}

/// A command that it started to be profiled is no part of it, nor is an orphan.
#[test]
fn a_child_of_the_profiler_that_is_no_helper_is_a_process_like_any_other() {
    let tree = Tree::new();
    tree.child(7, PROFILER.0, "wanted", 1);
    let mut registry = tree.registry(wanted());
    assert_eq!(told(&registry.scan()), ["found wanted@1 true"]);
    let mut registry = tree.registry(Selection::All);
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Fork { parent: PROFILER }, "joular-bpf", 1)), []);
    let changes = registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1));
    assert!(matches!(&changes[..], [Change::Found(info)] if info.is_target && !info.is_helper));
}

#[test]
fn a_forked_child_is_a_target_only_if_it_stays_what_it_is() {
    let tree = Tree::new();
    let fork = event(LifecycleKind::Fork { parent: Pid(1) }, "wanted", 1);
    tree.process(7, "wanted", 1);
    // It executes something else.
    let mut registry = tree.registry(wanted());
    assert_eq!(registry.lifecycle(&fork), []);
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Exec, "true", 1)), []);
    assert_eq!(registry.end_of_window(), []);
    // It executes something that matches.
    assert_eq!(registry.lifecycle(&fork), []);
    assert_eq!(told(&registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1))), ["found wanted@1 true"]);
    // It stays.
    let mut registry = tree.registry(wanted());
    assert_eq!(registry.lifecycle(&fork), []);
    assert_eq!(told(&registry.end_of_window()), ["found wanted@1 true"]);
    // It was forked only just now.
    let mut registry = tree.registry(wanted());
    registry.lifecycle(&Lifecycle { time: clock::monotonic_now(), ..fork.clone() });
    assert_eq!(registry.end_of_window(), []);
    // It ended.
    let mut registry = tree.registry(wanted());
    registry.lifecycle(&fork);
    registry.lifecycle(&event(LifecycleKind::ProcessEnd, "wanted", 1));
    assert_eq!(registry.end_of_window(), []);
    assert!(!registry.ever_matched());
}

#[test]
fn what_becomes_something_else_is_let_go() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.scan();
    assert_eq!(told(&registry.lifecycle(&event(LifecycleKind::Exec, "other", 1))), ["found other@1 false"]);
    assert!(registry.target(Pid(7)).is_none());
    tree.process(7, "other", 1);
    registry.end_of_window();
    assert_eq!(told(&registry.end_of_window()), ["ended other@1 false"]);
    assert!(registry.entries.is_empty());
}

#[test]
fn every_execution_is_told() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.scan();
    for _ in 0..2 {
        let changes = registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1));
        assert_eq!(told(&changes), ["executed wanted@1 true"]);
    }
    tree.remove(7);
    let changes = registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1));
    assert_eq!(told(&changes), ["executed wanted@1 true"]);
}

#[test]
fn a_reused_pid_ends_the_process_that_had_it() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.scan();
    tree.process(7, "wanted", 5);
    let changes = registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 5));
    assert_eq!(told(&changes), ["ended wanted@1 true", "found wanted@5 true"]);
    // News of the first one that came late.
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Rename, "late", 1)), []);
    registry.lifecycle(&event(LifecycleKind::ProcessEnd, "wanted", 1));
    registry.end_of_window();
    assert_eq!(registry.end_of_window(), []);
    // A thread that is not the first has a start of its own.
    let last = Lifecycle { tid: Tid(8), ..event(LifecycleKind::ProcessEnd, "wanted", 9) };
    assert_eq!(registry.lifecycle(&last), []);
    registry.end_of_window();
    assert_eq!(told(&registry.end_of_window()), ["ended wanted@5 true"]);
}

#[test]
fn lost_events_are_made_up_for() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    tree.process(8, "wanted", 2);
    let mut registry = tree.registry(wanted());
    registry.scan();
    // None of them is new any more.
    (0..NEW).for_each(|_| drop(registry.end_of_window()));
    tree.remove(7);
    tree.process(8, "wanted", 3);
    tree.process(9, "wanted", 4);
    let mut changes = Vec::new();
    for _ in 0..WINDOWS_BETWEEN_SCANS + 1 {
        changes.extend(registry.end_of_window());
    }
    let expected = ["ended wanted@2 true", "found wanted@3 true", "found wanted@4 true", "ended wanted@1 true"];
    assert_eq!(told(&changes), expected);
}

#[test]
fn a_process_that_loads_libjvm_late_is_found_to_be_a_jvm() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.scan();
    let mut looks = Vec::new();
    for window in 1..=20 {
        if window == 5 {
            tree.maps(7, "1000-2000 r-xp 0 fe:00 1   /jdk/lib/server/libjvm.so\n");
        }
        looks.extend(registry.end_of_window().iter().map(|_| window));
    }
    assert_eq!(looks, [8]);
    assert!(matches!(registry.target(Pid(7)).unwrap().runtime, Runtime::Jvm { .. }));
}

#[test]
fn what_a_jvm_says_of_itself_is_news_once_and_kept() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let mut registry = tree.registry(wanted());
    registry.scan();
    let start = registry.target(Pid(7)).unwrap().start_boottime_ns;
    let news = JvmNews { collector: Some("Z".into()), ..JvmNews::default() };
    assert!(registry.learn_jvm(Pid(7), start + 1, &news).is_none(), "another process of that pid");
    assert!(registry.learn_jvm(Pid(8), start, &news).is_none());
    let told = registry.learn_jvm(Pid(7), start, &news).cloned();
    assert!(registry.learn_jvm(Pid(7), start, &news).is_none());
    assert_eq!(told.as_ref(), registry.target(Pid(7)));
    assert!(matches!(told.unwrap().runtime, Runtime::Jvm { collector: Some(_), .. }));
}

/// News of a process of a tree.
fn news(pid: u32, kind: LifecycleKind, comm: &str, start_ticks: u64) -> Lifecycle {
    Lifecycle { pid: Pid(pid), tid: Tid(pid), ..event(kind, comm, start_ticks) }
}

/// A command that the profiler started, which starts others.
#[test]
fn a_commands_process_tree_is_followed_from_its_first_moment() {
    let tree = Tree::new();
    tree.child(7, PROFILER.0, "sh", 1);
    tree.child(8, 7, "java", 2);
    tree.process(9, "java", 2);
    let mut registry = tree.registry(Selection::Tree(Pid(7)));
    assert_eq!(told(&registry.scan()), ["found sh@1 true", "found java@2 true"]);
    // One that ends before /proc is asked, and executes nothing.
    let fork = |parent: u32| LifecycleKind::Fork { parent: Pid(parent) };
    assert_eq!(told(&registry.lifecycle(&news(20, fork(8), "java", 3))), ["found java@3 true"]);
    // One that starts another program, under another name.
    tree.child(21, 20, "java", 4);
    assert_eq!(told(&registry.lifecycle(&news(21, fork(20), "java", 4))), ["found java@4 true"]);
    tree.child(21, 20, "ls", 4);
    assert_eq!(told(&registry.lifecycle(&news(21, LifecycleKind::Exec, "ls", 4))), ["executed ls@4 true"]);
    // Somebody else's, of whatever name.
    assert_eq!(registry.lifecycle(&news(30, fork(9), "java", 4)), []);
    tree.child(30, 9, "java", 4);
    assert_eq!(registry.lifecycle(&news(30, LifecycleKind::Exec, "java", 4)), []);
    assert_eq!(registry.end_of_window(), []);
}

#[test]
fn a_tree_outlives_its_root_and_takes_in_no_successor() {
    let tree = Tree::new();
    tree.process(7, "sh", 1);
    tree.child(8, 7, "java", 2);
    let mut registry = tree.registry(Selection::Tree(Pid(7)));
    registry.scan();
    registry.lifecycle(&news(7, LifecycleKind::ProcessEnd, "sh", 1));
    tree.child(8, 1, "java", 2);
    registry.end_of_window();
    assert_eq!(told(&registry.end_of_window()), ["ended sh@1 true"]);
    let fork = |parent: u32| LifecycleKind::Fork { parent: Pid(parent) };
    assert_eq!(told(&registry.lifecycle(&news(10, fork(8), "java", 5))), ["found java@5 true"]);
    // Another process has the root's pid, and a child.
    tree.process(7, "sh", 6);
    assert_eq!(registry.lifecycle(&news(7, fork(1), "sh", 6)), []);
    assert_eq!(registry.lifecycle(&news(7, LifecycleKind::Exec, "bash", 6)), []);
    assert_eq!(registry.lifecycle(&news(11, fork(7), "bash", 7)), []);
    assert_eq!(registry.scan(), []);
}

/// The ring was full when it was forked.
#[test]
fn a_member_whose_fork_was_not_told_is_found_by_its_parent() {
    let tree = Tree::new();
    tree.process(7, "sh", 1);
    let mut registry = tree.registry(Selection::Tree(Pid(7)));
    registry.scan();
    tree.child(8, 7, "java", 2);
    assert_eq!(told(&registry.lifecycle(&news(8, LifecycleKind::Exec, "java", 2))), ["found java@2 true"]);
    tree.child(6, 8, "java", 3);
    tree.child(5, 6, "java", 3);
    assert_eq!(told(&registry.scan()), ["found java@3 true", "found java@3 true"]);
}

/// The profiler may run in the tree that it profiles.
#[test]
fn helpers_are_no_members_of_a_tree_that_the_profiler_is_in() {
    let tree = Tree::new();
    tree.process(7, "sh", 1);
    tree.child(PROFILER.0, 7, "joular-bpf", 2);
    tree.child(8, PROFILER.0, "joular-bpf", 3);
    let own = OwnProcesses::with(&[(Pid(8), 3 * TICK_NS), (Pid(9), 4 * TICK_NS)]);
    let mut registry = Registry { own, ..tree.registry(Selection::Tree(Pid(7))) };
    assert_eq!(told(&registry.scan()), ["found sh@1 true", "found joular-bpf@3 false"]);
    let fork = news(9, LifecycleKind::Fork { parent: PROFILER }, "joular-bpf", 4);
    assert_eq!(told(&registry.lifecycle(&fork)), ["found joular-bpf@4 false"]);
}
