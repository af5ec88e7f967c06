//! Reads what a process may make others wait for: its command line, its mappings, its files.

use std::collections::BTreeMap;

use joular_data::{events::ProcessInfo, model::units::Pid};

use crate::procs::{
    deadline::{self, Pending, Progress},
    proc_files::ProcFiles,
    quota::Owner,
};

/// What could not be read in time.
#[derive(Debug, Default)]
pub(super) struct Reading {
    late: BTreeMap<Pid, Pending<Option<ProcessInfo>>>,
}

impl Reading {
    /// Everything to know about a process; what the kernel alone knows of it if the rest is late.
    pub(super) fn read(&mut self, files: &ProcFiles, pid: Pid) -> Option<ProcessInfo> {
        let mut late = match self.late.remove(&pid) {
            Some(late) => late,
            None => {
                let (owner, files) = (owner(files, pid), files.clone());
                match deadline::within_deadline(owner.as_ref(), move || files.process(pid)) {
                    Ok(read) => return read,
                    Err(late) => late,
                }
            }
        };
        match late.take() {
            Progress::Done(read) => return read,
            Progress::UnderWay => drop(self.late.insert(pid, late)),
            Progress::Failed => {}
        }
        files.outline(pid)
    }
}

/// Whether HotSpot is in a process's memory, as far as that can be told in time.
pub(super) fn maps_libjvm(files: &ProcFiles, pid: Pid) -> bool {
    let (owner, files) = (owner(files, pid), files.clone());
    deadline::within_deadline(owner.as_ref(), move || files.maps_libjvm(pid)).unwrap_or(false)
}

/// Who a process belongs to, if that matters: asking costs something for each process of the host.
fn owner(files: &ProcFiles, pid: Pid) -> Option<Owner> {
    deadline::are_many().then(|| files.outline(pid).as_ref().map(Owner::of)).flatten()
}
