//! Shares out what no near sample explains, when all samples of a selection are known: by all samples
//! of the thread, else by those of threads with its name in its process, else of a JVM's own threads by
//! those with its name in other JVMs of the same version and collector.
//!
//! Sums over time take a thread's [`Quotas`] as they are. A scan in the order of time gives each window
//! its part of them, so that views with and without time sum to the same microjoule.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    iter,
};

use foldhash::fast::RandomState;

use super::{
    Catalog, PathIndex, ProcessIndex, ThreadIndex, ThreadPath,
    inference::{Singles, Sink},
    row::{EnergyRow, Inferred},
    sums::EnergySums,
};
use crate::{
    attribution::inference::{Seen, Share, apportion, divide},
    model::{target_text::TargetText, units::MicroJoules},
};

/// Sums rows, and by thread what no near sample explains.
#[derive(Debug, Default)]
pub(super) struct Summing {
    pub(super) sums: EnergySums,
    left: BTreeMap<ThreadIndex, ThreadPath>,
}

impl Sink for Summing {
    fn row(&mut self, row: &EnergyRow) {
        self.sums.add(row);
    }

    fn left(&mut self, row: &EnergyRow) {
        let row = ThreadPath::of(row);
        self.left.entry(row.thread).and_modify(|sum| sum.plus(&row)).or_insert(row);
    }
}

impl Summing {
    /// Shares out what is left, and adds it to the sums. `stack_ids` of paths break ties, because they
    /// are the same however a data set's files are cut.
    pub(super) fn finish(mut self, catalog: &Catalog, stack_ids: &[i64], singles: &Singles) -> (EnergySums, Quotas) {
        let mut quotas = Quotas::default();
        if self.left.is_empty() {
            return (self.sums, quotas);
        }
        let witnesses = Witnesses::of(catalog, &self, singles);
        for (thread, left) in &self.left {
            let mut seen = witnesses.seen(*thread);
            seen.sort_by_key(|seen| stack_ids.get(seen.path.index()));
            let entry = |share: Share<PathIndex>| ThreadPath {
                path: share.path,
                energy: share.energy,
                inferred: share.energy,
                cpu_ns: share.cpu_ns,
                squares: share.squares,
                ..*left
            };
            let mut shares: Vec<ThreadPath> = divide(left.energy, left.cpu_ns, &seen).into_iter().map(entry).collect();
            if shares.is_empty() {
                shares.push(*left);
            }
            quotas.0.insert(*thread, shares);
        }
        quotas.0.values().flatten().for_each(|share| self.sums.add_entry(*share));
        (self.sums, quotas)
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
    /// Of windows with one sample; of all windows.
    singles: ByThread,
    samples: ByThread,
    groups: HashMap<Group<'a>, Vec<ThreadIndex>, RandomState>,
}

impl<'a> Witnesses<'a> {
    fn of(catalog: &'a Catalog, summing: &Summing, singles: &Singles) -> Self {
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
        let mut found = Self { catalog, singles: ByThread::default(), samples: ByThread::default(), groups };
        for ((thread, path), (samples, energy)) in singles.iter().filter(|((thread, _), _)| wanted.contains(thread)) {
            let seen = Seen { path: *path, samples: *samples, energy: *energy };
            found.singles.entry(*thread).or_default().push(seen);
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
        let pools = pools.flat_map(|threads| [(threads, &self.singles), (threads, &self.samples)]);
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

/// What is left of each thread, by the paths that it goes to.
#[derive(Clone, Debug, Default)]
pub struct Quotas(BTreeMap<ThreadIndex, Vec<ThreadPath>>);

impl Quotas {
    /// Gives a row its part. Parts of all rows of a thread sum to its quotas.
    pub(super) fn take(&mut self, row: &EnergyRow, mut give: impl FnMut(&EnergyRow)) {
        let Some(quotas) = self.0.get_mut(&row.thread) else { return give(row) };
        let energies = apportion(row.energy.0, &quotas.iter().map(|quota| quota.energy.0).collect::<Vec<_>>());
        let times = apportion(row.cpu_ns, &quotas.iter().map(|quota| quota.cpu_ns).collect::<Vec<_>>());
        for ((quota, energy), cpu_ns) in quotas.iter_mut().zip(energies).zip(times) {
            if energy == 0 && cpu_ns == 0 {
                continue;
            }
            let squares = quota.squares * part(energy, quota.energy.0);
            let inferred = (quota.inferred.0 > 0).then_some(Inferred { squares });
            quota.squares -= squares;
            quota.energy = MicroJoules(quota.energy.0.saturating_sub(energy));
            quota.cpu_ns = quota.cpu_ns.saturating_sub(cpu_ns);
            give(&EnergyRow { path: quota.path, energy: MicroJoules(energy), cpu_ns, inferred, ..*row });
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
fn part(of: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { of as f64 / whole as f64 }
}
