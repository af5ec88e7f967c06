//! Holds forked children that match so far. Most execute something else at once.

use std::collections::BTreeMap;

use joular_data::model::units::{MonotonicNs, Pid};

/// One that has not executed anything for this long probably never will.
const SETTLED_NS: u64 = 100_000_000;

/// Such children, and since when.
#[derive(Debug, Default)]
pub(super) struct Candidates(BTreeMap<Pid, MonotonicNs>);

impl Candidates {
    pub(super) fn insert(&mut self, pid: Pid, since: MonotonicNs) {
        self.0.insert(pid, since);
    }

    pub(super) fn remove(&mut self, pid: Pid) {
        self.0.remove(&pid);
    }

    /// Takes out those that did not execute anything else.
    pub(super) fn take_settled(&mut self, now: MonotonicNs) -> Vec<Pid> {
        self.0.extract_if(.., |_, since| now.since(*since) >= SETTLED_NS).map(|(pid, _)| pid).collect()
    }
}
