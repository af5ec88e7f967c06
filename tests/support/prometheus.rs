//! Runs a real Prometheus, and asks it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{clock::wait_for, process::Running};

const START: Duration = Duration::from_secs(60);
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// Where the files are that name what is scraped.
const TARGETS: &str = "targets";

/// One that scrapes every second; ends when dropped.
pub struct Prometheus {
    port: u16,
    _process: Running,
    folder: TempDir,
}

/// A series of an answer: its labels, and its value now.
pub struct Series {
    pub labels: Value,
    pub value: f64,
}

/// An alert that a rule raises now.
pub struct Alert {
    pub name: String,
    pub instance: String,
    /// Otherwise it waits for its `for`.
    pub is_firing: bool,
    /// As they are sent, by name.
    pub annotations: BTreeMap<String, String>,
}

pub fn is_installed() -> bool {
    PROGRAMS.iter().all(|program| Command::new(program).arg("--version").output().is_ok())
}

/// A port of this machine that nobody listens at.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What a recording that serves metrics at this port answers; `None` while nobody listens. `headers` end a line each.
pub fn answer(port: u16, path: &str, headers: &str) -> Result<Option<String>> {
    answer_within(START, port, path, headers)
}

/// The same, and no part of an answer may take longer than `limit`.
pub fn answer_within(limit: Duration, port: u16, path: &str, headers: &str) -> Result<Option<String>> {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Ok(None) };
    stream.set_read_timeout(Some(limit))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(Some(answer))
}

/// Checks a file of rules by Prometheus's own tool.
pub fn check_rules(file: &PathBuf) -> Result<()> {
    let output = Command::new("promtool").args(["check", "rules"]).arg(file).output().context("starting promtool")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs a file of series and of the alerts that they must raise, whose `RULES` are this file.
pub fn test_rules(tests: &str, rules: &Path) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(tests.replace("RULES", &rules.display().to_string()).as_bytes())?;
    let output =
        Command::new("promtool").args(["test", "rules"]).arg(file.path()).output().context("starting promtool")?;
    let text = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    Ok(())
}

impl Prometheus {
    /// Scrapes `/metrics` at this port.
    pub fn scraping(target: u16) -> Result<Self> {
        Self::scraping_with(target, "")
    }

    /// Scrapes over TLS, which it trusts by `authority`, and shows the token in a file.
    pub fn scraping_over_tls(target: u16, authority: &Path, token: &Path) -> Result<Self> {
        let more = format!(
            "    scheme: https\n    tls_config: {{ca_file: '{}'}}\n    authorization: {{credentials_file: '{}'}}\n",
            authority.display(),
            token.display()
        );
        Self::scraping_with(target, &more)
    }

    fn scraping_with(target: u16, more: &str) -> Result<Self> {
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: joular\n    static_configs:\n      \
             - targets: ['127.0.0.1:{target}']\n{more}"
        );
        Self::start(tempfile::tempdir()?, &config, &[])
    }

    /// Evaluates a file of rules every second, over what [`Self::scrape`] names. A series without news for longer than
    /// `lookback` has no value.
    pub fn evaluating(rules: &Path, lookback: Duration) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join(TARGETS))?;
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n  \
             - job_name: joular\n    file_sd_configs:\n      - files: ['{}/*.json']\n        refresh_interval: 1s\n",
            rules.display(),
            folder.path().join(TARGETS).display()
        );
        Self::start(folder, &config, &[format!("--query.lookback-delta={}ms", lookback.as_millis())])
    }

    fn start(folder: TempDir, text: &str, more: &[String]) -> Result<Self> {
        let port = free_port()?;
        let config = folder.path().join("prometheus.yml");
        fs::write(&config, text)?;
        let mut command = Command::new("prometheus");
        command.args(more);
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).arg("--log.level=error");
        let process = Running::spawn("prometheus", &mut command)?;
        let prometheus = Self { port, _process: process, folder };
        wait_for("an answer of Prometheus", START, || Ok(prometheus.query("up").ok()))?;
        Ok(prometheus)
    }

    /// Scrapes `/metrics` at this port from now on, under this name.
    pub fn scrape(&self, instance: &str, target: u16) -> Result<()> {
        let folder = self.folder.path().join(TARGETS);
        let text = json!([{"targets": [format!("127.0.0.1:{target}")], "labels": {"instance": instance}}]);
        // Renamed, so that it reads no half of a file.
        let whole = folder.join(format!("{instance}.new"));
        fs::write(&whole, text.to_string())?;
        fs::rename(whole, folder.join(format!("{instance}.json"))).context("naming a target")
    }

    /// The alerts that are firing, or wait for it.
    pub fn alerts(&self) -> Result<Vec<Alert>> {
        let data = self.get("alerts")?;
        data["alerts"].as_array().context("alerts")?.iter().map(of_alert).collect()
    }

    /// What it says now.
    pub fn query(&self, query: &str) -> Result<Vec<Series>> {
        let mut encoded = String::new();
        query.bytes().try_for_each(|byte| write!(encoded, "%{byte:02x}"))?;
        let data = self.get(&format!("query?query={encoded}")).with_context(|| query.to_owned())?;
        let series = data["result"].as_array().with_context(|| format!("{query}: {data}"))?;
        series.iter().map(of_series).collect()
    }

    /// The data of an answer of its API.
    fn get(&self, path: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(stream, "GET /api/v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer with a head")?;
        let mut body: Value = serde_json::from_str(body).with_context(|| answer.clone())?;
        ensure!(body["status"] == "success", "{body}");
        Ok(body["data"].take())
    }

    /// The value of a query with one.
    pub fn number(&self, query: &str) -> Result<f64> {
        let series = self.query(query)?;
        ensure!(series.len() == 1, "{query} has {} series", series.len());
        Ok(series[0].value)
    }
}

fn of_series(series: &Value) -> Result<Series> {
    let value = series["value"][1].as_str().context("a value")?.parse()?;
    Ok(Series { labels: series["metric"].clone(), value })
}

fn of_alert(alert: &Value) -> Result<Alert> {
    let label =
        |name: &str| alert["labels"][name].as_str().map(str::to_owned).with_context(|| format!("{name}: {alert}"));
    let annotations = alert["annotations"].as_object().into_iter().flatten();
    let annotations = annotations.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()));
    Ok(Alert {
        name: label("alertname")?,
        instance: label("instance")?,
        is_firing: alert["state"] == "firing",
        annotations: annotations.collect(),
    })
}
