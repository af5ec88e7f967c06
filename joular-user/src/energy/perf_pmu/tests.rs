use joular_data::{
    attribution::counter::{Delta, Meters, Usage},
    model::{
        domain::{Meter, Role},
        units::{MicroJoules, MonotonicNs},
    },
};

use super::{
    fake::{self, FakeEvents, POWER, POWER_CORE},
    *,
};

const PKG: (&str, u8) = ("energy-pkg", 2);
const CORES: (&str, u8) = ("energy-cores", 1);
const RAM: (&str, u8) = ("energy-ram", 3);
const GPU: (&str, u8) = ("energy-gpu", 4);
const PSYS: (&str, u8) = ("energy-psys", 5);
const CORE: (&str, u8) = ("energy-core", 1);

/// Counts of a joule.
const JOULE: u64 = 1 << 32;

/// Name, socket, core, role and what is taken off.
type Seen<'a> = (&'a str, Option<u32>, Option<u32>, Role, &'a [usize]);

fn open(sys: &tempfile::TempDir, is_intel: bool) -> Result<PerfPmu, PerfPmuError> {
    PerfPmu::open(sys.path(), is_intel, &FakeEvents::default())
}

#[track_caller]
fn check(sys: &tempfile::TempDir, is_intel: bool, expected: &[Seen<'_>]) {
    let source = open(sys, is_intel).unwrap();
    let see = |domain: &'static Domain| -> Seen<'static> {
        (&domain.name, domain.socket, domain.core, domain.role, &domain.less)
    };
    let domains: &'static [Domain] = Vec::leak(source.domains().to_vec());
    assert_eq!(domains.iter().map(see).collect::<Vec<_>>(), expected);
}

fn machine(cpus: &[(u32, u32, u32)]) -> tempfile::TempDir {
    let sys = tempfile::tempdir().unwrap();
    fake::cpus(sys.path(), cpus.iter().copied());
    sys
}

#[test]
fn an_intel_client_has_a_package_its_parts_and_a_platform() {
    let sys = machine(&[(0, 0, 0)]);
    fake::pmu(sys.path(), "power", POWER, "0", &[CORES, PKG, RAM, GPU, PSYS]);
    let part = Role::Part { of: 0 };
    let expected: &[Seen<'_>] = &[
        ("package", Some(0), None, Role::Shared, &[]),
        ("core", Some(0), None, part, &[]),
        ("gpu", Some(0), None, part, &[]),
        ("dram", Some(0), None, Role::Shared, &[]),
        ("platform", None, None, Role::Unshared, &[0, 3]),
    ];
    check(&sys, true, expected);
}

#[test]
fn every_socket_is_read_and_named_by_its_topology() {
    // The package ids are the wrong way round, as on some machines.
    let sys = machine(&[(0, 1, 0), (24, 0, 0)]);
    fake::pmu(sys.path(), "power", POWER, "0,24", &[PKG, RAM]);
    let expected: &[Seen<'_>] = &[
        ("package", Some(0), None, Role::Shared, &[]),
        ("dram", Some(0), None, Role::Shared, &[]),
        ("package", Some(1), None, Role::Shared, &[]),
        ("dram", Some(1), None, Role::Shared, &[]),
    ];
    check(&sys, true, expected);
}

#[test]
fn dies_of_intel_are_distinct_and_the_platform_is_one() {
    let sys = machine(&[(0, 0, 0), (8, 0, 0)]);
    fake::dies(sys.path(), [(0, 0), (8, 1)]);
    fake::pmu(sys.path(), "power", POWER, "0,8", &[CORES, PKG, PSYS]);
    let expected: &[Seen<'_>] = &[
        ("package", Some(0), None, Role::Shared, &[]),
        ("core", Some(0), None, Role::Part { of: 0 }, &[]),
        ("package", Some(0), None, Role::Shared, &[]),
        ("core", Some(0), None, Role::Part { of: 2 }, &[]),
        ("platform", None, None, Role::Unshared, &[0, 2]),
    ];
    check(&sys, true, expected);
}

#[test]
fn dies_of_amd_are_one_package() {
    let sys = machine(&[(0, 0, 0), (8, 0, 4), (16, 1, 0), (24, 1, 4)]);
    fake::dies(sys.path(), [(0, 0), (8, 1), (16, 0), (24, 1)]);
    fake::pmu(sys.path(), "power", POWER, "0,8,16,24", &[PKG]);
    let expected: &[Seen<'_>] =
        &[("package", Some(0), None, Role::Shared, &[]), ("package", Some(1), None, Role::Shared, &[])];
    check(&sys, false, expected);
}

#[test]
fn a_package_whose_every_cpu_is_listed_is_counted_once() {
    let sys = machine(&[(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 0)]);
    fake::dies(sys.path(), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 0)]);
    fake::pmu(sys.path(), "power", POWER, "0-4", &[PKG]);
    let expected: &[Seen<'_>] =
        &[("package", Some(0), None, Role::Shared, &[]), ("package", Some(1), None, Role::Shared, &[])];
    check(&sys, true, expected);
}

#[test]
fn threads_of_a_core_are_one_core_and_dies_may_number_theirs_alike() {
    let sys = machine(&[(0, 0, 0), (1, 0, 0), (2, 0, 0)]);
    fake::dies(sys.path(), [(0, 0), (1, 0), (2, 1)]);
    fake::pmu(sys.path(), "power", POWER, "0", &[PKG]);
    fake::pmu(sys.path(), "power_core", POWER_CORE, "0-2", &[CORE]);
    let expected: &[Seen<'_>] = &[
        ("uncore", Some(0), None, Role::Shared, &[1, 2]),
        ("core", Some(0), Some(0), Role::Shared, &[]),
        ("core", Some(0), Some(0), Role::Shared, &[]),
    ];
    check(&sys, false, expected);
}

#[test]
fn the_platform_is_read_wherever_it_is_counted() {
    let sys = machine(&[(0, 0, 0), (24, 1, 0)]);
    fake::pmu(sys.path(), "power", POWER, "0,24", &[PKG, PSYS]);
    let events = FakeEvents::default();
    let mut source = PerfPmu::open(sys.path(), true, &events).unwrap();
    events.set(POWER, 5, 24, Ok(7 * JOULE));
    assert_eq!(source.read(), [0, 0, 7_000_000].map(Reading::CounterUj));
}

#[test]
fn cores_of_amd_are_domains_and_leave_the_uncore() {
    let sys = machine(&[(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]);
    fake::pmu(sys.path(), "power", POWER, "0,2", &[PKG]);
    fake::pmu(sys.path(), "power_core", POWER_CORE, "0-3", &[CORE]);
    let expected: &[Seen<'_>] = &[
        ("uncore", Some(0), None, Role::Shared, &[1, 2]),
        ("core", Some(0), Some(0), Role::Shared, &[]),
        ("core", Some(0), Some(1), Role::Shared, &[]),
        ("uncore", Some(1), None, Role::Shared, &[4, 5]),
        ("core", Some(1), Some(0), Role::Shared, &[]),
        ("core", Some(1), Some(1), Role::Shared, &[]),
    ];
    check(&sys, false, expected);
}

#[test]
fn cores_that_threads_are_not_told_apart_by_are_left_in_their_package() {
    let sys = machine(&[(0, 0, 0), (1, 0, 1024), (2, 256, 1)]);
    fake::pmu(sys.path(), "power", POWER, "0", &[PKG, PSYS]);
    fake::pmu(sys.path(), "power_core", POWER_CORE, "0-2", &[CORE]);
    let whole: &[Seen<'_>] =
        &[("package", Some(0), None, Role::Shared, &[]), ("platform", None, None, Role::Unshared, &[0])];
    check(&sys, false, whole);
    fake::cpus(sys.path(), [(1, 0, 1023)]);
    let expected: &[Seen<'_>] = &[
        ("uncore", Some(0), None, Role::Shared, &[1, 2, 3]),
        ("core", Some(0), Some(0), Role::Shared, &[]),
        ("core", Some(0), Some(1), Role::Shared, &[]),
        ("core", Some(0), Some(1023), Role::Shared, &[]),
    ];
    check(&sys, false, expected);
}

/// A machine with one package and one core, and its counts.
fn one_package() -> (tempfile::TempDir, FakeEvents) {
    let sys = machine(&[(0, 0, 0)]);
    fake::pmu(sys.path(), "power", POWER, "0", &[PKG]);
    fake::pmu(sys.path(), "power_core", POWER_CORE, "0", &[CORE]);
    (sys, FakeEvents::default())
}

#[test]
fn counts_become_energy_and_failed_reads_merge() {
    let (sys, events) = one_package();
    let mut source = PerfPmu::open(sys.path(), false, &events).unwrap();
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    let good = |measured| Delta { measured: MicroJoules(measured), ..Delta::default() };
    let failed = Delta { fault: Some(FaultCause::Gone), ..Delta::default() };
    let merged = |measured| Delta { merged: 2, ..good(measured) };
    for (second, package, core, expected) in [
        (1, Ok(10 * JOULE), Ok(JOULE), [good(9_000_000), good(1_000_000)]),
        (2, Ok(20 * JOULE), Err(libc::ENODEV), [failed, failed]),
        (3, Ok(40 * JOULE), Ok(5 * JOULE), [merged(26_000_000), merged(4_000_000)]),
    ] {
        events.set(POWER, 2, 0, package);
        events.set(POWER_CORE, 1, 0, core);
        let deltas =
            meters.advance(MonotonicNs(second * 1_000_000_000), &source.read(), 1_000_000_000, &Usage::default());
        assert_eq!(deltas, expected, "second {second}");
    }
}

#[test]
fn what_cannot_be_opened_says_what_to_do() {
    let (sys, events) = one_package();
    for (errno, kind, words) in [
        (
            libc::EACCES,
            UnusableKind::Denied,
            "energy-core on CPU 0: permission denied: run as root or grant CAP_PERFMON",
        ),
        (libc::EPERM, UnusableKind::Denied, "run as root or grant CAP_PERFMON"),
        (libc::ENODEV, UnusableKind::Broken, "use --energy powercap"),
    ] {
        events.set(POWER_CORE, 1, 0, Err(errno));
        let error = PerfPmu::open(sys.path(), false, &events).err().unwrap();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().ends_with(words), "{error}");
    }
}

#[test]
fn without_events_of_packages_there_is_no_source() {
    let sys = machine(&[]);
    assert!(matches!(open(&sys, true), Err(PerfPmuError::NoPmu { .. })));
    fake::pmu(sys.path(), "power", POWER, "0", &[RAM]);
    let error = open(&sys, true).err().unwrap();
    assert!(matches!(error, PerfPmuError::NoPackage { .. }) && error.kind() == UnusableKind::Absent, "{error}");
}

#[test]
fn descriptions_that_are_not_understood_are_named() {
    for (file, text) in [
        ("type", "power"),
        ("cpumask", "all"),
        ("events/energy-pkg", "event=0x02,edge"),
        ("events/energy-pkg.scale", "NaN"),
        ("events/energy-pkg.unit", "Watts"),
    ] {
        let sys = machine(&[(0, 0, 0)]);
        fake::pmu(sys.path(), "power", POWER, "0", &[PKG]);
        let path = sys.path().join(PMU_ROOT).join("power").join(file);
        std::fs::write(&path, text).unwrap();
        let message = open(&sys, true).err().unwrap().to_string();
        assert!(
            message.contains(file) && message.contains(text) && message.contains("use --energy powercap"),
            "{message}"
        );
        std::fs::remove_file(&path).unwrap();
        // An event that is not there is not missed; what belongs to one is.
        let expected = if file == "events/energy-pkg" { UnusableKind::Absent } else { UnusableKind::Broken };
        assert_eq!(open(&sys, true).err().unwrap().kind(), expected, "{file}");
    }
}

#[test]
fn a_core_without_a_number_is_refused() {
    let sys = machine(&[]);
    fake::pmu(sys.path(), "power", POWER, "0", &[PKG]);
    fake::pmu(sys.path(), "power_core", POWER_CORE, "0", &[CORE]);
    assert!(matches!(open(&sys, false), Err(PerfPmuError::NoCore { cpu: 0 })));
}

/// The kernel's clock in place of energy: type 1 (software), config 0 (cpu-clock)
/// counts nanoseconds, so with a scale of 10⁻⁹ J the "package" draws 1 W.
#[test]
fn the_kernel_counts_events_as_sysfs_describes_them() {
    let sys = machine(&[(0, 0, 0)]);
    fake::pmu(sys.path(), "power", 1, "0", &[("energy-pkg", 0)]);
    std::fs::write(sys.path().join(PMU_ROOT).join("power/events/energy-pkg.scale"), "1e-9\n").unwrap();
    let mut source = match PerfPmu::open(sys.path(), true, &KernelEvents) {
        Err(error @ PerfPmuError::Denied { .. }) => {
            return joular_tests::notes::skipped(&format!("it needs root: {error}"));
        }
        opened => opened.unwrap(),
    };
    assert!(matches!(source.domains()[0].meter, Meter::Counter { unit_uj: 1, .. }));
    let mut read = || match source.read()[..] {
        [Reading::CounterUj(value)] => value,
        ref other => panic!("{other:?}"),
    };
    let (before, started) = (read(), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (after, longest) = (read(), started.elapsed().as_micros());
    let counted = u128::from(after - before);
    assert!((49_000..=longest + 1000).contains(&counted), "{counted} µJ at 1 W in at most {longest} µs");
}
