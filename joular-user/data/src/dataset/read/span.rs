//! Says which windows of a run are read.

use crate::model::units::UnixMicros;

/// A part of a run's time. `None` leaves that end open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub since: Option<UnixMicros>,
    /// The first moment that is too late.
    pub until: Option<UnixMicros>,
}

impl Span {
    pub fn allows(&self, start: UnixMicros) -> bool {
        self.may_have(start, start)
    }

    /// Whether the span may have a window of those that start between these, both included.
    pub fn may_have(&self, first: UnixMicros, last: UnixMicros) -> bool {
        self.since.is_none_or(|since| last >= since) && self.until.is_none_or(|until| first < until)
    }
}
