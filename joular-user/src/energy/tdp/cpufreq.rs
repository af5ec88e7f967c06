//! Reads the frequencies that a CPU ran at, from `cpuN/cpufreq`.
//!
//! `stats/time_in_state` has a line `kHz time` per frequency, times in units of 10 ms since the
//! driver was loaded or the statistics were reset (Linux,
//! Documentation/cpu-freq/cpufreq-stats.rst). It counts whether the CPU was busy or not. Drivers
//! that choose frequencies by themselves (`intel_pstate`, `amd-pstate` in active mode) have no such
//! table, only `scaling_cur_freq`, the frequency at this moment.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::options::MOST_KHZ;
use crate::energy::powercap::counter_file::read_number;

/// sysfs shows at most a page, which is 64 KiB at the most.
const MAX_BYTES: u64 = 64 * 1024;

/// What is known of a machine's frequencies, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// How long each was used since the last look.
    TimeInState,
    /// Which one is used at the moment of looking.
    Now,
    /// Nothing.
    None,
}

/// One CPU's frequencies.
#[derive(Debug)]
pub struct Frequencies {
    directory: PathBuf,
    /// Times at the last look, by frequency in the file's order.
    last: Vec<(u64, u64)>,
}

impl Frequencies {
    /// Looks for the first time.
    pub fn new(cpu: &Path) -> Self {
        let directory = cpu.join("cpufreq");
        let last = read_times(&directory).unwrap_or_default();
        Self { directory, last }
    }

    pub fn knowledge(&self) -> Knowledge {
        if !self.last.is_empty() {
            return Knowledge::TimeInState;
        }
        if self.now_khz().is_ok() { Knowledge::Now } else { Knowledge::None }
    }

    /// The mean of `figure` over the frequencies since the last look, weighted by their times. If
    /// no time has passed on the statistics' clock, or they were reset, or there are none, it is
    /// the figure of the frequency now.
    ///
    /// # Errors
    /// If neither can be read, as when the CPU was taken offline.
    pub fn mean(&mut self, figure: impl Fn(u64) -> u64) -> io::Result<u64> {
        let times = read_times(&self.directory).unwrap_or_default();
        let passed = differences(&self.last, &times);
        self.last = times;
        match weighted(&passed.unwrap_or_default(), &figure) {
            Some(mean) => Ok(mean),
            None => self.now_khz().map(figure),
        }
    }

    fn now_khz(&self) -> io::Result<u64> {
        read_khz(&self.directory.join("scaling_cur_freq"))
    }

    /// The frequency that the manufacturer rates the CPU at, or its highest, kHz.
    pub fn rated_khz(&self) -> Option<u64> {
        ["base_frequency", "cpuinfo_max_freq"].iter().find_map(|name| read_khz(&self.directory.join(name)).ok())
    }

    /// Where they are read from, for messages.
    pub fn place(&self) -> std::path::Display<'_> {
        self.directory.display()
    }
}

/// A frequency, kHz.
fn read_khz(path: &Path) -> io::Result<u64> {
    let khz = read_number(path)?;
    let is_frequency = (1..=MOST_KHZ).contains(&khz);
    is_frequency.then_some(khz).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a frequency"))
}

fn read_times(directory: &Path) -> Option<Vec<(u64, u64)>> {
    let mut text = String::new();
    let file = File::open(directory.join("stats/time_in_state")).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    parse_times(&text)
}

/// The lines of `time_in_state`; `None` if any is not `kHz time`.
fn parse_times(text: &str) -> Option<Vec<(u64, u64)>> {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (khz, time) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (fields.next().is_none() && (1..=MOST_KHZ).contains(&khz)).then_some((khz, time))
    };
    text.lines().map(line).collect()
}

/// Time in each state between two looks; `None` if the states are others or a
/// time went backwards.
fn differences(before: &[(u64, u64)], after: &[(u64, u64)]) -> Option<Vec<(u64, u64)>> {
    let difference = |((before_khz, before), (khz, time)): (&(u64, u64), &(u64, u64))| {
        (before_khz == khz).then_some(())?;
        Some((*khz, time.checked_sub(*before)?))
    };
    (before.len() == after.len()).then(|| before.iter().zip(after).map(difference).collect()).flatten()
}

