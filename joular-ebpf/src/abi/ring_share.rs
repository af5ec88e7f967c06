//! Bounds what one process may put into the ring buffer, so that there is room for what others send.

/// For so long a share holds.
pub const SHARE_NS: u64 = 100_000_000;

/// What records of a kind count for at least that a process can send without doing much: new names of its threads, and
/// its collections.
pub const CHEAP_RECORD_BYTES: u32 = 256;

/// What a process has sent lately. Value of the map by tgid; several CPUs may change it at once, which makes a share a
/// little larger.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingShare {
    /// When the share began to be used, in monotonic nanoseconds.
    pub since_ns: u64,
    /// Used of it.
    pub bytes: u32,
    /// Records that were not sent, because the share was used up.
    pub refused: u32,
}

impl RingShare {
    /// Whether a record may be sent.
    #[inline(always)]
    pub fn admits(&mut self, now_ns: u64, bytes: u32, share_bytes: u32) -> bool {
        // The clock of another CPU may be a little behind.
        if now_ns.saturating_sub(self.since_ns) >= SHARE_NS {
            self.since_ns = now_ns;
            self.bytes = 0;
        }
        let used = self.bytes.saturating_add(bytes);
        if used > share_bytes {
            self.refused = self.refused.wrapping_add(1);
            return false;
        }
        self.bytes = used;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_used_up_and_comes_back() {
        let mut share = RingShare::default();
        let start = 5 * SHARE_NS;
        let sent = |share: &mut RingShare, now_ns| (0..10).filter(|_| share.admits(now_ns, 30, 100)).count();
        assert_eq!(sent(&mut share, start), 3);
        assert_eq!(sent(&mut share, start + SHARE_NS - 1), 0);
        assert_eq!(sent(&mut share, start - 7), 0, "a clock that is behind");
        assert_eq!(sent(&mut share, start + SHARE_NS), 3);
        assert_eq!(share.refused, 7 + 10 + 10 + 7);
        assert!(!RingShare::default().admits(start, 101, 100), "one that is larger than the share");
    }
}
