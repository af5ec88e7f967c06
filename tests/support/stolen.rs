//! Reads the time that a hypervisor kept a CPU from running: eighth figure of its line of
//! `/proc/stat`, in hundredths of a second.
//!
//! The kernel subtracts it from the time of the thread that was on the CPU. A clock read before and
//! after does not, and the CPU was not idle. So a thread's time and energy may exceed what the
//! kernel's own account of it says by this much, and by no more than what any machine allows where
//! nothing was stolen.

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

/// Figures are of whole ticks: what is left of one at either end may be missing.
fn at_most(before: &BTreeMap<usize, u64>, after: &BTreeMap<usize, u64>, wanted: impl Fn(usize) -> bool) -> u64 {
    let of = |cpu| after.get(cpu).copied().unwrap_or(0).saturating_sub(before.get(cpu).copied().unwrap_or(0));
    let ticks = before.keys().filter(|cpu| wanted(**cpu)).map(of).filter(|ticks| *ticks > 0);
    ticks.map(|ticks| (ticks + 1) * TICK_NS).sum()
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
    fn only_what_was_stolen_of_the_cpu_counts_and_a_tick_more() -> Result<()> {
        let before = parse("cpu  9 9 9 9 9 9 9 7 0 0\ncpu0 9 9 9 9 9 9 9 5 0 0\ncpu1 9 9 9 9 9 9 9 2 0 0\nintr 1 2\n")?;
        let after = parse("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 9 9 9 9 9 9 9 5 0 0\ncpu1 9 9 9 9 9 9 9 4 0 0\nintr 1 2\n")?;
        assert_eq!(before, BTreeMap::from([(0, 5), (1, 2)]));
        assert_eq!(at_most(&before, &after, |cpu| cpu == 0), 0, "nothing was");
        assert_eq!(at_most(&before, &after, |cpu| cpu == 1), 3 * TICK_NS);
        assert_eq!(at_most(&before, &after, |_| true), 3 * TICK_NS);
        assert!(parse("cpu0 1 2 3").is_err());
        Ok(())
    }
}
