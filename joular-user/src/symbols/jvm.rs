//! What is known of one process's generated code, and when to ask for more.
//!
//! A perf map is a snapshot. Between two of them code is compiled, thrown away
//! and its memory used again, so:
//!
//! - A new snapshot is wanted as soon as an address in generated code has no
//!   name, but never so often that asking costs the target much
//!   ([`is_due`]), and now and then in any case, to notice reused memory.
//! - The snapshot before is kept until the windows that reach behind the
//!   newer one are through ([`Generations`]).

use std::time::{Duration, Instant};

use super::perf_map::PerfMap;
use crate::{
    procs::attach::AttachError,
    units::{Address, MonotonicNs},
};

/// Early in a JVM's life much is compiled.
const EARLY: Duration = Duration::from_secs(10);
const MIN_PAUSE_EARLY: Duration = Duration::from_millis(500);
const MIN_PAUSE: Duration = Duration::from_secs(2);
/// A wanted request may take 1/20 of the time…
const WANTED_COST_SHARE: u32 = 20;
const PERIOD: Duration = Duration::from_secs(10);
/// …one that nobody asked for 1/500.
const PERIODIC_COST_SHARE: u32 = 500;
/// A JVM that does not become ready within so many tries never will.
const MAX_FAILURES: u32 = 20;

/// Whether to ask now. `age` is how long the process has been observed,
/// `pause` the time since the last request was finished, if there was any,
/// `cost` how long that took, `wanted` whether an address has no name.
pub fn is_due(age: Duration, pause: Option<Duration>, cost: Duration, wanted: bool) -> bool {
    let Some(pause) = pause else { return true };
    let floor = if age < EARLY { MIN_PAUSE_EARLY } else { MIN_PAUSE };
    let wanted_pause = floor.max(cost.saturating_mul(WANTED_COST_SHARE));
    let periodic_pause = PERIOD.max(cost.saturating_mul(PERIODIC_COST_SHARE));
    wanted && pause >= wanted_pause || pause >= periodic_pause
}

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

/// How snapshots come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The JVM is asked to write its perf map.
    Attach,
    /// The runtime writes it by itself.
    File,
    /// There is none and never will be.
    None,
}

/// Generated code of one process.
#[derive(Debug)]
pub struct GeneratedCode {
    pub source: Source,
    pub generations: Generations,
    /// An address had no name.
    pub wanted: bool,
    pub in_flight: bool,
    /// The file stood there before we asked for any: it is not ours to remove.
    pub file_was_there: bool,
    /// Requests that were finished, whichever way.
    pub finished: u64,
    first_seen: Instant,
    last_finished: Option<Instant>,
    last_cost: Duration,
    failures: u32,
}

impl GeneratedCode {
    pub fn new(source: Source, file_was_there: bool, now: Instant) -> Self {
        Self {
            source,
            generations: Generations::default(),
            wanted: false,
            in_flight: false,
            file_was_there,
            finished: 0,
            first_seen: now,
            last_finished: None,
            last_cost: Duration::ZERO,
            failures: 0,
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        let pause = self.last_finished.map(|at| now.saturating_duration_since(at));
        // A file nobody writes for us is looked at when an address asks for it.
        let may = match self.source {
            Source::Attach => true,
            Source::File => self.wanted,
            Source::None => false,
        };
        may && !self.in_flight
            && is_due(now.saturating_duration_since(self.first_seen), pause, self.last_cost, self.wanted)
    }

    pub const fn started(&mut self) {
        self.in_flight = true;
        self.wanted = false;
    }

    /// Takes in what a request brought; says whether there is a new snapshot.
    pub fn succeeded(&mut self, map: PerfMap, taken: MonotonicNs, cost: Duration, now: Instant) {
        self.ended(cost, now);
        self.failures = 0;
        self.generations.replace(map, taken);
    }

    /// Notes a failure; returns whether it is worth a notice.
    pub fn failed(&mut self, error: &AttachError, cost: Duration, now: Instant) -> bool {
        self.ended(cost, now);
        self.failures += 1;
        self.wanted = true;
        if !error.is_final() && self.failures < MAX_FAILURES {
            return false;
        }
        let is_obstacle = matches!(error, AttachError::UntrustedMap { .. });
        self.source = if self.file_was_there && !is_obstacle { Source::File } else { Source::None };
        !matches!(error, AttachError::Exited { .. })
    }

    /// A request without result: no file, or not one to read.
    pub const fn ended(&mut self, cost: Duration, now: Instant) {
        self.in_flight = false;
        self.last_finished = Some(now);
        self.last_cost = cost;
        self.finished += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    fn due(age_ms: u64, pause_ms: u64, cost_ms: u64, wanted: bool) -> bool {
        let ms = Duration::from_millis;
        is_due(ms(age_ms), Some(ms(pause_ms)), ms(cost_ms), wanted)
    }

    #[test]
    fn requests_are_paced() {
        assert!(is_due(Duration::ZERO, None, Duration::ZERO, false));
        for (age, pause, cost, wanted, expected) in [
            (1_000, 499, 5, true, false),
            (1_000, 500, 5, true, true),
            (1_000, 500, 5, false, false),
            (1_000, 500, 30, true, false),
            (1_000, 600, 30, true, true),
            (20_000, 1_999, 5, true, false),
            (20_000, 2_000, 5, true, true),
            (20_000, 3_999, 200, true, false),
            (20_000, 4_000, 200, true, true),
            (20_000, 9_999, 5, false, false),
            (20_000, 10_000, 5, false, true),
            (20_000, 49_999, 100, false, false),
            (20_000, 50_000, 100, false, true),
        ] {
            assert_eq!(due(age, pause, cost, wanted), expected, "age {age} pause {pause} cost {cost} wanted {wanted}");
        }
    }

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

    #[test]
    fn failures_end_the_asking_sooner_or_later() {
        let now = Instant::now();
        let pid = Pid(1);
        let mut code = GeneratedCode::new(Source::Attach, false, now);
        assert!(code.is_due(now));
        code.started();
        assert!(!code.is_due(now));
        assert!(!code.failed(&AttachError::SignalNotCaught { pid }, Duration::ZERO, now));
        assert!(!code.is_due(now));
        assert!(code.is_due(now + Duration::from_millis(500)));
        assert!(code.failed(&AttachError::Disabled { pid }, Duration::ZERO, now));
        assert_eq!(code.source, Source::None);
        assert!(!code.is_due(now + Duration::from_secs(99)));

        let mut starting = GeneratedCode::new(Source::Attach, true, now);
        let notices = (0..MAX_FAILURES)
            .filter(|_| starting.failed(&AttachError::SignalNotCaught { pid }, Duration::ZERO, now))
            .count();
        assert_eq!((notices, starting.source), (1, Source::File));

        let mut gone = GeneratedCode::new(Source::Attach, false, now);
        assert!(!gone.failed(&AttachError::Exited { pid }, Duration::ZERO, now));
        assert_eq!(gone.source, Source::None);
    }
}
