//! Keeps what each path of each thread has allocated since the last collections.
//!
//! Allocations are known by window. A collection ends within one, so what a window had allocated is taken to be spread
//! evenly over it: of a window whose last collection ended when a quarter of it was left, a quarter counts for the next
//! collection.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joular_ebpf::abi::{Place, ThreadKey};

use super::{Category, ChargeRow, CollectionKind, CollectionRow, Paths, ProcessKey, Tid, threads};
use crate::{
    attribution::{
        allocated::AllocationRow,
        window_report::{ProcessRef, ThreadRow},
    },
    events::Fate,
    model::{target_text::TargetText, units::MicroJoules},
    stacks::BranchIndex,
};

/// Paths that are kept of a process. When there are more, the half with fewest bytes is given up: it counts no longer.
const MAX_PATHS: usize = 1 << 14;

/// By process.
#[derive(Debug, Default)]
pub(in crate::attribution) struct Ledgers(BTreeMap<ProcessKey, Ledger>);

/// What a process has allocated since its last collections.
#[derive(Debug, Default)]
struct Ledger {
    threads: BTreeMap<ThreadId, Thread>,
    /// By thread and `stack_id`, which does not change when the table of paths is built anew.
    paths: BTreeMap<(ThreadId, i64), Since>,
}

/// Start, thread.
type ThreadId = (u64, Tid);

#[derive(Debug)]
struct Thread {
    name: TargetText,
    category: Category,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    branch: BranchIndex,
    young_bytes: u64,
    old_bytes: u64,
    window_bytes: u64,
    /// In this window, and since the last collection of everything.
    young_survived_bytes: u64,
    old_survived_bytes: u64,
}

impl Since {
    const fn nothing(branch: BranchIndex) -> Self {
        Self { branch, young_bytes: 0, old_bytes: 0, window_bytes: 0, young_survived_bytes: 0, old_survived_bytes: 0 }
    }

    const fn counts(&self) -> bool {
        self.young_bytes > 0 || self.old_bytes > 0 || self.old_survived_bytes > 0
    }
}

impl Ledgers {
    pub(in crate::attribution) fn forget(&mut self, process: ProcessKey) {
        self.0.remove(&process);
    }

    /// Takes a window, and gives the rows that its collectors' energy is divided among, those of a process together.
    pub(in crate::attribution) fn window(
        &mut self,
        (processes, threads): (&[ProcessRef], &[ThreadRow]),
        allocations: &[AllocationRow],
        (collections, fates): (&[CollectionRow], &[Fate]),
        window_ns: u64,
        paths: &mut Paths,
    ) -> Vec<ChargeRow> {
        self.renew(paths);
        for row in allocations {
            let Some(thread) = threads.get(row.thread) else { continue };
            let Some(process) = processes.get(thread.process) else { continue };
            let ledger = self.0.entry((process.pid, process.start_boottime_ns)).or_default();
            ledger.add(thread, row, paths.table().stack_id(row.branch));
        }
        self.judge(processes, fates, paths);
        let mut rows = Vec::new();
        for (position, process) in processes.iter().enumerate() {
            let Some(ledger) = self.0.get_mut(&(process.pid, process.start_boottime_ns)) else { continue };
            let own: Vec<&CollectionRow> = collections.iter().filter(|row| row.process == position).collect();
            rows.extend(ledger.rows(position, &own, threads::ran(threads, position, CollectionKind::Old)));
            ledger.end_window(&own, window_ns);
        }
        self.0.retain(|_, ledger| !ledger.paths.is_empty());
        paths.keep(self.0.values().flat_map(|ledger| ledger.paths.values().map(|since| since.branch)));
        rows
    }

