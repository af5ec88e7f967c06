//! Faults of the recorder itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Result;
use joular_tests::{
    clock::wait_between,
    freeze::Frozen,
    mount::Tmpfs,
    powercap::{FakePowercap, Fault, Watts},
    prometheus::answer,
    slowed::{Command, Slowed},
};
use rustix::process::setpriority_process;

use super::site::{Agent, LIMIT, LOOK, MODEL, Site};

/// Short windows, so that a boundary can be missed by less than is late.
const WINDOW: Duration = Duration::from_millis(200);
/// Until a boundary is announced that should be in the future, and is past then.
const MISSED: Duration = Duration::from_millis(300);
/// Between a boundary and the figures of the window that it ends: more than the second that is late.
const LATE: Duration = Duration::from_millis(1500);
/// Between two of them: other maps are written to as well, and that must not add up to what is late.
const APART: Duration = Duration::from_millis(50);
const WATTS: Watts = Watts { idle: 20, per_cpu: 30 };
/// Priority of the client that scrapes without a pause: others do not run on a machine that is as busy as this one may be.
const NICE: i32 = -5;
/// More than the alert allows.
const STARTS: u32 = 4;
/// Which Prometheus has seen of each.
const WINDOWS: f64 = 4.0;

/// The thread that ends windows stands still, is late, and misses boundaries; then the process is gone.
pub fn stopped(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "stopped", None)?;
    let config = format!("{MODEL}interval = '{}ms'\n", WINDOW.as_millis());
    agent.start(&config)?;
    let ends_windows = agent.pid()?;

    let held = Frozen::first_thread(ends_windows)?;
    agent.fires(&["JoularNoWindows"], &[])?;
    drop(held);
    agent.resolves(&["JoularNoWindows"])?;

    // A boundary runs a program on each CPU.
    let cpus = u32::try_from(thread::available_parallelism()?.get())?;
    let late = Slowed::at(ends_windows, Command::RunProgram, LATE / cpus, Duration::ZERO)?;
    agent.fires(&["JoularLate"], &[])?;
    late.end()?;
    agent.resolves(&["JoularLate"])?;

    let missing = Slowed::at(ends_windows, Command::UpdateElement, MISSED, APART)?;
    agent.fires(&["JoularLosses"], &[])?;
    missing.end()?;
    agent.resolves(&["JoularLosses"])?;

    agent.kill();
    agent.fires(&["JoularRecorderGone"], &[])?;
    agent.start(&config)?;
    agent.resolves(&["JoularRecorderGone"])?;
    agent.end()
}

/// A recorder that is killed again and again, and started again each time. It lives for some windows, so that it does not
/// look as if there were none.
pub fn restarted(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "restarted", None)?;
    agent.start(MODEL)?;
    let number = |query: &str| site.prometheus.number(query).unwrap_or(-1.0);
    for before in 0..STARTS {
        let starts = "changes(joular_run_start_time_seconds{instance=\"restarted\"}[5m])";
        let windows = "joular_windows_total{instance=\"restarted\"}";
        wait_between(LOOK, "scrapes of this start", LIMIT, || {
            let is_seen = number(starts) >= f64::from(before) && number(windows) >= WINDOWS;
            Ok(is_seen.then_some(()))
        })?;
        agent.kill();
        agent.start(MODEL)?;
    }
    agent.fires(&["JoularRestarts"], &[])?;
    agent.resolves(&["JoularRestarts"])?;
    agent.end()
}

/// The disk is full, the counter of energy is away, and somebody scrapes without a pause.
pub fn full(site: &Site) -> Result<()> {
    let (disk, counters) = (Tmpfs::mount("size=24m")?, FakePowercap::start(1, WATTS)?);
    let mut agent = Agent::new(site, "full", Some(disk.path()))?;
    agent.start(&format!("energy = 'powercap'\npowercap-root = {:?}\n", counters.root()))?;

    disk.fill()?;
    agent.fires(&["JoularNotWritten"], &[])?;
    disk.make_room()?;
    agent.resolves(&["JoularNotWritten"])?;

    counters.fail(0, Fault::Unreadable)?;
    agent.fires(&["JoularNoEnergy"], &[])?;
    counters.mend(0)?;
    agent.resolves(&["JoularNoEnergy"])?;

    let scraper = Scraper::of(agent.port);
    agent.fires(&["JoularCost"], &[])?;
    drop(scraper);
    agent.resolves(&["JoularCost"])?;
    agent.end()
}

/// A client that asks for metrics as often as it is answered; it ends when dropped.
struct Scraper(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Scraper {
    fn of(port: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let scrape = move || {
            let _allowed = setpriority_process(None, NICE);
            while !is_over.load(Ordering::Relaxed) {
                // If its connection is closed for another one, it asks again.
                let _answer = answer(port, "/metrics", "");
            }
        };
        Self(stop, Some(thread::spawn(scrape)))
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ended = self.1.take().map(JoinHandle::join);
    }
}
