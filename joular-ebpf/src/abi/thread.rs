//! Defines the on-CPU time of one thread in one window.

use super::COMM_LEN;

/// Where CPU time is counted apart: a physical package or, where cores have
/// energy counters of their own, a core of it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u32);

impl Place {
    /// Bits of a place: 8 for the socket, 10 for the core.
    const BITS: u32 = 18;
    const CORE_BITS: u32 = 10;

    /// `socket` counts modulo 256, `core` modulo 1024.
    #[inline(always)]
    pub const fn new(socket: u32, core: u32) -> Self {
        Self(((socket & 0xff) << Self::CORE_BITS) | (core & 0x3ff))
    }

    #[inline(always)]
    pub const fn socket(self) -> u32 {
        (self.0 >> Self::CORE_BITS) & 0xff
    }

    #[inline(always)]
    pub const fn core(self) -> u32 {
        self.0 & 0x3ff
    }
}

/// Identity of a thread in one place, in 8 bytes, which keeps the hash of the
/// hottest map at one word: thread id (22 bits, as Linux's `PID_MAX_LIMIT`
/// allows), start time in milliseconds modulo 2²⁴ (4.6 h; tells a reused id
/// from its predecessor) and the place.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey(pub u64);

impl ThreadKey {
    /// Of counts whose thread is not known. The idle task, whose thread id this is, has no slots.
    pub const UNKNOWN: Self = Self(0);

    #[inline(always)]
    pub const fn new(tid: u32, start_boottime_ns: u64, place: Place) -> Self {
        // 2^20 ns ≈ 1.05 ms: a shift is cheaper than a division in the kernel.
        let start_ms = (start_boottime_ns >> 20) & 0xff_ffff;
        let tid = tid as u64 & 0x3f_ffff;
        Self((tid << 42) | (start_ms << Place::BITS) | (place.0 as u64 & 0x3_ffff))
    }

    #[inline(always)]
    pub const fn tid(self) -> u32 {
        (self.0 >> 42) as u32
    }

    #[inline(always)]
    pub const fn place(self) -> Place {
        Place((self.0 & 0x3_ffff) as u32)
    }

    /// The same for a thread wherever it runs.
    #[inline(always)]
    pub const fn identity(self) -> u64 {
        self.0 >> Place::BITS
    }
}

/// Bits of [`ThreadSlot::flags`].
pub mod thread_flags {
    /// The kernel's own thread (`PF_KTHREAD`).
    pub const KERNEL_THREAD: u32 = 1;
    /// Its process is known to be a target: saves the look-up of the next samples.
    pub const TARGET: u32 = 2;
}

/// What a thread did in one window in one place.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSlot {
    /// Time on CPU, nanoseconds, exact to the window's boundaries.
    pub cpu_ns: u64,
    /// Of `cpu_ns`: while the core's other hyper-thread was busy too.
    pub corun_ns: u64,
    /// Unhalted cycles, 0 unless they are counted.
    pub cycles: u64,
    /// When the thread was started, nanoseconds since boot (`start_boottime`).
    pub start_boottime_ns: u64,
    pub tgid: u32,
    /// Samples that hit this thread, with or without a stack.
    pub samples: u32,
    pub flags: u32,
    /// Times the thread was switched out.
    pub switches: u32,
    /// Name of the thread when it was first seen in the window; a later one
    /// comes as a `COMM` record.
    pub comm: [u8; COMM_LEN],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_parts() {
        let key = ThreadKey::new(4_194_303, u64::MAX, Place::new(255, 1023));
        assert_eq!((key.tid(), key.place().socket(), key.place().core()), (4_194_303, 255, 1023));
        let elsewhere = ThreadKey::new(4_194_303, u64::MAX, Place::new(0, 0));
        assert_ne!(key, elsewhere);
        assert_eq!(key.identity(), elsewhere.identity());
    }

    #[test]
    fn a_reused_tid_is_another_thread() {
        let key = |start_ns| ThreadKey::new(7, start_ns, Place::default());
        assert_ne!(key(5_000_000_000).identity(), key(5_900_000_000).identity());
    }
}
