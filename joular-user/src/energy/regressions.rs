//! Mistakes that were found in other energy tools. Each test is named after a
//! tool and its mistake, and shows that it is not made here.

use joular_data::{
    attribution::counter::{Delta, Meters, Usage},
    model::{
        domain::{FaultCause, Label, Meter, Reading, Role},
        units::{MicroJoules, MonotonicNs},
    },
};

use super::{
    EnergySource,
    perf_pmu::fake,
    powercap::{
        Powercap,
        fake_tree::{FakeTree, RANGE},
    },
};

const SECOND: u64 = 1_000_000_000;
const JOULE: u64 = 1_000_000;

/// A run over a powercap tree: which zones stand where at its start, and what
/// the counters show after each window of 1 s.
#[track_caller]
fn run(tree: &FakeTree, is_intel: bool, windows: &[&[(&str, u64)]]) -> Vec<Vec<Delta>> {
    let mut source = Powercap::open(tree.root(), is_intel).unwrap();
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    let mut deltas = Vec::new();
    for (window, second) in windows.iter().zip(1..) {
        for (zone, energy_uj) in *window {
            tree.set(zone, "energy_uj", &energy_uj.to_string());
        }
        deltas.push(meters.advance(MonotonicNs(second * SECOND), &source.read(), SECOND, &Usage::default()));
    }
    deltas
}

/// What a window's energy sums to: parts and checks are within others.
fn counted(source: &dyn EnergySource, deltas: &[Delta]) -> u64 {
    let domains = source.domains().iter().zip(deltas);
    let counted = domains.filter(|(domain, _)| matches!(domain.role, Role::Shared | Role::Unshared));
    counted.map(|(_, delta)| delta.measured.0).sum()
}

/// The sum of the only window in which the zones advance by so much.
#[track_caller]
fn sum_of(is_intel: bool, zones: &[(&str, &str, u64)]) -> u64 {
    let start = 40_000 * JOULE;
    let tree = zones.iter().fold(FakeTree::new(), |tree, (entry, name, _)| tree.zone(entry, name, start));
    let after: Vec<(&str, u64)> = zones.iter().map(|(entry, _, used)| (*entry, start + used)).collect();
    let source = Powercap::open(tree.root(), is_intel).unwrap();
    counted(&source, &run(&tree, is_intel, &[&after])[0])
}

fn measured(deltas: &[Delta]) -> Vec<u64> {
    assert!(deltas.iter().all(|delta| delta.fault.is_none()), "{deltas:?}");
    deltas.iter().map(|delta| delta.measured.0).collect()
}

fn counter(range_uj: u64, unit_uj: u64) -> Meter {
    Meter::Counter { range_uj, unit_uj, max_watts: 1000 }
}

/// ΔE of one window of 1 s between two readings of a counter.
fn difference(meter: Meter, before: u64, after: u64) -> Delta {
    let mut meters =
        Meters::new(&[joular_data::model::domain::Domain::new("package", Some(0), "test", Label::Measured, meter)]);
    meters.start(MonotonicNs(0), &[Reading::CounterUj(before)]);
    meters.advance(MonotonicNs(SECOND), &[Reading::CounterUj(after)], SECOND, &Usage::default())[0]
}

#[test]
fn joularjx_initialises_twice_and_reports_double_the_energy() {
    // A source is named once, and what two sources both read counts once.
    assert!("powercap,powercap".parse::<super::EnergyChoice>().is_err());
    let tree = FakeTree::new().zone("intel-rapl:0", "package-0", 0);
    let open = || Box::new(Powercap::open(tree.root(), true).unwrap());
    let mut twice = super::combined::CombinedSource::of(open());
    assert_eq!(twice.add(open(), super::combined::Take::All), Ok(1));
    let mut twice = twice.into_source();
    let mut meters = Meters::new(twice.domains());
    meters.start(MonotonicNs(0), &twice.read());
    tree.set("intel-rapl:0", "energy_uj", "5000000");
    let deltas = meters.advance(MonotonicNs(SECOND), &twice.read(), SECOND, &Usage::default());
    assert_eq!(measured(&deltas), [5 * JOULE, 5 * JOULE]);
    assert_eq!(counted(&*twice, &deltas), 5 * JOULE);
}

