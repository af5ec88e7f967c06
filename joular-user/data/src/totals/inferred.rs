//! Shares out, in a run's sums, what threads spent in windows in which no sample hit them
//! ([`crate::attribution::inference`]): at once where samples within the horizon tell, the rest at the
//! process's or the run's end by all samples of threads of that name in the process, or of a JVM's own
//! threads at the run's end by those of that name in JVMs of the same version and collector. A process that has
//! ended leaves nothing but what its JVM's own threads say of other JVMs.
//!
//! Memory is bounded: methods, threads and names beyond a limit get nothing of others' energy and
//! give nothing, so their energy stays `[no sample]`.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
};

use indexmap::IndexMap;

use super::{MethodKey, Ranking, Tally, Totals, bounded_entry, pool::Pool};
use crate::{
    attribution::{
        inference::{Nearest, Seen, Share, Unsampled, divide},
        window_report::{BranchRow, ProcessRef, ThreadRow, WindowReport},
    },
    events::{ProcessInfo, Runtime, SampleKind},
    model::{
        frame::{Frame, FrameKind, Marker},
        target_text::TargetText,
        units::{MicroJoules, Pid, Tid, UnixMicros},
    },
    sampling::Sampled,
    stacks::{FrameId, StackTable},
};

type ThreadKey = (ProcessRef, Tid, u64);
type Name = (ProcessRef, TargetText);
/// Version and collector of a JVM.
type Kind = (TargetText, Option<TargetText>);

/// Energy that goes from `[no sample]` to a method.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InferredEnergy<'a> {
    /// The thread whose it is; of several with one name, thread 0 stands for them.
    pub(super) thread: &'a ThreadKey,
    pub(super) to: &'a MethodKey,
    /// If nothing is known of the method: the name of what stands for it.
    pub(super) marker: Option<&'a str>,
    pub(super) share: Share<u32>,
}

/// Methods, each with the name of what stands for it if nothing is known of it.
type Methods = IndexMap<MethodKey, Option<Box<str>>>;

impl<'a> InferredEnergy<'a> {
    fn of(thread: &'a ThreadKey, methods: &'a Methods, share: Share<u32>) -> Option<Self> {
        let (to, marker) = methods.get_index(share.path as usize)?;
        Some(Self { thread, to, marker: marker.as_deref(), share })
    }
}

#[derive(Debug)]
struct Thread {
    name: Name,
    nearest: Nearest<u32>,
}

#[derive(Debug)]
pub(super) struct Inferred {
    limit: usize,
    methods: Methods,
    /// Places in `methods` by frame, of one generation of the table of stacks.
    frames: HashMap<FrameId, Option<u32>>,
    generation: u64,
    threads: HashMap<ThreadKey, Thread>,
    pools: BTreeMap<Name, Pool>,
    kinds: HashMap<(Pid, u64), Kind>,
    /// Of own threads of JVMs that have ended.
    ended: BTreeMap<(Kind, TargetText), Ended>,
}

/// Samples of threads of one name in JVMs of one kind that have ended, and what is left of those without any.
#[derive(Debug)]
struct Ended {
    pool: Pool,
    /// One of them, for all.
    process: ProcessRef,
}

impl Inferred {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            methods: Methods::new(),
            frames: HashMap::new(),
            generation: 0,
            threads: HashMap::new(),
            pools: BTreeMap::new(),
            kinds: HashMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Takes what is known of a process.
    pub(super) fn process(&mut self, info: &ProcessInfo) {
        let key = (info.pid, info.start_boottime_ns);
        if let Runtime::Jvm { version: Some(version), collector, .. } = &info.runtime
            && (self.kinds.len() < self.limit || self.kinds.contains_key(&key))
        {
            self.kinds.insert(key, (version.clone(), collector.clone()));
        }
    }

    /// Takes a window. `ranked` has its methods.
    pub(super) fn window(&mut self, report: &WindowReport, stacks: &StackTable, ranked: &Ranking<MethodKey>) {
        if self.generation != stacks.generation() {
            self.generation = stacks.generation();
            self.frames.clear();
        }
        for rows in report.branches.chunk_by(|a, b| a.thread == b.thread) {
            let thread = rows.first().and_then(|row| report.threads.get(row.thread));
            let Some((thread, process)) =
                thread.and_then(|thread| Some((thread, report.processes.get(thread.process)?)))
            else {
                continue;
            };
            self.rows(report, (stacks, ranked), process, thread, rows);
        }
    }

