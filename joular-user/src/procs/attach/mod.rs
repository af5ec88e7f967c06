//! Asks a running HotSpot for a diagnostic command, without a tool of the JDK.
//!
//! HotSpot only listens to a caller with its own credentials who finds its socket in its own
//! `/tmp`. The profiler's process must not change credentials. So it runs itself once more as a
//! short-lived helper (`/proc/self/exe __attach-helper …`, see [`helper`]), which gives up all that
//! it does not need, asks, prints one line of JSON and ends. Whatever happens to it, the parent
//! waits for [`TOTAL_TIMEOUT`] at most.

pub mod helper;
pub mod protocol;
mod state;
mod tmp_files;

use std::{
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

pub use helper::run_helper;
use joular_data::model::{target_text::TargetText, units::Pid};
pub use protocol::{HELPER_ARGUMENT, Target};
use protocol::{MAX_ANSWER_BYTES, Reply, WAITING_FOR_END, WAITING_FOR_SOCKET, perf_map_name};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use thiserror::Error;

use super::own_processes::OwnProcesses;

/// After this the helper is killed.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait for a killed helper.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// Helpers that had not ended by then because the kernel held them.
static UNREAPED: Mutex<Vec<Child>> = Mutex::new(Vec::new());
/// Our own binary, even if its file was replaced since it started.
pub const OWN_BINARY: &str = "/proc/self/exe";
/// Diagnostic command that writes `/tmp/perf-PID.map`.
pub const PERF_MAP_COMMAND: &str = "Compiler.perfmap";

/// The text a JVM answered.
pub type AttachOutcome = Result<String, AttachError>;

#[derive(Debug, Error)]
pub enum AttachError {
    #[error("attaching to JVM {pid}: it runs with -XX:+DisableAttachMechanism: start it without that option")]
    Disabled { pid: Pid },
    #[error(
        "attaching to JVM {pid}: it does not catch SIGQUIT (still starting, or started with -Xrs), so the signal would end it and is not sent"
    )]
    SignalNotCaught { pid: Pid },
    #[error(
        "attaching to JVM {pid}: it is stopped (by SIGSTOP or a debugger) and would print a thread dump when it continues, so it is not asked"
    )]
    Stopped { pid: Pid },
    #[error("attaching to process {pid}: it is not a HotSpot JVM")]
    NotAJvm { pid: Pid },
    #[error("asking JVM {pid} for {command}: unknown command: {}", unknown_command_hint(.command))]
    UnknownCommand { pid: Pid, command: String },
    #[error("asking JVM {pid} for {command}: it answered status {status}: {text}")]
    Refused { pid: Pid, command: String, status: i32, text: TargetText },
    #[error("attaching to JVM {pid}: no answer in time ({waiting_for}): is it stopped or very busy?")]
    Timeout { pid: Pid, waiting_for: String },
    #[error("attaching to JVM {pid}: it has ended")]
    Exited { pid: Pid },
    #[error("attaching to JVM {pid}: {what}: permission denied: run as root")]
    Permission { pid: Pid, what: String },
    #[error("attaching to JVM {pid}: it runs as user {actual}, not {expected}, and is not attached to")]
    WrongUser { pid: Pid, expected: u32, actual: u32 },
    #[error("attaching to JVM {pid}: the file at its socket's path is not a socket of the JVM's user and is not used")]
    UntrustedSocket { pid: Pid },
    #[error(
        "attaching to JVM {pid}: not asked for a perf map: {path} in its root is {what}, and the JVM would write to it: \
         remove it"
    )]
    UntrustedMap { pid: Pid, path: String, what: String },
    #[error("attaching to JVM {pid}: {what}")]
    Failed { pid: Pid, what: String },
    #[error("starting the attach helper {}: {source}", .helper.display())]
    Helper { helper: std::path::PathBuf, source: io::Error },
}

impl AttachError {
    /// Whether asking again later cannot help, or would disturb: a JVM that does not open its
    /// socket gets no second SIGQUIT.
    pub fn is_final(&self) -> bool {
        match self {
            Self::SignalNotCaught { .. } | Self::NotAJvm { .. } => false,
            _ if self.is_passing() => false,
            Self::Helper { .. } | Self::Failed { .. } => false,
            Self::Timeout { waiting_for, .. } => [WAITING_FOR_SOCKET, WAITING_FOR_END].contains(&&**waiting_for),
            _ => true,
        }
    }

    /// Whether nothing is wrong: the JVM continues some day, or changed its user meanwhile.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::WrongUser { .. })
    }
}

fn unknown_command_hint(command: &str) -> &'static str {
    if command.starts_with(PERF_MAP_COMMAND) { "it came with JDK 17" } else { "this JDK does not have it" }
}

/// Makes the JVM write its perf map. Blocks, [`TOTAL_TIMEOUT`] at most.
pub fn request_perf_map(target: &Target, helper: &Path) -> AttachOutcome {
    jcmd(target, helper, PERF_MAP_COMMAND)
}

