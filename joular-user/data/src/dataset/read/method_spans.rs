//! Finds the windows that a file's rows of methods are sums of.
//!
//! A row says where its span starts and how long it is, and windows follow each other. So the
//! windows of a span are those from its start on, until its length is reached.

use std::collections::BTreeMap;

use super::{decode_ahead, span::Span};
use crate::dataset::{error::Result, store::StoredFile, tables::shared};

/// The spans of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodSpans {
    lengths_ns: BTreeMap<i64, u64>,
    left_ns: u64,
}

pub(crate) fn read(file: Option<&StoredFile>) -> Result<MethodSpans> {
    let mut spans = MethodSpans::default();
    let Some(file) = file else { return Ok(spans) };
    decode_ahead::batches(std::slice::from_ref(file), &Span::default(), |columns| {
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        for row in 0..columns.rows() {
            spans.note(starts.get(row)?, lengths.natural(row)?);
        }
        Ok(())
    })?;
    Ok(spans)
}

impl MethodSpans {
    /// Takes note of a row's `window_start` and `window_ns`.
    pub(crate) fn note(&mut self, start: i64, length_ns: u64) {
        self.lengths_ns.insert(start, length_ns);
    }

    /// Whether the next window begins a span. A window that no row covers is a span of its own.
    pub(crate) fn begins(&mut self, start: i64, length_ns: u64) -> bool {
        let begun = self.lengths_ns.get(&start).copied();
        let begins = begun.is_some() || self.left_ns == 0;
        let left_ns = if begins { begun.unwrap_or(length_ns) } else { self.left_ns };
        self.left_ns = left_ns.saturating_sub(length_ns);
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_windows_until_its_length_is_reached() {
        let mut spans = MethodSpans { lengths_ns: BTreeMap::from([(10, 3_000), (16, 1_000)]), left_ns: 0 };
        let windows = [(10, 1_000), (11, 1_500), (12, 500), (13, 700), (14, 300), (16, 1_000), (17, 1_000)];
        let begins = windows.map(|(start, length_ns)| spans.begins(start, length_ns));
        assert_eq!(begins, [true, false, false, true, true, true, true], "three, then two without a row");
    }
}
