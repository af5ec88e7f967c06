//! Makes a live run: it brings the kernel's counts, processes, symbols and counters together window
//! by window.
//!
//! Once per interval the boundary is published a little ahead and waited for, counters are read,
//! every CPU is made to pass it, and the ended bank is drained. Between boundaries the ring is
//! polled for new stacks and for processes that come and go.

mod targets;

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use joular_data::{
    events::{
        EnergyReading, Event, LossCount, RawStack, Window,
        decode::{self, LifecycleKind, Record},
    },
    model::units::{MonotonicNs, Pid, Tid, UnixMicros},
    stacks::path::lookup_addresses,
};
use joular_ebpf::abi::Comm;

use super::{
    consumer::{ConsumeError, Consumer},
    stack_age::{Expired, StackAge},
    symbol_feed::SymbolFeed,
    wake::Wake,
};
use crate::{
    clock,
    energy::EnergySource,
    kernel::{
        BankContents, Banks, KernelError, Programs, Ring, UnwindMaps,
        boundary::{self, LEAD_NS},
    },
    procs::registry::Registry,
    shutdown::{Shutdown, StopReason},
    symbols::Symbolizer,
    unwind::Publisher,
};

/// How often the ring is polled, whether or not the kernel wakes us.
const POLL: Duration = Duration::from_millis(50);

/// How long the run may wait at its start for the tables by which stacks are walked.
const SETTLE: Duration = Duration::from_secs(1);

/// Records taken from the ring at once, and time spent on them. A process that makes them faster
/// than they are read must not keep a window from ending; the rest is taken at the next poll.
const MAX_RECORDS: usize = 100_000;
const MAX_DRAIN: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error("waiting for the kernel side: {0}")]
    Wake(std::io::Error),
}

/// How long a run lasts and how it is cut.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub interval: Duration,
    pub duration: Option<Duration>,
}

/// Everything that makes up a live run.
pub struct Live {
    pub programs: Programs,
    pub banks: Banks,
    pub ring: Ring,
    pub registry: Registry,
    pub symbolizer: Symbolizer,
    pub unwind: Publisher<UnwindMaps>,
    pub source: Box<dyn EnergySource>,
    /// Told what the user should know, once each.
    pub notify: Box<dyn FnMut(&str)>,
}

/// A live run under way.
struct Run<'a> {
    live: &'a mut Live,
    consumer: &'a mut Consumer,
    feed: SymbolFeed,
    stack_age: StackAge,
    wake: Wake,
    window: u64,
    start: MonotonicNs,
    /// Start of the window before.
    last_wall_start: UnixMicros,
    /// Losses of this window, besides those that the kernel side counts.
    losses: Vec<LossCount>,
    /// Threads that took a name in this window. Most do so right after their start, when the kernel
    /// side has seen them under their parent's name.
    renamed: HashMap<Tid, Comm>,
    /// Targets found in this window.
    new_targets: HashSet<Pid>,
}

impl Live {
    /// Records until told to stop; `ready` is called when the first window
    /// has begun. Returns why it ended.
    pub async fn record(
        &mut self,
        consumer: &mut Consumer,
        schedule: Schedule,
        shutdown: &mut Shutdown,
        ready: impl FnOnce(usize),
    ) -> Result<StopReason, LiveError> {
        let wake = Wake::new(&self.ring).map_err(LiveError::Wake)?;
        let mut run = Run {
            live: self,
            consumer,
            feed: SymbolFeed::default(),
            stack_age: StackAge::default(),
            wake,
            window: 0,
            start: MonotonicNs(0),
            last_wall_start: UnixMicros(i64::MIN),
            losses: Vec::new(),
            renamed: HashMap::new(),
            new_targets: HashSet::new(),
        };
        run.begin()?;
        ready(run.live.registry.targets().count());
        let reason = run.windows(schedule, shutdown).await?;
        run.live.symbolizer.finish();
        Ok(reason)
    }
}

