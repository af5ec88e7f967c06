//! Keeps who ran in windows whose energy could not be read, until the next good read brings that
//! energy. So it goes to those who ran then, and not to whoever happens to run when it comes.

use std::collections::HashMap;

use super::{claims::Claims, idle::Covered};
use crate::model::units::{Pid, Tid};

/// Threads kept by name; the time of any beyond is kept without names.
const MAX_THREADS: usize = 65_536;

/// A thread from one window to another.
pub(super) type ThreadIdentity = (Pid, Tid, u64);

/// One domain's claims since its last good read.
#[derive(Debug, Default)]
pub(super) struct Missed {
    threads: HashMap<ThreadIdentity, u64>,
    /// Claims of threads beyond the limit.
    nameless: u64,
    other_processes: u64,
    kernel: u64,
    profiler: u64,
    unslotted: u64,
    covered: Covered,
}

impl Missed {
    /// Keeps the claims of a window whose energy is to come. `identities` are
    /// those of the claims' threads.
    pub(super) fn keep(&mut self, claims: &Claims, identities: impl Iterator<Item = ThreadIdentity>, window_ns: u64) {
        for (identity, weight) in identities.zip(&claims.threads).filter(|(_, weight)| **weight > 0) {
            let has_room = self.threads.len() < MAX_THREADS;
            let sum = match self.threads.get_mut(&identity) {
                Some(sum) => sum,
                None if has_room => self.threads.entry(identity).or_default(),
                None => &mut self.nameless,
            };
            *sum = sum.saturating_add(*weight);
        }
        self.other_processes = self.other_processes.saturating_add(claims.other_processes);
        self.kernel = self.kernel.saturating_add(claims.kernel);
        self.profiler = self.profiler.saturating_add(claims.profiler);
        self.unslotted = self.unslotted.saturating_add(claims.unslotted);
        self.covered.window_ns = self.covered.window_ns.saturating_add(window_ns);
        self.covered.cpus.add(claims.cpus);
    }

    /// Adds what was kept to the claims of the window that brings the energy. Threads without a row
    /// in that window claim together. Returns the time that the missed windows covered.
    pub(super) fn claim(mut self, claims: &mut Claims, identities: impl Iterator<Item = ThreadIdentity>) -> Covered {
        for (identity, claim) in identities.zip(&mut claims.threads) {
            *claim = claim.saturating_add(self.threads.remove(&identity).unwrap_or(0));
        }
        claims.failed_reads = self.threads.values().fold(self.nameless, |sum, weight| sum.saturating_add(*weight));
        claims.other_processes = claims.other_processes.saturating_add(self.other_processes);
        claims.kernel = claims.kernel.saturating_add(self.kernel);
        claims.profiler = claims.profiler.saturating_add(self.profiler);
        claims.unslotted = claims.unslotted.saturating_add(self.unslotted);
        self.covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(tids: &[u32]) -> impl Iterator<Item = ThreadIdentity> {
        tids.iter().map(|tid| (Pid(1), Tid(*tid), 0))
    }

    #[test]
    fn threads_that_are_gone_claim_together() {
        let mut missed = Missed::default();
        let window = Claims { threads: vec![10, 20, 30], kernel: 5, ..Claims::default() };
        missed.keep(&window, identities(&[1, 2, 3]), 100);
        missed.keep(&window, identities(&[1, 2, 4]), 100);
        let mut claims = Claims { threads: vec![1, 1], kernel: 1, ..Claims::default() };
        assert_eq!(missed.claim(&mut claims, identities(&[2, 9])).window_ns, 200);
        assert_eq!((claims.threads, claims.failed_reads, claims.kernel), (vec![41, 1], 20 + 30 + 30, 11));
    }

    #[test]
    fn however_long_reads_fail_memory_is_bounded() {
        let mut missed = Missed::default();
        for tid in 0..200_000 {
            missed.keep(&Claims { threads: vec![1], ..Claims::default() }, identities(&[tid]), 1);
        }
        assert_eq!(missed.threads.len(), MAX_THREADS);
        let mut claims = Claims::default();
        missed.claim(&mut claims, identities(&[]));
        assert_eq!(claims.failed_reads, 200_000);
    }
}
