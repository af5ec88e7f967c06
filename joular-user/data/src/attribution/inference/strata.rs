//! Cuts a thread's light windows into strata, and divides what a stratum spent by all of its samples.
//!
//! Windows come in the order of time. Memory holds two strata, whatever the length of a run.

use std::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::{Seen, Share};
use crate::{
    attribution::split::apportion,
    events::RunInfo,
    model::units::{MicroJoules, UnixMicros},
};

/// Samples that are expected of a full stratum.
const FULL: f64 = 16.0;
/// Samples that are expected of a stratum which is whole without being full, because no more windows are near. A window
/// of which as many are expected is not light.
const ENOUGH: f64 = 8.0;
/// Windows that a stratum may span.
const SPAN: u64 = 60;
/// Windows after which nothing changes in a window any more: a stratum waits for the one after it, which may join it.
pub const HORIZON: u64 = 2 * SPAN;

/// How a run takes samples and cuts windows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Samples that are expected of a second of CPU time.
    pub frequency_hz: u32,
    /// Length of most windows: phases and their ends make some shorter.
    pub interval_ns: u64,
}

impl Pace {
    pub const fn of(run: &RunInfo) -> Self {
        Self { frequency_hz: run.frequency_hz, interval_ns: run.interval_ns }
    }

    /// A window in which a thread had so much CPU time.
    #[allow(clippy::cast_precision_loss, reason = "an expectation")]
    pub fn window(self, start: UnixMicros, cpu_ns: u64) -> Window {
        let expected = cpu_ns as f64 * f64::from(self.frequency_hz) / 1e9;
        Window { start, interval_ns: self.interval_ns, expected }
    }

    /// How many windows lie between two starts. Wall-clock times of windows are corrected, so it is rounded.
    pub fn distance(self, one: UnixMicros, other: UnixMicros) -> u64 {
        distance(one, other, self.interval_ns)
    }
}

/// A window in which a thread ran.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    start: UnixMicros,
    interval_ns: u64,
    /// Samples that are expected of the thread's CPU time.
    expected: f64,
}

impl Window {
    /// Whether its samples say less than those of several windows together.
    pub fn is_light(&self) -> bool {
        self.expected < ENOUGH
    }
}

/// Energy and CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
}

impl Spent {
    pub fn plus(self, other: Self) -> Self {
        Self { energy: self.energy.saturating_add(other.energy), cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns) }
    }
}

/// A path's samples in a window, or in several, and what was recorded for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded<P> {
    pub path: P,
    pub samples: u64,
    pub spent: Spent,
    /// Sum of the squared energy that each sample stands for, µJ².
    pub squares: f64,
}

/// Samples of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Hits {
    samples: u64,
    /// Sum over them of the power of their windows, µJ/ns.
    power: f64,
    /// The same of its square.
    squared_power: f64,
    recorded: Spent,
    recorded_squares: f64,
}

/// Light windows of a thread that are divided together.
#[derive(Clone, Debug)]
pub struct Stratum<P> {
    hits: IndexMap<P, Hits, RandomState>,
    /// In windows with samples.
    pub sampled: Spent,
    /// In windows without any.
    pub unsampled: Spent,
    /// How many windows there are.
    pub windows: usize,
    expected: f64,
}

impl<P> Default for Stratum<P> {
    fn default() -> Self {
        Self {
            hits: IndexMap::default(),
            sampled: Spent::default(),
            unsampled: Spent::default(),
            windows: 0,
            expected: 0.0,
        }
    }
}

impl<P: Copy + Eq + Hash> Stratum<P> {
    /// Adds a window with its samples, and what it spent without any.
    fn add(&mut self, window: &Window, rows: &[Recorded<P>], unsampled: Spent) {
        let sampled = rows.iter().fold(Spent::default(), |sum, row| sum.plus(row.spent));
        let power = ratio(sampled.energy.0, sampled.cpu_ns);
        for row in rows {
            let hits = self.hits.entry(row.path).or_default();
            let samples = real(row.samples);
            hits.plus(&Hits {
                samples: row.samples,
                power: samples * power,
                squared_power: samples * power * power,
                recorded: row.spent,
                recorded_squares: row.squares,
            });
        }
        self.sampled = self.sampled.plus(sampled);
        self.unsampled = self.unsampled.plus(unsampled);
        self.windows += 1;
        self.expected += window.expected;
    }

    /// Adds another one's windows.
    pub fn join(&mut self, other: &Self) {
        for (path, hits) in &other.hits {
            self.hits.entry(*path).or_default().plus(hits);
        }
        self.sampled = self.sampled.plus(other.sampled);
        self.unsampled = self.unsampled.plus(other.unsampled);
        self.windows += other.windows;
        self.expected += other.expected;
    }

    /// Whether so many samples are expected that it needs no others.
    pub fn is_enough(&self) -> bool {
        self.expected >= ENOUGH
    }

    pub fn spent(&self) -> Spent {
        self.sampled.plus(self.unsampled)
    }

    /// What was recorded for its samples.
    pub fn recorded(&self) -> impl Iterator<Item = Recorded<P>> {
        self.hits.iter().map(|(path, hits)| Recorded {
            path: *path,
            samples: hits.samples,
            spent: hits.recorded,
            squares: hits.recorded_squares,
        })
    }

