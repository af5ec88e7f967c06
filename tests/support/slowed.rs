//! Slows a thread down: it is held for a while where it begins certain calls of bpf(2), as if the machine had let it wait
//! there.
//!
//! `PTRACE_SYSCALL` stops it at each of its system calls. The thread that traces it has a high priority, so that the other
//! calls take hardly longer.

use std::{
    io, ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::setpriority_process;

use crate::{
    freeze::{registers, request},
    registers::begun_call,
};

const NICE: i32 = -20;
/// By which a stop at a system call differs from a signal (`PTRACE_O_TRACESYSGOOD`).
const OF_CALL: i32 = 0x80;

/// A command of bpf(2).
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// `BPF_MAP_UPDATE_ELEM`
    UpdateElement = 2,
    /// `BPF_PROG_TEST_RUN`
    RunProgram = 10,
}

/// The slow thread. It goes on as before when this is dropped.
pub struct Slowed {
    stop: Arc<AtomicBool>,
    tracer: Option<JoinHandle<Result<()>>>,
}

impl Slowed {
    /// Holds a thread for `time` where it begins the command; not again before it went on for as long as `between`.
    pub fn at(tid: u32, command: Command, time: Duration, between: Duration) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, (seized, begun)) = (Arc::clone(&stop), sync_channel(1));
        let trace = move || Trace { tid, command, time, between, stop: theirs }.run(&seized);
        let slowed = Self { stop, tracer: Some(thread::spawn(trace)) };
        begun.recv().with_context(|| format!("thread {tid} cannot be traced"))?;
        Ok(slowed)
    }

    /// Lets it go, and fails if it was not slowed down all the time.
    pub fn end(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.tracer.take().map(JoinHandle::join);
        ended.context("it was ended")?.map_err(|_| anyhow::anyhow!("the tracing thread panicked"))?
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It goes on at the thread's next system call.
        let _ended = self.tracer.take().map(JoinHandle::join);
    }
}

struct Trace {
    tid: u32,
    command: Command,
    time: Duration,
    between: Duration,
    stop: Arc<AtomicBool>,
}

impl Trace {
    /// All requests come from this thread, because the kernel takes them from no other.
    fn run(&self, seized: &SyncSender<()>) -> Result<()> {
        // Where this is not allowed, other calls take longer too.
        let _allowed = setpriority_process(None, NICE);
        let options = ptr::without_provenance_mut(libc::PTRACE_O_TRACESYSGOOD as usize);
        request(libc::PTRACE_SEIZE, self.tid, options).context("seizing the thread")?;
        request(libc::PTRACE_INTERRUPT, self.tid, ptr::null_mut()).context("interrupting the thread")?;
        // Who waits for it is there until it is told.
        let _told = seized.send(());
        let mut went_on = Instant::now();
        loop {
            let status = self.wait()?;
            ensure!(libc::WIFSTOPPED(status), "thread {} has ended", self.tid);
            let is_call = libc::WSTOPSIG(status) == libc::SIGTRAP | OF_CALL;
            // Upper bits tell of the tracing itself; anything else is a signal for the thread.
            let signal = if is_call || status >> 16 != 0 { 0 } else { libc::WSTOPSIG(status) };
            let signal = ptr::without_provenance_mut(signal as usize);
            if self.stop.load(Ordering::Relaxed) {
                return request(libc::PTRACE_DETACH, self.tid, signal).context("letting the thread go");
            }
            if is_call && went_on.elapsed() >= self.between && self.begins()? {
                thread::sleep(self.time);
                went_on = Instant::now();
            }
            request(libc::PTRACE_SYSCALL, self.tid, signal).context("letting the thread go on")?;
        }
    }

    fn wait(&self) -> Result<i32> {
        let mut status = 0;
        // SAFETY: the status is ours; __WALL waits for threads too.
        let waited = unsafe { libc::waitpid(self.tid as libc::pid_t, &raw mut status, libc::__WALL) };
        ensure!(waited == self.tid as libc::pid_t, "waiting for thread {}: {}", self.tid, io::Error::last_os_error());
        Ok(status)
    }

    /// Whether the thread stands where the command begins.
    fn begins(&self) -> Result<bool> {
        Ok(begun_call(&registers(self.tid)?) == Some((libc::SYS_bpf as u64, self.command as u64)))
    }
}
