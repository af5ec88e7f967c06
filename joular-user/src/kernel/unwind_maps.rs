//! Writes the tables by which the programs walk user stacks: of processes, of their mappings of
//! code, of how to unwind each file, of JVMs.
//!
//! A program may be reading while we write. So a range is filled before the process that names it
//! is published, and left alone for a while after the last process that named it is gone. The code
//! that hands out ranges ensures that.

use std::os::fd::AsFd as _;

use aya::{
    Ebpf,
    maps::{Array, HashMap, Map, MapData},
};
use joular_data::model::units::{Pid, Tid};
use joular_ebpf::abi::{CodeMapping, CompilerThread, JvmUnwind, ProcessUnwind, TablesEpoch, UnwindRow};

use super::{
    array_write,
    banks::{map_error, take},
    error::KernelError,
};

/// Handles to the tables.
#[allow(missing_debug_implementations, reason = "aya's map types have none")]
pub struct UnwindMaps {
    processes: HashMap<MapData, u32, ProcessUnwind>,
    mappings: MapData,
    rows: MapData,
    jvms: Array<MapData, JvmUnwind>,
    compiler_threads: HashMap<MapData, u32, CompilerThread>,
    epoch: Array<MapData, TablesEpoch>,
    changes: TablesEpoch,
}

impl UnwindMaps {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, KernelError> {
        Ok(Self {
            processes: take(ebpf, "PROCESSES")?,
            mappings: take_array(ebpf, "CODE_MAPPINGS")?,
            rows: take_array(ebpf, "UNWIND_ROWS")?,
            jvms: take(ebpf, "JVMS")?,
            compiler_threads: take(ebpf, "COMPILER_THREADS")?,
            epoch: take(ebpf, "TABLES_EPOCH")?,
            changes: 0,
        })
    }

    /// Makes the programs walk the process by these tables from now on.
    pub fn set_process(&mut self, pid: Pid, process: ProcessUnwind) -> Result<(), KernelError> {
        // Ranges that it names may have been another's: what was remembered of those
        // is forgotten first.
        self.changes = self.changes.wrapping_add(1);
        self.epoch.set(0, self.changes, 0).map_err(|source| map_error("writing", "TABLES_EPOCH", source))?;
        self.processes.insert(pid.0, process, 0).map_err(|source| map_error("writing", "PROCESSES", source))
    }

    /// Makes the programs walk it by frame pointers from now on; a process that is not there is no
    /// error.
    pub fn remove_process(&mut self, pid: Pid) {
        let _ = self.processes.remove(&pid.0);
    }

    /// Writes mappings from index `first` on, at most up to [`joular_ebpf::abi::MAX_MAPPINGS`].
    pub fn write_mappings(&mut self, first: u32, mappings: &[CodeMapping]) -> Result<(), KernelError> {
        write(&self.mappings, "CODE_MAPPINGS", first, mappings)
    }

    /// Writes rows from index `first` on, at most up to [`joular_ebpf::abi::MAX_ROWS`].
    pub fn write_rows(&mut self, first: u32, rows: &[UnwindRow]) -> Result<(), KernelError> {
        write(&self.rows, "UNWIND_ROWS", first, rows)
    }

    /// `index` is below [`joular_ebpf::abi::MAX_JVMS`]; a [`ProcessUnwind`] names it plus 1.
    pub fn set_jvm(&mut self, index: u32, jvm: &JvmUnwind) -> Result<(), KernelError> {
        self.jvms.set(index, jvm, 0).map_err(|source| map_error("writing", "JVMS", source))
    }

    /// Makes stacks of the thread begin with the method that it compiles.
    pub fn set_compiler_thread(&mut self, tid: Tid, thread: CompilerThread) -> Result<(), KernelError> {
        self.compiler_threads
            .insert(tid.0, thread, 0)
            .map_err(|source| map_error("writing", "COMPILER_THREADS", source))
    }

    /// A thread that is not there is no error.
    pub fn remove_compiler_thread(&mut self, tid: Tid) {
        let _ = self.compiler_threads.remove(&tid.0);
    }
}

fn write<V: aya::Pod>(map: &MapData, name: &'static str, first: u32, values: &[V]) -> Result<(), KernelError> {
    array_write::write(map.fd().as_fd(), first, values).map_err(|source| KernelError::WriteArray {
        map: name,
        first,
        source,
    })
}

/// An array that is only ever written as memory.
fn take_array(ebpf: &mut Ebpf, name: &'static str) -> Result<MapData, KernelError> {
    match ebpf.take_map(name) {
        Some(Map::Array(data)) => Ok(data),
        _ => Err(KernelError::Missing { kind: "array", name }),
    }
}
