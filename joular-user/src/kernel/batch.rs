//! Drains a hash map in few system calls.
//!
//! `BPF_MAP_LOOKUP_AND_DELETE_BATCH` (kernel 5.6) copies and removes whole buckets; aya does not
//! wrap it yet.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
};

use aya::Pod;

const BPF_MAP_LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;
/// More entries than any bucket of a map with short chains can hold; grown on
/// `ENOSPC`.
const FIRST_CAPACITY: usize = 1024;
const MAX_CAPACITY: usize = 1 << 20;

/// The `batch` member of `union bpf_attr` (include/uapi/linux/bpf.h).
#[repr(C)]
#[derive(Debug, Default)]
struct BatchAttr {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// Reusable buffers for draining maps of one key and value type.
#[derive(Debug)]
pub(super) struct Drain<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
}

impl<K: Pod + Default, V: Pod + Default> Drain<K, V> {
    pub(super) fn new() -> Self {
        Self { keys: vec![K::default(); FIRST_CAPACITY], values: vec![V::default(); FIRST_CAPACITY] }
    }

    /// Removes every entry of the hash map behind `map` and hands it to `take`.
    pub(super) fn drain(&mut self, map: BorrowedFd<'_>, mut take: impl FnMut(K, V)) -> io::Result<()> {
        let mut position: Option<u32> = None;
        loop {
            let (count, next, end) = match self.next_batch(map, position) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && self.grow() => continue,
                other => other?,
            };
            for (key, value) in self.keys.iter().zip(&self.values).take(count) {
                take(*key, *value);
            }
            if end {
                return Ok(());
            }
            position = Some(next);
        }
    }

    fn grow(&mut self) -> bool {
        let capacity = self.keys.len() * 2;
        self.keys.resize(capacity, K::default());
        self.values.resize(capacity, V::default());
        capacity <= MAX_CAPACITY
    }

    /// One system call: entries taken, where to go on, whether it was the last.
    fn next_batch(&mut self, map: BorrowedFd<'_>, position: Option<u32>) -> io::Result<(usize, u32, bool)> {
        let start = position.unwrap_or(0);
        let mut next = 0_u32;
        let mut attr = BatchAttr {
            in_batch: if position.is_some() { (&raw const start) as u64 } else { 0 },
            out_batch: (&raw mut next) as u64,
            keys: self.keys.as_mut_ptr() as u64,
            values: self.values.as_mut_ptr() as u64,
            count: u32::try_from(self.keys.len()).unwrap_or(u32::MAX),
            map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
            ..BatchAttr::default()
        };
        // SAFETY: all pointers are to live buffers of `count` elements whose
        // sizes are those of the map's keys and values (same Pod types), and
        // the attribute is as large as said.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, BPF_MAP_LOOKUP_AND_DELETE_BATCH, &raw mut attr, size_of::<BatchAttr>())
        };
        let count = attr.count as usize;
        if result == 0 {
            return Ok((count, next, false));
        }
        let error = io::Error::last_os_error();
        // ENOENT: the end of the map; `count` entries came with it.
        if error.raw_os_error() == Some(libc::ENOENT) { Ok((count, next, true)) } else { Err(error) }
    }
}
