//! Runs a child process. Its output is collected line by line, its every wait is bounded, and it is
//! killed when its handle is dropped.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write as _},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::wait_for;

#[derive(Default)]
struct Collected {
    lines: Vec<String>,
    ended: bool,
}

/// Lines of one output stream, growing while the process runs.
struct Stream {
    shared: Arc<(Mutex<Collected>, Condvar)>,
    reader: Option<JoinHandle<()>>,
    /// Lines before this one were waited for already.
    seen: usize,
}

impl Stream {
    fn collect(source: impl Read + Send + 'static) -> Self {
        let shared = Arc::new((Mutex::new(Collected::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let reader = thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
                lock(&theirs.0).lines.push(text);
                theirs.1.notify_all();
                line.clear();
            }
            lock(&theirs.0).ended = true;
            theirs.1.notify_all();
        });
        Self { shared, reader: Some(reader), seen: 0 }
    }

    /// The next line that `wanted` accepts, or None if the stream ended without.
    fn wait(&mut self, limit: Duration, wanted: impl Fn(&str) -> bool) -> Result<Option<String>> {
        let end = Instant::now() + limit;
        let mut state = lock(&self.shared.0);
        loop {
            if let Some(at) = state.lines[self.seen..].iter().position(|line| wanted(line)) {
                self.seen += at + 1;
                return Ok(Some(state.lines[self.seen - 1].clone()));
            }
            if state.ended {
                return Ok(None);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("it did not come within {limit:?}");
            }
            state = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Drops the lines that were waited for, and those before them.
    fn forget_seen(&mut self) {
        lock(&self.shared.0).lines.drain(..self.seen);
        self.seen = 0;
    }

    fn text(&self) -> String {
        lock(&self.shared.0).lines.join("\n")
    }
}

/// Locks the lines; a reader thread that panicked leaves whole lines behind.
fn lock(shared: &Mutex<Collected>) -> MutexGuard<'_, Collected> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Running {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

/// The result of a process that ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The exit code, or None if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl Running {
    pub fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {name}: {command:?}"))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        Ok(Self {
            name: name.to_owned(),
            stdin: child.stdin.take(),
            child,
            stdout: Stream::collect(stdout),
            stderr: Stream::collect(stderr),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("its input is closed")?;
        writeln!(stdin, "{line}").with_context(|| format!("telling {} '{line}'", self.name))
    }

    /// Waits for the next line on standard output that starts with `prefix`.
    pub fn wait_stdout(&mut self, prefix: &str, limit: Duration) -> Result<String> {
        let found = self.stdout.wait(limit, |line| line.starts_with(prefix));
        self.found(found, prefix)
    }

    /// The same on standard error.
    pub fn wait_stderr(&mut self, prefix: &str, limit: Duration) -> Result<String> {
        let found = self.stderr.wait(limit, |line| line.starts_with(prefix));
        self.found(found, prefix)
    }

    /// Waits for the next line on standard error that has this text.
    pub fn wait_stderr_with(&mut self, text: &str, limit: Duration) -> Result<String> {
        let found = self.stderr.wait(limit, |line| line.contains(text));
        self.found(found, text)
    }

    /// Drops its output so far, as far as it was waited for: for a process that says much and lives
    /// long.
    pub fn forget_seen(&mut self) {
        self.stdout.forget_seen();
    }

    fn found(&self, found: Result<Option<String>>, prefix: &str) -> Result<String> {
        found
            .and_then(|line| line.context("it ended before"))
            .with_context(|| format!("{}: waiting for a line '{prefix}…'\n{}", self.name, self.said()))
    }

    /// Everything on standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    fn said(&self) -> String {
        format!("--- stdout\n{}\n--- stderr\n{}", self.stdout.text(), self.stderr.text())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).with_context(|| format!("sending {signal:?} to {}", self.name))
    }

    /// Waits for its end. Kills it and fails when that takes longer than `limit`.
    pub fn finish(mut self, limit: Duration) -> Result<Finished> {
        drop(self.stdin.take());
        let child = &mut self.child;
        let status = wait_for(&format!("{} to end", self.name), limit, || Ok(child.try_wait()?));
        let status = status.with_context(|| self.said())?;
        for reader in [self.stdout.reader.take(), self.stderr.reader.take()].into_iter().flatten() {
            // A thread that collects lines has nothing to say at its end.
            let _ended = reader.join();
        }
        Ok(Finished { status, stdout: self.stdout.text(), stderr: self.stderr.text() })
    }

    /// Ends it now, whatever it does, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may be gone already, and that is all we want.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A number of KiB in `/proc/PID/status`, such as `VmHWM:`. One that has ended has none.
pub fn status_kib(pid: u32, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
