//! Reads from a data set what its meters said: the power of each span of windows.
//!
//! A span is one window, or as many as a slower meter needs. It never ends in a window whose read
//! failed, because that window's energy comes with a later one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::ValidateError;
use crate::{
    dataset::{
        error::Result as DataResult,
        read::{
            decode_ahead,
            files::{self, RunFiles},
            marks::{self, PhaseWindows},
            run_row::RunRow,
            span::Span as TimeSpan,
        },
        store::{self, StoredFile},
        tables::{Marks, Windows, context, shared, windows},
    },
    events::RunInfo,
    model::{
        domain::{Label, Role},
        target_text::TargetText,
        units::UnixMicros,
    },
    report::profile::{Filter, Run},
};

/// Two windows are neighbours if this much, or less, is between them: wall-clock time is adjusted in
/// small steps. What a mark leaves of a window may be that short, too.
const MOST_BETWEEN_US: u64 = 100_000;

/// Energy of some windows that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// By the recorded machine's clock, µs since 1970.
    pub start_us: i64,
    pub end_us: i64,
    pub energy_uj: u64,
    pub windows: u64,
    /// Index into [`Recorded::phases`]; `None`: it has windows of several phases.
    pub phase: Option<usize>,
    /// How often the run had been in that phase before.
    pub visit: usize,
    /// Which run it is of.
    pub run: usize,
    /// CPU time in which something ran, and CPU time there was, all CPUs together.
    pub busy_ns: u64,
    pub cpu_ns: u64,
}

impl Span {
    #[allow(clippy::cast_precision_loss, reason = "for a fit")]
    pub fn watts(&self) -> f64 {
        self.energy_uj as f64 / self.us()
    }

    /// The use of all CPUs together, 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "for a fit")]
    pub fn cpu_use(&self) -> f64 {
        self.busy_ns as f64 / self.cpu_ns.max(1) as f64
    }

    /// Its length.
    #[allow(clippy::cast_precision_loss, reason = "for a fit")]
    pub fn us(&self) -> f64 {
        (self.end_us - self.start_us).max(1) as f64
    }

    /// Whether all of it is in the phase of a window.
    fn is_in(&self, window: &Window) -> bool {
        (self.phase, self.visit) == (Some(window.phase.0), window.phase.1)
    }

    /// Whether the other one follows at once.
    pub const fn is_before(&self, other: &Self) -> bool {
        other.start_us.abs_diff(self.end_us) <= MOST_BETWEEN_US
    }
}

/// What a data set has of the windows of one host.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// By run, each by time.
    runs: Vec<BTreeMap<i64, Window>>,
    pub hosts: BTreeSet<TargetText>,
    /// Domains that are summed, with their sources.
    pub domains: BTreeSet<(String, String)>,
    /// Domains that the data set has and that are not summed.
    pub left_out: BTreeSet<String>,
    /// The weakest label of the domains.
    pub label: Option<Label>,
    /// Paths of phases. The first one is for windows that are in none.
    pub phases: Vec<TargetText>,
    /// Of the runs, in their order.
    pub infos: Vec<RunInfo>,
}

/// The runs that a filter allows, with their files.
///
/// # Errors
/// If a file cannot be read or is damaged.
pub fn allowed(root: &Path, filter: &Filter) -> DataResult<Vec<(Run, RunFiles)>> {
    let read = |(row, files): (RunRow, RunFiles)| {
        let marks: Vec<StoredFile> = files.parts.iter().filter_map(|(_, part)| part.file::<Marks>().cloned()).collect();
        Ok((
            Run { info: row.info, end: row.end.map(|(end, _)| end), phases: marks::read(&marks)?, ..Run::default() },
            files,
        ))
    };
    let found = files::find_with_rows(&store::open(root)?)?;
    let mut runs = found.into_iter().map(read).collect::<DataResult<Vec<_>>>()?;
    filter.keep_runs(&mut runs);
    Ok(runs)
}

/// The domains of a window together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    length_ns: u64,
    energy_uj: u64,
    /// Some energy comes with a later window.
    is_late: bool,
    /// Some energy is not certain.
    is_uncertain: bool,
    /// Index into [`Recorded::phases`], and how often the run had been in that phase before.
    phase: (usize, usize),
    millicelsius: Option<i64>,
    busy_ns: u64,
    cpu_ns: u64,
}

