//! Serves live metrics of a run to Prometheus and what else reads OpenMetrics.
//!
//! Each window is added to sums ([`registry`]) and written as text once ([`exposition`], [`mod@format`]).
//! A thread of its own serves that text ([`server`]), so scrapes never hold up a window.

mod exposition;
mod format;
mod methods;
mod registry;
mod server;
#[cfg(test)]
mod tests;
mod token;

use std::fs;

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::{MonotonicNs, Pid},
    output::{Output, OutputError, Result},
    stacks::StackTable,
};

use self::{
    exposition::{Own, render},
    registry::{Limits, Registry},
    server::{Published, Running},
};
pub use self::{
    server::Server,
    token::{Token, TokenError},
};
use crate::clock;

/// Keeps the sums of a run and serves them.
pub struct MetricsOutput {
    top_methods: usize,
    registry: Option<Registry>,
    published: Published,
    /// Until the run starts: what is listened at before privileges are dropped is served after.
    waiting: Option<Server>,
    running: Option<Running>,
}

impl MetricsOutput {
    pub fn new(server: Server, top_methods: usize) -> Self {
        Self { top_methods, registry: None, published: Published::default(), waiting: Some(server), running: None }
    }

    fn publish(&self) {
        if let Some(registry) = &self.registry {
            let end = registry.last.map(|last| last.end);
            let lag_ns = end.map_or(0, |end: MonotonicNs| clock::monotonic_now().since(end));
            self.published.set(render(registry, Own { lag_ns, resident_bytes: resident_bytes() }));
        }
    }
}

impl Output for MetricsOutput {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        self.registry = Some(Registry::new(Limits::new(self.top_methods), run));
        self.publish();
        if let Some(server) = self.waiting.take() {
            let running = server.start(self.published.clone());
            self.running = Some(running.map_err(|source| OutputError::Stream { what: "metrics", source })?);
        }
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo) {
        if let Some(registry) = &mut self.registry {
            registry.process(process);
        }
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        if let Some(registry) = &mut self.registry {
            registry.process_ended((pid, start_boottime_ns));
        }
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        if let Some(registry) = &mut self.registry {
            registry.window(report, stacks);
        }
        self.publish();
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
