//! Reads memory of another process, with bounds.
//!
//! Everything above this file sees a JVM only through [`RemoteMemory`], so an image of one
//! ([`MemoryImage`]) serves as well as a live one: tests and property tests need no JVM. The memory
//! may hold anything. Sizes and counts are checked where they are used; texts and bulk reads are
//! bounded here.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

use foldhash::fast::RandomState;
use joular_data::model::units::Pid;
use joular_ebpf::abi::Field;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Unit in which memory is read ahead and recorded.
pub(super) const PAGE_BYTES: u64 = 4096;
pub(super) const PAGE: usize = 4096;
/// Pages kept by one [`Pages`].
const MAX_PAGES: usize = 1024;
/// Addresses that are read at once: less than the kernel allows (`UIO_MAXIOV`).
const MAX_SPANS: usize = 512;
/// Addresses that cannot be read before the rest is left out too.
const MAX_UNREADABLE: usize = 16;
/// Pages kept by a thread for the next [`Pages`]: more than most questions need.
const MAX_SPARE: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("reading {length} bytes at {address:#x} of the process: the memory is not mapped (any more)")]
pub struct Unreadable {
    pub address: u64,
    pub length: usize,
}

/// Memory that can be read, and may be gone the next moment.
pub trait RemoteMemory: Debug {
    /// Fills all of `buffer`, or fails; then its contents are undefined.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable>;

    /// The same, for more than is needed right now; [`Self::asked`] says what is needed. It may be another process that
    /// is read, unless [`Self::is_there`] afterwards.
    fn read_ahead(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.read(address, buffer)
    }

    /// Whether what was read up to now is of the process that was opened.
    fn is_there(&self) -> bool {
        true
    }

    /// Says that these bytes of what was read ahead were asked for.
    fn asked(&self, _address: u64, _length: usize) {}

    /// Reads `length` bytes at each address into `buffer`, one after the other, until they cannot be read. Returns at
    /// how many addresses they could.
    fn read_each(&self, addresses: &[u64], length: usize, buffer: &mut [u8]) -> usize {
        let mut parts = buffer.chunks_exact_mut(length.max(1));
        let mut read = |address: &&u64| parts.next().is_some_and(|part| self.read(**address, part).is_ok());
        addresses.iter().take_while(|address| read(address)).count()
    }

    fn u8(&self, address: u64) -> Result<u8, Unreadable> {
        let mut bytes = [0; 1];
        self.read(address, &mut bytes)?;
        Ok(bytes[0])
    }

    fn u16(&self, address: u64) -> Result<u16, Unreadable> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn u32(&self, address: u64) -> Result<u32, Unreadable> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&self, address: u64) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A field of the structure at `base`; one that this version lacks is 0.
    fn field(&self, base: u64, field: Field) -> Result<u64, Unreadable> {
        let address = base.wrapping_add(u64::from(field.offset));
        match field.width {
            0 => Ok(0),
            1 => self.u8(address).map(u64::from),
            2 => self.u16(address).map(u64::from),
            4 => self.u32(address).map(u64::from),
            _ => self.u64(address),
        }
    }

    /// `length` bytes, which the caller has bounded.
    fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes before the first zero, which must be within `limit`.
    fn c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, Unreadable> {
        let text = self.start_of_c_string(address, limit)?;
        if text.len() < limit { Ok(text) } else { Err(Unreadable { address, length: limit }) }
    }

    /// The bytes before the first zero, or the first `limit` of them.
    fn start_of_c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, Unreadable> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < limit {
            // Not across a page border that the text may not reach.
            let to_border = PAGE_BYTES - at % PAGE_BYTES;
            let step = usize::try_from(to_border).unwrap_or(1).min(64).min(limit - text.len());
            let part = self.bytes(at, step)?;
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(part.get(..end).unwrap_or_default());
                return Ok(text);
            }
            text.extend_from_slice(&part);
            at = at.wrapping_add(step as u64);
        }
        Ok(text)
    }
}

/// The field of a structure of which `bytes` is a copy; 0 if it is not within.
pub fn field_in(bytes: &[u8], field: Field) -> u64 {
    let start = usize::from(field.offset);
    let mut value = [0; 8];
    let width = usize::from(field.width).min(8);
    match (bytes.get(start..start + width), value.get_mut(..width)) {
        (Some(source), Some(target)) => target.copy_from_slice(source),
        _ => return 0,
    }
    u64::from_le_bytes(value)
}

