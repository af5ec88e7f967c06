//! Measures how often counters advance, before a recording and for `joular-bpf sources`.
//!
//! A counter shows energy up to its last update, so what a reading says is up to one update old. How much
//! that matters depends on the time between updates, which no interface states. So all counters are read in
//! turns for a short time, and the moments are noted at which one has another value than before.

use std::{
    thread,
    time::{Duration, Instant},
};

use joular_data::model::domain::{Domain, Label, Update};

use super::{EnergySource, filtering};

/// Longest time for all counters together.
const LONGEST: Duration = Duration::from_millis(140);

/// Between two rounds of reads, so that no CPU is kept busy.
const PAUSE: Duration = Duration::from_micros(50);

/// With fewer changes, how long the counter stood still is all that is known: one interval between two
/// changes may be an odd one.
const FEWEST_CHANGES: usize = 3;

/// Once every counter has so many, more would not change the median.
const ENOUGH_CHANGES: usize = 48;

/// How often the counters of each source advance: a list per source with an entry per domain, `None` for
/// what is not a counter or was not seen to advance. Takes [`LONGEST`] at most.
pub fn watch(sources: &mut [&mut dyn EnergySource]) -> Vec<Vec<Option<Update>>> {
    let counts: Vec<usize> = sources.iter().map(|source| source.domains().len()).collect();
    let start = Instant::now();
    let read = || -> Vec<Option<u64>> { sources.iter_mut().flat_map(|source| totals(*source)).collect() };
    let mut updates = updates(read, || {
        thread::sleep(PAUSE);
        start.elapsed()
    })
    .into_iter();
    counts.into_iter().map(|count| updates.by_ref().take(count).collect()).collect()
}

/// One entry per domain, whether or not the source has any counter.
fn totals(source: &mut dyn EnergySource) -> Vec<Option<u64>> {
    let mut totals = source.totals_uj();
    totals.resize(source.domains().len(), None);
    totals
}

/// Domains as they are once their counters were watched. Windows have the given length.
pub fn noted(domains: &[Domain], updates: &[Option<Update>], window_ns: u64) -> Vec<Domain> {
    let mut domains = domains.to_vec();
    for (domain, update) in domains.iter_mut().zip(updates) {
        if let Some(update) = update {
            domain.watched(*update, window_ns);
        }
    }
    domains
}

/// Says why domains are measured coarsely, if any are: windows are short for a counter, or it is filtered.
pub fn notice(domains: &[Domain], window_ns: u64) -> Option<String> {
    let is_filtered = domains.iter().any(|domain| domain.label == Label::MeasuredCoarsely);
    too_short(domains, window_ns).or_else(|| is_filtered.then(|| filtering::NOTICE.to_owned()))
}

fn too_short(domains: &[Domain], window_ns: u64) -> Option<String> {
    let coarse = |domain: &&Domain| domain.update().is_some_and(|update| update.is_coarse_in(window_ns));
    let slowest =
        domains.iter().filter(coarse).max_by_key(|domain| domain.update().map(|update| update.interval_us))?;
    let update = slowest.update()?;
    Some(format!(
        "the energy counter of {} advances every {update}, which is seldom for windows of {} ms: their energy is only \
         measured coarsely (docs/energy.md): use a longer --interval",
        slowest.name,
        window_ns / 1_000_000
    ))
}

/// What one counter was seen to do.
struct Seen {
    value: Option<u64>,
    /// When it was first read, and then when it changed.
    moments: Vec<Duration>,
}

impl Seen {
    fn changes(&self) -> usize {
        self.moments.len().saturating_sub(1)
    }

    fn take(&mut self, value: Option<u64>, now: Duration) {
        if value.is_some() && self.value.is_some() && value != self.value {
            self.moments.push(now);
        }
        self.value = value.or(self.value);
    }

    /// `end` is when it was last read.
    fn update(&self, end: Duration) -> Option<Update> {
        let stood_still = self.moments.iter().zip(self.moments.iter().skip(1).chain([&end]));
        let mut intervals: Vec<Duration> = stood_still.map(|(from, to)| to.saturating_sub(*from)).collect();
        let (interval, is_least) = match self.changes() {
            0 => return None,
            changes if changes < FEWEST_CHANGES => (intervals.into_iter().max()?, true),
            _ => {
                // The first and the last are cut off by the watch.
                let mut whole = intervals.split_off(1);
                whole.pop();
                whole.sort_unstable();
                (*whole.get(whole.len() / 2)?, false)
            }
        };
        let interval_us = u32::try_from(interval.as_micros()).unwrap_or(u32::MAX).max(1);
        Some(Update { interval_us, is_least })
    }
}

