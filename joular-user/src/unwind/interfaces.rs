//! Defines what the [`super::publisher`] learns from, and what it writes to. Tests have their own
//! of both.

use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CodeMapping, CompilerThread, JvmUnwind, ProcessUnwind, UnwindRow};

use super::code::{Code, TableKey};
use crate::{
    kernel::{KernelError, UnwindMaps},
    symbols::{ProcessKey, Symbolizer, mapped_code::MappedCode},
};

/// The kernel's side of the tables.
pub trait WalkTables {
    fn write_rows(&mut self, first: u32, rows: &[UnwindRow]) -> Result<(), KernelError>;
    fn write_mappings(&mut self, first: u32, mappings: &[CodeMapping]) -> Result<(), KernelError>;
    fn set_jvm(&mut self, index: u32, jvm: &JvmUnwind) -> Result<(), KernelError>;
    fn set_process(&mut self, pid: Pid, process: ProcessUnwind) -> Result<(), KernelError>;
    fn remove_process(&mut self, pid: Pid);
    fn set_compiler_thread(&mut self, tid: Tid, thread: CompilerThread) -> Result<(), KernelError>;
    fn remove_compiler_thread(&mut self, tid: Tid);
}

/// What is known of processes.
pub trait ProcessSource {
    /// Changes when the mapped code does; `None`: an unknown process.
    fn code_version(&self, process: ProcessKey) -> Option<u64>;
    fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode>;
    fn open(&mut self, table: TableKey) -> Option<Code>;
    /// Whether it runs a JVM, whose layout may become known later.
    fn is_jvm(&self, process: ProcessKey) -> bool;
    fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind>;
    /// A JVM's threads that compile, as far as they are known.
    fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)];
    /// Changes when memory that names the process's frames was reused for others.
    fn names_version(&self, process: ProcessKey) -> u64;
}

impl ProcessSource for Symbolizer {
    fn code_version(&self, process: ProcessKey) -> Option<u64> {
        Self::code_version(self, process)
    }

    fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode> {
        Self::mapped_code(self, process)
    }

    fn open(&mut self, table: TableKey) -> Option<Code> {
        match table {
            TableKey::File(file) => self.open_mapped_code(file).map(Code::File),
            TableKey::RunTime(id) => self.read_own_code(id).map(Code::RunTime),
        }
    }

    fn is_jvm(&self, process: ProcessKey) -> bool {
        self.runs_system(process)
    }

    fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        Self::jvm_unwind(self, process)
    }

    fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)] {
        Self::compiler_threads(self, process)
    }

    fn names_version(&self, process: ProcessKey) -> u64 {
        Self::names_version(self, process)
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
    fn set_compiler_thread(&mut self, tid: Tid, thread: CompilerThread) -> Result<(), KernelError> {
        Self::set_compiler_thread(self, tid, thread)
    }

    fn remove_compiler_thread(&mut self, tid: Tid) {
        Self::remove_compiler_thread(self, tid);
    }
}
