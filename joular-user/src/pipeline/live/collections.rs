//! Puts collections of JVMs together from what the kernel tells of each memory pool.
//!
//! A JVM names its pools one after the other as a collection begins, and again as it ends. So a collection has ended when as
//! many pools were told of at its end as at its begin.

use std::collections::BTreeMap;

use joular_data::{
    events::{Collection, decode::Pool},
    model::{
        target_text::TargetText,
        units::{MonotonicNs, Pid},
    },
};

/// Collections in a window. A JVM with more per second than a thousand has no time for anything else.
const MAX_COLLECTIONS: usize = 1 << 14;

/// What stands for no cause: a JVM without counters, and pauses of G1's marking, of which the JVM says that nothing is
/// collected.
const NO_CAUSES: [&str; 2] = ["", "No GC"];

/// Collections that are under way, and those that ended in the running window.
#[derive(Debug, Default)]
pub(super) struct Collections {
    under_way: BTreeMap<(Pid, TargetText), UnderWay>,
    ended: Vec<Collection>,
    /// Collections that were not kept.
    lost: u64,
}

#[derive(Debug)]
struct UnderWay {
    collection: Collection,
    pools_before: u32,
    pools_after: u32,
}

impl Collections {
    /// Takes what the kernel told of a pool.
    pub(super) fn take(&mut self, pool: Pool) {
        let key = (pool.pid, pool.collector.clone());
        if !pool.is_end {
            // One whose end was not told is over when the next one begins.
            if self.under_way.get(&key).is_some_and(|known| known.pools_after > 0) {
                self.under_way.remove(&key);
                self.lost = self.lost.saturating_add(1);
            }
            let known = self.under_way.entry(key).or_insert_with(|| UnderWay::begin(&pool));
            known.pools_before = known.pools_before.saturating_add(1);
            known.collection.before_bytes = known.collection.before_bytes.saturating_add(pool.used_bytes);
            return;
        }
        // Its begin came before the probes.
        let Some(known) = self.under_way.get_mut(&key) else { return };
        known.pools_after = known.pools_after.saturating_add(1);
        known.collection.after_bytes = known.collection.after_bytes.saturating_add(pool.used_bytes);
        known.collection.end = Some(pool.time);
        known.collection.ages = if pool.ages.iter().any(|bytes| *bytes > 0) { pool.ages } else { Vec::new() };
        if known.pools_after >= known.pools_before {
            let ended = self.under_way.remove(&key).map(|known| known.collection);
            if self.ended.len() < MAX_COLLECTIONS {
                self.ended.extend(ended);
            } else {
                self.lost = self.lost.saturating_add(1);
            }
        }
    }

    /// A process has ended, or runs another program.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.under_way.retain(|(of, _), _| *of != pid);
    }

    /// Those of the window that ends now, and how many were not kept. What the kernel told of the next window already
    /// stays.
    pub(super) fn until(&mut self, window_end: MonotonicNs) -> (Vec<Collection>, u64) {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ended)
            .into_iter()
            .partition(|known| known.end.is_some_and(|end| end < window_end));
        let is_begun = |known: &&Collection| known.start < window_end;
        let under_way = self.under_way.values().map(|known| &known.collection);
        let goes_on = under_way.chain(&later).filter(is_begun).map(going_on);
        let mut collections: Vec<_> = goes_on.chain(now).collect();
        self.ended = later;
        collections.sort_by(|a, b| (a.pid, a.start, &a.collector).cmp(&(b.pid, b.start, &b.collector)));
        (collections, std::mem::take(&mut self.lost))
    }
}

impl UnderWay {
    fn begin(pool: &Pool) -> Self {
        let collection = Collection {
            pid: pool.pid,
            collector: pool.collector.clone(),
            cause: (!NO_CAUSES.contains(&pool.cause.raw())).then(|| pool.cause.clone()),
            start: pool.time,
            ..Collection::default()
        };
        Self { collection, pools_before: 0, pools_after: 0 }
    }
}

