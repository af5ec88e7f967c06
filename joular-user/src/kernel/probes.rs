//! Puts probes on functions of JVMs, and takes them out again.
//!
//! A probe replaces an instruction of the JVM's code in memory by one that enters the kernel. It is the kernel that does
//! so, in a copy of that page which is the process's own, and that puts the instruction back when the probe is
//! closed or whoever opened it ends, however that comes.
//!
//! Closing a probe waits until no CPU can be in it, several times over, which takes up to a tenth of a second. So threads
//! do that beside the recording, and many at once: links that are not perf events wait for the same moment.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use aya::{
    Ebpf,
    programs::{
        ProgramError, UProbe,
        uprobe::{UProbeAttachLocation, UProbeLink, UProbeScope},
    },
    sys::SyscallError,
};
use joular_data::model::units::Pid;

use super::{error::KernelError, programs::typed, uprobe_multi::MultiPrograms};

/// Programs of a JVM's probes, by what they see.
const ALLOCATION_PROGRAMS: [&str; 3] = ["allocation_in_new_tlab", "allocation_outside_tlab", "allocating_thread_ended"];
const COLLECTION_PROGRAMS: [&str; 2] = ["collection_begins", "collection_ends"];
/// Threads that close probes.
const CLOSERS: usize = 32;

/// Where probes go: offsets in a library's file.
#[derive(Clone, Copy, Debug)]
pub enum ProbeOffsets {
    /// In a new buffer, outside of one, the end of a thread.
    Allocation([u64; 3]),
    /// Begin and end.
    Collection([u64; 2]),
}

impl ProbeOffsets {
    fn programs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (programs, offsets) = match self {
            Self::Allocation(offsets) => (&ALLOCATION_PROGRAMS[..], &offsets[..]),
            Self::Collection(offsets) => (&COLLECTION_PROGRAMS[..], &offsets[..]),
        };
        programs.iter().copied().zip(offsets.iter().copied())
    }
}

/// An open probe. It is closed when this is dropped.
#[derive(Debug)]
#[allow(dead_code, reason = "held for its lifetime")]
enum Link {
    Multi(OwnedFd),
    PerfEvent(UProbeLink),
}

/// Probes of all JVMs. All are closed when it goes.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// The programs, where the kernel has such links. Otherwise aya has them.
    multi: Option<MultiPrograms>,
    links: HashMap<Pid, Vec<Link>>,
    closers: Closers,
}

impl Probes {
    /// Loads the programs, which are in the object that `ebpf` was made of.
    pub(super) fn load(ebpf: &mut Ebpf, object: &[u8]) -> Result<Self, KernelError> {
        let programs = || ALLOCATION_PROGRAMS.into_iter().chain(COLLECTION_PROGRAMS);
        let multi = MultiPrograms::load(ebpf, object, programs());
        if multi.is_none() {
            for program in programs() {
                let failed = |source| KernelError::Program { operation: "loading", program, source: Box::new(source) };
                typed::<UProbe>(ebpf, program)?.load().map_err(failed)?;
            }
        }
        Ok(Self { multi, links: HashMap::new(), closers: Closers::default() })
    }

    /// Whether probes are perf events.
    pub(super) const fn are_perf_events(&self) -> bool {
        self.multi.is_none()
    }

    /// Opens probes of a process, at offsets in its library's file. If one cannot be opened, it has none of them.
    pub(super) fn open(
        &mut self,
        ebpf: &mut Ebpf,
        pid: Pid,
        library: &Path,
        offsets: ProbeOffsets,
    ) -> Result<(), KernelError> {
        let mut opened = Vec::new();
        for (program, offset) in offsets.programs() {
            let link = match &self.multi {
                Some(multi) => multi
                    .attach(program, pid, library, offset)
                    .map(Link::Multi)
                    .map_err(|io_error| ProgramError::SyscallError(SyscallError { call: "bpf_link_create", io_error })),
                None => open_perf_event(typed(ebpf, program)?, pid, library, offset).map(Link::PerfEvent),
            };
            match link {
                Ok(link) => opened.push(link),
                Err(source) => {
                    opened.into_iter().for_each(|link| self.closers.close(link));
                    return Err(KernelError::Program { operation: "attaching", program, source: Box::new(source) });
                }
            }
        }
        self.links.entry(pid).or_default().append(&mut opened);
        Ok(())
    }

    /// Closes the probes of a process, if it has any, in a while.
    pub(super) fn close(&mut self, pid: Pid) {
        self.links.remove(&pid).into_iter().flatten().for_each(|link| self.closers.close(link));
    }
}

fn open_perf_event(probe: &mut UProbe, pid: Pid, library: &Path, offset: u64) -> Result<UProbeLink, ProgramError> {
    let scope = NonZeroU32::new(pid.0).map_or(UProbeScope::CallingProcess, UProbeScope::OneProcess);
    let link = probe.attach(UProbeAttachLocation::AbsoluteOffset(offset), library, scope)?;
    probe.take_link(link)
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.links.drain().flat_map(|(_, links)| links).for_each(|link| self.closers.close(link));
    }
}

/// Threads that close probes, once there is one to close. Whoever drops it waits for them.
#[derive(Debug, Default)]
struct Closers {
    queue: Option<Sender<Link>>,
    threads: Vec<JoinHandle<()>>,
}

impl Closers {
    fn close(&mut self, link: Link) {
        let queue = self.queue.get_or_insert_with(|| {
            let (queue, links) = channel();
            let links = Arc::new(Mutex::new(links));
            let closer = || {
                let links = Arc::clone(&links);
                Builder::new().name("probe-closer".to_owned()).spawn(move || close_all(&links)).ok()
            };
            self.threads = (0..CLOSERS).map_while(|_| closer()).collect();
            queue
        });
        // Without a thread it is closed here.
        drop(queue.send(link));
    }
}

impl Drop for Closers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // One that panicked has dropped its probe, which closes it.
            drop(thread.join());
        }
    }
}

fn close_all(links: &Mutex<Receiver<Link>>) {
    loop {
        let next = links.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            // Dropping it closes it.
            Ok(link) => drop(link),
            Err(_) => return,
        }
    }
}
