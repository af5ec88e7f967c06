//! Does the same with many things on several threads.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// More threads do not help, because one thread takes what they have done.
pub(super) const MAX_THREADS: usize = 8;

/// How many threads work at a time.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// What `work` makes of each item, in the order of items.
pub(super) fn in_order<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let threads = threads().min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let work_on = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(work_on)).collect();
        working.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_in_the_order_of_items() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(in_order(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