#[test]
fn joularjx_takes_zone_1_for_psys_and_zone_0_2_for_dram() {
    let used = [
        ("intel-rapl:0", "package-0", 10 * JOULE),
        ("intel-rapl:0:0", "dram", 2 * JOULE),
        ("intel-rapl:0:2", "core", 7 * JOULE),
        ("intel-rapl:1", "package-1", 20 * JOULE),
    ];
    assert_eq!(sum_of(true, &used), 32 * JOULE);
}

#[test]
fn joularjx_sums_zones_before_wrap_handling() {
    let tree =
        FakeTree::new().zone("intel-rapl:0", "package-0", RANGE - 3 * JOULE).zone("intel-rapl:1", "package-1", 0);
    let deltas = run(&tree, true, &[&[("intel-rapl:0", 4 * JOULE), ("intel-rapl:1", 9 * JOULE)]]);
    // The sum went down by almost a range; each zone by itself did not.
    assert_eq!(measured(&deltas[0]), [7 * JOULE + 61, 9 * JOULE]);
}

#[test]
fn joularjx_adds_watts_as_joules_per_cycle() {
    // 10 W over a "second" that took 1.32 s are 13.2 J.
    let machine = joular_data::model::domain::Domain::new("machine", None, "watts", Label::Reported, Meter::Power);
    let mut meters = Meters::new(&[machine]);
    meters.start(MonotonicNs(0), &[Reading::PowerUw(10 * JOULE)]);
    let deltas = meters.advance(MonotonicNs(1_320_000_000), &[Reading::PowerUw(10 * JOULE)], SECOND, &Usage::default());
    assert_eq!(measured(&deltas), [13_200_000]);
}

#[test]
fn scaphandre_drops_the_sample_that_wrapped() {
    let tree = FakeTree::new().zone("intel-rapl:0", "package-0", RANGE - JOULE);
    let deltas = run(&tree, true, &[&[("intel-rapl:0", JOULE)], &[("intel-rapl:0", 3 * JOULE)]]);
    assert_eq!(deltas.iter().map(|window| window[0].measured.0).collect::<Vec<_>>(), [2 * JOULE + 61, 2 * JOULE]);
}

#[test]
fn deep_mon_wraps_at_two_to_the_32_and_not_at_the_range() {
    let after = difference(counter(RANGE, 61), RANGE - JOULE, JOULE);
    assert_eq!(after, Delta { measured: MicroJoules(2 * JOULE + 61), ..Delta::default() });
}

#[test]
fn joule_profiler_wraps_one_unit_short() {
    // From the last value to 0 is one step of the register.
    for (range, unit) in [(RANGE, 61), (65_532_610_987, 15)] {
        assert_eq!(difference(counter(range, unit), range, 0).measured, MicroJoules(unit));
    }
}

#[test]
fn joule_profiler_takes_the_zone_index_for_the_socket() {
    let tree = FakeTree::new().zone("intel-rapl:0", "package-1", 0).zone("intel-rapl:1", "psys", 0).zone(
        "intel-rapl:2",
        "package-0",
        0,
    );
    let deltas = run(&tree, true, &[&[("intel-rapl:0", 20), ("intel-rapl:1", 99), ("intel-rapl:2", 10)]]);
    let source = Powercap::open(tree.root(), true).unwrap();
    let found: Vec<_> = source.domains().iter().map(|domain| domain.socket).zip(measured(&deltas[0])).collect();
    assert_eq!(found, [(Some(0), 10), (Some(1), 20), (None, 69)]);
}

