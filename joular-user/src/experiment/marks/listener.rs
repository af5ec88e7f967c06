//! Hears marks by a datagram socket and by a named pipe.
//!
//! The socket tells who sent a mark and when. Java and shells have no such sockets, but can write a file: the pipe is for
//! them.

use std::{
    io::{self, IoSliceMut, PipeReader, PipeWriter, Read as _},
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::{
            fs::{OpenOptionsExt as _, PermissionsExt as _, chown},
            net::UnixDatagram,
        },
    },
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
    time::Instant,
};

use joular_data::{
    events::MarkFrom,
    model::units::{MonotonicNs, Pid},
};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, UnixAddr, UnixCredentials, recvmsg, setsockopt,
    sockopt::{PassCred, ReceiveTimestampns},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{FileType, Mode, mknodat},
};
use tempfile::TempDir;

use super::{
    feed::Feed,
    said::{MAX_LINE_BYTES, Said},
    turns::{Period, in_turns},
};
use crate::clock::{Clocks, monotonic_now};

/// Variables of the command's environment.
pub const SOCKET_VARIABLE: &str = "JOULAR_MARKS";
pub const PIPE_VARIABLE: &str = "JOULAR_MARKS_PIPE";

/// A mark does not come later than this. What seems to is of a clock that was set.
const LONGEST_WAY_NS: u64 = 60_000_000_000;

/// A socket and a pipe that nobody listens to yet.
#[derive(Debug)]
pub struct Listener {
    socket: UnixDatagram,
    pipe: std::fs::File,
    folder: TempDir,
}

/// The thread that listens.
#[derive(Debug)]
pub struct Listening {
    /// Closed to end it.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    /// Removed at the end.
    _folder: TempDir,
}

impl Listener {
    /// Makes both in a new folder of `owner`, where nobody else gets in.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn new(owner: Option<(u32, u32)>) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("joular-bpf-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let (socket_path, pipe_path) = (socket_path(folder.path()), pipe_path(folder.path()));
        let socket = UnixDatagram::bind(&socket_path)?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, PassCred, &true)?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        mknodat(rustix::fs::CWD, &pipe_path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let mut options = std::fs::OpenOptions::new();
        // Open for writing too, so that it has no end when a writer closes it.
        let pipe = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&pipe_path)?;
        if let Some((uid, gid)) = owner {
            for path in [&socket_path, &pipe_path, &folder.path().to_owned()] {
                chown(path, Some(uid), Some(gid))?;
            }
        }
        Ok(Self { socket, pipe, folder })
    }

    /// What the command is told.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let folder = self.folder.path();
        [(SOCKET_VARIABLE, socket_path(folder)), (PIPE_VARIABLE, pipe_path(folder))]
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn listen(self, feed: Feed) -> io::Result<Listening> {
        let (stopped, stop) = io::pipe()?;
        let Self { socket, pipe, folder } = self;
        let mut ears =
            Ears { datagrams: Datagrams { socket, feed: feed.clone() }, lines: Lines { pipe, line: Vec::new(), feed } };
        let listen = move || ears.listen(&stopped);
        let thread = thread::Builder::new().name("joular-marks".to_owned()).spawn(listen)?;
        Ok(Listening { stop: Some(stop), thread: Some(thread), _folder: folder })
    }
}

fn socket_path(folder: &Path) -> PathBuf {
    folder.join("marks.sock")
}

fn pipe_path(folder: &Path) -> PathBuf {
    folder.join("marks.pipe")
}

impl Listening {
    /// Takes what was said until now, and ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, marks would be missing, and nothing else.
            let _ended = thread.join();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread has.
struct Ears {
    datagrams: Datagrams,
    lines: Lines,
}

struct Datagrams {
    socket: UnixDatagram,
    feed: Feed,
}

struct Lines {
    pipe: std::fs::File,
    /// What came and is not a whole line.
    line: Vec<u8>,
    feed: Feed,
}

impl Ears {
    fn listen(&mut self, stopped: &PipeReader) {
        let mut period = Period::new(Instant::now());
        loop {
            let mut all = [
                PollFd::new(&self.datagrams.socket, PollFlags::IN),
                PollFd::new(&self.lines.pipe, PollFlags::IN),
                PollFd::new(stopped, PollFlags::IN),
            ];
            // Only if the process is out of memory. Then it hears no more.
            if poll(&mut all, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                return;
            }
            let is_last = !all[2].revents().is_empty();
            let heard = in_turns(|| self.datagrams.hear(), || self.lines.hear());
            if is_last {
                return;
            }
            if let Some(rest) = period.rest(heard, Instant::now()) {
                thread::sleep(rest);
            }
        }
    }
}

impl Datagrams {
    /// Returns whether there was one.
    fn hear(&self) -> bool {
        // One more than is read, to tell what is too long.
        let mut bytes = [0; MAX_LINE_BYTES + 1];
        let Ok(datagram) = Datagram::receive(&self.socket, &mut bytes) else { return false };
        let Datagram { length, pid, at } = datagram;
        let bytes = bytes.get(..length).unwrap_or_default();
        if length > MAX_LINE_BYTES {
            self.feed.unknown(bytes);
            return true;
        }
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match Said::parse(line) {
                Some(said) => self.feed.put(said.at(at, pid, MarkFrom::Socket)),
                None => self.feed.unknown(line),
            }
        }
        true
    }
}

impl Lines {
    /// Returns whether there was anything.
    fn hear(&mut self) -> bool {
        let mut bytes = [0; MAX_LINE_BYTES];
        let Ok(count @ 1..) = self.pipe.read(&mut bytes) else { return false };
        let now = monotonic_now();
        for piece in bytes.get(..count).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            // One more than is read, to tell what is too long.
            let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match Said::parse(&line) {
                    Some(said) => self.feed.put(said.at(now, None, MarkFrom::Pipe)),
                    None if line.trim_ascii().is_empty() => {}
                    None => self.feed.unknown(&line),
                }
            }
        }
        true
    }
}

