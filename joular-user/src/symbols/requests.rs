//! Perf map requests, each on a thread of its own: one may take seconds, and
//! the windows go on meanwhile.

use std::{
    io::{BufReader, Read as _},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::perf_map::PerfMap;
use crate::{
    clock::monotonic_now,
    procs::{
        attach::{AttachError, Target, request_perf_map},
        namespaces::{Expect, Links, TargetFileError, TargetRoot},
    },
    units::{MonotonicNs, Pid},
};

/// At the same time, over all processes.
const MAX_RUNNING: usize = 2;
/// Read of one perf map.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// A process: its pid and its start.
pub type ProcessKey = (Pid, u64);

/// Everything that one request needs.
#[derive(Debug)]
pub struct Request {
    pub process: ProcessKey,
    pub root: Arc<TargetRoot>,
    pub target: Target,
    /// The program that attaches; `None` if the file is only to be read.
    pub helper: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Finished {
    pub process: ProcessKey,
    pub cost: Duration,
    /// When the snapshot was complete.
    pub taken: MonotonicNs,
    pub result: Result<PerfMap, RequestError>,
}

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("reading the perf map of process {pid}: {source}")]
    File { pid: Pid, source: TargetFileError },
    #[error("reading the perf map of process {pid}: {source}")]
    Read { pid: Pid, source: std::io::Error },
}

/// Name of a process's perf map in its `/tmp`.
pub fn file_name(namespace_pid: u32) -> String {
    format!("perf-{namespace_pid}.map")
}

/// The requests under way.
#[derive(Debug)]
pub struct Requests {
    sender: Sender<Finished>,
    receiver: Receiver<Finished>,
    running: usize,
}

impl Default for Requests {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, running: 0 }
    }
}

impl Requests {
    pub const fn has_room(&self) -> bool {
        self.running < MAX_RUNNING
    }

    pub const fn are_idle(&self) -> bool {
        self.running == 0
    }

    /// Starts one; says whether it could.
    pub fn start(&mut self, request: Request) -> bool {
        let sender = self.sender.clone();
        let work = move || {
            // Nobody listens any more if the profiler is ending.
            let _ = sender.send(run(&request));
        };
        let started = thread::Builder::new().name("perf-map".into()).stack_size(256 << 10).spawn(work).is_ok();
        self.running += usize::from(started);
        started
    }

    /// One that is done, if any.
    pub fn take_finished(&mut self) -> Option<Finished> {
        let finished = self.receiver.try_recv().ok()?;
        self.running = self.running.saturating_sub(1);
        Some(finished)
    }

    /// Waits for one.
    pub fn wait(&mut self, timeout: Duration) -> Option<Finished> {
        if self.are_idle() {
            return None;
        }
        let finished = self.receiver.recv_timeout(timeout).ok()?;
        self.running = self.running.saturating_sub(1);
        Some(finished)
    }
}

fn run(request: &Request) -> Finished {
    let begun = Instant::now();
    let attached = match &request.helper {
        Some(helper) => request_perf_map(&request.target, helper).map(drop).map_err(RequestError::from),
        None => Ok(()),
    };
    // What it costs the target is the asking; reading is our own business.
    let cost = begun.elapsed();
    let result = attached.and_then(|()| read(request));
    Finished { process: request.process, cost, taken: monotonic_now(), result }
}

fn read(request: &Request) -> Result<PerfMap, RequestError> {
    let pid = request.target.pid;
    let expect = Expect { links: Links::Refuse, owner: Some(request.target.uid), max_bytes: MAX_FILE_BYTES };
    let file = request
        .root
        .open_tmp_file(&file_name(request.target.namespace_pid), &expect)
        .map_err(|source| RequestError::File { pid, source })?;
    // It may have grown since it was checked.
    PerfMap::read(BufReader::with_capacity(64 << 10, file.take(MAX_FILE_BYTES)))
        .map_err(|source| RequestError::Read { pid, source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn request(directory: &std::path::Path, helper: Option<&str>) -> Request {
        let uid = rustix::process::geteuid().as_raw();
        Request {
            process: (Pid(7), 1),
            root: Arc::new(TargetRoot::open(directory, Pid(7)).unwrap()),
            target: Target { pid: Pid(7), namespace_pid: 3, uid, gid: 0, proc_root: directory.to_owned() },
            helper: helper.map(PathBuf::from),
        }
    }

    #[test]
    fn a_file_is_read_in_the_background() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
        fs::write(directory.path().join("7/root/tmp/perf-3.map"), "1000 10 a\n").unwrap();
        let mut requests = Requests::default();
        assert!(requests.wait(Duration::ZERO).is_none());
        assert!(requests.start(request(directory.path(), None)));
        let finished = requests.wait(Duration::from_secs(5)).unwrap();
        assert_eq!(finished.result.unwrap().len(), 1);
        assert!(requests.are_idle());
    }

    #[test]
    fn a_helper_that_fails_and_a_missing_file_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
        assert!(matches!(run(&request(directory.path(), None)).result, Err(RequestError::File { .. })));
        assert!(matches!(run(&request(directory.path(), Some("/none"))).result, Err(RequestError::Attach(_))));
    }
}
