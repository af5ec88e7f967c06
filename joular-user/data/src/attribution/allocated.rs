//! Divides what threads allocated among the call paths that allocated it, by samples.
//!
//! What a thread allocated is exact, and samples say in which proportion its paths and classes did. So the parts sum to
//! the thread's bytes. No energy is involved.

use std::collections::BTreeMap;

use super::{paths::Paths, split::apportion, threads::ThreadJoin};
use crate::{
    events::WindowAllocations,
    stacks::{BranchIndex, FrameId},
};

/// What one thread allocated of one class on one path in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRow {
    /// Index into the window's threads.
    pub thread: usize,
    /// Up to the method that allocated.
    pub branch: BranchIndex,
    /// A frame whose name is the class; `None`: no sample tells.
    pub class: Option<FrameId>,
    pub bytes: u64,
    /// Objects that were sampled.
    pub samples: u64,
}

/// A path and a class.
type Place = (BranchIndex, Option<FrameId>);

/// Rows by thread. Allocations of threads that are no target's, or had no time in the window, are nobody's.
pub(super) fn rows(window: &WindowAllocations, join: &ThreadJoin, paths: &mut Paths) -> Vec<AllocationRow> {
    let mut bytes: BTreeMap<usize, u64> = BTreeMap::new();
    for thread in &window.threads {
        if let Some((position, _)) = join.position_of_key(thread.thread_key) {
            let sum = bytes.entry(position).or_default();
            *sum = sum.saturating_add(thread.bytes);
        }
    }
    let mut samples: BTreeMap<usize, BTreeMap<Place, (u64, u64)>> = BTreeMap::new();
    for sample in &window.samples {
        if let Some((position, process)) = join.position_of_key(sample.thread_key) {
            let place = paths.allocation(process, sample.stack);
            let (stands_for, count) = samples.entry(position).or_default().entry(place).or_default();
            *stands_for = stands_for.saturating_add(sample.bytes);
            *count = count.saturating_add(sample.samples);
        }
    }
    let unseen = paths.markers().no_sample;
    let of_thread = |(thread, bytes): (usize, u64)| {
        let of_thread = samples.remove(&thread).unwrap_or_else(|| BTreeMap::from([((unseen, None), (1, 0))]));
        let weights: Vec<u64> = of_thread.values().map(|(stands_for, _)| *stands_for).collect();
        let parts = apportion(bytes, &weights);
        let row =
            move |(((branch, class), (_, samples)), bytes)| AllocationRow { thread, branch, class, bytes, samples };
        of_thread.into_iter().zip(parts).map(row).filter(|row| row.bytes > 0)
    };
    bytes.into_iter().flat_map(of_thread).collect()
}
