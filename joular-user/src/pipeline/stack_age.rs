//! Which stacks may be forgotten: an always-on profiler must not keep every
//! call path it ever saw.

use std::collections::HashMap;

use crate::events::SampleCount;

/// Windows after which an unused stack is forgotten.
const KEEP_WINDOWS: u64 = 300;
/// Looking through all stacks is not needed every window.
const SWEEP_EVERY: u64 = 30;

#[derive(Debug, Default)]
pub(super) struct StackAge {
    last_used: HashMap<u64, u64>,
}

impl StackAge {
    /// Notes a stack that has just arrived.
    pub(super) fn arrived(&mut self, id: u64, window: u64) {
        self.last_used.insert(id, window);
    }

    pub(super) fn used(&mut self, samples: &[SampleCount], window: u64) {
        for id in samples.iter().flat_map(|sample| [sample.user_stack, sample.kernel_stack]) {
            if let Some(last) = self.last_used.get_mut(&id) {
                *last = window;
            }
        }
    }

    /// Stacks that were not used for long, ascending; they count as gone.
    pub(super) fn expired(&mut self, window: u64) -> Vec<u64> {
        if !window.is_multiple_of(SWEEP_EVERY) {
            return Vec::new();
        }
        let mut expired: Vec<u64> = self
            .last_used
            .iter()
            .filter(|(_, last)| window.saturating_sub(**last) > KEEP_WINDOWS)
            .map(|(id, _)| *id)
            .collect();
        expired.sort_unstable();
        for id in &expired {
            self.last_used.remove(id);
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_stacks_stay_and_unused_ones_go() {
        let mut age = StackAge::default();
        age.arrived(1, 0);
        age.arrived(2, 0);
        age.used(&[SampleCount { user_stack: 1, ..SampleCount::default() }], 200);
        assert_eq!(age.expired(330), [2]);
        assert_eq!(age.expired(510), [1]);
        assert!(age.expired(540).is_empty());
    }
}