/// What is known of a collection while it is under way.
fn going_on(collection: &Collection) -> Collection {
    Collection { end: None, after_bytes: 0, ages: Vec::new(), ..collection.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(is_end: bool, time: u64, name: &str, used_bytes: u64) -> Pool {
        Pool {
            pid: Pid(7),
            is_end,
            time: MonotonicNs(time),
            used_bytes,
            collector: "Copy".into(),
            name: name.into(),
            cause: "Allocation Failure".into(),
            ages: vec![if is_end { 5 } else { 0 }; 15],
        }
    }

    fn take_all(collections: &mut Collections, pools: impl IntoIterator<Item = Pool>) {
        pools.into_iter().for_each(|pool| collections.take(pool));
    }

    fn whole(start: u64) -> [Pool; 4] {
        [
            pool(false, start, "Eden Space", 100),
            pool(false, start + 1, "Tenured Gen", 10),
            pool(true, start + 20, "Eden Space", 0),
            pool(true, start + 21, "Tenured Gen", 30),
        ]
    }

    fn found(collections: &mut Collections, end: u64) -> Vec<(u64, Option<u64>, u64, u64)> {
        let (found, lost) = collections.until(MonotonicNs(end));
        assert_eq!(lost, 0);
        let figures = |c: &Collection| (c.start.0, c.end.map(|end| end.0), c.before_bytes, c.after_bytes);
        found.iter().map(figures).collect()
    }

    #[test]
    fn a_collection_lasts_from_the_first_pool_to_the_last_and_sums_them() {
        let mut collections = Collections::default();
        take_all(&mut collections, whole(1_000).into_iter().chain(whole(2_000)));
        let expected = [(1_000, Some(1_021), 110, 30), (2_000, Some(2_021), 110, 30)];
        assert_eq!(found(&mut collections, 10_000), expected);
        assert_eq!(found(&mut collections, 20_000), []);
    }

    #[test]
    fn a_cause_that_is_none_is_not_told() {
        for (cause, expected) in [("System.gc()", Some("System.gc()")), ("No GC", None), ("", None)] {
            let mut collections = Collections::default();
            take_all(&mut collections, whole(1_000).map(|pool| Pool { cause: cause.into(), ..pool }));
            let (found, _) = collections.until(MonotonicNs(5_000));
            assert_eq!(found[0].cause.as_ref().map(TargetText::raw), expected);
        }
    }

    #[test]
    fn one_under_way_is_in_both_windows_and_has_its_end_in_the_second() {
        let mut collections = Collections::default();
        let [first, second, third, last] = whole(1_000);
        take_all(&mut collections, [first, second, third]);
        assert_eq!(found(&mut collections, 1_010), [(1_000, None, 110, 0)]);
        collections.take(last);
        assert_eq!(found(&mut collections, 2_000), [(1_000, Some(1_021), 110, 30)]);
    }

    #[test]
    fn what_is_told_of_the_next_window_waits() {
        let mut collections = Collections::default();
        take_all(&mut collections, whole(1_000).into_iter().chain(whole(2_000)));
        assert_eq!(found(&mut collections, 1_015), [(1_000, None, 110, 0)], "it ended after the window");
        let expected = [(1_000, Some(1_021), 110, 30), (2_000, Some(2_021), 110, 30)];
        assert_eq!(found(&mut collections, 3_000), expected);
    }

    #[test]
    fn an_end_without_a_begin_says_nothing_and_a_lost_end_is_counted() {
        let mut collections = Collections::default();
        let [first, second, third, last] = whole(1_000);
        take_all(&mut collections, [third.clone(), last]);
        assert_eq!(found(&mut collections, 5_000), []);
        take_all(&mut collections, [first, second, third]);
        take_all(&mut collections, whole(2_000));
        let (found, lost) = collections.until(MonotonicNs(5_000));
        assert_eq!((found.len(), lost), (1, 1));
        collections.take(pool(false, 6_000, "Eden Space", 1));
        collections.forget(Pid(7));
        assert_eq!(collections.until(MonotonicNs(7_000)), (Vec::new(), 0));
    }
}
