//! Requests perf maps, each on a thread of its own: one may take seconds, and the windows go on
//! meanwhile.

use std::{
    collections::HashMap,
    io::{BufReader, Read as _},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use joular_data::model::units::{MonotonicNs, Pid};
use rustix::time::{ClockId, clock_gettime};

use super::snapshot::PerfMap;
use crate::{
    clock::monotonic_now,
    procs::{
        attach::{AttachError, Target, protocol::perf_map_name, request_perf_map},
        namespaces::{Expect, Links, Owner, TargetFileError, TargetRoot},
        proc_files::TICK_NS,
    },
};

/// At the same time, over all processes.
const MAX_RUNNING: usize = 2;
/// One that takes longer waits for a file system that does not answer, and counts no more.
const LATE: Duration = Duration::from_secs(30);
/// Read of one perf map.
const MAX_FILE_BYTES: u64 = 128 << 20;
/// File times come from a coarser clock than ours.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// A process: its pid and its start.
pub type ProcessKey = (Pid, u64);

/// Everything that one request needs.
#[derive(Debug)]
pub struct Request {
    pub process: ProcessKey,
    pub incarnation: u64,
    pub root: Arc<TargetRoot>,
    pub target: Target,
    /// The program that attaches; `None` if the file is only to be read.
    pub helper: Option<PathBuf>,
}

/// The result of a request.
#[derive(Debug)]
pub struct Finished {
    pub process: ProcessKey,
    pub incarnation: u64,
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
    #[error(
        "reading the perf map of process {pid}: the JVM reported success, but /tmp/{name} is empty or older: remove it"
    )]
    NotWritten { pid: Pid, name: String },
    #[error("reading the perf map of process {pid}: /tmp/{name} is older than the process and is not used: remove it")]
    Outdated { pid: Pid, name: String },
}

impl RequestError {
    /// There is no map of this process (yet).
    pub fn is_absent(&self) -> bool {
        match self {
            Self::File { source, .. } => source.is_not_found(),
            Self::Outdated { .. } => true,
            _ => false,
        }
    }
}

/// The requests under way.
#[derive(Debug)]
pub struct Requests {
    sender: Sender<Finished>,
    receiver: Receiver<Finished>,
    /// When they were started, by process and incarnation.
    started: HashMap<(ProcessKey, u64), Instant>,
}

impl Default for Requests {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, started: HashMap::new() }
    }
}

impl Requests {
    pub fn has_room(&self) -> bool {
        self.running() < MAX_RUNNING
    }

    pub fn are_idle(&self) -> bool {
        self.running() == 0
    }

    fn running(&self) -> usize {
        self.started.values().filter(|started| started.elapsed() < LATE).count()
    }

    /// Starts a request, and returns whether it could.
    pub fn start(&mut self, request: Request) -> bool {
        let sender = self.sender.clone();
        let request_of = (request.process, request.incarnation);
        let work = move || {
            // Nobody listens any more if the profiler is ending.
            let _ = sender.send(run(&request));
        };
        let started = thread::Builder::new().name("perf-map".into()).stack_size(256 << 10).spawn(work).is_ok();
        if started {
            self.started.insert(request_of, Instant::now());
        }
        started
    }

    /// One that is done, if any.
    pub fn take_finished(&mut self) -> Option<Finished> {
        let finished = self.receiver.try_recv().ok()?;
        self.started.remove(&(finished.process, finished.incarnation));
        Some(finished)
    }

    /// Waits for one.
    pub fn wait(&mut self, timeout: Duration) -> Option<Finished> {
        if self.are_idle() {
            return None;
        }
        let finished = self.receiver.recv_timeout(timeout).ok()?;
        self.started.remove(&(finished.process, finished.incarnation));
        Some(finished)
    }
}

fn run(request: &Request) -> Finished {
    let begun = Instant::now();
    let asked = SystemTime::now();
    let attached = match &request.helper {
        Some(helper) => request_perf_map(&request.target, helper).map(drop).map_err(RequestError::from),
        None => Ok(()),
    };
    // What it costs the target is the asking; reading is our own business.
    let cost = begun.elapsed();
    let result = attached.and_then(|()| read(request, asked));
    Finished { process: request.process, incarnation: request.incarnation, cost, taken: monotonic_now(), result }
}

