//! Divides what threads allocated among the call paths that allocated it, by samples.
//!
//! What a thread allocated is exact, and samples say in which proportion its paths and classes did. So the parts sum to
//! the thread's bytes. No energy is involved.
//!
//! Of some JVMs allocations cannot be sampled. There samples of CPU time take their place: a path gets as much of what the
//! thread allocated as it has of the thread's time. That gives no class, and only a guess of where.

use std::collections::BTreeMap;

use super::{
    by_samples::{Seen, divided},
    paths::Paths,
    threads::ThreadJoin,
    window_report::BranchRow,
    work::ProcessKey,
};
use crate::{
    events::{SampleKind, WindowAllocations},
    model::units::MicroJoules,
    sampling::Sampled,
    stacks::{BranchIndex, FrameId},
};

/// What one thread allocated of one class on one path in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRow {
    /// Index into the window's threads.
    pub thread: usize,
    /// Up to the method that allocated.
    pub branch: BranchIndex,
    /// A frame whose name is the class; `None`: no sample shows it.
    pub class: Option<FrameId>,
    pub bytes: u64,
    /// Objects that were sampled, or samples of CPU time.
    pub samples: u64,
    /// Which of the two.
    pub by: SampledBy,
    /// For how many bytes a sample stands that is independent of others, where that is not what samples stand for.
    pub bytes_per_sample: Option<u64>,
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
impl AllocationRow {
    /// Of objects of an unknown class.
    pub const fn new(thread: usize, branch: BranchIndex, bytes: u64, samples: u64) -> Self {
        Self { thread, branch, class: None, bytes, samples, by: SampledBy::Allocation, bytes_per_sample: None }
    }

    /// Takes for how many bytes more each sample stands, if its thread allocates in step with its buffers.
    pub(super) fn keep_step(&mut self, more_bytes: Option<f64>) {
        let Some(more_bytes) = more_bytes.filter(|_| self.samples > 0 && self.by == SampledBy::Allocation) else {
            return;
        };
        self.by = SampledBy::AllocationInStep;
        self.bytes_per_sample = Some(whole(self.bytes as f64 / self.samples as f64 + more_bytes));
    }

    /// What samples tell of the bytes.
    pub fn sampled(&self) -> Sampled {
        sampled(self.bytes, self.samples, self.bytes_per_sample)
    }
}

/// What samples tell of bytes; `bytes_per_sample` as in [`AllocationRow`].
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
pub fn sampled(bytes: u64, samples: u64, bytes_per_sample: Option<u64>) -> Sampled {
    match bytes_per_sample {
        Some(per_sample) if samples > 0 => Sampled::standing_for(MicroJoules(bytes), samples, per_sample as f64),
        _ => Sampled::of(MicroJoules(bytes), samples),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is an estimate")]
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// What shows where a thread allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampledBy {
    /// Objects that were sampled.
    #[default]
    Allocation,
    /// Objects that were sampled of a thread that allocates in step with its buffers: see [`super::in_step`].
    AllocationInStep,
    /// Samples of CPU time.
    CpuTime,
}

impl SampledBy {
    pub const ALL: [Self; 3] = [Self::Allocation, Self::AllocationInStep, Self::CpuTime];

    /// The name in a data set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocation => "allocation",
            Self::AllocationInStep => "allocation-in-step",
            Self::CpuTime => "cpu-time",
        }
    }
}

/// A path and a class.
type Place = (BranchIndex, Option<FrameId>);

