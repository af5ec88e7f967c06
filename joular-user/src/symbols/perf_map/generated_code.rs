//! Keeps what is known of one process's generated code, and decides when to ask for more.
//!
//! A perf map is a snapshot. Between two of them code is compiled, thrown away and its memory used
//! again, so:
//!
//! - A new snapshot is wanted as soon as an address in generated code has no
//!   name, unless the newest one has failed to name it already, but never so
//!   often that asking costs the target much ([`is_due`]). Another is wanted now and then as
//!   long as generated code runs, to notice reused memory.
//! - The snapshot before is kept until the windows that reach behind the
//!   newer one are through ([`super::generations`]).

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use joular_data::model::units::{Address, MonotonicNs};

use super::{generations::Generations, snapshot::PerfMap};
use crate::procs::attach::AttachError;

/// Early in a JVM's life much is compiled.
const EARLY: Duration = Duration::from_secs(10);
const MIN_PAUSE_EARLY: Duration = Duration::from_millis(500);
const MIN_PAUSE: Duration = Duration::from_secs(2);
/// A wanted request may take 1/20 of the time early, then 1/200…
const WANTED_COST_SHARE_EARLY: u32 = 20;
const WANTED_COST_SHARE: u32 = 200;
const PERIOD: Duration = Duration::from_secs(10);
/// …one that nobody asked for 1/500.
const PERIODIC_COST_SHARE: u32 = 500;
/// Addresses remembered as being without name.
const MAX_UNNAMED: usize = 4096;
/// A JVM that does not become ready within so many tries never will.
const MAX_FAILURES: u32 = 20;

/// Why a new snapshot would be of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// An address has no name that a new snapshot may bring.
    pub wanted: bool,
    /// Generated code has run since the last one.
    pub sampled: bool,
}

/// Whether to ask now. `age` is how long the process has been observed,
/// `pause` the time since the last request was finished, if there was any,
/// `cost` how long that took.
pub fn is_due(age: Duration, pause: Option<Duration>, cost: Duration, need: Need) -> bool {
    let Some(pause) = pause else { return true };
    let (floor, share) =
        if age < EARLY { (MIN_PAUSE_EARLY, WANTED_COST_SHARE_EARLY) } else { (MIN_PAUSE, WANTED_COST_SHARE) };
    let wanted_pause = floor.max(cost.saturating_mul(share));
    let periodic_pause = PERIOD.max(cost.saturating_mul(PERIODIC_COST_SHARE));
    need.wanted && pause >= wanted_pause || (need.wanted || need.sampled) && pause >= periodic_pause
}

/// How snapshots come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The JVM is asked to write its perf map.
    Attach,
    /// The runtime writes it by itself.
    File,
    /// There is no perf map and never will be.
    None,
}