/// A datagram that was received.
struct Datagram {
    length: usize,
    pid: Option<Pid>,
    /// When it was sent.
    at: MonotonicNs,
}

impl Datagram {
    fn receive(socket: &UnixDatagram, bytes: &mut [u8]) -> nix::Result<Self> {
        let mut control = nix::cmsg_space!(UnixCredentials, libc::timespec);
        let mut parts = [IoSliceMut::new(bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let (mut pid, mut sent) = (None, None);
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::ScmCredentials(sender) => pid = u32::try_from(sender.pid()).ok().map(Pid),
                ControlMessageOwned::ScmTimestampns(time) => {
                    sent = Some(time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec()));
                }
                ControlMessageOwned::ScmRights(files) => close(files),
                _ => {}
            }
        }
        let at = sent.map_or_else(monotonic_now, sent_at);
        Ok(Self { length: message.bytes, pid: pid.filter(|pid| pid.0 > 0), at })
    }
}

/// Files that a sender passed: nobody asked for any.
fn close(files: Vec<RawFd>) {
    for file in files {
        // SAFETY: the kernel made this descriptor for this process when it received the message, and nothing has it yet.
        drop(unsafe { OwnedFd::from_raw_fd(file) });
    }
}

/// The moment at which the wall clock said so many ns, which was a short time ago.
fn sent_at(wall_ns: i64) -> MonotonicNs {
    let (clocks, now) = (Clocks::now(), monotonic_now());
    let ahead_ns = clocks.wall_minus_boot_ns.saturating_add_unsigned(clocks.suspended_ns);
    let sent_ns = u64::try_from(wall_ns.saturating_sub(ahead_ns)).unwrap_or(0);
    if sent_ns > now.0 || now.0 - sent_ns > LONGEST_WAY_NS { now } else { MonotonicNs(sent_ns) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _};

    use joular_data::events::{Mark, MarkKind};

    use super::{super::feed::queue, *};

    /// What is heard of a use of the two paths.
    fn heard(use_them: impl FnOnce(&Path, &Path)) -> (Vec<Mark>, Option<String>) {
        let listener = Listener::new(None).unwrap();
        let [(_, socket), (_, pipe)] = listener.environment();
        let (feed, mut arriving) = queue();
        let faults = feed.faults();
        let listening = listener.listen(feed).unwrap();
        use_them(&socket, &pipe);
        listening.finish();
        assert!(!socket.exists() && !socket.parent().unwrap().exists());
        (std::iter::from_fn(|| arriving.waiting()).collect(), faults.notice())
    }

    #[test]
    fn datagrams_tell_who_sent_them_and_when() {
        let mut before = MonotonicNs(0);
        let (marks, notice) = heard(|socket, _| {
            let sender = UnixDatagram::unbound().unwrap();
            before = monotonic_now();
            sender.send_to(b"begin load rows=7", socket).unwrap();
            sender.send_to(b"end load\nevent done\n", socket).unwrap();
        });
        let after = monotonic_now();
        let kinds: Vec<MarkKind> = marks.iter().map(|mark| mark.kind).collect();
        assert_eq!(kinds, [MarkKind::Begin, MarkKind::End, MarkKind::Event]);
        assert!(marks.iter().all(|mark| mark.pid == Some(Pid(std::process::id()))));
        // Two clocks are compared, one after the other.
        assert!(marks.iter().all(|mark| mark.at.0 + 1_000_000 > before.0 && mark.at <= after), "{before:?} {marks:?}");
        assert_eq!(
            (marks[0].name.as_ref().unwrap().raw(), marks[0].attributes.as_ref().unwrap().raw()),
            ("load", "rows=7")
        );
        assert_eq!(notice, None);
    }

    #[test]
    fn the_pipe_takes_lines_of_many_writers() {
        let (marks, notice) = heard(|_, pipe| {
            fs::write(pipe, "begin load\n").unwrap();
            fs::write(pipe, "end ").unwrap();
            fs::write(pipe, "load\n\nevent done\n").unwrap();
        });
        let kinds: Vec<MarkKind> = marks.iter().map(|mark| mark.kind).collect();
        assert_eq!(kinds, [MarkKind::Begin, MarkKind::End, MarkKind::Event]);
        assert_eq!((marks[0].pid, marks[0].from, notice), (None, MarkFrom::Pipe, None));
    }

    #[test]
    fn what_is_hostile_is_counted_and_hides_nothing() {
        let (marks, notice) = heard(|socket, pipe| {
            let sender = UnixDatagram::unbound().unwrap();
            for line in [&b"begin a"[..], b"\x1b[2J", &[b'x'; 100_000], &[0; 4096], b"", b"end a"] {
                sender.send_to(line, socket).unwrap();
            }
            fs::write(pipe, [b'y'; 50_000]).unwrap();
            fs::write(pipe, "\nevent b\n").unwrap();
        });
        let names: Vec<_> = marks.iter().map(|mark| mark.name.clone().unwrap().into_raw()).collect();
        assert_eq!(names, ["a", "a", "b"]);
        let notice = notice.unwrap();
        assert!(notice.starts_with("4 lines") && notice.contains("'\\x1b[2J'"), "{notice}");
    }

    #[test]
    fn only_the_user_gets_in() {
        let listener = Listener::new(None).unwrap();
        let [(_, socket), (_, pipe)] = listener.environment();
        assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(pipe).unwrap().mode() & 0o777, 0o600);
    }
}
