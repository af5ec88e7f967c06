//! Says where allocations and collections of a process's run-time system can be seen, what its threads have
//! allocated, and what they are called.

use std::{collections::HashMap, path::PathBuf};

use joular_data::model::units::Pid;

use super::{ProcessKey, Symbolizer, process::Process};
use crate::runtimes::{AllocationSites, CollectionSites, NotNow};

/// Whether a process's allocations can be seen.
#[derive(Clone, Debug)]
pub enum Sites {
    /// There, in the file of its library. The path leads to it, whatever it is called by now.
    At(AllocationSites, PathBuf),
    /// Its library does not say where.
    Unknown,
    /// It does not answer in time, or cannot tell now. Asking again will help.
    Late,
    /// It has ended, or runs another program by now.
    Gone,
}

impl Symbolizer {
    /// Where its allocations can be seen.
    pub fn allocation_sites(&mut self, process: ProcessKey) -> Sites {
        let Some(known) = self.processes.get_mut(&process) else { return Sites::Gone };
        let mut answer = Sites::Gone;
        for index in 0..known.slots.len() {
            let Some(library) = library_link(known, process.0, index) else { continue };
            let Some(open) = known.slots[index].instance.open_mut() else { continue };
            match open.allocation_sites(library.clone()) {
                Ok(Some(sites)) => return Sites::At(sites, library),
                Err(NotNow) => answer = Sites::Late,
                Ok(None) if matches!(answer, Sites::Gone) => answer = Sites::Unknown,
                Ok(None) => {}
            }
        }
        answer
    }

    /// Where it reports its collections, and the file of its library, as in [`Sites`]. `None`: nowhere, or it has ended.
    pub fn collection_sites(&self, process: ProcessKey) -> Option<(CollectionSites, PathBuf)> {
        let known = self.processes.get(&process)?;
        known.slots.iter().enumerate().find_map(|(index, slot)| {
            Some((slot.instance.facts()?.collections?, library_link(known, process.0, index)?))
        })
    }

    /// What each of its threads has allocated, in bytes, by the thread's number in the process's own namespace. `None` if
    /// its memory does not answer in time, or not for all of them. If no new thread `ran` since the last time, what others
    /// have may be as of then.
    pub fn allocated_bytes(&mut self, process: ProcessKey, ran: Option<Vec<u32>>) -> Option<HashMap<u32, u64>> {
        let known = self.processes.get_mut(&process)?;
        known.open_instances().find_map(|open| open.allocated_bytes(ran.clone()))
    }

    /// Names of these threads as its run-time system has them, by the thread's number in the process's own namespace.
    pub fn thread_names(&mut self, process: ProcessKey, threads: &[u32]) -> Vec<(u32, String)> {
        let Some(known) = self.processes.get_mut(&process) else { return Vec::new() };
        known.open_instances().flat_map(|open| open.thread_names(threads.to_vec())).collect()
    }
}

/// A path to the file of the run-time system in a slot of a process, whatever it is called by now.
fn library_link(process: &Process, pid: Pid, slot: usize) -> Option<PathBuf> {
    let (_, mapping) = process.mapped_system(slot)?;
    let link = format!("{:x}-{:x}", mapping.start.0, mapping.end.0);
    Some(process.proc_root().join(pid.to_string()).join("map_files").join(link))
}