    /// Divides what it spent among its samples: time alike, energy by the power of their windows. Nothing if there is
    /// no sample.
    pub fn divided(&self) -> Vec<Share<P>> {
        let samples: Vec<u64> = self.hits.values().map(|hits| hits.samples).collect();
        let power: f64 = self.hits.values().map(|hits| hits.power).sum();
        let weights = if power > 0.0 {
            self.hits.values().map(|hits| parts_of(hits.power / power)).collect()
        } else {
            samples.clone()
        };
        let [sampled, inferred] = [self.sampled, self.unsampled].map(|spent| apportion(spent.energy.0, &weights));
        let times = apportion(self.spent().cpu_ns, &samples);
        let per_power = if power > 0.0 { real(self.spent().energy.0) / power } else { 0.0 };
        let energies = sampled.into_iter().zip(inferred);
        let mut shares = Vec::with_capacity(self.hits.len());
        for (((path, hits), (sampled, inferred)), cpu_ns) in self.hits.iter().zip(energies).zip(times) {
            shares.push(Share {
                path: *path,
                energy: MicroJoules(sampled.saturating_add(inferred)),
                inferred: MicroJoules(inferred),
                cpu_ns,
                squares: per_power * per_power * hits.squared_power,
            });
        }
        shares
    }

    /// Divides what it spent among samples of others.
    pub fn divided_by(&self, seen: &[Seen<P>]) -> Vec<Share<P>> {
        let spent = self.spent();
        let mut shares = super::divide(spent.energy, spent.cpu_ns, seen);
        let energies: Vec<u64> = shares.iter().map(|share| share.energy.0).collect();
        for (share, inferred) in shares.iter_mut().zip(apportion(self.unsampled.energy.0, &energies)) {
            share.inferred = MicroJoules(inferred);
        }
        shares
    }
}

impl Hits {
    fn plus(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.power += other.power;
        self.squared_power += other.squared_power;
        self.recorded = self.recorded.plus(other.recorded);
        self.recorded_squares += other.recorded_squares;
    }
}

/// A stratum to which windows may come.
#[derive(Clone, Debug)]
struct Open<P> {
    start: UnixMicros,
    stratum: Stratum<P>,
}

/// A thread's light windows whose stratum is not known yet.
#[derive(Clone, Debug)]
pub struct Strata<P> {
    /// It is full, and waits for what is left after it.
    full: Option<Open<P>>,
    open: Option<Open<P>>,
    /// Complete ones, in the order of time, and whether each is divided by its own samples.
    complete: Vec<(Stratum<P>, bool)>,
}

impl<P> Default for Strata<P> {
    fn default() -> Self {
        Self { full: None, open: None, complete: Vec::new() }
    }
}

impl<P: Copy + Eq + Hash> Strata<P> {
    /// Takes a light window: its rows with samples, and what it spent without any.
    pub fn take(&mut self, window: &Window, rows: &[Recorded<P>], unsampled: Spent) {
        self.complete_before(Some((window.start, window.interval_ns)));
        let open = self.open.get_or_insert_with(|| Open { start: window.start, stratum: Stratum::default() });
        open.stratum.add(window, rows, unsampled);
        if open.stratum.expected >= FULL {
            let full = std::mem::replace(&mut self.full, self.open.take());
            self.complete.extend(full.map(|full| (full.stratum, true)));
        }
    }

    /// Whether it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.full.is_none() && self.open.is_none() && self.complete.is_empty()
    }

    /// Gives on the strata, in the order of time, to which no window from `now` on can come, which is the start of one and the
    /// length of most; without `now` all of them.
    /// One without shares has no sample, or too few are expected of it: it is left to what is known of the whole run.
    pub fn settle(&mut self, now: Option<(UnixMicros, u64)>, mut give: impl FnMut(&Stratum<P>, &[Share<P>])) {
        self.complete_before(now);
        for (stratum, is_enough) in self.complete.drain(..) {
            give(&stratum, &if is_enough { stratum.divided() } else { Vec::new() });
        }
    }

    fn complete_before(&mut self, now: Option<(UnixMicros, u64)>) {
        let is_past = |open: &Open<P>, windows: u64| {
            now.is_none_or(|(now, interval_ns)| distance(open.start, now, interval_ns) >= windows)
        };
        if let Some(Open { stratum, .. }) = self.open.take_if(|open| is_past(open, SPAN)) {
            let is_enough = stratum.is_enough();
            match self.full.take() {
                Some(mut full) if !is_enough => {
                    full.stratum.join(&stratum);
                    self.complete.push((full.stratum, true));
                }
                full => {
                    self.complete.extend(full.map(|full| (full.stratum, true)));
                    self.complete.push((stratum, is_enough));
                }
            }
        }
        if let Some(full) = self.full.take_if(|full| is_past(full, HORIZON)) {
            self.complete.push((full.stratum, true));
        }
    }
}

fn distance(one: UnixMicros, other: UnixMicros, interval_ns: u64) -> u64 {
    let interval_us = (interval_ns / 1000).max(1);
    one.0.abs_diff(other.0).saturating_add(interval_us / 2) / interval_us
}

/// A part of a whole as a weight.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies between 0 and 2⁵⁰")]
fn parts_of(part: f64) -> u64 {
    (part * (1_u64 << 50) as f64).round() as u64
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { real(of) / real(to) }
}

#[allow(clippy::cast_precision_loss, reason = "weights and an error estimate")]
const fn real(value: u64) -> f64 {
    value as f64
}
