//! Serves live metrics of a run to Prometheus and what else reads OpenMetrics.
//!
//! Each window is added to sums ([`registry`]). A thread of its own answers scrapes ([`server`]). It makes
//! the text ([`families`], [`mod@format`]) from sums that it shares: a window that comes meanwhile goes
//! to a copy of them. So a scrape never holds up a window, and a window costs no text. What pushes metrics
//! ([`super::otlp`]) reads the same sums.

mod families;
mod format;
mod methods;
mod registry;
mod sample;
mod server;
#[cfg(test)]
mod tests;

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
};

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::{MonotonicNs, Pid, UnixMicros},
    output::{Output, OutputError, Result},
    stacks::StackTable,
};

use self::{
    families::{Own, Pushed, tell},
    registry::{LastWindow, Limits, Registry},
    server::{LIMITS, Scrapes, Served},
};
pub use self::{
    families::{ServiceFigures, Shipped},
    format::Exposition,
    sample::{Families, Figure, Kind, Labels, Unit},
    server::exposed,
};
use super::{
    http::{Running, Server},
    otlp::Pushes,
};
use crate::clock;

/// Keeps the sums of a run for those who read them, and serves them.
pub struct MetricsOutput {
    top_methods: usize,
    live: LiveMetrics,
    /// Until the run starts: what is listened at before privileges are dropped is served after.
    waiting: Option<Server>,
    running: Option<Running>,
}

/// The metrics of a run, as they are by now.
#[derive(Clone, Default)]
pub struct LiveMetrics {
    /// `None` before the run starts.
    shared: Arc<Mutex<Option<Shared>>>,
    service: Option<ReadService>,
    pushes: Option<Arc<Pushes>>,
}

/// Metrics of one moment.
#[derive(Clone)]
pub struct Moment {
    registry: Arc<Registry>,
    own: Own,
}

/// Tells how the service goes by now.
pub type ReadService = Arc<dyn Fn() -> ServiceFigures + Send + Sync>;

/// What the window's thread and the server's have in common.
struct Shared {
    registry: Arc<Registry>,
    /// When the run began.
    started: MonotonicNs,
    /// From the last window's end until its figures were here.
    lag_ns: u64,
}

/// No window may be longer under way than so many windows, or [`LATE_NS`] if that is more.
const LATE_WINDOWS: u64 = 3;
const LATE_NS: u64 = 30_000_000_000;

impl MetricsOutput {
    /// `service` is asked for each moment, and `pushes` is shown if metrics are pushed. Without a server, the sums are
    /// for others.
    pub fn new(server: Option<Server>, top_methods: usize, service: ReadService, pushes: Option<Arc<Pushes>>) -> Self {
        let live = LiveMetrics { shared: Arc::default(), service: Some(service), pushes };
        Self { top_methods, live, waiting: server, running: None }
    }

    /// What others read while the run goes on.
    pub fn live(&self) -> LiveMetrics {
        self.live.clone()
    }
}

impl LiveMetrics {
    fn change(&self, change: impl FnOnce(&mut Shared)) {
        if let Some(shared) = self.shared.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            change(shared);
        }
    }

    /// `None` before the run starts. The sums are held as they are until the moment is dropped, and no lock is.
    pub fn now(&self) -> Option<Moment> {
        let (registry, lag_ns) = {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let shared = shared.as_ref()?;
            (Arc::clone(&shared.registry), shared.lag_ns)
        };
        let service = self.service.as_ref().map(|service| service()).unwrap_or_default();
        let pushed = self.pushes.as_ref().map(|pushes| Pushed::of(pushes));
        Some(Moment { registry, own: Own { lag_ns, resident_bytes: resident_bytes(), service, pushed } })
    }

    /// Time since the last window ended, or the run began, and whether that is long.
    fn since_window(&self) -> Option<(u64, bool)> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Shared { registry, started, .. } = shared.as_ref()?;
        let since_ns = clock::monotonic_now().since(registry.last.map_or(*started, |last| last.end));
        let late_ns = registry.run.interval_ns.saturating_mul(LATE_WINDOWS).max(LATE_NS);
        Some((since_ns, since_ns > late_ns))
    }
}

impl Served for LiveMetrics {
    fn metrics(&self) -> String {
        let mut text = Exposition::default();
        if let Some(moment) = self.now() {
            moment.tell(&mut text);
        }
        text.finish()
    }

    fn is_alive(&self) -> (bool, String) {
        match self.since_window() {
            None => (true, "the run has not begun".to_owned()),
            Some((since_ns, is_late)) => {
                (!is_late, format!("the last window ended {} s ago", since_ns / 1_000_000_000))
            }
        }
    }

    fn is_ready(&self) -> (bool, String) {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.as_ref().map_or(0, |shared| shared.registry.windows) {
            0 => (false, "no window has ended yet".to_owned()),
            windows => (true, format!("{windows} windows have ended")),
        }
    }
}

impl Moment {
    /// All metrics, family by family.
    pub fn tell(&self, out: &mut impl Families) {
        tell(out, &self.registry, self.own.clone());
    }

    pub fn run(&self) -> &RunInfo {
        &self.registry.run
    }

    /// The end of the last window; `None` if there was none.
    pub fn end(&self) -> Option<UnixMicros> {
        let LastWindow { wall_start_us, length_ns, .. } = self.registry.last?;
        Some(UnixMicros(wall_start_us.saturating_add(i64::try_from(length_ns / 1000).unwrap_or(i64::MAX))))
    }
}

impl Shared {
    /// The sums, copied first if the server is about to show them.
    fn registry(&mut self) -> &mut Registry {
        Arc::make_mut(&mut self.registry)
    }
}

impl Output for MetricsOutput {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        let registry = Arc::new(Registry::new(Limits::new(self.top_methods), run));
        *self.live.shared.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Shared { registry, started: clock::monotonic_now(), lag_ns: 0 });
        if let Some(server) = self.waiting.take() {
            let live = self.live();
            let running = server.start("metrics", LIMITS, Arc::new(Scrapes(live)));
            self.running = Some(running.map_err(|source| OutputError::Stream { what: "metrics", source })?);
        }
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.live.change(|shared| shared.registry().process(process));
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.live.change(|shared| shared.registry().process_ended((pid, start_boottime_ns)));
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let end = MonotonicNs(report.start.0.saturating_add(report.length_ns));
        self.live.change(|shared| {
            shared.registry().window(report, stacks);
            shared.lag_ns = clock::monotonic_now().since(end);
        });
        Ok(())
    }

    fn run_ended(&mut self, _: &RunEnd) -> Result<()> {
        Ok(())
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
