//! Sums windows as they are made, for who wants profiles while a recording goes on.
//!
//! What is known of processes is kept for the whole run. Everything else is of the time since the last profile
//! was taken, so memory does not grow with the run.

use std::collections::{BTreeSet, HashMap};

use super::{
    Catalog, Filter, FrameIndex, Overview, PathIndex, Process, ProcessIndex, Profile, Run, Thread, ThreadIndex,
    ThreadPath,
    host_times::RunTime,
    measured::{Part, counted, source, sums as measured},
    row::{DividedBy, EnergyRow},
    sums::EnergySums,
};
use crate::{
    attribution::{
        counts::Counts,
        window_report::{BranchRow, ProcessRef, ThreadRow, WindowReport},
        work::Claimant,
    },
    dataset::tables::shared::Boot,
    events::{ProcessInfo, RunInfo, Runtime},
    model::{
        domain::Label,
        measure::Measure,
        units::{MicroJoules, Pid, UnixMicros},
    },
    sampling::Sampled,
    stacks::{BranchIndex, FrameId, StackTable},
};

/// Pid and start.
type ProcessKey = (Pid, u64);

/// Windows since the last profile was taken.
#[derive(Debug)]
pub struct LiveProfile {
    run: RunInfo,
    boot: Option<Boot>,
    /// Of the whole run, those that have not ended.
    known: HashMap<ProcessKey, Process>,
    ended: Vec<ProcessKey>,
    since: Since,
}

/// What is of the time since then.
#[derive(Debug, Default)]
struct Since {
    catalog: Catalog,
    sums: EnergySums,
    measured: measured::FactSums,
    time: RunTime,
    windows: u64,
    ambiguous: u64,
    read_failed: u64,
    label: Option<Label>,
    sources: BTreeSet<String>,
    processes: HashMap<ProcessKey, ProcessIndex>,
    threads: HashMap<(ProcessIndex, u32, u64), ThreadIndex>,
    /// Indices of one generation of the table of stacks mean nothing in another.
    generation: u64,
    paths: HashMap<BranchIndex, PathIndex>,
    frames: HashMap<FrameId, FrameIndex>,
}

impl LiveProfile {
    pub fn new(run: &RunInfo) -> Self {
        let since = Since::of(run);
        Self { run: run.clone(), boot: None, known: HashMap::new(), ended: Vec::new(), since }
    }

    /// A process was found, or more is known of it.
    pub fn process(&mut self, info: &ProcessInfo) {
        if info.is_target {
            self.known.insert((info.pid, info.start_boottime_ns), described(info));
        }
    }

    /// A process ended; its last window was seen.
    pub fn process_ended(&mut self, key: ProcessKey) {
        self.ended.push(key);
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) {
        let offset_ns = self.run.boottime_offset_ns;
        let boot = *self.boot.get_or_insert(Boot::new(report.start, offset_ns, report.wall_start));
        self.since.note(report);
        if self.since.generation != stacks.generation() {
            self.since.generation = stacks.generation();
            self.since.paths.clear();
            self.since.frames.clear();
        }
        let threads: Vec<Option<ThreadIndex>> = report
            .threads
            .iter()
            .map(|row| {
                let process = self.process_index(report.processes.get(row.process)?, boot);
                Some(self.since.thread(process, row, boot))
            })
            .collect();
        for row in &report.branches {
            let Some(Some(thread)) = threads.get(row.thread) else { continue };
            let path = self.since.path(row.branch, stacks);
            self.since.sums.add_entry(entry(*thread, path, row));
        }
        for row in &report.allocations {
            let Some(Some(thread)) = threads.get(row.thread) else { continue };
            let path = self.since.path(row.branch, stacks);
            let class = row.class.map(|class| stacks.frame(class).name.raw());
            let (sampled_by, sampled) = (row.by, row.sampled());
            let part = Part { measure: Measure::Allocated, class, sampled_by, amount: row.bytes, sampled };
            self.since.measured.add((*thread, path), &part);
        }
        for row in report.moved.iter().flat_map(|moved| &moved.rows) {
            let (Claimant::Thread(thread), Some(branch)) = (row.claimant, row.branch) else { continue };
            let Some(Some(thread)) = threads.get(thread) else { continue };
            let path = self.since.path(branch, stacks);
            source::moved(&row.bytes, row.samples).for_each(|part| self.since.measured.add((*thread, path), &part));
        }
        if let Some(counts) = &report.counts {
            self.since.count(report, counts, &threads, stacks);
        }
    }

