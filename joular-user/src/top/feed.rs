//! Hands what a run brings from the recorder to the thread that draws. The recorder of a live run never waits for it: if the
//! terminal is slow, the oldest windows that were not taken are left out, and counted. A replay waits.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use joular_data::events::RunInfo;

use super::figures::Figures;

/// Windows that wait to be taken at most.
pub const MAX_WAITING: usize = 64;

/// What the drawing thread learns.
pub enum News {
    Run(Box<RunInfo>),
    Window(Box<Figures>),
    /// The run has ended; what the view has stays.
    Ended,
}

/// What waits, in order.
#[derive(Default)]
struct Waiting {
    news: VecDeque<News>,
    left_out: u64,
    is_closed: bool,
}

pub struct Feed {
    waiting: Mutex<Waiting>,
    taken: Condvar,
    /// Whether [`Feed::put`] waits until there is room.
    is_patient: bool,
}

impl Feed {
    pub fn new(is_patient: bool) -> Self {
        Self { waiting: Mutex::default(), taken: Condvar::new(), is_patient }
    }

    pub fn put(&self, news: News) {
        let mut waiting = self.lock();
        if self.is_patient {
            let is_full = |waiting: &mut Waiting| waiting.news.len() >= MAX_WAITING && !waiting.is_closed;
            waiting = self.taken.wait_while(waiting, is_full).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.is_closed {
            return;
        }
        let oldest = waiting.news.iter().position(|news| matches!(news, News::Window(_)));
        if waiting.news.len() >= MAX_WAITING
            && let Some(oldest) = oldest
        {
            waiting.news.remove(oldest);
            waiting.left_out += 1;
        }
        waiting.news.push_back(news);
    }

    /// All that waits, and how many windows were left out since this was last asked.
    pub fn take(&self) -> (VecDeque<News>, u64) {
        let mut waiting = self.lock();
        let taken = (std::mem::take(&mut waiting.news), std::mem::take(&mut waiting.left_out));
        drop(waiting);
        self.taken.notify_all();
        taken
    }

    /// Nobody takes anything any more.
    pub fn close(&self) {
        let mut waiting = self.lock();
        (waiting.is_closed, waiting.news) = (true, VecDeque::new());
        drop(waiting);
        self.taken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    /// Windows are told apart by their lengths.
    fn window(length_ns: u64) -> News {
        News::Window(Box::new(Figures { length_ns, ..Figures::default() }))
    }

    fn lengths(news: &VecDeque<News>) -> Vec<u64> {
        let length = |news: &News| if let News::Window(figures) = news { Some(figures.length_ns) } else { None };
        news.iter().filter_map(length).collect()
    }

    #[test]
    fn a_slow_terminal_loses_the_oldest_windows_and_nothing_else() {
        let feed = Feed::new(false);
        feed.put(News::Run(Box::new(joular_data::fixture::run())));
        (0..70).for_each(|length| feed.put(window(length)));
        feed.put(News::Ended);
        let (news, left_out) = feed.take();
        assert_eq!((lengths(&news), left_out), ((8..70).collect(), 8));
        assert!(matches!((news.front(), news.back()), (Some(News::Run(_)), Some(News::Ended))));
        assert_eq!(feed.take().1, 0);
    }

    #[test]
    fn a_replay_waits_until_windows_are_taken_or_the_view_is_closed() {
        let feed = Arc::new(Feed::new(true));
        let filled = Arc::clone(&feed);
        let replay = thread::spawn(move || (0..200).for_each(|length| filled.put(window(length))));
        let mut taken = Vec::new();
        while taken.len() < 100 {
            taken.extend(lengths(&feed.take().0));
        }
        assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
        feed.close();
        replay.join().unwrap();
        assert!(feed.take().0.is_empty());
    }
}