impl Window {
    fn end_us(&self, start_us: i64) -> i64 {
        start_us.saturating_add(i64::try_from(self.length_ns / 1_000).unwrap_or(i64::MAX))
    }
}

impl Recorded {
    /// Reads the windows of runs that `filter` allows, and sums their domains: all, or those named.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, there are several hosts, or no such domain.
    pub fn read(runs: &[(Run, RunFiles)], filter: &Filter, domains: &[String]) -> Result<Self, ValidateError> {
        let mut recorded = Self { phases: vec![TargetText::default()], ..Self::default() };
        for (run, files) in runs {
            recorded.hosts.insert(run.info.host.clone());
            recorded.read_run(run, files, filter.span(run), domains)?;
            recorded.infos.push(run.info.clone());
        }
        if recorded.hosts.len() > 1 {
            return Err(ValidateError::Hosts(
                recorded.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            ));
        }
        if recorded.domains.is_empty() {
            let known = recorded.left_out.into_iter().collect::<Vec<_>>().join(", ");
            return Err(ValidateError::NoDomain { known });
        }
        Ok(recorded)
    }

    fn read_run(&mut self, run: &Run, files: &RunFiles, span: TimeSpan, domains: &[String]) -> DataResult<()> {
        let mut of_run: BTreeMap<i64, Window> = BTreeMap::new();
        let parts: Vec<StoredFile> =
            files.parts.iter().filter_map(|(_, part)| part.file::<Windows>()).cloned().collect();
        decode_ahead::batches(&parts, &span, |columns| {
            let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
            let (names, sources) = (columns.names(windows::DOMAIN)?, columns.names(windows::SOURCE)?);
            let energies = columns.ints(windows::MEASURED_UJ)?;
            let (failed, uncertain) = (columns.flags(windows::READ_FAILED)?, columns.flags(windows::AMBIGUOUS)?);
            let temperatures = columns.ints(context::TEMPERATURE_MILLICELSIUS)?;
            let (busy, unslotted) = (columns.ints(windows::CPU_BUSY_NS)?, columns.ints(windows::CPU_UNSLOTTED_NS)?);
            let elapsed = columns.ints(windows::CPU_ELAPSED_NS)?;
            for row in 0..columns.rows() {
                let start = UnixMicros(starts.get(row)?);
                let Some(name) = names.maybe(row)?.filter(|_| span.allows(start)) else { continue };
                if !domains.is_empty() && !domains.iter().any(|domain| domain == name) {
                    self.left_out.insert(name.to_owned());
                    continue;
                }
                self.domains.insert((name.to_owned(), sources.maybe(row)?.unwrap_or_default().to_owned()));
                let window = of_run.entry(start.0).or_default();
                window.millicelsius = temperatures.maybe(row);
                window.busy_ns = busy.natural::<u64>(row)?.saturating_add(unslotted.natural(row)?);
                window.cpu_ns = elapsed.natural(row)?;
                window.length_ns = lengths.natural(row)?;
                window.energy_uj = window.energy_uj.saturating_add(energies.natural(row)?);
                window.is_late |= failed.maybe(row) == Some(true);
                window.is_uncertain |= uncertain.maybe(row) == Some(true);
            }
            Ok(())
        })?;
        let counted = run.info.domains.iter().filter(|domain| matches!(domain.role, Role::Shared | Role::Unshared));
        let summed = counted.filter(|domain| domains.is_empty() || domains.contains(&domain.name));
        self.label = self.label.max(summed.map(|domain| domain.label).max());
        self.set_phases(&run.phases, &mut of_run);
        self.runs.push(of_run);
        Ok(())
    }

    /// Sets the phase of each window, the inner one if there are several. `phases` are in the order of beginning.
    fn set_phases(&mut self, phases: &[PhaseWindows], windows: &mut BTreeMap<i64, Window>) {
        let known = self.phases.iter().enumerate().map(|(number, path)| (path.clone(), (number, 0)));
        // With how often the run has been in it.
        let mut numbers: BTreeMap<TargetText, (usize, usize)> = known.collect();
        let (mut open, mut to_come) = (Vec::new(), phases.iter().peekable());
        for (start, window) in windows {
            let start = UnixMicros(*start);
            while let Some(phase) = to_come.next_if(|phase| phase.after < start) {
                let (number, visits) = numbers.entry(phase.path.clone()).or_insert_with(|| {
                    self.phases.push(phase.path.clone());
                    (self.phases.len() - 1, 0)
                });
                open.push((phase, (*number, *visits)));
                *visits += 1;
            }
            open.retain(|(phase, _)| phase.has(start));
            let inner = open.iter().max_by_key(|(phase, _)| phase.path.raw().len());
            window.phase = inner.map_or((0, 0), |(_, of_window)| *of_window);
        }
    }

