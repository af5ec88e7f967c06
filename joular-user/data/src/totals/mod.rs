//! Sums over a run, for everything that speaks of a run as a whole: the live view, the summary, the
//! JSON stream and the `runs` table.
//!
//! Memory is bounded whatever the targets do. Methods and processes beyond [`MAX_ENTRIES`] are
//! folded, smallest first, into one `[evicted]` entry, so sums stay exact and only the smallest
//! names are forgotten.

pub mod audit;
mod inferred;
#[cfg(test)]
mod inferred_tests;
pub mod jvms;
pub mod lag;
pub mod measured;
mod methods;
pub mod phases;
mod pool;
pub mod sampling;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
};

pub use self::methods::MethodKey;
use self::{
    inferred::Inferred, measured::MeasureTotals, methods::marker_name, phases::PhaseTotals, sampling::MethodSampling,
};
use crate::{
    attribution::window_report::{ProcessRef, Share, ThreadRow, Unattributed, WindowReport},
    events::{ProcessInfo, Runtime},
    model::{
        domain::Label,
        frame::Marker,
        target_text::TargetText,
        units::{MicroJoules, Pid},
    },
    stacks::StackTable,
    totals::jvms::JvmTotals,
};

/// Entries kept per map before the smaller half is folded.
pub const MAX_ENTRIES: usize = 16_384;
/// Causes of losses and kinds of markers kept by name; there are a dozen of each.
const MAX_KINDS: usize = 1024;
/// Longest main class that is kept.
const MAX_TITLE_BYTES: usize = 4096;
/// Name of what was folded.
pub const EVICTED: &str = "[evicted]";

/// The audit of a run: windows' sums.
#[derive(Clone, Debug, Default)]
pub struct RunSums {
    pub windows: u64,
    pub elapsed_ns: u64,
    pub measured: MicroJoules,
    pub attributed: MicroJoules,
    pub static_share: MicroJoules,
    pub unattributed: Unattributed,
    pub target_cpu_ns: u64,
    pub samples: u64,
    /// Domain readings that were ambiguous, or that failed.
    pub ambiguous: u64,
    pub read_failed: u64,
    /// Energy of windows for which there is another counter's figure, and that figure.
    pub checked: Option<(MicroJoules, MicroJoules)>,
    pub losses: BTreeMap<String, u64>,
    /// By how much times of CPUs may be off.
    pub inexact_cpu_ns: u64,
    /// The weakest label seen.
    pub label: Option<Label>,
}

impl RunSums {
    pub fn add(&mut self, report: &WindowReport) {
        self.windows = self.windows.saturating_add(1);
        self.elapsed_ns = self.elapsed_ns.saturating_add(report.length_ns);
        self.target_cpu_ns = self.target_cpu_ns.saturating_add(report.cpu.target_ns);
        self.samples = self.samples.saturating_add(report.cpu.samples);
        self.inexact_cpu_ns = self.inexact_cpu_ns.saturating_add(report.cpu.inexact_ns);
        for audit in &report.domains {
            self.measured = self.measured.saturating_add(audit.measured);
            self.attributed = self.attributed.saturating_add(audit.attributed);
            self.static_share = self.static_share.saturating_add(audit.static_share);
            self.unattributed = self.unattributed.plus(audit.unattributed);
            self.ambiguous = self.ambiguous.saturating_add(audit.is_ambiguous().into());
            self.read_failed = self.read_failed.saturating_add(audit.read_failed().into());
            self.label = self.label.max(Some(audit.label));
            if let Some(check) = audit.check.filter(|_| audit.fault.is_none() && audit.merged == 0) {
                let (ours, theirs) = self.checked.unwrap_or_default();
                self.checked = Some((ours.saturating_add(audit.measured), theirs.saturating_add(check)));
            }
        }
        for loss in report.losses.iter().filter(|loss| loss.count > 0) {
            let count = bounded_entry(&mut self.losses, &loss.cause);
            *count = count.saturating_add(loss.count);
        }
    }

    pub fn of(report: &WindowReport) -> Self {
        let mut sums = Self::default();
        sums.add(report);
        sums
    }

    /// How far another counter's figure is from ours, in per cent of ours.
    #[allow(clippy::cast_precision_loss, reason = "for display")]
    pub fn disagreement_percent(&self) -> Option<f64> {
        let (ours, theirs) = self.checked.filter(|(ours, _)| ours.0 > 0)?;
        Some(100.0 * (theirs.0 as f64 - ours.0 as f64) / ours.0 as f64)
    }

