//! Sums what a run says of its JVMs: how good their stacks are, and what the VM did for itself. The
//! sums are over windows, and bounded like all totals.

use std::collections::BTreeMap;

use crate::{
    attribution::window_report::{Amount, JvmRow, ProcessRef, QualityRow, WindowReport},
    model::{frame::Marker, quality::PathQuality, units::MicroJoules},
    stacks::JvmWork,
    text::{escape, percent, share},
};

/// Share of the samples from which a cause is shown.
const TOLD_PERCENT: f64 = 1.0;

/// Sums over the JVMs of a run.
#[derive(Debug, Default)]
pub struct JvmTotals {
    /// Per JVM; those that find no room are in `others`.
    jvms: BTreeMap<ProcessRef, JvmTally>,
    pub others: JvmTally,
    /// Samples of all JVMs by [`cause`].
    causes: BTreeMap<&'static str, u64>,
    pub samples: u64,
}

/// A JVM's whole and its parts, over the windows so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmTally {
    pub whole: MicroJoules,
    pub tax: MicroJoules,
    parts: [MicroJoules; JvmWork::ALL.len()],
}

impl JvmTally {
    /// Of parts in the order of [`JvmWork::ALL`].
    pub fn new(whole: MicroJoules, parts: [MicroJoules; JvmWork::ALL.len()]) -> Self {
        let taxes = JvmWork::ALL.into_iter().zip(parts).filter(|(work, _)| work.is_tax());
        Self { whole, tax: taxes.map(|(_, energy)| energy).sum(), parts }
    }

    pub const fn part(&self, work: JvmWork) -> MicroJoules {
        self.parts[work as usize]
    }

    fn add(&mut self, row: &JvmRow) {
        let add = |sum: &mut MicroJoules, amount: Amount| *sum = sum.saturating_add(amount.energy);
        add(&mut self.whole, row.whole);
        add(&mut self.tax, row.tax());
        self.parts.iter_mut().zip(row.parts).for_each(|(sum, part)| add(sum, part));
    }

    fn fold(&mut self, other: &Self) {
        self.whole = self.whole.saturating_add(other.whole);
        self.tax = self.tax.saturating_add(other.tax);
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
    }

    /// Share of the tax in the whole, in per cent.
    pub fn tax_percent(&self) -> f64 {
        share(self.tax, self.whole)
    }

    /// `gc 3.0 %, jit 2.6 %`: the tax's parts of the whole, largest first.
    pub fn tax_parts(&self) -> String {
        let mut parts: Vec<JvmWork> = JvmWork::ALL.into_iter().filter(|work| work.is_tax()).collect();
        parts.retain(|work| self.part(*work).0 > 0);
        parts.sort_by_key(|work| std::cmp::Reverse(self.part(*work)));
        let part =
            |work: JvmWork| format!("{} {:.1} %", work.name().replace('_', " "), share(self.part(work), self.whole));
        parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

/// Stacks that are whole, or as far as can be known.
pub const COMPLETE: &str = "complete";
pub const UNCERTAIN: &str = "chain";

/// What is wrong with stacks, the first that applies: why the root is missing, else the marker of
/// frames without a name.
pub fn cause(row: &QualityRow) -> &'static str {
    cause_of(row.quality.is_complete(), row.quality.end_name(), row.unnamed.map(Marker::name))
}

/// [`cause`], by the names that table `quality` has.
pub fn cause_of<'a>(is_complete: Option<bool>, walk_end: &'a str, unnamed: Option<&'a str>) -> &'a str {
    match is_complete {
        Some(false) => walk_end,
        Some(true) => unnamed.unwrap_or(COMPLETE),
        None => unnamed.unwrap_or(UNCERTAIN),
    }
}

/// Whole stacks, and each cause of others that is worth a line: of samples by cause.
pub fn quality_lines(causes: &BTreeMap<&str, u64>) -> Vec<String> {
    let samples = causes.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    if samples == 0 {
        return Vec::new();
    }
    let part = |count: u64| percent(count, samples);
    let complete = causes.get(COMPLETE).copied().unwrap_or_default();
    let mut lines = vec![format!("{:.1} % complete and named", part(complete))];
    let mut told: Vec<(&str, u64)> = causes.iter().map(|(cause, count)| (*cause, *count)).collect();
    told.retain(|(cause, count)| *cause != COMPLETE && part(*count) > TOLD_PERCENT);
    told.sort_by_key(|(cause, count)| (std::cmp::Reverse(*count), *cause));
    let line = |(cause, count)| format!("{:.1} % {}: {}", part(count), escape(cause), meaning(cause));
    lines.extend(told.into_iter().map(line));
    lines
}

/// What a cause means, for people.
fn meaning(cause: &str) -> &'static str {
    match cause {
        UNCERTAIN => "by frame pointers: whether the root was reached is not known",
        "depth" => "with more frames than are kept",
        "no-mapping" => "end in code of no known file",
        "no-rule" => "end in native code without unwind tables",
        "unreadable" => "end where memory could not be read",
        "implausible" => "end at a caller's frame that is implausible",
        "dead-code" => "end in code that the JVM has thrown away",
        "frozen" => "of virtual threads whose older frames are in the heap",
        "budget" => "too long for what the kernel lets programs do",
        "no-stack" => "could not be read at all",
        "lost-stack" => "were lost between the kernel and joular-bpf",
        "[evicted]" => "with code that was discarded before it was named",
        "[stale]" => "with code whose name changed before it was looked up",
        "[mapping not kept]" => "with code in more mappings than are kept of a process",
        "[unresolved]" => "with code that has no symbol",
        _ => "",
    }
}

