//! Runs as the helper process: it finds the JVM's socket, becomes the JVM's user, and asks.
//!
//! Order matters. What needs privilege comes first: handles on the process (a pidfd, so that no
//! other process can inherit the signal), its `/tmp` and its working directory. These handles,
//! rather than a change of mount namespace, make it act in the target's file system: every name
//! below them is looked up where the JVM looks it up. Then all privilege is dropped for good. Only
//! then is anything created, signalled or connected, with exactly the rights of the target's user.
//!
//! SIGQUIT tells HotSpot to open its socket, and it ends any process that does not expect it. So it
//! is sent only to the very process that was meant (by its start time), at most once, and only
//! under these conditions: HotSpot's libjvm is mapped, the process catches the signal and has HotSpot's
//! thread for it, and attaching is not switched off (a JVM with that option would print a thread
//! dump instead).

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    process::{Pid as OsPid, PidfdFlags, Signal, fchdir, pidfd_open, pidfd_send_signal},
    thread::{Gid, Uid, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::{
    PERF_MAP_COMMAND,
    protocol::{self, MAX_ANSWER_BYTES, Reply, Target, WAITING_FOR_SOCKET, perf_map_name},
    state::{Status, check_identity, forbids_signal, read},
    tmp_files::{MapPlace, Trigger, socket_is_there},
};
use crate::{
    privileges::lent,
    procs::{maps::Maps, namespaces::TargetRoot},
};

/// How long a JVM may take to open its socket.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// Entry point for `main`, with the arguments behind the program's name. Prints one line of JSON.
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
    // Who calls a copy with more rights than their own has these alone.
    lent::give_up().map_err(|error| because("giving up rights that are not the user's", error))?;
    let process = OpenTarget::open(target)?;
    become_user(target.uid, target.gid)?;
    let mut map = match command {
        PERF_MAP_COMMAND => Some(MapPlace::prepare(process.tmp()?, perf_map_name(target.namespace_pid), target.uid)?),
        _ => None,
    };
    let reply = process.connect(target).and_then(|socket| exchange(socket, &request))?;
    if let (Reply::Done { .. }, Some(map)) = (&reply, &mut map) {
        map.keep();
    }
    Ok(reply)
}

/// Handles on the target, opened with our own rights.
struct OpenTarget {
    pidfd: OwnedFd,
    root: TargetRoot,
    cwd: Option<OwnedFd>,
    /// Why SIGQUIT must not be sent, if so. A socket that is already there can
    /// be used nevertheless.
    forbidden: Option<Reply>,
}

impl OpenTarget {
    fn open(target: &Target) -> Result<Self, Reply> {
        let pid = i32::try_from(target.pid.0).ok().and_then(OsPid::from_raw).ok_or(Reply::Exited)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| because("opening it", error))?;
        let directory = target.proc_root.join(target.pid.to_string());
        check_identity(&directory, target)?;
        let status = Status::parse(&read(&directory.join("status"))?);
        if status.effective_uid != Some(target.uid) {
            return Err(Reply::WrongUser { actual: status.effective_uid.unwrap_or(u32::MAX) });
        }
        let maps = Maps::read(&target.proc_root, target.pid)
            .map_err(|error| because("reading its memory map", Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        if !maps.has_hotspot() {
            return Err(Reply::NotAJvm);
        }
        let forbidden = forbids_signal(&directory, &status)?;
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

    fn tmp(&self) -> Result<BorrowedFd<'_>, Reply> {
        self.root.tmp().ok_or_else(|| Reply::Failed { what: "it has no /tmp".into() })
    }

    fn connect(&self, target: &Target) -> Result<UnixStream, Reply> {
        let tmp = self.tmp()?;
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
        let socket = UnixStream::connect(&socket)
            .map_err(|error| because("connecting to its socket", Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        match listener(&socket) {
            Ok(pid) if u32::try_from(pid) == Ok(target.pid.0) => Ok(socket),
            Ok(_) => Err(Reply::UntrustedSocket),
            Err(error) => Err(because("asking who listens", error)),
        }
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

/// The process that called `listen` on the other end, as our namespace knows it; 0 if it is not in
/// it.
fn listener(socket: &UnixStream) -> Result<i32, Errno> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the descriptor is open, and the kernel writes at most `length`
    // bytes to `peer`, any of which make a valid `ucred`. rustix's wrapper is
    // no choice: its pid cannot be 0.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(peer.pid) } else { Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)) }
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

/// Gives up all rights but those of this user, for good.
fn become_user(uid: u32, gid: u32) -> Result<(), Reply> {
    let own = rustix::process::geteuid();
    let user = Uid::from_raw(uid);
    let group = Gid::from_raw(gid);
    if own.is_root() {
        set_thread_groups(&[]).map_err(|error| because("dropping our groups", error))?;
        set_thread_res_gid(group, group, group).map_err(|error| because("taking its group", error))?;
        set_thread_res_uid(user, user, user).map_err(|error| because("taking its user", error))?;
    } else if own != user {
        return Err(Reply::Permission { what: format!("becoming user {uid}") });
    }
    lent::give_up_all().map_err(|error| because("dropping our capabilities", error))?;
    set_no_new_privs(true).map_err(|error| because("giving up privileges", error))
}

pub(super) fn because(what: &str, error: Errno) -> Reply {
    match error {
        Errno::SRCH => Reply::Exited,
        Errno::ACCESS | Errno::PERM => Reply::Permission { what: what.to_owned() },
        other => Reply::Failed { what: format!("{what}: {other}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_no_jvm_gets_no_signal() {
        let pid = joular_data::model::units::Pid(std::process::id());
        let own = crate::procs::proc_files::ProcFiles::new("/proc").process(pid).unwrap();
        let target = Target {
            pid,
            start_ticks: own.start_boottime_ns / crate::procs::proc_files::TICK_NS,
            namespace_pid: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: 0,
            proc_root: "/proc".into(),
        };
        assert_eq!(OpenTarget::open(&target).map(|_| ()), Err(Reply::NotAJvm));
        let successor = Target { start_ticks: target.start_ticks + 1, ..target.clone() };
        assert_eq!(OpenTarget::open(&successor).map(|_| ()), Err(Reply::Exited));
        let other = Target { uid: 12345, ..target };
        assert!(matches!(OpenTarget::open(&other).map(|_| ()), Err(Reply::WrongUser { .. })));
    }

    #[test]
    fn who_listens_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let socket = UnixStream::connect(&path).unwrap();
        assert_eq!(listener(&socket).ok().and_then(|pid| u32::try_from(pid).ok()), Some(std::process::id()));
    }
}