/// A live process. When it ends or executes another program, nothing can be read any more, whoever gets
/// its pid next.
///
/// It is read by process_vm_readv(2). A read of `/proc/PID/mem` that waits for a page cannot even be
/// killed, and neither can the profiler then; this one can.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: libc::pid_t,
    /// Means the very address space that the process had when this was opened.
    file: File,
}

/// Where no process has memory: reading there only says whether the address space exists.
const NOWHERE: u64 = 1 << 62;

impl ProcessMemory {
    pub fn open(proc_root: &Path, pid: Pid) -> io::Result<Self> {
        let file = File::open(proc_root.join(pid.to_string()).join("mem"))?;
        Ok(Self { pid: pid.0.try_into().map_err(io::Error::other)?, file })
    }
}

impl RemoteMemory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let failed = Unreadable { address, length: buffer.len() };
        self.read_ahead(address, buffer)?;
        // After the read, or another process may have been read that got the pid meanwhile.
        if self.is_there() { Ok(()) } else { Err(failed) }
    }

    fn read_ahead(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let length = buffer.len();
        let failed = Unreadable { address, length };
        let start = usize::try_from(address).map_err(|_| failed)?;
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: length };
        // SAFETY: `local` is the buffer, to which the kernel writes at most `length` bytes. It checks
        // the addresses of the other process itself.
        let read = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
        if usize::try_from(read) == Ok(length) { Ok(()) } else { Err(failed) }
    }

    /// Whether the process still has the address space that it had. One that is gone is empty; in one that exists,
    /// nothing can be read there. The kernel takes the process's lock for changes of mappings for a moment.
    fn is_there(&self) -> bool {
        self.file.read_at(&mut [0], NOWHERE).is_err()
    }

    /// Asks the kernel once for many of them: each call costs more than what it reads.
    fn read_each(&self, addresses: &[u64], length: usize, buffer: &mut [u8]) -> usize {
        let at = |address: &u64| usize::try_from(*address).ok().map(std::ptr::without_provenance_mut);
        let remote: Vec<libc::iovec> = addresses
            .iter()
            .zip(buffer.chunks_exact(length.max(1)))
            .map_while(|(address, _)| Some(libc::iovec { iov_base: at(address)?, iov_len: length }))
            .take(MAX_SPANS)
            .collect();
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: remote.len() * length };
        let count = libc::c_ulong::try_from(remote.len()).unwrap_or(0);
        // SAFETY: `local` lies in the buffer, which has a piece for each of `remote`, and the kernel writes at most its
        // length. It checks the addresses of the other process itself.
        let read = unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, remote.as_ptr(), count, 0) };
        let whole = usize::try_from(read).unwrap_or(0) / length.max(1);
        if self.is_there() { whole } else { 0 }
    }
}

/// Calls `visit` with what is at each address, by its index. Returns whether all could be read; a few that could not are
/// left out.
pub fn visit_each(
    memory: &dyn RemoteMemory,
    addresses: &[u64],
    length: usize,
    mut visit: impl FnMut(usize, &[u8]),
) -> bool {
    let mut buffer = vec![0; length.saturating_mul(MAX_SPANS.min(addresses.len()))];
    let (mut at, mut unreadable) = (0, 0);
    while at < addresses.len() && unreadable < MAX_UNREADABLE {
        let wanted = addresses.get(at..addresses.len().min(at + MAX_SPANS)).unwrap_or_default();
        let read = memory.read_each(wanted, length, buffer.get_mut(..wanted.len() * length).unwrap_or_default());
        for (index, bytes) in buffer.chunks_exact(length.max(1)).take(read).enumerate() {
            visit(at + index, bytes);
        }
        let is_cut = read < wanted.len();
        unreadable += usize::from(is_cut);
        at += read + usize::from(is_cut);
    }
    unreadable == 0
}

type Page = Box<[u8; PAGE]>;

thread_local! {
    /// Pages to use again: every question needs some, and the allocator takes long for memory of this size.
    static SPARE: RefCell<Vec<Page>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the pages that were read, for reads at one time in small pieces.
#[derive(Debug)]
pub struct Pages<'a> {
    memory: &'a dyn RemoteMemory,
    /// Whether each page is known to be of the process before it is used.
    are_checked: bool,
    pages: RefCell<HashMap<u64, Page, RandomState>>,
}

