//! Tests targets that are chosen by what they are part of.

use super::*;
use crate::procs::selection::Belonging;

#[test]
fn a_container_is_followed_into_its_processes_and_no_others() {
    const ID: &str = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
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

const fn pid(change: &Change) -> u32 {
    match change {
        Change::Found(info) | Change::Executed(info) | Change::Ended(info) => info.pid.0,
    }
}
