//! Which CPUs there are and which socket each belongs to.

use std::{fs, path::Path};

/// Default location of CPU topology.
pub const CPU_ROOT: &str = "/sys/devices/system/cpu";

/// Parses a kernel CPU list such as `0-3,8`. Malformed parts are skipped; at
/// most 65 536 CPUs are named.
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend((first..=last.min(65_535)).take(65_536));
        }
    }
    cpus
}

/// A CPU that is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub id: u32,
    /// Physical package.
    pub socket: u32,
}

/// CPUs that are online now.
pub fn online(cpu_root: &Path) -> Vec<Cpu> {
    let ids = fs::read_to_string(cpu_root.join("online")).map(|text| parse_cpu_list(&text)).unwrap_or_default();
    let ids = if ids.is_empty() { vec![0] } else { ids };
    ids.into_iter().map(|id| Cpu { id, socket: socket_of(cpu_root, id) }).collect()
}

/// Physical package of a CPU, 0 if the kernel does not say.
fn socket_of(cpu_root: &Path, cpu: u32) -> u32 {
    fs::read_to_string(cpu_root.join(format!("cpu{cpu}/topology/physical_package_id")))
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .filter(|socket| *socket < 256)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_single_numbers() {
        for (text, expected) in [
            ("0", vec![0]),
            ("0-1\n", vec![0, 1]),
            ("0-2,5,7-8", vec![0, 1, 2, 5, 7, 8]),
            ("", vec![]),
            ("x,3-1,2", vec![2]),
        ] {
            assert_eq!(parse_cpu_list(text), expected, "{text:?}");
        }
        assert!(parse_cpu_list("0-4294967295").len() <= 65_536);
    }
}
