//! Serves S3 on this machine: a bucket as a fleet's hosts have one, which fails as those do.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::{process::Running, python};

const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);

/// Set by `cargo xtask test --slow`: tests that cut connections cut each request of long commands, too.
pub const EVERY: &str = "EVERY_CUT";

/// A server; ends when dropped.
pub struct S3 {
    process: Running,
    port: u16,
}

/// Which request of a bucket is cut, after it is done and before it is answered. They are counted from when the server is told.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// This one of those that write. What follows is answered.
    Write(u64),
    /// This one, and nobody answers later ones.
    FromOn(u64),
}

/// How many requests a bucket had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub requests: u64,
    /// Those that write or remove.
    pub writes: u64,
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

    /// The same for clients that try each request once, so that they end soon where nobody answers.
    pub fn environment_of_the_hasty(&self) -> Vec<(&'static str, String)> {
        let mut environment = self.environment();
        environment.push(("AWS_MAX_ATTEMPTS", "1".to_owned()));
        environment
    }

    /// On this machine's loopback.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// How many requests there were since it was last asked this, as S3 bills them: `PUT`, `GET`, `LIST`, …
    pub fn count(&mut self) -> Result<BTreeMap<String, u64>> {
        let counted = self.ask("count", "counted ")?;
        serde_json::from_str(&counted).with_context(|| format!("counts: {counted}"))
    }

    /// Tells it how to serve from now on: see `tests/fixtures/python/s3_server.py`.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        self.process.forget_seen();
        self.process.say(line)?;
        let answer = self.process.wait_stdout("", ANSWER)?;
        ensure!(answer == "done", "{line}: {answer}");
        Ok(())
    }

    /// Cuts connections of a bucket from now on; `None`: no more.
    pub fn cut(&mut self, bucket: &str, cut: Option<Cut>) -> Result<()> {
        self.tell(&match cut {
            None => format!("cut {bucket}"),
            Some(Cut::Write(number)) => format!("cut {bucket} {number} once"),
            Some(Cut::FromOn(number)) => format!("cut {bucket} {number} on"),
        })
    }

    /// What a bucket had since [`Self::cut`].
    pub fn seen(&mut self, bucket: &str) -> Result<Seen> {
        let saw = self.ask(&format!("seen {bucket}"), "saw ")?;
        let figures = saw.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let [requests, writes] = *figures.as_slice() else { anyhow::bail!("two figures: {saw}") };
        Ok(Seen { requests, writes })
    }

    /// The SHA-256 of each object of a bucket.
    pub fn digests(&mut self, bucket: &str) -> Result<BTreeMap<String, String>> {
        let digests = self.ask(&format!("digest {bucket}"), "digests ")?;
        serde_json::from_str(&digests).with_context(|| format!("digests: {digests}"))
    }

    /// Makes an object of a file.
    pub fn put(&mut self, bucket: &str, key: &str, file: &Path) -> Result<()> {
        self.tell(&format!("put {bucket} {key} {}", file.display()))
    }

    /// Makes files of all objects of a bucket.
    pub fn save(&mut self, bucket: &str, folder: &Path) -> Result<()> {
        self.tell(&format!("save {bucket} {}", folder.display()))
    }

    /// What it prints after this word, when it is told this.
    fn ask(&mut self, line: &str, word: &str) -> Result<String> {
        self.process.forget_seen();
        self.process.say(line)?;
        let answer = self.process.wait_stdout(word, ANSWER)?;
        self.process.wait_stdout("done", ANSWER)?;
        Ok(answer.trim_start_matches(word).to_owned())
    }
}
