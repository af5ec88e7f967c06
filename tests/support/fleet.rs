//! A bucket of a large fleet, of which nothing is stored, and what questions to it cost.

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    clock::wait_for,
    dataset::share,
    paths,
    process::{Finished, Running, status_kib},
    python,
    s3::S3,
};

/// Days for which its hosts have shipped, from 2026-03-01 on.
pub const DAYS: u32 = 30;
/// Runs that each host ships in an hour.
pub const RUNS_OF_AN_HOUR: u64 = 4;
/// A service that runs on all of its hosts.
pub const SERVICE: &str = "service-0";

/// An hour in the midst of its days, and all of them.
pub const HOUR: [&str; 2] = ["2026-03-15T12:00:00Z", "2026-03-15T13:00:00Z"];
pub const ALL_DAYS: [&str; 2] = ["2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z"];

/// For what is made before.
const MAKE: Duration = Duration::from_secs(120);
/// The hour in which the recording was made, of which a run is copied.
const RECORDED: [&str; 2] = ["2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"];

/// A server with such a bucket.
pub struct Fleet {
    server: S3,
    /// Energy of [`SERVICE`] in a run, in µJ.
    pub of_run_uj: u64,
    _place: TempDir,
}

/// What a question was answered by.
#[derive(Debug)]
pub struct Answer {
    /// Energy of [`SERVICE`], in µJ.
    pub energy_uj: u64,
    /// Kinds of requests, and `AT_ONCE`.
    pub requests: BTreeMap<String, u64>,
    /// The most memory that the program had.
    pub peak_kib: u64,
    pub seconds: f64,
}

impl Answer {
    /// How many requests of a kind there were, or of all kinds.
    pub fn count(&self, kind: Option<&str>) -> u64 {
        let is_it = |name: &str| kind.map_or(name != "AT_ONCE", |kind| name == kind);
        self.requests.iter().filter(|(name, _)| is_it(name)).map(|(_, count)| count).sum()
    }
}

impl Fleet {
    /// Of so many hosts, each with one service on two processes of the known recording.
    pub fn of(hosts: u32) -> Result<Self> {
        let parent = tempfile::tempdir()?;
        let (recorded, place) = (parent.path().join("recorded"), parent.path().join("place"));
        let recording = paths::fixtures().join("recordings/two_jvms.jrec");
        share(&place)?;
        let (recorded, place, recording) = (text(&recorded)?, text(&place)?, text(&recording)?);
        let [since, until] = RECORDED;
        done(&["--replay", recording, "--quiet", "--flush", "1s", "--output", recorded])?;
        done(&["ship", recorded, place, "--window", "60s", "--json"])?;
        let mut name = python::ENGINES.script("fleet_server.py")?;
        let named = Running::spawn("fleet_server.py", name.args(["name", place]))?.finish(MAKE)?;
        ensure!(named.status.success(), "naming services: {named:?}");
        done(&["compact", place, "--since", since, "--until", until, "--json"])?;
        let of_run_uj = energy(&done(&question(place, None))?)?;
        let server = S3::of_fleet(Path::new(place), hosts, DAYS)?;
        Ok(Self { server, of_run_uj, _place: parent })
    }

    /// Asks for the energy of [`SERVICE`] between two times, of what hosts shipped (an empty tier) or of a tier.
    pub fn ask(&mut self, program: &Path, tier: &str, times: [&str; 2], limit: Duration) -> Result<Answer> {
        self.server.count()?;
        let place = format!("s3://fleet/energy/{tier}");
        let place = place.trim_end_matches('/');
        let mut command = Command::new(program);
        command.args(question(place, Some(times))).envs(self.server.environment());
        let started = Instant::now();
        let running = Running::spawn("joular-bpf", &mut command)?;
        let (pid, mut peak_kib) = (running.pid(), 0);
        // The kernel keeps the peak. Of a process that has ended there is none.
        wait_for("the answer", limit, || match status_kib(pid, "VmHWM:") {
            Ok(kib) => {
                peak_kib = kib;
                Ok(None)
            }
            Err(_) => Ok(Some(())),
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let finished = running.finish(limit)?;
        ensure!(finished.status.success(), "{place}: {finished:?}");
        Ok(Answer { energy_uj: energy(&finished)?, requests: self.server.count()?, peak_kib, seconds })
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path")
}

fn question<'a>(place: &'a str, times: Option<[&'a str; 2]>) -> Vec<&'a str> {
    let mut arguments = vec!["report", place, "--service", SERVICE, "--by", "service", "--top", "0", "--json"];
    if let Some([since, until]) = times {
        arguments.extend(["--since", since, "--until", until]);
    }
    arguments
}

fn done(arguments: &[&str]) -> Result<Finished> {
    let mut command = Command::new(paths::joular_bpf());
    let finished = Running::spawn("joular-bpf", command.args(arguments))?.finish(MAKE)?;
    ensure!(finished.status.success(), "{arguments:?}: {finished:?}");
    Ok(finished)
}

/// Energy of the only service in a report, in µJ.
fn energy(report: &Finished) -> Result<u64> {
    let report: Value = serde_json::from_str(&report.stdout)?;
    let rows = report["tables"][0]["rows"].as_array().context("rows")?;
    ensure!(rows.len() == 1 && rows[0]["name"] == SERVICE, "{rows:?}");
    rows[0]["self_uj"].as_u64().context("an energy")
}
