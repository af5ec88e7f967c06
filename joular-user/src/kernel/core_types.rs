//! Tells the types of cores of a hybrid processor apart.
//!
//! On x86 the kernel has a PMU for each type, which lists its CPUs (Linux, tools/perf/Documentation/
//! intel-hybrid.txt). On Arm it states the relative capacity of each CPU (Linux,
//! Documentation/devicetree/bindings/cpu/cpu-capacity.txt). Neither says what a CPU draws.

use std::{collections::BTreeMap, fs, path::Path};

use joular_data::model::cores::{CoreBasis, CoreType, ONE_PERMILLE};

use super::cpus;

/// PMUs beside `system/cpu`, and the types that they count. The type that others are relative to comes
/// first.
const PMUS: [(&str, &str); 3] =
    [("cpu_core", "performance"), ("cpu_atom", "efficiency"), ("cpu_lowpower", "low_power")];

/// Most types that are told apart; a processor has two or three.
const MOST_KINDS: usize = 16;

/// CPUs of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreKind {
    pub name: String,
    pub cpus: Vec<u32>,
}

/// The types of cores, the most capable first; empty if there is only one, or nothing is known.
pub fn kinds(cpu_root: &Path) -> Vec<CoreKind> {
    let kinds = by_pmu(cpu_root).unwrap_or_else(|| by_capacity(cpu_root));
    if (2..=MOST_KINDS).contains(&kinds.len()) { kinds } else { Vec::new() }
}

/// The number of a CPU's type; 0 for one whose type is not known.
pub fn number_of(kinds: &[CoreKind], cpu: u32) -> u32 {
    let number = kinds.iter().position(|kind| kind.cpus.contains(&cpu)).unwrap_or(0);
    u32::try_from(number).unwrap_or(0)
}

/// The types with the places in which the programs count their time. All count the same, until a
/// calibration says more.
pub fn types(cpu_root: &Path, per_core: bool) -> Vec<CoreType> {
    let placed = cpus::placed(cpu_root, per_core);
    let of = |kind: CoreKind| {
        let online = || placed.iter().filter(|cpu| kind.cpus.contains(&cpu.id));
        let mut places: Vec<(u32, u32)> = online().map(|cpu| (cpu.socket, cpu.core)).collect();
        places.sort_unstable();
        places.dedup();
        CoreType {
            cpus: online().map(|cpu| cpu.id).collect(),
            name: kind.name,
            places,
            time_permille: ONE_PERMILLE,
            cycles_permille: ONE_PERMILLE,
            basis: CoreBasis::Assumed,
        }
    };
    kinds(cpu_root).into_iter().map(of).collect()
}

fn by_pmu(cpu_root: &Path) -> Option<Vec<CoreKind>> {
    let devices = cpu_root.parent()?.parent()?;
    let kind = |(pmu, name): (&str, &str)| {
        let cpus = cpus::cpu_list(&devices.join(pmu).join("cpus"));
        (!cpus.is_empty()).then(|| CoreKind { name: name.to_owned(), cpus })
    };
    let kinds: Vec<CoreKind> = PMUS.into_iter().filter_map(kind).collect();
    (!kinds.is_empty()).then_some(kinds)
}

