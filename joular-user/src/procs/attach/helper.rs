//! The helper process: finds the JVM's socket, becomes the JVM's user, asks.
//!
//! Order matters. What needs privilege comes first: handles on the process
//! (a pidfd, so that no other process can inherit the signal), its `/tmp` and
//! its working directory. These handles, rather than a change of mount
//! namespace, make it act in the target's file system: every name below them
//! is looked up where the JVM looks it up. Then all privilege is dropped for
//! good, and only then anything is created, signalled or connected, with
//! exactly the rights of the target's user.
//!
//! SIGQUIT is how HotSpot is told to open its socket, and it ends any process
//! that does not expect it. It is sent only if libjvm is mapped, the process
//! catches the signal and attaching is not switched off (a JVM with that
//! option would print a thread dump instead), and once at most.

use std::{
    ffi::OsString,
    fs::File,
    io::{Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::ExitCode,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat, unlinkat},
    io::Errno,
    process::{Pid as OsPid, PidfdFlags, Signal, fchdir, pidfd_open, pidfd_send_signal},
    thread::{
        CapabilitySet, CapabilitySets, Gid, Uid, set_capabilities, set_no_new_privs, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    },
};

use super::protocol::{self, MAX_ANSWER_BYTES, Reply, Target, WAITING_FOR_SOCKET};
use crate::procs::{maps::Maps, namespaces::TargetRoot};

/// How long a JVM may take to open its socket.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// Most that is read of a file under /proc.
const MAX_PROC_BYTES: u64 = 4 << 20;