impl JvmTotals {
    /// Adds a window; JVMs beyond `limit` share one entry.
    pub fn window(&mut self, report: &WindowReport, limit: usize) {
        for row in &report.jvms {
            let Some(process) = report.processes.get(row.process) else { continue };
            if self.jvms.len() < limit || self.jvms.contains_key(process) {
                self.jvms.entry(process.clone()).or_default().add(row);
            } else {
                self.others.add(row);
            }
        }
        let is_of_a_jvm = |row: &&QualityRow| report.jvms.iter().any(|jvm| jvm.process == row.process);
        for row in report.qualities.iter().filter(is_of_a_jvm) {
            // Time without a sample is not a stack that failed.
            if row.quality != PathQuality::NoSample {
                let count = self.causes.entry(cause(row)).or_default();
                *count = count.saturating_add(row.amount.samples);
                self.samples = self.samples.saturating_add(row.amount.samples);
            }
        }
    }

    /// Samples by cause, [`COMPLETE`] among them.
    pub const fn causes(&self) -> &BTreeMap<&'static str, u64> {
        &self.causes
    }

    /// Those known by name, largest tax first.
    pub fn ranked(&self) -> Vec<(&ProcessRef, &JvmTally)> {
        let mut ranked: Vec<_> = self.jvms.iter().collect();
        ranked.sort_by_key(|(process, tally)| (std::cmp::Reverse(tally.tax), *process));
        ranked
    }

    /// All JVMs together; `None` if there were none.
    pub fn all(&self) -> Option<JvmTally> {
        let mut all = self.others;
        self.jvms.values().for_each(|tally| all.fold(tally));
        (!self.jvms.is_empty()).then_some(all)
    }

    /// See [`quality_lines`].
    pub fn quality_lines(&self) -> Vec<String> {
        quality_lines(&self.causes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::window_report::Category,
        model::{
            quality::{StackQuality, Unwinder, WalkEnd},
            units::Pid,
        },
    };

    fn walked(end: WalkEnd) -> PathQuality {
        PathQuality::Walked(StackQuality { unwinder: Unwinder::Tables, end })
    }

    fn quality(process: usize, quality: PathQuality, unnamed: Option<Marker>, samples: u64) -> QualityRow {
        let amount = Amount { samples, ..Amount::default() };
        QualityRow { process, category: Category::Java, quality, unnamed, amount }
    }

    fn jvm(process: usize, gc_uj: u64, c2_uj: u64) -> JvmRow {
        let amount = |energy| Amount { energy: MicroJoules(energy), ..Amount::default() };
        let mut row = JvmRow { process, whole: amount(gc_uj + c2_uj), parts: Default::default() };
        row.parts[JvmWork::Gc as usize] = amount(gc_uj);
        row.parts[JvmWork::C2 as usize] = amount(c2_uj);
        row
    }

    fn report(jvms: Vec<JvmRow>, qualities: Vec<QualityRow>) -> WindowReport {
        let process = |pid| ProcessRef { pid: Pid(pid), start_boottime_ns: 0, comm: "java".into() };
        WindowReport { processes: (0..4).map(process).collect(), jvms, qualities, ..WindowReport::default() }
    }

    #[test]
    fn causes_above_a_per_cent_of_the_jvms_samples_are_told() {
        let mut totals = JvmTotals::default();
        let rows = vec![
            quality(0, walked(WalkEnd::Root), None, 900),
            quality(0, PathQuality::Kernel, None, 20),
            quality(0, walked(WalkEnd::NoRule), Some(Marker::Unresolved), 50),
            quality(0, walked(WalkEnd::Root), Some(Marker::Evicted), 20),
            quality(0, walked(WalkEnd::Frozen), None, 10),
            quality(0, PathQuality::NoSample, None, 0),
            // No JVM.
            quality(1, walked(WalkEnd::Chain), None, 5_000),
        ];
        totals.window(&report(vec![jvm(0, 1, 1)], rows), 10);
        assert_eq!(
            totals.quality_lines(),
            [
                "92.0 % complete and named",
                "5.0 % no-rule: end in native code without unwind tables",
                "2.0 % [evicted]: with code that was discarded before it was named",
            ]
        );
        assert_eq!((totals.samples, totals.causes()["frozen"]), (1_000, 10));
    }

    #[test]
    fn every_cause_has_a_meaning() {
        let ends = WalkEnd::ALL.map(walked).into_iter().chain([PathQuality::NoStack, PathQuality::LostStack]);
        let markers = Marker::UNNAMED.map(Some).into_iter().chain([None]);
        for (end, marker) in ends.flat_map(|end| markers.clone().map(move |marker| (end, marker))) {
            let cause = cause(&quality(0, end, marker, 1));
            assert_eq!(meaning(cause).is_empty(), cause == COMPLETE, "{cause}");
        }
    }

    #[test]
    fn without_a_jvm_nothing_is_told() {
        let mut totals = JvmTotals::default();
        totals.window(&report(Vec::new(), vec![quality(0, walked(WalkEnd::Chain), None, 7)]), 10);
        assert_eq!((totals.quality_lines(), totals.all()), (Vec::new(), None));
    }

    #[test]
    fn jvms_without_end_share_an_entry_and_the_sum_stays() {
        let mut totals = JvmTotals::default();
        for _ in 0..2 {
            totals.window(&report((0..4).map(|process| jvm(process, 10, 90)).collect(), Vec::new()), 2);
        }
        let all = totals.all().unwrap();
        assert_eq!((totals.ranked().len(), totals.others.whole.0), (2, 400));
        assert_eq!((all.whole.0, all.tax.0), (800, 80));
        assert_eq!(all.tax_parts(), "gc 10.0 %");
    }
}
