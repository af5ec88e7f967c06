//! Ships runs on threads of its own while a recording goes on: at the lowest priority, but for the last pass, which has little
//! time.
//!
//! What fails is tried again, after a pause that grows. The recording never waits for it.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use joular_data::{
    model::units::UnixMicros,
    shipping::{Passed, ShipError, Shipper},
    text::count,
};

use super::backoff::{Backoff, scattered};
use crate::{clock, failing::Failing, messages, privileges};

/// Time between two looks for runs that have ended. Each host looks at moments of its own.
const LOOK: Duration = Duration::from_secs(60);

/// What has been shipped so far, and what waits.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Shipments>>);

/// Sums since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shipments {
    pub runs: u64,
    pub files: u64,
    pub bytes: u64,
    /// Runs that have ended and wait.
    pub waiting_runs: u64,
    /// Runs that were removed before they arrived.
    pub missed_runs: u64,
    /// Of the runs that wait, those that cannot be read.
    pub unreadable_runs: u64,
    /// When the oldest run that waits began.
    pub oldest_waiting: Option<UnixMicros>,
    /// When a pass last ended while shipping did not fail.
    pub last_success: Option<UnixMicros>,
    pub failures: u64,
    /// Whether the last try failed. A pass that has nothing to ship is not a try.
    pub is_failing: bool,
}

impl Progress {
    /// A copy of the sums.
    pub fn now(&self) -> Shipments {
        locked(&self.0).clone()
    }

    fn add(&self, passed: &Passed, failed: bool) {
        let mut sums = locked(&self.0);
        sums.runs += passed.runs;
        sums.files += passed.files;
        sums.bytes += passed.bytes;
        sums.waiting_runs = passed.waiting_runs;
        sums.missed_runs += passed.missed_runs;
        sums.unreadable_runs = passed.unreadable_runs;
        sums.oldest_waiting = passed.oldest_waiting;
        sums.failures += u64::from(failed);
        sums.is_failing = failed || sums.is_failing && !passed.has_reached;
        if !sums.is_failing {
            sums.last_success = Some(clock::unix_micros_at(clock::monotonic_now()));
        }
    }
}

impl fmt::Display for Shipments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            0 => write!(f, "nothing was shipped yet")?,
            runs => write!(f, "{} shipped", count(runs, "run"))?,
        }
        if self.waiting_runs > 0 {
            write!(f, ", {} wait", self.waiting_runs)?;
        }
        if self.is_failing { write!(f, ", shipping fails") } else { Ok(()) }
    }
}

/// What the thread is asked to do.
#[derive(Clone, Copy, Debug, Default)]
enum Asked {
    #[default]
    GoOn,
    /// To ship what there is until then, and end.
    EndBy(Instant),
    Ended,
}

#[derive(Debug, Default)]
struct Shared {
    asked: Mutex<Asked>,
    changed: Condvar,
}

/// Ships until it is ended.
#[derive(Debug)]
pub struct Shipping {
    shared: Arc<Shared>,
    progress: Progress,
}

impl Shipping {
    /// Starts the thread, which notes its progress. `to` is the name of the other store, for messages.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(mut shipper: Shipper, to: String, progress: Progress) -> std::io::Result<Self> {
        let shipping = Self { shared: Arc::default(), progress };
        let (shared, progress) = (Arc::clone(&shipping.shared), shipping.progress.clone());
        thread::Builder::new().name("joular-ship".to_owned()).spawn(move || {
            privileges::ordinary_priority();
            ship(&mut shipper, &shared, &progress, &to);
            *locked(&shared.asked) = Asked::Ended;
            shared.changed.notify_all();
        })?;
        Ok(shipping)
    }

    /// Ends as soon as it can, and nobody waits for it: another one goes on at once, and says what fails from now on.
    pub fn hand_over(self) {
        *locked(&self.shared.asked) = Asked::Ended;
        self.shared.changed.notify_all();
    }

    /// Ships what has ended by now, for so long at most. The rest is shipped when the recording starts again.
    pub fn end(self, limit: Duration) {
        let deadline = Instant::now() + limit;
        *locked(&self.shared.asked) = Asked::EndBy(deadline);
        self.shared.changed.notify_all();
        let asked = locked(&self.shared.asked);
        let waiting = |asked: &mut Asked| !matches!(asked, Asked::Ended);
        // A request under way may take longer; nobody waits for it.
        let asked = self.shared.changed.wait_timeout_while(asked, limit, waiting);
        let has_ended = matches!(*asked.unwrap_or_else(PoisonError::into_inner).0, Asked::Ended);
        if let Some(text) = left_over(&self.progress.now(), has_ended) {
            messages::warn(&text);
        }
    }
}

/// Says what is not shipped when shipping must end. Until a pass has ended, the sums do not know what waits.
fn left_over(sums: &Shipments, has_ended: bool) -> Option<String> {
    let under_way = if has_ended { "" } else { ", the last pass did not end in time" };
    let is_done = has_ended && sums.waiting_runs == 0 && !sums.is_failing;
    (!is_done).then(|| format!("{sums}{under_way}: what waits is shipped after the next start"))
}

