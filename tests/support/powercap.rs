//! A tree as `/sys/class/powercap` has it, with counters that advance by known
//! watts in step with the machine's CPU use.
//!
//! Package 0 draws `idle` watts always and `per_cpu` watts for every busy CPU;
//! any other package draws `idle` only. CPU use is what `/proc/stat` does not
//! call idle: the kernel keeps idle time exactly, in steps of 10 ms on reading.
//! Each written value is logged with its moment, so that a test can demand that
//! what the profiler measured is, to the microjoule, a difference of two values
//! that were really there.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use tempfile::TempDir;

use crate::clock::{monotonic_ns, unix_us};

/// How often counters advance.
pub const STEP: Duration = Duration::from_millis(5);

/// Where counters wrap, as on many real machines.
const RANGE_UJ: u64 = 262_143_328_850;

#[derive(Clone, Copy)]
pub struct Watts {
    pub idle: u64,
    pub per_cpu: u64,
}

/// One value of package 0's counter, and when it was written.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub wall_us: i64,
    pub energy_uj: u64,
}

/// The tree; advancing until dropped.
pub struct FakePowercap {
    root: TempDir,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<Result<Vec<Entry>>>>,
}

impl FakePowercap {
    pub fn start(packages: u32, watts: Watts) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let counters = (0..packages).map(|package| create_zone(root.path(), package)).collect::<Result<Vec<_>>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let writer = thread::spawn(move || advance(&counters, watts, &theirs));
        Ok(Self { root, stop, writer: Some(writer) })
    }

    /// For `--powercap-root`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Stops it and returns all values of package 0.
    pub fn finish(mut self) -> Result<Vec<Entry>> {
        self.join().unwrap_or_else(|| Err(anyhow!("the counters were stopped already")))
    }

    fn join(&mut self) -> Option<Result<Vec<Entry>>> {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.writer.take()?.join();
        Some(result.unwrap_or_else(|_| Err(anyhow!("the thread that advances counters panicked"))))
    }
}

impl Drop for FakePowercap {
    fn drop(&mut self) {
        // An error matters to those who ask for the log.
        let _log = self.join();
    }
}

fn create_zone(root: &Path, package: u32) -> Result<File> {
    let zone = root.join(format!("intel-rapl:{package}"));
    fs::create_dir(&zone).with_context(|| format!("creating {}", zone.display()))?;
    fs::write(zone.join("name"), format!("package-{package}\n"))?;
    fs::write(zone.join("enabled"), "1\n")?;
    fs::write(zone.join("max_energy_range_uj"), format!("{RANGE_UJ}\n"))?;
    let counter = File::create(zone.join("energy_uj"))?;
    write(&counter, 0)?;
    Ok(counter)
}

/// In place and always as wide, so that a reader never meets an empty file.
fn write(counter: &File, energy_uj: u64) -> Result<()> {
    counter.write_all_at(format!("{energy_uj:020}\n").as_bytes(), 0).context("advancing a counter")
}

fn advance(counters: &[File], watts: Watts, stop: &AtomicBool) -> Result<Vec<Entry>> {
    let start = monotonic_ns();
    let idle_start = idle_us()?;
    let cpus = thread::available_parallelism()?.get() as u64;
    let mut log = Vec::new();
    let mut busy_us = 0;
    while !stop.load(Ordering::Relaxed) {
        let elapsed_us = (monotonic_ns() - start) / 1000;
        // Idle time comes in steps: what looked busy may turn out idle later.
        busy_us = busy_us.max((cpus * elapsed_us).saturating_sub(idle_us()? - idle_start));
        for (package, counter) in counters.iter().enumerate() {
            let dynamic_uj = if package == 0 { watts.per_cpu * busy_us } else { 0 };
            let energy_uj = 1_000_000 + watts.idle * elapsed_us + dynamic_uj;
            write(counter, energy_uj)?;
            if package == 0 {
                log.push(Entry { wall_us: unix_us(), energy_uj });
            }
        }
        thread::sleep(STEP);
    }
    Ok(log)
}

/// Idle time of all CPUs so far: fields idle and iowait of `/proc/stat`.
fn idle_us() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let ticks = line.split_whitespace().skip(4).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>();
    Ok(ticks.context("/proc/stat: idle time is not a number")? * 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_advance_at_least_by_idle_watts_and_never_step_back() -> Result<()> {
        let fake = FakePowercap::start(2, Watts { idle: 7, per_cpu: 11 })?;
        thread::sleep(Duration::from_millis(300));
        let second = fs::read_to_string(fake.root().join("intel-rapl:1/energy_uj"))?;
        assert_eq!(second.len(), 21, "always as wide");
        let log = fake.finish()?;
        assert!(log.len() > 20, "{} values in 300 ms", log.len());
        assert!(log.windows(2).all(|pair| pair[0].energy_uj < pair[1].energy_uj), "strictly increasing");
        let (first, last) = (log[0], log[log.len() - 1]);
        let elapsed_us = (last.wall_us - first.wall_us) as u64;
        let idle_uj = 7 * elapsed_us;
        let energy_uj = last.energy_uj - first.energy_uj;
        // The clocks of value and entry are read microseconds apart.
        assert!(energy_uj * 100 >= idle_uj * 99, "{energy_uj} µJ in {elapsed_us} µs");
        Ok(())
    }
}
