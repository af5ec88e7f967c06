//! How long it takes to read a data set as every report does: `read_profile DIR`
//! prints seconds, peak memory in KiB, and what was read.

#![allow(clippy::print_stdout, reason = "figures are what it is for")]

use std::{env, fs, path::Path, time::Instant};

use anyhow::{Context as _, Result};
use joular_data::report::profile::{Filter, Profile};

fn main() -> Result<()> {
    let directory = env::args().nth(1).context("usage: read_profile DIR")?;
    let start = Instant::now();
    let profile = Profile::read(Path::new(&directory), &Filter::default(), None)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let peak = peak.trim().trim_end_matches(" kB");
    let (entries, energy) = (profile.entries.len(), profile.energy().0);
    println!("{seconds:.4} {peak} {entries} entries, {} paths, {energy} µJ", profile.catalog.paths.len());
    Ok(())
}
