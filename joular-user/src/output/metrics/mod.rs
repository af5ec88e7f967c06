//! Serves live metrics of a run to Prometheus and what else reads OpenMetrics.
//!
//! Each window is added to sums ([`registry`]). A thread of its own answers scrapes ([`server`]). It makes
//! the text ([`exposition`], [`mod@format`]) from sums that it shares: a window that comes meanwhile goes
//! to a copy of them. So a scrape never holds up a window, and a window costs no text.

mod exposition;
mod format;
mod methods;
mod registry;
mod server;
#[cfg(test)]
mod tests;
mod tls;
mod token;

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
};

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::{MonotonicNs, Pid},
    output::{Output, OutputError, Result},
    stacks::StackTable,
};

pub use self::{
    exposition::Shipped,
    server::Server,
    tls::{Tls, TlsError},
    token::{Token, TokenError},
};
use self::{
    exposition::{Own, render},
    registry::{Limits, Registry},
    server::Running,
};
use crate::clock;

/// Keeps the sums of a run and serves them.
pub struct MetricsOutput {
    top_methods: usize,
    /// `None` before the run starts.
    shared: Option<Arc<Mutex<Shared>>>,
    /// Until the run starts: what is listened at before privileges are dropped is served after.
    waiting: Option<Server>,
    shipped: Option<ReadShipped>,
    running: Option<Running>,
}

/// Tells what was shipped by now.
pub type ReadShipped = Arc<dyn Fn() -> Shipped + Send + Sync>;

/// What the window's thread and the server's have in common.
struct Shared {
    registry: Arc<Registry>,
    /// From the last window's end until its figures were here.
    lag_ns: u64,
}

impl MetricsOutput {
    /// `shipped` is asked at each scrape, if runs are shipped.
    pub fn new(server: Server, top_methods: usize, shipped: Option<ReadShipped>) -> Self {
        Self { top_methods, shared: None, waiting: Some(server), shipped, running: None }
    }

    fn change(&self, change: impl FnOnce(&mut Shared)) {
        if let Some(shared) = &self.shared {
            change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
        }
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
        let shared = Arc::new(Mutex::new(Shared { registry, lag_ns: 0 }));
        self.shared = Some(Arc::clone(&shared));
        if let Some(server) = self.waiting.take() {
            let shipped = self.shipped.clone();
            let running = server.start(Arc::new(move || scraped(&shared, shipped.as_ref())));
            self.running = Some(running.map_err(|source| OutputError::Stream { what: "metrics", source })?);
        }
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.change(|shared| shared.registry().process(process));
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.change(|shared| shared.registry().process_ended((pid, start_boottime_ns)));
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let end = MonotonicNs(report.start.0.saturating_add(report.length_ns));
        self.change(|shared| {
            shared.registry().window(report, stacks);
            shared.lag_ns = clock::monotonic_now().since(end);
        });
        Ok(())
    }

    fn run_ended(&mut self, _: &RunEnd) -> Result<()> {
        Ok(())
    }
}

/// The text for a scrape. The sums are held as they are for that time, and the lock is not.
fn scraped(shared: &Mutex<Shared>, shipped: Option<&ReadShipped>) -> String {
    let (registry, lag_ns) = {
        let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&shared.registry), shared.lag_ns)
    };
    let shipped = shipped.map(|shipped| shipped());
    render(&registry, Own { lag_ns, resident_bytes: resident_bytes(), shipped })
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
