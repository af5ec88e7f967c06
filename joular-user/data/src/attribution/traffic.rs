//! Collects the claims on the energy of memory by its traffic, where that is asked for: by bytes allocated, or by cache
//! misses.
//!
//! What is known of a thread is not known by socket. Of a domain of one socket a thread claims in proportion to the part
//! of its CPU time that it had there.

use std::collections::BTreeMap;

use super::{
    claims::{Claims, is_in},
    split::apportion,
    work::{Claimant, WindowWork},
};
use crate::model::{counter::Counter, domain::Domain};

/// Divides among targets' threads by the bytes that they allocated what they claim together by CPU time. Only targets'
/// allocations are known, so the groups keep what they claim. Where nobody allocated, time decides.
pub(super) fn by_allocation(mut by_time: Claims, domain: &Domain, work: &WindowWork) -> Claims {
    let mut allocated = vec![0_u64; by_time.threads.len()];
    for row in &work.allocations {
        if let Some(sum) = allocated.get_mut(row.thread) {
            *sum = sum.saturating_add(row.bytes);
        }
    }
    let places = Places::of(domain, work);
    let weights: Vec<u64> =
        allocated.iter().enumerate().map(|(thread, bytes)| places.part(Claimant::Thread(thread), *bytes)).collect();
    let together = by_time.threads.iter().fold(0, |sum: u64, claim| sum.saturating_add(*claim));
    if weights.iter().any(|weight| *weight > 0) {
        by_time.threads = apportion(together, &weights);
    }
    by_time
}

/// Divides by cache misses what all claim together by CPU time. Where none were counted, time decides.
pub(super) fn by_cache_misses(mut by_time: Claims, domain: &Domain, work: &WindowWork) -> Claims {
    let places = Places::of(domain, work);
    let mut misses = Claims { threads: vec![0; by_time.threads.len()], ..Claims::default() };
    let counted = work.counts.iter().flat_map(|counts| {
        let at = counts.counters.iter().position(|counter| *counter == Counter::CacheMisses);
        at.into_iter().flat_map(|at| counts.rows.iter().map(move |row| (row.claimant, row.counts.get(at).copied())))
    });
    for (claimant, count) in counted {
        misses.claim(claimant, places.part(claimant, count.unwrap_or(0)));
    }
    let mut weights = misses.threads;
    weights.extend([misses.other_processes, misses.kernel, misses.profiler]);
    if weights.iter().all(|weight| *weight == 0) {
        return by_time;
    }
    let claims = by_time.threads.iter().chain([&by_time.other_processes, &by_time.kernel, &by_time.profiler]);
    let together = claims.fold(0, |sum: u64, claim| sum.saturating_add(*claim));
    let mut parts = apportion(together, &weights);
    let groups = parts.split_off(by_time.threads.len());
    by_time.threads = parts;
    (by_time.other_processes, by_time.kernel, by_time.profiler) = (groups[0], groups[1], groups[2]);
    by_time
}

/// CPU time of each claimant in a domain's place, and everywhere.
struct Places(BTreeMap<Claimant, [u64; 2]>);

impl Places {
    fn of(domain: &Domain, work: &WindowWork) -> Self {
        let mut times: BTreeMap<Claimant, [u64; 2]> = BTreeMap::new();
        for claimed in &work.slices {
            let [here, all] = times.entry(claimed.claimant).or_default();
            *all = all.saturating_add(claimed.slice.cpu_ns);
            if is_in(domain, claimed) {
                *here = here.saturating_add(claimed.slice.cpu_ns);
            }
        }
        Self(times)
    }

    /// The part of an amount that counts for the domain's place.
    fn part(&self, claimant: Claimant, amount: u64) -> u64 {
        let [here, all] = self.0.get(&claimant).copied().unwrap_or_default();
        let part = (u128::from(amount) * u128::from(here)).checked_div(u128::from(all));
        part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::{
            allocated::AllocationRow,
            counts::{CountRow, Counts},
            work::{ClaimedSlice, Factor, Place, Slice},
        },
        model::domain::{Label, Meter},
        stacks::BranchIndex,
    };

    fn memory(socket: u32) -> Domain {
        Domain::new("dram", Some(socket), "test", Label::Measured, Meter::Power)
    }

    /// The first thread runs on both sockets, the second on socket 1, the kernel on socket 0.
    fn work() -> WindowWork {
        let slice = |claimant, socket, cpu_ns| ClaimedSlice {
            claimant,
            place: Place { socket, core: 0 },
            slice: Slice { cpu_ns, ..Slice::default() },
            factor: Factor::ONE,
        };
        let slices = vec![
            slice(Claimant::Thread(0), 0, 100),
            slice(Claimant::Thread(0), 1, 300),
            slice(Claimant::Thread(1), 1, 50),
            slice(Claimant::Kernel, 0, 70),
        ];
        WindowWork { slices, ..WindowWork::default() }
    }

    fn by_time(threads: [u64; 2], kernel: u64) -> Claims {
        Claims { threads: threads.to_vec(), kernel, ..Claims::default() }
    }

    #[test]
    fn threads_share_their_claims_by_what_they_allocated_and_the_others_keep_theirs() {
        let row = |thread, bytes| AllocationRow::new(thread, BranchIndex(0), bytes, 1);
        let work = WindowWork { allocations: vec![row(0, 300), row(0, 100), row(1, 100)], ..work() };
        // Of the first thread's 400 bytes a quarter is socket 0's.
        assert_eq!(by_allocation(by_time([100, 0], 70), &memory(0), &work), by_time([100, 0], 70));
        assert_eq!(by_allocation(by_time([300, 100], 0), &memory(1), &work), by_time([300, 100], 0));
        assert_eq!(by_allocation(by_time([100, 300], 0), &memory(1), &work), by_time([300, 100], 0));
        let nothing = WindowWork { allocations: Vec::new(), ..work };
        assert_eq!(by_allocation(by_time([100, 300], 5), &memory(1), &nothing), by_time([100, 300], 5));
    }

    #[test]
    fn everybody_claims_by_misses() {
        let row = |claimant, misses| CountRow { claimant, counts: vec![9, misses] };
        let rows = vec![row(Claimant::Thread(0), 400), row(Claimant::Thread(1), 700), row(Claimant::Kernel, 300)];
        let counters = vec![Counter::Cycles, Counter::CacheMisses];
        let work = WindowWork { counts: Some(Counts { counters, rows }), ..work() };
        // On socket 0: 100 of the first thread and 300 of the kernel; on socket 1: 300 and 700.
        assert_eq!(by_cache_misses(by_time([300, 0], 100), &memory(0), &work), by_time([100, 0], 300));
        assert_eq!(by_cache_misses(by_time([900, 100], 0), &memory(1), &work), by_time([300, 700], 0));
        let counted_otherwise = Counts { counters: vec![Counter::Cycles], rows: Vec::new() };
        let without = WindowWork { counts: Some(counted_otherwise), ..work };
        assert_eq!(by_cache_misses(by_time([900, 100], 7), &memory(1), &without), by_time([900, 100], 7));
    }
}