    /// What windows brought since the last time; `None` if there were none.
    pub fn take(&mut self) -> Option<Profile> {
        let Since { catalog, sums, measured, time, windows, ambiguous, read_failed, label, sources, .. } =
            std::mem::replace(&mut self.since, Since::of(&self.run));
        for key in std::mem::take(&mut self.ended) {
            self.known.remove(&key);
        }
        let mut overview = Overview { windows, ambiguous, read_failed, label, ..Overview::default() };
        (overview.span, overview.duration_ns, overview.run_times) = (time.span, time.length_ns, vec![time]);
        overview.sources = sources.into_iter().collect();
        let everything = Filter::default();
        let all = vec![true; catalog.paths.indices().count()];
        (windows > 0).then(|| Profile {
            measured: measured.finish(&all),
            ..Profile::of_entries(catalog, sums.into_entries(), overview, &everything, None)
        })
    }

    fn process_index(&mut self, process: &ProcessRef, boot: Boot) -> ProcessIndex {
        let key = (process.pid, process.start_boottime_ns);
        if let Some(index) = self.since.processes.get(&key) {
            return *index;
        }
        let mut known = self.known.get(&key).cloned().unwrap_or_else(|| Process {
            pid: process.pid,
            comm: process.comm.clone(),
            ..Process::default()
        });
        known.start = wall_time(boot, process.start_boottime_ns);
        let processes = &mut self.since.catalog.processes;
        processes.push(known);
        let index = ProcessIndex::of(processes.len() - 1);
        self.since.processes.insert(key, index);
        index
    }
}

impl Since {
    fn of(run: &RunInfo) -> Self {
        let runs = vec![Run { info: run.clone(), ..Run::default() }];
        Self { catalog: Catalog { runs, ..Catalog::default() }, ..Self::default() }
    }

    fn note(&mut self, report: &WindowReport) {
        self.windows += 1;
        self.time.add(report.wall_start, report.length_ns);
        self.label = self.label.max(report.label());
        for audit in report.domains.iter().filter(|audit| audit.is_shared) {
            self.ambiguous += u64::from(audit.is_ambiguous());
            self.read_failed += u64::from(audit.read_failed());
            if !self.sources.contains(&audit.source) {
                self.sources.insert(audit.source.clone());
            }
        }
    }

    /// Divides what threads counted among their paths.
    fn count(&mut self, report: &WindowReport, counts: &Counts, threads: &[Option<ThreadIndex>], stacks: &StackTable) {
        self.measured.record(counts.counters.iter().copied().map(Measure::Counted));
        let mut by_thread: HashMap<usize, Vec<EnergyRow>> = HashMap::new();
        for row in &report.branches {
            let Some(Some(thread)) = threads.get(row.thread) else { continue };
            by_thread.entry(row.thread).or_default().push(EnergyRow {
                run: 0,
                window_start: report.wall_start,
                window_ns: report.length_ns,
                thread: *thread,
                path: self.path(row.branch, stacks),
                energy: row.by_samples(),
                cpu_ns: row.cpu_ns,
                samples: row.samples,
                inferred: None,
                pooled: None,
                divided_by: DividedBy::CpuTime,
            });
        }
        for of_thread in &counts.rows {
            let Claimant::Thread(thread) = of_thread.claimant else { continue };
            let Some(rows) = by_thread.get(&thread) else { continue };
            counted::divided(&counts.counters, &of_thread.counts, rows, |row, part| {
                self.measured.add((row.thread, row.path), &part);
            });
        }
    }

