//! Makes diagrams and a table of garbage collections: the heap before and after each, the ages of what outlived them, and
//! what was allocated over time.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{clock::Clock, strings::Strings};
use crate::{
    model::target_text::TargetText,
    report::{
        profile::{Collected, SeenCollection},
        tree::OTHERS,
    },
};

/// Collections that are drawn one by one: those that took longest. More would be narrower than what can be seen.
const MOST: usize = 2_000;
/// Classes with a series of their own.
const SERIES: usize = 11;

/// Columns have an item for each collection, in the order of time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Collections {
    at_us: Vec<i64>,
    duration_us: Vec<u64>,
    before_bytes: Vec<u64>,
    /// -1: it was under way at the end.
    after_bytes: Vec<i64>,
    collector: Vec<usize>,
    /// -1: not known.
    cause: Vec<i64>,
    energy_uj: Vec<u64>,
    /// Shorter ones, which are not drawn.
    left_out: usize,
    sums: Vec<Sum>,
    /// By age, from age 1 on, the bytes after a collection, on average over those of a bucket; `None`: there was none.
    ages: Vec<Vec<Option<u64>>>,
    /// What was allocated, by class.
    allocated: Vec<Series>,
}

/// Collections by one collector for one cause.
#[derive(Debug, Serialize)]
struct Sum {
    collector: usize,
    cause: i64,
    count: u64,
    duration_ns: u64,
    longest_ns: u64,
    /// Used bytes before less those after.
    freed_bytes: i64,
    energy_uj: u64,
}

#[derive(Debug, Serialize)]
struct Series {
    /// -1: no sample shows it.
    class: i64,
    bytes: Vec<u64>,
}

/// Bytes by class and bucket.
#[derive(Debug, Default)]
pub(super) struct AllocatedOverTime(HashMap<Option<String>, BTreeMap<usize, u64>>);

impl AllocatedOverTime {
    pub(super) fn take(&mut self, bucket: usize, class: Option<&str>, bytes: u64) {
        let sum = self.0.entry(class.map(ToOwned::to_owned)).or_default().entry(bucket).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// The classes with most bytes, each a series, and the others together.
    fn series(&self, clock: Clock, strings: &mut Strings) -> Vec<Series> {
        let total =
            |by_bucket: &BTreeMap<usize, u64>| by_bucket.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let mut classes: Vec<_> =
            self.0.iter().map(|(class, by_bucket)| (total(by_bucket), class, by_bucket)).collect();
        classes.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let spread = |class, of: &[(u64, &Option<String>, &BTreeMap<usize, u64>)]| {
            let mut bytes = vec![0_u64; clock.buckets];
            for (bucket, sum) in of.iter().flat_map(|(_, _, by_bucket)| by_bucket.iter()) {
                bytes[*bucket] = bytes[*bucket].saturating_add(*sum);
            }
            Series { class, bytes }
        };
        let (most, others) = classes.split_at(classes.len().min(SERIES));
        let mut series: Vec<Series> = most
            .iter()
            .map(|of| {
                let name = of.1.as_ref().map(|class| TargetText::from(class.as_str()));
                spread(strings.maybe(name.as_ref().map(TargetText::raw)), std::slice::from_ref(of))
            })
            .collect();
        if !others.is_empty() {
            series.push(spread(strings.maybe(Some(OTHERS)), others));
        }
        series
    }
}

impl Collections {
    /// `None`: nothing was collected, or that was not recorded.
    pub(super) fn of(
        collected: &Collected,
        allocated: &AllocatedOverTime,
        clock: Clock,
        strings: &mut Strings,
    ) -> Option<Self> {
        if collected.is_empty() {
            return None;
        }
        let mut drawn: Vec<_> = collected.collections.iter().collect();
        drawn.sort_by_key(|(key, seen)| (std::cmp::Reverse(seen.duration_ns), *key));
        let mut columns = Self { left_out: drawn.len().saturating_sub(MOST), ..Self::default() };
        drawn.truncate(MOST);
        drawn.sort_by_key(|(key, _)| *key);
        for ((start, _, collector), seen) in drawn {
            columns.at_us.push(start.0.saturating_sub(clock.start_us));
            columns.duration_us.push(seen.duration_ns.unwrap_or(0) / 1000);
            columns.before_bytes.push(seen.before_bytes);
            columns.after_bytes.push(seen.after_bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(-1));
            columns.collector.push(strings.place(collector));
            columns.cause.push(strings.maybe(seen.cause.as_deref()));
            columns.energy_uj.push(seen.energy.0);
        }
        columns.sums = sums(collected, strings);
        columns.ages = ages(collected, clock);
        columns.allocated = allocated.series(clock, strings);
        Some(columns)
    }
}

fn sums(collected: &Collected, strings: &mut Strings) -> Vec<Sum> {
    let mut by_cause: BTreeMap<(&str, Option<&str>), Vec<&SeenCollection>> = BTreeMap::new();
    for ((_, _, collector), seen) in &collected.collections {
        by_cause.entry((collector, seen.cause.as_deref())).or_default().push(seen);
    }
    let sum = |((collector, cause), all): ((&str, Option<&str>), Vec<&SeenCollection>)| {
        let durations = || all.iter().filter_map(|seen| seen.duration_ns);
        let freed = |seen: &&SeenCollection| {
            seen.after_bytes.map(|after| seen.before_bytes.cast_signed().saturating_sub(after.cast_signed()))
        };
        Sum {
            collector: strings.place(collector),
            cause: strings.maybe(cause),
            count: all.len() as u64,
            duration_ns: durations().fold(0, u64::saturating_add),
            longest_ns: durations().max().unwrap_or(0),
            freed_bytes: all.iter().filter_map(freed).fold(0, i64::saturating_add),
            energy_uj: all.iter().fold(0, |sum, seen| sum.saturating_add(seen.energy.0)),
        }
    };
    by_cause.into_iter().map(sum).collect()
}

fn ages(collected: &Collected, clock: Clock) -> Vec<Vec<Option<u64>>> {
    let oldest = collected.ages.values().map(|ages| ages.iter().rposition(|bytes| *bytes > 0).map_or(0, |age| age + 1));
    let Some(oldest) = oldest.max().filter(|oldest| *oldest > 0) else { return Vec::new() };
    let mut sums = vec![vec![0_u64; clock.buckets]; oldest];
    let mut counts = vec![0_u64; clock.buckets];
    for ((start, ..), ages) in &collected.ages {
        let bucket = clock.bucket(*start, 0);
        counts[bucket] += 1;
        for (sum, bytes) in sums.iter_mut().zip(ages) {
            sum[bucket] = sum[bucket].saturating_add(*bytes);
        }
    }
    let mean = |of_age: Vec<u64>| of_age.into_iter().zip(&counts).map(|(sum, count)| sum.checked_div(*count)).collect();
    sums.into_iter().map(mean).collect()
}
