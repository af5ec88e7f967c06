//! Tests targets that are chosen by what they are part of.

use joular_data::events::{ServiceFrom, Workload};

use super::*;
use crate::procs::{
    kubernetes::Pods,
    selection::{Belonging, LabelPattern},
    service::rules::{Condition, Rule, Rules, SharedRules},
};

const ID: &str = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";

#[test]
fn a_container_is_followed_into_its_processes_and_no_others() {
    let tree = Tree::new();
    let cgroup = |pid: u32, path: &str| {
        fs::write(tree.0.path().join(pid.to_string()).join("cgroup"), format!("0::{path}\n")).unwrap();
    };
    for (pid, path) in [(7, format!("/docker/{ID}")), (8, "/system.slice/shop.service".to_owned())] {
        tree.process(pid, "java", 100);
        cgroup(pid, &path);
    }
    tree.process(9, "java", 100);
    let found = |selection: Selection| {
        let changes = tree.registry(selection).scan();
        changes
            .iter()
            .map(|change| matches!(change, Change::Found(info) if info.is_target).then(|| pid(change)))
            .collect::<Vec<_>>()
    };
    let one = |text: &str| vec![NamePattern::new(text).unwrap()];
    let part_of = |names: &[&str], of: Belonging| {
        Selection::PartOf(names.iter().map(|name| NamePattern::of_comm(name).unwrap()).collect(), Box::new(of))
    };
    for (names, of, expected) in [
        (&[][..], Belonging { containers: one(&ID[..12]), ..Belonging::default() }, &[Some(7)][..]),
        (&[], Belonging { cgroups: one("/system.slice"), ..Belonging::default() }, &[Some(8)]),
        (&[], Belonging { services: one("shop"), ..Belonging::default() }, &[Some(8)]),
        (&[], Belonging { services: one("java"), ..Belonging::default() }, &[Some(7), Some(9)]),
        (&["java"], Belonging { services: one("*"), ..Belonging::default() }, &[Some(7), Some(8), Some(9)]),
        (&["node"], Belonging { services: one("*"), ..Belonging::default() }, &[]),
        (&[], Belonging { pods: one("*"), ..Belonging::default() }, &[]),
        (&[], Belonging { containers: one(ID), services: one("shop"), ..Belonging::default() }, &[]),
    ] {
        assert_eq!(found(part_of(names, of.clone())), expected, "{names:?} {of:?}");
    }
}

#[test]
fn a_target_that_becomes_part_of_something_else_is_let_go() {
    let tree = Tree::new();
    tree.process(7, "java", 100);
    let cgroup = tree.0.path().join("7/cgroup");
    fs::write(&cgroup, "0::/system.slice/shop.service\n").unwrap();
    let of = Belonging { cgroups: vec![NamePattern::new("/system.slice").unwrap()], ..Belonging::default() };
    let mut registry = tree.registry(Selection::PartOf(Vec::new(), Box::new(of)));
    assert_eq!(registry.scan().len(), 1);
    fs::write(&cgroup, "0::/user.slice/session-1.scope\n").unwrap();
    let changes = registry.lifecycle(&event(LifecycleKind::Exec, "java", 100));
    assert!(matches!(&changes[..], [Change::Found(info)] if !info.is_target), "{changes:?}");
    assert!(registry.target(Pid(7)).is_none());
}

const UID: &str = "6a9f2f3e-5c1b-4d39-9a53-0c7b2f1e8d01";

fn checkout() -> Workload {
    Workload {
        namespace: "shop".into(),
        pod: "checkout-1".into(),
        labels: vec!["app.kubernetes.io/name=checkout".into(), "tier=front".into()],
        ..Workload::default()
    }
}

/// Process 7 in a container of a pod, and process 8 in none.
fn one_in_a_pod() -> Tree {
    let tree = Tree::new();
    for (pid, path) in [(7, format!("/kubepods/burstable/pod{UID}/{ID}")), (8, "/user.slice".to_owned())] {
        tree.process(pid, "java", 100);
        fs::write(tree.0.path().join(pid.to_string()).join("cgroup"), format!("0::{path}\n")).unwrap();
    }
    tree
}

fn knowing(tree: &Tree, pods: &Pods, of: Belonging) -> Registry {
    let files = ProcFiles::new(tree.0.path()).with_pods(pods.clone());
    let selection = if of.is_empty() { Selection::All } else { Selection::PartOf(Vec::new(), Box::new(of)) };
    Registry { profiler: PROFILER, ..Registry::new(files, selection) }
}