    /// Of the hottest processor in each window that has one, °C.
    #[allow(clippy::cast_precision_loss, reason = "temperatures in thousandths of a degree")]
    pub fn temperatures(&self) -> impl Iterator<Item = f64> {
        let windows = self.runs.iter().flat_map(BTreeMap::values);
        windows.filter_map(|window| window.millicelsius).map(|thousandths| thousandths as f64 / 1e3)
    }

    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Start of the first window and end of the last one.
    pub fn span_us(&self) -> Option<(i64, i64)> {
        let ends = self.runs.iter().flat_map(|run| run.iter().map(|(start_us, window)| window.end_us(*start_us)));
        Some((self.runs.iter().filter_map(|run| run.keys().next()).min().copied()?, ends.max()?))
    }

    /// All windows.
    pub fn windows(&self) -> u64 {
        self.runs.iter().map(|run| run.len() as u64).sum()
    }

    /// Spans of at least `least_us`, each of whole windows. Windows whose energy is not certain are in
    /// none, nor are those at a run's end whose energy never came or that make no whole span, nor the few milliseconds that a
    /// mark leaves of a phase's last window: a span with these would be of no phase.
    pub fn spans(&self, least_us: i64) -> Vec<Span> {
        let mut spans = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            let mut open: Option<Span> = None;
            // Whether energy is to come that belongs to no open span.
            let (mut is_owed, mut was_late) = (false, false);
            for (start_us, window) in run {
                if open.is_some_and(|span| start_us.abs_diff(span.end_us) > MOST_BETWEEN_US) {
                    is_owed |= was_late;
                    open = None;
                }
                let is_rest =
                    |span: &Span| !span.is_in(window) && span.end_us.abs_diff(span.start_us) <= MOST_BETWEEN_US;
                if !was_late && open.as_ref().is_some_and(is_rest) {
                    open = None;
                }
                was_late = window.is_late;
                if window.is_uncertain || is_owed {
                    is_owed = window.is_late;
                    open = None;
                    continue;
                }
                let (phase, visit) = (Some(window.phase.0), window.phase.1);
                let (start_us, run) = (*start_us, number);
                let (end_us, energy_uj, windows, busy_ns, cpu_ns) = (start_us, 0, 0, 0, 0);
                let new = Span { start_us, end_us, energy_uj, windows, phase, visit, run, busy_ns, cpu_ns };
                let mut span = open.take().unwrap_or(new);
                span.phase = span.phase.filter(|_| span.is_in(window));
                span.end_us = window.end_us(start_us);
                span.energy_uj = span.energy_uj.saturating_add(window.energy_uj);
                span.windows += 1;
                span.busy_ns = span.busy_ns.saturating_add(window.busy_ns);
                span.cpu_ns = span.cpu_ns.saturating_add(window.cpu_ns);
                if !window.is_late && span.end_us - span.start_us >= least_us {
                    spans.push(span);
                } else {
                    open = Some(span);
                }
            }
        }
        spans
    }
}

