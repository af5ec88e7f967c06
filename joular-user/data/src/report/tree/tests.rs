use proptest::prelude::*;

use super::*;
use crate::{
    attribution::window_report::Category,
    events::RunInfo,
    model::{
        frame::Frame,
        units::{MicroJoules, Pid, Tid, UnixMicros},
    },
    report::profile::{Catalog, PathIndex, Process, ProcessIndex, Profile, Run, Thread, ThreadIndex, ThreadPath},
    sampling::Sampled,
};

/// A profile of threads `a` and `b` of processes 1 and 2, with these branches: thread, methods, energy.
fn profile(branches: &[(u32, &str, u64)]) -> Profile {
    let run = Run { info: RunInfo::default(), ..Run::default() };
    let process = |pid| Process { pid: Pid(pid), comm: "java".into(), ..Process::default() };
    let thread = |process, name: &str| Thread {
        process: ProcessIndex(process),
        tid: Tid(process + 10),
        start: UnixMicros(0),
        name: name.into(),
        category: Category::Java,
    };
    let mut catalog = Catalog {
        runs: vec![run],
        processes: vec![process(1), process(2)],
        threads: vec![thread(0, "a"), thread(1, "b")],
        ..Catalog::default()
    };
    let mut entries = Vec::new();
    for (thread, methods, energy) in branches {
        let frames: Vec<_> =
            methods.split(';').map(|name| catalog.paths.frame_index(Frame::new(FrameKind::CompiledC2, name))).collect();
        let path: PathIndex = catalog.paths.push(frames);
        let thread = ThreadIndex(*thread);
        let (cpu_ns, samples) = (energy * 10, energy / 2);
        entries.push(ThreadPath {
            thread,
            path,
            energy: MicroJoules(*energy),
            cpu_ns,
            samples,
            inferred: MicroJoules(0),
            squares: 0.0,
            by_bytes: MicroJoules(0),
            charged: Sampled::default(),
        });
    }
    Profile { catalog, entries, ..Profile::default() }
}

fn tree(branches: &[(u32, &str, u64)], levels: Levels) -> CallTree {
    let mut all = Branches::new(Shape { levels, ..Shape::default() }, Measure::Energy);
    all.add(&profile(branches));
    all.tree()
}

/// One thread of process 1 that ran these paths, each frame `kind:name`.
fn of_kinds(branches: &[(&str, u64)], kinds: Kinds) -> CallTree {
    let mut profile = profile(&[]);
    for (frames, energy) in branches {
        let frame = |frame: &str| {
            let (kind, name) = frame.split_once(':').unwrap();
            Frame::new(FrameKind::ALL.into_iter().find(|known| known.name() == kind).unwrap(), name)
        };
        let path: Vec<_> = frames.split(';').map(|text| profile.catalog.paths.frame_index(frame(text))).collect();
        let path = profile.catalog.paths.push(path);
        let energy = MicroJoules(*energy);
        profile.entries.push(ThreadPath {
            thread: ThreadIndex(0),
            path,
            energy,
            cpu_ns: 1,
            samples: 1,
            inferred: MicroJoules(0),
            squares: 0.0,
            by_bytes: MicroJoules(0),
            charged: Sampled::default(),
        });
    }
    let mut all = Branches::new(Shape { kinds, ..Shape::default() }, Measure::Energy);
    all.add(&profile);
    all.tree()
}

const WAYS: &[(&str, u64)] = &[
    ("interpreted:main;interpreted:run", 10),
    ("interpreted:main;compiled-c2:run;inlined:hash", 70),
    ("interpreted:main;compiled-c2:run;compiled-c1:hash", 5),
    ("interpreted:main;marker:run", 15),
];

#[test]
fn a_path_is_one_tower_whatever_compiled_it() {
    let tree = of_kinds(WAYS, Kinds::Merged);
    // What is not code is not the same, however it is called.
    let expected = ["all 0/100", " main 0/100", "  run 10/85", "   hash 75/75", "  run 15/15"];
    let mut nodes = drawn(&tree);
    nodes.sort_by_key(|node| expected.iter().position(|line| line == node));
    assert_eq!(nodes, expected);
    let mix = |line: &str| {
        let node = tree.nodes.iter().zip(drawn(&tree)).find(|(_, drawn)| drawn == line).unwrap().0;
        (tree.kind(node).name(), node.mix.text(Measure::Energy))
    };
    assert_eq!(mix("  run 10/85"), ("compiled-c2", "c2 88 %, interpreted 12 %".to_owned()));
    assert_eq!(mix("   hash 75/75"), ("inlined", "inlined 93 %, c1 7 %".to_owned()));
    assert_eq!(mix(" main 0/100"), ("interpreted", "interpreted".to_owned()));
    assert_eq!(mix("  run 15/15").0, "marker");
}