    /// Losses of all causes.
    pub fn lost(&self) -> u64 {
        self.losses.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The entry of a name, or the shared one of names that find no room.
fn bounded_entry<'a, V: Default>(map: &'a mut BTreeMap<String, V>, name: &str) -> &'a mut V {
    let has_room = map.len() < MAX_KINDS || map.contains_key(name);
    map.entry(if has_room { name } else { EVICTED }.to_owned()).or_default()
}

/// One name's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Over the whole run.
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Part of `energy` that is inferred from samples of other windows.
    pub inferred: MicroJoules,
    /// In the latest window.
    pub energy_now: MicroJoules,
    pub cpu_ns_now: u64,
}

impl From<Share> for Tally {
    fn from(share: Share) -> Self {
        let mut tally = Self::default();
        tally.add(share);
        tally
    }
}

impl Tally {
    fn add(&mut self, share: Share) {
        self.fold(&Self {
            energy: share.energy,
            cpu_ns: share.cpu_ns,
            samples: share.samples,
            inferred: MicroJoules(0),
            energy_now: share.energy,
            cpu_ns_now: share.cpu_ns,
        });
    }

    fn fold(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.inferred = self.inferred.saturating_add(other.inferred);
        self.energy_now = self.energy_now.saturating_add(other.energy_now);
        self.cpu_ns_now = self.cpu_ns_now.saturating_add(other.cpu_ns_now);
    }
}

/// Tallies by name, bounded.
#[derive(Debug)]
pub struct Ranking<K> {
    entries: HashMap<K, Tally>,
    evicted: Tally,
    limit: usize,
}

impl<K: Clone + Eq + Hash + Ord> Ranking<K> {
    fn new(limit: usize) -> Self {
        Self { entries: HashMap::new(), evicted: Tally::default(), limit }
    }

    fn start_window(&mut self) {
        for tally in self.entries.values_mut().chain([&mut self.evicted]) {
            tally.energy_now = MicroJoules(0);
            tally.cpu_ns_now = 0;
        }
    }

    fn add(&mut self, key: K, share: Share) {
        self.entries.entry(key).or_default().add(share);
    }

    /// Folds the smaller half away if there are too many.
    fn end_window(&mut self) {
        if self.entries.len() <= self.limit {
            return;
        }
        let smallest: Vec<K> = self.ranked().into_iter().skip(self.limit / 2).map(|(key, _)| key.clone()).collect();
        for tally in smallest.iter().filter_map(|key| self.entries.remove(key)).collect::<Vec<_>>() {
            self.evicted.fold(&tally);
        }
    }

    /// The sum of what was forgotten by name, if anything was.
    pub fn evicted(&self) -> Option<&Tally> {
        (self.evicted != Tally::default()).then_some(&self.evicted)
    }

    /// Largest energy first; equal ones by name, so that the order is always the same.
    pub fn ranked(&self) -> Vec<(&K, &Tally)> {
        let mut ranked: Vec<_> = self.entries.iter().collect();
        ranked
            .sort_unstable_by(|(a, x), (b, y)| (y.energy, y.cpu_ns).cmp(&(x.energy, x.cpu_ns)).then_with(|| a.cmp(b)));
        ranked
    }
}

/// The processes of a window with the sums of their threads.
pub fn by_process(report: &WindowReport) -> impl Iterator<Item = (&ProcessRef, Share)> {
    let mut shares = vec![Share::default(); report.processes.len()];
    for thread in &report.threads {
        let Some(share) = shares.get_mut(thread.process) else { continue };
        share.energy = share.energy.saturating_add(thread.energy);
        share.cpu_ns = share.cpu_ns.saturating_add(thread.cpu_ns);
        share.samples = share.samples.saturating_add(thread.samples);
    }
    report.processes.iter().zip(shares)
}

/// Everything a run adds up to.
#[derive(Debug)]
pub struct Totals {
    pub sums: RunSums,
    /// Self energy by method, all processes and kinds of code together.
    pub methods: Ranking<MethodKey>,
    /// How far the methods' energies may be off.
    pub sampling: MethodSampling,
    pub processes: Ranking<ProcessRef>,
    /// Self energy of what is not known, by marker. Code without symbols counts as unresolved
    /// whichever file it is in.
    pub markers: BTreeMap<String, MicroJoules>,
    pub jvms: JvmTotals,
    pub phases: PhaseTotals,
    pub measured: MeasureTotals,
    /// What a process calls itself beside its comm.
    titles: HashMap<(Pid, u64), TargetText>,
    /// `None`: everything stays as it was recorded.
    inference: Option<Inferred>,
    /// Energy inferred from samples of other windows.
    pub inferred: MicroJoules,
    /// Processes that have ended since the last window.
    ended: HashSet<(Pid, u64)>,
}

impl Default for Totals {
    fn default() -> Self {
        Self::with_limit(MAX_ENTRIES)
    }
}