/// Entry point for `main`: the arguments behind the program's name. Prints one
/// line of JSON.
pub fn run_helper(arguments: &[OsString]) -> ExitCode {
    let reply = match protocol::decode(arguments) {
        Some((target, command)) => ask(&target, &command).unwrap_or_else(|reply| reply),
        None => Reply::Failed { what: "the attach helper was called with wrong arguments".into() },
    };
    let Ok(mut line) = serde_json::to_vec(&reply) else { return ExitCode::FAILURE };
    line.push(b'\n');
    match std::io::stdout().write_all(&line) {
        Ok(()) if matches!(reply, Reply::Done { .. }) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn ask(target: &Target, command: &str) -> Result<Reply, Reply> {
    let request =
        protocol::request(command).ok_or_else(|| Reply::Failed { what: "the command has a zero byte in it".into() })?;
    let process = Process::open(target)?;
    become_user(target.uid, target.gid)?;
    process.connect(target).and_then(|socket| exchange(socket, &request))
}

/// Handles on the target, opened with our own rights.
struct Process {
    pidfd: OwnedFd,
    root: TargetRoot,
    cwd: Option<OwnedFd>,
    /// Why SIGQUIT must not be sent, if so. A socket that is already there can
    /// be used nevertheless.
    forbidden: Option<Reply>,
}

impl Process {
    fn open(target: &Target) -> Result<Self, Reply> {
        let pid = i32::try_from(target.pid.0).ok().and_then(OsPid::from_raw).ok_or(Reply::Exited)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| because("opening it", error))?;
        let directory = target.proc_root.join(target.pid.to_string());
        let status = Status::parse(&read(&directory.join("status"))?);
        if status.effective_uid != Some(target.uid) {
            return Err(Reply::WrongUser { actual: status.effective_uid.unwrap_or(u32::MAX) });
        }
        let maps = Maps::read(&target.proc_root, target.pid)
            .map_err(|error| because("reading its memory map", Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        if !maps.has_libjvm() {
            return Err(Reply::NotAJvm);
        }
        let options = [read(&directory.join("environ")).unwrap_or_default(), read(&directory.join("cmdline"))?];
        let forbidden = if protocol::attach_disabled(&[&options[0], &options[1]]) {
            Some(Reply::Disabled)
        } else if !status.catches_sigquit {
            Some(Reply::SignalNotCaught)
        } else if status.is_stopped {
            Some(Reply::Stopped)
        } else {
            None
        };
        let root = TargetRoot::open(&target.proc_root, target.pid).map_err(|error| match error {
            crate::procs::namespaces::TargetFileError::Root { source, .. } => {
                because("opening its root", Errno::from_io_error(&source).unwrap_or(Errno::IO))
            }
            other => Reply::Failed { what: other.to_string() },
        })?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let cwd = open(directory.join("cwd"), flags, Mode::empty()).ok();
        Ok(Self { pidfd, root, cwd, forbidden })
    }

    fn connect(&self, target: &Target) -> Result<UnixStream, Reply> {
        let tmp = self.root.tmp().ok_or_else(|| Reply::Failed { what: "it has no /tmp".into() })?;
        let socket = format!(".java_pid{}", target.namespace_pid);
        if !socket_is_there(tmp, &socket, target.uid)? {
            if let Some(reply) = &self.forbidden {
                return Err(reply.clone());
            }
            self.wake(tmp, &socket, target)?;
        }
        // A socket is only found by path; relative to the handle, the path
        // cannot lead elsewhere.
        fchdir(tmp).map_err(|error| because("entering its /tmp", error))?;
        UnixStream::connect(&socket)
            .map_err(|error| because("connecting to its socket", Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }

    /// Asks HotSpot to open its socket and waits for it.
    fn wake(&self, tmp: BorrowedFd<'_>, socket: &str, target: &Target) -> Result<(), Reply> {
        let name = format!(".attach_pid{}", target.namespace_pid);
        let _trigger = Trigger::create(self.cwd.as_ref().map(AsFd::as_fd), tmp, name, target.uid)?;
        pidfd_send_signal(&self.pidfd, Signal::QUIT).map_err(|error| because("sending SIGQUIT", error))?;
        let deadline = Instant::now() + SOCKET_TIMEOUT;
        let mut pause = Duration::from_millis(5);
        while !socket_is_there(tmp, socket, target.uid)? {
            if Instant::now() >= deadline {
                return Err(Reply::Timeout { waiting_for: WAITING_FOR_SOCKET.into() });
            }
            if has_ended(&self.pidfd) {
                return Err(Reply::Exited);
            }
            sleep(pause);
            pause = (pause * 3 / 2).min(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// A pidfd becomes readable when its process ends.
fn has_ended(pidfd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The file whose presence makes SIGQUIT mean "open the socket". Removed on drop.
struct Trigger<'a> {
    directory: BorrowedFd<'a>,
    name: String,
}

impl<'a> Trigger<'a> {
    /// HotSpot looks in its working directory first, and takes no file but its
    /// own user's: with another one there, SIGQUIT would print a thread dump.
    fn create(cwd: Option<BorrowedFd<'a>>, tmp: BorrowedFd<'a>, name: String, uid: u32) -> Result<Self, Reply> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut last = Errno::NOENT;
        for directory in cwd.into_iter().chain([tmp]) {
            let is_ours = match openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(_) => true,
                Err(Errno::EXIST) => false,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            // One that another caller left or is using serves as well, but is
            // not ours to remove.
            let trigger = Self { directory, name: if is_ours { name.clone() } else { String::new() } };
            let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| because("looking at its attach file", error))?;
            if stat.st_uid == uid {
                return Ok(trigger);
            }
            return Err(Reply::Failed {
                what: format!("its attach file {name} belongs to user {}, not {uid}", stat.st_uid),
            });
        }
        Err(because("creating its attach file", last))
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // HotSpot may have removed it itself; nothing else can be done.
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn socket_is_there(tmp: BorrowedFd<'_>, name: &str, uid: u32) -> Result<bool, Reply> {
    match statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket && stat.st_uid == uid => Ok(true),
        Ok(_) => Err(Reply::UntrustedSocket),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(because("looking for its socket", error)),
    }
}

fn exchange(mut socket: UnixStream, request: &[u8]) -> Result<Reply, Reply> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            Reply::Timeout { waiting_for: "its answer".into() }
        }
        _ => because("talking to it", Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    };
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    socket.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
    socket.write_all(request).map_err(failed)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while (answer.len() as u64) < MAX_ANSWER_BYTES {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(left)).map_err(failed)?;
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(protocol::parse_answer(&answer))
}

/// Gives up everything but the rights of this user, for good.
fn become_user(uid: u32, gid: u32) -> Result<(), Reply> {
    let own = rustix::process::geteuid();
    let user = Uid::from_raw(uid);
    let group = Gid::from_raw(gid);
    if own.is_root() {
        set_thread_groups(&[]).map_err(|error| because("dropping our groups", error))?;
        set_thread_res_gid(group, group, group).map_err(|error| because("taking its group", error))?;
        set_thread_res_uid(user, user, user).map_err(|error| because("taking its user", error))?;
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
            .map_err(|error| because("dropping our capabilities", error))?;
    } else if own != user {
        return Err(Reply::Permission { what: format!("becoming user {uid}") });
    }
    set_no_new_privs(true).map_err(|error| because("giving up privileges", error))
}

fn because(what: &str, error: Errno) -> Reply {
    match error {
        Errno::SRCH => Reply::Exited,
        Errno::ACCESS | Errno::PERM => Reply::Permission { what: what.to_owned() },
        other => Reply::Failed { what: format!("{what}: {other}") },
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Reply> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_PROC_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Reply::Exited),
        Err(error) => {
            Err(because(&format!("reading {}", path.display()), Errno::from_io_error(&error).unwrap_or(Errno::IO)))
        }
    }
}

/// What matters of `/proc/PID/status`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    effective_uid: Option<u32>,
    catches_sigquit: bool,
    /// By a signal or a tracer: SIGQUIT would wait until our attach file is gone.
    is_stopped: bool,
}

impl Status {
    fn parse(text: &[u8]) -> Self {
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
    fn a_process_that_is_no_jvm_gets_no_signal() {
        let target = Target {
            pid: crate::units::Pid(std::process::id()),
            namespace_pid: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: 0,
            proc_root: "/proc".into(),
        };
        assert_eq!(Process::open(&target).map(|_| ()), Err(Reply::NotAJvm));
        let other = Target { uid: 12345, ..target };
        assert!(matches!(Process::open(&other).map(|_| ()), Err(Reply::WrongUser { .. })));
    }
}
