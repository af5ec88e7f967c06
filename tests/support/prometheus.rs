//! Runs a real Prometheus, and asks it.

use std::{
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{clock::wait_for, process::Running};

const START: Duration = Duration::from_secs(60);
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];

/// One that scrapes every second; ends when dropped.
pub struct Prometheus {
    port: u16,
    _process: Running,
    _folder: TempDir,
}

/// A series of an answer: its labels, and its value now.
pub struct Series {
    pub labels: Value,
    pub value: f64,
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
        let (folder, port) = (tempfile::tempdir()?, free_port()?);
        let config = folder.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: joular\n    static_configs:\n      \
             - targets: ['127.0.0.1:{target}']\n{more}"
        );
        fs::write(&config, text)?;
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).arg("--log.level=error");
        let process = Running::spawn("prometheus", &mut command)?;
        let prometheus = Self { port, _process: process, _folder: folder };
        wait_for("an answer of Prometheus", START, || Ok(prometheus.query("up").ok()))?;
        Ok(prometheus)
    }

    /// What it says now.
    pub fn query(&self, query: &str) -> Result<Vec<Series>> {
        let mut encoded = String::new();
        query.bytes().try_for_each(|byte| write!(encoded, "%{byte:02x}"))?;
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer with a head")?;
        let body: Value = serde_json::from_str(body).with_context(|| answer.clone())?;
        ensure!(body["status"] == "success", "{query}: {body}");
        let series = body["data"]["result"].as_array().with_context(|| format!("{query}: {body}"))?;
        series.iter().map(of_series).collect()
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