#[test]
fn frames_of_which_only_the_file_is_known_are_one_in_a_row() {
    let mut profile = profile(&[]);
    let frames = [
        Frame::of_file(FrameKind::Native, "libc.so.6"),
        Frame::of_file(FrameKind::Native, "libc.so.6"),
        Frame::of_file(FrameKind::Vm, "libjvm.so"),
        Frame::new(FrameKind::Native, "hash"),
        Frame::new(FrameKind::Native, "hash"),
        Frame::of_file(FrameKind::Native, "libc.so.6"),
        Frame::of_file(FrameKind::Native, "libc.so.6"),
    ];
    let path = frames.into_iter().map(|frame| profile.catalog.paths.frame_index(frame)).collect::<Vec<_>>();
    let path = profile.catalog.paths.push(path);
    let energy = MicroJoules(4);
    profile.entries.push(ThreadPath {
        thread: ThreadIndex(0),
        path,
        energy,
        cpu_ns: 1,
        samples: 1,
        inferred: MicroJoules(0),
        squares: 0.0,
        by_bytes: MicroJoules(0),
        charged: Sampled::default(),
    });
    let mut all = Branches::new(Shape::default(), Measure::Energy);
    all.add(&profile);
    let expected =
        ["all 0/4", " [libc.so.6] 0/4", "  [libjvm.so] 0/4", "   hash 0/4", "    hash 0/4", "     [libc.so.6] 4/4"];
    assert_eq!(drawn(&all.tree()), expected);
}

#[test]
fn by_kind_each_way_is_a_tower_of_its_own() {
    let tree = of_kinds(WAYS, Kinds::Apart);
    let nodes = drawn(&tree);
    let kinds = tree.nodes.iter().map(|node| tree.kind(node).name());
    let told: Vec<String> = nodes.iter().zip(kinds).map(|(node, kind)| format!("{node} {kind}")).collect();
    let expected = [
        "all 0/100 all",
        " main 0/100 interpreted",
        "  run 10/10 interpreted",
        "  run 0/75 compiled-c2",
        "   hash 5/5 compiled-c1",
        "   hash 70/70 inlined",
        "  run 15/15 marker",
    ];
    assert_eq!(told, expected);
}

/// Depth, name, own and total energy of each node.
fn drawn(tree: &CallTree) -> Vec<String> {
    let mut depths = Vec::new();
    let line = |node: &Node| {
        let depth = node.parent.map_or(0, |parent: usize| depths[parent] + 1);
        depths.push(depth);
        format!("{}{} {}/{}", " ".repeat(depth), tree.label(node).name, node.own.energy, node.total.energy)
    };
    tree.nodes.iter().map(line).collect()
}

const BRANCHES: &[(u32, &str, u64)] =
    &[(0, "main;run;b", 5), (1, "main;run", 3), (0, "main;a", 7), (1, "main;run;b", 2), (0, "idle", 1)];

#[test]
fn branches_are_merged_from_the_root_on() {
    let expected = ["all 0/18", " idle 1/1", " main 0/17", "  a 7/7", "  run 3/10", "   b 7/7"];
    assert_eq!(drawn(&tree(BRANCHES, Levels::Frames)), expected);
}

#[test]
fn processes_and_threads_can_stand_before_frames() {
    let by_process = drawn(&tree(BRANCHES, Levels::Processes));
    assert_eq!(by_process[1], " java (pid 1) 0/13");
    assert!(by_process.contains(&" java (pid 2) 0/5".to_owned()), "{by_process:?}");
    let by_thread = drawn(&tree(BRANCHES, Levels::Threads));
    assert_eq!(by_thread[2], "  a 0/13");
}

