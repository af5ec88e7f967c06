//! Begins a new run in the data set from time to time, by the wall clock. Each run is complete in itself:
//! it can be shipped, rolled up and removed without the others.
//!
//! The recording goes on meanwhile. What is known of a process is told again in each run in which it
//! runs.
//!
//! A lasting recording also goes on when the data set cannot be written: another run begins once it can.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    clock::RunClock,
    lasting::{Lasting, Unwritten},
    parquet::ParquetOutput,
    rows::text_bytes,
};
use crate::{
    attribution::window_report::WindowReport,
    dataset::layout,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::{MonotonicNs, Pid, UnixMicros},
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
    /// Windows that are in memory.
    buffered: u64,
    /// `None`: it fails with the first write that fails.
    lasting: Option<Lasting>,
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
    clock: RunClock,
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
        let every_us = i64::try_from(every_ns / 1000).unwrap_or(i64::MAX).max(1);
        Self { output, every_us, run: None, buffered: 0, lasting: None }
    }

    /// Goes on if the data set cannot be written. `tell` is called with a line for people when that begins and ends.
    #[must_use]
    pub fn lasting(self, unwritten: Unwritten, tell: impl Fn(&str) + 'static) -> Self {
        Self { lasting: Some(Lasting::new(unwritten, tell)), ..self }
    }

    fn write(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let mut placed = run.clock.of(report);
        let stretch = stretch(placed.wall_start, self.every_us);
        if run.is_over(stretch) {
            self.output.run_ended(&RunEnd { ended: placed.wall_start, reason: REASON.to_owned() })?;
            placed = self.begin(report)?;
        }
        self.window_of_run(&placed, stacks)
    }

    /// The first window after others were lost.
    fn write_again(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.buffered = 0;
        self.output.end_broken()?;
        let placed = self.begin(report)?;
        let noted = self.lasting.as_ref().map(|lasting| lasting.noted(&placed));
        self.window_of_run(noted.as_ref().unwrap_or(&placed), stacks)
    }

    /// Begins the next run, of which this is the first window. Returns it with its time in that run.
    fn begin<'r>(&mut self, report: &'r WindowReport) -> Result<Cow<'r, WindowReport>> {
        self.buffered = 0;
        let Some(run) = &mut self.run else { return Ok(Cow::Borrowed(report)) };
        run.clock = RunClock::beginning(report);
        let placed = run.clock.of(report);
        (run.number, run.stretch) = (run.number.saturating_add(1), stretch(placed.wall_start, self.every_us));
        run.told.clear();
        run.forget();
        let run_id = layout::id_of_part(&run.info.run_id, run.number);
        let info = RunInfo { run_id, started: placed.wall_start, ..run.info.clone() };
        self.output.begin(&info, report.index)?;
        Ok(placed)
    }

    fn window_of_run(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        for process in &report.processes {
            let key = (process.pid, process.start_boottime_ns);
            let Some(known) = run.known.get_mut(&key) else { continue };
            known.run = run.number;
            if run.told.insert(key) {
                self.output.process(&known.info);
            }
        }
        run.waits = report.domains.iter().any(|domain| domain.read_failed());
        self.output.window(report, stacks)?;
        self.buffered = self.output.buffered_windows();
        Ok(())
    }

    /// Handles the outcome of a write that lost `windows` if it failed. A lasting recording survives errors that may pass.
    fn go_on(&mut self, outcome: Result<()>, windows: u64, now: MonotonicNs) -> Result<()> {
        match (&mut self.lasting, outcome) {
            (Some(lasting), Err(error)) if error.may_pass() => {
                lasting.failed(&error, windows, now);
                self.buffered = 0;
                Ok(())
            }
            (_, outcome) => outcome,
        }
    }
}

/// The stretch of the wall clock that a moment is in.
const fn stretch(moment: UnixMicros, every_us: i64) -> i64 {
    moment.0.div_euclid(every_us)
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
            stretch: stretch(info.started, self.every_us),
            clock: RunClock::default(),
            waits: false,
            known: BTreeMap::new(),
            known_bytes: 0,
            told: BTreeSet::new(),
        });
        let outcome = self.output.run_started(info);
        self.go_on(outcome, 0, MonotonicNs(0))
    }

    fn process(&mut self, info: &ProcessInfo) {
        if let Some(run) = &mut self.run {
            run.remember(info);
        }
        self.output.process(info);
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let is_resumed = match &mut self.lasting {
            Some(lasting) if lasting.rests(report.start) => {
                lasting.lose(1);
                return Ok(());
            }
            Some(lasting) => lasting.resumes(),
            None => false,
        };
        let outcome = if is_resumed { self.write_again(report, stacks) } else { self.write(report, stacks) };
        if let Some(lasting) = self.lasting.as_mut().filter(|_| outcome.is_ok() && self.buffered == 0) {
            lasting.succeeded();
        }
        self.go_on(outcome, self.buffered + 1, report.start)
    }

    fn has_let_go(&mut self) -> bool {
        self.output.has_let_go()
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        self.run = None;
        let is_resting = self.lasting.as_ref().is_some_and(Lasting::is_resting);
        let outcome = if is_resting { self.output.end_broken() } else { self.output.run_ended(end) };
        if let Some(lasting) = self.lasting.as_mut().filter(|_| outcome.is_ok() && !is_resting) {
            lasting.succeeded();
        }
        self.go_on(outcome, self.buffered, MonotonicNs(0))?;
        self.lasting.iter().for_each(Lasting::ended);
        Ok(())
    }
}
