//! Takes from the kernel's description of its types what the programs need, and what aya needs to attach them.

use std::{fs, path::Path};

use aya::{Btf, Endianness};

use super::{btf::KernelTypes, error::KernelError, io};

/// Members of `task_struct`, `mm_struct` and `signal_struct`: global in the object, struct, member.
const OFFSETS: [(&str, &str, &str); 8] = [
    ("TASK_TGID", "task_struct", "tgid"),
    ("TASK_PID", "task_struct", "pid"),
    ("TASK_FLAGS", "task_struct", "flags"),
    ("TASK_START_BOOTTIME", "task_struct", "start_boottime"),
    ("TASK_MM", "task_struct", "mm"),
    ("MM_PGD", "mm_struct", "pgd"),
    ("TASK_SIGNAL", "task_struct", "signal"),
    ("SIGNAL_LIVE", "signal_struct", "live"),
];

pub(super) fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    fs::read(path).map_err(|source| KernelError::ReadBtf { path: path.into(), source })
}

pub(super) fn member_offsets(types: &KernelTypes<'_>) -> Result<Vec<(&'static str, u32)>, KernelError> {
    let offset_of = |(global, structure, member): &(&'static str, &str, &str)| {
        Ok((*global, types.member_offset(structure, member)?))
    };
    OFFSETS.iter().map(offset_of).collect()
}

/// What aya needs to find tracepoints and functions.
pub(super) fn to_attach(path: &Path) -> Result<Btf, KernelError> {
    let pruned = KernelTypes::parse(&read(path)?)?.attachable_only(&io::functions().collect::<Vec<_>>());
    Btf::parse(&pruned, Endianness::default())
        .map_err(|error| KernelError::ReadBtf { path: path.into(), source: std::io::Error::other(error) })
}
