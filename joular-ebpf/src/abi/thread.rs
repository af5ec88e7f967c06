//! On-CPU time of one thread in one window.

use super::COMM_LEN;

/// Identity of a thread on one socket, in 8 bytes, which keeps the hash of
/// the hottest map at one word: thread id (32 bits), start time in
/// milliseconds modulo 2²⁴ (4.6 h; tells a reused id from its predecessor)
/// and physical package (8 bits).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey(pub u64);

impl ThreadKey {
    #[inline(always)]
    pub const fn new(tid: u32, start_boottime_ns: u64, socket: u32) -> Self {
        // 2^20 ns ≈ 1.05 ms: a shift is cheaper than a division in the kernel.
        let start_ms = (start_boottime_ns >> 20) & 0xff_ffff;
        Self(((tid as u64) << 32) | (start_ms << 8) | (socket as u64 & 0xff))
    }

    #[inline(always)]
    pub const fn tid(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub const fn socket(self) -> u32 {
        (self.0 & 0xff) as u32
    }
}

/// Bits of [`ThreadSlot::flags`].
pub mod thread_flags {
    /// The kernel's own thread (`PF_KTHREAD`).
    pub const KERNEL_THREAD: u32 = 1;
    /// Its process is known to be a target: saves the look-up of the next samples.
    pub const TARGET: u32 = 2;
}

/// What a thread did in one window on one socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSlot {
    /// Time on CPU, nanoseconds, exact to the window's boundaries.
    pub cpu_ns: u64,
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
        let key = ThreadKey::new(u32::MAX, u64::MAX, 3);
        assert_eq!((key.tid(), key.socket()), (u32::MAX, 3));
    }

    #[test]
    fn a_reused_tid_is_another_thread() {
        let first = ThreadKey::new(7, 5_000_000_000, 0);
        let second = ThreadKey::new(7, 5_900_000_000, 0);
        assert_ne!(first, second);
    }
}
