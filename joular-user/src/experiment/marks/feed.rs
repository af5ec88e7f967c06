//! Queues marks between the threads that hear them and the recording. Each way in which they come has room of its own, so
//! that what comes by one of them without end keeps none of the others out.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use joular_data::{
    events::{Mark, MarkFrom},
    model::target_text::TargetText,
};
use tokio::sync::mpsc;

/// Marks that wait and came the same way.
const ROOM: usize = 1024;
/// Of a line that was not understood.
const MAX_SHOWN_BYTES: usize = 80;

/// Where marks are put in.
#[derive(Clone, Debug)]
pub struct Feed {
    queue: mpsc::Sender<Mark>,
    faults: Arc<Faults>,
}

/// Where they come out.
#[derive(Debug)]
pub struct Arriving {
    queue: mpsc::Receiver<Mark>,
    faults: Arc<Faults>,
    dropped_before: u64,
}

/// What did not become a mark.
#[derive(Debug, Default)]
pub struct Faults {
    unknown: AtomicU64,
    /// The first line that was not understood.
    first: Mutex<Option<TargetText>>,
    dropped: AtomicU64,
    /// Marks that wait, by the way they came.
    waiting: [AtomicUsize; MarkFrom::ALL.len()],
}

/// A new queue.
pub fn queue() -> (Feed, Arriving) {
    let (sender, receiver) = mpsc::channel(ROOM * MarkFrom::ALL.len());
    let faults = Arc::new(Faults::default());
    let feed = Feed { queue: sender, faults: Arc::clone(&faults) };
    (feed, Arriving { queue: receiver, faults, dropped_before: 0 })
}

impl Feed {
    /// Puts a mark in, unless too many wait that came the same way.
    pub(super) fn put(&self, mark: Mark) {
        let from = mark.from;
        let has_room = self.faults.waiting(from).fetch_add(1, Ordering::Relaxed) < ROOM;
        if !has_room || self.queue.try_send(mark).is_err() {
            self.faults.waiting(from).fetch_sub(1, Ordering::Relaxed);
            self.faults.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a line that was not understood.
    pub(super) fn unknown(&self, line: &[u8]) {
        if self.faults.unknown.fetch_add(1, Ordering::Relaxed) == 0 {
            let shown = line.get(..MAX_SHOWN_BYTES).unwrap_or(line);
            let mut first = self.faults.first.lock().unwrap_or_else(PoisonError::into_inner);
            *first = Some(String::from_utf8_lossy(shown).trim_end().into());
        }
    }

    /// What has gone wrong until now.
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }
}

impl Arriving {
    /// The next mark; `None` when there will be no more.
    pub async fn next(&mut self) -> Option<Mark> {
        let mark = self.queue.recv().await;
        self.taken(mark)
    }

    /// A mark that is there already.
    pub fn waiting(&mut self) -> Option<Mark> {
        let mark = self.queue.try_recv().ok();
        self.taken(mark)
    }

    fn taken(&self, mark: Option<Mark>) -> Option<Mark> {
        if let Some(mark) = &mark {
            self.faults.waiting(mark.from).fetch_sub(1, Ordering::Relaxed);
        }
        mark
    }

    /// How many found no room since the last call.
    pub fn dropped(&mut self) -> u64 {
        let dropped = self.faults.dropped.load(Ordering::Relaxed);
        let new = dropped - self.dropped_before;
        self.dropped_before = dropped;
        new
    }
}

impl Faults {
    const fn waiting(&self, from: MarkFrom) -> &AtomicUsize {
        let [output, socket, pipe] = &self.waiting;
        match from {
            MarkFrom::Output => output,
            MarkFrom::Socket => socket,
            MarkFrom::Pipe => pipe,
        }
    }

    /// What the user should know, if anything.
    pub fn notice(&self) -> Option<String> {
        let unknown = self.unknown.load(Ordering::Relaxed);
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(format!(
            "{unknown} lines that were sent as marks were not understood, the first one was '{first}': write begin NAME, \
             end NAME or event NAME key=value, of at most {} bytes",
            super::said::MAX_LINE_BYTES
        ))
    }
}

#[cfg(test)]
mod tests {
    use joular_data::{
        events::{MarkFrom, MarkKind},
        model::units::MonotonicNs,
    };

    use super::*;

    fn mark(from: MarkFrom) -> Mark {
        Mark { at: MonotonicNs(0), kind: MarkKind::Event, name: Some("a".into()), attributes: None, pid: None, from }
    }

    #[test]
    fn marks_beyond_the_queue_are_counted() {
        let (feed, mut arriving) = queue();
        (0..ROOM + 7).for_each(|_| feed.put(mark(MarkFrom::Socket)));
        assert_eq!((arriving.dropped(), arriving.dropped()), (7, 0));
        assert_eq!(std::iter::from_fn(|| arriving.waiting()).count(), ROOM);
        feed.put(mark(MarkFrom::Socket));
        assert!(arriving.dropped() == 0 && arriving.waiting().is_some());
    }

    #[test]
    fn what_comes_one_way_leaves_the_other_ways_their_room() {
        for flood in MarkFrom::ALL {
            let (feed, mut arriving) = queue();
            (0..ROOM * 3).for_each(|_| feed.put(mark(flood)));
            for other in MarkFrom::ALL.into_iter().filter(|other| *other != flood) {
                (0..ROOM).for_each(|_| feed.put(mark(other)));
            }
            assert_eq!(arriving.dropped(), (ROOM * 2) as u64, "only those of {flood:?}");
            let came: Vec<Mark> = std::iter::from_fn(|| arriving.waiting()).collect();
            for from in MarkFrom::ALL {
                assert_eq!(came.iter().filter(|mark| mark.from == from).count(), ROOM, "{from:?}");
            }
        }
    }

    #[test]
    fn lines_that_were_not_understood_are_counted_and_the_first_one_is_shown() {
        let (feed, _arriving) = queue();
        assert_eq!(feed.faults().notice(), None);
        feed.unknown(b"hello\x1b[2J\n");
        feed.unknown(&[b'x'; 100_000]);
        let notice = feed.faults().notice().unwrap();
        assert!(notice.starts_with("2 lines") && notice.contains("'hello\\x1b[2J'"), "{notice}");
    }
}
