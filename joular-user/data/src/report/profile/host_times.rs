//! Computes how long hosts were recorded. Hosts run side by side, and runs of one host one after
//! the other. Where two runs of a host overlap, the time counts once, and the overlap is reported,
//! because the machine's energy is in the rows of both.

use std::collections::BTreeMap;

use crate::model::units::UnixMicros;

/// A run's windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    /// First window's start and last window's end; `None` without windows.
    pub span: Option<(UnixMicros, UnixMicros)>,
    pub length_ns: u64,
    /// Time of all CPUs, whether they were busy or not.
    pub cpu_ns: u64,
}

impl RunTime {
    pub(super) fn add(&mut self, start: UnixMicros, length_ns: u64) {
        let end = UnixMicros(start.0.saturating_add(i64::try_from(length_ns / 1000).unwrap_or(i64::MAX)));
        self.span = Some(self.span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        self.length_ns = self.length_ns.saturating_add(length_ns);
    }

    pub(super) fn add_cpus(&mut self, cpu_ns: u64) {
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
    }
}

/// By what tells hosts apart.
#[derive(Debug)]
pub(super) struct HostTimes<K> {
    runs: BTreeMap<K, Vec<RunTime>>,
}

impl<K> Default for HostTimes<K> {
    fn default() -> Self {
        Self { runs: BTreeMap::new() }
    }
}

impl<K: Ord> HostTimes<K> {
    pub(super) fn add(&mut self, host: K, run: RunTime) {
        self.runs.entry(host).or_default().push(run);
    }

    /// First window's start and last window's end of all.
    pub(super) fn span(&self) -> Option<(UnixMicros, UnixMicros)> {
        let spans = self.runs.values().flatten().filter_map(|run| run.span);
        spans.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)))
    }

    /// Time of the host that was recorded longest, in ns.
    pub(super) fn longest_ns(&self) -> u64 {
        let host_ns = |runs: &Vec<RunTime>| {
            let sum = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.length_ns));
            sum.saturating_sub(overlap_ns(runs))
        };
        self.runs.values().map(host_ns).max().unwrap_or(0)
    }

    /// Time in which several runs recorded the same host, in ns.
    pub(super) fn overlap_ns(&self) -> u64 {
        self.runs.values().map(|runs| overlap_ns(runs)).fold(0, u64::saturating_add)
    }
}

/// How far the runs' spans overlap those before them. A run may start as another ends, and times in
/// µs are rounded, so less than that counts as none.
fn overlap_ns(runs: &[RunTime]) -> u64 {
    const ROUNDING_US: i64 = 1000;
    let mut spans: Vec<_> = runs.iter().filter_map(|run| run.span).collect();
    spans.sort_unstable();
    let mut covered_until = UnixMicros(i64::MIN);
    let mut overlap_us = 0_i64;
    for (start, end) in spans {
        let common = covered_until.min(end).0.saturating_sub(start.0);
        if common > ROUNDING_US {
            overlap_us = overlap_us.saturating_add(common);
        }
        covered_until = covered_until.max(end);
    }
    overlap_us.unsigned_abs().saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(from_s: i64, to_s: i64) -> RunTime {
        let mut time = RunTime::default();
        for second in from_s..to_s {
            time.add(UnixMicros(second * 1_000_000), 1_000_000_000);
        }
        time
    }

    /// Seconds of the longest host, and recorded more than once.
    fn seconds(runs: &[(&str, RunTime)]) -> (u64, u64) {
        let mut times = HostTimes::default();
        runs.iter().for_each(|(host, run)| times.add(host, *run));
        (times.longest_ns() / 1_000_000_000, times.overlap_ns() / 1_000_000_000)
    }

    #[test]
    fn hosts_run_side_by_side_and_runs_one_after_the_other() {
        assert_eq!(seconds(&[]), (0, 0));
        assert_eq!(seconds(&[("a", run(0, 10)), ("b", run(0, 7))]), (10, 0));
        assert_eq!(seconds(&[("a", run(0, 10)), ("a", run(10, 30)), ("b", run(5, 25))]), (30, 0));
        assert_eq!(seconds(&[("a", run(0, 10)), ("a", run(100, 110))]), (20, 0));
    }

    #[test]
    fn time_that_was_recorded_twice_counts_once() {
        assert_eq!(seconds(&[("a", run(0, 10)), ("a", run(4, 14))]), (14, 6));
        assert_eq!(seconds(&[("a", run(4, 6)), ("a", run(0, 10))]), (10, 2));
        assert_eq!(seconds(&[("a", run(0, 10)), ("a", run(0, 10)), ("a", run(0, 10))]), (10, 20));
        assert_eq!(seconds(&[("a", run(0, 10)), ("b", run(4, 14))]), (10, 0), "other hosts have other energy");
    }

    #[test]
    fn a_run_without_windows_has_no_span() {
        let mut times = HostTimes::default();
        times.add("a", RunTime::default());
        assert_eq!((times.span(), times.longest_ns(), times.overlap_ns()), (None, 0, 0));
        times.add("a", run(3, 5));
        assert_eq!(times.span(), Some((UnixMicros(3_000_000), UnixMicros(5_000_000))));
    }
}
