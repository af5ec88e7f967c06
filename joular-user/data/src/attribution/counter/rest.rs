//! Subtracts from a meter the domains that it counts too: from the platform its packages, from a
//! package its cores.
//!
//! The whole and its parts are read one after the other, so in one window the parts may show more
//! than the whole. Then the rest is 0 and the difference is carried, so that rest and parts sum to
//! the whole over time. While any of them cannot be read or is stuck, the rest is not known. It
//! then counts as a failed read too, and comes whole with the window in which all are known again.

use super::{Delta, FaultCause};
use crate::model::{domain::Domain, units::MicroJoules};

/// One domain whose meter counts others too.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    whole: usize,
    parts: Vec<usize>,
    /// By how much the parts ran ahead of the whole, µJ.
    debt: i128,
    /// Whole − parts since the last window in which all of them were known, µJ.
    pending: i128,
    /// Windows since then.
    missed: u32,
    /// Whether the machine was suspended since then.
    was_suspended: bool,
}

impl Rest {
    /// The rests among `domains`. An index that names no other domain, or one
    /// that is a rest itself, takes nothing off: no source makes such a list,
    /// but a recording may hold one.
    pub(super) fn all(domains: &[Domain]) -> Vec<Self> {
        let is_part =
            |whole: usize, part: usize| whole != part && domains.get(part).is_some_and(|domain| domain.less.is_empty());
        let rest = |(whole, domain): (usize, &Domain)| {
            let mut parts: Vec<usize> = domain.less.iter().copied().filter(|part| is_part(whole, *part)).collect();
            parts.sort_unstable();
            parts.dedup();
            Some(Self { whole, parts, debt: 0, pending: 0, missed: 0, was_suspended: false })
                .filter(|rest| !rest.parts.is_empty())
        };
        domains.iter().enumerate().filter_map(rest).collect()
    }

    /// Replaces the whole's ΔE of this window by what remains after its parts.
    pub(super) fn take(&mut self, deltas: &mut [Delta]) {
        let Some(whole) = deltas.get(self.whole).copied() else { return };
        let parts = || self.parts.iter().filter_map(|part| deltas.get(*part));
        let fault_where = |wanted: fn(FaultCause) -> bool| {
            std::iter::once(&whole).chain(parts()).filter_map(|delta| delta.fault).find(|fault| wanted(*fault))
        };
        let taken_off: i128 = parts().map(|part| i128::from(part.measured.0)).sum();
        let (failed, ambiguous) = (fault_where(FaultCause::is_failed_read), fault_where(FaultCause::is_ambiguous));
        self.was_suspended |= fault_where(|fault| fault == FaultCause::Suspended).is_some();
        self.pending = self.pending.saturating_add(i128::from(whole.measured.0) - taken_off);
        let delta = match failed {
            Some(fault) => self.miss(fault),
            None => self.settle(&whole, ambiguous),
        };
        if let Some(slot) = deltas.get_mut(self.whole) {
            *slot = delta;
        }
    }

    fn miss(&mut self, fault: FaultCause) -> Delta {
        self.missed = self.missed.saturating_add(1);
        Delta { fault: Some(fault), ..Delta::default() }
    }

    fn settle(&mut self, whole: &Delta, fault: Option<FaultCause>) -> Delta {
        // A whole of which energy is missing is not behind its parts: that
        // difference is not a skew to be made up for.
        if whole.fault.is_some() {
            self.pending = self.pending.max(0);
        }
        let left = std::mem::take(&mut self.pending).saturating_sub(self.debt);
        self.debt = left.saturating_neg().max(0);
        let measured = MicroJoules(u64::try_from(left.max(0)).unwrap_or(u64::MAX));
        let merged = match std::mem::take(&mut self.missed) {
            0 => 0,
            missed => missed.saturating_add(1),
        };
        let fault = if std::mem::take(&mut self.was_suspended) { Some(FaultCause::Suspended) } else { fault };
        Delta { measured, merged, fault, static_floor: whole.static_floor.map(|floor| floor.min(measured)) }
    }
}

#[cfg(test)]
#[path = "rest_tests.rs"]
mod tests;
