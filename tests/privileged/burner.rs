//! Starts the process whose CPU time is known: see `tests/fixtures/burner.rs`.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{clock::wait_for, process::Running};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

const START: Duration = Duration::from_secs(10);

pub struct Burner {
    process: Running,
    /// Address and size of its function outside of any file.
    pub code: (u64, u64),
}

impl Burner {
    /// One thread `burn-N` per duty, in percent.
    pub fn start(duties: &[u32]) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burner"));
        let mut process = Running::spawn("burner", command.args(duties.iter().map(u32::to_string)))?;
        let ready = process.wait_stdout("ready ", START)?;
        let numbers = ready.split(' ').skip(1).map(|text| u64::from_str_radix(text, 16)).collect::<Result<Vec<_>, _>>();
        let code = numbers?.try_into().map(|[address, size]: [u64; 2]| (address, size));
        Ok(Self { process, code: code.ok().context("burner says its address and size")? })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Keeps the threads `burn-0`, `burn-1`, … on these CPUs; returns their ids.
    pub fn pin(&self, cpus: &[usize]) -> Result<Vec<u32>> {
        let tasks = format!("/proc/{}/task", self.pid());
        let mut pinned = Vec::new();
        for (index, cpu) in cpus.iter().enumerate() {
            let tid = named(&tasks, &format!("burn-{index}"))?;
            let mut set = CpuSet::new();
            set.set(*cpu);
            sched_setaffinity(Pid::from_raw(i32::try_from(tid)?), &set).context("keeping a thread on a CPU")?;
            pinned.push(tid);
        }
        Ok(pinned)
    }

    /// Lets its threads work; returns at once.
    pub fn begin(&mut self, length: Duration) -> Result<()> {
        self.process.say(&format!("burn {}", length.as_millis()))
    }

    /// Lets its main thread spin outside of any file; returns at once.
    pub fn begin_jit(&mut self, length: Duration) -> Result<()> {
        self.process.say(&format!("jit {}", length.as_millis()))
    }

    /// Waits until it has done what it was told last.
    pub fn wait_done(&mut self, limit: Duration) -> Result<()> {
        self.process.wait_stdout("done", limit).map(drop)
    }

    pub fn burn(&mut self, length: Duration) -> Result<()> {
        self.begin(length)?;
        self.wait_done(length * 4 + START)
    }
}

/// A thread takes its name itself, a moment after its start.
fn named(tasks: &str, name: &str) -> Result<u32> {
    wait_for(&format!("a thread {name} in {tasks}"), START, || {
        for entry in fs::read_dir(tasks).with_context(|| format!("listing {tasks}"))? {
            let entry = entry?;
            if fs::read_to_string(entry.path().join("comm"))?.trim() == name {
                return Ok(Some(entry.file_name().to_string_lossy().parse()?));
            }
        }
        Ok(None)
    })
}
