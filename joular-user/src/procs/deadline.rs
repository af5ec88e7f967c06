//! Keeps targets from holding up the profiler.
//!
//! A target chooses what its memory and its files are made of. A page may be of a file on a network, or of
//! a file system that a program serves, and whoever reads it waits until it comes, if ever. No flag of
//! the kernel limits that wait. So a thread of its own does what may wait, and nobody waits for that
//! thread longer than the deadline. One that is late is left alone: its result counts no more, and the next
//! piece of work gets another thread. Nobody's targets get all threads ([`quota`](super::quota)).

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::quota::{MAX_THREADS, Owner, Quota};

/// Longest wait for one piece of work. Disks are slow at times, and memory may have to be read from one.
const LONGEST: Duration = Duration::from_secs(1);
/// Shortest one, whatever happened before. Work that finds what it wants in memory takes microseconds.
const SHORTEST: Duration = Duration::from_millis(20);
/// Waits that were in vain may take this share of the time on the whole, or a window would not end.
const SHARE_IN_VAIN: u32 = 20;
/// Enough for the deepest of our own work: reading the tables of ELF files.
const STACK_BYTES: usize = 512 << 10;

/// Until so many wait, it need not be known for whom.
const MANY_THREADS: usize = 32;

static POOL: Pool = Pool::new();

/// Does work on a target of this owner, and waits for it no longer than the deadline.
///
/// # Errors
/// The work, if it is late.
pub fn within_deadline<T: Send + 'static>(
    owner: Option<&Owner>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Pending<T>> {
    POOL.within_deadline(owner, work)
}

/// Begins work that is waited for later, if at all.
pub fn begin<T: Send + 'static>(owner: Option<&Owner>, work: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
    POOL.begin(owner, work)
}

/// Whether work for this owner would begin.
pub fn has_room(owner: Option<&Owner>) -> bool {
    POOL.has_room(owner)
}

/// Whether so many threads wait that it must be known for whom.
pub fn are_many() -> bool {
    POOL.under_way.load(Ordering::Relaxed) >= MANY_THREADS
}

/// What the user should know: who has as many threads as anybody gets, each said once.
pub fn notices() -> Vec<String> {
    let refused = POOL.quota().take_refused();
    let said = |(owner, threads)| {
        format!(
            "{threads} reads of memory or files of processes of {owner} do not come to an end: other processes of this \
             owner have no names until they do"
        )
    };
    refused.into_iter().map(said).collect()
}

/// Work under way. Dropped, it goes on, and its result counts no more.
#[derive(Debug)]
pub struct Pending<T> {
    answer: Receiver<T>,
    begun: Instant,
    pool: &'static Pool,
    /// None once it has answered, or if it could not begin.
    worker: Option<Worker>,
}

/// How far some work is.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<T> {
    UnderWay,
    Done(T),
    /// It panicked, or could not begin.
    Failed,
}

impl<T> Pending<T> {
    /// Nothing comes of this.
    pub fn failed() -> Self {
        let (_, answer) = channel();
        Self { answer, begun: Instant::now(), pool: &POOL, worker: None }
    }

    /// What has come of it so far.
    pub fn take(&mut self) -> Progress<T> {
        self.wait(Duration::ZERO)
    }

    /// What comes of it within a time.
    pub fn wait(&mut self, timeout: Duration) -> Progress<T> {
        match self.answer.recv_timeout(timeout) {
            Ok(answer) => {
                self.pool.idle().extend(self.worker.take());
                Progress::Done(answer)
            }
            Err(RecvTimeoutError::Timeout) => Progress::UnderWay,
            Err(RecvTimeoutError::Disconnected) => Progress::Failed,
        }
    }

