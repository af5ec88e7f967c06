//! Reads how often a process has gone to sleep and been woken: voluntary context switches of its threads.

use std::fs;

use anyhow::{Context as _, Result};

/// Of all its threads, since they began.
pub fn voluntary(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("listing threads of {pid}"))? {
        // A thread may end between listing and reading.
        let Ok(text) = fs::read_to_string(entry?.path().join("status")) else { continue };
        let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += count.context("no count of switches")?.trim().parse::<u64>()?;
    }
    Ok(sum)
}