impl<'a> Pages<'a> {
    pub fn new(memory: &'a dyn RemoteMemory) -> Self {
        Self { memory, are_checked: true, pages: RefCell::default() }
    }

    /// For many pages: the caller asks once whether the process [is there](RemoteMemory::is_there), before it uses what
    /// it made of them. To ask for each page takes a third of the time.
    pub fn unchecked(memory: &'a dyn RemoteMemory) -> Self {
        Self { memory, are_checked: false, pages: RefCell::default() }
    }
}

impl Drop for Pages<'_> {
    fn drop(&mut self) {
        let pages = self.pages.get_mut().drain().map(|(_, page)| page);
        SPARE.with_borrow_mut(|spare| spare.extend(pages.take(MAX_SPARE.saturating_sub(spare.len()))));
    }
}

impl RemoteMemory for Pages<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let failed = Unreadable { address, length: buffer.len() };
        self.memory.asked(address, buffer.len());
        let mut pages = self.pages.borrow_mut();
        let mut at = address;
        let mut rest = buffer;
        while !rest.is_empty() {
            let page = at - at % PAGE_BYTES;
            if !pages.contains_key(&page) {
                if pages.len() >= MAX_PAGES {
                    pages.clear();
                }
                let mut bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Box::new([0; PAGE]));
                self.memory.read_ahead(page, &mut *bytes)?;
                if self.are_checked && !self.memory.is_there() {
                    return Err(failed);
                }
                pages.insert(page, bytes);
            }
            let start = usize::try_from(at - page).map_err(|_| failed)?;
            let bytes = pages.get(&page).and_then(|bytes| bytes.get(start..)).ok_or(failed)?;
            let step = bytes.len().min(rest.len());
            let (now, later) = rest.split_at_mut(step);
            now.copy_from_slice(bytes.get(..step).ok_or(failed)?);
            rest = later;
            at = at.checked_add(step as u64).ok_or(failed)?;
        }
        Ok(())
    }
}

/// Memory of which a few scattered pieces are read: the caller asks once whether the process [is
/// there](RemoteMemory::is_there), before it uses what it made of them.
#[derive(Debug)]
pub struct Unchecked<'a>(pub &'a dyn RemoteMemory);

impl RemoteMemory for Unchecked<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read_ahead(address, buffer)?;
        self.0.asked(address, buffer.len());
        Ok(())
    }
}

/// Ranges of bytes that stand for a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryImage {
    ranges: BTreeMap<u64, Vec<u8>>,
}

impl MemoryImage {
    /// Puts bytes at an address; ranges must not overlap, neighbours are joined.
    pub fn insert(&mut self, address: u64, bytes: &[u8]) {
        let before = self.ranges.range_mut(..=address).next_back();
        match before {
            Some((start, range)) if start.checked_add(range.len() as u64) == Some(address) => {
                range.extend_from_slice(bytes);
            }
            _ => drop(self.ranges.insert(address, bytes.to_vec())),
        }
    }

    pub fn from_ranges(ranges: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        Self { ranges: ranges.into_iter().collect() }
    }

    pub fn ranges(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.ranges.iter().map(|(&start, bytes)| (start, bytes.as_slice()))
    }
}

impl<M: RemoteMemory> RemoteMemory for Arc<M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read(address, buffer)
    }

    fn read_ahead(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read_ahead(address, buffer)
    }

    fn is_there(&self) -> bool {
        (**self).is_there()
    }

    fn read_each(&self, addresses: &[u64], length: usize, buffer: &mut [u8]) -> usize {
        (**self).read_each(addresses, length, buffer)
    }

    fn asked(&self, address: u64, length: usize) {
        (**self).asked(address, length);
    }
}

impl RemoteMemory for MemoryImage {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let failed = Unreadable { address, length: buffer.len() };
        let (start, bytes) = self.ranges.range(..=address).next_back().ok_or(failed)?;
        let at = usize::try_from(address - start).map_err(|_| failed)?;
        let end = at.checked_add(buffer.len()).ok_or(failed)?;
        buffer.copy_from_slice(bytes.get(at..end).ok_or(failed)?);
        Ok(())
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