fn conditions(namespaces: &[&str], pods: &[&str], labels: &[&str], services: &[&str]) -> Belonging {
    let patterns = |texts: &[&str]| texts.iter().map(|text| NamePattern::new(text).unwrap()).collect();
    Belonging {
        namespaces: patterns(namespaces),
        pods: patterns(pods),
        labels: labels.iter().map(|text| LabelPattern::new(text).unwrap()).collect(),
        services: patterns(services),
        ..Belonging::default()
    }
}

#[test]
fn pods_are_chosen_by_namespace_name_uid_and_labels() {
    let tree = one_in_a_pod();
    let pods = Pods::fixed(&[(ID, checkout())]);
    for (of, expected) in [
        (conditions(&["shop"], &[], &[], &[]), true),
        (conditions(&["default"], &[], &[], &[]), false),
        (conditions(&[], &["checkout-*"], &[], &[]), true),
        (conditions(&[], &[UID], &[], &[]), true),
        (conditions(&[], &["orders-*"], &[], &[]), false),
        (conditions(&[], &[], &["tier=front"], &["checkout"]), true),
        (conditions(&[], &[], &["tier=back", "tier=f*"], &[]), true),
        (conditions(&[], &[], &["tier=front", "zone=a"], &[]), false),
        (conditions(&["shop"], &[], &["tier=back"], &[]), false),
    ] {
        let found = knowing(&tree, &pods, of.clone()).scan();
        assert_eq!(found.iter().map(pid).collect::<Vec<_>>(), if expected { vec![7] } else { vec![] }, "{of:?}");
    }
}

#[test]
fn who_is_part_of_a_pod_that_is_known_later_becomes_a_target_then() {
    for of in [conditions(&["shop"], &[], &[], &[]), conditions(&[], &[], &[], &["checkout"])] {
        let (tree, pods) = (one_in_a_pod(), Pods::fixed(&[]));
        let mut registry = knowing(&tree, &pods, of);
        assert!(registry.scan().is_empty() && registry.end_of_window().is_empty());
        pods.learn(&[(ID, checkout())]);
        assert_eq!(registry.end_of_window().iter().map(pid).collect::<Vec<_>>(), [7]);
        assert!(registry.end_of_window().is_empty());
    }
}

#[test]
fn a_targets_pod_that_is_known_later_names_its_service_and_is_not_forgotten_when_it_goes() {
    let (tree, pods) = (one_in_a_pod(), Pods::fixed(&[]));
    let mut registry = knowing(&tree, &pods, Belonging::default());
    registry.scan();
    let service = |registry: &Registry| registry.target(Pid(7)).unwrap().service.clone().unwrap();
    assert_eq!(service(&registry).from, ServiceFrom::Comm);
    pods.learn(&[(ID, checkout())]);
    assert_eq!(registry.end_of_window().iter().map(pid).collect::<Vec<_>>(), [7]);
    assert_eq!((service(&registry).name.raw(), service(&registry).from), ("checkout", ServiceFrom::Label));
    pods.learn(&[]);
    assert!(registry.end_of_window().is_empty());
    assert_eq!(registry.target(Pid(7)).unwrap().workload, Some(Box::new(checkout())));
}

const fn pid(change: &Change) -> u32 {
    match change {
        Change::Found(info) | Change::Executed(info) | Change::Ended(info) => info.pid.0,
    }
}

#[test]
fn other_rules_name_targets_from_the_next_window_on() {
    let tree = Tree::new();
    tree.process(7, "java", 100);
    let rules = |name: &str| {
        let conditions = vec![Condition::Comm(NamePattern::new("java").unwrap())];
        SharedRules::new(Rules::new(vec![Rule { name: name.into(), version: None, conditions }]))
    };
    let held = SharedRules::new(Rules::default());
    let files = ProcFiles::new(tree.0.path()).with_rules(held.clone());
    let mut registry = Registry { profiler: PROFILER, ..Registry::new(files, Selection::All) };
    registry.scan();
    let name = |registry: &Registry| {
        let service = registry.target(Pid(7)).unwrap().service.clone().unwrap();
        (service.name.raw().to_owned(), service.from)
    };
    assert_eq!(name(&registry), ("java".to_owned(), ServiceFrom::Comm));
    for (others, expected) in [
        (rules("shop"), ("shop", ServiceFrom::Rule)),
        (rules("orders"), ("orders", ServiceFrom::Rule)),
        (SharedRules::default(), ("java", ServiceFrom::Comm)),
    ] {
        held.replace_by(&others);
        let news = registry.end_of_window();
        assert!(matches!(&news[..], [Change::Found(info)] if info.is_target), "{news:?}");
        assert_eq!(name(&registry), (expected.0.to_owned(), expected.1));
        assert_eq!(registry.end_of_window(), []);
    }
}
