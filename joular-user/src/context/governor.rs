//! Reads the governors that choose frequencies, from `cpufreq/policyN/scaling_governor`.
//!
//! They hardly ever change and each CPU may have a policy of its own. So a window looks at some
//! policies, the next window at the next ones, and what was found before holds for the others.

use std::path::{Path, PathBuf};

use super::{MOST_READS, common, name_in};
use crate::energy::sysfs;

#[derive(Debug)]
pub(super) struct Governors {
    /// File, and what it held.
    policies: Vec<(PathBuf, Option<String>)>,
    next: usize,
}

impl Governors {
    /// Looks at all of them.
    pub(super) fn new(cpu_root: &Path) -> Self {
        let policies = sysfs::numbered(&cpu_root.join("cpufreq"), "policy").unwrap_or_default();
        let read = |(_, policy): (u32, PathBuf)| {
            let file = policy.join("scaling_governor");
            let governor = name_in(&file);
            (file, governor)
        };
        Self { policies: policies.into_iter().map(read).collect(), next: 0 }
    }

    /// Looks at the next ones; returns the governor of all.
    pub(super) fn look(&mut self) -> Option<String> {
        for _ in 0..MOST_READS.min(self.policies.len()) {
            self.next = (self.next + 1) % self.policies.len();
            let (file, governor) = &mut self.policies[self.next];
            *governor = name_in(file);
        }
        common(self.policies.iter().filter_map(|(_, governor)| governor.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fake_tree::FakeTree, *};

    fn write(tree: &FakeTree, policies: std::ops::Range<u32>, governor: &str) {
        policies.for_each(|policy| tree.write(&format!("cpu/cpufreq/policy{policy}/scaling_governor"), governor));
    }

    #[test]
    fn a_change_is_seen_at_once_on_small_machines_and_soon_on_large_ones() {
        for policies in [1, 16, 100] {
            let tree = FakeTree::new();
            write(&tree, 0..policies, "powersave\n");
            let mut governors = Governors::new(tree.roots().cpu);
            assert_eq!(governors.look().as_deref(), Some("powersave"));
            write(&tree, 0..policies, "performance\n");
            let windows = policies.div_ceil(u32::try_from(MOST_READS).unwrap());
            for _ in 1..windows {
                assert_eq!(governors.look().as_deref(), Some("mixed"));
            }
            assert_eq!(governors.look().as_deref(), Some("performance"), "{policies}");
        }
    }

    #[test]
    fn a_policy_that_goes_counts_no_longer() {
        let tree = FakeTree::new();
        write(&tree, 0..1, "powersave\n");
        write(&tree, 1..2, "performance\n");
        let mut governors = Governors::new(tree.roots().cpu);
        assert_eq!(governors.look().as_deref(), Some("mixed"));
        tree.remove("cpu/cpufreq/policy1");
        assert_eq!(governors.look().as_deref(), Some("powersave"));
        tree.remove("cpu/cpufreq");
        assert_eq!(governors.look(), None);
    }
}
