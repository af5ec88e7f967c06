//! Runs the real programs, without anything behind them.

use std::time::Duration;

use joular_data::model::units::{MonotonicNs, Pid};

use crate::kernel::{
    BankContents, Banks, KernelError, LoadOptions, Loaded, Programs, Ring, Sampler, Told,
    boundary::{self, Announced, Passed},
    cpus::CPU_ROOT,
};

/// Windows of a recording, which map sizes are made for.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Programs at work, and the window that is open.
#[allow(missing_debug_implementations, reason = "aya's programs have none")]
pub struct Instrument {
    programs: Programs,
    banks: Banks,
    ring: Ring,
    start: MonotonicNs,
}

/// Runs of a program and their time, since the statistics were enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    pub runs: u64,
    pub total_ns: u64,
}

impl RunTime {
    pub const fn since(self, earlier: Self) -> Self {
        Self { runs: self.runs.saturating_sub(earlier.runs), total_ns: self.total_ns.saturating_sub(earlier.total_ns) }
    }
}

impl Instrument {
    /// Loads and attaches the programs and opens the first window.
    pub fn start(sampler: Sampler, frequency_hz: u32) -> Result<Self, KernelError> {
        let options = LoadOptions {
            counters: Vec::new(),
            allocations: false,
            io: false,
            sampler,
            frequency_hz,
            interval_ns: INTERVAL_NS,
            all_targets: false,
            told: Told::default(),
            per_core: false,
            cycles: None,
            log: false,
            cpu_root: CPU_ROOT.into(),
        };
        let Loaded { programs, banks, ring, .. } = Programs::load(options)?;
        let mut instrument = Self { programs, banks, ring, start: MonotonicNs(0) };
        instrument.programs.attach()?;
        instrument.end_window(MonotonicNs(0), || ())?;
        Ok(instrument)
    }

    pub const fn sampling_event(&self) -> &'static str {
        self.programs.event_name()
    }

    /// Leaves the programs alone for the rest of a window of this length, and
    /// ends it, whatever it counted.
    pub fn window<T>(
        &mut self,
        length: Duration,
        read: impl FnOnce() -> T,
    ) -> Result<(Passed<T>, BankContents), KernelError> {
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let end = MonotonicNs(self.start.0.saturating_add(length_ns));
        self.end_window(end, read)
    }

    /// Ends the window at `end`, or as soon as possible.
    pub fn end_window<T>(
        &mut self,
        end: MonotonicNs,
        read: impl FnOnce() -> T,
    ) -> Result<(Passed<T>, BankContents), KernelError> {
        let announced = Announced::new(&mut self.banks, end)?;
        let passed = boundary::pass(&mut self.programs, announced, read)?;
        while self.ring.next().is_some() {}
        let contents = self.banks.drain_ended(self.programs.online())?;
        self.start = passed.boundary;
        Ok((passed, contents))
    }

    pub fn add_target(&mut self, pid: Pid) -> Result<(), KernelError> {
        self.banks.add_target(pid)
    }

    pub fn remove_target(&mut self, pid: Pid) {
        self.banks.remove_target(pid);
    }

    /// What a program has cost so far.
    pub fn run_time(&self, program: &str) -> RunTime {
        let costs = self.programs.costs();
        let found = costs.iter().find(|cost| cost.name == program);
        found.map_or_else(RunTime::default, |cost| RunTime {
            runs: cost.runs,
            total_ns: u64::try_from(cost.run_time.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}
