//! Serves S3 on this machine: a bucket as a fleet's hosts have one, which fails as those do.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, Result};

use crate::{process::Running, python};

const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);

/// A server; ends when dropped.
pub struct S3 {
    process: Running,
    port: u16,
}

impl S3 {
    /// With one bucket of this name.
    pub fn with_bucket(name: &str) -> Result<Self> {
        let mut server = Self::serving("s3_server.py", &[])?;
        server.tell(&format!("bucket {name}"))?;
        Ok(server)
    }

    /// With the bucket `fleet`, as if so many hosts had shipped to it for so many days what `place` has: see
    /// `tests/fixtures/python/fleet_server.py`.
    pub fn of_fleet(place: &Path, hosts: u32, days: u32) -> Result<Self> {
        let place = place.to_str().context("a path")?;
        Self::serving("fleet_server.py", &[place, &hosts.to_string(), &days.to_string()])
    }

    fn serving(script: &str, arguments: &[&str]) -> Result<Self> {
        let mut process = Running::spawn(script, python::ENGINES.script(script)?.args(arguments))?;
        let ready = process.wait_stdout("ready ", START)?;
        let port = ready.trim_start_matches("ready ").trim().parse().with_context(|| format!("a port: {ready}"))?;
        Ok(Self { process, port })
    }

    /// What clients need.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
        ]
    }

    /// On this machine's loopback.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// How many requests there were since it was last asked this, as S3 bills them: `PUT`, `GET`, `LIST`, …
    pub fn count(&mut self) -> Result<BTreeMap<String, u64>> {
        self.process.forget_seen();
        self.process.say("count")?;
        let counted = self.process.wait_stdout("counted ", ANSWER)?;
        self.process.wait_stdout("done", ANSWER)?;
        serde_json::from_str(counted.trim_start_matches("counted ")).with_context(|| format!("counts: {counted}"))
    }

    /// Tells it how to serve from now on: see `tests/fixtures/python/s3_server.py`.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        self.process.forget_seen();
        self.process.say(line)?;
        self.process.wait_stdout("done", ANSWER).map(drop)
    }
}
