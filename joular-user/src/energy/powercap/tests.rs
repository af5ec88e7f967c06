use joular_data::{
    attribution::counter::{Delta, Meters, Usage},
    model::{
        domain::{Meter, Role},
        units::{MicroJoules, MonotonicNs},
    },
};

use super::{fake_tree::*, zones::unit_uj, *};

/// Name, socket and first reading of each domain.
type Seen = (String, Option<u32>, Reading);

fn seen(name: &str, socket: Option<u32>, energy_uj: u64) -> Seen {
    (name.to_owned(), socket, Reading::CounterUj(energy_uj))
}

/// Whose processor it is.
const INTEL: bool = true;
const AMD: bool = false;

/// On Intel's.
#[track_caller]
fn check(tree: &FakeTree, expected: &[Seen]) {
    check_on(tree, INTEL, expected);
}

#[track_caller]
fn check_on(tree: &FakeTree, vendor: bool, expected: &[Seen]) {
    let mut source = Powercap::open(tree.root(), vendor).unwrap();
    let readings = source.read();
    let domains = source.domains().iter().zip(readings);
    let found: Vec<Seen> = domains.map(|(domain, reading)| (domain.name.clone(), domain.socket, reading)).collect();
    assert_eq!(found, expected);
}

fn one_package(energy_uj: u64) -> FakeTree {
    FakeTree::new().zone("intel-rapl:0", "package-0", energy_uj)
}

#[test]
fn two_sockets_with_dram() {
    let tree = FakeTree::new()
        .zone("intel-rapl:0", "package-0", 10)
        .zone("intel-rapl:0:0", "dram", 1)
        .zone("intel-rapl:1", "package-1", 20)
        .zone("intel-rapl:1:0", "dram", 2);
    let expected = [
        seen("package", Some(0), 10),
        seen("dram", Some(0), 1),
        seen("package", Some(1), 20),
        seen("dram", Some(1), 2),
    ];
    check(&tree, &expected);
}

#[test]
fn zones_below_their_package_are_found_once() {
    let tree = one_package(10).zone("intel-rapl:0/intel-rapl:0:2", "dram", 3);
    check(&tree, &[seen("package", Some(0), 10), seen("dram", Some(0), 3)]);
    let tree = tree.zone("intel-rapl:0:2", "dram", 3);
    check(&tree, &[seen("package", Some(0), 10), seen("dram", Some(0), 3)]);
}

#[test]
fn names_count_and_numbers_do_not() {
    // psys stands between the packages, package 1 comes first, dram comes last.
    let tree = FakeTree::new()
        .zone("intel-rapl:0", "package-1", 20)
        .zone("intel-rapl:0:0", "core", 5)
        .zone("intel-rapl:0:1", "uncore", 6)
        .zone("intel-rapl:0:2", "dram", 2)
        .zone("intel-rapl:1", "psys", 99)
        .zone("intel-rapl:2", "package-0", 10);
    let expected = [
        seen("package", Some(0), 10),
        seen("package", Some(1), 20),
        seen("core", Some(1), 5),
        seen("uncore", Some(1), 6),
        seen("dram", Some(1), 2),
        seen("platform", None, 99),
    ];
    check(&tree, &expected);
    let source = Powercap::open(tree.root(), INTEL).unwrap();
    let uses: Vec<(Role, Vec<usize>)> =
        source.domains().iter().map(|domain| (domain.role, domain.less.clone())).collect();
    let alone = |role| (role, vec![]);
    let (shared, part) = (alone(Role::Shared), alone(Role::Part { of: 1 }));
    let rest = (Role::Unshared, vec![0, 1, 4]);
    assert_eq!(uses, [shared.clone(), shared.clone(), part.clone(), part, shared, rest]);
}

#[test]
fn psys_alone_is_the_platform() {
    let tree = FakeTree::new().zone("intel-rapl:0", "psys", 99);
    check(&tree, &[seen("platform", None, 99)]);
    assert_eq!(Powercap::open(tree.root(), INTEL).unwrap().domains()[0].role, Role::Shared);
}

