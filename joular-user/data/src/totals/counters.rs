//! Sums what a run's targets counted.

use std::collections::BTreeMap;

use crate::{
    attribution::{window_report::WindowReport, work::Claimant},
    model::{counter::Counter, units::MicroJoules},
};

/// What the targets counted, and the energy of the windows in which they did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterTotals {
    counts: BTreeMap<Counter, u64>,
    /// Of the targets.
    energy: MicroJoules,
}

impl CounterTotals {
    pub(super) fn window(&mut self, report: &WindowReport) {
        let Some(counted) = &report.counts else { return };
        for counter in &counted.counters {
            self.counts.entry(*counter).or_default();
        }
        for row in counted.rows.iter().filter(|row| matches!(row.claimant, Claimant::Thread(_))) {
            for (counter, count) in counted.counters.iter().zip(&row.counts) {
                let sum = self.counts.entry(*counter).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        let attributed: MicroJoules = report.domains.iter().map(|audit| audit.attributed).sum();
        self.energy = self.energy.saturating_add(attributed);
    }

    /// Each counter with what the targets counted and that per joule, which is `None` if they used no energy. Empty
    /// if nothing was asked for.
    #[allow(clippy::cast_precision_loss, reason = "for display")]
    pub fn sums(&self) -> impl Iterator<Item = (Counter, u64, Option<f64>)> {
        let joules = (self.energy.0 > 0).then(|| self.energy.joules());
        self.counts.iter().map(move |(counter, count)| (*counter, *count, joules.map(|joules| *count as f64 / joules)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::counts::{CountRow, Counts};

    fn window(counters: &[Counter], rows: &[(Claimant, &[u64])]) -> WindowReport {
        let row = |(claimant, counts): &(Claimant, &[u64])| CountRow { claimant: *claimant, counts: counts.to_vec() };
        let counts = Counts { counters: counters.to_vec(), rows: rows.iter().map(row).collect() };
        WindowReport { counts: Some(counts), ..WindowReport::default() }
    }

    #[test]
    fn threads_of_targets_count_and_others_do_not() {
        let counters = [Counter::ContextSwitches, Counter::PageFaults, Counter::MajorFaults];
        let mut totals = CounterTotals::default();
        for _ in 0..2 {
            let (first, second) = (Claimant::Thread(0), Claimant::Thread(1));
            totals
                .window(&window(&counters, &[(first, &[1, 10, 0]), (second, &[2, 0, 0]), (Claimant::Kernel, &[9; 3])]));
        }
        totals.window(&WindowReport::default());
        totals.energy = MicroJoules(4_000_000);
        let sums: Vec<_> =
            totals.sums().map(|(counter, count, per_joule)| (counter.name(), count, per_joule)).collect();
        let expected =
            [("page-faults", 20, Some(5.0)), ("major-faults", 0, Some(0.0)), ("context-switches", 6, Some(1.5))];
        assert_eq!(sums, expected);
    }

    #[test]
    fn nothing_is_per_joule_of_nothing() {
        let mut totals = CounterTotals::default();
        assert_eq!(totals.sums().count(), 0);
        totals.window(&window(&[Counter::PageFaults], &[(Claimant::Thread(0), &[3])]));
        assert_eq!(totals.sums().collect::<Vec<_>>(), [(Counter::PageFaults, 3, None)]);
    }
}