    /// Takes what collections showed of sampled objects. Threads that have ended are known by what they allocated.
    fn judge(&mut self, processes: &[ProcessRef], fates: &[Fate], paths: &mut Paths) {
        for of_process in fates.chunk_by(|a, b| a.pid == b.pid) {
            let Some(pid) = of_process.first().map(|fate| fate.pid) else { continue };
            let Some(process) = processes.iter().rev().find(|process| process.pid == pid) else { continue };
            let key = (process.pid, process.start_boottime_ns);
            let Some(ledger) = self.0.get_mut(&key) else { continue };
            let ids: HashMap<u64, ThreadId> = ledger.threads.keys().map(|id| (identity(*id), *id)).collect();
            for fate in of_process {
                let Some(id) = ids.get(&ThreadKey(fate.thread_key).identity()) else { continue };
                let (branch, _) = paths.allocation(key, fate.stack);
                let since = ledger.paths.entry((*id, paths.table().stack_id(branch)));
                let since = since.or_insert_with(|| Since::nothing(branch));
                for bytes in [&mut since.young_survived_bytes, &mut since.old_survived_bytes] {
                    *bytes = bytes.saturating_add(fate.survived_bytes);
                }
            }
        }
    }

    /// Takes over the new indices of paths, if the table was built anew.
    fn renew(&mut self, paths: &mut Paths) {
        let Some(moved) = paths.take_moved() else { return };
        for since in self.0.values_mut().flat_map(|ledger| ledger.paths.values_mut()) {
            if let Some(branch) = moved.get(&since.branch) {
                since.branch = *branch;
            }
        }
    }
}

impl Ledger {
    fn add(&mut self, thread: &ThreadRow, row: &AllocationRow, stack_id: i64) {
        let id = (thread.start_boottime_ns, thread.tid);
        self.threads.insert(id, Thread { name: thread.name.clone(), category: thread.category });
        let since = self.paths.entry((id, stack_id)).or_insert_with(|| Since::nothing(row.branch));
        for bytes in [&mut since.young_bytes, &mut since.old_bytes, &mut since.window_bytes] {
            *bytes = bytes.saturating_add(row.bytes);
        }
    }

    /// The paths for which there is something in the window that could be charged.
    /// `is_marked`: threads that mark the whole heap, or collect its old generation, ran in the window.
    fn rows<'a>(
        &'a self,
        process: usize,
        collections: &[&CollectionRow],
        is_marked: bool,
    ) -> impl Iterator<Item = ChargeRow> + use<'a> {
        let has = |kind| collections.iter().any(|row| row.kind() == kind);
        let (young, old) = (has(CollectionKind::Young), is_marked || has(CollectionKind::Old));
        self.paths.iter().filter_map(move |((id, _), since)| {
            let thread = self.threads.get(id)?;
            let if_so = |counts: bool, bytes: u64| if counts { bytes } else { 0 };
            let row = ChargeRow {
                process,
                tid: id.1,
                start_boottime_ns: id.0,
                name: thread.name.clone(),
                category: thread.category,
                branch: since.branch,
                since_young_bytes: if_so(young, since.young_bytes),
                since_old_bytes: if_so(old, since.old_bytes),
                window_bytes: if_so(!young && !old, since.window_bytes),
                young_survived_bytes: if_so(young, since.young_survived_bytes),
                old_survived_bytes: if_so(old, since.old_survived_bytes),
                charged: MicroJoules(0),
                charged_by_survival: MicroJoules(0),
            };
            let bytes = [row.since_young_bytes, row.since_old_bytes, row.window_bytes, row.old_survived_bytes];
            (bytes.iter().any(|bytes| *bytes > 0) || row.young_survived_bytes > 0).then_some(row)
        })
    }

    /// Forgets what the window's collections have collected.
    fn end_window(&mut self, collections: &[&CollectionRow], window_ns: u64) {
        let last_end = |counts: fn(CollectionKind) -> bool| {
            collections.iter().filter(|row| counts(row.kind())).filter_map(|row| row.end_ns()).max()
        };
        let (any, old) = (last_end(|_| true), last_end(|kind| kind == CollectionKind::Old));
        for since in self.paths.values_mut() {
            let window_bytes = std::mem::take(&mut since.window_bytes);
            since.young_survived_bytes = 0;
            if let Some(end_ns) = any {
                since.young_bytes = after(window_bytes, end_ns, window_ns);
            }
            if let Some(end_ns) = old {
                since.old_bytes = after(window_bytes, end_ns, window_ns);
                since.old_survived_bytes = 0;
            }
        }
        self.paths.retain(|_, since| since.counts());
        self.make_room();
        let of_threads: BTreeSet<ThreadId> = self.paths.keys().map(|(id, _)| *id).collect();
        self.threads.retain(|id, _| of_threads.contains(id));
    }

    fn make_room(&mut self) {
        if self.paths.len() <= MAX_PATHS {
            return;
        }
        let mut bytes: Vec<_> = self.paths.iter().map(|(key, since)| (since.old_bytes, *key)).collect();
        bytes.sort_unstable();
        for (_, key) in bytes.into_iter().rev().skip(MAX_PATHS / 2) {
            self.paths.remove(&key);
        }
    }
}