/// The mean, rounded down; `None` if all weights are 0.
fn weighted(times: &[(u64, u64)], figure: impl Fn(u64) -> u64) -> Option<u64> {
    let sum = |of: &dyn Fn(u64) -> u128| {
        times.iter().fold(0_u128, |sum, (khz, time)| sum.saturating_add(of(*khz).saturating_mul(u128::from(*time))))
    };
    let weight = sum(&|_| 1);
    u64::try_from(sum(&|khz| figure(khz).into()).checked_div(weight)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::meter_files::fake::FakeTree;

    #[test]
    fn times_are_pairs_of_numbers() {
        for (text, expected) in [
            ("800000 12\n2400000 0\n", Some(vec![(800_000, 12), (2_400_000, 0)])),
            ("", Some(vec![])),
            ("800000\n", None),
            ("800000 1 2\n", None),
            ("0 1\n", None),
            ("100000001 1\n", None),
            ("800000 -1\n", None),
            ("MHz time\n", None),
        ] {
            assert_eq!(parse_times(text), expected, "{text:?}");
        }
    }

    #[test]
    fn figures_are_weighted_by_the_time_since_the_last_look() {
        let tree = FakeTree::new(&["cpufreq/stats/time_in_state=1000 100\n3000 100", "cpufreq/scaling_cur_freq=7"]);
        let mut cpu = Frequencies::new(tree.root());
        assert_eq!(cpu.knowledge(), Knowledge::TimeInState);
        for (times, expected, why) in [
            ("1000 110\n3000 130", 2_500, "10 at 1000, 30 at 3000"),
            ("1000 110\n3000 131", 3_000, "all at 3000"),
            ("1000 110\n3000 131", 7, "no time passed: the frequency now"),
            ("1000 0\n3000 5", 7, "the statistics were reset"),
            ("1000 4\n3000 5", 1_000, "and go on"),
            ("1000 4\n2000 9\n3000 5", 7, "other states"),
            ("garbage", 7, "not a table"),
            ("1000 18446744073709551615\n3000 1", 7, "a table again"),
        ] {
            tree.set("cpufreq/stats/time_in_state", times);
            assert_eq!(cpu.mean(|khz| khz).unwrap(), expected, "{why}");
        }
    }

    #[test]
    fn without_statistics_the_frequency_now_counts() {
        let tree = FakeTree::new(&["cpufreq/scaling_cur_freq=1200000"]);
        let mut cpu = Frequencies::new(tree.root());
        assert_eq!(cpu.knowledge(), Knowledge::Now);
        assert_eq!(cpu.mean(|khz| khz * 2).unwrap(), 2_400_000);
        tree.set("cpufreq/scaling_cur_freq", "<unknown>");
        assert_eq!(cpu.mean(|khz| khz).unwrap_err().kind(), io::ErrorKind::InvalidData);
        tree.remove("cpufreq/scaling_cur_freq");
        assert_eq!(cpu.mean(|khz| khz).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(Frequencies::new(tree.root()).knowledge(), Knowledge::None);
    }

    #[test]
    fn the_rated_frequency_is_the_base_or_else_the_highest() {
        let tree = FakeTree::new(&["cpufreq/cpuinfo_max_freq=3000000"]);
        assert_eq!(Frequencies::new(tree.root()).rated_khz(), Some(3_000_000));
        tree.set("cpufreq/base_frequency", "2000000");
        assert_eq!(Frequencies::new(tree.root()).rated_khz(), Some(2_000_000));
        tree.set("cpufreq/base_frequency", "0");
        assert_eq!(Frequencies::new(tree.root()).rated_khz(), Some(3_000_000));
    }

    proptest::proptest! {
        #[test]
        fn a_mean_lies_among_the_figures(times in proptest::collection::vec((1_u64..1000, 0_u64..), 0..9)) {
            match weighted(&times, |khz| khz) {
                Some(mean) => {
                    let used = || times.iter().filter(|(_, time)| *time > 0).map(|(khz, _)| *khz);
                    proptest::prop_assert!(used().min() <= Some(mean) && Some(mean) <= used().max());
                }
                None => proptest::prop_assert!(times.iter().all(|(_, time)| *time == 0)),
            }
        }

        #[test]
        fn no_text_panics(text in "([0-9]{1,10} [0-9]{1,21}\\n){0,5}|.{0,40}") {
            let _ = parse_times(&text).and_then(|times| differences(&times, &times));
        }
    }
}
