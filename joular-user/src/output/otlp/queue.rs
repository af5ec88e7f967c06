//! Holds what is to be pushed between the thread of windows and the one that sends.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use joular_data::report::profile::Profile;

use super::super::metrics::Moment;

/// Profiles that wait while a collector is away.
const MAX_PROFILES: usize = 8;

/// What became of pushes since the start.
#[derive(Debug, Default)]
pub struct Pushes {
    pub requests: AtomicU64,
    pub failures: AtomicU64,
    pub lost_profiles: AtomicU64,
}

/// What an interval brought.
pub(super) struct Work {
    pub(super) metrics: Option<Moment>,
    pub(super) profile: Option<Profile>,
}

#[derive(Default)]
struct State {
    /// The latest: it has all that earlier ones have.
    metrics: Option<Moment>,
    profiles: VecDeque<Profile>,
    has_news: bool,
    /// No more comes, and nothing is sent after this.
    end: Option<Instant>,
    is_sender_gone: bool,
}

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) pushes: std::sync::Arc<Pushes>,
}

impl Queue {
    pub(super) fn new(pushes: std::sync::Arc<Pushes>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), pushes }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, work: Work) {
        let mut state = self.state();
        state.metrics = work.metrics.or_else(|| state.metrics.take());
        state.profiles.extend(work.profile);
        self.bound(&mut state);
        state.has_news = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Gives a profile back that could not be sent yet: it is the oldest one.
    pub(super) fn give_back(&self, profile: Profile) {
        let mut state = self.state();
        state.profiles.push_front(profile);
        self.bound(&mut state);
    }

    fn bound(&self, state: &mut State) {
        while state.profiles.len() > MAX_PROFILES {
            state.profiles.pop_front();
            self.pushes.lost_profiles.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for news or the end, and takes the metrics that there are. Returns whether it goes on after that.
    pub(super) fn wait(&self) -> (Option<Moment>, bool) {
        let waits = |state: &mut State| !state.has_news && state.end.is_none();
        let mut state = self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        state.has_news = false;
        (state.metrics.take(), state.end.is_none())
    }

    /// The oldest profile; `None` once the end has passed.
    pub(super) fn next_profile(&self) -> Option<Profile> {
        let mut state = self.state();
        let is_late = state.end.is_some_and(|end| Instant::now() >= end);
        if is_late { None } else { state.profiles.pop_front() }
    }

    /// Lets the thread send what there is until then, and end. Returns whether it has ended.
    pub(super) fn end(&self, by: Instant) -> bool {
        let mut state = self.state();
        state.end = Some(by);
        self.changed.notify_all();
        let left = by.saturating_duration_since(Instant::now());
        let waits = |state: &mut State| !state.is_sender_gone;
        let (state, _) = self.changed.wait_timeout_while(state, left, waits).unwrap_or_else(PoisonError::into_inner);
        state.is_sender_gone
    }

    pub(super) fn sender_gone(&self) {
        self.state().is_sender_gone = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use super::*;

    fn profile(windows: u64) -> Profile {
        let mut profile = Profile::default();
        profile.overview.windows = windows;
        profile
    }

    fn windows(queue: &Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.next_profile()).map(|profile| profile.overview.windows).collect()
    }

    #[test]
    fn the_oldest_profiles_go_and_are_counted() {
        let queue = Queue::new(Arc::default());
        (0..10).for_each(|index| queue.put(Work { metrics: None, profile: Some(profile(index)) }));
        assert_eq!(queue.pushes.lost_profiles.load(Ordering::Relaxed), 2);
        let oldest = queue.next_profile().unwrap();
        queue.put(Work { metrics: None, profile: Some(profile(10)) });
        queue.give_back(oldest);
        assert_eq!(queue.pushes.lost_profiles.load(Ordering::Relaxed), 3, "what is given back is older than all");
        assert_eq!(windows(&queue), [3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn the_end_waits_for_the_thread_as_long_as_was_said() {
        let queue = Arc::new(Queue::new(Arc::default()));
        queue.put(Work { metrics: None, profile: Some(profile(1)) });
        assert!(!queue.end(Instant::now()), "nobody is there");
        assert_eq!(windows(&queue), [0; 0], "after the end nothing is sent");
        let other = Arc::clone(&queue);
        let thread = thread::spawn(move || {
            assert!(!other.wait().1);
            other.sender_gone();
        });
        assert!(queue.end(Instant::now() + Duration::from_secs(60)));
        thread.join().unwrap();
    }
}