/// What a thread's key keeps of it.
fn identity((start_boottime_ns, tid): ThreadId) -> u64 {
    ThreadKey::new(tid.0, start_boottime_ns, Place::default()).identity()
}

/// How many of a window's bytes came after a moment in it.
fn after(window_bytes: u64, end_ns: u64, window_ns: u64) -> u64 {
    let left_ns = window_ns.saturating_sub(end_ns);
    let bytes = (u128::from(window_bytes) * u128::from(left_ns)).checked_div(window_ns.into());
    // No more than the window's.
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::window_report::ProcessRef,
        model::{
            frame::{Frame, FrameKind},
            quality::PathQuality,
            units::Pid,
        },
        stacks::StackTable,
    };

    const WINDOW_NS: u64 = 1_000;

    fn process() -> ProcessRef {
        ProcessRef { pid: Pid(7), start_boottime_ns: 1, comm: "java".into() }
    }

    fn thread() -> ThreadRow {
        ThreadRow {
            process: 0,
            tid: Tid(70),
            start_boottime_ns: 2,
            name: "main".into(),
            category: Category::Java,
            cpu_ns: 1,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        }
    }

    fn allocated(thread: usize, branch: BranchIndex, bytes: u64) -> AllocationRow {
        AllocationRow::new(thread, branch, bytes, 1)
    }

    fn collection(collector: &str, since_start_ns: i64, duration_ns: Option<u64>) -> CollectionRow {
        CollectionRow {
            process: 0,
            collector: collector.into(),
            cause: None,
            since_start_ns,
            duration_ns,
            before_bytes: 0,
            after_bytes: None,
            ages: Vec::new(),
            energy: MicroJoules(0),
        }
    }

    struct Fixture {
        ledgers: Ledgers,
        paths: Paths,
        branches: [BranchIndex; 2],
    }

    impl Fixture {
        fn new() -> Self {
            let mut paths = Paths::default();
            let table: &mut StackTable = paths.table_mut();
            let branches = ["a", "b"].map(|name| {
                let frame = table.frame_id(Frame::new(FrameKind::CompiledC2, name));
                table.branch_index(&[frame], PathQuality::default())
            });
            Self { ledgers: Ledgers::default(), paths, branches }
        }

        fn take(
            &mut self,
            threads: &[ThreadRow],
            allocations: &[AllocationRow],
            collections: &[CollectionRow],
        ) -> Vec<ChargeRow> {
            let of_processes = (&[process()][..], threads);
            self.ledgers.window(of_processes, allocations, (collections, &[]), WINDOW_NS, &mut self.paths)
        }

        /// Bytes of both paths in a window, by what they count for: young, old, window.
        fn window(&mut self, bytes: [u64; 2], collections: &[CollectionRow]) -> Vec<[u64; 3]> {
            let rows = [allocated(0, self.branches[0], bytes[0]), allocated(0, self.branches[1], bytes[1])];
            let rows = &rows[..if bytes == [0, 0] { 0 } else { 2 }];
            let rows = self.take(&[thread()], rows, collections);
            assert!(rows.iter().all(|row| row.tid == Tid(70) && row.name == "main"));
            let mut rows = rows;
            rows.sort_by_key(|row| row.branch);
            rows.iter().map(|row| [row.since_young_bytes, row.since_old_bytes, row.window_bytes]).collect()
        }
    }

    #[test]
    fn a_young_collection_ends_what_counts_for_the_next_one() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.window([10, 30], &[]), [[0, 0, 10], [0, 0, 30]]);
        let young = collection("Copy", 100, Some(150));
        assert_eq!(fixture.window([100, 0], std::slice::from_ref(&young)), [[110, 0, 0], [30, 0, 0]]);
        // Three quarters of the window came after it.
        assert_eq!(fixture.window([0, 0], &[young]), [[75, 0, 0]]);
    }

    #[test]
    fn what_young_collections_have_collected_still_counts_for_one_of_the_whole_heap() {
        let mut fixture = Fixture::new();
        let [young, old] = ["PS Scavenge", "PS MarkSweep"].map(|name| collection(name, 0, Some(WINDOW_NS)));
        assert_eq!(fixture.window([10, 30], std::slice::from_ref(&young)), [[10, 0, 0], [30, 0, 0]]);
        assert_eq!(fixture.window([1, 2], &[old.clone(), young]), [[1, 11, 0], [2, 32, 0]]);
        assert_eq!(fixture.window([0, 0], &[old]), [[0; 3]; 0]);
    }

    #[test]
    fn a_collection_under_way_counts_what_is_allocated_until_its_end() {
        let mut fixture = Fixture::new();
        let under_way = collection("ZGC Cycles", -200, None);
        assert_eq!(fixture.window([10, 30], std::slice::from_ref(&under_way)), [[0, 10, 0], [0, 30, 0]]);
        let ended = collection("ZGC Cycles", -1_200, Some(1_700));
        assert_eq!(fixture.window([20, 0], &[ended]), [[0, 30, 0], [0, 30, 0]]);
        assert_eq!(fixture.window([0, 0], &[under_way]), [[0, 10, 0]]);
    }

    #[test]
    fn where_threads_mark_what_was_allocated_since_the_last_collection_of_the_whole_heap_counts() {
        let mut fixture = Fixture::new();
        let marker = ThreadRow { tid: Tid(71), name: "G1 Conc#0".into(), category: Category::Gc, ..thread() };
        fixture.window([10, 30], &[]);
        let take = |fixture: &mut Fixture, collections: &[CollectionRow]| -> Vec<[u64; 3]> {
            let rows = [allocated(0, fixture.branches[0], 5)];
            let rows = fixture.take(&[thread(), marker.clone()], &rows, collections);
            rows.iter().map(|row| [row.since_young_bytes, row.since_old_bytes, row.window_bytes]).collect()
        };
        let mut rows = take(&mut fixture, &[]);
        rows.sort_unstable();
        assert_eq!(rows, [[0, 15, 0], [0, 30, 0]]);
        let mut rows = take(&mut fixture, &[collection("G1 Young Generation", 0, Some(WINDOW_NS))]);
        rows.sort_unstable();
        assert_eq!(rows, [[20, 20, 0], [30, 30, 0]]);
    }

    #[test]
    fn a_thread_that_has_ended_is_still_charged_and_a_process_that_has_ended_is_forgotten() {
        let mut fixture = Fixture::new();
        fixture.window([10, 30], &[]);
        let young = collection("Copy", 0, None);
        let rows = fixture.take(&[], &[], std::slice::from_ref(&young));
        assert_eq!(rows.len(), 2);
        fixture.ledgers.forget((Pid(7), 1));
        assert_eq!(fixture.window([0, 0], &[young]), [[0; 3]; 0]);
    }

    #[test]
    fn paths_have_a_bound_and_those_with_most_bytes_stay() {
        let mut fixture = Fixture::new();
        let frame = fixture.paths.table_mut().frame_id(Frame::new(FrameKind::CompiledC2, "deep"));
        let mut path = Vec::new();
        let allocations: Vec<_> = (0..=MAX_PATHS as u64)
            .map(|number| {
                // As many distinct paths of few frames.
                path.clear();
                path.extend((0..15).filter(|bit| number >> bit & 1 == 1).map(|bit| {
                    fixture.paths.table_mut().frame_id(Frame::new(FrameKind::CompiledC2, format!("{bit}")))
                }));
                path.push(frame);
                let branch = fixture.paths.table_mut().branch_index(&path, PathQuality::default());
                allocated(0, branch, number + 1)
            })
            .collect();
        let rows = fixture.take(&[thread()], &allocations, &[]);
        assert_eq!(rows.len(), MAX_PATHS + 1);
        let young = [collection("Copy", 0, None)];
        let rows = fixture.take(&[thread()], &[], &young);
        let least = rows.iter().map(|row| row.since_young_bytes).min();
        assert_eq!((rows.len(), least), (MAX_PATHS / 2, Some(MAX_PATHS as u64 / 2 + 2)));
    }
}
