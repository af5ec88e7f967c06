//! Divides what threads allocated among the call paths that allocated it, by samples.
//!
//! What a thread allocated is exact, and samples say in which proportion its paths and classes did. So the parts sum to
//! the thread's bytes. No energy is involved.

use std::collections::BTreeMap;

use super::{
    by_samples::{Seen, divided},
    paths::Paths,
    threads::ThreadJoin,
};
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
    let mut samples: BTreeMap<usize, BTreeMap<Place, Seen>> = BTreeMap::new();
    for sample in &window.samples {
        if let Some((position, process)) = join.position_of_key(sample.thread_key) {
            let place = paths.allocation(process, sample.stack);
            samples.entry(position).or_default().entry(place).or_default().add(sample.bytes, sample.samples);
        }
    }
    let unseen = paths.markers().no_sample;
    let of_thread = |(thread, bytes): (usize, u64)| {
        let row = move |((branch, class), bytes, samples)| AllocationRow { thread, branch, class, bytes, samples };
        divided(bytes, samples.remove(&thread), (unseen, None)).map(row)
    };
    bytes.into_iter().flat_map(of_thread).collect()
}
