//! Says which windows of a run are read.

use std::sync::Arc;

use super::marks::PhaseWindows;
use crate::model::units::UnixMicros;

/// A part of a run's time. `None` leaves that end open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub since: Option<UnixMicros>,
    /// The first moment that is too late.
    pub until: Option<UnixMicros>,
    /// `None`: whatever the run was doing.
    pub within: Option<Stretches>,
}

impl Span {
    pub fn allows(&self, start: UnixMicros) -> bool {
        self.may_have(start, start) && self.within.as_ref().is_none_or(|within| within.have(start))
    }

    /// Whether the span may have a window of those that start between these, both included.
    pub fn may_have(&self, first: UnixMicros, last: UnixMicros) -> bool {
        self.since.is_none_or(|since| last >= since) && self.until.is_none_or(|until| first < until)
    }
}

/// Stretches of time, apart from each other and in order: a window belongs to one if it starts after the first moment
/// and not after the second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches(Arc<[(UnixMicros, UnixMicros)]>);

impl Stretches {
    /// All that these phases cover, however they overlap.
    pub(crate) fn of<'a>(phases: impl Iterator<Item = &'a PhaseWindows>) -> Self {
        let mut each: Vec<_> = phases.map(|phase| (phase.after, phase.last.unwrap_or(UnixMicros(i64::MAX)))).collect();
        each.sort_unstable();
        let mut apart: Vec<(UnixMicros, UnixMicros)> = Vec::with_capacity(each.len());
        for (after, last) in each {
            match apart.last_mut() {
                Some(before) if after <= before.1 => before.1 = before.1.max(last),
                _ => apart.push((after, last)),
            }
        }
        Self(apart.into())
    }

    /// All windows that start at the first moment or later, and before the second one, of any of these pairs. They are in
    /// order, and apart.
    pub(crate) fn between(times: &[(UnixMicros, UnixMicros)]) -> Self {
        let before = |moment: UnixMicros| UnixMicros(moment.0.saturating_sub(1));
        Self(times.iter().map(|(begin, end)| (before(*begin), before(*end))).collect())
    }

    fn have(&self, start: UnixMicros) -> bool {
        let begun = self.0.partition_point(|(after, _)| *after < start);
        begun > 0 && self.0.get(begun - 1).is_some_and(|(_, last)| start <= *last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn phase(after: i64, last: Option<i64>) -> PhaseWindows {
        let (name, path) = ("a".into(), "a".into());
        let (after, last) = (UnixMicros(after), last.map(UnixMicros));
        PhaseWindows { name, path, after, last, begun: after, ended: last }
    }

    #[test]
    fn a_window_at_the_begin_is_not_in_the_phase_and_one_at_the_end_is() {
        let stretches = Stretches::of([phase(3, Some(5)), phase(8, None)].iter());
        let within: Vec<i64> = (0..12).filter(|start| stretches.have(UnixMicros(*start))).collect();
        assert_eq!(within, [4, 5, 9, 10, 11]);
        assert!(!Stretches::of([].iter()).have(UnixMicros(0)));
    }

    #[test]
    fn windows_between_moments_start_at_the_first_one_or_later_and_before_the_second_one() {
        let times = [(2, 4), (4, 5), (8, 8)].map(|(begin, end)| (UnixMicros(begin), UnixMicros(end)));
        let stretches = Stretches::between(&times);
        let within: Vec<i64> = (0..12).filter(|start| stretches.have(UnixMicros(*start))).collect();
        assert_eq!(within, [2, 3, 4]);
        assert!(!Stretches::between(&[]).have(UnixMicros(0)));
    }

    proptest! {
        #[test]
        fn stretches_have_what_any_phase_has(
            phases in proptest::collection::vec((0_i64..40, proptest::option::of(0_i64..20)), 0..8),
            start in 0_i64..70,
        ) {
            let phases: Vec<_> = phases.iter().map(|(after, long)| phase(*after, long.map(|long| after + long))).collect();
            let start = UnixMicros(start);
            prop_assert_eq!(Stretches::of(phases.iter()).have(start), phases.iter().any(|phase| phase.has(start)));
        }
    }
}
