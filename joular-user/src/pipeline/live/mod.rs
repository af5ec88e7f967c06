//! Makes a live run: it brings the kernel's counts, processes, symbols and counters together window
//! by window.
//!
//! Once per interval the boundary is announced and waited for ([`waiting`]), counters are read, every
//! CPU is made to pass it, and the ended bank is drained. Between boundaries the ring is read for new
//! stacks and for processes that come and go, whenever the kernel says that it has any.

mod allocating;
mod allocations;
mod bounds;
mod collections;
mod gap;
mod io;
mod late;
mod long_names;
mod marks;
mod ring;
mod shares;
mod targets;
mod thread_names;
mod waiting;
mod wall_clock;

use std::time::Duration;

use joular_data::{
    events::{EnergyReading, Event, LossCount, Window},
    model::units::MonotonicNs,
};

pub use self::marks::Marks;
use self::{
    allocations::Allocations,
    bounds::Cuts,
    collections::Collections,
    io::Io,
    long_names::LongNames,
    ring::{MAX_DRAIN, MAX_DRAIN_AT_END, Taken},
    shares::Named,
    thread_names::ThreadNames,
    wall_clock::{WallClock, WindowTimes},
};
use super::{
    consumer::{ConsumeError, Consumer},
    stack_age::{Expired, StackAge},
    symbol_feed::SymbolFeed,
    wake::Wake,
};
use crate::{
    clock::Clocks,
    config::duration::nanoseconds,
    context::ContextReader,
    energy::EnergySource,
    heap::GiveBack,
    kernel::{
        BankContents, Banks, KernelError, Programs, Ring, UnwindMaps,
        boundary::{self, Announced},
    },
    procs::registry::Registry,
    shutdown::{Shutdown, StopReason},
    symbols::Symbolizer,
    unwind::Publisher,
};

/// Pauses between looks at what is under way and the kernel does not wake us for, such as a perf map
/// that a JVM writes. A look that finds nothing doubles the pause: each wakes a CPU.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// How long the run may wait at its start for the tables by which stacks are walked.
const SETTLE: Duration = Duration::from_secs(1);

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
    /// Also when no target is left, because none will come.
    pub ends_with_targets: bool,
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
    pub context: ContextReader,
    /// Told what the user should know, once each.
    pub notify: Box<dyn FnMut(&str)>,
}

/// A live run under way.
struct Run<'a> {
    live: &'a mut Live,
    consumer: &'a mut Consumer,
    feed: SymbolFeed,
    stack_age: StackAge,
    heap: GiveBack,
    wake: Wake,
    /// Until the next look.
    pause: Duration,
    /// Whether the machine had little to do in the last window, so that nothing delays this process.
    is_idle: bool,
    window: u64,
    start: MonotonicNs,
    wall_clock: WallClock,
    /// Losses of this window, besides those that the kernel side counts.
    losses: Vec<LossCount>,
    cuts: Cuts,
    thread_names: ThreadNames,
    long_names: LongNames,
    /// Processes that have reported too much.
    refused: Named,
    /// What the command said in this window.
    marks: Marks,
    allocations: Allocations,
    collections: Collections,
    io: Io,
}

