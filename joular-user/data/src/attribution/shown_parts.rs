//! Collects what is shown beside a domain's energy and already counted in it: parts that have
//! counters of their own, and the same energy by another counter.
//!
//! Parts of one kind are shown as their sum, those of a part as the whole's. A figure that is not
//! certain, or holds another window's energy too, makes the sum unknown.

use super::{
    window_report::{DomainAudit, Part, Parts},
    work::DomainWork,
};
use crate::model::{
    domain::{Domain, Role},
    units::MicroJoules,
};

/// What a domain is beside another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beside {
    Part(Part),
    Check,
}

/// For each domain, the index of the domain that it is shown beside, and as what; none if it is
/// counted itself, or cannot be shown.
pub fn places(domains: &[Domain]) -> Vec<Option<(usize, Beside)>> {
    let place = |domain: &Domain| match domain.role {
        Role::Shared | Role::Unshared => None,
        Role::Part { of } => Some((whole(domains, of)?, Beside::Part(Part::of(&domain.name)?))),
        Role::Check { of } => counted(domains, of).then_some((of, Beside::Check)),
    };
    domains.iter().map(place).collect()
}

fn counted(domains: &[Domain], index: usize) -> bool {
    domains.get(index).is_some_and(|domain| matches!(domain.role, Role::Shared | Role::Unshared))
}

/// The counted domain that a part belongs to; it follows parts of parts.
fn whole(domains: &[Domain], mut of: usize) -> Option<usize> {
    // No chain is longer than the list, unless it is a circle.
    for _ in 0..domains.len() {
        match domains.get(of)?.role {
            Role::Shared | Role::Unshared => return Some(of),
            Role::Part { of: next } => of = next,
            Role::Check { .. } => return None,
        }
    }
    None
}

/// Fills in what is shown beside the domain at index `of`.
pub(super) fn show(audit: &mut DomainAudit, of: usize, places: &[Option<(usize, Beside)>], work: &[DomainWork]) {
    let mine = places.iter().zip(work).filter_map(|(place, work)| match place {
        Some((whole, beside)) if *whole == of => Some((*beside, energy(work))),
        _ => None,
    });
    let mut found: Vec<(Beside, Option<MicroJoules>)> = Vec::new();
    for (beside, energy) in mine {
        match found.iter_mut().find(|(known, _)| *known == beside) {
            Some((_, sum)) => *sum = sum.zip(energy).map(|(sum, energy)| sum.saturating_add(energy)),
            None => found.push((beside, energy)),
        }
    }
    audit.parts = Parts::default();
    for (beside, energy) in found {
        match beside {
            Beside::Part(part) => audit.parts.set(part, energy),
            Beside::Check => audit.check = energy,
        }
    }
}

fn energy(work: &DomainWork) -> Option<MicroJoules> {
    (work.delta.fault.is_none() && work.delta.merged == 0).then_some(work.delta.measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::counter::Delta,
        model::domain::{FaultCause, Label, Meter},
    };

    fn domain(name: &str, role: Role) -> Domain {
        Domain { role, ..Domain::new(name, None, "test", Label::Measured, Meter::Power) }
    }

    fn work(measured: u64) -> DomainWork {
        DomainWork { delta: Delta { measured: MicroJoules(measured), ..Delta::default() }, ..DomainWork::default() }
    }

    fn shown(domains: &[Domain], work: &[DomainWork]) -> DomainAudit {
        let mut audit = DomainAudit::new(&domains[0], &work[0].delta);
        show(&mut audit, 0, &places(domains), work);
        audit
    }

    #[test]
    fn parts_of_one_kind_are_summed_and_parts_of_parts_are_the_wholes() {
        let part = |name: &str, of| domain(name, Role::Part { of });
        let domains = [
            domain("machine", Role::Shared),
            part("package", 0),
            part("core", 1),
            part("core", 1),
            part("gpu0", 0),
            part("gpu-nvidia0", 0),
            part("soc", 0),
            part("network", 0),
            part("disk", 0),
        ];
        let audit = shown(&domains, &[90, 50, 10, 20, 3, 4, 5, 6, 7].map(work));
        let figures = Part::ALL.map(|part| audit.parts.get(part).map(|energy| energy.0));
        assert_eq!(figures, [Some(50), Some(30), None, None, Some(7), Some(6), Some(7)]);
    }

    #[test]
    fn a_figure_that_is_not_certain_makes_the_sum_unknown() {
        let core = || domain("core", Role::Part { of: 0 });
        let domains = [domain("package", Role::Shared), core(), core(), domain("package", Role::Check { of: 0 })];
        let faulty = |fault| DomainWork { delta: Delta { fault: Some(fault), ..Delta::default() }, ..work(0) };
        let merged = DomainWork { delta: Delta { merged: 2, ..work(9).delta }, ..work(0) };
        for (second, check) in [(faulty(FaultCause::Gone), merged), (work(5), faulty(FaultCause::Jumped))] {
            let is_known = second.delta.fault.is_none();
            let audit = shown(&domains, &[work(9), work(4), second, check]);
            assert_eq!(audit.parts.get(Part::Core).is_some(), is_known);
            assert_eq!(audit.check, None);
        }
    }

    #[test]
    fn roles_that_lead_nowhere_or_in_circles_are_shown_nowhere() {
        let domains = [
            domain("package", Role::Shared),
            domain("core", Role::Part { of: 1 }),
            domain("core", Role::Part { of: 99 }),
            domain("core", Role::Part { of: 4 }),
            domain("package", Role::Check { of: 1 }),
        ];
        assert_eq!(places(&domains), [None, None, None, None, None]);
    }
}