    /// Since it began.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that ends once nobody can give it work.
#[derive(Debug)]
struct Worker {
    jobs: Sender<Job>,
}

/// The threads of this process that do such work.
#[derive(Debug)]
struct Pool {
    idle: Mutex<Vec<Worker>>,
    /// That have not ended.
    threads: AtomicUsize,
    /// Work that has begun and has not ended.
    under_way: AtomicUsize,
    /// Of those, for whom it is.
    quota: Mutex<Quota>,
    patience: Mutex<Patience>,
}

impl Pool {
    const fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            threads: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            quota: Mutex::new(Quota::EMPTY),
            patience: Mutex::new(Patience { spent: Duration::ZERO, since: None }),
        }
    }

    fn within_deadline<T: Send + 'static>(
        &'static self,
        owner: Option<&Owner>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Pending<T>> {
        let mut pending = self.begin(owner, work);
        let deadline = self.patience().deadline(pending.begun);
        match pending.wait(deadline) {
            Progress::Done(answer) => return Ok(answer),
            Progress::UnderWay => self.patience().was_in_vain(pending.age()),
            Progress::Failed => {}
        }
        Err(pending)
    }

    fn begin<T: Send + 'static>(
        &'static self,
        owner: Option<&Owner>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Pending<T> {
        let (sender, answer) = channel();
        // A job that does not begin is dropped, and its sender with it.
        let worker = Charge::take(self, owner).and_then(|charge| {
            let job = Box::new(move || {
                let done = work();
                drop(charge);
                // Nobody listens any more if it was late.
                let _ = sender.send(done);
            });
            self.worker().filter(|worker| worker.jobs.send(job).is_ok())
        });
        Pending { answer, begun: Instant::now(), pool: self, worker }
    }

    fn has_room(&self, owner: Option<&Owner>) -> bool {
        self.under_way.load(Ordering::Relaxed) < MAX_THREADS && owner.is_none_or(|owner| self.quota().has_room(owner))
    }

    fn quota(&self) -> MutexGuard<'_, Quota> {
        self.quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker(&'static self) -> Option<Worker> {
        if let Some(idle) = self.idle().pop() {
            return Some(idle);
        }
        if self.threads.load(Ordering::Relaxed) >= MAX_THREADS {
            return None;
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(&self.threads);
        let (jobs, received) = channel::<Job>();
        let work = move || {
            let _counted = counted;
            received.into_iter().for_each(|job| job());
        };
        let started = thread::Builder::new().name("target-reader".into()).stack_size(STACK_BYTES).spawn(work);
        started.ok().map(|_| Worker { jobs })
    }
}

/// Work that counts, until it ends in whatever way.
#[derive(Debug)]
struct Charge {
    pool: &'static Pool,
    owner: Option<Owner>,
}