impl Shared {
    /// Waits until there is something to do. Returns whether the time of the end has come.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut asked = locked(&self.asked);
        loop {
            let now = Instant::now();
            let wake = match *asked {
                Asked::GoOn => until,
                Asked::EndBy(deadline) if deadline > now => until.min(deadline),
                Asked::EndBy(_) | Asked::Ended => return true,
            };
            if now >= until {
                return false;
            }
            asked = self
                .changed
                .wait_timeout(asked, wake.saturating_duration_since(now))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The same, and also until it is asked to end.
    fn wait_unless_ending(&self, time: Duration) {
        let goes_on = |asked: &mut Asked| matches!(asked, Asked::GoOn);
        drop(self.changed.wait_timeout_while(locked(&self.asked), time, goes_on));
    }

    /// Whether another one goes on.
    fn has_ended(&self) -> bool {
        matches!(*locked(&self.asked), Asked::Ended)
    }

    fn is_ending(&self) -> bool {
        !matches!(*locked(&self.asked), Asked::GoOn)
    }
}

/// Ships pass by pass. The last one begins once all runs have ended; the one before is broken off for it.
fn ship(shipper: &mut Shipper, shared: &Shared, progress: &Progress, to: &str) {
    let (mut backoff, mut failing) = (Backoff::default(), Failing::default());
    while !shared.has_ended() {
        let is_last = shared.is_ending();
        let (passed, result) = if is_last {
            shipper.pass(&mut |wait| shared.wait(wait))
        } else {
            at_lowest_priority(&mut || shipper.pass(&mut |wait| shared.wait(wait) || shared.is_ending()))
        };
        progress.add(&passed, result.is_err());
        report(&passed, to);
        if shared.has_ended() {
            return;
        }
        let outcome = result.as_ref().copied().map_err(ShipError::cause);
        if (outcome.is_err() || passed.has_reached) && failing.is_news(outcome) {
            match &result {
                Err(error) => {
                    let waiting = count(passed.waiting_runs, "run");
                    messages::warn(&format!("shipping to {to}: {error}; it is tried again; waiting: {waiting}"));
                }
                Ok(()) => messages::info(&format!("shipping to {to} works again")),
            }
        }
        let pause = match result {
            Ok(()) => {
                backoff.succeeded();
                scattered(LOOK)
            }
            Err(_) => backoff.failed(),
        };
        if is_last {
            return;
        }
        shared.wait_unless_ending(pause);
    }
}

/// On a thread that ends with it: no thread may raise its priority again.
fn at_lowest_priority<T: Send>(work: &mut (impl FnMut() -> T + Send)) -> T {
    let done = thread::scope(|scope| {
        let lowered = || {
            privileges::lower_priority();
            work()
        };
        let thread = thread::Builder::new().name("joular-ship".to_owned()).spawn_scoped(scope, lowered);
        thread.ok().map(thread::ScopedJoinHandle::join)
    });
    match done {
        Some(done) => done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // There can be no other thread.
        None => work(),
    }
}

/// Says what a pass met beside its result, and what is lost.
fn report(passed: &Passed, to: &str) {
    for problem in &passed.problems {
        messages::warn(&format!("a run cannot be shipped: {problem}"));
    }
    if passed.missed_runs > 0 {
        let runs = count(passed.missed_runs, "run");
        messages::warn(&format!("removed before shipping to {to}: {runs}; keep more with --keep and --keep-size"));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io;

    use joular_data::output::OutputError;

    use super::*;

    #[test]
    fn a_cause_is_the_kind_of_failure_wherever_it_happens() {
        let failed = |path: &str, kind: io::ErrorKind| {
            ShipError::from(OutputError::from_io("creating", path, kind.into())).cause()
        };
        let away = OutputError::NoShare { path: "/mnt".into(), mark: "/mnt/.mark".into() };
        let full = failed("/mnt/a", io::ErrorKind::StorageFull);
        assert_eq!(full, failed("/mnt/b", io::ErrorKind::StorageFull));
        assert_ne!(full, ShipError::from(away).cause());
        assert_ne!(failed("/mnt/a", io::ErrorKind::TimedOut), failed("/mnt/a", io::ErrorKind::ConnectionReset));
    }

    #[test]
    fn a_pass_without_work_says_nothing_of_a_place_that_was_away() {
        let progress = Progress::default();
        let pass = |has_reached, failed| {
            progress.add(&Passed { has_reached, ..Passed::default() }, failed);
            let Shipments { is_failing, last_success, failures, .. } = progress.now();
            (is_failing, last_success, failures)
        };
        assert_eq!(pass(false, true), (true, None, 1));
        assert_eq!(pass(false, false), (true, None, 1), "nothing was tried");
        let (is_failing, last_success, failures) = pass(true, false);
        assert!(!is_failing && last_success.is_some() && failures == 1);
        let (is_failing, last_success, _) = pass(false, false);
        assert!(!is_failing && last_success.is_some(), "nothing fails");
    }

    #[test]
    fn what_is_left_over_is_said_even_if_nobody_knows_how_much_it_is() {
        let sums = |waiting_runs, is_failing| Shipments { runs: 3, waiting_runs, is_failing, ..Shipments::default() };
        let told = ": what waits is shipped after the next start";
        for (sums, has_ended, expected) in [
            (sums(0, false), true, None),
            (sums(0, false), false, Some("3 runs shipped, the last pass did not end in time")),
            (sums(2, false), true, Some("3 runs shipped, 2 wait")),
            (sums(2, true), true, Some("3 runs shipped, 2 wait, shipping fails")),
        ] {
            assert_eq!(left_over(&sums, has_ended), expected.map(|text| format!("{text}{told}")));
        }
    }
}
