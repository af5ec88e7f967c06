//! Finds for all bytes that were moved who moved them, and divides those of a target's thread among its call paths, by
//! samples. No energy is involved.

use std::collections::BTreeMap;

use joular_ebpf::abi::IoKind;

use super::{
    by_samples::{Seen, divided},
    paths::Paths,
    threads::ThreadJoin,
    work::Claimant,
};
use crate::{
    events::{IoSample, SampleCount, WindowIo},
    model::byte_costs::BytesByKind,
    stacks::BranchIndex,
};

/// What was moved in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Whether the kernel says what was read from devices and written to them.
    pub counts_devices: bool,
    /// By claimant and path. Other processes, the kernel and the profiler are always here.
    pub rows: Vec<MovedRow>,
}

/// What a thread of a target moved on one path, or a group all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedRow {
    pub claimant: Claimant,
    /// Of a thread.
    pub branch: Option<BranchIndex>,
    pub bytes: BytesByKind,
    /// Calls that were sampled.
    pub samples: u64,
}

/// Groups that have rows in any case, so that a reader can tell what was counted and is zero.
const GROUPS: [Claimant; 3] = [Claimant::OtherProcesses, Claimant::Kernel, Claimant::Profiler];

type Place = (Claimant, Option<BranchIndex>);

/// Sums by place.
#[derive(Default)]
struct MovedSums(BTreeMap<Place, MovedRow>);

impl MovedSums {
    fn row(&mut self, (claimant, branch): Place) -> &mut MovedRow {
        let none = || MovedRow { claimant, branch, bytes: [0; IoKind::ALL.len()], samples: 0 };
        self.0.entry((claimant, branch)).or_insert_with(none)
    }

    fn add(&mut self, place: Place, kind: IoKind, bytes: u64, samples: u64) {
        let row = self.row(place);
        let sum = &mut row.bytes[kind as usize];
        *sum = sum.saturating_add(bytes);
        row.samples = row.samples.saturating_add(samples);
    }
}

impl Moved {
    /// What anybody moved.
    pub(crate) fn total(&self) -> BytesByKind {
        let mut total = BytesByKind::default();
        for row in &self.rows {
            total.iter_mut().zip(row.bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
        }
        total
    }

    pub(super) fn of(window: &WindowIo, join: &ThreadJoin, paths: &mut Paths) -> Self {
        let mut sums = MovedSums::default();
        for group in GROUPS {
            sums.row((group, None));
        }
        let mut threads: BTreeMap<(usize, IoKind), u64> = BTreeMap::new();
        let is_counted = |kind| window.counts_devices || !matches!(kind, IoKind::DeviceRead | IoKind::DeviceWritten);
        for thread in window.threads.iter().filter(|thread| is_counted(thread.kind)) {
            match join.claimant_of_key(thread.thread_key) {
                Claimant::Thread(position) => {
                    let sum = threads.entry((position, thread.kind)).or_default();
                    *sum = sum.saturating_add(thread.bytes);
                }
                group => sums.add((group, None), thread.kind, thread.bytes, 0),
            }
        }
        let mut seen = seen(&window.samples, join, paths);
        let unseen = paths.markers().no_sample;
        for ((position, kind), bytes) in threads {
            let places = seen.remove(&(position, kind));
            for (branch, bytes, samples) in divided(bytes, places, unseen) {
                sums.add((Claimant::Thread(position), Some(branch)), kind, bytes, samples);
            }
        }
        Self { counts_devices: window.counts_devices, rows: sums.0.into_values().collect() }
    }
}

/// What samples say of each thread and kind.
fn seen(
    samples: &[IoSample],
    join: &ThreadJoin,
    paths: &mut Paths,
) -> BTreeMap<(usize, IoKind), BTreeMap<BranchIndex, Seen>> {
    let mut seen: BTreeMap<_, BTreeMap<BranchIndex, Seen>> = BTreeMap::new();
    for sample in samples {
        if let Some((position, process)) = join.position_of_key(sample.thread_key) {
            let stack = SampleCount { user_stack: sample.stack, ..SampleCount::default() };
            let branch = paths.path(process, &stack, false);
            let places = seen.entry((position, sample.kind)).or_default();
            places.entry(branch).or_default().add(sample.bytes, sample.samples);
        }
    }
    seen
}