impl Charge {
    /// `None` if the owner has as many threads as anybody gets.
    fn take(pool: &'static Pool, owner: Option<&Owner>) -> Option<Self> {
        let has_room = owner.is_none_or(|owner| pool.quota().take(owner));
        has_room.then(|| {
            pool.under_way.fetch_add(1, Ordering::Relaxed);
            Self { pool, owner: owner.cloned() }
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pool.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Some(owner) = &self.owner {
            self.pool.quota().give_back(owner);
        }
    }
}

/// A thread that counts, until it ends in whatever way.
#[derive(Debug)]
struct Counted(&'static AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How much longer anything is waited for. What was waited for in vain is taken off, and comes back with
/// time, so that many targets that do not answer cost no more than one.
#[derive(Debug)]
struct Patience {
    /// In vain, and not forgotten yet.
    spent: Duration,
    since: Option<Instant>,
}

impl Patience {
    fn deadline(&mut self, now: Instant) -> Duration {
        let passed = self.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.spent = self.spent.saturating_sub(passed / SHARE_IN_VAIN);
        LONGEST.saturating_sub(self.spent).max(SHORTEST)
    }

    fn was_in_vain(&mut self, waited: Duration) {
        self.spent = self.spent.saturating_add(waited).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{super::quota::MOST_OF_ONE, *};

    const LIMIT: Duration = Duration::from_secs(30);

    /// Other tests wait for work too: what is late here must not make them impatient.
    fn pool() -> &'static Pool {
        Box::leak(Box::new(Pool::new()))
    }

    #[test]
    fn work_in_time_gives_its_result() {
        let pool = pool();
        assert_eq!(pool.within_deadline(None, || 7).ok(), Some(7));
        let mut pending = pool.begin(None, || "text".to_owned());
        assert_eq!(pending.wait(LIMIT), Progress::Done("text".to_owned()));
        assert_eq!((pool.threads.load(Ordering::Relaxed), pool.idle().len()), (1, 1), "one thread did both");
    }

    #[test]
    fn nobody_waits_for_late_work() {
        let pool = pool();
        let (release, held) = mpsc::channel::<()>();
        let mut late = pool.within_deadline(None, move || held.recv().is_err()).unwrap_err();
        assert!(late.age() >= LONGEST);
        // Others are not held up by it; the pool would be impatient now, which is another test's matter.
        assert_eq!(pool.begin(None, || 1).wait(LIMIT), Progress::Done(1));
        assert_eq!(late.take(), Progress::UnderWay);
        drop(release);
        assert_eq!(late.wait(LIMIT), Progress::Done(true));
        assert_eq!(pool.idle().len(), 2);
    }

    #[test]
    fn work_that_panics_has_no_result() {
        let pool = pool();
        assert_eq!(
            pool.within_deadline(None, || -> u8 { panic!("as intended") }).unwrap_err().wait(LIMIT),
            Progress::Failed
        );
        assert_eq!(pool.within_deadline(None, || 2).ok(), Some(2));
    }

    #[test]
    fn work_beyond_the_number_of_threads_does_not_begin() {
        let pool = pool();
        let (release, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(Mutex::new(held));
        let stuck: Vec<_> = (0..MAX_THREADS)
            .map(|_| {
                let held = std::sync::Arc::clone(&held);
                pool.begin(None, move || drop(held.lock().map(|held| held.recv())))
            })
            .collect();
        assert_eq!(pool.begin(None, || 3).take(), Progress::Failed);
        drop(release);
        for mut pending in stuck {
            assert_eq!(pending.wait(LIMIT), Progress::Done(()));
        }
        assert_eq!(pool.begin(None, || 3).wait(LIMIT), Progress::Done(3));
    }

    /// One user has a hundred processes whose memory never comes.
    #[test]
    fn targets_of_one_owner_that_hang_leave_threads_for_those_of_others() {
        let pool = pool();
        let (hostile, other) = (Owner::new(1000, None), Owner::new(1001, None));
        let (release, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(Mutex::new(held));
        let hang = |owner: &Owner| {
            let held = std::sync::Arc::clone(&held);
            pool.begin(Some(owner), move || drop(held.lock().map(|held| held.recv())))
        };
        let mut stuck: Vec<_> = (0..100).map(|_| hang(&hostile)).collect();
        let under_way = stuck.iter_mut().map(Pending::take).filter(|progress| *progress == Progress::UnderWay).count();
        assert_eq!((under_way, pool.under_way.load(Ordering::Relaxed)), (MOST_OF_ONE, MOST_OF_ONE));
        assert!(!pool.has_room(Some(&hostile)) && pool.has_room(Some(&other)) && pool.has_room(None));
        assert_eq!(pool.begin(Some(&other), || 5).wait(LIMIT), Progress::Done(5));
        assert_eq!(pool.begin(Some(&hostile), || 5).take(), Progress::Failed);
        assert_eq!(pool.quota().take_refused(), [(hostile.clone(), MOST_OF_ONE)], "it is named, once");
        // What others hold counts for them.
        stuck.push(hang(&other));
        drop(release);
        for pending in &mut stuck {
            pending.wait(LIMIT);
        }
        assert_eq!(pool.under_way.load(Ordering::Relaxed), 0);
        assert_eq!(pool.begin(Some(&hostile), || 6).wait(LIMIT), Progress::Done(6));
    }

    #[test]
    fn waits_in_vain_make_the_next_ones_shorter_for_a_while() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut patience = Patience { spent: Duration::ZERO, since: None };
        assert_eq!(patience.deadline(start), LONGEST);
        patience.was_in_vain(ms(1000));
        for (after_ms, expected_ms) in [(0, 20), (200, 20), (2000, 100), (12_000, 600), (60_000, 1000)] {
            assert_eq!(patience.deadline(start + ms(after_ms)), ms(expected_ms), "after {after_ms} ms");
        }
        // However many there are, they take that share of the time.
        let (mut now, mut in_vain) = (start + ms(60_000), Duration::ZERO);
        while now < start + ms(160_000) {
            let waited = patience.deadline(now);
            patience.was_in_vain(waited);
            in_vain += waited;
            now += waited + ms(480);
        }
        assert!(in_vain < ms(100_000) / SHARE_IN_VAIN + LONGEST, "{in_vain:?}");
    }
}