/// Runs a diagnostic command (`VM.version`, …) in the JVM, by means of the
/// program `helper`, which is [`OWN_BINARY`] outside of tests. Blocks,
/// [`TOTAL_TIMEOUT`] at most.
pub fn jcmd(target: &Target, helper: &Path, command: &str) -> AttachOutcome {
    let failed = |source| AttachError::Helper { helper: helper.to_owned(), source };
    reap();
    let mut command_line = Command::new(helper);
    command_line
        .args(protocol::encode(target, command))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // An interrupt from the terminal is for us: the helper cleans up behind itself.
        .process_group(0);
    let mut child = OwnProcesses::ours().start(&mut command_line).map_err(failed)?;
    let answer = match child.stdout.take() {
        Some(stdout) => read_until(stdout, Instant::now() + TOTAL_TIMEOUT),
        None => Ok(None),
    };
    let has_ended = end(child);
    match answer.map_err(failed)? {
        Some(line) => outcome(target, command, &line),
        None if !has_ended => Err(AttachError::Timeout { pid: target.pid, waiting_for: WAITING_FOR_END.into() }),
        None => Err(AttachError::Timeout { pid: target.pid, waiting_for: "the attach helper".into() }),
    }
}

/// Reads everything until the end of the pipe; `None` if that does not come in time.
fn read_until(mut stdout: ChildStdout, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    // JSON escapes at most sixfold.
    let limit = usize::try_from(MAX_ANSWER_BYTES * 6 + 1024).unwrap_or(usize::MAX);
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let count = stdout.read(&mut buffer)?;
        line.extend_from_slice(&buffer[..count]);
        if count == 0 || line.len() > limit {
            return Ok(Some(line));
        }
    }
}

/// Kills the helper, waits a moment for its end, and returns whether it came.
fn end(mut child: Child) -> bool {
    // It has closed its output or is out of time: either way it is done for.
    // This only fails if it is gone already.
    let _ = child.kill();
    let deadline = Instant::now() + END_TIMEOUT;
    let mut pause = Duration::from_micros(100);
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            // Within a system call that no signal ends: a file system that hangs.
            UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).push(child);
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    true
}

/// Collects helpers that were given up and have ended since.
fn reap() {
    UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

fn outcome(target: &Target, command: &str, line: &[u8]) -> AttachOutcome {
    let pid = target.pid;
    let command = || command.to_owned();
    let reply = serde_json::from_slice(line)
        .unwrap_or_else(|_| Reply::Failed { what: "the attach helper ended without an answer".into() });
    Err(match reply {
        Reply::Done { text } => return Ok(text),
        Reply::Refused { text, .. } if text.contains("Unknown diagnostic command") => {
            AttachError::UnknownCommand { pid, command: command() }
        }
        Reply::Refused { status, text } => {
            let text = text.lines().next().unwrap_or_default().chars().take(200).collect::<String>().into();
            AttachError::Refused { pid, command: command(), status, text }
        }
        Reply::Disabled => AttachError::Disabled { pid },
        Reply::SignalNotCaught => AttachError::SignalNotCaught { pid },
        Reply::Stopped => AttachError::Stopped { pid },
        Reply::NotAJvm => AttachError::NotAJvm { pid },
        Reply::WrongUser { actual } => AttachError::WrongUser { pid, expected: target.uid, actual },
        Reply::Exited => AttachError::Exited { pid },
        Reply::Timeout { waiting_for } => AttachError::Timeout { pid, waiting_for },
        Reply::Permission { what } => AttachError::Permission { pid, what },
        Reply::UntrustedSocket => AttachError::UntrustedSocket { pid },
        Reply::UntrustedMap { what } => {
            AttachError::UntrustedMap { pid, path: format!("/tmp/{}", perf_map_name(target.namespace_pid)), what }
        }
        Reply::Failed { what } => AttachError::Failed { pid, what },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target { pid: Pid(1), namespace_pid: 1, uid: 0, gid: 0, start_ticks: 0, proc_root: "/proc".into() }
    }

    fn check(reply: &Reply, expected: &str) {
        let line = serde_json::to_vec(reply).unwrap();
        let error = outcome(&target(), PERF_MAP_COMMAND, &line).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn replies_become_errors_that_say_what_to_do() {
        check(
            &Reply::Refused {
                status: 1,
                text: "java.lang.IllegalArgumentException: Unknown diagnostic command".into(),
            },
            "it came with JDK 17",
        );
        check(&Reply::Refused { status: 1, text: "no\nmore".into() }, "status 1: no");
        check(&Reply::Refused { status: 1, text: "\u{1b}[2J".into() }, "status 1: \\x1b[2J");
        check(&Reply::Disabled, "-XX:+DisableAttachMechanism");
        check(&Reply::WrongUser { actual: 7 }, "runs as user 7, not 0");
        check(&Reply::SignalNotCaught, "does not catch SIGQUIT");
        check(&Reply::UntrustedMap { what: "a FIFO".into() }, "/tmp/perf-1.map in its root is a FIFO");
    }

    #[test]
    fn a_helper_that_says_nonsense_or_is_missing_is_an_error() {
        assert!(matches!(jcmd(&target(), Path::new("/bin/true"), "x"), Err(AttachError::Failed { .. })));
        assert!(matches!(jcmd(&target(), Path::new("/none"), "x"), Err(AttachError::Helper { .. })));
    }

    #[test]
    fn waiting_for_the_helper_is_bounded() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_millis(30);
        assert_eq!(read_until(child.stdout.take().unwrap(), deadline).unwrap(), None);
        assert!(end(child));
    }

    #[test]
    fn a_helper_that_was_given_up_is_reaped_later() {
        let child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        UNREAPED.lock().unwrap().push(child);
        let deadline = Instant::now() + Duration::from_secs(10);
        while UNREAPED.lock().unwrap().iter().any(|child| child.id() == pid) {
            assert!(Instant::now() < deadline);
            reap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
