//! Sums what a run's targets allocated, moved and counted.

use std::collections::BTreeMap;

use joular_ebpf::abi::IoKind;

use crate::{
    attribution::{window_report::WindowReport, work::Claimant},
    model::{measure::Measure, units::MicroJoules, way::Way},
};

/// Amounts by measure. Each kind of bytes is a measure of its own, so nothing is in it twice.
pub type Amounts = BTreeMap<Measure, u64>;

/// Adds amounts, each to its sum.
pub fn add(sums: &mut Amounts, amounts: &Amounts) {
    for (measure, amount) in amounts {
        let sum = sums.entry(*measure).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// What the processes of a window allocated, moved and counted, in their order. All of them have what anybody was asked
/// for.
pub fn by_process(report: &WindowReport) -> Vec<Amounts> {
    let mut processes = vec![asked(report); report.processes.len()];
    let mut add = |thread: usize, measure: Measure, amount: u64| {
        let process = report.threads.get(thread).and_then(|thread| processes.get_mut(thread.process));
        if let Some(sum) = process.and_then(|amounts| amounts.get_mut(&measure)) {
            *sum = sum.saturating_add(amount);
        }
    };
    for row in &report.allocations {
        add(row.thread, Measure::Allocated, row.bytes);
    }
    for row in report.moved.iter().flat_map(|moved| &moved.rows) {
        let Claimant::Thread(thread) = row.claimant else { continue };
        IoKind::ALL.into_iter().for_each(|kind| add(thread, moved(kind), row.bytes[kind as usize]));
    }
    if let Some(counts) = &report.counts {
        for row in &counts.rows {
            let Claimant::Thread(thread) = row.claimant else { continue };
            let counted = counts.counters.iter().zip(&row.counts);
            counted.for_each(|(counter, count)| add(thread, Measure::Counted(*counter), *count));
        }
    }
    processes
}

/// What a window knows of, and nothing of it yet.
fn asked(report: &WindowReport) -> Amounts {
    let mut asked = Amounts::new();
    if !report.allocations.is_empty() {
        asked.insert(Measure::Allocated, 0);
    }
    if let Some(of_window) = &report.moved {
        let is_counted =
            |kind: &IoKind| of_window.counts_devices || !matches!(kind, IoKind::DeviceRead | IoKind::DeviceWritten);
        asked.extend(IoKind::ALL.into_iter().filter(is_counted).map(|kind| (moved(kind), 0)));
    }
    if let Some(counts) = &report.counts {
        asked.extend(counts.counters.iter().map(|counter| (Measure::Counted(*counter), 0)));
    }
    asked
}

const fn moved(kind: IoKind) -> Measure {
    Measure::Moved(Way::of_kind(kind))
}

/// What the targets have of each measure, and the energy of the windows in which anything was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasureTotals {
    pub amounts: Amounts,
    /// Of the targets.
    energy: MicroJoules,
}

impl MeasureTotals {
    pub(super) fn window(&mut self, report: &WindowReport) {
        let asked = asked(report);
        if asked.is_empty() {
            return;
        }
        add(&mut self.amounts, &asked);
        by_process(report).iter().for_each(|amounts| add(&mut self.amounts, amounts));
        let attributed: MicroJoules = report.domains.iter().map(|audit| audit.attributed).sum();
        self.energy = self.energy.saturating_add(attributed);
    }

    /// Each measure with its amount and that per joule, which is `None` if the targets used no energy. Empty if nothing
    /// was asked for.
    #[allow(clippy::cast_precision_loss, reason = "for display")]
    pub fn sums(&self) -> impl Iterator<Item = (Measure, u64, Option<f64>)> {
        let joules = (self.energy.0 > 0).then(|| self.energy.joules());
        self.amounts
            .iter()
            .map(move |(measure, amount)| (*measure, *amount, joules.map(|joules| *amount as f64 / joules)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::{
            allocated::AllocationRow,
            counts::{CountRow, Counts},
            moved::{Moved, MovedRow},
            window_report::{Category, ProcessRef, ThreadRow},
        },
        model::{
            counter::Counter,
            units::{Pid, Tid},
        },
        stacks::StackTable,
    };

    /// Two processes; the second one has two threads.
    fn empty() -> WindowReport {
        let process = |pid| ProcessRef { pid: Pid(pid), start_boottime_ns: 0, comm: "java".into() };
        let thread = |(tid, process)| ThreadRow {
            process,
            tid: Tid(tid),
            start_boottime_ns: 0,
            name: "main".into(),
            category: Category::Java,
            cpu_ns: 1,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        };
        WindowReport {
            processes: [1, 2].map(process).to_vec(),
            threads: [(1, 0), (2, 1), (3, 1)].map(thread).to_vec(),
            ..WindowReport::default()
        }
    }

    fn counted(counters: &[Counter], rows: &[(Claimant, &[u64])]) -> WindowReport {
        let row = |(claimant, counts): &(Claimant, &[u64])| CountRow { claimant: *claimant, counts: counts.to_vec() };
        let counts = Counts { counters: counters.to_vec(), rows: rows.iter().map(row).collect() };
        WindowReport { counts: Some(counts), ..empty() }
    }

    #[test]
    fn threads_of_targets_count_and_others_do_not() {
        let counters = [Counter::ContextSwitches, Counter::PageFaults, Counter::MajorFaults];
        let mut totals = MeasureTotals::default();
        for _ in 0..2 {
            let (first, second) = (Claimant::Thread(0), Claimant::Thread(1));
            let rows: [(Claimant, &[u64]); 3] =
                [(first, &[1, 10, 0]), (second, &[2, 0, 0]), (Claimant::Kernel, &[9; 3])];
            totals.window(&counted(&counters, &rows));
        }
        totals.window(&WindowReport::default());
        totals.energy = MicroJoules(4_000_000);
        let sums: Vec<_> =
            totals.sums().map(|(measure, amount, per_joule)| (measure.name(), amount, per_joule)).collect();
        let expected =
            [("page-faults", 20, Some(5.0)), ("major-faults", 0, Some(0.0)), ("context-switches", 6, Some(1.5))];
        assert_eq!(sums, expected);
    }

    #[test]
    fn bytes_are_of_the_process_whose_threads_allocated_and_moved_them() {
        let branch = StackTable::default().branch_index(&[], Default::default());
        let allocation = |(thread, bytes)| AllocationRow::new(thread, branch, bytes, 1);
        let moved = |(claimant, sent)| {
            let mut row = MovedRow { claimant, branch: None, bytes: Default::default(), samples: 0 };
            row.bytes[IoKind::Sent as usize] = sent;
            row
        };
        let rows = [(Claimant::Thread(0), 7), (Claimant::OtherProcesses, 1 << 40), (Claimant::Thread(2), 9)];
        let report = WindowReport {
            allocations: [(0, 100), (1, 20), (2, 3)].map(allocation).to_vec(),
            moved: Some(Moved { counts_devices: false, rows: rows.map(moved).to_vec() }),
            ..empty()
        };
        let of_process = by_process(&report);
        let sent = Measure::Moved(Way::RemoteSent);
        let amounts = |index: usize| (of_process[index][&Measure::Allocated], of_process[index][&sent]);
        assert_eq!((amounts(0), amounts(1)), ((100, 7), (23, 9)));
        assert!(!of_process[0].contains_key(&Measure::Moved(Way::DeviceRead)), "this kernel does not count them");
        let mut totals = MeasureTotals::default();
        totals.window(&report);
        assert_eq!((totals.amounts[&Measure::Allocated], totals.amounts[&sent]), (123, 16));
    }

    #[test]
    fn nothing_is_per_joule_of_nothing() {
        let mut totals = MeasureTotals::default();
        assert_eq!(totals.sums().count(), 0);
        totals.window(&counted(&[Counter::PageFaults], &[(Claimant::Thread(0), &[3])]));
        assert_eq!(totals.sums().collect::<Vec<_>>(), [(Measure::Counted(Counter::PageFaults), 3, None)]);
    }
}
