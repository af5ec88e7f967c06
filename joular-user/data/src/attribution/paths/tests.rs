use super::*;
use crate::{
    attribution::names::NameLimits,
    model::{frame::FrameKind, quality::StackQuality, units::Address},
};

const PROCESS: ProcessKey = (Pid(1), 0);
const LIMITS: Limits = Limits {
    branches: 1000,
    frames: 500,
    text_bytes: 1 << 16,
    stacks: 5000,
    stack_frames: 16_000,
    names: NameLimits { of_process: 300, of_all: 400 },
};

fn stack(id: u64) -> RawStack {
    let digits = [id % 60, id / 60 % 60, id / 3600];
    RawStack {
        id,
        is_kernel: false,
        quality: StackQuality::default(),
        frames: digits.map(|digit| Address(digit * 100 + 50)).to_vec(),
    }
}

/// Names both what a leaf and what a caller at `digit` is looked up as.
fn names(digit: u64, epoch: u64) -> [Symbol; 2] {
    [49, 50].map(|offset| Symbol {
        address: Address(digit * 100 + offset),
        frames: vec![Frame::new(FrameKind::Native, format!("f{digit}-{epoch}"))],
    })
}

fn sample(id: u64) -> SampleCount {
    SampleCount { user_stack: id, ..SampleCount::default() }
}

#[test]
fn memory_does_not_grow_with_the_number_of_paths_ever_seen() {
    let mut paths = Paths::with_limits(LIMITS);
    let mut generations = 0;
    for window in 0..400_u64 {
        let ids: Vec<u64> = (1 + window * 500..=(window + 1) * 500).collect();
        ids.iter().for_each(|id| paths.add_stack(&stack(*id)));
        let before = paths.table.generation();
        // Code is compiled anew all the time, under new names.
        (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, window)));
        paths.start_window();
        generations += usize::from(paths.table.generation() != before);
        for id in &ids {
            paths.path(PROCESS, &sample(*id), false);
        }
        paths.end_window(ids.len());
        paths.forget_stacks(&ids);
        assert!(paths.table.branch_count() <= 1000 + 500, "{}", paths.table.branch_count());
        assert!(paths.table.frame_count() <= 500 + 60, "{}", paths.table.frame_count());
        assert!(paths.known.is_empty() && paths.stacks.is_empty());
    }
    assert!(generations > 100, "{generations}");
    assert_eq!(paths.names.len(), 120);
}

