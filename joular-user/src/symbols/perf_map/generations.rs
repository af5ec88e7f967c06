//! Keeps the newest snapshots of one process's generated code.

use joular_data::model::units::{Address, MonotonicNs};

use super::snapshot::PerfMap;

/// What an address in generated code is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    Name(&'a str),
    /// Its name changed within the window: it could be either.
    Stale,
    Unknown,
}

/// The newest snapshot and the one before it.
///
/// A sample at address A, taken in a window that began before the newest
/// snapshot was finished, may be older than the code that the snapshot shows at
/// A. If both snapshots name A, and differ, the sample could be either's:
/// [`Answer::Stale`]. If only one names A, it is that one: code that was
/// compiled since the older snapshot, or thrown away since. In a window that
/// began after the newest snapshot only that one counts; what changes later is
/// seen when the next snapshot comes.
#[derive(Debug, Default)]
pub struct Generations {
    current: Option<PerfMap>,
    /// When `current` was complete.
    taken: MonotonicNs,
    previous: Option<PerfMap>,
}

impl Generations {
    pub fn replace(&mut self, map: PerfMap, taken: MonotonicNs) {
        self.previous = self.current.replace(map);
        self.taken = taken;
    }

    pub fn answer(&self, address: Address, window_start: MonotonicNs) -> Answer<'_> {
        let new = self.current.as_ref().and_then(|map| map.lookup(address));
        let old = self.previous.as_ref().and_then(|map| map.lookup(address));
        match (old.filter(|_| window_start < self.taken), new) {
            (Some(old), Some(new)) if old != new => Answer::Stale,
            (_, Some(name)) | (Some(name), None) => Answer::Name(name),
            (None, None) => Answer::Unknown,
        }
    }

    /// Frees what no window from this start on can need.
    pub fn forget_before(&mut self, window_start: MonotonicNs) {
        if window_start >= self.taken {
            self.previous = None;
        }
    }

    pub const fn is_some(&self) -> bool {
        self.current.is_some()
    }

    /// What the snapshots occupy.
    pub fn bytes(&self) -> usize {
        self.current.iter().chain(&self.previous).map(PerfMap::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations() -> Generations {
        let mut generations = Generations::default();
        generations.replace(PerfMap::parse(b"1000 10 same\n2000 10 old\n3000 10 freed\n"), MonotonicNs(100));
        generations.replace(PerfMap::parse(b"1000 10 same\n2000 10 new\n4000 10 fresh\n"), MonotonicNs(200));
        generations
    }

    fn check(address: u64, window_start: u64, expected: Answer) {
        assert_eq!(
            generations().answer(Address(address), MonotonicNs(window_start)),
            expected,
            "{address:#x} {window_start}"
        );
    }

    #[test]
    fn a_name_that_changed_within_the_window_is_stale() {
        use Answer::{Name, Stale, Unknown};
        // The window began before the newest snapshot.
        check(0x1008, 150, Name("same"));
        check(0x2008, 150, Stale);
        check(0x3008, 150, Name("freed"));
        check(0x4008, 150, Name("fresh"));
        check(0x5008, 150, Unknown);
        // It began after it.
        check(0x1008, 200, Name("same"));
        check(0x2008, 200, Name("new"));
        check(0x3008, 200, Unknown);
        check(0x4008, 200, Name("fresh"));
    }

    #[test]
    fn the_first_snapshot_makes_nothing_stale() {
        let mut generations = Generations::default();
        assert_eq!(generations.answer(Address(0x1000), MonotonicNs(0)), Answer::Unknown);
        generations.replace(PerfMap::parse(b"1000 10 a\n"), MonotonicNs(100));
        assert_eq!(generations.answer(Address(0x1000), MonotonicNs(0)), Answer::Name("a"));
    }

    #[test]
    fn the_older_snapshot_is_freed_when_no_window_needs_it() {
        let mut generations = generations();
        let both = generations.bytes();
        generations.forget_before(MonotonicNs(199));
        assert_eq!(generations.bytes(), both);
        generations.forget_before(MonotonicNs(200));
        assert!(generations.bytes() < both);
    }
}
