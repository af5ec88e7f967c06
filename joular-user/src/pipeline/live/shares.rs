//! Names processes that report so much about themselves that a part of it is not taken.

use std::collections::BTreeSet;

use joular_data::{events::LossCount, model::units::Pid};
use joular_ebpf::abi::Loss;

use super::{Live, Run};

/// Processes that are named; one that starts others without end gets no more notices than that.
const MOST_NAMED: usize = 64;

/// Processes that the user has been told of.
#[derive(Debug, Default)]
pub(super) struct Named(BTreeSet<Pid>);

impl Named {
    /// Whether a process is to be named: once, and while there are few.
    pub(super) fn is_new(&mut self, pid: Pid) -> bool {
        self.0.len() < MOST_NAMED && self.0.insert(pid)
    }
}

impl Run<'_> {
    /// Says which JVMs report more collections than are kept of one.
    pub(super) fn name_greedy(&mut self, greedy: BTreeSet<Pid>) {
        let Live { registry, notify, .. } = &mut *self.live;
        for pid in greedy.into_iter().filter(|pid| self.refused.is_new(*pid)) {
            let process = registry.named(pid);
            notify(&format!("{process} reports more collections than a JVM can have: not all of them are recorded"));
        }
    }

    /// Says which processes have used up their shares of the ring, if any has in the window of these losses.
    pub(super) fn name_refused(&mut self, losses: &[LossCount]) {
        if losses.iter().all(|loss| loss.cause != Loss::RingShareUsed.name()) {
            return;
        }
        let Live { banks, registry, notify, .. } = &mut *self.live;
        for (pid, records) in banks.refused_records() {
            if self.refused.is_new(pid) {
                let process = registry.named(pid);
                notify(&format!(
                    "{process} has more new stacks, names or collections than its share of the ring buffer takes: \
                     {records} were lost (lost_ring_share_used)"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_named_once_and_many_are_not() {
        let mut named = Named::default();
        assert!(named.is_new(Pid(1)) && !named.is_new(Pid(1)) && named.is_new(Pid(2)));
        assert_eq!((3..1_000).filter(|pid| named.is_new(Pid(*pid))).count(), MOST_NAMED - 2);
    }
}
