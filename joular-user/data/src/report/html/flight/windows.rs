//! Keeps the windows of a selection in the order of time, and the energy of each.

use std::collections::HashMap;

use crate::{
    model::units::MicroJoules,
    report::profile::{EnergyRow, WindowSpan},
};

/// The windows of a selection.
#[derive(Debug, Default)]
pub(in crate::report::html) struct Windows {
    /// Begin of each, µs since 1970.
    starts: Vec<i64>,
    /// Not later than the next one's begin.
    ends: Vec<i64>,
    energies: Vec<MicroJoules>,
    /// By run and begin.
    places: HashMap<(usize, i64), usize>,
    /// Whether several were under way at a time: of several hosts or runs.
    pub(super) are_side_by_side: bool,
}

impl Windows {
    pub(in crate::report::html) fn of(mut spans: Vec<WindowSpan>) -> Self {
        spans.sort_by_key(|span| (span.start, span.run));
        let starts: Vec<i64> = spans.iter().map(|span| span.start.0).collect();
        let next = starts.iter().skip(1).copied().chain([i64::MAX]);
        let ends = spans.iter().zip(next).map(|(span, next)| span.end().0.min(next).max(span.start.0)).collect();
        // The wall clock of one that ended may be a little ahead.
        let half = |span: &WindowSpan| i64::try_from(span.length_ns / 2000).unwrap_or(i64::MAX);
        let are_side_by_side =
            spans.windows(2).any(|two| two[1].start.0 < two[0].start.0.saturating_add(half(&two[0])));
        let places = spans.iter().enumerate().map(|(place, span)| ((span.run, span.start.0), place)).collect();
        Self { starts, ends, energies: vec![MicroJoules(0); spans.len()], places, are_side_by_side }
    }

    /// Takes energy that is part of the selection.
    pub(in crate::report::html) fn take(&mut self, row: &EnergyRow) {
        if let Some(place) = self.places.get(&(row.run, row.window_start.0)) {
            self.energies[*place] = self.energies[*place].saturating_add(row.energy);
        }
    }

    #[cfg(test)]
    pub(super) fn set_energies(&mut self, energies: impl Iterator<Item = MicroJoules>) {
        self.energies = energies.collect();
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Begin and end of a window, µs since 1970.
    pub(super) fn span(&self, place: usize) -> (i64, i64) {
        (self.starts[place], self.ends[place])
    }

    pub(super) fn length_us(&self, place: usize) -> u64 {
        self.ends[place].abs_diff(self.starts[place])
    }

    pub(super) fn energy(&self, place: usize) -> MicroJoules {
        self.energies[place]
    }

    /// The places of windows that have a part of a stretch of time.
    pub(super) fn touched(&self, from_us: i64, to_us: i64) -> std::ops::Range<usize> {
        let first = self.ends.partition_point(|end| *end <= from_us);
        let last = self.starts.partition_point(|start| *start < to_us);
        first..last.max(first)
    }
}
