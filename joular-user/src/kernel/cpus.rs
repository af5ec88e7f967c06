//! Lists the CPUs, and where each sits: its socket, its core and the hyper-thread it shares that
//! core with.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use joular_ebpf::abi::Place;

use super::core_types;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub id: u32,
    /// Physical package, 0 if the kernel does not say.
    pub socket: u32,
    /// Physical core, by a number of its own within the socket (`core_id`); 0
    /// if the kernel does not say. [`placed`] says what else it may be.
    pub core: u32,
    /// The first other hyper-thread of the core that is online. A core of more than two threads has
    /// further ones, which are ignored: whether the core is shared matters more than by how many.
    pub sibling: Option<u32>,
}

/// A CPU since it came online. One that went offline and came back is another one, whose events are to
/// be opened anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) cpu: u32,
    begun: u64,
}

/// Which CPUs are online now, and since when. Asked in every window, so no more is read than that.
pub(super) fn lives(cpu_root: &Path) -> Vec<Life> {
    // The kernel makes this folder anew when a CPU comes online: its number is another one then.
    let begun = |cpu: u32| fs::metadata(cpu_root.join(format!("cpu{cpu}/topology"))).map_or(0, |folder| folder.ino());
    online_ids(cpu_root).into_iter().map(|cpu| Life { cpu, begun: begun(cpu) }).collect()
}

/// CPUs that are online now.
pub fn online(cpu_root: &Path) -> Vec<Cpu> {
    let ids = online_ids(cpu_root);
    ids.iter().map(|id| cpu(cpu_root, *id, &ids)).collect()
}

fn online_ids(cpu_root: &Path) -> Vec<u32> {
    let ids = cpu_list(&cpu_root.join("online"));
    if ids.is_empty() { vec![0] } else { ids }
}

/// How many ids CPUs can have, those counted that may come online later.
pub(super) fn possible(cpu_root: &Path) -> u32 {
    let listed = cpu_list(&cpu_root.join("possible")).into_iter().chain(cpu_list(&cpu_root.join("online")));
    listed.max().unwrap_or(0) + 1
}

/// CPUs that are online now, as the programs are told of them. Cores are told
/// apart if wanted and if each fits into a [`Place`]; otherwise the core is the
/// number of its type, 0 unless the processor is hybrid, so that a thread has one
/// slot per socket and type.
pub(super) fn placed(cpu_root: &Path, per_core: bool) -> Vec<Cpu> {
    let mut cpus = online(cpu_root);
    if !per_core || cpus.iter().any(|cpu| Place::new(cpu.socket, cpu.core).core() != cpu.core) {
        let kinds = core_types::kinds(cpu_root);
        cpus.iter_mut().for_each(|cpu| cpu.core = core_types::number_of(&kinds, cpu.id));
    }
    cpus
}

fn cpu(cpu_root: &Path, id: u32, online: &[u32]) -> Cpu {
    let topology = cpu_root.join(format!("cpu{id}/topology"));
    let number = |file: &str| fs::read_to_string(topology.join(file)).ok()?.trim().parse::<u32>().ok();
    let siblings = cpu_list(&topology.join("thread_siblings_list"));
    Cpu {
        id,
        socket: number("physical_package_id").filter(|socket| *socket < 256).unwrap_or(0),
        core: number("core_id").unwrap_or(0),
        sibling: siblings.into_iter().find(|sibling| *sibling != id && online.contains(sibling)),
    }
}

pub(super) fn cpu_list(path: &Path) -> Vec<u32> {
    fs::read_to_string(path).map(|text| parse_cpu_list(&text)).unwrap_or_default()
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

    /// Files below a CPU root, as (path, content).
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    const TWO_SOCKETS_WITH_THREADS: [(&str, &str); 10] = [
        ("online", "0-2"),
        ("cpu0/topology/physical_package_id", "0\n"),
        ("cpu0/topology/core_id", "5\n"),
        ("cpu0/topology/thread_siblings_list", "0,2\n"),
        ("cpu1/topology/physical_package_id", "1\n"),
        ("cpu1/topology/core_id", "5\n"),
        ("cpu1/topology/thread_siblings_list", "1,3\n"),
        ("cpu2/topology/physical_package_id", "0\n"),
        ("cpu2/topology/core_id", "5\n"),
        ("cpu2/topology/thread_siblings_list", "0,2\n"),
    ];

    #[test]
    fn a_cpu_has_its_socket_core_and_the_sibling_that_is_online() {
        let root = root(&TWO_SOCKETS_WITH_THREADS);
        let expected = [
            Cpu { id: 0, socket: 0, core: 5, sibling: Some(2) },
            Cpu { id: 1, socket: 1, core: 5, sibling: None },
            Cpu { id: 2, socket: 0, core: 5, sibling: Some(0) },
        ];
        assert_eq!(online(root.path()), expected);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_socket_and_core_0() {
        let root =
            root(&[("online", "0-1"), ("cpu1/topology/physical_package_id", "-1"), ("cpu1/topology/core_id", "x")]);
        assert_eq!(online(root.path()), [Cpu::default(), Cpu { id: 1, ..Cpu::default() }]);
        assert_eq!(online(&root.path().join("nowhere")), [Cpu::default()]);
    }

    #[test]
    fn there_is_room_for_cpus_that_are_not_online_yet() {
        for (files, expected) in
            [(vec![("online", "0-1"), ("possible", "0-7")], 8), (vec![("online", "0-1")], 2), (vec![], 1)]
        {
            assert_eq!(possible(root(&files).path()), expected, "{files:?}");
        }
    }

    #[test]
    fn cores_are_told_apart_if_wanted_and_if_all_fit() {
        let cores = |root: &tempfile::TempDir, per_core| {
            placed(root.path(), per_core).iter().map(|cpu| cpu.core).collect::<Vec<_>>()
        };
        let small = root(&TWO_SOCKETS_WITH_THREADS);
        assert_eq!((cores(&small, true), cores(&small, false)), (vec![5, 5, 5], vec![0, 0, 0]));
        let large = root(&[("online", "0-1"), ("cpu0/topology/core_id", "1024"), ("cpu1/topology/core_id", "1")]);
        assert_eq!(cores(&large, true), [0, 0]);
    }

    #[test]
    fn a_cpu_that_came_back_is_another_one() {
        let root = root(&TWO_SOCKETS_WITH_THREADS);
        let before = lives(root.path());
        assert_eq!(before.iter().map(|life| life.cpu).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(lives(root.path()), before);
        let folder = root.path().join("cpu1/topology");
        fs::rename(&folder, root.path().join("old")).unwrap();
        fs::create_dir(&folder).unwrap();
        let after = lives(root.path());
        assert_eq!((after[0], after[2]), (before[0], before[2]));
        assert!(after[1] != before[1] && after[1].cpu == 1);
    }
}
