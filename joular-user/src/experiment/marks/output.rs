//! Copies the command's output to our own, and finds marks in its lines.

use std::{
    io::{self, PipeReader, PipeWriter, Read as _, Write},
    os::fd::AsFd as _,
    process::ChildStdout,
    sync::Arc,
    thread::{self, JoinHandle},
};

use joular_data::events::MarkFrom;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
};

use super::{feed::Feed, rules::Rules};
use crate::{clock::monotonic_now, experiment::work::WorkRule};

/// Of a longer line, only the beginning is looked at.
const MAX_LINE_BYTES: usize = 64 << 10;

/// The thread that copies.
#[derive(Debug)]
pub struct Copying {
    /// Open as long as the command runs.
    running: PipeWriter,
    thread: JoinHandle<io::Result<()>>,
}

impl Copying {
    /// Copies `from` to `to` from now on.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(
        from: ChildStdout,
        to: impl Write + Send + 'static,
        (rules, work): (Rules, Option<Arc<WorkRule>>),
        feed: Feed,
    ) -> io::Result<Self> {
        let (watched, running) = io::pipe()?;
        let lines = Lines { rules, work, feed, line: Vec::new() };
        let copy = move || copy(from, to, lines, &watched);
        let thread = thread::Builder::new().name("joular-output".to_owned()).spawn(copy)?;
        Ok(Self { running, thread })
    }

    /// Copies what the command has written until now, and ends: processes that it left behind may have its output open
    /// for ever.
    ///
    /// # Errors
    /// If our output could not be written. That its reader has gone is not an error.
    pub fn finish(self) -> io::Result<()> {
        drop(self.running);
        match self.thread.join() {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other("the thread that copies has failed")),
        }
    }
}

/// Copies until the end of `from`, or until it is empty and `running` is closed. When our output fails, `from` is closed,
/// so that the command notices.
fn copy(mut from: ChildStdout, mut to: impl Write, mut lines: Lines, running: &PipeReader) -> io::Result<()> {
    let flags = fcntl_getfl(&from)?;
    fcntl_setfl(&from, flags | OFlags::NONBLOCK)?;
    let mut bytes = vec![0; MAX_LINE_BYTES];
    let mut is_running = true;
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let read = bytes.get(..count).unwrap_or_default();
                lines.take(read);
                to.write_all(read)?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_running => {
                is_running = wait(&from, running)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Waits for output, or for the command's end. Returns whether it still runs.
fn wait(from: &ChildStdout, running: &PipeReader) -> io::Result<bool> {
    let mut both = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN), PollFd::new(running, PollFlags::IN)];
    match poll(&mut both, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(both[1].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
}

/// Cuts output into lines, and looks for marks.
struct Lines {
    rules: Rules,
    work: Option<Arc<WorkRule>>,
    feed: Feed,
    /// A line that is not complete.
    line: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        let now = monotonic_now();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_complete) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = MAX_LINE_BYTES - self.line.len();
            self.line.extend_from_slice(text.get(..room).unwrap_or(text));
            if is_complete {
                let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
                self.rules.said(line).for_each(|said| self.feed.put(said.at(now, None, MarkFrom::Output)));
                if let Some(work) = &self.work {
                    work.look(line);
                }
                self.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        sync::Mutex,
    };

    use joular_data::events::MarkKind;
    use proptest::prelude::*;

    use super::{super::feed::queue, *};

    fn rules() -> Rules {
        Rules::new(MarkKind::Begin, &["^begin (?<name>.*)$".to_owned()]).unwrap()
    }

    fn names(pieces: &[&[u8]]) -> Vec<String> {
        let (feed, mut arriving) = queue();
        let mut lines = Lines { rules: rules(), work: None, feed, line: Vec::new() };
        pieces.iter().for_each(|piece| lines.take(piece));
        std::iter::from_fn(|| arriving.waiting()).map(|mark| mark.name.unwrap().into_raw()).collect()
    }

    #[test]
    fn lines_may_come_in_pieces_and_end_as_on_windows() {
        assert_eq!(names(&[b"beg", b"in a\nbegin b\r\n", b"", b"x\nbegin c", b"\n", b"begin d"]), ["a", "b", "c"]);
    }

    #[test]
    fn lines_that_never_end_take_no_memory_and_hide_no_others() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        assert_eq!(names(&[b"begin a\n", &long, &long, b"\nbegin b\n"]), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "(begin [a-c]{0,3}\n|x|\n){0,20}", cuts in proptest::collection::vec(0_usize..60, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(names(&pieces), names(&[bytes]));
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_is_copied_as_it_is_though_others_keep_it_open() {
        // The process in the background has the output for longer than anyone would wait.
        let script = "printf 'begin a\\n\\000\\377 no end of line'; sleep 60 & echo $! >&2";
        let mut shell = Command::new("sh");
        let mut child = shell.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (feed, mut arriving) = queue();
        let copied = Shared::default();
        let copying = Copying::start(child.stdout.take().unwrap(), copied.clone(), (rules(), None), feed).unwrap();
        let mut pid = String::new();
        let mut stderr = io::BufReader::new(child.stderr.take().unwrap());
        io::BufRead::read_line(&mut stderr, &mut pid).unwrap();
        child.wait().unwrap();
        copying.finish().unwrap();
        Command::new("kill").arg(pid.trim()).status().unwrap();
        assert_eq!(*copied.0.lock().unwrap(), b"begin a\n\0\xff no end of line");
        assert_eq!(arriving.waiting().unwrap().name.unwrap(), "a");
    }

    #[test]
    fn a_command_whose_output_nobody_reads_notices() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut child = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
        let (feed, _arriving) = queue();
        let copying = Copying::start(child.stdout.take().unwrap(), Gone, (rules(), None), feed).unwrap();
        assert!(!child.wait().unwrap().success(), "it has no other reason to end");
        copying.finish().unwrap();
    }
}
