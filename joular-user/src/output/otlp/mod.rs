//! Pushes metrics and profiles to an OpenTelemetry collector, over OTLP with HTTP:
//! <https://opentelemetry.io/docs/specs/otlp/>.
//!
//! Metrics are those that [`super::metrics`] serves, with the same names and labels, as sums since the run began: a
//! push that fails loses nothing. A profile is of one interval. It waits in a short queue until it has arrived, and
//! the oldest ones go where a collector is away for long. A thread of its own encodes and sends; windows never wait.

mod http;
mod metrics;
mod proto;
mod queue;
mod sender;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::Pid,
    output::{Output, OutputError, Result},
    report::profile::LiveProfile,
    stacks::StackTable,
};

pub use self::{
    http::{Headers, HeadersError},
    queue::Pushes,
};
use self::{
    queue::{Queue, Work},
    sender::Sender,
};
use super::metrics::LiveMetrics;

/// How long the end of a run may wait for the last push.
const LAST_PUSH: Duration = Duration::from_secs(2);

/// Where to push, and what.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Its address without the path of a signal.
    pub url: String,
    pub headers: Headers,
    /// Certificates of who signs the collector's, in PEM; `None`: those that the system trusts.
    pub authority: Option<Vec<u8>>,
    pub interval_ns: u64,
    pub profiles: bool,
}

impl Collector {
    /// Pushes a request without metrics.
    ///
    /// # Errors
    /// Why the collector does not take it.
    pub fn try_push(&self) -> std::result::Result<(), String> {
        sender::push_nothing(self).map_err(|error| match error {
            sender::PushError::Later(cause) | sender::PushError::Refused(cause) => cause,
        })
    }
}

/// What the thread does beside.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    pub info: fn(&str),
    pub warn: fn(&str),
    /// Called as the thread starts.
    pub lower_priority: fn(),
}

/// Hands what is to be pushed to the thread, once in each interval.
pub struct OtlpOutput {
    collector: Collector,
    hooks: Hooks,
    metrics: LiveMetrics,
    profile: Option<LiveProfile>,
    queue: Arc<Queue>,
    /// Since the last push.
    elapsed_ns: u64,
}

impl OtlpOutput {
    /// `metrics` must have a window before this does. `pushes` counts what becomes of pushes.
    pub fn new(collector: Collector, metrics: LiveMetrics, pushes: Arc<Pushes>, hooks: Hooks) -> Self {
        Self { collector, hooks, metrics, profile: None, queue: Arc::new(Queue::new(pushes)), elapsed_ns: 0 }
    }

    fn push(&mut self) {
        self.elapsed_ns = 0;
        let profile = self.profile.as_mut().and_then(LiveProfile::take);
        self.queue.put(Work { metrics: self.metrics.now(), profile });
    }
}

impl Output for OtlpOutput {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        self.profile = self.collector.profiles.then(|| LiveProfile::new(run));
        let started = Sender::start(self.collector.clone(), Arc::clone(&self.queue), self.hooks);
        started.map_err(|source| OutputError::Stream { what: "to the OTLP collector", source })
    }

    fn process(&mut self, process: &ProcessInfo) {
        if let Some(profile) = &mut self.profile {
            profile.process(process);
        }
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        if let Some(profile) = &mut self.profile {
            profile.process_ended((pid, start_boottime_ns));
        }
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        if let Some(profile) = &mut self.profile {
            profile.window(report, stacks);
        }
        self.elapsed_ns = self.elapsed_ns.saturating_add(report.length_ns);
        if self.elapsed_ns >= self.collector.interval_ns {
            self.push();
        }
        Ok(())
    }

    fn run_ended(&mut self, _: &RunEnd) -> Result<()> {
        self.push();
        if !self.queue.end(Instant::now() + LAST_PUSH) {
            (self.hooks.warn)(
                "the last metrics and profiles were not pushed: the OTLP collector did not answer in time",
            );
        }
        Ok(())
    }
}

/// Nobody waits for the thread if the run failed.
impl Drop for OtlpOutput {
    fn drop(&mut self) {
        self.queue.end(Instant::now());
    }
}
