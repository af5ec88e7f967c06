//! Tests that what is pushed over OTLP is the data set's figures, to the microjoule, also if the collector is busy or
//! away for a while, and that one who takes nothing costs nothing but a warning.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    process::{Finished, Running},
    profiler::{END, Output, Run},
    prometheus::free_port,
    python,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const TOKEN: &str = "collectors-token";
const START: Duration = Duration::from_secs(60);
/// How often the program is told to allocate 1.5 GB, which takes longer than a recording.
const ALLOCATING: usize = 100;

struct Collector {
    process: Running,
    port: u16,
}

impl Collector {
    fn start() -> Result<Self> {
        let mut process = Running::spawn("collector.py", python::COMMON.script("collector.py")?.arg(TOKEN))?;
        let ready = process.wait_stdout("ready ", START)?;
        let port = ready.trim_start_matches("ready ").trim().parse().with_context(|| format!("a port: {ready}"))?;
        Ok(Self { process, port })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/tenant/", self.port)
    }

    /// What it took until now.
    fn taken(self) -> Result<Vec<Value>> {
        self.process.signal(Signal::TERM)?;
        let stdout = self.process.finish(END)?.stdout;
        let requests = stdout.lines().filter(|line| line.starts_with('{')).map(serde_json::from_str);
        requests.collect::<Result<_, _>>().context(stdout.clone())
    }
}

fn headers(directory: &Path, token: &str) -> Result<PathBuf> {
    let path = directory.join("headers");
    fs::write(&path, format!("Authorization: Bearer {token}\n"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

fn record(output: &Output, jvm: u32, url: &str, token: &str) -> Result<Finished> {
    let directory = tempfile::tempdir()?;
    let run = Run::modelled().pid(jvm).with("--duration", "6s").with("--interval", "500ms");
    let run = run.with("--otlp", url).with("--otlp-interval", "1s").argument("--otlp-profiles").argument("--alloc");
    let run = run.with("--otlp-headers", headers(directory.path(), token)?).argument("--quiet");
    let finished = run.output(output.dir()).finish(START)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(finished)
}

fn told<'a>(finished: &'a Finished, words: &str) -> Vec<&'a str> {
    finished.stderr.lines().filter(|line| line.contains(words)).collect()
}

#[test]
fn a_collector_that_was_busy_has_what_the_data_set_has() -> Result<()> {
    let (output, collector) = (Output::new()?, Collector::start()?);
    let mut jvm = Workload::new("Allocations").start()?;
    (0..ALLOCATING).try_for_each(|_| jvm.say("go"))?;
    let finished = record(&output, jvm.pid(), &collector.url(), TOKEN)?;
    let of_each_path = [("503 Service Unavailable", 2), ("429 Too Many Requests", 2), ("works again", 2)];
    for (words, times) in [("pushing profiles to", 3)].into_iter().chain(of_each_path) {
        ensure!(told(&finished, words).len() == times, "{words} {times} times: {finished:?}");
    }
    let requests = collector.taken()?;
    let taken = |path: &str| requests.iter().filter(|request| request["path"] == path).collect::<Vec<_>>();

    let profiles = taken("/tenant/v1development/profiles");
    let sum = |kind: &str| profiles.iter().filter_map(|request| request["sums"][kind].as_f64()).sum::<f64>();
    for (kind, table, column) in [
        ("energy", "branches", "energy_uj"),
        ("cpu", "branches", "cpu_ns"),
        ("samples", "branches", "samples"),
        ("alloc_space", "allocations", "allocated_bytes"),
    ] {
        let pushed = sum(kind);
        let recorded = output.data.number(&format!("SELECT sum({column})::DOUBLE FROM {table}"))?;
        ensure!(recorded > 0.0 && pushed == recorded, "{kind}: {pushed} were pushed, {recorded} recorded");
    }
    ensure!(profiles.iter().all(|request| request["pids"] == json!([jvm.pid()])), "{profiles:?}");

    let metrics = taken("/tenant/v1/metrics");
    let last = metrics.last().context("metrics")?;
    for (metric, table, column) in [
        ("joular_targets_joules", "threads", "energy_uj"),
        ("joular_process_joules", "threads", "energy_uj"),
        ("joular_method_joules", "branches", "energy_uj"),
        ("joular_domain_joules", "windows", "measured_uj"),
    ] {
        let recorded = output.data.number(&format!("SELECT sum({column})::DOUBLE FROM {table}"))?;
        let pushed = (last["sums"][metric].as_f64().context(metric)? * 1e6).round();
        ensure!(pushed == recorded, "{metric}: {pushed} were pushed, {recorded} recorded");
        ensure!(last["units"][metric] == "J", "{last}");
    }
    ensure!(
        last["resource"]["service.name"] == "joular-bpf" && last["starts"].as_array().is_some_and(|s| s.len() == 1)
    );
    ensure!(last["labels"]["joular_process_joules"][0]["pid"] == json!(jvm.pid().to_string()), "{last}");
    Ok(())
}

#[test]
fn a_collector_that_takes_nothing_costs_a_warning() -> Result<()> {
    let collector = Collector::start()?;
    let jvm = Workload::new("Busy").start()?;
    let nobody = format!("http://127.0.0.1:{}", free_port()?);
    for (url, token, words) in [
        (collector.url(), "guessed", "401 Unauthorized: who are you?: check --otlp-headers"),
        (format!("{}elsewhere", collector.url()), TOKEN, "check --otlp"),
        (nobody, TOKEN, "onnection refused"),
    ] {
        let output = Output::new()?;
        let finished = record(&output, jvm.pid(), &url, token)?;
        ensure!(told(&finished, words).len() == 2, "once for each signal: {finished:?}");
        ensure!(output.data.number("SELECT count(DISTINCT window_start) FROM windows")? >= 11.0, "{finished:?}");
    }
    Ok(())
}

#[test]
fn a_collector_that_never_answers_holds_up_neither_windows_nor_the_end() -> Result<()> {
    let (silent, output) = (TcpListener::bind("127.0.0.1:0")?, Output::new()?);
    let jvm = Workload::new("Busy").start()?;
    let begin = Instant::now();
    let finished = record(&output, jvm.pid(), &format!("http://{}", silent.local_addr()?), TOKEN)?;
    ensure!(told(&finished, "did not answer in time").len() == 1, "{finished:?}");
    // 6 s of recording, 2 s for the last push, and the time that loading takes.
    ensure!(begin.elapsed() < Duration::from_secs(6 + 2) + END, "{finished:?}");
    ensure!(output.data.number("SELECT count(DISTINCT window_start) FROM windows")? >= 11.0, "{finished:?}");
    Ok(())
}
