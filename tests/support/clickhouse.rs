//! Serves ClickHouse on this machine, by chdb: a database as a fleet has one, whose connections are cut.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::{process::Running, python};

const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(60);

/// A server; ends when dropped.
pub struct ClickHouse {
    process: Running,
    port: u16,
    _data: TempDir,
}

impl ClickHouse {
    /// With nothing in it.
    pub fn start() -> Result<Self> {
        let data = tempfile::tempdir()?;
        let mut command = python::ENGINES.script("clickhouse_server.py")?;
        let mut process = Running::spawn("clickhouse_server.py", command.arg(data.path().join("data")))?;
        let ready = process.wait_stdout("ready ", START)?;
        let port = ready.trim_start_matches("ready ").trim().parse().with_context(|| format!("a port: {ready}"))?;
        Ok(Self { process, port, _data: data })
    }

    /// Of its HTTP interface.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Runs the statements of a file.
    pub fn script(&mut self, path: &Path) -> Result<()> {
        self.tell(&format!("script {}", path.display())).map(drop)
    }

    /// The rows of a statement, as JSON objects.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Value>> {
        let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        match self.tell(&format!("sql {line}")).with_context(|| line.clone())? {
            Value::Array(rows) => Ok(rows),
            other => bail!("{line}: {other}"),
        }
    }

    /// Tells it how to serve from now on: see `tests/fixtures/python/clickhouse_server.py`.
    pub fn tell(&mut self, line: &str) -> Result<Value> {
        self.process.forget_seen();
        self.process.say(line)?;
        let answer = self.process.wait_stdout("", ANSWER)?;
        match answer.strip_prefix("done") {
            Some("") => Ok(Value::Null),
            Some(rows) => serde_json::from_str(rows).with_context(|| format!("{line}: {rows}")),
            None => bail!("{line}: {answer}"),
        }
    }
}
