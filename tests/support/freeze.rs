//! Holds a process still with all its threads, and reads their registers, to test a stack walk
//! outside the kernel.
//!
//! `PTRACE_SEIZE` and `PTRACE_INTERRUPT` leave no trace in the process. All requests must come from
//! the thread that seized, which the type's missing `Send` ensures.

use std::{fs, io, marker::PhantomData, mem::MaybeUninit, ptr, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::clock::wait_for;

/// Limit of time: threads may start while the others are being stopped. An emulated machine takes seconds.
const LIMIT: Duration = Duration::from_secs(30);

/// As the C library calls what ptrace(2) is asked.
#[cfg(target_env = "musl")]
pub(crate) type Request = libc::c_int;
/// As the C library calls what ptrace(2) is asked.
#[cfg(not(target_env = "musl"))]
pub(crate) type Request = libc::c_uint;

/// A thread that is held.
#[derive(Clone, Debug)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    pub registers: libc::user_regs_struct,
}

/// The held process. It goes on when this is dropped.
#[derive(Debug)]
pub struct Frozen {
    pub threads: Vec<Thread>,
    not_send: PhantomData<*const ()>,
}

impl Frozen {
    /// Stops every thread of a process.
    pub fn new(pid: u32) -> Result<Self> {
        let mut frozen = Self { threads: Vec::new(), not_send: PhantomData };
        wait_for(&format!("all threads of {pid} to be held"), LIMIT, || {
            let mut is_complete = true;
            for tid in tids(pid)? {
                if !frozen.threads.iter().any(|thread| thread.tid == tid) {
                    is_complete = false;
                    frozen.hold(pid, tid)?;
                }
            }
            Ok(is_complete.then_some(()))
        })?;
        Ok(frozen)
    }

    /// Stops its first thread only.
    pub fn first_thread(pid: u32) -> Result<Self> {
        let mut frozen = Self { threads: Vec::new(), not_send: PhantomData };
        frozen.hold(pid, pid)?;
        ensure!(!frozen.threads.is_empty(), "thread {pid} is not held");
        Ok(frozen)
    }

    fn hold(&mut self, pid: u32, tid: u32) -> Result<()> {
        if request(libc::PTRACE_SEIZE, tid, ptr::null_mut()).is_err() {
            // It has ended since it was listed; if not, the next look tries again.
            return Ok(());
        }
        request(libc::PTRACE_INTERRUPT, tid, ptr::null_mut()).with_context(|| format!("interrupting thread {tid}"))?;
        let mut status = 0;
        // SAFETY: the status is ours; __WALL waits for threads too.
        let waited = unsafe { libc::waitpid(tid as libc::pid_t, &raw mut status, libc::__WALL) };
        ensure!(waited == tid as libc::pid_t, "waiting for thread {tid}: {}", io::Error::last_os_error());
        if !libc::WIFSTOPPED(status) {
            return Ok(());
        }
        let registers = registers(tid)?;
        let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        self.threads.push(Thread { tid, name: name.trim_end().to_owned(), registers });
        Ok(())
    }

    /// The thread of a name.
    pub fn named(&self, name: &str) -> Result<&Thread> {
        self.threads.iter().find(|thread| thread.name == name).with_context(|| format!("no thread is called {name}"))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for thread in &self.threads {
            // It may have been killed meanwhile.
            let _ = request(libc::PTRACE_DETACH, thread.tid, ptr::null_mut());
        }
    }
}

fn tids(pid: u32) -> Result<Vec<u32>> {
    let list = fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("listing threads of {pid}"))?;
    Ok(list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Those of a thread that stands.
pub(crate) fn registers(tid: u32) -> Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let mut place =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<libc::user_regs_struct>() };
    // By this every processor has them.
    let general = ptr::without_provenance_mut(libc::NT_PRSTATUS as usize);
    request_at(libc::PTRACE_GETREGSET, tid, general, (&raw mut place).cast())
        .with_context(|| format!("reading registers of thread {tid}"))?;
    // SAFETY: all integers, zeroed at first and filled by the kernel.
    Ok(unsafe { registers.assume_init() })
}

pub(crate) fn request(request: Request, tid: u32, data: *mut libc::c_void) -> io::Result<()> {
    request_at(request, tid, ptr::null_mut(), data)
}

fn request_at(request: Request, tid: u32, address: *mut libc::c_void, data: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: `data` is null, or as large as the request fills it.
    match unsafe { libc::ptrace(request, tid as libc::pid_t, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