fn read(request: &Request, asked: SystemTime) -> Result<PerfMap, RequestError> {
    let (pid, uid) = (request.target.pid, request.target.uid);
    let name = perf_map_name(request.target.namespace_pid);
    let was_asked = request.helper.is_some();
    // What a JVM writes is its own; an agent may have run as root.
    let owner = if was_asked { Owner::User(uid) } else { Owner::UserOrRoot(uid) };
    let expect = Expect { links: Links::Refuse, owner, max_bytes: MAX_FILE_BYTES };
    let file = request.root.open_tmp_file(&name, &expect).map_err(|source| RequestError::File { pid, source })?;
    let failed = |source| RequestError::Read { pid, source };
    let data = file.metadata().map_err(failed)?;
    let written = data.modified().map_err(failed)?;
    // A map may have been left by another process with the same pid.
    if was_asked && (written + CLOCK_SLACK < asked || data.len() == 0) {
        return Err(RequestError::NotWritten { pid, name });
    }
    if !was_asked && written + CLOCK_SLACK < started(&request.target) {
        return Err(RequestError::Outdated { pid, name });
    }
    // It may have grown since it was checked.
    PerfMap::read(BufReader::with_capacity(64 << 10, file.take(MAX_FILE_BYTES))).map_err(failed)
}

/// When the process was started.
fn started(target: &Target) -> SystemTime {
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::try_from(now).unwrap_or_default();
    let age = now.saturating_sub(Duration::from_nanos(target.start_ticks.saturating_mul(TICK_NS)));
    SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn request(directory: &std::path::Path, helper: Option<&str>) -> Request {
        let uid = rustix::process::geteuid().as_raw();
        Request {
            process: (Pid(7), 1),
            incarnation: 0,
            root: Arc::new(TargetRoot::open(directory, Pid(7)).unwrap()),
            target: Target {
                pid: Pid(7),
                namespace_pid: 3,
                uid,
                gid: 0,
                start_ticks: 0,
                proc_root: directory.to_owned(),
            },
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

    /// A map that was written an hour ago, of a process that started `age` ago.
    fn read_old(age: Duration, helper: Option<&str>) -> Result<usize, RequestError> {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
        let path = directory.path().join("7/root/tmp/perf-3.map");
        fs::write(&path, "1000 10 a\n").unwrap();
        let hour = Duration::from_secs(3600);
        fs::File::open(&path).unwrap().set_modified(SystemTime::now() - hour).unwrap();
        let mut request = request(directory.path(), helper);
        let boottime = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap();
        request.target.start_ticks = u64::try_from(boottime.saturating_sub(age).as_millis()).unwrap() / 10;
        read(&request, SystemTime::now()).map(|map| map.len())
    }

    #[test]
    fn a_map_of_an_earlier_process_is_not_believed() {
        let minute = Duration::from_secs(60);
        let error = read_old(minute, Some("/bin/true")).unwrap_err();
        assert!(matches!(error, RequestError::NotWritten { .. }) && !error.is_absent(), "{error}");
        let error = read_old(minute, None).unwrap_err();
        assert!(matches!(error, RequestError::Outdated { .. }) && error.is_absent(), "{error}");
    }

    #[test]
    fn an_empty_map_was_not_written() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
        fs::write(directory.path().join("7/root/tmp/perf-3.map"), "").unwrap();
        let error = read(&request(directory.path(), Some("/bin/true")), SystemTime::now()).unwrap_err();
        assert!(matches!(error, RequestError::NotWritten { .. }), "{error}");
    }

    #[test]
    fn requests_that_never_finish_hold_up_no_others() {
        let of = |pid| ((Pid(pid), 1), 0);
        let (now, long_ago) = (Instant::now(), Instant::now().checked_sub(LATE).unwrap());
        for (started, has_room, are_idle) in [
            (vec![], true, true),
            (vec![(of(1), now)], true, false),
            (vec![(of(1), now), (of(2), now)], false, false),
            (vec![(of(1), long_ago), (of(2), now), (of(3), now)], false, false),
            (vec![(of(1), long_ago), (of(2), long_ago), (of(3), now)], true, false),
            (vec![(of(1), long_ago), (of(2), long_ago)], true, true),
        ] {
            let requests = Requests { started: started.into_iter().collect(), ..Requests::default() };
            assert_eq!((requests.has_room(), requests.are_idle()), (has_room, are_idle), "{requests:?}");
        }
    }
}
