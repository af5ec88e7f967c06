//! Defines stacks: hashed and counted in the kernel, sent to user space once.
//!
//! A stack is known by a 64-bit hash of its addresses. The samples map counts (thread, user stack,
//! kernel stack, kind). The addresses themselves go through the ring buffer only the first time a
//! hash is seen. At a million distinct stacks the chance of any collision is 3·10⁻⁸.

/// Most frames that the kernel's own walkers give: the default of
/// `kernel.perf_event_max_stack`.
pub const MAX_STACK_FRAMES: usize = 127;

/// Hash of a stack's addresses, or why there is none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u64);

impl StackId {
    /// No stack: there is none here, or it could not be read.
    pub const NONE: Self = Self(0);
    /// A user stack that is no more: its thread ends, and the kernel has taken the thread's memory.
    pub const ENDED: Self = Self(u64::MAX);

    /// Start of a hash; `kind` keeps user and kernel stacks apart.
    #[inline(always)]
    pub const fn seed(kind: u32) -> u64 {
        0x9e37_79b9_7f4a_7c15 ^ kind as u64
    }

    /// Mixes one return address in: one multiplication per frame.
    #[inline(always)]
    pub const fn mix(hash: u64, address: u64) -> u64 {
        let x = (hash ^ address).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ (x >> 32)
    }

    /// Closes a hash with the last step of splitmix64; never yields [`StackId::NONE`] or [`StackId::ENDED`].
    #[inline(always)]
    pub const fn finish(hash: u64) -> Self {
        let x = hash.wrapping_mul(0x94d0_49bb_1331_11eb);
        let x = x ^ (x >> 31);
        Self(if x == Self::NONE.0 || x == Self::ENDED.0 { 1 } else { x })
    }
}

/// Bits of [`StackHeader::flags`].
pub mod stack_flags {
    /// Frames of the kernel, else of the process.
    pub const KERNEL: u32 = 1;
    /// Why the walk ended, one of [`crate::abi::walk_end`]'s.
    pub const END_SHIFT: u32 = 8;
    /// How the stack was read, one of [`crate::abi::unwinder`]'s.
    pub const UNWINDER_SHIFT: u32 = 16;

    /// The generation of the process's tables, as far as it is mixed into the hash.
    pub const GENERATION_SHIFT: u32 = 24;

    /// To be added to the flags of a stack that was walked by tables.
    #[inline(always)]
    pub const fn of_generation(generation: u8) -> u32 {
        (generation as u32) << GENERATION_SHIFT
    }

    /// Generation in these flags.
    #[inline(always)]
    pub const fn generation(flags: u32) -> u8 {
        (flags >> GENERATION_SHIFT & 0xff) as u8
    }

    /// Flags of a user stack.
    #[inline(always)]
    pub const fn user(unwinder: u8, end: u8) -> u32 {
        (end as u32) << END_SHIFT | (unwinder as u32) << UNWINDER_SHIFT
    }

    /// [`crate::abi::walk_end`] of these flags.
    #[inline(always)]
    pub const fn end(flags: u32) -> u8 {
        (flags >> END_SHIFT & 0xff) as u8
    }

    /// [`crate::abi::unwinder`] of these flags.
    #[inline(always)]
    pub const fn unwinder(flags: u32) -> u8 {
        (flags >> UNWINDER_SHIFT & 0xff) as u8
    }
}

/// Opens a stack record in the ring buffer; `len` words follow, leaf first:
/// addresses, of a user stack [`super::FrameWord`]s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackHeader {
    /// [`super::RecordKind::STACK`].
    pub kind: u32,
    pub flags: u32,
    pub len: u32,
    pub tgid: u32,
    pub id: u64,
}

/// What a sample was taken of.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// CPU time: the thread ran when the sampling event fired.
    #[default]
    CpuTime = 0,
    /// Memory that the thread allocated. The programs count that in a map of its own, see [`super::AllocationKey`].
    Allocation = 1,
}

impl SampleKind {
    pub const ALL: [Self; 2] = [Self::CpuTime, Self::Allocation];

    /// As keys and recordings have it.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// `None`: nothing that is known.
    pub const fn decode(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::CpuTime),
            1 => Some(Self::Allocation),
            _ => None,
        }
    }
}

/// Key of the samples map.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKey {
    /// [`super::ThreadKey`].
    pub thread: u64,
    /// [`StackId`] of the process's part, 0 if it has none.
    pub user: u64,
    /// [`StackId`] of the kernel's part, 0 in user mode.
    pub kernel: u64,
    /// [`SampleKind`]: counts of different things are never one count.
    pub kind: u32,
    /// 0. Keys are compared byte by byte.
    pub padding: u32,
}

impl SampleKey {
    #[inline(always)]
    pub const fn new(kind: SampleKind, thread: super::ThreadKey, user: StackId, kernel: StackId) -> Self {
        Self { thread: thread.0, user: user.0, kernel: kernel.0, kind: kind.code(), padding: 0 }
    }
}

/// Value of the samples map.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleSlot {
    pub count: u32,
    pub tgid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(kind: u32, frames: &[u64]) -> StackId {
        StackId::finish(frames.iter().fold(StackId::seed(kind), |hash, frame| StackId::mix(hash, *frame)))
    }

    #[test]
    fn order_depth_and_kind_make_different_stacks() {
        let base = id(0, &[1, 2, 3]);
        for other in [id(0, &[3, 2, 1]), id(0, &[1, 2]), id(0, &[1, 2, 3, 0]), id(1, &[1, 2, 3])] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn neighbouring_addresses_do_not_collide() {
        let mut ids = [0_u64; 4096];
        for (index, slot) in (0_u64..).zip(ids.iter_mut()) {
            *slot = id(0, &[0x7f00_0000_0000 + (index & 63), 0x7f00_0000_1000 + (index >> 6)]).0;
        }
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_kind_is_its_code_and_no_other_code_is_one() {
        for kind in SampleKind::ALL {
            assert_eq!(SampleKind::decode(kind.code()), Some(kind));
        }
        for code in [2, 7, u32::MAX] {
            assert_eq!(SampleKind::decode(code), None, "{code}");
        }
    }

    #[test]
    fn a_key_tells_kinds_apart_and_has_no_other_byte_set() {
        let key = |kind| SampleKey::new(kind, super::super::ThreadKey(1), StackId(2), StackId(3));
        assert_ne!(key(SampleKind::CpuTime), key(SampleKind::Allocation));
        let expected = SampleKey { thread: 1, user: 2, kernel: 3, kind: 1, padding: 0 };
        assert_eq!(key(SampleKind::Allocation), expected);
    }

    #[test]
    fn no_stack_hashes_to_what_stands_for_none() {
        assert_ne!(StackId::finish(0), StackId::NONE);
        // The last step can be undone: multiplication by an odd number, and a shift by half the bits.
        let before_last = (0..6).fold(1_u64, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(inverse.wrapping_mul(0x94d0_49bb_1331_11eb)))
        });
        let all_ones = u64::MAX;
        let mixed = all_ones ^ (all_ones >> 31) ^ (all_ones >> 62);
        assert_eq!(StackId::finish(mixed.wrapping_mul(before_last)), StackId(1));
    }
}
