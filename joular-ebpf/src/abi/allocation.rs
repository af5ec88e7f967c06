//! Defines samples of what a JVM's threads allocate on the Java heap.
//!
//! A thread takes memory in pieces, its thread-local allocation buffers (TLABs), and objects too large for the rest
//! of one are allocated outside. Only these two cases pass through a function of the JVM, where a probe sees them.
//! An object that is seen so stands for more than itself: [`super::buffer`].

use super::ends::EndCounts;

/// Key of the map of sampled objects.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationKey {
    /// [`super::ThreadKey`], without a place.
    pub thread: u64,
    /// [`super::StackId`]: its first word is the object's class.
    pub stack: u64,
}

/// Value of the map of threads that allocate, by [`super::ThreadKey`] without a place.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatingThread {
    /// All bytes that it had ever allocated when it was last seen.
    pub bytes: u64,
    pub tgid: u32,
    /// Objects that were seen, whether or not they were sampled.
    pub objects: u32,
    pub ends: EndCounts,
}

/// Value of the map of sampled objects.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSlot {
    /// What the samples stand for.
    pub bytes: u64,
    pub samples: u32,
    pub tgid: u32,
    /// Of samples whose fate a collection showed: what they stand for, and how much of that survived.
    pub judged_bytes: u64,
    pub survived_bytes: u64,
}

/// A sampled object whose fate the next collection shows. Value of the map by process and number: see [`object_key`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledObject {
    pub address: u64,
    /// What it stands for.
    pub bytes: u64,
    /// As in [`AllocationKey`].
    pub thread: u64,
    pub stack: u64,
}

/// Objects of one JVM that are remembered between two collections. Later ones take the places of earlier ones.
pub const MAX_REMEMBERED_OBJECTS: u32 = 512;

/// Objects that are larger may be allocated elsewhere than in the young generation.
pub const MAX_REMEMBERED_BYTES: u64 = 128 << 10;

#[inline(always)]
pub const fn object_key(tgid: u32, number: u32) -> u64 {
    (tgid as u64) << 32 | (number % MAX_REMEMBERED_OBJECTS) as u64
}

/// How it is seen in one JVM which objects have survived a young collection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// G1's table of regions: the address where that of address 0 would have its entry. 0: another collector.
    pub regions: u64,
    /// Where a region has its kind.
    pub region_kind: u32,
    /// Of an address: what it is shifted by to give the region's number.
    pub region_shift: u32,
    /// 1: bit 2 of an object's first word says that it survived where it is. Before JDK 24 it says something else.
    pub has_in_place_bit: u32,
    /// 0: it is not seen.
    pub is_known: u32,
}

/// `HeapRegionType::FreeTag`: a collection has moved all that survived of the region. Any other kind has kept it.
pub const FREE_REGION: u32 = 0;

impl Survival {
    /// Whether a collector has left a note that an object survives, by the first word of the place where it was.
    /// Serial, Parallel and G1 write the new place there, with both lowest bits set (HotSpot's `markWord::is_forwarded`).
    #[inline(always)]
    pub const fn is_forwarded(&self, mark: u64) -> bool {
        mark & 3 == 3 || self.has_in_place_bit != 0 && mark & 4 != 0
    }

    /// Where G1 has the address of an object's region.
    #[inline(always)]
    pub const fn region_entry(&self, object: u64) -> u64 {
        self.regions.wrapping_add((object >> (self.region_shift & 63)).wrapping_mul(8))
    }
}

/// Where one JVM keeps what a probe reads: offsets of fields. Value of the map by tgid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmAllocation {
    /// `Thread::_allocated_bytes`: without the buffer in use.
    pub allocated_bytes: u32,
    /// `Thread::_tlab` with `ThreadLocalAllocBuffer::_start`, `_top` and `_desired_size` (in words).
    pub tlab_start: u32,
    pub tlab_top: u32,
    pub tlab_desired_size: u32,
    /// `Klass::_name`.
    pub klass_name: u32,
    /// The 16 bits of a `Symbol`'s own hash.
    pub symbol_hash: u32,
}

/// No buffer is larger.
pub(super) const MOST_BUFFER_BYTES: u64 = 1 << 40;

/// All that a thread has allocated: what it had before its buffer in use, and what it used of that.
#[inline(always)]
pub const fn allocated_bytes(before_buffer: u64, buffer_start: u64, buffer_top: u64) -> u64 {
    let used = buffer_top.wrapping_sub(buffer_start);
    // A thread without a buffer has anything there.
    if buffer_start == 0 || used > MOST_BUFFER_BYTES { before_buffer } else { before_buffer.wrapping_add(used) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of objects: by `markWord.hpp` of each version.
    #[test]
    fn a_forwarded_object_has_survived_in_every_jdk() {
        for (what, mark, until_23, since_24) in [
            ("unlocked, of age 3", 0b0001_1001, false, false),
            ("unlocked, with a hash", 0x0000_0042_4242_4201, false, false),
            ("locked by its thread", 0x7fff_0000_1000, false, false),
            ("locked by a monitor", 0x7fff_0000_1002, false, false),
            ("moved", 0x0000_0000_f000_0003, true, true),
            // Of bit 2: up to JDK 17 a lock is biased, then it is free, and since JDK 24 the object stays in place.
            ("biased, or in place", 0x7fff_0000_1005, false, true),
            ("in place, and locked", 0x7fff_0000_1004, false, true),
            ("in place, with a monitor", 0x7fff_0000_1006, false, true),
        ] {
            for (has_in_place_bit, expected) in [(0, until_23), (1, since_24)] {
                let survival = Survival { has_in_place_bit, ..Survival::default() };
                assert_eq!(survival.is_forwarded(mark), expected, "{what}: {has_in_place_bit}");
            }
        }
    }

    #[test]
    fn a_region_is_found_by_the_address_of_an_object() {
        // As `G1BiasedMappedArray` does: a heap from 0xf000_0000 on, regions of 1 MiB, the table at 0x5000.
        let survival =
            Survival { regions: 0x5000_u64.wrapping_sub(0xf00 * 8), region_shift: 20, ..Survival::default() };
        for (object, entry) in [(0xf000_0000, 0x5000), (0xf00f_fff8, 0x5000), (0xf030_0010, 0x5018)] {
            assert_eq!(survival.region_entry(object), entry);
        }
    }

    #[test]
    fn a_thread_without_a_buffer_has_what_it_had() {
        for (before, start, top, all) in
            [(100, 0, 0, 100), (100, 0x1000, 0x1040, 164), (100, 0x1000, 0, 100), (100, 0, 64, 100)]
        {
            assert_eq!(allocated_bytes(before, start, top), all);
        }
    }
}
