//! Fakes a tree as `/sys/class/powercap` has it, with counters that advance by known watts in step
//! with the machine's CPU use, and that fail when told to.
//!
//! A zone draws `idle` watts always and `per_cpu` watts for each of its own CPUs that is busy. CPU
//! use is what `/proc/stat` does not call idle: the kernel keeps idle time exactly, in steps of 10
//! ms on reading. Each value is logged with its moment. So a test can demand that what the profiler
//! measured is, to the microjoule, a difference of two values that were really there.

mod cpu_use;
mod log;
mod zone;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::setpriority_process;
use tempfile::TempDir;

use self::{cpu_use::CpuUse, zone::Zone};
pub use self::{
    log::{Entry, Log, Measured},
    zone::Fault,
};
use crate::schedstat;

/// How often counters advance.
pub const STEP: Duration = Duration::from_millis(5);

/// Priority of the thread that advances them, so that it does on busy machines.
const NICE: i32 = -15;

/// Largest value of a counter, as on many real machines.
const RANGE_UJ: u64 = 262_143_328_850;

#[derive(Clone, Copy)]
pub struct Watts {
    pub idle: u64,
    pub per_cpu: u64,
}

/// A zone to be made.
#[derive(Clone)]
pub struct Plan {
    /// Its directory, such as `intel-rapl:0`.
    entry: String,
    /// What it says it is, such as `package-0`.
    name: String,
    cpus: Vec<usize>,
    watts: Watts,
    /// More watts of processes while they run on a CPU.
    more: Vec<(u32, u64)>,
    range_uj: u64,
    start_uj: u64,
}

impl Plan {
    /// A processor whose energy follows these CPUs.
    pub fn package(package: u32, cpus: &[usize], watts: Watts) -> Self {
        Self {
            entry: format!("intel-rapl:{package}"),
            name: format!("package-{package}"),
            cpus: cpus.to_vec(),
            watts,
            more: Vec::new(),
            range_uj: RANGE_UJ,
            start_uj: 1_000_000,
        }
    }

    /// The memory of a package.
    pub fn dram(package: u32, cpus: &[usize], watts: Watts) -> Self {
        let entry = format!("intel-rapl:{package}:0");
        Self { entry, name: "dram".to_owned(), ..Self::package(package, cpus, watts) }
    }

    /// A CPU draws so many watts more while this process runs on it, which must outlive the tree.
    pub fn more_of(mut self, pid: u32, watts: u64) -> Self {
        self.more.push((pid, watts));
        self
    }

    /// Largest value, after which it begins at 0.
    pub fn range_uj(self, range_uj: u64) -> Self {
        Self { range_uj, ..self }
    }

    /// First value.
    pub fn start_uj(self, start_uj: u64) -> Self {
        Self { start_uj, ..self }
    }
}

/// The tree; advancing until dropped.
pub struct FakePowercap {
    root: TempDir,
    zones: Arc<Mutex<Vec<Zone>>>,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<Result<()>>>,
}

impl FakePowercap {
    /// Packages of which the first follows all CPUs and the others are idle.
    pub fn start(packages: u32, watts: Watts) -> Result<Self> {
        let cpus: Vec<usize> = (0..thread::available_parallelism()?.get()).collect();
        let cpus = |package| if package == 0 { &cpus[..] } else { &[] };
        let plans: Vec<Plan> = (0..packages).map(|package| Plan::package(package, cpus(package), watts)).collect();
        Self::of(&plans)
    }

    /// A tree of these zones, which are numbered in this order.
    pub fn of(plans: &[Plan]) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let zones = plans.iter().map(|plan| Zone::create(root.path(), plan)).collect::<Result<Vec<_>>>()?;
        let zones = Arc::new(Mutex::new(zones));
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, stopped, plans) = (Arc::clone(&zones), Arc::clone(&stop), plans.to_vec());
        let writer = thread::spawn(move || advance(&theirs, &plans, &stopped));
        Ok(Self { root, zones, stop, writer: Some(writer) })
    }

    /// For `--powercap-root`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Lets a zone fail from now on.
    pub fn fail(&self, zone: usize, fault: Fault) -> Result<()> {
        lock(&self.zones).get_mut(zone).context("no such zone")?.fail(fault)
    }

    /// Ends a zone's fault: it shows all that it used meanwhile.
    pub fn mend(&self, zone: usize) -> Result<()> {
        lock(&self.zones).get_mut(zone).context("no such zone")?.mend()
    }

    /// Sets a zone's counter back, as a reset does. Its log goes on.
    pub fn jump_back(&self, zone: usize, energy_uj: u64) -> Result<()> {
        lock(&self.zones).get_mut(zone).context("no such zone")?.jump_back(energy_uj)
    }

    /// Stops it and returns what each zone showed.
    pub fn finish(mut self) -> Result<Vec<Log>> {
        self.join().unwrap_or_else(|| Err(anyhow!("the counters were stopped already")))?;
        Ok(lock(&self.zones).iter_mut().map(Zone::take_log).collect())
    }

    fn join(&mut self) -> Option<Result<()>> {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.writer.take()?.join();
        Some(result.unwrap_or_else(|_| Err(anyhow!("the thread that advances counters panicked"))))
    }
}

impl Drop for FakePowercap {
    fn drop(&mut self) {
        // An error matters to those who ask for the log.
        let _result = self.join();
    }
}

/// Locks the zones; a thread that panicked leaves whole zones behind.
fn lock(zones: &Mutex<Vec<Zone>>) -> MutexGuard<'_, Vec<Zone>> {
    zones.lock().unwrap_or_else(PoisonError::into_inner)
}

fn advance(zones: &Mutex<Vec<Zone>>, plans: &[Plan], stop: &AtomicBool) -> Result<()> {
    // Of this thread only. Without the right to it, steps are a little longer.
    let _allowed = setpriority_process(None, NICE);
    let mut cpu_use = CpuUse::start()?;
    while !stop.load(Ordering::Relaxed) {
        cpu_use.advance()?;
        for (zone, plan) in lock(zones).iter_mut().zip(plans) {
            let more_uj = |(pid, watts): &(u32, u64)| Ok(watts * schedstat::process(*pid)? / 1000);
            let more_uj: u64 = plan.more.iter().map(more_uj).sum::<Result<_>>()?;
            let dynamic_uj = plan.watts.per_cpu * cpu_use.busy_us(&plan.cpus) + more_uj;
            zone.advance(plan.start_uj + plan.watts.idle * cpu_use.elapsed_us() + dynamic_uj)?;
        }
        thread::sleep(STEP);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
