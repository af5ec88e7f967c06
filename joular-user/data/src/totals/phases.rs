//! Sums a run's windows by phase.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    EVICTED,
    lag::{Lag, Lags, Stretch},
};
use crate::{
    attribution::window_report::WindowReport,
    events::{
        Mark,
        phases::{OpenPhases, Step},
    },
    model::units::MicroJoules,
};

/// Phases kept by name. Those beyond it share an entry.
const MAX_PHASES: usize = 1024;

/// What all phases of one path add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseTally {
    /// How often it began.
    pub times: u64,
    pub windows: u64,
    pub length_ns: u64,
    /// Of the targets. Energy of phases within it counts, too.
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    /// How far off the energy may be because counters lag; `None` if it is not known how often they advance.
    pub lag: Option<Lag>,
    /// Of these phases the first one's number, which orders them.
    first: u64,
}

/// Delays between what programs said and where windows were cut for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutDelays {
    pub cuts: u64,
    sum_ns: u64,
    pub longest_ns: u64,
}

impl CutDelays {
    fn add(&mut self, delay_ns: u64) {
        self.cuts += 1;
        self.sum_ns = self.sum_ns.saturating_add(delay_ns);
        self.longest_ns = self.longest_ns.max(delay_ns);
    }

    /// 0 without cuts.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.cuts).unwrap_or(0)
    }
}

/// A run's phases.
#[derive(Clone, Debug, Default)]
pub struct PhaseTotals {
    open: OpenPhases,
    tallies: BTreeMap<String, PhaseTally>,
    lags: Lags,
    pub delays: CutDelays,
    /// Ends without a begin, and begins of too many phases at once.
    pub ignored: u64,
    pub events: u64,
}

impl PhaseTotals {
    pub(super) fn window(&mut self, report: &WindowReport) {
        self.lags.window(&Stretch::of(report));
        let energy: MicroJoules = report.domains.iter().map(|audit| audit.attributed).sum();
        // Phases of several processes may have the same path: a window counts once.
        let paths: BTreeSet<String> = self.open.iter().map(|phase| self.kept(phase.path.raw()).to_owned()).collect();
        for path in &paths {
            let Some(tally) = self.tallies.get_mut(path) else { continue };
            tally.windows += 1;
            tally.length_ns = tally.length_ns.saturating_add(report.length_ns);
            tally.energy = tally.energy.saturating_add(energy);
            tally.cpu_ns = tally.cpu_ns.saturating_add(report.cpu.target_ns);
        }
        report.marks.iter().for_each(|mark| self.mark(mark, report));
        let open: BTreeSet<String> = self.open.iter().map(|phase| self.kept(phase.path.raw()).to_owned()).collect();
        self.ended_at_edge(&open);
    }

    /// Ends the sums: what is open has ended, too.
    pub(super) fn finish(&mut self) {
        self.ended_at_edge(&BTreeSet::new());
    }

    fn ended_at_edge(&mut self, open: &BTreeSet<String>) {
        for (path, lag) in self.lags.opened(open) {
            if let Some(tally) = self.tallies.get_mut(&path) {
                tally.lag = Some(tally.lag.unwrap_or_default().plus(lag));
            }
        }
    }

    fn mark(&mut self, mark: &Mark, report: &WindowReport) {
        let end_ns = report.start.0.saturating_add(report.length_ns);
        if mark.kind.is_edge() {
            self.delays.add(end_ns.saturating_sub(mark.at.0));
        }
        match self.open.take(mark) {
            Step::Began(phase) => {
                let path = if self.tallies.len() < MAX_PHASES { phase.path.raw() } else { self.kept(phase.path.raw()) };
                let first = PhaseTally { first: phase.number, ..PhaseTally::default() };
                self.tallies.entry(path.to_owned()).or_insert(first).times += 1;
            }
            Step::Ended(_) => {}
            Step::Ignored => self.ignored += 1,
            Step::Event => self.events += 1,
        }
    }

    /// The entry of a path that has begun.
    fn kept<'a>(&self, path: &'a str) -> &'a str {
        if self.tallies.contains_key(path) { path } else { EVICTED }
    }

    /// In the order of first beginning.
    pub fn tallies(&self) -> Vec<(&str, &PhaseTally)> {
        let mut tallies: Vec<_> = self.tallies.iter().map(|(path, tally)| (path.as_str(), tally)).collect();
        tallies.sort_by_key(|(_, tally)| tally.first);
        tallies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::{MarkFrom, MarkKind},
        model::units::MonotonicNs,
    };

    /// Windows of a second, each with what was said a millisecond before its end: `+name`, `-name` or `!name`.
    fn totals(windows: &[&[&str]]) -> PhaseTotals {
        let mut totals = PhaseTotals::default();
        for (second, said) in (0..).zip(windows) {
            let start = MonotonicNs(second * 1_000_000_000);
            let mark = |text: &&str| Mark {
                at: MonotonicNs(start.0 + 999_000_000),
                kind: match text.as_bytes()[0] {
                    b'+' => MarkKind::Begin,
                    b'-' => MarkKind::End,
                    _ => MarkKind::Event,
                },
                name: Some(text[1..].into()),
                attributes: None,
                pid: None,
                from: MarkFrom::Pipe,
            };
            let mut report = WindowReport { start, length_ns: 1_000_000_000, ..WindowReport::default() };
            report.marks = said.iter().map(mark).collect();
            report.cpu.target_ns = 1 << second;
            totals.window(&report);
        }
        totals
    }

    fn shown(totals: &PhaseTotals) -> Vec<(&str, u64, u64, u64)> {
        let figures = |(path, tally): (_, &PhaseTally)| (path, tally.times, tally.windows, tally.cpu_ns);
        totals.tallies().into_iter().map(figures).collect()
    }

    #[test]
    fn a_phase_has_the_windows_after_its_begin_up_to_its_end() {
        let run =
            totals(&[&["+load"], &["+parse"], &["-parse", "!gc"], &["-load", "+serve"], &["-serve", "-serve"], &[]]);
        assert_eq!(shown(&run), [("load", 1, 3, 0b1110), ("load/parse", 1, 1, 0b100), ("serve", 1, 1, 0b1_0000)]);
        assert_eq!((run.ignored, run.events), (1, 1));
        assert_eq!((run.delays.cuts, run.delays.mean_ns(), run.delays.longest_ns), (7, 1_000_000, 1_000_000));
    }

    #[test]
    fn phases_repeat_and_may_never_end() {
        let run = totals(&[&["+a"], &["-a"], &[], &["+a"], &[]]);
        assert_eq!(shown(&run), [("a", 2, 2, 0b1_0010)]);
        assert_eq!(shown(&totals(&[&["+a", "-a"], &[]])), [("a", 1, 0, 0)], "begun and ended at the same cut");
    }

    #[test]
    fn names_without_end_share_an_entry_and_windows_count_once() {
        let names: Vec<String> = (0..3000).flat_map(|index| [format!("+{index}"), format!("-{index}")]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut run = totals(&[&names]);
        assert_eq!(run.tallies.len(), MAX_PHASES + 1);
        assert_eq!(run.tallies[EVICTED].times, 3000 - 1024);
        let open = ["x", "y"].map(|name| Mark {
            at: MonotonicNs(0),
            kind: MarkKind::Begin,
            name: Some(name.into()),
            attributes: None,
            pid: None,
            from: MarkFrom::Pipe,
        });
        run.window(&WindowReport { marks: open.to_vec(), ..WindowReport::default() });
        run.window(&WindowReport::default());
        assert_eq!(run.tallies[EVICTED].windows, 1);
    }
}