/// Generated code of one process.
#[derive(Debug)]
pub struct GeneratedCode {
    pub source: Source,
    pub generations: Generations,
    need: Need,
    /// Without name since before the last request was started.
    unnamed: HashSet<Address>,
    /// Without name since.
    new_unnamed: HashSet<Address>,
    pub in_flight: bool,
    /// Whether the file existed before we asked for any: then it is not ours to remove.
    pub file_was_there: bool,
    /// A JVM has written a map because we asked, or may yet do so.
    pub was_written_for_us: bool,
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
            need: Need::default(),
            unnamed: HashSet::new(),
            new_unnamed: HashSet::new(),
            in_flight: false,
            file_was_there,
            was_written_for_us: false,
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
            Source::File => self.need != Need::default(),
            Source::None => false,
        };
        let age = now.saturating_duration_since(self.first_seen);
        may && !self.in_flight && is_due(age, pause, self.last_cost, self.need)
    }

    /// Order of the requests that are due: first processes that have nothing yet, then those that
    /// have waited longest.
    pub const fn urgency(&self) -> (bool, Option<Instant>) {
        (self.generations.is_some(), self.last_finished)
    }

    /// Notes that code of it ran, with or without name.
    pub fn sampled(&mut self, unnamed: impl Iterator<Item = Address>) {
        self.need.sampled = true;
        for address in unnamed {
            if !self.unnamed.contains(&address) || !self.generations.is_some() {
                self.need.wanted = true;
                if self.new_unnamed.len() < MAX_UNNAMED {
                    self.new_unnamed.insert(address);
                }
            }
        }
    }

    pub fn started(&mut self) {
        self.in_flight = true;
        self.need = Need::default();
        if self.unnamed.len() >= MAX_UNNAMED {
            self.unnamed.clear();
        }
        self.unnamed.extend(self.new_unnamed.drain());
    }

    /// Takes in the result of a request, and returns whether there is a new snapshot.
    pub fn succeeded(&mut self, map: PerfMap, taken: MonotonicNs, cost: Duration, now: Instant) {
        self.ended(cost, now);
        self.failures = 0;
        self.was_written_for_us |= self.source == Source::Attach;
        // What it names may lose its name again, and be asked for anew then.
        self.unnamed.retain(|&address| map.lookup(address).is_none());
        self.generations.replace(map, taken);
    }

    /// Notes a failure; returns whether it is worth a notice.
    pub fn failed(&mut self, error: &AttachError, cost: Duration, now: Instant) -> bool {
        self.ended(cost, now);
        self.was_written_for_us |= matches!(error, AttachError::Timeout { .. });
        if error.is_passing() {
            // It may last for any time, so it is not asked as if names were near.
            self.need.sampled = true;
            return false;
        }
        self.failures += 1;
        self.need.wanted = true;
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
    use joular_data::model::units::Pid;

    use super::*;

    fn due(age_ms: u64, pause_ms: u64, cost_ms: u64, wanted: bool) -> bool {
        let ms = Duration::from_millis;
        is_due(ms(age_ms), Some(ms(pause_ms)), ms(cost_ms), Need { wanted, sampled: true })
    }

    #[test]
    fn requests_are_paced() {
        assert!(is_due(Duration::ZERO, None, Duration::ZERO, Need::default()));
        assert!(!is_due(Duration::MAX, Some(Duration::MAX), Duration::ZERO, Need::default()), "nothing runs");
        for (age, pause, cost, wanted, expected) in [
            (1_000, 499, 5, true, false),
            (1_000, 500, 5, true, true),
            (1_000, 500, 5, false, false),
            (1_000, 500, 30, true, false),
            (1_000, 600, 30, true, true),
            (20_000, 1_999, 5, true, false),
            (20_000, 2_000, 5, true, true),
            (20_000, 3_999, 20, true, false),
            (20_000, 4_000, 20, true, true),
            (20_000, 9_999, 5, false, false),
            (20_000, 10_000, 5, false, true),
            (20_000, 49_999, 100, false, false),
            (20_000, 50_000, 100, false, true),
        ] {
            assert_eq!(due(age, pause, cost, wanted), expected, "age {age} pause {pause} cost {cost} wanted {wanted}");
        }
    }

    #[test]
    fn an_address_that_stays_without_name_is_wanted_once() {
        let now = Instant::now();
        let mut code = GeneratedCode::new(Source::Attach, false, now);
        let (named, unnamed) = (Address(0x1000), Address(0x9000));
        let ask = |code: &mut GeneratedCode, addresses: &[Address]| {
            code.sampled(addresses.iter().copied());
            let wanted = code.need.wanted;
            code.started();
            code.succeeded(PerfMap::parse(b"1000 10 a\n"), MonotonicNs(1), Duration::ZERO, now);
            wanted
        };
        assert!(ask(&mut code, &[named, unnamed]));
        assert!(!ask(&mut code, &[unnamed]));
        assert!(ask(&mut code, &[named]), "it had a name, so another snapshot may help");
        assert!(ask(&mut code, &[Address(0x8000), unnamed]));
        let many: Vec<Address> = (0..3 * MAX_UNNAMED as u64).map(|at| Address(at << 16)).collect();
        ask(&mut code, &many);
        ask(&mut code, &many);
        assert!(code.unnamed.len() <= 2 * MAX_UNNAMED);
    }

    #[test]
    fn a_jvm_that_was_never_asked_comes_first() {
        let now = Instant::now();
        let code = |maps: u32, finished_after: u64| {
            let mut code = GeneratedCode::new(Source::Attach, false, now);
            let finished = now + Duration::from_secs(finished_after);
            (0..maps).for_each(|_| code.succeeded(PerfMap::default(), MonotonicNs(1), Duration::ZERO, finished));
            code
        };
        let mut all = [code(1, 9), code(1, 5), code(0, 0)];
        all.sort_by_key(GeneratedCode::urgency);
        assert_eq!(all.map(|code| code.finished), [0, 1, 1]);
        assert!(code(1, 5).urgency() < code(1, 9).urgency());
    }

    #[test]
    fn a_stopped_jvm_is_asked_again_later() {
        let now = Instant::now();
        let mut code = GeneratedCode::new(Source::Attach, false, now);
        for _ in 0..2 * MAX_FAILURES {
            assert!(!code.failed(&AttachError::Stopped { pid: Pid(1) }, Duration::ZERO, now));
        }
        assert_eq!(code.source, Source::Attach);
        assert!(!code.is_due(now + Duration::from_secs(5)));
        assert!(code.is_due(now + PERIOD));
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