/// Rows by thread. Allocations of threads that belong to no target, or had no time in the window, are nobody's. `branches`
/// are the window's, by thread.
pub(super) fn rows(
    window: &WindowAllocations,
    join: &ThreadJoin,
    branches: &[BranchRow],
    is_unsampled: impl Fn(ProcessKey) -> bool,
    paths: &mut Paths,
) -> Vec<AllocationRow> {
    let mut threads: BTreeMap<usize, (u64, SampledBy)> = BTreeMap::new();
    for thread in &window.threads {
        if let Some((position, process)) = join.position_of_key(thread.thread_key) {
            let by = if is_unsampled(process) { SampledBy::CpuTime } else { SampledBy::Allocation };
            let (sum, _) = threads.entry(position).or_insert((0, by));
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
    let mut rows = Vec::new();
    for (thread, (bytes, by)) in threads {
        let places = match by {
            SampledBy::Allocation | SampledBy::AllocationInStep => samples.remove(&thread),
            SampledBy::CpuTime => by_cpu_time(thread, branches, paths),
        };
        rows.extend(divided(bytes, places, (unseen, None)).map(|((branch, class), bytes, samples)| AllocationRow {
            class,
            by,
            ..AllocationRow::new(thread, branch, bytes, samples)
        }));
    }
    rows
}

/// Where a thread was in Java, and by how many samples; `None` if it was seen nowhere there.
fn by_cpu_time(thread: usize, branches: &[BranchRow], paths: &mut Paths) -> Option<BTreeMap<Place, Seen>> {
    let start = branches.partition_point(|row| row.thread < thread);
    let of_thread = branches.get(start..)?.iter().take_while(|row| row.thread == thread);
    let mut places: BTreeMap<Place, Seen> = BTreeMap::new();
    for row in of_thread.filter(|row| row.kind == SampleKind::CpuTime && row.samples > 0) {
        if let Some(path) = paths.in_java(row.branch) {
            places.entry((path, None)).or_default().add(row.samples, row.samples);
        }
    }
    (!places.is_empty()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::{Engine, window_report::WindowReport},
        dataset::fixture,
        events::Event,
        model::{policy::Policy, units::Pid},
        stacks::StackTable,
    };

    /// Of a window's thread, samples by path up to the last method of Java.
    fn in_java(report: &WindowReport, table: &StackTable, thread: usize) -> BTreeMap<Vec<FrameId>, u64> {
        let mut paths = BTreeMap::new();
        for row in report.branches.iter().filter(|row| row.thread == thread && row.samples > 0) {
            let path = table.branch(row.branch);
            if let Some(last) = path.iter().rposition(|frame| table.frame(*frame).kind.is_java()) {
                *paths.entry(path[..=last].to_vec()).or_default() += row.samples;
            }
        }
        paths
    }

    #[test]
    fn where_allocations_cannot_be_sampled_bytes_go_by_samples_of_cpu_time_in_java() {
        let mut engine = Engine::default();
        let (mut by_thread, mut divided) = (BTreeMap::new(), 0);
        for event in fixture::events(Policy::default()) {
            let report = engine.apply(&event);
            if matches!(&event, Event::Process(process) if process.pid == Pid(1)) {
                engine.apply(&Event::AllocationsUnsampled { pid: Pid(1), start_boottime_ns: 0 });
            }
            let Some(report) = report else { continue };
            for rows in report.allocations.chunk_by(|a, b| a.thread == b.thread) {
                let thread = rows[0].thread;
                let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
                *by_thread.entry(report.threads[thread].tid.0).or_default() += bytes;
                assert!(rows.iter().all(|row| row.class.is_none() && row.by == SampledBy::CpuTime), "{rows:?}");
                let expected = in_java(&report, engine.table(), thread);
                let all: u64 = expected.values().sum();
                if all == 0 {
                    assert_eq!((rows.len(), rows[0].samples), (1, 0), "no sample tells");
                    continue;
                }
                divided += 1;
                let found: BTreeMap<_, _> =
                    rows.iter().map(|row| (engine.table().branch(row.branch).to_vec(), row.samples)).collect();
                assert_eq!(found, expected);
                let is_in_proportion = |row: &AllocationRow| (row.bytes * all).abs_diff(bytes * row.samples) <= all;
                assert!(rows.iter().all(is_in_proportion), "{rows:?}");
            }
        }
        assert_eq!(by_thread, fixture::allocated_by_thread());
        assert!(divided > 50, "{divided}");
    }
}
