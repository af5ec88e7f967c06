//! Makes windows exact: it splits a slice of on-CPU time at a window boundary.
//!
//! User space publishes one word, a [`Boundary`]: the monotonic time at which the next window
//! starts, with the bank of that window in its lowest bit. It is published a little before that
//! time. Programs read the clock first and the boundary second, so whoever runs after the boundary
//! has seen it, and the split below needs no other state: time before it belongs to the other bank,
//! time after it to this one.

/// A published window boundary: monotonic nanoseconds, even, with the bank
/// (0 or 1) of the window that starts there in bit 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary(pub u64);

impl Boundary {
    #[inline(always)]
    pub const fn new(start_ns: u64, bank: u32) -> Self {
        Self((start_ns & !1) | (bank as u64 & 1))
    }

    /// Start of the window on the monotonic clock, in nanoseconds.
    #[inline(always)]
    pub const fn start_ns(self) -> u64 {
        self.0 & !1
    }

    /// Bank of the window that starts at the boundary.
    #[inline(always)]
    pub const fn bank(self) -> u32 {
        (self.0 & 1) as u32
    }

    /// Bank that something happening at `now_ns` belongs to.
    #[inline(always)]
    pub const fn bank_at(self, now_ns: u64) -> u32 {
        if now_ns > self.start_ns() { self.bank() } else { self.bank() ^ 1 }
    }
}

/// A slice of time cut at a boundary: nanoseconds before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitNs {
    pub before: u64,
    pub after: u64,
}

/// Cuts the slice `[last_ns, now_ns]` at the boundary. `before + after` is
/// always the length of the slice; a clock that appears to step back counts
/// as a slice of length zero.
#[inline(always)]
pub const fn split_slice(last_ns: u64, now_ns: u64, boundary: Boundary) -> SplitNs {
    let start = boundary.start_ns();
    if now_ns <= last_ns {
        SplitNs { before: 0, after: 0 }
    } else if now_ns <= start {
        SplitNs { before: now_ns - last_ns, after: 0 }
    } else if last_ns >= start {
        SplitNs { before: 0, after: now_ns - last_ns }
    } else {
        SplitNs { before: start - last_ns, after: now_ns - start }
    }
}

/// What one CPU spent outside of thread slots, per bank. The counters only
/// ever grow: user space takes differences and the kernel stays their one
/// writer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankTimes {
    /// Time of the idle task.
    pub idle_ns: u64,
    /// Time of tasks that found no slot because the thread map was full.
    pub unslotted_ns: u64,
    /// Time credited to thread slots: with the two above, all that elapsed.
    pub busy_ns: u64,
    /// Context switches.
    pub switches: u64,
}

/// All that one CPU keeps, in one map value, because every program run touches it, and between two
/// samples a busy CPU has evicted it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuState {
    /// Time of the last accounting on this CPU; 0 before the first.
    pub last_ns: u64,
    /// 1 while the accounting routine runs, against nested samples (NMI).
    pub accounting: u32,
    /// [`super::Place`] of this CPU, told with every boundary.
    pub place: u32,
    /// Index = bank.
    pub times: [BankTimes; 2],
    /// The CPU that is the core's other hyper-thread, plus 1; 0 if there is
    /// none. Told with every boundary.
    pub sibling: u32,
    /// The thread that the last reported switch went to, plus 1; 0 before the first.
    pub running: u32,
    /// [`super::BusyWord`] of this CPU, as its sibling sees it.
    pub busy: u64,
    /// Busy time of the sibling at the last accounting on this CPU.
    pub sibling_busy_ns: u64,
    /// The cycle counter at the last accounting, 0 if it could not be read.
    pub cycles: u64,
}

impl CpuState {
    /// Whether the kernel did not report a switch: the thread that runs is not the one that the last reported switch went
    /// to.
    #[inline(always)]
    pub const fn has_hidden_switch(&self, tid: u32) -> bool {
        self.running != 0 && self.running != tid.wrapping_add(1)
    }

    /// Notes which thread runs on this CPU from now on.
    #[inline(always)]
    pub const fn runs(&mut self, tid: u32) {
        self.running = tid.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_split_exactly_at_the_boundary() {
        let boundary = Boundary::new(1000, 1);
        for (last, now, before, after) in [
            (100, 400, 300, 0),
            (100, 1000, 900, 0),
            (100, 1001, 900, 1),
            (1000, 1500, 0, 500),
            (1200, 1500, 0, 300),
            (500, 500, 0, 0),
            (700, 500, 0, 0),
        ] {
            assert_eq!(split_slice(last, now, boundary), SplitNs { before, after }, "[{last}, {now}]");
        }
    }

    #[test]
    fn a_split_never_gains_or_loses_time() {
        let mut x = 1_u64;
        for _ in 0..100_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let last = x >> 40;
            let now = last + ((x >> 20) & 0xffff);
            let split = split_slice(last, now, Boundary::new((x & 0xff_ffff) + last / 2, 0));
            assert_eq!(split.before + split.after, now - last);
        }
    }

    #[test]
    fn a_switch_is_hidden_when_another_thread_runs_than_the_last_switch_went_to() {
        let mut cpu = CpuState::default();
        assert!(!cpu.has_hidden_switch(7), "nothing was reported yet");
        for tid in [0, 7, u32::MAX - 1] {
            cpu.runs(tid);
            assert!(!cpu.has_hidden_switch(tid));
            assert!(cpu.has_hidden_switch(tid ^ 1));
        }
    }

    #[test]
    fn the_bank_follows_the_time() {
        let boundary = Boundary::new(1001, 0);
        assert_eq!(boundary.start_ns(), 1000);
        assert_eq!(boundary.bank_at(999), 1);
        assert_eq!(boundary.bank_at(1000), 1, "what ends at the boundary is before it");
        assert_eq!(boundary.bank_at(1001), 0);
    }
}