/// Watches counters that `read` reads. `wait` pauses, and says how much time has passed.
fn updates(mut read: impl FnMut() -> Vec<Option<u64>>, mut wait: impl FnMut() -> Duration) -> Vec<Option<Update>> {
    let mut seen: Vec<Seen> = read().into_iter().map(|value| Seen { value, moments: vec![Duration::ZERO] }).collect();
    let mut now = Duration::ZERO;
    let is_undecided = |seen: &Seen| seen.value.is_some() && seen.changes() < ENOUGH_CHANGES;
    while now < LONGEST && seen.iter().any(is_undecided) {
        now = wait();
        for (seen, value) in seen.iter_mut().zip(read()) {
            seen.take(value, now);
        }
    }
    seen.iter().map(|seen| seen.update(now)).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use joular_data::model::domain::Meter;

    use super::*;
    use crate::energy::powercap::{Powercap, fake_tree::FakeTree};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Watches simulated counters with these update intervals in µs, 0 for one that stands still, by reads
    /// that are `round_us` apart, and now and then much longer where another thread runs.
    fn simulated(intervals_us: &[u64], round_us: u64) -> (Vec<Option<Update>>, u64) {
        let now_us = Cell::new(0_u64);
        let rounds = Cell::new(0_u64);
        let value = |interval_us: &u64| Some((now_us.get() + 333).checked_div(*interval_us).unwrap_or(0));
        let read = || intervals_us.iter().map(value).collect();
        let found = updates(read, || {
            rounds.set(rounds.get() + 1);
            let held_up_us = if rounds.get().is_multiple_of(97) { 4_000 } else { 0 };
            now_us.set(now_us.get() + round_us + held_up_us);
            Duration::from_micros(now_us.get())
        });
        (found, now_us.get())
    }

    #[test]
    fn the_interval_is_found_whatever_it_is() {
        for interval_us in [1_000, 8_000, 30_000] {
            let (found, _) = simulated(&[interval_us], 100);
            let update = found[0].unwrap();
            let off_us = u64::from(update.interval_us).abs_diff(interval_us);
            assert!(!update.is_least && off_us <= 100, "{interval_us}: {update:?}");
        }
    }

    #[test]
    fn a_slow_counter_has_a_least_interval_and_an_idle_one_none() {
        let (found, took_us) = simulated(&[100_000, 0, 1_000], 100);
        let slow = found[0].unwrap();
        assert!(slow.is_least && (70_000..=104_000).contains(&slow.interval_us), "{slow:?}");
        assert_eq!(slow.to_string(), format!("{:.1} ms or more", f64::from(slow.interval_us) / 1e3));
        assert_eq!(found[1], None);
        assert!(found[2].is_some_and(|update| !update.is_least));
        assert!((140_000..=145_000).contains(&took_us), "{took_us} µs");
    }

    #[test]
    fn a_watch_ends_once_it_knows_enough_and_at_once_without_counters() {
        let (found, took_us) = simulated(&[1_000, 500], 100);
        assert!(took_us < 80_000 && found.iter().all(Option::is_some), "{took_us} µs, {found:?}");
        assert_eq!(updates(|| vec![None, None], || panic!("there is nothing to wait for")), [None, None]);
        assert_eq!(updates(Vec::new, || panic!("there is nothing to wait for")), []);
    }

    /// A source of this many counters in a tree of files, which all stand still.
    fn idle(zones: u32) -> (FakeTree, Powercap) {
        let tree = (0..zones).fold(FakeTree::new(), |tree, zone| {
            tree.zone(&format!("intel-rapl:{zone}"), &format!("package-{zone}"), 5)
        });
        let source = Powercap::open(tree.root(), true).unwrap();
        (tree, source)
    }

    #[test]
    fn each_source_has_its_own_and_all_share_the_time() {
        let ((_one, mut one), (_two, mut two)) = (idle(1), idle(2));
        let start = Instant::now();
        assert_eq!(watch(&mut [&mut one, &mut two]), [vec![None], vec![None; 2]]);
        assert!(start.elapsed() >= LONGEST);
        let noted = noted(one.domains(), &[None], SECOND_NS);
        assert_eq!((&noted[..], notice(&noted, SECOND_NS)), (one.domains(), None));
    }

    /// 4 ms pass in a round, in which a counter of 1 ms moves several times.
    #[test]
    fn reads_that_take_long_give_what_they_can_see() {
        let (found, _) = simulated(&[1_000], 4_000);
        assert!((4_000..=8_000).contains(&found[0].unwrap().interval_us), "{found:?}");
    }

    #[test]
    fn short_windows_are_named() {
        let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1 };
        let domain = |name: &str| Domain::new(name, Some(0), "powercap", Label::Measured, meter);
        let updates = [1_000, 8_000].map(|interval_us| Some(Update { interval_us, is_least: false }));
        let domains = [domain("package"), domain("dram")];
        let labels = |window_ns| {
            let noted = noted(&domains, &updates, window_ns);
            (noted.iter().map(|domain| domain.label).collect::<Vec<_>>(), notice(&noted, window_ns))
        };
        assert_eq!(labels(SECOND_NS), (vec![Label::Measured; 2], None));
        let (found, said) = labels(SECOND_NS / 10);
        assert_eq!(found, [Label::Measured, Label::MeasuredCoarsely]);
        let filtered = [Domain { label: Label::MeasuredCoarsely, ..domain("package") }];
        assert_eq!(notice(&filtered, SECOND_NS).as_deref(), Some(filtering::NOTICE));
        assert!(said.unwrap().starts_with("the energy counter of dram advances every 8.0 ms, which is seldom for"));
    }
}
