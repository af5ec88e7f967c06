//! What the [`super::publisher`] learns from, and what it writes to. Tests have
//! their own of both.

use std::fs::File;

use joular_ebpf::abi::{CodeMapping, JvmUnwind, ProcessUnwind, UnwindRow};

use crate::{
    kernel::{KernelError, UnwindMaps},
    symbols::{ProcessKey, Symbolizer, mapped_code::MappedCode, native::FileKey},
    units::Pid,
};

/// The kernel's side of the tables.
pub trait WalkTables {
    fn write_rows(&mut self, first: u32, rows: &[UnwindRow]) -> Result<(), KernelError>;
    fn write_mappings(&mut self, first: u32, mappings: &[CodeMapping]) -> Result<(), KernelError>;
    fn set_jvm(&mut self, index: u32, jvm: &JvmUnwind) -> Result<(), KernelError>;
    fn set_process(&mut self, pid: Pid, process: ProcessUnwind) -> Result<(), KernelError>;
    fn remove_process(&mut self, pid: Pid);
}

/// What is known of processes.
pub trait ProcessSource {
    /// Changes when the mappings do; `None`: an unknown process.
    fn maps_version(&self, process: ProcessKey) -> Option<u64>;
    fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode>;
    fn open(&self, file: FileKey) -> Option<File>;
    /// Whether it runs a JVM, whose layout may become known later.
    fn is_jvm(&self, process: ProcessKey) -> bool;
    fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind>;
}

impl ProcessSource for Symbolizer {
    fn maps_version(&self, process: ProcessKey) -> Option<u64> {
        Self::maps_version(self, process)
    }

    fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode> {
        Self::mapped_code(self, process)
    }

    fn open(&self, file: FileKey) -> Option<File> {
        self.open_mapped_code(file)
    }

    fn is_jvm(&self, process: ProcessKey) -> bool {
        self.runs_jvm(process)
    }

    fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        Self::jvm_unwind(self, process)
    }
}

impl WalkTables for UnwindMaps {
    fn write_rows(&mut self, first: u32, rows: &[UnwindRow]) -> Result<(), KernelError> {
        Self::write_rows(self, first, rows)
    }

    fn write_mappings(&mut self, first: u32, mappings: &[CodeMapping]) -> Result<(), KernelError> {
        Self::write_mappings(self, first, mappings)
    }

    fn set_jvm(&mut self, index: u32, jvm: &JvmUnwind) -> Result<(), KernelError> {
        Self::set_jvm(self, index, jvm)
    }

    fn set_process(&mut self, pid: Pid, process: ProcessUnwind) -> Result<(), KernelError> {
        Self::set_process(self, pid, process)
    }

    fn remove_process(&mut self, pid: Pid) {
        Self::remove_process(self, pid);
    }
}
