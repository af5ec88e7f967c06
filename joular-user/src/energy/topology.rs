//! Finds the socket and core of a CPU: counters are named by a CPU that may read them, domains by
//! what they measure.

use std::path::Path;

use joular_ebpf::abi::Place;

use super::sysfs::read_value;

/// More CPUs than Linux can be built for (`NR_CPUS` is at most 8192).
const MAX_CPUS: usize = 65_536;

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Physical package; 0 if the kernel does not say, or if the number does not
    /// fit into a [`Place`], which is where the kernel's programs put such CPUs too.
    pub socket: u32,
    /// Die within the package, if the kernel says.
    pub die: Option<u32>,
    /// The kernel's `core_id`, if it says.
    pub core: Option<u32>,
}

impl CpuPlace {
    /// Whether the core's number fits into a [`Place`]: if any does not, the
    /// kernel's programs do not tell cores apart.
    pub fn core_fits(self) -> bool {
        self.core.is_none_or(|core| Place::new(self.socket, core).core() == core)
    }
}

/// The place of `cpu`.
pub fn place_of(sys_root: &Path, cpu: u32) -> CpuPlace {
    place_in(&sys_root.join(format!("devices/system/cpu/cpu{cpu}")))
}

/// The place of the CPU that has this directory (Linux,
/// Documentation/admin-guide/cputopology.rst).
pub fn place_in(cpu: &Path) -> CpuPlace {
    let topology = cpu.join("topology");
    // Some virtual machines have −1 here.
    let number = |name: &str| read_value(&topology.join(name)).ok()?.parse().ok();
    let socket = number("physical_package_id").filter(|socket| Place::new(*socket, 0).socket() == *socket);
    CpuPlace { socket: socket.unwrap_or(0), die: number("die_id"), core: number("core_id") }
}

/// The CPUs of a list as the kernel writes it, e.g. `0-3,8`; `None` if it is
/// none, or longer than any machine's.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?;
        if range.is_empty() || cpus.len().checked_add((range.end() - range.start()) as usize)? >= MAX_CPUS {
            return None;
        }
        cpus.extend(range);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        for (text, expected) in [
            ("0\n", Some(vec![0])),
            ("0,24", Some(vec![0, 24])),
            ("0-2,7-8", Some(vec![0, 1, 2, 7, 8])),
            ("", None),
            ("3-1", None),
            ("0,x", None),
            ("0-4294967295", None),
            ("-1", None),
        ] {
            assert_eq!(parse_cpu_list(text), expected, "{text:?}");
        }
        assert_eq!(parse_cpu_list("0-65535").map(|cpus| cpus.len()), Some(MAX_CPUS));
        assert_eq!(parse_cpu_list("0-65535,1"), None);
    }

    #[test]
    fn a_place_is_what_the_kernel_says_of_it() {
        let sys = tempfile::tempdir().unwrap();
        let topology = sys.path().join("devices/system/cpu/cpu9/topology");
        std::fs::create_dir_all(&topology).unwrap();
        std::fs::write(topology.join("die_id"), "3\n").unwrap();
        for (package, core, expected) in [
            ("1\n", "12\n", CpuPlace { socket: 1, die: Some(3), core: Some(12) }),
            ("-1\n", "0\n", CpuPlace { socket: 0, die: Some(3), core: Some(0) }),
            ("0\n", "none\n", CpuPlace { socket: 0, die: Some(3), core: None }),
            ("255\n", "1023\n", CpuPlace { socket: 255, die: Some(3), core: Some(1023) }),
            ("256\n", "1024\n", CpuPlace { socket: 0, die: Some(3), core: Some(1024) }),
        ] {
            std::fs::write(topology.join("physical_package_id"), package).unwrap();
            std::fs::write(topology.join("core_id"), core).unwrap();
            assert_eq!(place_of(sys.path(), 9), expected);
        }
        assert_eq!(place_of(sys.path(), 8), CpuPlace { socket: 0, die: None, core: None });
    }

    /// Two clusters of a big.LITTLE processor: cores are numbered within their cluster, which older kernels
    /// show as a package; with ACPI, numbers are places in a table.
    #[test]
    fn clusters_and_numbers_of_arm_are_places_too() {
        let sys = tempfile::tempdir().unwrap();
        for (cpu, package, core, cluster, expected) in [
            (0, "0\n", "0\n", "0\n", CpuPlace { socket: 0, die: None, core: Some(0) }),
            (4, "0\n", "4\n", "1\n", CpuPlace { socket: 0, die: None, core: Some(4) }),
            (5, "1\n", "0\n", "1\n", CpuPlace { socket: 1, die: None, core: Some(0) }),
            (6, "-1\n", "0\n", "-1\n", CpuPlace { socket: 0, die: None, core: Some(0) }),
            (7, "36\n", "3312\n", "52\n", CpuPlace { socket: 36, die: None, core: Some(3312) }),
        ] {
            let topology = sys.path().join(format!("devices/system/cpu/cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            for (name, text) in [("physical_package_id", package), ("core_id", core), ("cluster_id", cluster)] {
                std::fs::write(topology.join(name), text).unwrap();
            }
            let place = place_of(sys.path(), cpu);
            assert_eq!(place, expected, "CPU {cpu}");
            assert_eq!(place.core_fits(), cpu != 7, "CPU {cpu}");
        }
    }

    #[test]
    fn cores_fit_as_the_kernels_programs_have_them() {
        for (core, expected) in [(None, true), (Some(0), true), (Some(1023), true), (Some(1024), false)] {
            assert_eq!(CpuPlace { socket: 1, die: None, core }.core_fits(), expected, "{core:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_list_panics_or_grows_without_bound(text in "[0-9,-]{0,30}|.{0,20}") {
            proptest::prop_assert!(parse_cpu_list(&text).unwrap_or_default().len() <= MAX_CPUS);
        }
    }
}
