//! Divides one domain's energy in one window among claimants. The identity `attributed + static +
//! unattributed = measured` holds by construction: the static share is taken first, and the rest is
//! divided by largest remainder.

use super::{
    claims::Claims,
    split::apportion,
    window_report::{DomainAudit, Unattributed},
};
use crate::model::units::MicroJoules;

/// Fills the audit's shares and returns each thread's energy.
pub(super) fn divide(audit: &mut DomainAudit, static_share: MicroJoules, claims: &Claims) -> Vec<MicroJoules> {
    let static_share = MicroJoules(static_share.0.min(audit.measured.0));
    let dynamic = audit.measured.0 - static_share.0;
    let mut weights = claims.threads.clone();
    weights.extend([claims.other_processes, claims.kernel, claims.profiler, claims.unslotted, claims.failed_reads]);
    let mut parts = apportion(dynamic, &weights);
    let given: u64 = parts.iter().sum();
    let groups = parts.split_off(claims.threads.len());
    audit.static_share = static_share;
    audit.attributed = MicroJoules(parts.iter().sum());
    audit.unattributed = Unattributed {
        other_processes: MicroJoules(groups[0]),
        kernel: MicroJoules(groups[1]),
        profiler: MicroJoules(groups[2]),
        unslotted: MicroJoules(groups[3]),
        failed_reads: MicroJoules(groups[4]),
        suspended: MicroJoules(0),
        // Nobody ran: there is no one to give it to.
        idle: MicroJoules(dynamic - given),
        unshared: MicroJoules(0),
    };
    parts.into_iter().map(MicroJoules).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        attribution::counter::Delta,
        model::domain::{Domain, Label, Meter},
    };

    fn audit(measured: u64) -> DomainAudit {
        let domain = Domain::new("package", None, "test", Label::Measured, Meter::Power);
        DomainAudit::new(&domain, &Delta { measured: MicroJoules(measured), ..Delta::default() })
    }

    #[test]
    fn energy_follows_cpu_time() {
        let mut audit = audit(1_000);
        let claims = Claims { threads: vec![300, 100], other_processes: 400, profiler: 200, ..Claims::default() };
        assert_eq!(divide(&mut audit, MicroJoules(200), &claims), [MicroJoules(240), MicroJoules(80)]);
        assert_eq!(audit.static_share, MicroJoules(200));
        assert_eq!(audit.unattributed.other_processes, MicroJoules(320));
        assert_eq!(audit.unattributed.profiler, MicroJoules(160));
    }

    #[test]
    fn a_machine_that_did_nothing_keeps_its_energy() {
        let mut audit = audit(500);
        divide(&mut audit, MicroJoules(100), &Claims::default());
        assert_eq!(audit.unattributed.idle, MicroJoules(400));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made(measured in 0..u64::MAX / 2, wish: u64, threads in prop::collection::vec(0..u64::MAX / 64, 0..20),
                                   groups in prop::array::uniform5(0..u64::MAX / 64)) {
            let mut audit = audit(measured);
            let [other_processes, kernel, profiler, unslotted, failed_reads] = groups;
            let claims =
                Claims { threads, other_processes, kernel, profiler, unslotted, failed_reads, ..Claims::default() };
            let parts = divide(&mut audit, MicroJoules(wish), &claims);
            prop_assert_eq!(parts.iter().map(|p| p.0).sum::<u64>(), audit.attributed.0);
            prop_assert_eq!(audit.attributed.0 + audit.static_share.0 + audit.unattributed.total().0, measured);
        }
    }
}
