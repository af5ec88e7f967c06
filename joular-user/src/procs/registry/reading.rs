//! Reads what a process may make others wait for: its command line, its mappings, its files.

use std::collections::BTreeMap;

use joular_data::{events::ProcessInfo, model::units::Pid};

use crate::procs::{
    deadline::{self, Pending, Progress},
    proc_files::ProcFiles,
    quota::Owner,
};

/// What could not be read in time, and when the process had started that was asked: its number may be another's by
/// the time that the answer comes.
#[derive(Debug, Default)]
pub(super) struct Reading {
    late: BTreeMap<Pid, (u64, Pending<Option<ProcessInfo>>)>,
}

impl Reading {
    /// Everything to know about a process; what the kernel alone knows of it if the rest is late.
    pub(super) fn read(&mut self, files: &ProcFiles, pid: Pid) -> Option<ProcessInfo> {
        let asked = self.late.remove(&pid);
        let start = files.descent(pid)?.start_boottime_ns;
        let mut late = match asked {
            Some((of, late)) if of == start => late,
            _ => {
                let (owner, files) = (owner(files, pid), files.clone());
                match deadline::within_deadline(owner.as_ref(), move || files.process(pid)) {
                    Ok(read) => return read,
                    Err(late) => late,
                }
            }
        };
        match late.take() {
            Progress::Done(read) => return read,
            Progress::UnderWay => drop(self.late.insert(pid, (start, late))),
            Progress::Failed => {}
        }
        files.outline(pid)
    }

    /// The process has ended or runs another program: an answer that is late is of the one before.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.late.remove(&pid);
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
