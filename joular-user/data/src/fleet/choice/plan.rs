//! Divides the time of a question among tiers and what hosts shipped. Nothing is read here.
//!
//! An hour is taken from a tier if the tier has all of it ([`Hour`]) and the question is about all of it. A piece of time at an
//! edge that is shorter than a tier's window is taken from a finer one, in the end from the runs. A window counts where it
//! starts, in tiers as in runs, and windows of tiers begin with the hour. So each window that a host recorded is in one
//! piece, and in one only.

use std::collections::BTreeMap;

use super::super::tier::Tier;
use crate::model::units::UnixMicros;

pub(super) const HOUR_US: i64 = 3_600_000_000;

/// Tiers, each with the shortest time for which it is taken.
///
/// 48 hours: edges are two hours at most, 4 % of what is read in finer windows, and a curve has 48 points or more, which is what
/// a picture of two days needs. 3 hours: 36 points, and edges of ten minutes at most, 6 %. What is shorter has few runs: the
/// windows of a minute that hosts shipped tell more.
const SHORTEST: [(Tier, i64); 2] = [(Tier::Hourly, 48 * HOUR_US), (Tier::Minutes, 3 * HOUR_US)];

/// The tier with the longest windows that is taken for a time of this length; `None`: none.
pub(super) fn coarsest(length_us: i64) -> Option<Tier> {
    SHORTEST.into_iter().find(|(_, shortest)| length_us >= *shortest).map(|(tier, _)| tier)
}

/// Where an hour can be read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hour {
    /// Whether hosts shipped runs that may have windows in it.
    pub(super) has_runs: bool,
    pub(super) minutes: bool,
    pub(super) hourly: bool,
}

impl Hour {
    const fn is_in(self, tier: Tier) -> bool {
        match tier {
            Tier::Minutes => self.minutes,
            Tier::Hourly => self.hourly,
        }
    }
}

/// The hours of which there is anything, by their number since 1970.
pub(super) type Hours = BTreeMap<i64, Hour>;

/// Windows that start at `begin` or later, and before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// `None`: the runs.
    pub(super) tier: Option<Tier>,
    pub(super) begin: UnixMicros,
    pub(super) end: UnixMicros,
}

/// The time that a question is about, as far as it says that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) since: Option<UnixMicros>,
    pub(super) until: Option<UnixMicros>,
}

impl Asked {
    /// Whether it begins or ends within an hour.
    pub(super) fn has_edge_in(self, hour: i64) -> bool {
        [self.since, self.until].into_iter().flatten().any(|edge| edge.0.div_euclid(HOUR_US) == hour)
    }

    /// How long it is. An end that is not said is that of the first or the last hour of which there is anything.
    pub(super) fn length_us(self, hours: &Hours) -> i64 {
        let first = hours.first_key_value().map_or(0, |(hour, _)| hour.saturating_mul(HOUR_US));
        let last = hours.last_key_value().map_or(0, |(hour, _)| hour.saturating_add(1).saturating_mul(HOUR_US));
        let begin = self.since.map_or(first, |since| since.0);
        self.until.map_or(last, |until| until.0).saturating_sub(begin)
    }
}

/// In which pieces a question is read, in order of time. Windows of tiers are not longer than those of `coarsest`.
pub(super) fn plan(asked: Asked, coarsest: Tier, hours: &Hours) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for (number, hour) in hours {
        let whole = (number.saturating_mul(HOUR_US), number.saturating_add(1).saturating_mul(HOUR_US));
        let begin = asked.since.map_or(whole.0, |since| since.0.max(whole.0));
        let end = asked.until.map_or(whole.1, |until| until.0.min(whole.1));
        if begin < end {
            divide(*hour, coarsest, (begin, end), &mut stretches);
        }
    }
    stretches
}

/// Adds what is read of an hour between two moments in it.
fn divide(hour: Hour, coarsest: Tier, (begin, end): (i64, i64), stretches: &mut Vec<Stretch>) {
    for tier in Tier::ALL.into_iter().rev().filter(|tier| *tier <= coarsest && hour.is_in(*tier)) {
        let window_us = tier.window_us();
        let first = begin.saturating_add(window_us - 1).div_euclid(window_us).saturating_mul(window_us);
        let last = end.div_euclid(window_us).saturating_mul(window_us);
        if first < last {
            // What is left at the edges is shorter than this tier's windows, so it is not taken again.
            divide(hour, Tier::Minutes, (begin, first), stretches);
            add(Stretch { tier: Some(tier), begin: UnixMicros(first), end: UnixMicros(last) }, stretches);
            divide(hour, Tier::Minutes, (last, end), stretches);
            return;
        }
    }
    if begin < end && hour.has_runs {
        add(Stretch { tier: None, begin: UnixMicros(begin), end: UnixMicros(end) }, stretches);
    }
}

/// Stretches of a tier that follow each other are one: there is nothing between them.
fn add(stretch: Stretch, stretches: &mut Vec<Stretch>) {
    match stretches.last_mut() {
        Some(last) if last.tier == stretch.tier => last.end = stretch.end,
        _ => stretches.push(stretch),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
