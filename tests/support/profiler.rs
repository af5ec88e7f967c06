//! Runs joular-bpf as its users do: a command line, two output streams, an exit code, a data set.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::{
    dataset::DataSet,
    notes, paths,
    process::{Finished, Running},
};

/// Loading programs and looking at all processes takes about a second.
const START: Duration = Duration::from_secs(30);

/// Ending writes the last files and asks JVMs for the last names.
pub const END: Duration = Duration::from_secs(30);

/// The line on standard error that says: attached, and the first window began.
const RECORDING: &str = "joular-bpf: recording";

/// How a window begins on standard output with `--json`.
const WINDOW: &str = "{\"type\":\"window\"";

/// A command line of joular-bpf.
pub struct Run {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    pub fn new() -> Self {
        Self { program: paths::joular_bpf(), arguments: Vec::new() }
    }

    /// A live run with an energy source that every machine has.
    pub fn modelled() -> Self {
        Self::new().with("--energy", "model").with("--model-watts", "10:30")
    }

    pub fn program(mut self, program: &Path) -> Self {
        self.program = program.to_owned();
        self
    }

    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn with(self, option: &str, value: impl Into<OsString>) -> Self {
        self.argument(option).argument(value)
    }

    pub fn pid(self, pid: u32) -> Self {
        self.with("--pid", pid.to_string())
    }

    pub fn output(self, dir: &Path) -> Self {
        self.with("--output", dir)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// Starts it without waiting for anything.
    pub fn spawn(self) -> Result<Profiler> {
        Ok(Profiler { process: Running::spawn("joular-bpf", &mut self.command())? })
    }

    /// Starts it and waits until it records.
    pub fn start(self) -> Result<Profiler> {
        let mut profiler = self.spawn()?;
        profiler.wait_recording()?;
        Ok(profiler)
    }

    /// Runs it to its own end, which must come within `limit`.
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        self.spawn()?.finish(limit)
    }
}

/// A running profiler; killed when dropped.
pub struct Profiler {
    process: Running,
}

impl Profiler {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn wait_recording(&mut self) -> Result<String> {
        self.process.wait_stderr(RECORDING, START).context("joular-bpf did not begin to record")
    }

    /// Waits until it has told this, in the middle of a line.
    pub fn wait_told(&mut self, text: &str, limit: Duration) -> Result<String> {
        self.process.wait_stderr_with(text, limit)
    }

    /// With `--json`: waits for the next window's line.
    pub fn wait_window(&mut self) -> Result<String> {
        self.process.wait_stdout(WINDOW, START).context("there was no next window")
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Waits until it ends by itself.
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        self.process.finish(limit)
    }

    /// Ends the run as Ctrl-C does, and demands an orderly end.
    pub fn stop(self) -> Result<Finished> {
        self.signal(Signal::INT)?;
        let finished = self.finish(END)?;
        anyhow::ensure!(finished.code() == Some(0), "after SIGINT: {finished:?}");
        Ok(finished)
    }
}

/// Where it is set, what tests recorded stays, for somebody who wants to know why one failed.
const KEEP: &str = "KEEP_OUTPUT";

/// A new empty directory for a data set, removed when dropped, and the set.
pub struct Output {
    parent: tempfile::TempDir,
    pub data: DataSet,
}

impl Output {
    pub fn new() -> Result<Self> {
        let mut parent = tempfile::tempdir()?;
        let data = DataSet::at(parent.path().join("out"));
        if env::var_os(KEEP).is_some() {
            parent.disable_cleanup(true);
            notes::figure(&format!("{KEEP}: {}", data.dir().display()));
        }
        Ok(Self { parent, data })
    }

    pub fn dir(&self) -> &Path {
        self.data.dir()
    }

    /// A place beside the data set, for files that belong to the same test.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.parent.path().join(name)
    }
}