#[test]
fn what_is_too_small_is_one_node_behind_its_siblings() {
    let pruned = tree(BRANCHES, Levels::Frames).pruned(8);
    assert_eq!(
        drawn(&pruned),
        ["all 0/18", " main 0/17", "  run 3/10", "   [others] 7/7", "  [others] 7/7", " [others] 1/1"]
    );
}

#[test]
fn of_equal_nodes_the_first_ones_are_the_largest() {
    let tied = tree(&[(0, "a", 4), (0, "b", 4), (0, "c", 4), (0, "d", 4)], Levels::Frames);
    assert_eq!(drawn(&tied.largest(3)), ["all 0/16", " a 4/4", " b 4/4", " [others] 8/8"]);
}

#[test]
fn without_energy_cpu_time_ranks() {
    let mut idle = tree(&[(0, "a", 1), (0, "b", 3), (0, "c", 2)], Levels::Frames);
    for node in &mut idle.nodes {
        (node.own.energy, node.total.energy) = (MicroJoules(0), MicroJoules(0));
    }
    assert_eq!(drawn(&idle.largest(3)), ["all 0/0", " b 0/0", " c 0/0", " [others] 0/0"]);
}

#[test]
fn what_only_the_other_data_set_has_stays() {
    let mut all = Branches::default();
    all.add(&profile(&[(0, "main;new", 10)]));
    all.add_base(&profile(&[(0, "main;old", 20)]));
    let tree = all.tree().pruned(5);
    let bases: Vec<_> = tree.nodes.iter().map(|node| (tree.label(node).name.raw(), node.base_total)).collect();
    assert_eq!(bases, [("all", 20), ("main", 20), ("new", 0), ("old", 20)]);
}

#[test]
fn no_branches_are_a_root_alone() {
    assert_eq!(drawn(&tree(&[], Levels::Threads).pruned(1)), ["all 0/0"]);
}

proptest! {
    #[test]
    fn the_kinds_of_a_node_sum_to_it(
        branches in prop::collection::vec(("(inlined|interpreted|marker):[ab](;(inlined|interpreted|marker):[ab]){0,4}", 0..1000_u64), 0..40),
    ) {
        let branches: Vec<(&str, u64)> = branches.iter().map(|(path, energy)| (path.as_str(), *energy)).collect();
        let (merged, apart) = (of_kinds(&branches, Kinds::Merged), of_kinds(&branches, Kinds::Apart));
        prop_assert_eq!(merged.total(), apart.total());
        prop_assert!(merged.nodes.len() <= apart.nodes.len());
        for node in merged.nodes.iter().skip(1) {
            let sum: u64 = node.mix.by_size().iter().map(|(_, amounts)| amounts.energy.0).sum();
            prop_assert_eq!(sum, node.total.energy.0);
        }
    }

    #[test]
    fn nothing_is_lost_however_much_is_pruned(
        branches in prop::collection::vec((0..2_u32, "[abc](;[abc]){0,5}", 0..1000_u64), 0..60),
        least in 0..3000_u64,
        most in 1..40_usize,
    ) {
        let branches: Vec<(u32, &str, u64)> = branches.iter().map(|(thread, path, energy)| (*thread, path.as_str(), *energy)).collect();
        let sum: u64 = branches.iter().map(|(_, _, energy)| energy).sum();
        for levels in [Levels::Frames, Levels::Processes, Levels::Threads] {
            let whole = tree(&branches, levels);
            let few = whole.largest(most);
            let kept = few.nodes.iter().filter(|node| few.label(node).kind != NodeKind::Others).count();
            prop_assert_eq!(kept, most.min(whole.nodes.len()));
            // Each node that is kept may have one more for what it lost.
            prop_assert!(few.nodes.len() <= 2 * most);
            for tree in [&whole, &whole.pruned(least), &few] {
                prop_assert_eq!(tree.total().energy, MicroJoules(sum));
                prop_assert_eq!(tree.nodes.iter().map(|node| node.own.energy.0).sum::<u64>(), sum);
                for (index, node) in tree.nodes.iter().enumerate() {
                    let children: u64 = tree.nodes.iter().filter(|child| child.parent == Some(index)).map(|child| child.total.energy.0).sum();
                    prop_assert_eq!(node.total.energy.0, node.own.energy.0 + children);
                    prop_assert!(node.parent.is_none_or(|parent| parent < index));
                }
            }
        }
    }
}
