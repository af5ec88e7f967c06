//! Translates an address of a process as the processor does, by the page tables of x86-64.
//!
//! Automatic NUMA balancing takes the access to pages away, to see at the next access which node uses them ("NUMA hinting
//! faults", `change_pte_range` in mm/mprotect.c). No program may fault, so none can read such a page at its address. It is
//! where it was all the same, and the kernel's direct map has all memory. Layouts: Intel's Software Developer's
//! Manual, volume 3, 4.5; arch/x86/include/asm/pgtable_types.h.

/// Smallest page.
pub const PAGE_BYTES: u64 = 4096;
const PAGE_SHIFT: u32 = 12;
/// Bits of an address that each level translates.
const LEVEL_BITS: u32 = 9;
/// With five levels there are most.
const MAX_LEVELS: u32 = 5;
/// Highest level of a table, counted from 0, that can have a large page: 1 GiB.
const MAX_LARGE_LEVEL: u32 = 2;

const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
/// `_PAGE_PROTNONE`: nobody may access the page, but it is there. No entry of a page that is elsewhere has it.
const NO_ACCESS: u64 = 1 << 8;

/// What the kernel has decided at its start.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    /// 4 or 5.
    pub levels: u32,
    /// Where the direct map of all memory begins (`page_offset_base`).
    pub direct_map: u64,
    /// Bits of an entry that are an address (`physical_mask`): where memory is encrypted, fewer.
    pub physical_mask: u64,
}

/// What a page's entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where the entry stands.
    pub entry_at: u64,
    pub entry: u64,
    /// Where the direct map has the byte that was asked for.
    pub direct: u64,
}

/// Finds where the direct map has a byte of a process whose uppermost table is at `root`. `read` reads a word of the
/// kernel's memory. `None`: the page is not in memory, or the address is not a process's.
#[inline(always)]
pub fn page(paging: &Paging, root: u64, address: u64, read: impl Fn(u64) -> Option<u64>) -> Option<Page> {
    let user_bits = PAGE_SHIFT + LEVEL_BITS * paging.levels - 1;
    if paging.levels > MAX_LEVELS || address >> (user_bits & 63) != 0 {
        return None;
    }
    let mut table = root;
    for back in 0..MAX_LEVELS {
        let level = paging.levels.checked_sub(1 + back)?;
        let shift = PAGE_SHIFT + LEVEL_BITS * level;
        let entry_at = table.wrapping_add((address >> (shift & 63) & 511) * 8);
        let entry = read(entry_at)?;
        if level == 0 || level <= MAX_LARGE_LEVEL && entry & LARGE != 0 {
            // An entry without access has the bits of its address inverted (arch/x86/include/asm/pgtable-invert.h).
            let address_bits = match entry & (PRESENT | NO_ACCESS) {
                0 => return None,
                NO_ACCESS => !entry,
                _ => entry,
            };
            let offset_mask = (1_u64 << (shift & 63)) - 1;
            let physical = address_bits & paging.physical_mask & !offset_mask;
            let direct = paging.direct_map.wrapping_add(physical).wrapping_add(address & offset_mask);
            return Some(Page { entry_at, entry, direct });
        }
        if entry & PRESENT == 0 {
            return None;
        }
        table = paging.direct_map.wrapping_add(entry & paging.physical_mask & !(PAGE_BYTES - 1));
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::HashMap;

    use super::*;

    const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
    const ROOT: u64 = DIRECT_MAP + 0x1000;
    /// Accessed, writable, a user's, never executed: the bits around an address.
    const FLAGS: u64 = 0x8000_0000_0000_0067;
    const ENCRYPTED: u64 = 1 << 51;

    /// Tables that lead to one page of a level.
    struct Tables {
        paging: Paging,
        words: HashMap<u64, u64>,
    }

    impl Tables {
        /// The entry of the page is what `leaf` makes of its physical address.
        fn new(levels: u32, address: u64, level: u32, physical: u64, leaf: impl Fn(u64) -> u64) -> Self {
            let mut words = HashMap::new();
            let mut table = ROOT;
            for above in (level..levels).rev() {
                let at = table + (address >> (PAGE_SHIFT + LEVEL_BITS * above) & 511) * 8;
                let next = 0x10_0000 + u64::from(above) * 0x1000;
                words.insert(at, if above == level { leaf(physical) } else { next | FLAGS | ENCRYPTED });
                table = DIRECT_MAP + next;
            }
            Self { paging: Paging { levels, direct_map: DIRECT_MAP, physical_mask: (1 << 46) - 1 }, words }
        }

        fn page(&self, address: u64) -> Option<u64> {
            page(&self.paging, ROOT, address, |at| self.words.get(&at).copied()).map(|page| page.direct)
        }
    }

    fn no_access(physical: u64) -> u64 {
        (!physical & ((1 << 52) - 1) & !(PAGE_BYTES - 1)) | NO_ACCESS | 1 << 5
    }

    #[test]
    fn pages_of_all_sizes_are_found_with_and_without_access() {
        for levels in [4, 5] {
            for (level, bytes) in [(0, 1 << 12), (1, 1 << 21), (2, 1_u64 << 30)] {
                let address = 0x7f12_3456_7abc_u64;
                let physical = 3 * bytes;
                let expected = DIRECT_MAP + physical + address % bytes;
                let large = if level == 0 { 0 } else { LARGE };
                let present = Tables::new(levels, address, level, physical, |at| at | FLAGS | large | ENCRYPTED);
                assert_eq!(present.page(address), Some(expected), "{levels} {level}");
                let hinted = Tables::new(levels, address, level, physical, |at| no_access(at) | large);
                assert_eq!(hinted.page(address), Some(expected), "{levels} {level}");
            }
        }
    }

    #[test]
    fn a_page_that_is_not_in_memory_is_not_found() {
        let address = 0x5555_5555_5000;
        // Never touched, swapped out, and on its way elsewhere.
        for entry in [0, 0x7fff_ffff_ffff_e602, 0x7fff_ffff_f000_fe00] {
            assert_eq!(Tables::new(4, address, 0, 0, |_| entry).page(address), None, "{entry:#x}");
        }
        let mut cut = Tables::new(4, address, 0, 0x5000, |at| at | FLAGS);
        assert!(cut.page(address).is_some());
        cut.words.values_mut().for_each(|entry| *entry &= !PRESENT);
        assert_eq!(cut.page(address), None);
        cut.words.clear();
        assert_eq!(cut.page(address), None);
    }

    /// A hostile process may have any number in its registers.
    #[test]
    fn the_kernels_own_addresses_are_not_translated() {
        for (levels, first_not_users) in [(4, 1_u64 << 47), (5, 1 << 56)] {
            let last = first_not_users - 1;
            assert!(Tables::new(levels, last, 0, 0x5000, |at| at | FLAGS).page(last).is_some());
            for address in [first_not_users, 0xffff_8880_0000_1000, u64::MAX] {
                assert_eq!(Tables::new(levels, address, 0, 0x5000, |at| at | FLAGS).page(address), None);
            }
        }
        let unknown = Paging { levels: 0, direct_map: 0, physical_mask: 0 };
        assert_eq!(page(&unknown, ROOT, 0, |_| Some(FLAGS)), None);
        assert_eq!(page(&Paging { levels: 6, ..unknown }, ROOT, 0, |_| Some(FLAGS)), None);
    }
}