impl Live {
    /// Records until told to stop; `ready` is called when the first window
    /// has begun. Returns why it ended.
    pub async fn record(
        &mut self,
        consumer: &mut Consumer,
        schedule: Schedule,
        marks: Marks,
        shutdown: &mut Shutdown,
        ready: impl FnOnce(usize),
    ) -> Result<StopReason, LiveError> {
        let wake = Wake::new(&self.ring).map_err(LiveError::Wake)?;
        let mut run = Run {
            live: self,
            consumer,
            feed: SymbolFeed::default(),
            stack_age: StackAge::default(),
            heap: GiveBack::default(),
            wake,
            pause: SHORTEST_POLL,
            is_idle: false,
            window: 0,
            start: MonotonicNs(0),
            wall_clock: WallClock::default(),
            losses: Vec::new(),
            cuts: Cuts::new(),
            thread_names: ThreadNames::default(),
            long_names: LongNames::default(),
            refused: Named::default(),
            marks,
            allocations: Allocations::default(),
            collections: Collections::default(),
            io: Io::default(),
        };
        run.begin()?;
        ready(run.live.registry.targets().count());
        let reason = run.windows(schedule, shutdown).await?;
        run.hand_on_rest().await?;
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
        self.live.symbolizer.settle(SETTLE);
        self.live.unwind.settle(&mut self.live.symbolizer, SETTLE);
        self.live.programs.attach()?;
        self.say_what_is_not_seen();
        // Whoever started between the scan and the attachment.
        for change in self.live.registry.scan() {
            self.changed(change)?;
        }
        self.say_who_is_left_out();
        self.sample_running();
        let announced = Announced::new(&mut self.live.banks, MonotonicNs(0))?;
        let (boundary, reading, _) = self.pass_boundary(announced)?;
        self.drain_ring(MAX_DRAIN)?;
        // What was counted before the first boundary belongs to no window.
        let _ = self.drain_bank()?;
        self.hand_on_reading(reading)?;
        self.start = boundary;
        Ok(())
    }

    async fn windows(&mut self, schedule: Schedule, shutdown: &mut Shutdown) -> Result<StopReason, LiveError> {
        let interval_ns = nanoseconds(schedule.interval);
        let last = schedule.duration.map(|duration| MonotonicNs(self.start.0.saturating_add(nanoseconds(duration))));
        loop {
            let next = MonotonicNs(self.start.0 + interval_ns);
            let next = self.live.source.boundary_near(next, interval_ns / 2);
            let next = last.map_or(next, |last| next.min(last));
            let (announced, stopped) = self.wait_for_boundary(next, shutdown).await?;
            self.window(announced)?;
            if let Some(reason) = stopped {
                return Ok(reason);
            }
            if last.is_some_and(|last| self.start >= last) {
                return Ok(StopReason::Duration);
            }
            let registry = &self.live.registry;
            if schedule.ends_with_targets && registry.ever_matched() && registry.targets().next().is_none() {
                return Ok(StopReason::Targets);
            }
        }
    }

    /// Takes what the kernel and the processes have said meanwhile, the kernel within a limit of time. Returns whether that
    /// was all of it.
    fn poll(&mut self, limit: Duration) -> Result<bool, LiveError> {
        let Taken { is_any: mut has_news, is_all } = self.drain_ring(limit)?;
        self.live.programs.flush_log();
        let update = self.live.symbolizer.poll();
        self.learn_jvms(&update.refreshed)?;
        has_news |= !update.refreshed.is_empty() || !update.notices.is_empty();
        for notice in update.notices {
            let process = notice.pid.map(|pid| format!("process {pid}: ")).unwrap_or_default();
            (self.live.notify)(&format!("{process}{}", notice.text));
        }
        for notice in self.live.unwind.poll(&mut self.live.symbolizer) {
            (self.live.notify)(&notice);
        }
        let is_waiting = self.live.symbolizer.is_waiting() || self.live.unwind.is_waiting();
        self.pause = match (is_waiting, has_news) {
            (false, _) => LONGEST_POLL,
            (true, true) => SHORTEST_POLL,
            (true, false) => (2 * self.pause).clamp(SHORTEST_POLL, LONGEST_POLL),
        };
        Ok(is_all)
    }

