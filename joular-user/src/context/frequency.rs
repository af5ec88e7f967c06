//! Reads how fast the busy CPUs run, from `cpuN/cpufreq/scaling_cur_freq`.
//!
//! It is asked where the processor does not count by itself ([`super::aperf`]). The figure is of the
//! moment (on x86 the kernel takes it from APERF and MPERF over the last tick).
//! Idle CPUs have none that means anything, and asking for it may wake them. So only CPUs that were
//! busy in the window are asked, the busiest first, and count by their busy time.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use joular_data::events::CpuTimes;

use super::MOST_READS;
use crate::energy::sysfs;

/// No processor is faster: 100 GHz.
const MOST_KHZ: u64 = 100_000_000;

/// Kernels before 5.18 may sleep 10 ms in a read.
const MOST_TIME: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Frequency {
    cpu_root: PathBuf,
    is_known: bool,
}

impl Frequency {
    pub(super) fn new(cpu_root: &Path) -> Self {
        let cpus = sysfs::numbered(cpu_root, "cpu").unwrap_or_default();
        let is_known = cpus.iter().any(|(_, cpu)| cpu.join("cpufreq/scaling_cur_freq").exists());
        Self { cpu_root: cpu_root.to_owned(), is_known }
    }

    /// Mean over the busiest CPUs, by busy time.
    pub(super) fn mean_khz(&self, cpus: &[CpuTimes]) -> Option<u64> {
        if !self.is_known {
            return None;
        }
        let begin = Instant::now();
        let (mut sum, mut all_ns) = (0_u128, 0_u128);
        for cpu in busiest(cpus) {
            let path = self.cpu_root.join(format!("cpu{}/cpufreq/scaling_cur_freq", cpu.cpu));
            if let Some(khz) = sysfs::read_value(&path).ok().and_then(|text| khz(&text)) {
                sum += u128::from(khz) * u128::from(cpu.busy_ns);
                all_ns += u128::from(cpu.busy_ns);
            }
            if begin.elapsed() > MOST_TIME {
                break;
            }
        }
        sum.checked_div(all_ns).and_then(|mean| u64::try_from(mean).ok())
    }
}

fn busiest(cpus: &[CpuTimes]) -> Vec<&CpuTimes> {
    let mut busy: Vec<&CpuTimes> = cpus.iter().filter(|cpu| cpu.busy_ns > 0).collect();
    busy.sort_by_key(|cpu| (std::cmp::Reverse(cpu.busy_ns), cpu.cpu));
    busy.truncate(MOST_READS);
    busy
}

/// A driver that does not know says `<unknown>`, and one that fails 0.
fn khz(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|khz| (1..=MOST_KHZ).contains(khz))
}

#[cfg(test)]
mod tests {
    use super::{super::fake_tree::FakeTree, *};

    fn cpu(cpu: u32, busy_ns: u64) -> CpuTimes {
        CpuTimes { cpu, busy_ns, ..CpuTimes::default() }
    }

    #[test]
    fn busy_cpus_count_by_their_time_and_idle_ones_not_at_all() {
        let tree = FakeTree::new();
        for (id, khz) in [(0, "3000000\n"), (1, "1000000\n"), (2, "800000\n"), (3, "<unknown>\n")] {
            tree.write(&format!("cpu/cpu{id}/cpufreq/scaling_cur_freq"), khz);
        }
        let frequency = Frequency::new(tree.roots().cpu);
        assert_eq!(frequency.mean_khz(&[cpu(0, 300), cpu(1, 100), cpu(2, 0), cpu(3, 900)]), Some(2_500_000));
        assert_eq!(frequency.mean_khz(&[cpu(2, 0)]), None, "nothing ran");
        assert_eq!(frequency.mean_khz(&[cpu(9, 1)]), None, "a CPU that is gone");
    }

    /// Clusters share a policy, to which each CPU has a link (Linux, Documentation/admin-guide/pm/cpufreq.rst).
    #[test]
    fn cpus_of_a_cluster_run_at_its_frequency() {
        let tree = FakeTree::new();
        let root = tree.roots().cpu.to_owned();
        for (policy, cpus, khz) in [(0, [0, 1], "1800000\n"), (4, [4, 5], "2400000\n")] {
            tree.write(&format!("cpu/cpufreq/policy{policy}/scaling_cur_freq"), khz);
            tree.write(&format!("cpu/cpufreq/policy{policy}/related_cpus"), format!("{} {}\n", cpus[0], cpus[1]));
            for id in cpus {
                tree.write(&format!("cpu/cpu{id}/cpu_capacity"), "1024\n");
                std::os::unix::fs::symlink(format!("../cpufreq/policy{policy}"), root.join(format!("cpu{id}/cpufreq")))
                    .unwrap();
            }
        }
        let frequency = Frequency::new(&root);
        assert_eq!(frequency.mean_khz(&[cpu(0, 100), cpu(1, 0), cpu(4, 0), cpu(5, 0)]), Some(1_800_000));
        assert_eq!(frequency.mean_khz(&[cpu(0, 50), cpu(1, 50), cpu(4, 100), cpu(5, 100)]), Some(2_200_000));
    }

    #[test]
    fn of_many_cpus_the_busiest_are_asked() {
        let cpus: Vec<CpuTimes> = (0..256).map(|id| cpu(id, u64::from(id % 100))).collect();
        let asked: Vec<u32> = busiest(&cpus).iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(asked.len(), MOST_READS);
        assert_eq!(asked[..4], [99, 199, 98, 198]);
    }

    #[test]
    fn frequencies_are_figures_that_a_processor_can_have() {
        for (text, expected) in [
            ("2400000\n", Some(2_400_000)),
            ("0", None),
            ("", None),
            ("-1", None),
            ("100000001", None),
            ("99999999999999999999", None),
            ("2400000 kHz", None),
        ] {
            assert_eq!(khz(text), expected, "{text:?}");
        }
    }
}
