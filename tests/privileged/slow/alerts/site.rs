//! Runs agents and one Prometheus that evaluates our rules over all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::{wait_between, wait_for},
    java::{Jvm, Workload},
    notes, paths,
    process::Running,
    prometheus::{self, Prometheus, Series, free_port},
    service::Manager,
};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{RULES, TOO, scale};

/// A minute of production is two seconds here. Shipping looks for runs every minute here too, which is how much shorter its
/// times can be.
pub const TIMES: u64 = 30;
/// That of Prometheus, five minutes.
const LOOKBACK: Duration = Duration::from_secs(300 / TIMES);
/// For the slowest alert and a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(300);
/// Prometheus evaluates once a second.
pub const LOOK: Duration = Duration::from_millis(250);
pub const MODEL: &str = "energy = 'model'\nmodel-watts = '2:10'\n";

/// What all agents have in common.
pub struct Site {
    pub prometheus: Prometheus,
    jvm: Jvm,
    _rules: TempDir,
}

impl Site {
    pub fn new() -> Result<Self> {
        let rules = tempfile::tempdir()?;
        let file = rules.path().join("joular-alerts.yml");
        let text = fs::read_to_string(paths::root().join("packaging/prometheus/joular-alerts.yml"))?;
        fs::write(&file, scale::scaled(&text, &RULES, TIMES)?)?;
        prometheus::check_rules(&file)?;
        let jvm = Workload::new("Busy").argument("work=2").argument("rest=20").argument("seconds=3600").start()?;
        Ok(Self { prometheus: Prometheus::evaluating(&file, LOOKBACK)?, jvm, _rules: rules })
    }

    /// Every alert of an agent that was firing at some time.
    fn fired(&self, agent: &str) -> Result<BTreeSet<String>> {
        let query = format!("last_over_time(ALERTS{{alertstate=\"firing\", instance=\"{agent}\"}}[1h])");
        let name = |series: &Series| series.labels["alertname"].as_str().map(str::to_owned).context("a name");
        self.prometheus.query(&query)?.iter().map(name).collect()
    }
}

/// An agent, under the name by which Prometheus knows it.
pub struct Agent<'s> {
    site: &'s Site,
    name: &'static str,
    pub port: u16,
    /// Ends before the folder goes that it writes to.
    service: Option<Running>,
    manager: Manager,
    pub data: PathBuf,
    pub folder: TempDir,
}

impl<'s> Agent<'s> {
    /// Not started yet. Its data set is in `disk`, or in its own folder.
    pub fn new(site: &'s Site, name: &'static str, disk: Option<&Path>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = disk.unwrap_or(folder.path()).join("data");
        let manager = Manager::new(folder.path())?;
        Ok(Self { site, name, port: free_port()?, folder, data, manager, service: None })
    }

    /// Starts it with these lines in its configuration, and has it scraped from its first window on.
    pub fn start(&mut self, more: &str) -> Result<()> {
        let config = self.configure(more)?;
        self.service = Some(self.manager.start(Command::new(paths::joular_bpf()), &config)?);
        wait_for("its first window", LIMIT, || {
            let answer = prometheus::answer(self.port, "/readyz", "")?;
            Ok(answer.filter(|answer| answer.starts_with("HTTP/1.1 200 ")))
        })?;
        self.site.prometheus.scrape(self.name, self.port)
    }

    /// Has it go on with another configuration.
    pub fn reload(&mut self, more: &str) -> Result<()> {
        self.configure(more)?;
        self.service.as_ref().context("it runs")?.signal(Signal::HUP)?;
        self.manager.wait("RELOADING=1")?;
        self.manager.wait("READY=1").map(drop)
    }

    pub fn kill(&mut self) {
        self.service = None;
    }

    pub fn pid(&self) -> Result<u32> {
        self.service.as_ref().map(Running::pid).context("it runs")
    }

    /// Ends the story: just its alerts have fired in all this time.
    pub fn end(self) -> Result<()> {
        let of_it = RULES.iter().filter(|rule| rule.agent == self.name);
        let expected: BTreeSet<String> = of_it.map(|rule| rule.alert.to_owned()).collect();
        let mut fired = self.site.fired(self.name)?;
        fired.retain(|alert| !TOO.contains(&(self.name, alert)));
        ensure!(fired == expected, "{fired:?} fired, not {expected:?}");
        Ok(())
    }

    fn configure(&self, more: &str) -> Result<PathBuf> {
        let config = self.folder.path().join("agent.toml");
        let text = format!(
            "pid = [{}]\noutput = {:?}\nflush = '1s'\nkeep-free = '0'\nmetrics = '127.0.0.1:{}'\nmetrics-methods = 0\n{more}",
            self.site.jvm.pid(),
            self.data,
            self.port
        );
        fs::write(&config, text)?;
        Ok(config)
    }

    /// Waits until all of these fire. Others must not, but for those that may come meanwhile.
    pub fn fires(&self, alerts: &[&str], meanwhile: &[&str]) -> Result<()> {
        let (begin, mut seen) = (Instant::now(), BTreeSet::new());
        let what = format!("{alerts:?} of {}", self.name);
        wait_between(LOOK, &what, LIMIT, || {
            let firing = self.firing(&[alerts, meanwhile].concat())?;
            for (name, says) in &firing {
                if seen.insert(name.clone()) {
                    let after_s = begin.elapsed().as_secs();
                    notes::figure(&format!("alerts: {name} of {} fires after {after_s} s: {says}", self.name));
                }
            }
            Ok(alerts.iter().all(|alert| firing.contains_key(*alert)).then_some(()))
        })
    }

    /// Waits until none of these fires any more. Others must not.
    pub fn resolves(&self, alerts: &[&str]) -> Result<()> {
        let begin = Instant::now();
        let what = format!("the end of {alerts:?} of {}", self.name);
        wait_between(LOOK, &what, LIMIT, || Ok(self.firing(alerts)?.is_empty().then_some(())))?;
        let after_s = begin.elapsed().as_secs();
        notes::figure(&format!("alerts: {alerts:?} of {} resolved after {after_s} s", self.name));
        Ok(())
    }

    /// What fires, and what it says; it must be among `expected`.
    fn firing(&self, expected: &[&str]) -> Result<BTreeMap<String, String>> {
        let mut firing = BTreeMap::new();
        for alert in self.site.prometheus.alerts()? {
            if alert.instance != self.name || !alert.is_firing {
                continue;
            }
            let text = |name: &str| alert.annotations.get(name).with_context(|| format!("{}: {name}", alert.name));
            let says = format!("{}. {}", text("summary")?, text("description")?);
            ensure!(expected.contains(&alert.name.as_str()), "{} of {} fires: {says}", alert.name, self.name);
            let is_whole = !["<no value>", "<error", "%!"].iter().any(|part| says.contains(part));
            ensure!(is_whole && says.contains(self.name), "{}: {says}", alert.name);
            firing.insert(alert.name, says);
        }
        Ok(firing)
    }
}