#[cfg(test)]
impl Recorded {
    /// A run of a package, with windows of a second: µJ by start, and the number of the window's phase.
    pub fn of_seconds(windows: BTreeMap<i64, (u64, usize)>, phases: &[&str]) -> Self {
        let window =
            |(energy_uj, phase)| Window { length_ns: 1_000_000_000, energy_uj, phase: (phase, 0), ..Window::default() };
        Self {
            runs: vec![windows.into_iter().map(|(start_us, of)| (start_us, window(of))).collect()],
            phases: phases.iter().map(|phase| TargetText::from(*phase)).collect(),
            hosts: BTreeSet::from(["node-1".into()]),
            domains: BTreeSet::from([("package".to_owned(), "test".to_owned())]),
            label: Some(Label::Measured),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: (bool, bool) = (true, false);
    const UNCERTAIN: (bool, bool) = (false, true);
    const GOOD: (bool, bool) = (false, false);

    /// Windows of a second, one after the other, of 1 J each; what is late comes with the next.
    #[track_caller]
    fn check(windows: &[(bool, bool)], least_us: i64, expected: &[(i64, i64, u64)]) {
        let mut late = 0;
        let mut run = BTreeMap::new();
        for (second, (is_late, is_uncertain)) in (0_i64..).zip(windows) {
            let energy_uj = if *is_late { 0 } else { 1_000_000 + late };
            late = if *is_late { late + 1_000_000 } else { 0 };
            let (is_late, is_uncertain) = (*is_late, *is_uncertain);
            let window = Window { length_ns: 1_000_000_000, energy_uj, is_late, is_uncertain, ..Window::default() };
            run.insert(second * 1_000_000, window);
        }
        let recorded = Recorded { runs: vec![run], ..Recorded::default() };
        let found: Vec<_> = recorded.spans(least_us);
        let seconds: Vec<_> =
            found.iter().map(|span| (span.start_us / 1_000_000, span.end_us / 1_000_000, span.windows)).collect();
        assert_eq!(seconds, expected, "{windows:?} {least_us}");
        assert!(found.iter().all(|span| (span.watts() - 1.0).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn spans_are_whole_windows_of_certain_energy() {
        check(&[GOOD; 3], 0, &[(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
        check(&[GOOD; 5], 2_000_000, &[(0, 2, 2), (2, 4, 2)]);
        check(&[GOOD, LATE, LATE, GOOD, GOOD], 0, &[(0, 1, 1), (1, 4, 3), (4, 5, 1)]);
        check(&[GOOD, LATE], 0, &[(0, 1, 1)]);
        check(&[GOOD, LATE, UNCERTAIN, GOOD], 0, &[(0, 1, 1), (3, 4, 1)]);
        check(&[GOOD, UNCERTAIN, GOOD, GOOD], 2_000_000, &[(2, 4, 2)]);
    }

    #[test]
    fn a_span_is_of_the_phase_of_all_its_windows() {
        let windows = (0..6).zip([0, 0, 1, 1, 1, 0]).map(|(second, phase)| (second * 1_000_000, (1_000_000, phase)));
        let recorded = Recorded::of_seconds(windows.collect(), &["", "compute"]);
        let phases = |least_us| recorded.spans(least_us).iter().map(|span| span.phase).collect::<Vec<_>>();
        assert_eq!(phases(0), [0, 0, 1, 1, 1, 0].map(Some));
        assert_eq!(phases(2_000_000), [Some(0), Some(1), None]);
        assert_eq!(phases(3_000_000), [None; 2]);
    }

    #[test]
    fn what_a_mark_leaves_of_a_window_joins_no_span_of_the_next_phase() {
        let lengths_ms = [(1_000, 1), (1_000, 1), (20, 1), (1_000, 2), (1_000, 2), (150, 2), (1_000, 3), (1_000, 3)];
        let (mut run, mut start_us) = (BTreeMap::new(), 0);
        for (length_ms, phase) in lengths_ms {
            let length_ns = length_ms * 1_000_000;
            run.insert(
                start_us,
                Window { length_ns, energy_uj: length_ms * 1_000, phase: (phase, 0), ..Window::default() },
            );
            start_us = run[&start_us].end_us(start_us);
        }
        let spans = |run| Recorded { runs: vec![run], ..Recorded::default() }.spans(2_000_000);
        let of = |spans: Vec<Span>| spans.iter().map(|span| (span.windows, span.phase)).collect::<Vec<_>>();
        // 150 ms are energy that a fit of the whole run would miss.
        assert_eq!(of(spans(run.clone())), [(2, Some(1)), (2, Some(2)), (3, None)]);
        // Some of the energy of the 20 ms comes with the window after them.
        run.entry(2_000_000).and_modify(|window| window.is_late = true);
        assert_eq!(of(spans(run)), [(2, Some(1)), (3, None), (3, None)]);
    }

    #[test]
    fn energy_that_comes_after_a_pause_for_windows_before_it_is_in_no_span() {
        let window = |energy_uj, is_late| Window { length_ns: 1_000_000_000, energy_uj, is_late, ..Window::default() };
        let run = [(0, window(0, true)), (5, window(2_000_000, false)), (6, window(1_000_000, false))];
        let run = run.into_iter().map(|(second, window)| (second * 1_000_000, window)).collect();
        let spans = Recorded { runs: vec![run], ..Recorded::default() }.spans(0);
        assert_eq!(spans.iter().map(|span| span.start_us).collect::<Vec<_>>(), [6_000_000]);
    }
}
