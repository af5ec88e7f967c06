//! Decides which stacks may be forgotten: an always-on profiler must not keep every call path it
//! ever saw.
//!
//! A stack that is not seen any more is kept for as long again as it was in use. A stack seen once
//! goes soon; a stack that a service uses every minute stays. It goes in two steps, so that no
//! sample is left without its stack. First the kernel side forgets it and would send it anew. User
//! space forgets it only after the window that was running meanwhile, whose samples may still refer
//! to it.

use std::collections::{HashMap, HashSet};

/// Windows for which an unused stack is kept, at least and at most.
const LEAST_WINDOWS: u64 = 10;
const MOST_WINDOWS: u64 = 300;
/// Windows between two sweeps: all stacks need not be checked every window.
const SWEEP_EVERY: u64 = 10;

/// The windows in which a stack was first and last seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    first: u64,
    last: u64,
}

impl Seen {
    fn is_over(self, window: u64) -> bool {
        let in_use = self.last.saturating_sub(self.first);
        window.saturating_sub(self.last) > in_use.clamp(LEAST_WINDOWS, MOST_WINDOWS)
    }
}

/// Stacks to forget at the end of a window, each list ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    /// By the kernel side.
    pub(super) leaving: Vec<u64>,
    /// By user space.
    pub(super) gone: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct StackAge {
    seen: HashMap<u64, Seen>,
    /// Those that the kernel side has forgotten, but user space has not.
    leaving: HashSet<u64>,
}

impl StackAge {
    /// Notes a stack that has just arrived.
    pub(super) fn arrived(&mut self, id: u64, window: u64) {
        self.leaving.remove(&id);
        self.seen.entry(id).or_insert(Seen { first: window, last: window }).last = window;
    }

    /// Notes stacks of a window's samples.
    pub(super) fn used(&mut self, stacks: impl Iterator<Item = u64>, window: u64) {
        for id in stacks {
            if let Some(seen) = self.seen.get_mut(&id) {
                seen.last = window;
            }
        }
    }

    /// Must be called at the end of every window.
    pub(super) fn expired(&mut self, window: u64) -> Expired {
        let mut gone: Vec<u64> = self.leaving.drain().collect();
        gone.sort_unstable();
        if !window.is_multiple_of(SWEEP_EVERY) {
            return Expired { leaving: Vec::new(), gone };
        }
        self.leaving = self.seen.extract_if(|_, seen| seen.is_over(window)).map(|(id, _)| id).collect();
        let mut leaving: Vec<u64> = self.leaving.iter().copied().collect();
        leaving.sort_unstable();
        Expired { leaving, gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves at the end of each of these windows, where anything does.
    fn leaving(age: &mut StackAge, windows: std::ops::Range<u64>) -> Vec<(u64, Vec<u64>)> {
        windows.map(|window| (window, age.expired(window).leaving)).filter(|(_, ids)| !ids.is_empty()).collect()
    }

    #[test]
    fn a_stack_is_kept_for_as_long_again_as_it_was_in_use() {
        let mut age = StackAge::default();
        (1..=3).for_each(|id| age.arrived(id, 0));
        age.used([2].into_iter(), 100);
        age.used([3].into_iter(), 1000);
        assert_eq!(leaving(&mut age, 0..2000), [(20, vec![1]), (210, vec![2]), (1310, vec![3])]);
    }

    #[test]
    fn user_space_forgets_a_window_after_the_kernel_did() {
        let mut age = StackAge::default();
        [2, 1].iter().for_each(|id| age.arrived(*id, 0));
        assert_eq!(age.expired(20), Expired { leaving: vec![1, 2], gone: vec![] });
        assert_eq!(age.expired(21), Expired { leaving: vec![], gone: vec![1, 2] });
        assert_eq!(age.expired(22), Expired::default());
    }

    #[test]
    fn a_stack_that_comes_back_meanwhile_stays() {
        let mut age = StackAge::default();
        [1, 2].iter().for_each(|id| age.arrived(*id, 0));
        assert_eq!(age.expired(20).leaving, [1, 2]);
        age.arrived(1, 21);
        assert_eq!(age.expired(21).gone, [2]);
        assert_eq!(leaving(&mut age, 22..100), [(40, vec![1])]);
    }
}
