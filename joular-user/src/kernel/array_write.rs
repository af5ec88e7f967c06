//! Writes a part of an array map as memory. `BPF_MAP_UPDATE_BATCH` copies element by element, which
//! takes 40 ms for the rows of libjvm; this takes half a millisecond.
//!
//! The array is mapped only meanwhile: all that is mapped counts as our memory.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    ptr,
};

use aya::Pod;

use crate::page;

/// Writes consecutive elements of the array behind `map`, from `first` on. The map
/// must have been made with `BPF_F_MMAPABLE`, and its elements have the size of `V`,
/// a multiple of 8.
pub(super) fn write<V: Pod>(map: BorrowedFd<'_>, first: u32, values: &[V]) -> io::Result<()> {
    const { assert!(size_of::<V>().is_multiple_of(8)) };
    let too_large = |_| io::Error::from_raw_os_error(libc::E2BIG);
    let start = u64::from(first) * size_of::<V>() as u64;
    let page = page::bytes();
    let offset = start - start % page;
    let within = usize::try_from(start - offset).map_err(too_large)?;
    let bytes = size_of_val(values);
    if bytes == 0 {
        return Ok(());
    }
    let length = within.checked_add(bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::E2BIG))?;
    let offset = libc::off_t::try_from(offset).map_err(too_large)?;
    // SAFETY: a new mapping at a place of the kernel's choice; the kernel refuses
    // one that reaches beyond the array.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            map.as_raw_fd(),
            offset,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `within + bytes` is the mapping's length.
    let target = unsafe { memory.cast::<u8>().add(within) };
    // SAFETY: the source is a live slice of `bytes` bytes without padding (Pod), the
    // target the mapping's last `bytes`, which nothing else in this program refers to.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), target, bytes) };
    // SAFETY: exactly what was mapped above.
    let unmapped = unsafe { libc::munmap(memory, length) };
    if unmapped == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd as _, unix::fs::FileExt as _};

    use super::*;

    /// A file behaves as the array does: it too is mapped in whole pages.
    #[test]
    fn elements_land_where_they_belong_and_nowhere_else() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        // Within a page, over the edge of one, from a page's start on, none at all.
        for (first, count) in [(3_u32, 5_usize), (510, 4), (512, 1025), (7, 0)] {
            let mut before = vec![0; 1 << 16];
            file.read_exact_at(&mut before, 0).unwrap();
            let values: Vec<u64> = (1..=count as u64).map(|value| value << 32 | u64::from(first)).collect();
            write(file.as_fd(), first, &values).unwrap();
            let start = first as usize * 8;
            let written: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            before[start..start + written.len()].copy_from_slice(&written);
            let mut after = vec![0; 1 << 16];
            file.read_exact_at(&mut after, 0).unwrap();
            assert!(after == before, "{first} {count}");
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(write(socket.as_fd(), 0, &[1_u64]).is_err());
    }
}