#[test]
fn psys_of_another_package_is_the_platform_too_and_there_is_one() {
    let tree = one_package(10).zone("intel-rapl:1", "psys-1", 99);
    check(&tree, &[seen("package", Some(0), 10), seen("platform", None, 99)]);
    let tree = tree.zone("intel-rapl:2", "psys-2", 98);
    check(&tree, &[seen("package", Some(0), 10), seen("platform", None, 99)]);
}

#[test]
fn mmio_duplicates_are_not_counted_twice() {
    let tree = one_package(10).zone("intel-rapl-mmio:0", "package-0", 11).zone("intel-rapl-mmio:0:0", "dram", 12);
    check(&tree, &[seen("package", Some(0), 10)]);
}

#[test]
fn mirrored_dies_are_one_package() {
    let tree = FakeTree::new()
        .zone("intel-rapl:0", "package-0-die-0", 5_000_000)
        .zone("intel-rapl:0:0", "core", 7)
        .zone("intel-rapl:1", "package-0-die-1", 5_000_300)
        .zone("intel-rapl:1:0", "dram", 4)
        // Read so much later that it went far ahead.
        .zone("intel-rapl:2", "package-0-die-2", 905_000_000)
        .zone("intel-rapl:4", "package-1-die-1", 80_000_900)
        .zone("intel-rapl:3", "package-1-die-0", 80_000_000);
    check_on(&tree, AMD, &[seen("package", Some(0), 5_000_000), seen("package", Some(1), 80_000_000)]);
}

#[test]
fn distinct_dies_are_distinct_domains_of_a_socket() {
    let tree = FakeTree::new().zone("intel-rapl:0", "package-0-die-0", 5_000_000).zone(
        "intel-rapl:1",
        "package-0-die-1",
        // However close together they stand.
        5_000_001,
    );
    check(&tree, &[seen("package", Some(0), 5_000_000), seen("package", Some(0), 5_000_001)]);
}

#[test]
fn the_core_zone_of_amd_is_ignored() {
    let tree = one_package(10).zone("intel-rapl:0:0", "core", 3).zone("intel-rapl:0:1", "dram", 2);
    check_on(&tree, AMD, &[seen("package", Some(0), 10), seen("dram", Some(0), 2)]);
}

#[test]
fn the_unit_follows_from_the_range() {
    for (range, unit) in [(RANGE, 61), (65_532_610_987, 15), (0, 1), (1000, 1), (u64::MAX, 4_294_967_297)] {
        assert_eq!(unit_uj(range), unit, "{range}");
    }
}

#[test]
fn a_range_that_is_missing_zero_or_absurd_is_unknown() {
    let tree = one_package(10);
    for text in ["0", "", "no number", "99999999999999999999999"] {
        tree.set("intel-rapl:0", "max_energy_range_uj", text);
        let source = Powercap::open(tree.root(), INTEL).unwrap();
        let Meter::Counter { range_uj, unit_uj, .. } = source.domains()[0].meter else { panic!("not a counter") };
        assert_eq!((range_uj, unit_uj), (0, 1), "{text:?}");
    }
    tree.remove("intel-rapl:0", "max_energy_range_uj");
    assert!(Powercap::open(tree.root(), INTEL).is_ok());
}

#[test]
fn without_a_tree_or_zones_the_error_says_what_to_do() {
    let tree = FakeTree::new();
    let message = Powercap::open(tree.root(), INTEL).unwrap_err().to_string();
    assert!(message.contains("no package or psys zone") && message.contains("--energy model"), "{message}");
    let message = Powercap::open(&tree.root().join("absent"), INTEL).unwrap_err().to_string();
    assert!(message.starts_with("listing ") && message.contains("absent"), "{message}");
    let only_parts = tree.zone("intel-rapl:0", "core", 1).zone("intel-rapl:1", "package-x", 2);
    assert!(matches!(Powercap::open(only_parts.root(), INTEL), Err(PowercapError::NoZones { .. })));
}

