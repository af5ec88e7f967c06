//! Queues marks between the threads that hear them and the recording.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use joular_data::{events::Mark, model::target_text::TargetText};
use tokio::sync::mpsc;

/// Marks that wait.
const QUEUE: usize = 1024;
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
}

/// A new queue.
pub fn queue() -> (Feed, Arriving) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let faults = Arc::new(Faults::default());
    let feed = Feed { queue: sender, faults: Arc::clone(&faults) };
    (feed, Arriving { queue: receiver, faults, dropped_before: 0 })
}

impl Feed {
    /// Puts a mark in, unless too many wait.
    pub(super) fn put(&self, mark: Mark) {
        if self.queue.try_send(mark).is_err() {
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
        self.queue.recv().await
    }

    /// A mark that is there already.
    pub fn waiting(&mut self) -> Option<Mark> {
        self.queue.try_recv().ok()
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

    #[test]
    fn marks_beyond_the_queue_are_counted() {
        let (feed, mut arriving) = queue();
        let mark = Mark {
            at: MonotonicNs(0),
            kind: MarkKind::Event,
            name: Some("a".into()),
            attributes: None,
            pid: None,
            from: MarkFrom::Socket,
        };
        (0..QUEUE + 7).for_each(|_| feed.put(mark.clone()));
        assert_eq!((arriving.dropped(), arriving.dropped()), (7, 0));
        assert_eq!(std::iter::from_fn(|| arriving.waiting()).count(), QUEUE);
        feed.put(mark);
        assert!(arriving.dropped() == 0 && arriving.waiting().is_some());
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
