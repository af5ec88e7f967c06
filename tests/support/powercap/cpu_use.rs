//! Reads for how long each CPU was busy, from `/proc/stat`.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

use crate::clock::monotonic_ns;

/// The unit of `/proc/stat` (`USER_HZ` is 100 on all that we run on).
const TICK_US: u64 = 10_000;

/// Busy time of each CPU since the start.
pub struct CpuUse {
    start_ns: u64,
    elapsed_us: u64,
    idle_start_us: BTreeMap<usize, u64>,
    busy_us: BTreeMap<usize, u64>,
}

impl CpuUse {
    pub fn start() -> Result<Self> {
        let start_ns = monotonic_ns();
        Ok(Self { start_ns, elapsed_us: 0, idle_start_us: idle_us()?, busy_us: BTreeMap::new() })
    }

    /// Reads the busy times again.
    pub fn advance(&mut self) -> Result<()> {
        self.elapsed_us = (monotonic_ns() - self.start_ns) / 1000;
        for (cpu, idle_us) in idle_us()? {
            let idle_us = idle_us.saturating_sub(self.idle_start_us.get(&cpu).copied().unwrap_or(0));
            // Idle time comes in steps: what looked busy may turn out idle later.
            let busy_us = self.busy_us.entry(cpu).or_default();
            *busy_us = (*busy_us).max(self.elapsed_us.saturating_sub(idle_us));
        }
        Ok(())
    }

    /// As of the last look.
    pub fn elapsed_us(&self) -> u64 {
        self.elapsed_us
    }

    /// Busy time of these CPUs together, never less than before.
    pub fn busy_us(&self, cpus: &[usize]) -> u64 {
        cpus.iter().filter_map(|cpu| self.busy_us.get(cpu)).sum()
    }
}

/// Idle time of each CPU so far: fields idle and iowait of its line.
fn idle_us() -> Result<BTreeMap<usize, u64>> {
    let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let mut idle_us = BTreeMap::new();
    for line in stat.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let mut words = line.split_whitespace();
        // The first line is of all CPUs and has no number.
        let Some(cpu) = words.next().filter(|_| !line.starts_with(' ')) else { continue };
        let ticks = words.skip(3).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>();
        let ticks = ticks.context("/proc/stat: idle time is not a number")?;
        idle_us.insert(cpu.parse().context("/proc/stat: a CPU has no number")?, ticks * TICK_US);
    }
    Ok(idle_us)
}