#[test]
fn a_new_table_gives_the_same_paths() {
    let mut paths = Paths::with_limits(LIMITS);
    (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    for id in 1..=2000 {
        paths.add_stack(&stack(id));
        paths.path(PROCESS, &sample(id), false);
    }
    let before = paths.path(PROCESS, &sample(777), false);
    let (text, frames) = (paths.table.folded(before), paths.table.branch(before).to_vec());
    paths.start_window();
    assert_eq!(paths.table.branch_count(), 0);
    let after = paths.path(PROCESS, &sample(777), false);
    assert_eq!((paths.table.folded(after), paths.table.branch(after)), (text, &*frames));
    assert_eq!(paths.table.folded(after), "f0-0;f12-0;f57-0");
    assert_eq!((paths.table.generation(), paths.table.frames_generation()), (1, 0), "frames are as they were");
}

#[test]
fn paths_that_are_kept_are_in_every_new_table() {
    let mut paths = Paths::with_limits(LIMITS);
    (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    (1..=2000).for_each(|id| paths.add_stack(&stack(id)));
    let kept = [7, 1234].map(|id| paths.path(PROCESS, &sample(id), false));
    let texts = kept.map(|path| paths.table.folded(path));
    paths.keep(kept.into_iter());
    assert_eq!(paths.take_moved(), None);
    for round in 0..2 {
        for id in 1..=2000 {
            paths.path(PROCESS, &sample(id), false);
        }
        // Names of another process: now the frames are too many as well.
        for epoch in 0..10 * round {
            (0..60).for_each(|digit| paths.learn((Pid(2), 0), &names(digit, epoch)));
        }
        paths.start_window();
        assert!(paths.table.branch_count() < 10, "round {round}");
        assert_eq!(paths.table.frames_generation(), round);
    }
    let moved = paths.take_moved().unwrap();
    assert_eq!(kept.map(|path| paths.table.folded(moved[&path])), texts);
}

#[test]
fn a_table_in_use_is_not_built_anew_every_window() {
    let mut paths = Paths::with_limits(LIMITS);
    (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    (1..=2000).for_each(|id| paths.add_stack(&stack(id)));
    for _ in 0..10 {
        paths.start_window();
        for id in 1..=2000 {
            paths.path(PROCESS, &sample(id), false);
        }
        paths.end_window(2000);
    }
    assert_eq!((paths.table.generation(), paths.table.branch_count()), (0, 2000));
}

#[test]
fn long_names_and_deep_stacks_have_a_bound_together() {
    let mut paths = Paths::with_limits(LIMITS);
    for round in 0..1000 {
        let frames = vec![Frame::new(FrameKind::Native, format!("{round:04096}"))];
        paths.learn(PROCESS, &[Symbol { address: Address(round % 200), frames }]);
        let frames = vec![Address(1); 127];
        paths.add_stack(&RawStack { id: round, is_kernel: false, quality: StackQuality::default(), frames });
    }
    assert!(paths.table.text_bytes() <= NEVER_MORE * LIMITS.text_bytes + 4096, "{}", paths.table.text_bytes());
    assert_eq!(paths.stack_frames, LIMITS.stack_frames / 127 * 127);
    paths.forget_stacks(&(0..1000).collect::<Vec<_>>());
    assert_eq!(paths.stack_frames, 0);
    paths.forget_process(PROCESS);
    paths.start_window();
    assert_eq!(paths.table.text_bytes(), 0, "there is room again");
}

#[test]
fn at_the_limit_of_a_process_its_new_names_win() {
    let mut paths = Paths::with_limits(LIMITS);
    for digit in 0..1000 {
        paths.learn(PROCESS, &names(digit, 0));
        let has_name = paths.names.get(PROCESS, Address(digit * 100 + 50)).is_some();
        assert!(paths.names.len() <= 301 && has_name, "{digit}");
    }
    paths.learn(PROCESS, &(1000..3000).flat_map(|digit| names(digit, 0)).collect::<Vec<_>>());
    assert_eq!(paths.names.len(), NEVER_MORE * LIMITS.names.of_process);
}

#[test]
fn what_was_forgotten_has_names_again_when_it_is_told_again() {
    let mut paths = Paths::with_limits(LIMITS);
    paths.add_stack(&stack(777));
    (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    (1000..1100).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    let forgotten = paths.path(PROCESS, &sample(777), false);
    assert!(paths.table.folded(forgotten).contains("[unresolved]"));
    (0..60).for_each(|digit| paths.learn(PROCESS, &names(digit, 1)));
    let told = paths.path(PROCESS, &sample(777), false);
    assert_eq!(paths.table.folded(told), "f0-1;f12-1;f57-1");
}

#[test]
fn at_the_limit_of_all_the_process_with_most_names_forgets_them() {
    let mut paths = Paths::with_limits(LIMITS);
    (0..150).for_each(|digit| paths.learn(PROCESS, &names(digit, 0)));
    let (few, new) = ((Pid(2), 0), (Pid(3), 0));
    (0..50).for_each(|digit| paths.learn(few, &names(digit, 0)));
    assert_eq!(paths.names.len(), 400);
    paths.learn(new, &names(0, 0));
    let kept: Vec<(ProcessKey, usize)> =
        paths.named_addresses().into_iter().map(|(key, addresses)| (key, addresses.len())).collect();
    assert_eq!((kept, paths.names.len()), (vec![(few, 100), (new, 2)], 102));
}

#[test]
fn stacks_beyond_the_limit_are_lost() {
    let mut paths = Paths::with_limits(LIMITS);
    (1..=6000).for_each(|id| paths.add_stack(&stack(id)));
    assert_eq!(paths.stacks.len(), 5000);
    let lost = paths.path(PROCESS, &sample(6000), false);
    assert_eq!(paths.table.folded(lost), "[lost stack]");
}