    /// Says what is known now of windows before one, by its start and its length in nanoseconds.
    pub(super) fn settle(&mut self, now: (UnixMicros, u64), mut give: impl FnMut(InferredEnergy<'_>)) {
        let (methods, pools) = (&self.methods, &mut self.pools);
        self.threads.retain(|key, thread| {
            thread.settle(key, Some(now), methods, pools, &mut give);
            !thread.nearest.is_idle()
        });
    }

    /// The rows of a thread in a window.
    fn rows(
        &mut self,
        report: &WindowReport,
        (stacks, ranked): (&StackTable, &Ranking<MethodKey>),
        process: &ProcessRef,
        thread: &ThreadRow,
        rows: &[BranchRow],
    ) {
        let mut seen: Vec<Seen<u32>> = Vec::new();
        let mut unsampled = None;
        for row in rows.iter().filter(|row| row.kind == SampleKind::CpuTime) {
            let Some(leaf) = stacks.leaf_method(row.branch) else { continue };
            if row.samples > 0 {
                let method = self.method(leaf, stacks, ranked);
                seen.extend(method.map(|path| Seen { path, samples: row.samples, energy: row.by_samples() }));
            } else if is_unsampled(stacks.frame(leaf)) && (row.cpu_ns > 0 || row.by_samples().0 > 0) {
                unsampled = Some(row);
            }
        }
        let name: Name = (process.clone(), thread.name.clone());
        if !self.pools.contains_key(&name) && self.pools.len() >= self.limit {
            return;
        }
        let pool = self.pools.entry(name.clone()).or_default();
        pool.is_of_jvm = thread.category.is_of_jvm();
        let key = (process.clone(), thread.tid, thread.start_boottime_ns);
        if !self.threads.contains_key(&key) && self.threads.len() >= self.limit {
            return;
        }
        let known =
            self.threads.entry(key).or_insert_with(|| Thread { name: name.clone(), nearest: Nearest::default() });
        known.name = name;
        if let Some(row) = unsampled {
            let (start, length_ns) = (report.wall_start, report.length_ns);
            known.nearest.unsampled(Unsampled { start, length_ns, energy: row.by_samples(), cpu_ns: row.cpu_ns });
        } else if !seen.is_empty() {
            pool.add(&seen);
            if let [Seen { path, samples: 1, energy }] = seen[..] {
                known.nearest.single(report.wall_start, path, energy);
            }
        }
    }

    fn method(&mut self, id: FrameId, stacks: &StackTable, ranked: &Ranking<MethodKey>) -> Option<u32> {
        if let Some(place) = self.frames.get(&id) {
            return *place;
        }
        let frame = stacks.frame(id);
        let key = MethodKey::of(frame);
        let place = match self.methods.get_index_of(&key) {
            Some(place) => Some(place),
            None if self.methods.len() >= self.limit => None,
            None => {
                let marker = super::marker_name(frame).map(Into::into);
                Some(self.methods.insert_full(ranked.shared(key), marker).0)
            }
        };
        let place = place.and_then(|place| u32::try_from(place).ok());
        self.frames.insert(id, place);
        place
    }

    /// Shares out what is left of processes that have ended: all their samples are known.
    pub(super) fn processes_ended(
        &mut self,
        processes: &HashSet<(Pid, u64)>,
        mut give: impl FnMut(InferredEnergy<'_>),
    ) {
        let has_ended = |process: &ProcessRef| processes.contains(&(process.pid, process.start_boottime_ns));
        let (methods, pools) = (&self.methods, &mut self.pools);
        self.threads.retain(|key, thread| {
            let ends = has_ended(&key.0);
            if ends {
                thread.settle(key, None, methods, pools, &mut give);
            }
            !ends
        });
        let names: Vec<Name> = self.pools.keys().filter(|(process, _)| has_ended(process)).cloned().collect();
        for (process, name) in names {
            let Some(mut pool) = self.pools.remove(&(process.clone(), name.clone())) else { continue };
            if !pool.seen.is_empty() {
                self.give_left(&process, std::mem::take(&mut pool.left), &pool, &mut give);
            }
            if let Some(kind) = self.kind(&process, &pool).cloned() {
                self.keep(kind, name, process, &pool);
            }
        }
        self.kinds.retain(|process, _| !processes.contains(process));
    }

    /// Keeps what own threads of a JVM that has ended say of others.
    fn keep(&mut self, kind: Kind, name: TargetText, process: ProcessRef, pool: &Pool) {
        let key = (kind, name);
        if self.ended.len() < self.limit || self.ended.contains_key(&key) {
            let ended = self.ended.entry(key).or_insert_with(|| Ended { pool: Pool::default(), process });
            ended.pool.join(pool);
            ended.pool.left.0 = ended.pool.left.0.saturating_add(pool.left.0);
            ended.pool.left.1 = ended.pool.left.1.saturating_add(pool.left.1);
        }
    }

    /// Shares out what threads of one name in a process, which thread 0 stands for, have left.
    fn give_left(
        &self,
        process: &ProcessRef,
        (energy, cpu_ns): (MicroJoules, u64),
        witness: &Pool,
        give: &mut impl FnMut(InferredEnergy<'_>),
    ) {
        let thread = (process.clone(), Tid(0), 0);
        for share in divide(energy, cpu_ns, &witness.witnesses()) {
            InferredEnergy::of(&thread, &self.methods, share).into_iter().for_each(&mut *give);
        }
    }

    /// Tells what the whole run says of all that is left.
    pub(super) fn finish(&mut self, mut give: impl FnMut(InferredEnergy<'_>)) {
        let (methods, pools) = (&self.methods, &mut self.pools);
        for (key, thread) in &mut self.threads {
            thread.settle(key, None, methods, pools, &mut give);
        }
        self.threads.clear();
        let pools = std::mem::take(&mut self.pools);
        let kin = self.kin(&pools);
        for ((process, name), pool) in &pools {
            let other = || kin.get(&(self.kind(process, pool)?, name));
            let witness = if pool.seen.is_empty() { other() } else { Some(pool) };
            witness.into_iter().for_each(|witness| self.give_left(process, pool.left, witness, &mut give));
        }
        for ((kind, name), Ended { pool, process }) in &self.ended {
            let witness = kin.get(&(kind, name));
            witness.into_iter().for_each(|witness| self.give_left(process, pool.left, witness, &mut give));
        }
    }

    /// The kind of JVM whose own threads these are.
    fn kind(&self, process: &ProcessRef, pool: &Pool) -> Option<&Kind> {
        self.kinds.get(&(process.pid, process.start_boottime_ns)).filter(|_| pool.is_of_jvm)
    }

    /// Samples of JVMs' own threads, by the kind of JVM and the threads' name.
    fn kin<'a>(&'a self, pools: &'a BTreeMap<Name, Pool>) -> HashMap<(&'a Kind, &'a TargetText), Pool> {
        let mut kin: HashMap<_, Pool> = HashMap::new();
        for ((process, name), pool) in pools {
            if let Some(kind) = self.kind(process, pool) {
                kin.entry((kind, name)).or_default().join(pool);
            }
        }
        for ((kind, name), ended) in &self.ended {
            kin.entry((kind, name)).or_default().join(&ended.pool);
        }
        kin
    }
}

impl Thread {
    fn settle(
        &mut self,
        key: &ThreadKey,
        now: Option<(UnixMicros, u64)>,
        methods: &Methods,
        pools: &mut BTreeMap<Name, Pool>,
        give: &mut impl FnMut(InferredEnergy<'_>),
    ) {
        let name = &self.name;
        self.nearest.settle(now, |what, shares| {
            if let Some(pool) = pools.get_mut(name).filter(|_| shares.is_empty()) {
                pool.left.0 = pool.left.0.saturating_add(what.energy);
                pool.left.1 = pool.left.1.saturating_add(what.cpu_ns);
            }
            for share in shares {
                InferredEnergy::of(key, methods, *share).into_iter().for_each(&mut *give);
            }
        });
    }
}

fn is_unsampled(frame: &Frame) -> bool {
    frame.kind == FrameKind::Marker && frame.name == Marker::NoSample.name()
}

impl Totals {
    /// Leaves what no sample hit at `[no sample]`.
    #[must_use]
    pub fn without_inference(self) -> Self {
        Self { inference: None, ..self }
    }

    /// Ends the sums: all samples of the run are known now.
    pub fn finish(&mut self) {
        let Some(mut inference) = self.inference.take() else { return };
        inference.finish(|moved| self.take_inferred(&moved));
    }

    pub(super) fn take_inferred(&mut self, moved: &InferredEnergy<'_>) {
        let (to, share) = (moved.to, moved.share);
        let unsampled = MethodKey::of(&Frame::marker(Marker::NoSample));
        self.methods.take_away(&unsampled, share.energy, share.cpu_ns);
        self.methods.infer(to.clone(), &Tally::inferred(&share));
        let (process, tid, start) = moved.thread;
        let thread = (process.pid, process.start_boottime_ns, *tid, *start);
        self.sampling.inferred(thread, to, Sampled { energy: share.energy, samples: 0, squares: share.squares });
        let known = self.markers.entry(Marker::NoSample.name().to_owned()).or_default();
        *known = MicroJoules(known.0.saturating_sub(share.energy.0));
        if let Some(marker) = moved.marker {
            let energy = bounded_entry(&mut self.markers, marker);
            *energy = energy.saturating_add(share.energy);
        }
        self.inferred = self.inferred.saturating_add(share.energy);
    }
}

impl<K: Eq + Hash> Ranking<K> {
    /// Adds what is inferred from samples of other windows. Nothing of it is of the latest window.
    fn infer(&mut self, key: K, tally: &Tally) {
        self.entries.entry(key).or_default().fold(tally);
    }

    /// Takes away what was told of elsewhere.
    fn take_away<Q: Eq + Hash>(&mut self, key: &Q, energy: MicroJoules, cpu_ns: u64)
    where
        K: Borrow<Q>,
    {
        // A ranking that is full may have forgotten the name.
        let tally = self.entries.get_mut(key).unwrap_or(&mut self.evicted);
        tally.energy = MicroJoules(tally.energy.0.saturating_sub(energy.0));
        tally.cpu_ns = tally.cpu_ns.saturating_sub(cpu_ns);
    }
}

impl Tally {
    /// What is inferred from samples of other windows.
    fn inferred<P>(share: &Share<P>) -> Self {
        let (energy, cpu_ns) = (share.energy, share.cpu_ns);
        Self { energy, cpu_ns, inferred: energy, ..Self::default() }
    }
}
