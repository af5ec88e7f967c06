//! Says where allocations of a process's run-time system can be seen, and what its threads have allocated.

use std::{collections::HashMap, path::PathBuf};

use super::{ProcessKey, Symbolizer};
use crate::runtimes::AllocationSites;

impl Symbolizer {
    /// Where its allocations can be seen, and a path to the file of its library, whatever that is called by now.
    pub fn allocation_sites(&self, process: ProcessKey) -> Option<(AllocationSites, PathBuf)> {
        let known = self.processes.get(&process)?;
        let sites = known.instance.facts()?.allocation?;
        let (_, mapping) = known.mapped_system()?;
        let link = format!("{:x}-{:x}", mapping.start.0, mapping.end.0);
        Some((sites, known.proc_root().join(process.0.to_string()).join("map_files").join(link)))
    }

    /// What each of its threads has allocated, in bytes, by the thread's number in the process's own namespace. Empty if
    /// its memory does not answer in time.
    pub fn allocated_bytes(&mut self, process: ProcessKey) -> HashMap<u32, u64> {
        let open = self.processes.get_mut(&process).and_then(|process| process.instance.open_mut());
        open.map_or_else(HashMap::new, |open| open.allocated_bytes())
    }
}
