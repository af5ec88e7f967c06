//! Reads pages of the running process that automatic NUMA balancing has taken the access to away, which the helper for
//! user memory cannot read: see `joular_ebpf::paging`. Of a JVM's code cache there are many, for long, since a JVM seldom
//! looks into what says where code begins.

use aya_ebpf::helpers::{bpf_probe_read_kernel, generated::bpf_probe_read_kernel as probe_read_kernel};
use joular_ebpf::{
    paging::{self, PAGE_BYTES, Page, Paging},
    walk::{BlockWords, End},
};

use super::{arch, tables::walk_under_way};
use crate::{
    maps::{HINTED, MM_PGD, PAGE_LEVELS, PAGE_OFFSET_BASE, PHYSICAL_MASK, TASK_MM},
    task::Task,
};

/// Most bytes that are read at once.
const MAX_BYTES: u64 = size_of::<BlockWords>() as u64;
/// Bits of an address, where the kernel has no variable for them.
const MAX_PHYSICAL_MASK: u64 = (1 << 52) - 1;

/// Reads what the helper could not. On hosts without such pages the verifier removes the rest of it.
#[inline(always)]
pub fn read<T: Copy>(address: u64) -> Result<T, End> {
    let found = find(address, size_of::<T>() as u32)?;
    // SAFETY: a live per-CPU map value that is larger than any `T`, which is made of integers.
    Ok(unsafe { found.cast::<T>().read() })
}

/// The same for that many bytes, at most [`MAX_BYTES`]; they are where this leads to.
#[inline(always)]
pub fn find(address: u64, bytes: u32) -> Result<*const u64, End> {
    // Elsewhere the function is not even called: all that call each other share the kernel's stack.
    if !arch::READS_PAGE_TABLES || PAGE_LEVELS.load() == 0 || find_hinted(address, bytes) != 0 {
        return Err(End::UNREADABLE);
    }
    let found = HINTED.get_ptr(walk_under_way()).ok_or(End::UNREADABLE)?;
    Ok(found.cast())
}

/// Fills [`HINTED`]; not 0 if it could not. A global function, since there are many callers.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn find_hinted(address: u64, bytes: u32) -> u32 {
    let bytes = u64::from(bytes);
    if PAGE_LEVELS.load() == 0 || bytes > MAX_BYTES {
        return 1;
    }
    let Some(found) = HINTED.get_ptr_mut(walk_under_way()) else { return 1 };
    let in_first_page = PAGE_BYTES - (address & (PAGE_BYTES - 1));
    let first = if bytes < in_first_page { bytes } else { in_first_page };
    let found = found.cast::<u8>();
    if copy(address, found, first).is_none() {
        return 1;
    }
    let second = bytes - first;
    // SAFETY: where there is a second part, the first one is shorter than `MAX_BYTES`. The value has twice as many.
    let rest = unsafe { found.add((first & (MAX_BYTES - 1)) as usize) };
    u32::from(second != 0 && copy(address.wrapping_add(first), rest, second).is_none())
}

/// Copies bytes of one page.
#[inline(always)]
fn copy(address: u64, to: *mut u8, bytes: u64) -> Option<()> {
    let memory = Task::current().read::<u64>(TASK_MM.load());
    let root = read_kernel(memory.wrapping_add(u64::from(MM_PGD.load())))?;
    let mask_at = PHYSICAL_MASK.load();
    let paging = Paging {
        levels: PAGE_LEVELS.load(),
        direct_map: read_kernel(PAGE_OFFSET_BASE.load())?,
        physical_mask: if mask_at == 0 { MAX_PHYSICAL_MASK } else { read_kernel(mask_at)? },
    };
    let Page { entry_at, entry, direct } = paging::page(&paging, root, address, read_kernel)?;
    // SAFETY: a local variable. It is read anew, or the compiler would take the check out, which older verifiers need.
    let bytes = unsafe { core::ptr::read_volatile(&raw const bytes) };
    if bytes > MAX_BYTES {
        return None;
    }
    // SAFETY: the buffer has room for them, and the helper fails where nothing can be read.
    if unsafe { probe_read_kernel(to.cast(), bytes as u32, direct as *const _) } != 0 {
        return None;
    }
    // Meanwhile the page may have become another's.
    (read_kernel(entry_at)? == entry).then_some(())
}

#[inline(always)]
fn read_kernel(address: u64) -> Option<u64> {
    // SAFETY: the helper fails where nothing can be read.
    unsafe { bpf_probe_read_kernel(address as *const u64) }.ok()
}