#[test]
fn energibridge_reads_only_socket_0() {
    let used = [("intel-rapl:0", "package-0", 10 * JOULE), ("intel-rapl:1", "package-1", 20 * JOULE)];
    assert_eq!(sum_of(true, &used), 30 * JOULE);
    let roots = tempfile::tempdir().unwrap();
    fake::cpus(roots.path(), [(0, 0, 0), (24, 1, 0)]);
    fake::pmu(roots.path(), "power", fake::POWER, "0,24", &[("energy-pkg", 2)]);
    let source = fake::open(roots.path(), true, &fake::FakeEvents::default()).unwrap();
    assert_eq!(source.domains().iter().map(|domain| domain.socket).collect::<Vec<_>>(), [Some(0), Some(1)]);
}

#[test]
fn energibridge_reads_dram_with_the_unit_of_packages() {
    // On servers a step of dram is 15.3 µJ whatever a package's is.
    let range = 65_532_610_987;
    let tree = FakeTree::new().zone("intel-rapl:0", "package-0", RANGE).zone("intel-rapl:0:0", "dram", range).file(
        "intel-rapl:0:0",
        "max_energy_range_uj",
        &range.to_string(),
    );
    let deltas = run(&tree, true, &[&[("intel-rapl:0", 0), ("intel-rapl:0:0", 0)]]);
    assert_eq!(measured(&deltas[0]), [61, 15]);
    // perf gives each event its own scale: here dram counts 16 times finer.
    let roots = tempfile::tempdir().unwrap();
    fake::cpus(roots.path(), [(0, 0, 0)]);
    fake::pmu(roots.path(), "power", fake::POWER, "0", &[("energy-pkg", 2), ("energy-ram", 3)]);
    fake::scale(roots.path(), "power", "energy-ram", "1.4551915228366851806640625e-11");
    let events = fake::FakeEvents::default();
    let mut source = fake::open(roots.path(), true, &events).unwrap();
    events.set(fake::POWER, 2, 0, Ok(1 << 36));
    events.set(fake::POWER, 3, 0, Ok(1 << 36));
    assert_eq!(source.read(), [Reading::CounterUj(16 * JOULE), Reading::CounterUj(JOULE)]);
}

#[test]
fn codecarbon_counts_psys_mmio_and_mirrored_dies_twice() {
    let package = ("intel-rapl:0", "package-0", 10 * JOULE);
    let core = ("intel-rapl:0:0", "core", 6 * JOULE);
    let uncore = ("intel-rapl:0:1", "uncore", JOULE);
    let dram = ("intel-rapl:0:2", "dram", 2 * JOULE);
    let psys = ("intel-rapl:1", "psys", 15 * JOULE);
    let mmio = ("intel-rapl-mmio:0", "package-0", 10 * JOULE);
    let die = |entry, name| (entry, name, 10 * JOULE);
    let dies = [die("intel-rapl:0", "package-0-die-0"), die("intel-rapl:1", "package-0-die-1")];
    for (is_intel, zones, expected) in [
        (true, vec![package], 10),
        (true, vec![package, core, uncore], 10),
        (true, vec![package, core, uncore, dram], 12),
        (true, vec![package, core, uncore, dram, psys], 15),
        (true, vec![package, psys], 15),
        (true, vec![psys], 15),
        (true, vec![package, dram, mmio], 12),
        (false, vec![package, core], 10),
        (false, dies.to_vec(), 10),
    ] {
        assert_eq!(sum_of(is_intel, &zones), expected * JOULE, "{zones:?}");
    }
}

#[test]
fn any_tool_that_trusts_a_gap_longer_than_a_wrap() {
    // At 1 kW a range of 65 kJ wraps every 65 s: after 70 s nobody can know.
    let package = joular_data::model::domain::Domain::new(
        "package",
        Some(0),
        "test",
        Label::Measured,
        counter(65_532_610_987, 15),
    );
    let mut meters = Meters::new(&[package]);
    meters.start(MonotonicNs(0), &[Reading::CounterUj(0)]);
    let delta =
        meters.advance(MonotonicNs(70 * SECOND), &[Reading::CounterUj(JOULE)], 70 * SECOND, &Usage::default())[0];
    assert_eq!(delta.fault, Some(FaultCause::MayHaveWrapped));
}