    fn thread(&mut self, process: ProcessIndex, row: &ThreadRow, boot: Boot) -> ThreadIndex {
        let threads = &mut self.catalog.threads;
        let index = *self.threads.entry((process, row.tid.0, row.start_boottime_ns)).or_insert_with(|| {
            let start = wall_time(boot, row.start_boottime_ns);
            let (tid, name, category) = (row.tid, row.name.clone(), row.category);
            threads.push(Thread { process, tid, start, name, category });
            ThreadIndex::of(threads.len() - 1)
        });
        let latest = &mut threads[index.index()].name;
        if *latest != row.name {
            *latest = row.name.clone();
        }
        index
    }

    fn path(&mut self, branch: BranchIndex, stacks: &StackTable) -> PathIndex {
        let (paths, frames) = (&mut self.catalog.paths, &mut self.frames);
        *self.paths.entry(branch).or_insert_with(|| {
            let path: Vec<FrameIndex> = stacks
                .branch(branch)
                .iter()
                .map(|id| {
                    *frames.entry(*id).or_insert_with(|| paths.frame_index(stacks.frame(*id).clone().of_family()))
                })
                .collect();
            paths.push(path)
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
fn entry(thread: ThreadIndex, path: PathIndex, row: &BranchRow) -> ThreadPath {
    let BranchRow { energy, cpu_ns, samples, .. } = *row;
    let squares = if samples > 0 { (row.by_samples().0 as f64).powi(2) / samples as f64 } else { 0.0 };
    let by_bytes = row.by_bytes;
    let (inferred, charged) = (MicroJoules(0), Sampled::default());
    ThreadPath { thread, path, energy, cpu_ns, samples, inferred, squares, by_bytes, charged }
}

fn wall_time(boot: Boot, since_boot_ns: u64) -> UnixMicros {
    UnixMicros(boot.wall_time(since_boot_ns).unwrap_or_default())
}

fn described(info: &ProcessInfo) -> Process {
    let workload = info.workload.as_deref();
    let mut process = Process {
        pid: info.pid,
        comm: info.comm.clone(),
        container: info.container.clone(),
        pod: info.pod.clone(),
        namespace: workload.map(|known| known.namespace.clone()),
        pod_name: workload.map(|known| known.pod.clone()),
        labels: workload.map_or_else(Vec::new, |known| known.labels.clone()),
        service: info.service.as_ref().map(|service| service.name.clone()),
        version: info.service.as_ref().and_then(|service| service.version.clone()),
        ..Process::default()
    };
    if let Runtime::Jvm { version, main_class, collector, debug_non_safepoints, .. } = &info.runtime {
        process.jvm_version = version.clone();
        process.main_class = main_class.clone();
        process.collector = collector.clone();
        process.debug_non_safepoints = *debug_non_safepoints;
    }
    process
}

#[cfg(test)]
mod tests {
    use joular_ebpf::abi::IoKind;

    use super::*;
    use crate::{
        attribution::{
            allocated::{AllocationRow, SampledBy},
            counts::CountRow,
            moved::{Moved, MovedRow},
        },
        fixture::{self, SMALL},
        model::{
            byte_costs::BytesByKind,
            counter::Counter,
            frame::{Frame, FrameKind},
            way::Way,
        },
        report::profile::Fact,
    };

    #[test]
    fn each_profile_has_the_sums_of_its_own_windows() {
        let (mut live, mut stacks) = (LiveProfile::new(&fixture::run()), StackTable::default());
        (0..SMALL.processes).for_each(|index| live.process(&fixture::process(index)));
        assert!(live.take().is_none());
        for windows in [0..5_u64, 5..7] {
            let (mut energy, mut samples, count) = (MicroJoules(0), 0, windows.clone().count() as u64);
            for index in windows {
                if index == 6 {
                    stacks = StackTable::succeeding(&stacks);
                }
                let report = fixture::window(SMALL, &mut stacks, index);
                energy = energy.saturating_add(report.branches.iter().map(|row| row.energy).sum());
                samples += report.branches.iter().map(|row| row.samples).sum::<u64>();
                live.window(&report, &stacks);
            }
            let profile = live.take().unwrap();
            assert!(energy.0 > 0);
            assert_eq!(profile.energy(), energy);
            assert_eq!(profile.entries.iter().map(|entry| entry.samples).sum::<u64>(), samples);
            assert_eq!((profile.overview.windows, profile.overview.duration_ns), (count, count * fixture::SECOND));
            assert_eq!(profile.catalog.processes.len(), SMALL.processes as usize);
            assert!(profile.catalog.processes.iter().all(|process| process.main_class.is_some()));
        }
        assert!(live.take().is_none());
    }

    #[test]
    fn what_was_allocated_is_in_the_profile_of_its_time_by_path_and_class() {
        let (mut live, mut stacks) = (LiveProfile::new(&fixture::run()), StackTable::default());
        let node = stacks.frame_id(Frame::new(FrameKind::Compiled, "Node"));
        for (bytes, by) in [([70, 30], SampledBy::Allocation), ([5, 6], SampledBy::CpuTime)] {
            let mut report = fixture::window(SMALL, &mut stacks, 0);
            let branch = report.branches[0].branch;
            let row = |class, bytes| AllocationRow { class, by, ..AllocationRow::new(1, branch, bytes, 2) };
            report.allocations = vec![row(Some(node), bytes[0]), row(None, bytes[1])];
            (0..2).for_each(|_| live.window(&report, &stacks));
            let profile = live.take().unwrap();
            let of = |fact: &Fact| {
                let class = profile.class_of(fact).map(|class| class.raw().to_owned());
                let frames = profile.catalog.paths.frames_of(fact.path).len();
                (class, fact.amount, fact.sampled.samples, fact.sampled_by, frames == stacks.branch(branch).len())
            };
            let found: Vec<_> = profile.measured.facts(Measure::Allocated).iter().map(of).collect();
            let expected = [(None, 2 * bytes[1]), (Some("Node".to_owned()), 2 * bytes[0])];
            assert_eq!(found, expected.map(|(class, bytes)| (class, bytes, 4, by, true)));
        }
    }

    #[test]
    fn what_was_counted_is_in_the_profile_of_its_time() {
        let (mut live, mut stacks) = (LiveProfile::new(&fixture::run()), StackTable::default());
        let mut report = fixture::window(SMALL, &mut stacks, 0);
        let counters = vec![Counter::PageFaults, Counter::CpuMigrations];
        let row = |claimant, counts: [u64; 2]| CountRow { claimant, counts: counts.to_vec() };
        let rows = vec![row(Claimant::Thread(1), [1_001, 0]), row(Claimant::Kernel, [7, 7])];
        report.counts = Some(Counts { counters, rows });
        live.window(&report, &stacks);
        let profile = live.take().unwrap();
        let paths = report.branches.iter().filter(|row| row.thread == 1).count();
        let of = |counter| profile.measured.amount(Measure::Counted(counter));
        assert_eq!([Counter::PageFaults, Counter::CpuMigrations].map(of), [1_001, 0]);
        assert!(profile.has(Measure::Counted(Counter::CpuMigrations)), "it was recorded");
        let faults = profile.measured.facts(Measure::Counted(Counter::PageFaults));
        assert!(
            paths > 0 && faults.len() == paths && faults.iter().any(|fact| fact.sampled.squares > 0.0),
            "{faults:?}"
        );
    }

    #[test]
    fn what_was_moved_is_in_the_profile_of_its_time() {
        let (mut live, mut stacks) = (LiveProfile::new(&fixture::run()), StackTable::default());
        let mut report = fixture::window(SMALL, &mut stacks, 0);
        let mut bytes = BytesByKind::default();
        (bytes[IoKind::Sent as usize], bytes[IoKind::Read as usize]) = (40, 2);
        let row = |claimant, branch| MovedRow { claimant, branch, bytes, samples: 3 };
        let rows = [(Claimant::Thread(1), Some(report.branches[0].branch)), (Claimant::Kernel, None)];
        report.moved = Some(Moved { counts_devices: false, rows: rows.map(|(of, at)| row(of, at)).into() });
        (0..2).for_each(|_| live.window(&report, &stacks));
        let measured = live.take().unwrap().measured;
        let found = [Way::Sent, Way::RemoteSent, Way::LocalSent, Way::Read]
            .map(|way| (measured.amount(Measure::Moved(way)), measured.samples(Measure::Moved(way))));
        assert_eq!(found, [(80, 6), (80, 6), (0, 0), (4, 0)], "a sample is of the kind with most bytes");
    }
}
