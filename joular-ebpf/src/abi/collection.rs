//! Defines what the kernel side sends of a JVM's garbage collections.
//!
//! HotSpot has static probes (USDT) where a collection begins and ends, one call for each memory pool
//! (`mem__pool__gc__begin`, `mem__pool__gc__end`). A note in its file says where they are, and in which register or
//! where on the stack each argument is.

use super::Survival;

/// Longest name of a collector, a pool or a cause that is kept, with its zero.
pub const COLLECTION_NAME_BYTES: usize = 40;

pub type CollectionName = [u8; COLLECTION_NAME_BYTES];

/// Ages that objects in the young generation can have: 1 to 15. Age 0 is not used.
pub const OBJECT_AGES: usize = 16;

/// Where a probe has an argument of 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArgumentPlace {
    /// Offset of a register in the kernel's `pt_regs`.
    pub register: u32,
    /// 0: the register has the argument. 1: it is in memory, at the register's address plus `displacement`.
    pub in_memory: u32,
    pub displacement: i64,
}

/// Where a probe has what is read of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolArguments {
    /// Text: the memory manager, which is what Java calls a `GarbageCollectorMXBean`.
    pub collector: ArgumentPlace,
    /// Text: the memory pool.
    pub pool: ArgumentPlace,
    pub used_bytes: ArgumentPlace,
}

/// What the probes of one JVM need. Value of the map by tgid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmCollections {
    pub begin: PoolArguments,
    pub end: PoolArguments,
    /// Address of the text that says why a collection takes place; 0: it is not known.
    pub cause: u64,
    /// Address of the bytes of age 0, and how far those of the next age are from it; 0: they are not kept.
    pub ages: u64,
    pub age_stride: u64,
    pub survival: Survival,
}

/// A pool of the heap as a collection begins or ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRecord {
    /// `RecordKind::POOL`.
    pub kind: u32,
    pub tgid: u32,
    /// 0: the collection begins; 1: it ends.
    pub is_end: u32,
    pub padding: u32,
    /// Monotonic nanoseconds.
    pub time_ns: u64,
    pub used_bytes: u64,
    pub collector: CollectionName,
    pub pool: CollectionName,
    pub cause: CollectionName,
    /// Bytes of objects by age; all 0 where they are not kept.
    pub ages: [u64; OBJECT_AGES],
}

/// Whether a pool is not of the Java heap: code, and what the JVM keeps of classes. The names are those of JDK 11 to 25.
#[inline(always)]
pub fn is_beside_heap(pool: &CollectionName) -> bool {
    matches!(&pool[..4], b"Code" | b"Meta" | b"Comp")
}

/// Whether a collector moves all that survives of the young generation, and leaves a note of that at each object's old
/// place.
#[inline(always)]
pub fn forwards_survivors(collector: &CollectionName) -> bool {
    matches!(&collector[..4], b"Copy" | b"PS S" | b"G1 Y")
}

/// Whether what a pool has as a young collection ends shows that the collector found no room to move all that
/// survived: then the eden of Serial or Parallel is not empty. G1 makes such regions old ones.
#[inline(always)]
pub fn keeps_survivors(pool: &CollectionName, used_bytes: u64) -> bool {
    used_bytes != 0 && matches!(&pool[..4], b"Eden" | b"PS E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_code_and_classes_are_not_of_the_heap() {
        for (pool, expected) in [
            ("CodeHeap 'non-nmethods'", true),
            ("Code Cache", true),
            ("CodeCache", true),
            ("Metaspace", true),
            ("Compressed Class Space", true),
            ("G1 Eden Space", false),
            ("Eden Space", false),
            ("PS Old Gen", false),
            ("Tenured Gen", false),
            ("ZHeap", false),
            ("Shenandoah", false),
        ] {
            let mut name = [0; COLLECTION_NAME_BYTES];
            name[..pool.len()].copy_from_slice(pool.as_bytes());
            assert_eq!(is_beside_heap(&name), expected, "{pool}");
        }
    }

    #[test]
    fn an_eden_that_is_not_empty_keeps_survivors() {
        for (pool, used_bytes, expected) in [
            ("Eden Space", 0, false),
            ("Eden Space", 1, true),
            ("PS Eden Space", 1, true),
            ("PS Survivor Space", 1, false),
            ("Survivor Space", 1, false),
            ("G1 Eden Space", 1, false),
        ] {
            let mut name = [0; COLLECTION_NAME_BYTES];
            name[..pool.len()].copy_from_slice(pool.as_bytes());
            assert_eq!(keeps_survivors(&name, used_bytes), expected, "{pool}");
        }
    }

    #[test]
    fn collectors_of_a_young_generation_forward_what_they_move() {
        for (collector, expected) in [
            ("Copy", true),
            ("PS Scavenge", true),
            ("G1 Young Generation", true),
            ("MarkSweepCompact", false),
            ("PS MarkSweep", false),
            ("G1 Old Generation", false),
            ("G1 Concurrent GC", false),
            ("ZGC Minor Cycles", false),
        ] {
            let mut name = [0; COLLECTION_NAME_BYTES];
            name[..collector.len()].copy_from_slice(collector.as_bytes());
            assert_eq!(forwards_survivors(&name), expected, "{collector}");
        }
    }
}
