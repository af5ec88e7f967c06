//! Defines samples of what a JVM's threads allocate on the Java heap.
//!
//! A thread takes memory in pieces, its thread-local allocation buffers (TLABs), and objects too large for the rest
//! of one are allocated outside. Only these two cases pass through a function of the JVM, where a probe sees them.
//! An object that is seen so stands for more than itself: of objects of one size, those are seen that cross the end
//! of a buffer, which is the more likely the larger they are. If a buffer's end is as likely to be anywhere, each
//! object seen stands for as many bytes as were used of the buffer, or for its own if it is larger than that.

/// Key of the map of allocations.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationKey {
    /// [`super::ThreadKey`], without a place.
    pub thread: u64,
    /// [`super::StackId`]: its first word is the object's class. 0 in a thread's own record.
    pub stack: u64,
}

/// Value of the map of allocations.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSlot {
    /// What the samples stand for. In a thread's own record all bytes that it had ever allocated when it was last
    /// seen.
    pub bytes: u64,
    /// Samples. In a thread's own record the objects that were seen, whether or not they were sampled.
    pub count: u32,
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

/// What is kept of a thread between two objects that are seen. The map of them has the least recently used give way: a
/// thread that has none is one whose buffer's size counts in the place of what it used of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferState {
    /// What the thread had allocated when its buffer began.
    pub before: u64,
    /// Of what it has allocated since: outside of the buffer.
    pub outside: u64,
}

impl BufferState {
    /// Takes an object that a new buffer began with; `all` is what the thread has allocated with it. Returns what was
    /// used of the buffer before: an object that is the first after a collection, which ends buffers anywhere, says
    /// nothing of what was allocated before it.
    #[inline(always)]
    pub fn begin_buffer(&mut self, all: u64, object_bytes: u64) -> u64 {
        let used = self.used(all, object_bytes);
        *self = Self { before: all.wrapping_sub(object_bytes), outside: 0 };
        used
    }

    /// Takes an object that was allocated outside while there is a buffer.
    #[inline(always)]
    pub fn add_outside(&mut self, object_bytes: u64) {
        self.outside = self.outside.wrapping_add(object_bytes);
    }

    /// Takes an object that was allocated outside after a collection that it had to wait for: it is the one that did
    /// not fit. Returns what was used of the buffer before.
    #[inline(always)]
    pub fn end_buffer(&mut self, all: u64, object_bytes: u64) -> u64 {
        let used = self.used(all, object_bytes);
        *self = Self { before: all, outside: 0 };
        used
    }

    #[inline(always)]
    const fn used(&self, all: u64, object_bytes: u64) -> u64 {
        let used = all.wrapping_sub(object_bytes).wrapping_sub(self.before).wrapping_sub(self.outside);
        // Less than nothing: the thread's number is another's by now.
        if used > MOST_BUFFER_BYTES { 0 } else { used }
    }
}

/// No buffer is larger.
const MOST_BUFFER_BYTES: u64 = 1 << 40;

/// For how many bytes an object stands that was seen; `None`: it is not sampled. An object that stands for fewer than
/// `gap_bytes` is sampled with the chance at which such samples stand for `gap_bytes` each. `chance` is any number,
/// all equally likely.
#[inline(always)]
pub const fn sampled_bytes(object_bytes: u64, buffer_bytes: u64, gap_bytes: u32, chance: u32) -> Option<u64> {
    let stands_for = if object_bytes > buffer_bytes { object_bytes } else { buffer_bytes };
    let gap = gap_bytes as u64;
    if stands_for >= gap {
        Some(stands_for)
    } else if (chance as u64 * gap) >> 32 < stands_for {
        Some(gap)
    } else {
        None
    }
}

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

    /// Numbers that look as if they were random: splitmix64.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        }
    }

    #[test]
    fn samples_stand_for_what_was_allocated_whatever_the_gap() {
        for (object, buffer, gap) in
            [(16, 1 << 20, 1), (16, 1 << 18, 1 << 20), (1 << 22, 1 << 18, 1 << 20), (1000, 3000, u32::MAX)]
        {
            let (mut random, seen) = (Random(1), if gap == u32::MAX { 40_000_000_u64 } else { 100_000 });
            let stood: u64 =
                (0..seen).filter_map(|_| sampled_bytes(object, buffer, gap, (random.next() >> 32) as u32)).sum();
            let expected = seen * object.max(buffer);
            // Five standard deviations of a binomial sum.
            let deviation = 5.0 * (expected as f64 * f64::from(gap)).sqrt();
            assert!((stood as f64 - expected as f64).abs() <= deviation, "{stood} of {expected}");
        }
    }

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

    #[test]
    fn what_was_used_of_a_buffer_is_what_was_not_allocated_outside() {
        let mut state = BufferState { before: 1_000, outside: 0 };
        state.add_outside(300);
        assert_eq!(state.begin_buffer(2_324, 24), 1_000);
        assert_eq!(state, BufferState { before: 2_300, outside: 0 });
        assert_eq!(state.end_buffer(2_400, 40), 60, "an object of the buffer and the one that began it");
        assert_eq!(state.begin_buffer(2_416, 16), 0, "the first after a collection");
        assert_eq!(state.begin_buffer(100, 16), 0, "another thread of the same number");
    }

    /// Objects of two sizes in random order, in buffers as HotSpot has them: an object that does not fit goes outside
    /// if more than a 64th of the buffer is left, and that bound grows; else a new buffer begins with it.
    fn share_of_small(small: u64, large: u64, buffer: u64, gap: u32) -> (f64, f64) {
        let mut random = Random(7);
        let (mut left, mut waste, mut all, mut found) = (0, buffer / 64, [0_u64; 2], [0_u64; 2]);
        let (mut state, mut collected) = (BufferState::default(), 0);
        while all[0] + all[1] < 4 << 30 {
            // A collection, which ends the buffer wherever that is.
            if (all[0] + all[1]) / (20 * buffer) > collected {
                (left, collected) = (0, collected + 1);
            }
            // As many bytes of both.
            let is_small = random.next() % (small + large) < large;
            let (index, size) = if is_small { (0, small) } else { (1, large) };
            all[index] += size;
            if size <= left {
                left -= size;
                continue;
            }
            let now = all[0] + all[1];
            let buffer = if left > waste {
                waste += 32;
                state.add_outside(size);
                buffer
            } else {
                (left, waste) = (buffer, buffer / 64);
                state.begin_buffer(now, size)
            };
            found[index] += sampled_bytes(size, buffer, gap, (random.next() >> 32) as u32).unwrap_or(0);
        }
        let share = |of: [u64; 2]| of[0] as f64 / (of[0] + of[1]) as f64;
        (share(all), share(found))
    }

    #[test]
    fn shares_of_sizes_are_about_right_in_buffers_as_hotspot_has_them() {
        for (small, large) in [(1 << 10, 3 << 10), (64, 10 << 10), (1 << 10, 1 << 20), (256, 4 << 20)] {
            for gap in [1, 512 << 10] {
                let (all, found) = share_of_small(small, large, 256 << 10, gap);
                assert!((all - found).abs() < 0.04, "{small} and {large} bytes: {all} of small ones, {found} found");
            }
        }
    }
}
