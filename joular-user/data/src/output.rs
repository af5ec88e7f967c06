//! Defines who takes a run's results, and what can go wrong while they are written. Each error
//! names the operation, the object, the cause and what to do about it.

use std::{error::Error, io, path::PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::Pid,
    stacks::StackTable,
};

/// A reader of a run's results.
pub trait Output {
    /// Comes first, once.
    fn run_started(&mut self, run: &RunInfo) -> Result<()>;

    /// Whether it needs command lines as they are. It writes none of them.
    fn needs_command_lines(&self) -> bool {
        false
    }

    /// A process was found, or what is known about it changed.
    fn process(&mut self, process: &ProcessInfo);

    /// A process ended. Comes after the window that has its last time.
    fn process_ended(&mut self, _pid: Pid, _start_boottime_ns: u64) {}

    /// A window is complete; windows come in order of time.
    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()>;

    /// Whether it has written, since this was last asked, what it had kept of windows: there is free memory then.
    fn has_let_go(&mut self) -> bool {
        false
    }

    /// Comes last, once, if the run ended properly.
    fn run_ended(&mut self, end: &RunEnd) -> Result<()>;
}

#[derive(Debug, Error)]
pub enum OutputError {
    #[error("{action} {path}: permission denied: choose a directory you may write with --output, or run as its owner")]
    PermissionDenied { action: &'static str, path: PathBuf },
    #[error("{action} {path}: the file system is read-only: choose another directory with --output")]
    ReadOnly { action: &'static str, path: PathBuf },
    #[error("{action} {path}: it exists and is not a directory: remove it or choose another place")]
    NotADirectory { action: &'static str, path: PathBuf },
    #[error(
        "locking {path}: another run{} is writing there: wait for it to end or choose another directory with --output",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error(
        "writing {path}: no space left on the device (bytes, inodes or a quota): the windows since the last complete \
         file are lost, all earlier files are whole and readable; free some space or choose another file system with \
         --output"
    )]
    DiskFull { path: PathBuf },
    #[error(
        "writing {path}: less than --keep-free of the file system would stay free: the windows since the last complete \
         file are lost, all earlier files are whole and readable; free some space or keep less free"
    )]
    KeptFree { path: PathBuf },
    #[error("{action} {path}: {source}: check that the file system is mounted and healthy")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{action} {path}: {source}")]
    Bucket { action: &'static str, path: PathBuf, source: io::Error },
    #[error("writing to {path}: write to a directory, and bring it there with `joular-bpf ship`")]
    NotLocal { path: PathBuf },
    #[error(
        "opening {path}: {mark} is not there, so the share may not be mounted: mount it, or make the file once: touch \
         {mark}"
    )]
    NoShare { path: PathBuf, mark: PathBuf },
    /// The place does not say in which groups of keys hosts are.
    #[error(
        "{problem}; hosts must be able to read this file if it is there, and to see that it is not: or ship tables"
    )]
    Groups { problem: String },
    #[error("{action} {path}: it is the directory of an experiment, whose variants have a data set each: {advice}")]
    Experiment { action: &'static str, path: PathBuf, advice: String },
    /// What the user named is neither a directory nor a bucket.
    #[error("{0}")]
    NoPlace(String),
    #[error("creating {path}: it must not exist yet: wait for the other run that creates it, or remove it")]
    Exists { path: PathBuf },
    #[error("{action} {path}: it is a symbolic link, which is not followed: remove it")]
    Link { action: &'static str, path: PathBuf },
    #[error(
        "starting run {run_id}: {path} exists, so this run is in the data set already: choose another directory with \
         --output, or remove the run's files from this one"
    )]
    RunExists { run_id: String, path: PathBuf },
    #[error("writing a temporary file in {folder}: {source}: make room there, or name another folder with TMPDIR")]
    Scratch { folder: PathBuf, source: io::Error },
    #[error("writing a window: an earlier write to the data set failed: end the run")]
    AfterFailure,
    #[error("encoding a file of table {table}: {source}: this is a defect, please report it")]
    Encode { table: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("writing {what}: {source}: check what reads the output")]
    Stream { what: &'static str, source: io::Error },
}

impl OutputError {
    /// Whether the reader of a stream has gone.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Stream { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the same may work later, in the same directory.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::DiskFull { .. } | Self::KeptFree { .. } | Self::ReadOnly { .. } => true,
            // The directory itself is gone.
            Self::Io { source, .. } => {
                !matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
            }
            _ => false,
        }
    }

    /// Sorts an I/O error by what its reader can do about it.
    pub fn from_io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS | Errno::PERM) => Self::PermissionDenied { action, path },
            Some(Errno::ROFS) => Self::ReadOnly { action, path },
            Some(Errno::LOOP) => Self::Link { action, path },
            Some(Errno::NOTDIR) => Self::NotADirectory { action, path },
            Some(Errno::NOSPC | Errno::DQUOT) => Self::DiskFull { path },
            _ => Self::Io { action, path, source },
        }
    }

    pub(crate) fn encode<E: Error + Send + Sync + 'static>(table: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Encode { table, source: source.into() }
    }
}

pub type Result<T, E = OutputError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_cause_once() {
        let cause = || io::Error::other("the cause");
        let errors = [
            OutputError::from_io("writing", "/data", cause()),
            OutputError::encode("t")(cause()),
            OutputError::Stream { what: "the summary", source: cause() },
        ];
        for error in errors {
            assert_eq!(error.to_string().matches("the cause").count(), 1, "{error}");
        }
    }
}
