//! Says what an allocated byte of a JVM is charged for its collector, by the window in which it was allocated.
//!
//! A byte counts for all collections from its allocation to the one that collects it, so several windows charge it. How
//! far charges may be off depends on what each sampled object stands for in all of these windows together: they show the
//! same object, and not one each. So rates are summed from the last window to the first, as far as collections reach back.

use std::collections::BTreeMap;

use super::ChargeBy;
use crate::{
    attribution::collector::CollectionKind,
    model::units::{MicroJoules, UnixMicros},
};

/// A JVM's charges and collections in a window, of all its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowCharges {
    /// All that is charged.
    pub(super) charged: MicroJoules,
    /// Of young collections.
    pub(super) young: MicroJoules,
    pub(super) since_young: Bytes,
    pub(super) since_old: Bytes,
    /// Allocated in the window, where that counts.
    pub(super) in_window: u64,
    /// Share of the window that was left when the last collection in it ended, of any kind and of the whole heap.
    pub(super) left: Option<f64>,
    pub(super) left_by_old: Option<f64>,
}

/// Bytes that count for a collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bytes {
    pub(super) allocated: u64,
    pub(super) survived: u64,
}

impl Bytes {
    pub(super) fn add(&mut self, allocated: u64, survived: u64) {
        self.allocated = self.allocated.saturating_add(allocated);
        self.survived = self.survived.saturating_add(survived);
    }

    /// µJ per allocated byte, and per byte that survived: one of them is 0.
    fn rates(self, energy: f64, by: ChargeBy) -> [f64; 2] {
        match by {
            ChargeBy::Survived if self.survived > 0 => [0.0, per(energy, self.survived)],
            _ => [per(energy, self.allocated), 0.0],
        }
    }
}

impl WindowCharges {
    /// Notes that a collection ended when this share of the window was left.
    pub(super) fn end(&mut self, kind: CollectionKind, left: f64) {
        let least = |known: Option<f64>| Some(known.map_or(left, |known| known.min(left)));
        self.left = least(self.left);
        if kind == CollectionKind::Old {
            self.left_by_old = least(self.left_by_old);
        }
    }

    /// µJ per byte: of young collections, of the whole heap, and of what is allocated meanwhile.
    fn rates(&self, by: ChargeBy) -> ([f64; 2], [f64; 2], f64) {
        let young = if self.since_young.allocated > 0 { self.young.0.min(self.charged.0) } else { 0 };
        let (young, rest) = (real(young), real(self.charged.0.saturating_sub(young)));
        match (self.since_old.allocated, self.in_window) {
            (0, 0) => (self.since_young.rates(young + rest, by), [0.0; 2], 0.0),
            (0, in_window) => (self.since_young.rates(young, by), [0.0; 2], per(rest, in_window)),
            _ => (self.since_young.rates(young, by), self.since_old.rates(rest, by), 0.0),
        }
    }
}

/// What bytes of a JVM are charged.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(BTreeMap<UnixMicros, Rate>);

/// µJ per byte.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Of what was allocated in the window, and in windows before it back to the next one that is known.
    allocated: f64,
    allocated_before: f64,
    /// Of what a collection in the window showed to have survived.
    survived: f64,
}

impl Rates {
    pub(super) fn of(windows: &BTreeMap<UnixMicros, WindowCharges>, by: ChargeBy) -> Self {
        // What later windows charge for what is there now.
        let (mut young, mut old, mut survived) = (0.0, 0.0, 0.0);
        let rate = |(start, window): (&UnixMicros, &WindowCharges)| {
            let ([by_young, survived_young], [by_old, survived_old], in_window) = window.rates(by);
            let here = in_window
                + by_young
                + by_old
                + window.left.unwrap_or(1.0) * young
                + window.left_by_old.unwrap_or(1.0) * old;
            young = by_young + if window.left.is_some() { 0.0 } else { young };
            old = by_old + if window.left_by_old.is_some() { 0.0 } else { old };
            survived = survived_old + if window.left_by_old.is_some() { 0.0 } else { survived };
            let rate = Rate { allocated: here, allocated_before: young + old, survived: survived_young + survived };
            (*start, rate)
        };
        Self(windows.iter().rev().map(rate).collect())
    }

    /// Of what was allocated in a window.
    pub(super) fn allocated(&self, window: UnixMicros) -> f64 {
        let next = self.0.range(window..).next();
        next.map_or(0.0, |(start, rate)| if *start == window { rate.allocated } else { rate.allocated_before })
    }

    /// Of what a collection in a window showed to have survived.
    pub(super) fn survived(&self, window: UnixMicros) -> f64 {
        self.0.get(&window).map_or(0.0, |rate| rate.survived)
    }
}

fn per(energy: f64, bytes: u64) -> f64 {
    if bytes > 0 { energy / real(bytes) } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
const fn real(value: u64) -> f64 {
    value as f64
}
