//! Says where allocations of a process's run-time system can be seen, and what its threads have allocated.

use std::{collections::HashMap, path::PathBuf};

use super::{ProcessKey, Symbolizer};
use crate::runtimes::AllocationSites;

/// Whether a process's allocations can be seen.
#[derive(Clone, Debug)]
pub enum Sites {
    /// There, in the file of its library. The path leads to it, whatever it is called by now.
    At(AllocationSites, PathBuf),
    /// Its library does not say where.
    Unknown,
    /// It has ended, or runs another program by now.
    Gone,
}

impl Symbolizer {
    /// Where its allocations can be seen.
    pub fn allocation_sites(&self, process: ProcessKey) -> Sites {
        let known = self.processes.get(&process);
        let Some((facts, known)) = known.and_then(|known| Some((known.instance.facts()?, known))) else {
            return Sites::Gone;
        };
        let Some((_, mapping)) = known.mapped_system() else { return Sites::Gone };
        let Some(sites) = facts.allocation else { return Sites::Unknown };
        let link = format!("{:x}-{:x}", mapping.start.0, mapping.end.0);
        Sites::At(sites, known.proc_root().join(process.0.to_string()).join("map_files").join(link))
    }

    /// What each of its threads has allocated, in bytes, by the thread's number in the process's own namespace. Empty if
    /// its memory does not answer in time.
    pub fn allocated_bytes(&mut self, process: ProcessKey) -> HashMap<u32, u64> {
        let open = self.processes.get_mut(&process).and_then(|process| process.instance.open_mut());
        open.map_or_else(HashMap::new, |open| open.allocated_bytes())
    }
}