impl Run<'_> {
    /// Attaches, finds the running processes, and opens the first window.
    fn begin(&mut self) -> Result<(), LiveError> {
        for change in self.live.registry.scan() {
            self.changed(change)?;
        }
        self.live.unwind.settle(&mut self.live.symbolizer, SETTLE);
        self.live.programs.attach()?;
        // Whoever started between the scan and the attachment.
        for change in self.live.registry.scan() {
            self.changed(change)?;
        }
        let (boundary, reading) = self.pass_boundary(MonotonicNs(0))?;
        self.drain_ring()?;
        // What was counted before the first boundary belongs to no window.
        let _ = self.drain_bank()?;
        self.consumer.take(&Event::Energy(reading))?;
        self.start = boundary;
        Ok(())
    }

    async fn windows(&mut self, schedule: Schedule, shutdown: &mut Shutdown) -> Result<StopReason, LiveError> {
        let interval_ns = u64::try_from(schedule.interval.as_nanos()).unwrap_or(u64::MAX);
        let last = schedule.duration.map(|duration| {
            MonotonicNs(self.start.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
        });
        loop {
            let next = MonotonicNs(self.start.0 + interval_ns);
            let next = last.map_or(next, |last| next.min(last));
            let stopped = self.wait_until(MonotonicNs(next.0 - LEAD_NS), shutdown).await?;
            self.window(if stopped.is_some() { MonotonicNs(0) } else { next })?;
            if let Some(reason) = stopped {
                return Ok(reason);
            }
            if last.is_some_and(|last| self.start >= last) {
                return Ok(StopReason::Duration);
            }
        }
    }

    /// Polls the ring until `moment`, or until told to stop. Signals are
    /// looked at even if there is no time to wait.
    async fn wait_until(
        &mut self,
        moment: MonotonicNs,
        shutdown: &mut Shutdown,
    ) -> Result<Option<StopReason>, LiveError> {
        loop {
            tokio::task::yield_now().await;
            let left = Duration::from_nanos(moment.since(clock::monotonic_now()));
            tokio::select! {
                biased;
                reason = shutdown.requested() => return Ok(Some(reason)),
                () = self.wake.wait(left.min(POLL)) => self.poll()?,
            }
            if clock::monotonic_now() >= moment {
                return Ok(None);
            }
        }
    }

    fn poll(&mut self) -> Result<(), LiveError> {
        self.drain_ring()?;
        self.live.programs.flush_log();
        let update = self.live.symbolizer.poll();
        self.learn_jvms(&update.refreshed)?;
        for notice in update.notices {
            let process = notice.pid.map(|pid| format!("process {pid}: ")).unwrap_or_default();
            (self.live.notify)(&format!("{process}{}", notice.text));
        }
        for notice in self.live.unwind.poll(&mut self.live.symbolizer) {
            (self.live.notify)(&notice);
        }
        Ok(())
    }

    /// Ends the running window at `end` (or as soon as possible, if that has
    /// passed) and hands it on.
    fn window(&mut self, end: MonotonicNs) -> Result<(), LiveError> {
        let (end, reading) = self.pass_boundary(end)?;
        self.poll()?;
        let mut contents = self.drain_bank()?;
        self.name_threads(&mut contents.threads);
        for change in self.live.registry.seen_running(&contents.threads) {
            self.changed(change)?;
        }
        self.stack_age.used(&contents.samples, self.window);
        self.live.symbolizer.begin_window(self.start);
        let registry = &self.live.registry;
        let symbols = self
            .feed
            .resolve(&mut self.live.symbolizer, self.consumer.engine(), &contents.samples, |pid| registry.target(pid));
        for event in &symbols {
            self.consumer.take(event)?;
        }
        self.publish_sampled(&contents.samples);
        self.consumer.take(&Event::Energy(reading))?;
        self.check_cpu_times(&contents, end.since(self.start));
        let mut losses = contents.losses;
        losses.append(&mut self.losses);
        let window = Window {
            index: self.window,
            start: self.start,
            end,
            wall_start: self.wall_start(),
            threads: contents.threads,
            samples: contents.samples,
            cpus: contents.cpus,
            losses,
        };
        self.consumer.take(&Event::Window(Box::new(window)))?;
        self.start = end;
        self.window += 1;
        self.after_window()
    }

    /// Wall-clock time of the window's start. It is the window's key in the data set, so it goes
    /// forward even if the clock is set back.
    fn wall_start(&mut self) -> UnixMicros {
        let earliest = UnixMicros(self.last_wall_start.0.saturating_add(1));
        self.last_wall_start = clock::unix_micros_at(self.start).max(earliest);
        self.last_wall_start
    }

    fn after_window(&mut self) -> Result<(), LiveError> {
        for change in self.live.registry.end_of_window() {
            self.changed(change)?;
        }
        let Expired { leaving, gone } = self.stack_age.expired(self.window);
        leaving.iter().for_each(|id| self.live.banks.forget_stack(*id));
        if !gone.is_empty() {
            self.consumer.take(&Event::StacksForgotten(gone))?;
        }
        Ok(self.live.programs.follow_hotplug()?)
    }

    /// Makes every CPU pass a boundary, and reads the counters at it.
    fn pass_boundary(&mut self, wanted: MonotonicNs) -> Result<(MonotonicNs, EnergyReading), LiveError> {
        let Live { programs, banks, source, .. } = &mut *self.live;
        let passed = boundary::pass(programs, banks, wanted, || source.read())?;
        if passed.was_late {
            self.lost("late_boundary", 1);
        }
        Ok((passed.boundary, EnergyReading { read_at: passed.read_at, readings: passed.readings }))
    }

    fn drain_bank(&mut self) -> Result<BankContents, LiveError> {
        Ok(self.live.banks.drain_ended(self.live.programs.online())?)
    }

    fn lost(&mut self, cause: &str, count: u64) {
        match self.losses.iter_mut().find(|loss| loss.cause == cause) {
            Some(loss) => loss.count += count,
            None => self.losses.push(LossCount { cause: cause.to_owned(), count }),
        }
    }

    /// Checks that busy, idle and unslotted time of a CPU are exactly the window.
    fn check_cpu_times(&mut self, contents: &BankContents, length_ns: u64) {
        // A CPU that has just come has no times yet, though threads ran there.
        let new_cpus = self.live.programs.online().len().abs_diff(contents.cpus.len()) as u64;
        if new_cpus > 0 {
            self.lost("inexact_cpu_ns", new_cpus * length_ns);
        }
        for cpu in &contents.cpus {
            let counted = cpu.busy_ns + cpu.idle_ns + cpu.unslotted_ns;
            if counted != length_ns {
                self.lost("inexact_cpu_ns", counted.abs_diff(length_ns));
            }
        }
    }

    fn drain_ring(&mut self) -> Result<(), LiveError> {
        let begin = Instant::now();
        for _ in 0..MAX_RECORDS {
            if begin.elapsed() >= MAX_DRAIN {
                break;
            }
            let decoded = match self.live.ring.next() {
                Some(record) => decode::decode(&record),
                None => break,
            };
            match decoded {
                Ok(Record::Stack { pid, generation, stack }) => self.stack_arrived(pid, generation, stack)?,
                Ok(Record::Lifecycle(event)) => {
                    if event.kind == LifecycleKind::Rename {
                        self.renamed.insert(event.tid, decode::comm_bytes(&event.comm));
                    }
                    for change in self.live.registry.lifecycle(&event) {
                        self.changed(change)?;
                    }
                }
                Err(_) => self.lost("undecodable", 1),
            }
        }
        Ok(())
    }

    fn stack_arrived(&mut self, pid: Pid, generation: u8, mut stack: RawStack) -> Result<(), LiveError> {
        if let Some(process) = self.live.registry.target(pid).filter(|_| !stack.is_kernel) {
            // Early, while the process is sure to be there: what it takes to
            // name these addresses is read and requested now.
            self.live.symbolizer.pin((process.pid, process.start_boottime_ns), generation, &mut stack);
            let addresses: Vec<_> = lookup_addresses(&stack).collect();
            let _ = self.live.symbolizer.resolve(process, &addresses);
            self.live.unwind.sampled((process.pid, process.start_boottime_ns), &mut self.live.symbolizer);
        }
        self.stack_age.arrived(stack.id, self.window);
        Ok(self.consumer.take(&Event::Stack(stack))?)
    }
}
