//! Divides, in a run's sums, what threads spent in light windows by samples of several windows
//! ([`crate::attribution::inference`]): each stratum when it is complete. What no sample hit in windows that are left goes, at the
//! process's or the run's end, by light windows' samples of threads of that name in the process, or of a JVM's own
//! threads at the run's end by those of that name in JVMs of the same version and collector. A process that has
//! ended leaves nothing but what its JVM's own threads say of other JVMs.
//!
//! Memory is bounded: methods, threads and names beyond a limit get nothing of others' energy and
//! give nothing, so their energy stays as it was recorded.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
};

use indexmap::IndexMap;

use super::{MethodKey, Ranking, Tally, Totals, bounded_entry, pool::Pool};
use crate::{
    attribution::{
        inference::{Pace, Recorded, Seen, Share, Spent, Strata, Stratum, divide},
        window_report::{BranchRow, ProcessRef, ThreadRow, WindowReport},
    },
    events::{ProcessInfo, RunInfo, Runtime, SampleKind},
    model::{
        frame::{Frame, Marker},
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

/// What a thread spent in several windows, divided anew.
pub(super) struct Divided<'a> {
    /// The thread whose it is; of several with one name, thread 0 stands for them.
    thread: &'a ThreadKey,
    /// What is taken from `[no sample]`.
    unsampled: Spent,
    parts: Vec<Part<'a>>,
}

/// What a method gets of it, and what it had before.
struct Part<'a> {
    method: &'a MethodKey,
    /// If nothing is known of the method: the name of what stands for it.
    marker: Option<&'a str>,
    gets: Share<u32>,
    had: Spent,
    had_squares: f64,
}

/// Methods, each with the name of what stands for it if nothing is known of it.
type Methods = IndexMap<MethodKey, Option<Box<str>>>;

impl<'a> Divided<'a> {
    fn stratum(thread: &'a ThreadKey, methods: &'a Methods, stratum: &Stratum<u32>, shares: &[Share<u32>]) -> Self {
        let parts = shares.iter().zip(stratum.recorded()).filter_map(|(share, recorded)| {
            Some(Part { had: recorded.spent, had_squares: recorded.squares, ..Part::of(methods, *share)? })
        });
        Self { thread, unsampled: stratum.unsampled, parts: parts.collect() }
    }

    fn left(thread: &'a ThreadKey, methods: &'a Methods, unsampled: Spent, witnesses: &[Seen<u32>]) -> Self {
        let shares = divide(unsampled.energy, unsampled.cpu_ns, witnesses);
        let parts: Vec<Part<'a>> = shares.into_iter().filter_map(|share| Part::of(methods, share)).collect();
        Self { thread, unsampled: if parts.is_empty() { Spent::default() } else { unsampled }, parts }
    }
}

impl<'a> Part<'a> {
    fn of(methods: &'a Methods, gets: Share<u32>) -> Option<Self> {
        let (method, marker) = methods.get_index(gets.path as usize)?;
        Some(Self { method, marker: marker.as_deref(), gets, had: Spent::default(), had_squares: 0.0 })
    }
}

#[derive(Debug)]
struct Thread {
    name: Name,
    strata: Strata<u32>,
}

