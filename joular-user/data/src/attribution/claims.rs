//! Collects the claims on a domain's energy: the weights of what ran in its place, or of the bytes that were moved.

use super::{
    traffic,
    weights::Weighing,
    work::{Claimant, ClaimedSlice, WindowWork},
};
use crate::model::{
    byte_costs::ByteCosts,
    domain::{DividedBy, Domain},
    policy::Policy,
};

/// Weights that compete for a domain's energy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    /// One per target thread, in the caller's order.
    pub(super) threads: Vec<u64>,
    pub(super) other_processes: u64,
    pub(super) kernel: u64,
    /// joular-bpf's process, and what its programs took of others' time.
    pub(super) profiler: u64,
    pub(super) unslotted: u64,
    /// Threads of windows whose read failed, if they have no row any more.
    pub(super) failed_reads: u64,
    pub(super) cpus: CpuShare,
}

/// How idle the CPUs of a domain were; the `active` policy divides by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuShare {
    pub(super) idle_ns: u64,
    pub(super) elapsed_ns: u64,
}

impl CpuShare {
    pub(super) fn add(&mut self, other: Self) {
        self.idle_ns = self.idle_ns.saturating_add(other.idle_ns);
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
    }
}

impl Claims {
    /// Claims on `domain` of a window's work.
    pub(super) fn on(domain: &Domain, work: &WindowWork, policy: &Policy) -> Self {
        let none = Self { threads: vec![0; work.threads.len()], ..Self::default() };
        match &domain.divided_by {
            DividedBy::CpuWeights | DividedBy::CpuTime | DividedBy::CpuWeightsByCoreType(_) => {
                none.by_cpu_weights(domain, &work.slices, policy)
            }
            DividedBy::Bytes(costs) => none.by_bytes(costs, work),
            DividedBy::Allocation => {
                traffic::by_allocation(none.by_cpu_weights(domain, &work.slices, policy), domain, work)
            }
            DividedBy::CacheMisses => {
                traffic::by_cache_misses(none.by_cpu_weights(domain, &work.slices, policy), domain, work)
            }
        }
    }

    /// A claim is what one's bytes cost, pJ. Without bytes there are no claims; CPU time is not used instead.
    fn by_bytes(mut self, costs: &ByteCosts, work: &WindowWork) -> Self {
        for row in work.moved.iter().flat_map(|moved| &moved.rows) {
            let own = u64::try_from(costs.of(&row.bytes)).unwrap_or(u64::MAX);
            self.claim(row.claimant, own);
        }
        self
    }

    fn by_cpu_weights(mut self, domain: &Domain, slices: &[ClaimedSlice], policy: &Policy) -> Self {
        for claimed in slices.iter().filter(|claimed| is_in(domain, claimed)) {
            let cpu_ns = claimed.slice.cpu_ns;
            self.cpus.elapsed_ns = self.cpus.elapsed_ns.saturating_add(cpu_ns);
            if claimed.claimant == Claimant::Idle {
                self.cpus.idle_ns = self.cpus.idle_ns.saturating_add(cpu_ns);
            }
        }
        weighed(domain, slices, policy, |claimant, weight| self.claim(claimant, weight));
        self
    }

    pub(super) fn claim(&mut self, claimant: Claimant, weight: u64) {
        let own = match claimant {
            Claimant::Thread(position) => self.threads.get_mut(position),
            Claimant::Kernel => Some(&mut self.kernel),
            Claimant::Profiler => Some(&mut self.profiler),
            Claimant::Unslotted => Some(&mut self.unslotted),
            Claimant::OtherProcesses | Claimant::Idle => Some(&mut self.other_processes),
        };
        if let Some(own) = own {
            *own = own.saturating_add(weight);
        }
    }
}

/// Gives the weight of each slice in a domain's place, and of what joular-bpf's programs took of it, to `give`.
pub(crate) fn weighed(domain: &Domain, slices: &[ClaimedSlice], policy: &Policy, mut give: impl FnMut(Claimant, u64)) {
    let here = || slices.iter().filter(|claimed| is_in(domain, claimed));
    let weighing = Weighing::new(&domain.divided_by, policy, here());
    for claimed in here().filter(|claimed| claimed.claimant != Claimant::Idle) {
        let weight = weighing.weigh(claimed);
        give(claimed.claimant, weight.own);
        give(Claimant::Profiler, weight.instrument);
    }
}

