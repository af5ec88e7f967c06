//! Divides what light windows are left with, when all samples of a selection are known
//! ([`crate::attribution::inference`] has the order in which they are asked).
//!
//! Sums over time take a thread's parts as they are. A scan in the order of time gives each window
//! its part of them ([`super::parts`]), so that views with and without time sum to the same microjoule.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    iter,
};

use foldhash::fast::RandomState;

use super::{
    Catalog, PathIndex, ProcessIndex, ThreadIndex, ThreadPath,
    inference::{LightWindow, Sink},
    row::EnergyRow,
    sums::EnergySums,
};
use crate::{
    attribution::inference::{Seen, Share, Stratum},
    model::{target_text::TargetText, units::MicroJoules},
    sampling::Sampled,
};

/// What is left of each thread, by the paths that it goes to.
pub(super) type Quotas = BTreeMap<ThreadIndex, Vec<Share<PathIndex>>>;

/// Samples of light windows by thread and path, and the energy that they stand for.
type LightSamples = HashMap<(ThreadIndex, PathIndex), (u64, MicroJoules), RandomState>;

/// Sums rows, and by thread what is left.
#[derive(Debug, Default)]
pub(super) struct Summing {
    pub(super) sums: EnergySums,
    light: LightSamples,
    left: BTreeMap<ThreadIndex, Stratum<PathIndex>>,
}

impl Sink for Summing {
    fn row(&mut self, row: &EnergyRow) {
        self.sums.add(row);
    }

    /// Its samples count now, and its energy when it is divided.
    fn light(&mut self, window: &LightWindow<'_>) {
        for row in window.rows {
            self.sums.add_entry(ThreadPath { samples: row.samples, ..ThreadPath::empty(row.thread, row.path) });
            let (samples, _) = self.light.entry((row.thread, row.path)).or_default();
            *samples = samples.saturating_add(row.samples);
        }
    }

    fn divide(&mut self, thread: ThreadIndex, stratum: &Stratum<PathIndex>, shares: &[Share<PathIndex>]) {
        if shares.is_empty() {
            self.left.entry(thread).or_default().join(stratum);
        }
        for share in shares {
            self.sums.add_entry(ThreadPath::of_share(thread, share));
            if let Some((_, energy)) = self.light.get_mut(&(thread, share.path)) {
                *energy = energy.saturating_add(share.energy);
            }
        }
    }
}

impl Summing {
    /// Divides what is left, and adds it to the sums. `stack_ids` of paths break ties, because they
    /// are the same however a data set's files are cut. `no_sample` gets what nothing explains.
    pub(super) fn finish(
        mut self,
        catalog: &Catalog,
        stack_ids: &[i64],
        no_sample: Option<PathIndex>,
    ) -> (EnergySums, Quotas) {
        let witnesses = Witnesses::of(catalog, &self);
        let divided = |(thread, left): (&ThreadIndex, &Stratum<PathIndex>)| {
            let mut shares = if left.is_enough() { left.divided() } else { Vec::new() };
            if shares.is_empty() {
                let mut seen = witnesses.seen(*thread);
                seen.sort_by_key(|seen| stack_ids.get(seen.path.index()));
                shares = left.divided_by(&seen);
            }
            if shares.is_empty() {
                shares.extend(no_sample.map(|path| Share::nameless(path, left.spent())));
            }
            (*thread, shares)
        };
        let quotas: Quotas = self.left.iter().map(divided).collect();
        for (thread, share) in
            quotas.iter().flat_map(|(thread, shares)| shares.iter().map(move |share| (thread, share)))
        {
            self.sums.add_entry(ThreadPath::of_share(*thread, share));
        }
        (self.sums, quotas)
    }
}

impl ThreadPath {
    const fn empty(thread: ThreadIndex, path: PathIndex) -> Self {
        let (energy, inferred, by_bytes) = (MicroJoules(0), MicroJoules(0), MicroJoules(0));
        let charged = Sampled { energy, samples: 0, squares: 0.0 };
        Self { thread, path, energy, cpu_ns: 0, samples: 0, inferred, squares: 0.0, by_bytes, charged }
    }

