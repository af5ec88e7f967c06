//! Puts collections of JVMs together from what the kernel reports of each memory pool.
//!
//! A JVM names its pools one after the other as a collection begins, and again as it ends. So a collection has ended when as
//! many pools were reported at its end as at its begin.

use std::collections::{BTreeMap, BTreeSet};

use joular_data::{
    events::{Collection, decode::Pool},
    model::{
        target_text::TargetText,
        units::{MonotonicNs, Pid},
    },
};

/// Collections in a window. A JVM with more per second than a thousand has no time for anything else.
const MAX_COLLECTIONS: usize = 1 << 14;

/// Collectors of one JVM that may be at work at once. A JVM has three or four; what names them is in its memory, where it
/// may write what it likes.
const MAX_UNDER_WAY: usize = 16;

/// Collections of one JVM in a window, so that there is room for others'.
const MAX_OF_JVM: usize = 1 << 12;

/// What stands for no cause: a JVM without counters, and pauses of G1's marking, of which the JVM says that nothing is
/// collected.
const NO_CAUSES: [&str; 2] = ["", "No GC"];

/// Collections that are under way, and those that ended in the running window.
#[derive(Debug, Default)]
pub(super) struct Collections {
    under_way: BTreeMap<(Pid, TargetText), UnderWay>,
    ended: Vec<Collection>,
    /// How many of `ended` each JVM has.
    of_jvm: BTreeMap<Pid, usize>,
    /// Collections that were not kept, and the JVMs that had more than their share.
    lost: u64,
    greedy: BTreeSet<Pid>,
}

/// What was known at the end of a window.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) collections: Vec<Collection>,
    /// How many were not kept.
    pub(super) lost: u64,
    /// JVMs that reported more than is kept of one.
    pub(super) greedy: BTreeSet<Pid>,
}

#[derive(Debug)]
struct UnderWay {
    collection: Collection,
    pools_before: u32,
    pools_after: u32,
}

impl Collections {
    /// Takes what the kernel reported of a pool.
    pub(super) fn take(&mut self, pool: Pool) {
        let key = (pool.pid, pool.collector.clone());
        if !pool.is_end {
            // One whose end was not reported is over when the next one begins.
            if self.under_way.get(&key).is_some_and(|known| known.pools_after > 0) {
                self.under_way.remove(&key);
                self.lost = self.lost.saturating_add(1);
            }
            if !self.under_way.contains_key(&key) && self.count_under_way(pool.pid) >= MAX_UNDER_WAY {
                self.refuse(pool.pid);
                return;
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
            let of_jvm = self.of_jvm.entry(pool.pid).or_default();
            if *of_jvm >= MAX_OF_JVM {
                self.refuse(pool.pid);
            } else if self.ended.len() < MAX_COLLECTIONS {
                *of_jvm += 1;
                self.ended.extend(ended);
            } else {
                self.lost = self.lost.saturating_add(1);
            }
        }
    }

    fn count_under_way(&self, pid: Pid) -> usize {
        self.under_way.range((pid, TargetText::default())..).take_while(|((of, _), _)| *of == pid).count()
    }

    fn refuse(&mut self, pid: Pid) {
        self.lost = self.lost.saturating_add(1);
        self.greedy.insert(pid);
    }

    /// A process has ended, or runs another program.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.under_way.retain(|(of, _), _| *of != pid);
    }

    /// Those of the window that ends now. What the kernel reported of the next window already stays.
    pub(super) fn until(&mut self, window_end: MonotonicNs) -> Told {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ended)
            .into_iter()
            .partition(|known| known.end.is_some_and(|end| end < window_end));
        let is_begun = |known: &&Collection| known.start < window_end;
        let under_way = self.under_way.values().map(|known| &known.collection);
        let goes_on = under_way.chain(&later).filter(is_begun).map(going_on);
        let mut collections: Vec<_> = goes_on.chain(now).collect();
        self.ended = later;
        self.of_jvm.clear();
        for collection in &self.ended {
            *self.of_jvm.entry(collection.pid).or_default() += 1;
        }
        collections.sort_by(|a, b| (a.pid, a.start, &a.collector).cmp(&(b.pid, b.start, &b.collector)));
        Told { collections, lost: std::mem::take(&mut self.lost), greedy: std::mem::take(&mut self.greedy) }
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
        let Told { collections: found, lost, .. } = collections.until(MonotonicNs(end));
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
            let found = collections.until(MonotonicNs(5_000)).collections;
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
        let told = collections.until(MonotonicNs(5_000));
        assert_eq!((told.collections.len(), told.lost), (1, 1));
        collections.take(pool(false, 6_000, "Eden Space", 1));
        collections.forget(Pid(7));
        assert_eq!(collections.until(MonotonicNs(7_000)), Told::default());
    }

    #[test]
    fn a_jvm_that_makes_names_up_has_few_under_way_and_is_named() {
        let mut collections = Collections::default();
        collections.take(Pool { pid: Pid(8), ..pool(false, 900, "Eden Space", 100) });
        for number in 0..100_000 {
            collections.take(Pool { collector: format!("{number}").into(), ..pool(false, 1_000, "Eden Space", 1) });
        }
        assert_eq!(collections.under_way.len(), 1 + MAX_UNDER_WAY);
        let told = collections.until(MonotonicNs(5_000));
        assert_eq!((told.collections.len(), told.lost), (1 + MAX_UNDER_WAY, 100_000 - MAX_UNDER_WAY as u64));
        assert_eq!(told.greedy, BTreeSet::from([Pid(7)]));
    }

    #[test]
    fn a_jvm_that_collects_without_end_leaves_room_for_others() {
        let mut collections = Collections::default();
        for _ in 0..2 * MAX_COLLECTIONS {
            take_all(&mut collections, whole(1_000));
        }
        take_all(&mut collections, whole(1_000).map(|pool| Pool { pid: Pid(8), ..pool }));
        let told = collections.until(MonotonicNs(5_000));
        let of = |pid| told.collections.iter().filter(|collection| collection.pid == pid).count();
        assert_eq!((of(Pid(7)), of(Pid(8))), (MAX_OF_JVM, 1));
        assert_eq!((told.lost, told.greedy), ((2 * MAX_COLLECTIONS - MAX_OF_JVM) as u64, BTreeSet::from([Pid(7)])));
        take_all(&mut collections, whole(6_000));
        assert_eq!(collections.until(MonotonicNs(7_000)).collections.len(), 1, "the next window has its own share");
    }
}