pub(super) fn is_in(domain: &Domain, claimed: &ClaimedSlice) -> bool {
    domain.socket.is_none_or(|socket| socket == claimed.place.socket)
        && domain.core.is_none_or(|core| core == claimed.place.core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::{
            moved::{Moved, MovedRow},
            window_report::{Category, ThreadRow},
            work::{Factor, Place, Slice},
        },
        model::{
            domain::{Label, Meter},
            policy::WeightUnit,
            units::{MicroJoules, Tid},
        },
    };

    fn slice(claimant: Claimant, socket: u32, core: u32, cpu_ns: u64) -> ClaimedSlice {
        ClaimedSlice {
            claimant,
            place: Place { socket, core },
            // Nothing but the time is known of what found no slot.
            slice: Slice {
                cpu_ns,
                cycles: if claimant == Claimant::Unslotted { 0 } else { 3 * cpu_ns },
                ..Slice::default()
            },
            factor: Factor::ONE,
        }
    }

    fn work(threads: u32, slices: Vec<ClaimedSlice>) -> WindowWork {
        let thread = |tid| ThreadRow {
            process: 0,
            tid: Tid(tid),
            start_boottime_ns: 0,
            name: "".into(),
            category: Category::Java,
            cpu_ns: 0,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        };
        WindowWork { threads: (0..threads).map(thread).collect(), slices, ..WindowWork::default() }
    }

    #[test]
    fn claims_are_chosen_by_what_a_domain_is_divided_by() {
        let row = |claimant, sent, local, written| MovedRow {
            claimant,
            branch: None,
            bytes: [sent, 0, local, 0, 0, 0, 0, written],
            samples: 0,
        };
        let rows = vec![
            row(Claimant::OtherProcesses, 1, 7, 0),
            row(Claimant::Thread(0), 2, 9, 0),
            row(Claimant::Thread(0), 0, 0, 100),
        ];
        let slices = vec![slice(Claimant::Thread(0), 0, 0, 10), slice(Claimant::Kernel, 0, 0, 20)];
        let work = WindowWork { moved: Some(Moved { rows, ..Moved::default() }), ..work(1, slices) };
        let claims = |divided_by| {
            let domain = Domain { divided_by, ..Domain::new("x", None, "test", Label::Measured, Meter::Power) };
            Claims::on(&domain, &work, &Policy::default())
        };
        let by_cpu = claims(DividedBy::CpuWeights);
        assert_eq!((by_cpu.threads, by_cpu.kernel), (vec![10 * 2_000], 20 * 2_000));
        let costs = ByteCosts { sent_pj: 3, device_written_pj: 5, ..ByteCosts::default() };
        let by_bytes = Claims { threads: vec![2 * 3 + 100 * 5], other_processes: 3, ..Claims::default() };
        assert_eq!(claims(DividedBy::Bytes(costs)), by_bytes);
        assert_eq!(claims(DividedBy::Bytes(ByteCosts::default())), Claims { threads: vec![0], ..Claims::default() });
    }

    #[test]
    fn a_domain_is_claimed_by_what_ran_in_its_place() {
        let slices = vec![
            slice(Claimant::Thread(0), 0, 1, 10),
            slice(Claimant::Thread(0), 1, 1, 20),
            slice(Claimant::Thread(1), 1, 2, 40),
            slice(Claimant::Kernel, 1, 2, 80),
            slice(Claimant::Unslotted, 1, 2, 160),
            slice(Claimant::Idle, 1, 2, 320),
        ];
        let work = work(2, slices);
        for (socket, core, threads, kernel, idle_ns, elapsed_ns) in [
            (None, None, [30, 40], 80, 320, 630),
            (Some(0), None, [10, 0], 0, 0, 10),
            (Some(1), None, [20, 40], 80, 320, 620),
            (Some(1), Some(2), [0, 40], 80, 320, 600),
        ] {
            let domain = Domain { core, ..Domain::new("x", socket, "test", Label::Measured, Meter::Power) };
            let claims = Claims::on(&domain, &work, &Policy::default());
            assert_eq!(claims.threads, threads.map(|ns| ns * 2_000), "{socket:?} {core:?}");
            assert_eq!((claims.kernel, claims.cpus), (kernel * 2_000, CpuShare { idle_ns, elapsed_ns }));
            let cycles = Policy { weight_unit: WeightUnit::Cycles, ..Policy::default() };
            let in_cycles = Claims::on(&domain, &work, &cycles);
            assert_eq!((in_cycles.kernel, in_cycles.unslotted), (3 * claims.kernel, 3 * claims.unslotted));
        }
    }
}