    const fn of_share(thread: ThreadIndex, share: &Share<PathIndex>) -> Self {
        let Share { path, energy, inferred, cpu_ns, squares } = *share;
        Self { energy, inferred, cpu_ns, squares, ..Self::empty(thread, path) }
    }
}

type ByThread = HashMap<ThreadIndex, Vec<Seen<PathIndex>>, RandomState>;

/// Threads that may speak for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group<'a> {
    /// Threads of a name in a process.
    Namesakes(ProcessIndex, &'a TargetText),
    /// Threads of a name that JVMs of a version and collector have for themselves: they run the same
    /// code. What an application's threads run, only the application knows.
    Kin { jvm_version: &'a TargetText, collector: Option<&'a TargetText>, name: &'a TargetText },
}

impl<'a> Group<'a> {
    /// Groups of a thread, the one that knows more of it first.
    fn of(catalog: &'a Catalog, thread: ThreadIndex) -> impl Iterator<Item = Self> {
        let thread = catalog.thread(thread);
        let name = &thread.name;
        let process = catalog.process(thread.process);
        let version = process.jvm_version.as_ref().filter(|_| thread.category.is_of_jvm());
        let kin = version.map(|jvm_version| Self::Kin { jvm_version, collector: process.collector.as_ref(), name });
        iter::once(Self::Namesakes(thread.process, name)).chain(kin)
    }
}

/// All samples that could explain what is left.
struct Witnesses<'a> {
    catalog: &'a Catalog,
    /// Of light windows; of all windows.
    light: ByThread,
    samples: ByThread,
    groups: HashMap<Group<'a>, Vec<ThreadIndex>, RandomState>,
}

impl<'a> Witnesses<'a> {
    fn of(catalog: &'a Catalog, summing: &Summing) -> Self {
        let mut groups: HashMap<_, Vec<_>, RandomState> = HashMap::default();
        for group in summing.left.keys().flat_map(|thread| Group::of(catalog, *thread)) {
            groups.entry(group).or_default();
        }
        let mut wanted = HashSet::<_, RandomState>::default();
        for thread in (0..catalog.threads.len()).map(ThreadIndex::of) {
            for group in Group::of(catalog, thread) {
                if let Some(threads) = groups.get_mut(&group) {
                    threads.push(thread);
                    wanted.insert(thread);
                }
            }
        }
        let mut found = Self { catalog, light: ByThread::default(), samples: ByThread::default(), groups };
        for ((thread, path), (samples, energy)) in
            summing.light.iter().filter(|((thread, _), _)| wanted.contains(thread))
        {
            let seen = Seen { path: *path, samples: *samples, energy: *energy };
            found.light.entry(*thread).or_default().push(seen);
        }
        for entry in summing.sums.entries().iter().filter(|entry| entry.samples > 0 && wanted.contains(&entry.thread)) {
            let seen = Seen { path: entry.path, samples: entry.samples, energy: entry.sampled().energy };
            found.samples.entry(entry.thread).or_default().push(seen);
        }
        found
    }

    /// Samples that speak for a thread: its own, else those of the first group that has any, each path
    /// once.
    fn seen(&self, thread: ThreadIndex) -> Vec<Seen<PathIndex>> {
        let groups = Group::of(self.catalog, thread).filter_map(|group| self.groups.get(&group));
        let pools = iter::once(std::slice::from_ref(&thread)).chain(groups.map(Vec::as_slice));
        let pools = pools.flat_map(|threads| [(threads, &self.light), (threads, &self.samples)]);
        let mut pools = pools.map(|(threads, by_thread)| together(threads, by_thread));
        pools.find(|seen| !seen.is_empty()).unwrap_or_default()
    }
}

fn together(threads: &[ThreadIndex], by_thread: &ByThread) -> Vec<Seen<PathIndex>> {
    let mut sums: BTreeMap<PathIndex, Seen<PathIndex>> = BTreeMap::new();
    for seen in threads.iter().filter_map(|thread| by_thread.get(thread)).flatten() {
        let none = Seen { samples: 0, energy: MicroJoules(0), ..*seen };
        let sum = sums.entry(seen.path).or_insert(none);
        sum.samples = sum.samples.saturating_add(seen.samples);
        sum.energy = sum.energy.saturating_add(seen.energy);
    }
    sums.into_values().collect()
}