#[derive(Debug)]
pub(super) struct Inferred {
    limit: usize,
    pace: Pace,
    methods: Methods,
    /// Places in `methods` by frame, of one generation of frames.
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
            pace: Pace::default(),
            methods: Methods::new(),
            frames: HashMap::new(),
            generation: 0,
            threads: HashMap::new(),
            pools: BTreeMap::new(),
            kinds: HashMap::new(),
            ended: BTreeMap::new(),
        }
    }

    pub(super) const fn run(&mut self, run: &RunInfo) {
        self.pace = Pace::of(run);
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
        if self.generation != stacks.frames_generation() {
            self.generation = stacks.frames_generation();
            self.frames.clear();
        }
        for rows in report.branches.chunk_by(|a, b| a.thread == b.thread) {
            let thread = rows.first().and_then(|row| report.threads.get(row.thread));
            let Some((thread, process)) =
                thread.and_then(|thread| Some((thread, report.processes.get(thread.process)?)))
            else {
                continue;
            };
            self.rows(report, (stacks, ranked), (process, thread), rows);
        }
    }

    /// Says which strata are complete in a window, by its start.
    pub(super) fn settle(&mut self, start: UnixMicros, mut give: impl FnMut(Divided<'_>)) {
        let now = (start, self.pace.interval_ns);
        let (methods, pools) = (&self.methods, &mut self.pools);
        self.threads.retain(|key, thread| {
            thread.settle(key, Some(now), methods, pools, &mut give);
            !thread.strata.is_empty()
        });
    }

    /// The rows of a thread in a window.
    fn rows(
        &mut self,
        report: &WindowReport,
        (stacks, ranked): (&StackTable, &Ranking<MethodKey>),
        (process, thread): (&ProcessRef, &ThreadRow),
        rows: &[BranchRow],
    ) {
        let (mut recorded, mut unsampled): (Vec<Recorded<u32>>, _) = (Vec::new(), Spent::default());
        for row in rows.iter().filter(|row| row.kind == SampleKind::CpuTime) {
            let Some(leaf) = stacks.leaf_method(row.branch) else { continue };
            let spent = Spent { energy: row.by_samples(), cpu_ns: row.cpu_ns };
            if row.samples > 0 {
                let squares = Sampled::of(spent.energy, row.samples).squares;
                let method = self.method(leaf, stacks, ranked);
                recorded.extend(method.map(|path| Recorded { path, samples: row.samples, spent, squares }));
            } else if stacks.frame(leaf).is_marker(Marker::NoSample) {
                unsampled = unsampled.plus(spent);
            }
        }
        let name: Name = (process.clone(), thread.name.clone());
        if !self.pools.contains_key(&name) && self.pools.len() >= self.limit {
            return;
        }
        let pool = self.pools.entry(name.clone()).or_default();
        pool.is_of_jvm = thread.category.is_of_jvm();
        let window = |cpu_ns| self.pace.window(report.wall_start, cpu_ns);
        let sampled_ns = recorded.iter().fold(0_u64, |sum, row| sum.saturating_add(row.spent.cpu_ns));
        let is_light = window(sampled_ns).is_light();
        pool.add(&recorded, is_light);
        if !is_light {
            recorded.clear();
        }
        let key = (process.clone(), thread.tid, thread.start_boottime_ns);
        if (recorded.is_empty() && unsampled == Spent::default())
            || (!self.threads.contains_key(&key) && self.threads.len() >= self.limit)
        {
            return;
        }
        let all_ns = recorded.iter().fold(unsampled.cpu_ns, |sum, row| sum.saturating_add(row.spent.cpu_ns));
        let (window, new) = (window(all_ns), || Thread { name: name.clone(), strata: Strata::default() });
        let known = self.threads.entry(key).or_insert_with(new);
        known.name = name;
        known.strata.take(&window, &recorded, unsampled);
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
    pub(super) fn processes_ended(&mut self, processes: &HashSet<(Pid, u64)>, mut give: impl FnMut(Divided<'_>)) {
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
            ended.pool.left = ended.pool.left.plus(pool.left);
        }
    }

    /// Divides what threads of one name in a process, which thread 0 stands for, have left.
    fn give_left(&self, process: &ProcessRef, left: Spent, witness: &Pool, give: &mut impl FnMut(Divided<'_>)) {
        let thread = (process.clone(), Tid(0), 0);
        give(Divided::left(&thread, &self.methods, left, &witness.witnesses()));
    }

    /// Tells what the whole run says of all that is left.
    pub(super) fn finish(&mut self, mut give: impl FnMut(Divided<'_>)) {
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
        give: &mut impl FnMut(Divided<'_>),
    ) {
        let Self { name, strata } = self;
        strata.settle(now, |stratum, shares| {
            if !shares.is_empty() {
                give(Divided::stratum(key, methods, stratum, shares));
            } else if let Some(pool) = pools.get_mut(name) {
                pool.left = pool.left.plus(stratum.unsampled);
            }
        });
    }
}

impl Totals {
    /// Takes what is known of the run.
    pub fn run(&mut self, run: &RunInfo) {
        self.inference.iter_mut().for_each(|inference| inference.run(run));
    }

    /// Leaves everything as it was recorded.
    #[must_use]
    pub fn without_inference(self) -> Self {
        Self { inference: None, ..self }
    }

    /// Ends the sums: all samples of the run are known now.
    pub fn finish(&mut self) {
        self.phases.finish();
        let Some(mut inference) = self.inference.take() else { return };
        inference.finish(|divided| self.take_divided(&divided));
    }

    pub(super) fn take_divided(&mut self, divided: &Divided<'_>) {
        let (process, tid, start) = divided.thread;
        let thread = (process.pid, process.start_boottime_ns, *tid, *start);
        for Part { method, marker, gets, had, had_squares } in &divided.parts {
            self.methods.infer((*method).clone(), &Tally::inferred(gets));
            self.methods.take_away(*method, *had);
            self.sampling.divided(thread, method, (gets.energy, had.energy), gets.squares - had_squares);
            if let Some(marker) = marker {
                let energy = bounded_entry(&mut self.markers, marker);
                *energy = MicroJoules(energy.saturating_add(gets.energy).0.saturating_sub(had.energy.0));
            }
            self.inferred = self.inferred.saturating_add(gets.inferred);
        }
        self.methods.take_away(&MethodKey::of(&Frame::marker(Marker::NoSample)), divided.unsampled);
        let known = self.markers.entry(Marker::NoSample.name().to_owned()).or_default();
        *known = MicroJoules(known.0.saturating_sub(divided.unsampled.energy.0));
    }
}

impl<K: Eq + Hash> Ranking<K> {
    /// Adds what is divided anew. Nothing of it is of the latest window.
    fn infer(&mut self, key: K, tally: &Tally) {
        self.entries.entry(key).or_default().fold(tally);
    }

    /// Takes away what goes elsewhere.
    fn take_away<Q: Eq + Hash>(&mut self, key: &Q, spent: Spent)
    where
        K: Borrow<Q>,
    {
        // A ranking that is full may have forgotten the name.
        let tally = self.entries.get_mut(key).unwrap_or(&mut self.evicted);
        tally.energy = MicroJoules(tally.energy.0.saturating_sub(spent.energy.0));
        tally.cpu_ns = tally.cpu_ns.saturating_sub(spent.cpu_ns);
    }
}

impl Tally {
    /// What is divided anew.
    fn inferred<P>(share: &Share<P>) -> Self {
        let Share { energy, cpu_ns, inferred, .. } = *share;
        Self { energy, cpu_ns, inferred, ..Self::default() }
    }
}
