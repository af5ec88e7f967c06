//! Reads the time that a hypervisor kept a CPU from running: eighth figure of its line of
//! `/proc/stat`, in hundredths of a second.
//!
//! The kernel subtracts it from the time of the thread that was on the CPU. A clock read before and
//! after does not, and the CPU was not idle. So a thread's time and energy may exceed what the
//! kernel's own account of it says by this much. The kernel counts in nanoseconds and shows whole
//! hundredths, so a part of one may be missing. Only where a CPU's figure is zero since the start of
//! the machine is nothing missing: such a machine steals nothing.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

const TICK_NS: u64 = 10_000_000;

/// Time stolen of each CPU until a start.
pub struct Stolen(BTreeMap<usize, u64>);

impl Stolen {
    pub fn start() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        parse(&stat).map(Self)
    }

    /// Of one CPU since, at most.
    pub fn at_most_ns(&self, cpu: usize) -> Result<u64> {
        Ok(at_most(&self.0, &Self::start()?.0, |of| of == cpu))
    }

    /// Of all CPUs since, at most.
    pub fn of_all_at_most_ns(&self) -> Result<u64> {
        Ok(at_most(&self.0, &Self::start()?.0, |_| true))
    }
}

/// Figures are of whole ticks: up to one more may have passed, on a CPU of which anything was ever stolen.
fn at_most(before: &BTreeMap<usize, u64>, after: &BTreeMap<usize, u64>, wanted: impl Fn(usize) -> bool) -> u64 {
    let of = |cpu| {
        let now = after.get(cpu).copied().unwrap_or(0);
        if now == 0 { 0 } else { now.saturating_sub(before.get(cpu).copied().unwrap_or(0)) + 1 }
    };
    before.keys().filter(|cpu| wanted(**cpu)).map(of).sum::<u64>() * TICK_NS
}

fn parse(stat: &str) -> Result<BTreeMap<usize, u64>> {
    let mut ticks = BTreeMap::new();
    for line in stat.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let mut words = line.split_whitespace();
        // The first line is of all CPUs and has no number.
        let Some(cpu) = words.next().filter(|_| !line.starts_with(' ')) else { continue };
        let stolen = words.nth(7).with_context(|| format!("/proc/stat has no stolen time of CPU {cpu}"))?;
        let number = |text: &str| text.parse::<u64>().with_context(|| format!("/proc/stat says '{text}'"));
        ticks.insert(cpu.parse().context("/proc/stat: a CPU has no number")?, number(stolen)?);
    }
    Ok(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_of_the_cpu_counts_and_a_tick_more_unless_nothing_ever_was() -> Result<()> {
        let stat = |figures: [u64; 3]| {
            let line = |(cpu, stolen)| format!("cpu{cpu} 9 9 9 9 9 9 9 {stolen} 0 0\n");
            parse(&format!(
                "cpu  9 9 9 9 9 9 9 7 0 0\n{}intr 1 2\n",
                figures.iter().enumerate().map(line).collect::<String>()
            ))
        };
        let (before, after) = (stat([5, 2, 0])?, stat([5, 4, 0])?);
        assert_eq!(before, BTreeMap::from([(0, 5), (1, 2), (2, 0)]));
        assert_eq!(at_most(&before, &after, |cpu| cpu == 0), TICK_NS, "less than a tick does not show");
        assert_eq!(at_most(&before, &after, |cpu| cpu == 1), 3 * TICK_NS);
        assert_eq!(at_most(&before, &after, |cpu| cpu == 2), 0, "of this one nothing ever was");
        assert_eq!(at_most(&before, &after, |_| true), 4 * TICK_NS);
        assert_eq!(at_most(&before, &stat([5, 4, 1])?, |cpu| cpu == 2), 2 * TICK_NS);
        assert!(parse("cpu0 1 2 3").is_err());
        Ok(())
    }
}
