//! Asks the kernel for mappings of code one by one, which Linux can since 6.11.
//!
//! It makes no text of what is skipped, so that tens of thousands of files that a process has mapped cost little.

use std::{
    ffi::c_void,
    fs::File,
    io,
    mem::{offset_of, size_of},
};

use joular_data::model::units::Address;
use rustix::{
    io::Errno,
    ioctl::{self, Updater, opcode},
};

use super::{Kept, Name, Range};

/// `PROCMAP_QUERY_VMA_EXECUTABLE` and `PROCMAP_QUERY_COVERING_OR_NEXT_VMA` of `linux/fs.h`.
const NEXT_WITH_CODE: u64 = 0x04 | 0x10;
/// Longest name that the kernel gives, with the zero byte at its end.
const MAX_NAME_BYTES: usize = 4096;

/// `struct procmap_query` of `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const PROCMAP_QUERY: ioctl::Opcode = opcode::read_write::<Query>(b'f', 17);
const _: () = assert!(size_of::<Query>() == 104 && offset_of!(Query, vma_name_addr) == 88);

/// Takes in all mappings of code. `maps` is `/proc/PID/maps`, of which nothing is read.
///
/// # Errors
/// `ENOTTY`: the kernel does not know the question.
pub(super) fn read(maps: &File, kept: &mut Kept) -> io::Result<()> {
    let mut name = vec![0; MAX_NAME_BYTES];
    let mut from = 0;
    loop {
        let (found, is_named) = match ask(maps, from, &mut name) {
            Err(Errno::NAMETOOLONG) => (ask(maps, from, &mut []), false),
            found => (found, true),
        };
        let found = match found {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        let name_bytes = (found.vma_name_size as usize).saturating_sub(1);
        let name = if is_named { Name::Raw(name.get(..name_bytes).unwrap_or_default()) } else { Name::TooLong };
        let range = Range { start: Address(found.vma_start), end: Address(found.vma_end), offset: found.vma_offset };
        kept.add(range, (found.dev_major, found.dev_minor), found.inode, name);
        if found.vma_end <= from {
            return Ok(());
        }
        from = found.vma_end;
    }
}

/// The first mapping of code that ends behind an address.
fn ask(maps: &File, from: u64, name: &mut [u8]) -> Result<Query, Errno> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_flags: NEXT_WITH_CODE,
        query_addr: from,
        vma_name_size: u32::try_from(name.len()).unwrap_or(0),
        vma_name_addr: if name.is_empty() { 0 } else { name.as_mut_ptr().cast::<c_void>() as u64 },
        ..Query::default()
    };
    // SAFETY: the number belongs to this structure, whose size it has.
    let updater = unsafe { Updater::<PROCMAP_QUERY, Query>::new(&mut query) };
    // SAFETY: the kernel writes to the structure and to `name`, which both live until it returns.
    unsafe { ioctl::ioctl(maps, updater) }?;
    Ok(query)
}
