//! Reads from a JVM's /proc directory how to treat it.

use std::{fs::File, io::Read as _, path::Path};

use rustix::io::Errno;

use super::{
    helper::because,
    protocol::{self, Reply, Target},
};
use crate::procs::proc_files::parse_stat;

/// Most that is read of a file under /proc.
const MAX_PROC_BYTES: u64 = 4 << 20;
/// Threads looked at: HotSpot starts the one that matters among its first.
const MAX_TASKS: usize = 256;
/// The thread that takes SIGQUIT in HotSpot, "Signal Dispatcher" as the kernel cuts it. A JVM under
/// -Xrs has none, nor has anything that merely maps libjvm.
const SIGNAL_THREAD: &[u8] = b"Signal Dispatch\n";

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Reply> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_PROC_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Reply::Exited),
        Err(error) => {
            Err(because(&format!("reading {}", path.display()), Errno::from_io_error(&error).unwrap_or(Errno::IO)))
        }
    }
}

/// Checks that the process is still the one that was meant: its pid may have been given to another
/// one.
pub(super) fn check_identity(directory: &Path, target: &Target) -> Result<(), Reply> {
    let stat = read(&directory.join("stat"))?;
    match parse_stat(&String::from_utf8_lossy(&stat)) {
        Some(stat) if stat.start_ticks == target.start_ticks => Ok(()),
        _ => Err(Reply::Exited),
    }
}

/// Why SIGQUIT must not be sent, if so.
pub(super) fn forbids_signal(directory: &Path, status: &Status) -> Result<Option<Reply>, Reply> {
    let options = [read(&directory.join("environ")).unwrap_or_default(), read(&directory.join("cmdline"))?];
    Ok(if protocol::attach_disabled(&[&options[0], &options[1]]) {
        Some(Reply::Disabled)
    } else if !status.catches_sigquit || !has_signal_thread(directory) {
        Some(Reply::SignalNotCaught)
    } else if status.is_stopped {
        Some(Reply::Stopped)
    } else {
        None
    })
}

fn has_signal_thread(directory: &Path) -> bool {
    let Ok(tasks) = std::fs::read_dir(directory.join("task")) else { return false };
    tasks.flatten().take(MAX_TASKS).any(|task| read(&task.path().join("comm")).is_ok_and(|comm| comm == SIGNAL_THREAD))
}

/// The needed parts of `/proc/PID/status`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) effective_uid: Option<u32>,
    pub(super) catches_sigquit: bool,
    /// Stopped by a signal or a tracer: SIGQUIT would wait until our attach file is gone.
    pub(super) is_stopped: bool,
}

impl Status {
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut status = Self::default();
        for line in String::from_utf8_lossy(text).lines() {
            if let Some(ids) = line.strip_prefix("Uid:") {
                status.effective_uid = ids.split_ascii_whitespace().nth(1).and_then(|id| id.parse().ok());
            } else if let Some(state) = line.strip_prefix("State:") {
                status.is_stopped = state.trim_start().starts_with(['T', 't']);
            } else if let Some(mask) = line.strip_prefix("SigCgt:") {
                let mask = u64::from_str_radix(mask.trim(), 16).unwrap_or(0);
                // Signal n is bit n - 1; SIGQUIT is 3.
                status.catches_sigquit = mask & (1 << 2) != 0;
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use joular_data::model::units::Pid;

    use super::*;

    fn check(text: &str, effective_uid: Option<u32>, catches_sigquit: bool) {
        let is_stopped = text.contains("stopped");
        assert_eq!(Status::parse(text.as_bytes()), Status { effective_uid, catches_sigquit, is_stopped }, "{text:?}");
    }

    #[test]
    fn who_it_runs_as_and_what_it_catches() {
        check("Name:\tjava\nUid:\t0\t1000\t0\t0\nSigCgt:\t2000000181005ccf\n", Some(1000), true);
        check("Uid:\t0\t0\t0\t0\nSigCgt:\t0000000000004002\n", Some(0), false);
        check("State:\tT (stopped)\nUid:\t0\t5\t5\t5\n", Some(5), false);
        check("State:\tt (tracing stopped)\n", None, false);
        check("State:\tS (sleeping)\n", None, false);
        check("Uid:\nSigCgt:\tzz\n", None, false);
        check("", None, false);
    }

    #[test]
    fn sigquit_needs_a_thread_that_takes_it() {
        for (threads, catches_sigquit, is_stopped, expected) in [
            (&["java", "Signal Dispatch"][..], true, false, None),
            (&["java", "Signal Dispatch"], false, false, Some(Reply::SignalNotCaught)),
            (&["java", "Signal Dispatch"], true, true, Some(Reply::Stopped)),
            (&["java", "Signal"], true, false, Some(Reply::SignalNotCaught)),
            (&[], true, false, Some(Reply::SignalNotCaught)),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("cmdline"), "java\0Main\0").unwrap();
            for (tid, comm) in threads.iter().enumerate() {
                let task = directory.path().join("task").join(tid.to_string());
                fs::create_dir_all(&task).unwrap();
                fs::write(task.join("comm"), format!("{comm}\n")).unwrap();
            }
            let status = Status { effective_uid: Some(0), catches_sigquit, is_stopped };
            assert_eq!(forbids_signal(directory.path(), &status), Ok(expected), "{threads:?}");
        }
    }

    #[test]
    fn a_successor_with_the_same_pid_is_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let target =
            |start_ticks| Target { pid: Pid(7), namespace_pid: 7, uid: 0, gid: 0, start_ticks, proc_root: "/".into() };
        assert_eq!(check_identity(directory.path(), &target(1234)), Err(Reply::Exited));
        let stat = "7 (java) S 3 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1234 0 0";
        fs::write(directory.path().join("stat"), stat).unwrap();
        assert_eq!(check_identity(directory.path(), &target(1234)), Ok(()));
        assert_eq!(check_identity(directory.path(), &target(1235)), Err(Reply::Exited));
    }
}