fn by_capacity(cpu_root: &Path) -> Vec<CoreKind> {
    let mut by_capacity: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in cpus::online(cpu_root) {
        let capacity = fs::read_to_string(cpu_root.join(format!("cpu{}/cpu_capacity", cpu.id))).ok();
        if let Some(capacity) = capacity.and_then(|text| text.trim().parse().ok()) {
            by_capacity.entry(capacity).or_default().push(cpu.id);
        }
    }
    let kind = |(capacity, cpus)| CoreKind { name: format!("capacity-{capacity}"), cpus };
    by_capacity.into_iter().rev().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A tree of devices, and the CPU root in it.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let devices = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = devices.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let root = devices.path().join("system/cpu");
        (devices, root)
    }

    /// Two performance cores of two threads and four efficiency cores, as an Intel client has them.
    const ALDER_LAKE: [(&str, &str); 11] = [
        ("system/cpu/online", "0-7"),
        ("cpu_core/cpus", "0-3\n"),
        ("cpu_atom/cpus", "4-7\n"),
        ("system/cpu/cpu0/topology/core_id", "0"),
        ("system/cpu/cpu0/topology/thread_siblings_list", "0-1"),
        ("system/cpu/cpu1/topology/core_id", "0"),
        ("system/cpu/cpu2/topology/core_id", "4"),
        ("system/cpu/cpu3/topology/core_id", "4"),
        ("system/cpu/cpu4/topology/core_id", "8"),
        ("system/cpu/cpu4/topology/thread_siblings_list", "4"),
        ("system/cpu/cpu5/topology/core_id", "9"),
    ];

    /// Name, CPUs and places.
    type Seen<'a> = (&'a str, Vec<u32>, Vec<(u32, u32)>);

    fn names(types: &[CoreType]) -> Vec<Seen<'_>> {
        types.iter().map(|of| (of.name.as_str(), of.cpus.clone(), of.places.clone())).collect()
    }

    #[test]
    fn an_intel_client_has_a_place_for_each_type() {
        let (_devices, root) = machine(&ALDER_LAKE);
        let expected =
            [("performance", vec![0, 1, 2, 3], vec![(0, 0)]), ("efficiency", vec![4, 5, 6, 7], vec![(0, 1)])];
        assert_eq!(names(&types(&root, false)), expected);
        let placed: Vec<u32> = cpus::placed(&root, false).iter().map(|cpu| cpu.core).collect();
        assert_eq!(placed, [0, 0, 0, 0, 1, 1, 1, 1]);
        // An efficiency core has no hyper-thread to share it with.
        assert_eq!((cpus::online(&root)[0].sibling, cpus::online(&root)[4].sibling), (Some(1), None));
    }

    #[test]
    fn where_cores_have_counters_their_places_are_of_a_type() {
        let (_devices, root) = machine(&ALDER_LAKE);
        let found = types(&root, true);
        assert_eq!(found[0].places, [(0, 0), (0, 4)]);
        assert!(found[1].places.contains(&(0, 8)) && found[1].places.contains(&(0, 9)), "{found:?}");
    }

    #[test]
    fn arm_tells_types_by_capacity() {
        let (_devices, root) = machine(&[
            ("system/cpu/online", "0-3"),
            ("system/cpu/cpu0/cpu_capacity", "446\n"),
            ("system/cpu/cpu1/cpu_capacity", "446\n"),
            ("system/cpu/cpu2/cpu_capacity", "1024\n"),
            ("system/cpu/cpu3/cpu_capacity", "1024\n"),
        ]);
        let expected = [("capacity-1024", vec![2, 3], vec![(0, 0)]), ("capacity-446", vec![0, 1], vec![(0, 1)])];
        assert_eq!(names(&types(&root, false)), expected);
    }

    #[test]
    fn most_machines_have_one_type() {
        for files in [
            &[("system/cpu/online", "0-3")][..],
            &[("system/cpu/online", "0-3"), ("cpu_core/cpus", "0-3")],
            &[
                ("system/cpu/online", "0-1"),
                ("system/cpu/cpu0/cpu_capacity", "1024"),
                ("system/cpu/cpu1/cpu_capacity", "x"),
            ],
        ] {
            let (_devices, root) = machine(files);
            assert_eq!(types(&root, false), [], "{files:?}");
            assert!(cpus::placed(&root, false).iter().all(|cpu| cpu.core == 0));
        }
    }

    #[test]
    fn a_cpu_of_no_type_counts_as_the_first() {
        let (_devices, root) = machine(&[("system/cpu/online", "0-2"), ("cpu_core/cpus", "0"), ("cpu_atom/cpus", "1")]);
        assert_eq!(cpus::placed(&root, false).iter().map(|cpu| cpu.core).collect::<Vec<_>>(), [0, 1, 0]);
    }
}
