//! Reads how long the hypervisor kept virtual CPUs waiting, from `/proc/stat`.
//!
//! The first line sums over all CPUs, in ticks of user space (10 ms): `cpu user nice system idle
//! iowait irq softirq steal …` (Linux, Documentation/filesystems/proc.rst). The kernel makes the
//! whole file for a reader of one line, so it is read only where there is a hypervisor. On x86,
//! `/proc/cpuinfo` says so.

use std::path::{Path, PathBuf};

use crate::energy::sysfs;

/// Clock ticks: 100 per second on every Linux port (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// The line is shorter.
const LINE_BYTES: u64 = 1024;
/// Flags of the first CPU end before.
const CPUINFO_BYTES: u64 = 16 * 1024;

#[derive(Debug)]
pub(super) struct Steal {
    /// `None` without a hypervisor.
    file: Option<PathBuf>,
    last: Option<u64>,
}

impl Steal {
    pub(super) fn new(proc_root: &Path) -> Self {
        let cpuinfo = sysfs::read_start(&proc_root.join("cpuinfo"), CPUINFO_BYTES).unwrap_or_default();
        let file = may_be_virtual(&cpuinfo).then(|| proc_root.join("stat"));
        let last = file.as_deref().and_then(read);
        Self { file, last }
    }

    /// Since the last call; 0 without a hypervisor, `None` if it cannot be read.
    pub(super) fn since_last_ns(&mut self) -> Option<u64> {
        let Some(file) = &self.file else { return Some(0) };
        let now = read(file);
        let before = std::mem::replace(&mut self.last, now);
        // Kernels were known to count back a little.
        let ticks = now?.saturating_sub(before?);
        ticks.checked_mul(TICK_NS)
    }
}

/// Whether there may be a hypervisor: other processors than x86 do not say.
fn may_be_virtual(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags"));
    flags.is_none_or(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

fn read(file: &Path) -> Option<u64> {
    ticks(&sysfs::read_start(file, LINE_BYTES).ok()?)
}

fn ticks(stat: &str) -> Option<u64> {
    let (line, _) = stat.split_once('\n')?;
    line.strip_prefix("cpu ")?.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{super::fake_tree::FakeTree, *};

    #[test]
    fn steal_is_the_eighth_figure_of_the_first_line() {
        for (stat, expected) in [
            ("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n", Some(80)),
            ("cpu  10 20 30 40 50 60 70\n", None),
            ("cpu  10 20 30 40 50 60 70 8", None),
            ("cpu0 1 2 3 4 5 6 7 8 9 10\n", None),
            ("cpu  1 2 3 4 5 6 7 -8 9\n", None),
            ("cpu  1 2 3 4 5 6 7 99999999999999999999 9\n", None),
            ("", None),
        ] {
            assert_eq!(ticks(stat), expected, "{stat:?}");
        }
    }

    #[test]
    fn only_virtual_machines_are_asked() {
        for (cpuinfo, expected) in [
            ("processor : 0\nflags\t\t: fpu hypervisor avx\n", true),
            ("processor : 0\nflags\t\t: fpu hypervisors avx\n", false),
            ("processor : 0\nCPU implementer : 0x41\n", true),
        ] {
            assert_eq!(may_be_virtual(cpuinfo), expected, "{cpuinfo}");
        }
    }

    #[test]
    fn each_window_has_what_was_stolen_in_it() {
        let tree = FakeTree::new();
        let stat = |steal: &str| tree.write("proc/stat", format!("cpu  1 2 3 4 5 6 7 {steal} 0 0\n"));
        stat("100");
        let mut found = Steal::new(tree.roots().proc);
        let windows = ["103", "103", "101", "x", "200", "201"].map(|steal| {
            stat(steal);
            found.since_last_ns()
        });
        let ms = |ms: u64| Some(ms * 1_000_000);
        assert_eq!(windows, [ms(30), ms(0), ms(0), None, None, ms(10)]);
    }
}
