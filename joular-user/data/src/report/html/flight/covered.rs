//! Says in which windows something was under way from begin to end, and in which at all.
//!
//! Events come in any order and in any number, so stretches are not kept: whole windows are counted, and the window at each end
//! of a stretch is cut into 64 slices. A window is covered only if all its slices are, each by one event: never too early.

use super::windows::Windows;

/// How far windows are covered.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    /// By how much the number of events that have a part of a window changes from the one before.
    touched: Vec<i64>,
    /// The same of those that have all of it.
    whole: Vec<i64>,
    /// Slices that are covered.
    slices: Vec<u64>,
}

/// What there is of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
    None,
    Part,
    Whole,
}

impl Covered {
    pub(super) fn of(windows: &Windows) -> Self {
        let count = windows.len();
        Self { touched: vec![0; count + 1], whole: vec![0; count + 1], slices: vec![0; count] }
    }

    /// A stretch of time; one without length is a moment, and covers nothing.
    pub(super) fn add(&mut self, windows: &Windows, from_us: i64, to_us: i64) {
        let touched = windows.touched(from_us, to_us.max(from_us.saturating_add(1)));
        if touched.is_empty() {
            return;
        }
        count(&mut self.touched, touched.clone());
        let (first, last) = (touched.start, touched.end - 1);
        let begins_within = windows.span(first).0 < from_us;
        let ends_within = windows.span(last).1 > to_us;
        let whole = first + usize::from(begins_within)..touched.end - usize::from(ends_within);
        if whole.start < whole.end {
            count(&mut self.whole, whole);
        }
        if begins_within {
            self.slices[first] |= slices(windows.span(first), (from_us, to_us));
        }
        if ends_within {
            self.slices[last] |= slices(windows.span(last), (from_us, to_us));
        }
    }

    pub(super) fn covers(&self) -> impl Iterator<Item = Cover> {
        let (mut touched, mut whole) = (0_i64, 0_i64);
        self.slices.iter().zip(&self.touched).zip(&self.whole).map(move |((slices, more_touched), more_whole)| {
            touched += more_touched;
            whole += more_whole;
            match (touched > 0, whole > 0 || *slices == u64::MAX) {
                (false, _) => Cover::None,
                (true, false) => Cover::Part,
                (true, true) => Cover::Whole,
            }
        })
    }
}

fn count(changes: &mut [i64], places: std::ops::Range<usize>) {
    changes[places.start] += 1;
    changes[places.end] -= 1;
}

/// The slices of a window that are within a stretch.
fn slices((start, end): (i64, i64), (from, to): (i64, i64)) -> u64 {
    let length = i128::from(end) - i128::from(start);
    if length <= 0 {
        return 0;
    }
    let into = |moment: i64| (i128::from(moment) - i128::from(start)).clamp(0, length) * 64;
    let first = u32::try_from((into(from) + length - 1) / length).unwrap_or(64);
    let behind = u32::try_from(into(to) / length).unwrap_or(0);
    let below = |place: u32| 1_u64.checked_shl(place).map_or(u64::MAX, |bit| bit - 1);
    if first < behind { below(behind) & !below(first) } else { 0 }
}
