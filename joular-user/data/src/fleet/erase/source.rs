//! Gives what belongs to erased processes the names of the one that stands for them. Whoever sums it gets one row of it.

use super::rules::erased_key;
use crate::{
    attribution::window_report::{Category, ProcessRef},
    dataset::{
        erasing::{ERASED, Keys},
        read::{rollup::ReadRollupWindow, stacks::ReadStacks},
    },
    fleet::{
        names::Name,
        read::{Source, start_ns},
    },
    model::{
        frame::{Frame, FrameKind},
        quality::PathQuality,
        units::Pid,
    },
};

/// What threads of erased processes are.
const CATEGORY: Category = Category::Native;

/// Adds the only call path that erased processes have, and returns its id.
pub(super) fn erased_path(stacks: &mut ReadStacks) -> i64 {
    stacks.add(&[Frame::new(FrameKind::Marker, ERASED)], PathQuality::NoStack)
}

/// Whether a process, as windows of a rollup know it, is one of these.
pub(super) fn has(keys: &Keys, process: &ProcessRef) -> bool {
    let start_us = i64::try_from(process.start_boottime_ns / 1000).unwrap_or(i64::MAX);
    keys.contains(&(process.pid.0, Some(start_us)))
}

/// Erases processes in a source. Their keys stay, so that what is summed by them is found.
pub(in crate::fleet) fn in_source(source: &mut Source, keys: &Keys, stacks: &mut ReadStacks) {
    if keys.is_empty() {
        return;
    }
    let stack_id = erased_path(stacks);
    for (pid, start) in keys {
        if let Some(start) = start {
            source.processes.insert((Pid(*pid), start_ns(*start)), Name::erased());
        }
    }
    for read in &mut source.windows {
        in_window(read, keys, stacks, stack_id);
    }
    for (_, key, _) in source.amounts.iter_mut().filter(|(_, key, _)| has(keys, &key.process)) {
        key.process.comm = ERASED.into();
        (key.category, key.stack_id, key.class) = (CATEGORY, stack_id, None);
    }
}

fn in_window(read: &mut ReadRollupWindow, keys: &Keys, stacks: &ReadStacks, stack_id: i64) {
    let Some(path) = stacks.get(stack_id) else { return };
    let report = &mut read.window.report;
    let erased: Vec<bool> = report.processes.iter().map(|process| has(keys, process)).collect();
    let is_erased = |process: usize| erased.get(process).copied().unwrap_or_default();
    for (process, _) in report.processes.iter_mut().zip(&erased).filter(|(_, is_erased)| **is_erased) {
        process.comm = ERASED.into();
    }
    for thread in report.threads.iter_mut().filter(|thread| is_erased(thread.process)) {
        thread.category = CATEGORY;
    }
    for (row, pooled) in report.branches.iter_mut().zip(&mut read.window.pooled) {
        if report.threads.get(row.thread).is_some_and(|thread| is_erased(thread.process)) {
            row.branch = path;
            // Nobody knows any more what of it was of windows without a sample.
            pooled.inferred.unsampled_uj = 0;
        }
    }
    for (process, thread) in read.window.threads.iter_mut().filter(|(process, _)| has(keys, process)) {
        process.comm = ERASED.into();
        (thread.name, thread.category) = (ERASED.into(), CATEGORY);
    }
}

/// These processes, and the one that stands for those that were erased before.
pub(super) fn with_erased(keys: &Keys) -> Keys {
    keys.iter().copied().chain([erased_key()]).collect()
}