#[test]
fn an_unreadable_counter_is_an_error_not_a_gap() {
    // One of two: the other would not be all that processes draw.
    let tree = one_package(10).zone("intel-rapl:0:0", "dram", 1);
    tree.deny("intel-rapl:0:0", "energy_uj");
    let refused = unprivileged(&[tree.root()], || Powercap::open(tree.root(), INTEL).map(drop)).unwrap_err();
    assert_eq!(refused.kind(), UnusableKind::Denied);
    let message = refused.to_string();
    assert!(message.ends_with("permission denied: run as root or grant CAP_DAC_READ_SEARCH"), "{message}");
}

#[test]
fn counters_that_all_fail_are_an_error_and_one_of_two_is_not() {
    let tree = one_package(10).zone("intel-rapl:0:0", "dram", 1);
    tree.break_file("intel-rapl:0:0", "energy_uj");
    let mut source = Powercap::open(tree.root(), INTEL).unwrap();
    assert!(matches!(source.read()[..], [Reading::CounterUj(10), Reading::Failed(_)]));
    tree.break_file("intel-rapl:0", "energy_uj");
    assert!(matches!(Powercap::open(tree.root(), INTEL), Err(PowercapError::Unreadable { .. })));
}

/// What happens to the counter of a single package before a window's read.
enum Step {
    Show(&'static str),
    Vanish,
    Break,
    Mend(&'static str),
}

/// Runs windows of 1 s over a single package that starts at `start`.
#[track_caller]
fn check_run(start: u64, steps: &[Step], expected: &[Delta]) {
    let entry = "intel-rapl:0";
    let tree = one_package(start);
    let mut source = Powercap::open(tree.root(), INTEL).unwrap();
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    let mut found = Vec::new();
    for (step, second) in steps.iter().zip(1..) {
        match step {
            Step::Show(text) => tree.set(entry, "energy_uj", text),
            Step::Vanish => tree.remove(entry, "energy_uj"),
            Step::Break => tree.break_file(entry, "energy_uj"),
            Step::Mend(text) => {
                tree.mend_file(entry, "energy_uj");
                tree.set(entry, "energy_uj", text);
            }
        }
        found.extend(meters.advance(
            MonotonicNs(second * 1_000_000_000),
            &source.read(),
            1_000_000_000,
            &Usage::default(),
        ));
    }
    assert_eq!(found, expected);
}

fn good(measured: u64) -> Delta {
    Delta { measured: MicroJoules(measured), ..Delta::default() }
}

fn failed(cause: FaultCause) -> Delta {
    Delta { fault: Some(cause), ..Delta::default() }
}

#[test]
fn a_single_domain_wraps() {
    check_run(RANGE - 100, &[Step::Show("4000000")], &[good(4_000_161)]);
}

#[test]
fn a_zone_vanishes_and_comes_back() {
    let steps = [Step::Vanish, Step::Show("9000000"), Step::Show("9500000")];
    check_run(1_000_000, &steps, &[failed(FaultCause::Gone), Delta { merged: 2, ..good(8_000_000) }, good(500_000)]);
}

#[test]
fn reads_fail_in_the_middle_of_a_run() {
    let steps = [Step::Break, Step::Mend("5000000")];
    check_run(1_000_000, &steps, &[failed(FaultCause::Unreadable), Delta { merged: 2, ..good(4_000_000) }]);
}

#[test]
fn a_counter_stands_still() {
    check_run(5, &[Step::Show("5"), Step::Show("7")], &[failed(FaultCause::Stuck), Delta { merged: 2, ..good(2) }]);
}

#[test]
fn a_counter_jumps_backwards() {
    let jump = Delta { fault: Some(FaultCause::Jumped), ..good(0) };
    check_run(90_000_000_000, &[Step::Show("1000"), Step::Show("3000")], &[jump, good(2_000)]);
}

#[test]
fn a_counter_shows_absurd_values() {
    let jump = Delta { fault: Some(FaultCause::Jumped), ..good(0) };
    check_run(5, &[Step::Show("18446744073709551615"), Step::Show("7")], &[jump, jump]);
    let merged = Delta { merged: 3, ..good(4) };
    check_run(
        5,
        &[Step::Show("-3"), Step::Show("99999999999999999999999"), Step::Show("9")],
        &[failed(FaultCause::Malformed), failed(FaultCause::Malformed), merged],
    );
}