impl Totals {
    fn with_limit(limit: usize) -> Self {
        Self {
            sums: RunSums::default(),
            methods: Ranking::new(limit),
            sampling: MethodSampling::default(),
            processes: Ranking::new(limit),
            markers: BTreeMap::new(),
            jvms: JvmTotals::default(),
            phases: PhaseTotals::default(),
            measured: MeasureTotals::default(),
            titles: HashMap::new(),
            inference: Some(Inferred::new(limit)),
            inferred: MicroJoules(0),
            ended: HashSet::new(),
        }
    }

    pub fn process(&mut self, info: &ProcessInfo) {
        if let Some(inference) = &mut self.inference {
            inference.process(info);
        }
        if let Runtime::Jvm { main_class: Some(main_class), .. } = &info.runtime
            && self.titles.len() < self.processes.limit
            && main_class.raw().len() <= MAX_TITLE_BYTES
        {
            self.titles.insert((info.pid, info.start_boottime_ns), main_class.clone());
        }
    }

    /// Main class of a JVM, comm of anything else.
    pub fn title<'a>(&'a self, process: &'a ProcessRef) -> &'a TargetText {
        self.titles.get(&(process.pid, process.start_boottime_ns)).unwrap_or(&process.comm)
    }

    /// Nothing more comes of a process: what is kept by thread becomes sums.
    pub fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.ended.insert((pid, start_boottime_ns));
    }

    fn forget_ended(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let ended = std::mem::take(&mut self.ended);
        if let Some(mut inference) = self.inference.take() {
            inference.processes_ended(&ended, |divided| self.take_divided(&divided));
            self.inference = Some(inference);
        }
        self.sampling.processes_ended(&ended);
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) {
        self.forget_ended();
        self.sums.add(report);
        self.phases.window(report);
        self.measured.window(report);
        self.processes.start_window();
        for thread in &report.threads {
            let Some(process) = report.processes.get(thread.process) else { continue };
            let ThreadRow { energy, cpu_ns, samples, .. } = *thread;
            self.processes.add(process.clone(), Share { energy, cpu_ns, samples, ..Share::default() });
        }
        self.processes.end_window();
        self.jvms.window(report, self.processes.limit);
        self.methods.start_window();
        for row in &report.methods {
            let frame = stacks.frame(row.method);
            // A method that only called others has no self figures.
            if row.own != Share::default() {
                self.methods.add(MethodKey::of(frame), row.own);
            }
            if let Some(name) = marker_name(frame) {
                let energy = bounded_entry(&mut self.markers, name);
                *energy = energy.saturating_add(row.own.energy);
            }
        }
        if let Some(mut inference) = self.inference.take() {
            inference.window(report, stacks, &self.methods);
            inference.settle(report.wall_start, |divided| self.take_divided(&divided));
            self.inference = Some(inference);
        }
        self.methods.end_window();
        let methods = &self.methods;
        self.sampling.window(report, stacks, || methods.entries.keys().map(sampling::id_of).collect());
    }

    /// Energy of a marker's frames.
    pub fn marker(&self, marker: Marker) -> MicroJoules {
        self.markers.get(marker.name()).copied().unwrap_or_default()
    }

    /// Energy that no method's name could be given to.
    pub fn unresolved(&self) -> MicroJoules {
        self.markers.values().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(energy: u64) -> Share {
        Share { energy: MicroJoules(energy), cpu_ns: 1, samples: 1, ..Share::default() }
    }

    #[test]
    fn a_full_ranking_folds_its_smallest_and_keeps_the_sum() {
        let mut ranking = Ranking::new(8);
        for energy in 1..=9 {
            ranking.add(format!("m{energy}"), share(energy));
        }
        ranking.end_window();
        let kept: Vec<u64> = ranking.ranked().iter().map(|(_, tally)| tally.energy.0).collect();
        assert_eq!(kept, [9, 8, 7, 6]);
        assert_eq!(ranking.evicted().map(|tally| tally.energy.0), Some(1 + 2 + 3 + 4 + 5));
    }

    #[test]
    fn names_without_end_share_an_entry() {
        let mut map: BTreeMap<String, u64> = BTreeMap::new();
        (0..5_000).for_each(|index| *bounded_entry(&mut map, &format!("cause{index}")) += 1);
        assert_eq!((map.len(), map[EVICTED]), (MAX_KINDS + 1, 5_000 - MAX_KINDS as u64));
    }

    #[test]
    fn equal_energies_rank_by_name() {
        let mut ranking = Ranking::new(8);
        for name in ["c", "a", "b"] {
            ranking.add(name.to_owned(), share(1));
        }
        let names: Vec<&str> = ranking.ranked().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
