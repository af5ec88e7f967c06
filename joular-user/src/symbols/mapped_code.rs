//! Lists the code in a process, to prepare walks of its stacks.
//!
//! Mappings and files are those that naming addresses uses: read and opened once, and read again
//! when a sample hits an address that is in none.

use joular_data::model::units::Address;

use super::{
    Symbolizer,
    files::{Copies, FileKey},
    perf_map::requests::ProcessKey,
    process::Process,
};
use crate::{
    procs::maps::{Mapping, MappingKind},
    runtimes::{CodeId, OwnCode},
};

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOwner {
    File(FileKey),
    /// A run-time system, which wrote it for itself. It lies within what is generated.
    RunTime(CodeId),
    /// A file that cannot be opened.
    Unreadable,
    /// Made by the process itself.
    Generated,
}

/// A mapping of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedCode {
    pub start: Address,
    /// First address behind it.
    pub end: Address,
    /// Where in the file it starts.
    pub offset: u64,
    pub owner: CodeOwner,
}

impl Symbolizer {
    /// A number that changes when [`Self::mapped_code`] does; `None` if the process is not known.
    pub fn code_version(&self, process: ProcessKey) -> Option<u64> {
        // All only grow.
        let of_run_time = self.facts(process).map(|facts| facts.own_code_version).sum::<u64>();
        Some(self.processes.get(&process)?.maps_version.wrapping_add(of_run_time))
    }

    /// The code in a process, sorted by address. Its files are opened, if they can be.
    pub fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode> {
        let vdso = self.vdso();
        let Some(process) = self.processes.get_mut(&process) else { return Vec::new() };
        let mappings: Vec<Mapping> = process.maps().iter().cloned().collect();
        let native = &mut self.native;
        let code = |mapping: &Mapping| {
            let file = |key: Option<FileKey>| key.map_or(CodeOwner::Unreadable, CodeOwner::File);
            let owner = match mapping.kind {
                _ if mapping.is_generated_code() => CodeOwner::Generated,
                MappingKind::Vdso => file(vdso),
                MappingKind::File | MappingKind::Deleted => file(process.file(mapping, native)),
                // `[vsyscall]` and the like: nothing runs there for longer than an instruction.
                _ => return None,
            };
            Some(MappedCode { start: mapping.start, end: mapping.end, offset: mapping.offset, owner })
        };
        let mut all: Vec<MappedCode> = mappings.iter().filter_map(code).collect();
        let own = process.facts().flat_map(|facts| &facts.own_code);
        all.extend(own.map(|own| MappedCode {
            start: own.start,
            end: own.end,
            offset: 0,
            owner: CodeOwner::RunTime(own.id),
        }));
        all.sort_by_key(|code| code.start);
        all
    }

    /// Code of a run-time system that some process has.
    pub fn read_own_code(&mut self, id: CodeId) -> Option<OwnCode> {
        let has_it = |process: &Process| process.facts().any(|facts| facts.has_code(id));
        let mut owners = self.processes.values_mut().filter(|process| has_it(process));
        owners.find_map(|process| process.open_instances().find_map(|open| open.read_own_code(id)))
    }

    /// Whether the process runs a run-time system that is understood, or may yet be.
    pub fn runs_system(&self, process: ProcessKey) -> bool {
        self.processes.get(&process).is_some_and(|process| process.system().is_some())
    }

    /// A file that some process has mapped.
    pub fn open_mapped_code(&self, file: FileKey) -> Option<Copies> {
        self.native.open(file)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::Path};

    use joular_data::{events::ProcessInfo, model::units::Pid};

    use super::*;
    use crate::symbols::SymbolizerOptions;

    #[test]
    fn our_own_code_is_in_files_that_can_be_opened() {
        let own = ProcessInfo { pid: Pid(std::process::id()), ..ProcessInfo::default() };
        let key = (own.pid, own.start_boottime_ns);
        let mut symbolizer = Symbolizer::new(Path::new("/proc"), SymbolizerOptions { attach_helper: None });
        assert_eq!((symbolizer.code_version(key), symbolizer.mapped_code(key)), (None, Vec::new()));
        symbolizer.process_started(&own);
        assert!(symbolizer.code_version(key).is_some());
        let code = symbolizer.mapped_code(key);
        let owner = |address: u64| {
            code.iter().find(|code| code.start.0 <= address && address < code.end.0).map(|code| code.owner)
        };
        let here = owner(our_own_code_is_in_files_that_can_be_opened as *const () as u64);
        let executable = FileKey::of(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert_eq!(here, Some(CodeOwner::File(executable)));
        let reopened = symbolizer.open_mapped_code(executable).unwrap();
        assert_eq!(FileKey::of(reopened.readable().unwrap()).unwrap(), executable);
        // The kernel's own code in it is a file too.
        let vdso = symbolizer.vdso().unwrap();
        assert!(code.iter().any(|code| code.owner == CodeOwner::File(vdso)));
        assert!(code.is_sorted_by_key(|code| code.start));
    }
}