    /// Ends the running window at the boundary that was announced, and hands it on.
    fn window(&mut self, announced: Announced) -> Result<(), LiveError> {
        let (end, reading, times) = self.pass_boundary(announced)?;
        if !self.poll(MAX_DRAIN_AT_END)? {
            self.lost("late_report", 1);
        }
        let mut contents = self.drain_bank()?;
        self.name_threads(&mut contents.threads, end);
        self.learn_long_names(&contents.threads)?;
        for change in self.live.registry.seen_running(&contents.threads) {
            self.changed(change)?;
        }
        let (samples, of_bytes) = (&contents.samples, contents.sampled_bytes());
        self.stack_age.used(samples.iter().flat_map(|sample| [sample.user_stack, sample.kernel_stack]), self.window);
        self.stack_age.used(of_bytes.iter().map(|(_, stack)| *stack), self.window);
        self.live.symbolizer.begin_window(self.start);
        let (registry, stacks) = (&self.live.registry, &*self.consumer);
        let symbols = self.feed.resolve(
            &mut self.live.symbolizer,
            |id| stacks.stack(id),
            samples,
            &of_bytes,
            |pid| registry.target(pid),
        );
        for event in &symbols {
            self.consumer.take(event)?;
        }
        self.publish_sampled(&contents.samples);
        self.hand_on_reading(reading)?;
        let context = times.note(self.live.context.window(&contents.cpus));
        self.consumer.take(&Event::Context(Box::new(context)))?;
        self.hand_on_marks(end)?;
        if let Some(drained) = contents.allocations.take() {
            self.hand_on_allocations(drained, &contents.threads, end)?;
        }
        if let Some(drained) = contents.io.take() {
            let io = self.moved(drained, end.since(self.start))?;
            self.consumer.take(&Event::Io(Box::new(io)))?;
        }
        if let Some(counters) = contents.counters.take() {
            self.consumer.take(&Event::Counters(Box::new(counters)))?;
        }
        if let Some(notice) = times.notice() {
            (self.live.notify)(&notice);
        }
        self.check_cpu_times(&contents, end.since(self.start));
        self.is_idle = waiting::is_idle(&contents.cpus);
        self.count_cuts();
        self.name_refused(&contents.losses);
        let mut losses = contents.losses;
        losses.append(&mut self.losses);
        let window = Window {
            index: self.window,
            start: self.start,
            end,
            wall_start: times.wall_start,
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

    fn after_window(&mut self) -> Result<(), LiveError> {
        self.heap.after_window(self.consumer.has_let_go());
        for change in self.live.registry.end_of_window() {
            self.changed(change)?;
        }
        self.sample_running();
        let Expired { leaving, gone } = self.stack_age.expired(self.window);
        leaving.iter().for_each(|id| self.live.banks.forget_stack(*id));
        if !gone.is_empty() {
            self.consumer.take(&Event::StacksForgotten(gone))?;
        }
        Ok(())
    }

    /// Makes every CPU pass a boundary, and reads the counters at it. The times are those of the window
    /// that it ends.
    fn pass_boundary(&mut self, announced: Announced) -> Result<(MonotonicNs, EnergyReading, WindowTimes), LiveError> {
        let Live { programs, source, .. } = &mut *self.live;
        let passed = boundary::pass(programs, announced, || (Clocks::now(), source.read(), Clocks::now()))?;
        let (before, readings, after) = passed.readings;
        if passed.was_late {
            self.lost("late_boundary", 1);
        }
        if passed.unsampled_cpus > 0 {
            self.lost("cpu_unsampled", passed.unsampled_cpus);
        }
        let times = self.wall_clock.pass(passed.boundary, before, after).unwrap_or_default();
        Ok((passed.boundary, EnergyReading { read_at: passed.read_at, readings }, times))
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
            self.lost(LossCount::INEXACT_CPU_NS, new_cpus * length_ns);
        }
        if contents.gone_busy_ns > 0 {
            self.lost(LossCount::INEXACT_CPU_NS, contents.gone_busy_ns);
        }
        for cpu in &contents.cpus {
            let counted = cpu.busy_ns + cpu.idle_ns + cpu.unslotted_ns;
            if counted != length_ns {
                self.lost(LossCount::INEXACT_CPU_NS, counted.abs_diff(length_ns));
            }
        }
    }
}
