//! Begins a new run in the data set from time to time, by the wall clock. Each run is complete in itself:
//! it can be shipped, rolled up and removed without the others.
//!
//! The recording goes on meanwhile. What is known of a process is told again in each run in which it
//! runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{parquet::ParquetOutput, rows::text_bytes};
use crate::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::{Pid, UnixMicros},
    output::{Output, Result},
    stacks::StackTable,
};

/// Memory for what is known of processes, ended ones among them. What exceeds it is known in one run
/// only.
const MAX_KNOWN_BYTES: usize = 64 << 20;

/// Runs for which a process is remembered after the last one in which it ran, if memory is short.
const REMEMBERED_RUNS: u32 = 4;

/// How runs that are not the last end.
const REASON: &str = "rotation";

/// Writes a recording as several runs.
pub struct Rotated {
    output: ParquetOutput,
    every_us: i64,
    run: Option<Run>,
}

type ProcessKey = (Pid, u64);

/// The run that is being written.
struct Run {
    /// As the recording began.
    info: RunInfo,
    /// The first run of a recording is number 0.
    number: u32,
    /// Stretch of the wall clock that it is of.
    stretch: i64,
    /// Whether energy of its last window is to come with a later one.
    waits: bool,
    known: BTreeMap<ProcessKey, Known>,
    known_bytes: usize,
    /// Processes that this run knows.
    told: BTreeSet<ProcessKey>,
}

struct Known {
    info: ProcessInfo,
    bytes: usize,
    /// The last run in which it ran or was told of.
    run: u32,
}

impl Rotated {
    /// Begins a run whenever the wall clock passes a multiple of `every_ns`.
    pub fn new(output: ParquetOutput, every_ns: u64) -> Self {
        Self { output, every_us: i64::try_from(every_ns / 1000).unwrap_or(i64::MAX).max(1), run: None }
    }

    fn stretch(&self, moment: UnixMicros) -> i64 {
        moment.0.div_euclid(self.every_us)
    }
}

impl Run {
    fn remember(&mut self, info: &ProcessInfo) {
        let (key, bytes) = ((info.pid, info.start_boottime_ns), size_of::<ProcessInfo>() + text_bytes(info));
        let before = self.known.get(&key).map_or(0, |known| known.bytes);
        let sum = self.known_bytes.saturating_sub(before).saturating_add(bytes);
        if sum <= MAX_KNOWN_BYTES {
            self.known_bytes = sum;
            self.known.insert(key, Known { info: info.clone(), bytes, run: self.number });
        }
        self.told.insert(key);
    }

    /// Forgets processes that have not run for long, once memory is half full.
    fn forget(&mut self) {
        if self.known_bytes > MAX_KNOWN_BYTES / 2 {
            let oldest = self.number.saturating_sub(REMEMBERED_RUNS);
            self.known.retain(|_, known| known.run >= oldest);
            self.known_bytes = self.known.values().map(|known| known.bytes).sum();
        }
    }

    /// Whether a window of this stretch begins a new run. Energy that is to come is divided among those
    /// who ran, so the run waits for it, but not for a counter that has gone for good.
    const fn is_over(&self, stretch: i64) -> bool {
        stretch > self.stretch && (!self.waits || stretch > self.stretch + 1)
    }
}

impl Output for Rotated {
    fn run_started(&mut self, info: &RunInfo) -> Result<()> {
        self.run = Some(Run {
            info: info.clone(),
            number: 0,
            stretch: self.stretch(info.started),
            waits: false,
            known: BTreeMap::new(),
            known_bytes: 0,
            told: BTreeSet::new(),
        });
        self.output.run_started(info)
    }

    fn process(&mut self, info: &ProcessInfo) {
        if let Some(run) = &mut self.run {
            run.remember(info);
        }
        self.output.process(info);
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let stretch = self.stretch(report.wall_start);
        let Some(run) = &mut self.run else { return Ok(()) };
        if run.is_over(stretch) {
            self.output.run_ended(&RunEnd { ended: report.wall_start, reason: REASON.to_owned() })?;
            (run.number, run.stretch) = (run.number.saturating_add(1), stretch);
            run.told.clear();
            run.forget();
            let run_id = format!("{}.{:04}", run.info.run_id, run.number);
            let info = RunInfo { run_id, started: report.wall_start, ..run.info.clone() };
            self.output.begin(&info, report.index)?;
        }
        for process in &report.processes {
            let key = (process.pid, process.start_boottime_ns);
            let Some(known) = run.known.get_mut(&key) else { continue };
            known.run = run.number;
            if run.told.insert(key) {
                self.output.process(&known.info);
            }
        }
        run.waits = report.domains.iter().any(|domain| domain.read_failed());
        self.output.window(report, stacks)
    }

    fn has_let_go(&mut self) -> bool {
        self.output.has_let_go()
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        self.run = None;
        self.output.run_ended(end)
    }
}
