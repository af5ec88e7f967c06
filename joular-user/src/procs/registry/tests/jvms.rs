//! JVMs are found by what is in their memory, and say what they run.

use std::os::unix::fs::symlink;

use joular_data::events::ServiceFrom;

use super::*;

const LIBJVM: &str = "1000-2000 r-xp 0 fe:00 1   /jdk/lib/server/libjvm.so\n";

fn jvms() -> Selection {
    Selection::Jvms(Box::default())
}

#[test]
fn a_jvm_is_found_whatever_launched_it() {
    let tree = Tree::new();
    for (pid, comm, maps) in [(7, "server", LIBJVM), (8, "python3", ""), (9, "java", LIBJVM)] {
        tree.process(pid, comm, 1);
        tree.maps(pid, maps);
    }
    let mut registry = tree.registry(jvms());
    assert_eq!(told(&registry.scan()), ["found server@1 true", "found java@1 true"]);
    assert_eq!(registry.scan(), [], "they are known");
}

#[test]
fn a_process_of_javas_launcher_is_a_jvm_before_it_has_loaded_one() {
    let tree = Tree::new();
    tree.process(7, "java", 1);
    let mut registry = tree.registry(jvms());
    assert_eq!(registry.lifecycle(&event(LifecycleKind::Exec, "java", 1)), [], "something else of that name");
    symlink("/jdk/bin/java", tree.0.path().join("7/exe")).unwrap();
    assert_eq!(told(&registry.lifecycle(&event(LifecycleKind::Exec, "java", 1))), ["found java@1 true"]);
}

#[test]
fn a_jvm_that_is_loaded_late_is_found_before_the_process_is_twice_as_old() {
    for loaded in [1, 5, 40] {
        let tree = Tree::new();
        tree.process(7, "python3", 1);
        tree.maps(7, "");
        let mut registry = tree.registry(jvms());
        assert_eq!(registry.scan(), []);
        let found = (1..=2 * loaded).find(|window| {
            if *window == loaded {
                tree.maps(7, LIBJVM);
            }
            told(&registry.end_of_window()) == ["found python3@1 true"]
        });
        assert!(found.is_some_and(|window| window >= loaded), "loaded in window {loaded}, found in {found:?}");
    }
}

#[test]
fn jvms_with_other_names_are_left_out_by_a_name_and_said_to_be() {
    let tree = Tree::new();
    for (pid, comm) in [(7, "java"), (8, "server")] {
        tree.process(pid, comm, 1);
        tree.maps(pid, LIBJVM);
    }
    for (name, expected) in
        [("java", &[("server".into(), Pid(8))][..]), ("j*", &[("server".into(), Pid(8))]), ("x", &[])]
    {
        let mut registry = tree.registry(Selection::Names(vec![NamePattern::new(name).unwrap()]));
        registry.scan();
        assert_eq!(registry.jvms_left_out(), expected, "{name}");
    }
    assert_eq!(tree.registry(jvms()).jvms_left_out(), []);
}

#[test]
fn a_jvm_of_another_launcher_is_called_by_what_it_says_it_runs() {
    let tree = Tree::new();
    tree.process(7, "server", 1);
    tree.maps(7, LIBJVM);
    let mut registry = tree.registry(jvms());
    registry.scan();
    let names = |info: &ProcessInfo| {
        let Runtime::Jvm { main_class, .. } = &info.runtime else { return None };
        let service = info.service.clone()?;
        Some((main_class.clone(), service.name.raw().to_owned(), service.from))
    };
    let before = registry.target(Pid(7)).and_then(names);
    assert_eq!(before, Some((None, "server".to_owned(), ServiceFrom::Comm)));
    let news = JvmNews { command: Some("com.acme.Main --port 1".into()), ..JvmNews::default() };
    let learned = registry.learn_jvm(Pid(7), TICK_NS, &news).and_then(names);
    let main = "com.acme.Main";
    assert_eq!(learned, Some((Some(main.into()), main.to_owned(), ServiceFrom::MainClass)));
    assert_eq!(registry.learn_jvm(Pid(7), TICK_NS, &news), None, "that is not new");
}
