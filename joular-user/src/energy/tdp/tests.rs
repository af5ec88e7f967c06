use joular_data::{
    attribution::counter::{Meters, SocketLoad, Usage},
    model::{
        domain::{DividedBy, FaultCause, Label},
        units::{MicroJoules, MonotonicNs},
    },
};

use super::*;
use crate::energy::{EnergyChoice, meter_files::fake::FakeTree};

fn opened(tree: &FakeTree, tdp: &str, states: &str) -> Result<Opened, Unusable> {
    let tdp_uw = (!tdp.is_empty()).then(|| parse_tdp(tdp).unwrap());
    let states = if states.is_empty() { States::default() } else { states.parse().unwrap() };
    open(&EnergyOptions {
        choice: EnergyChoice::These(vec![NAME]),
        sys_root: tree.path("sys"),
        proc_root: tree.path("proc"),
        powercap_root: tree.path("powercap"),
        tdp: Some(TdpOptions { tdp_uw, states }),
        ..EnergyOptions::default()
    })
}

/// CPUs of these sockets, each with the same cpufreq files.
fn machine(sockets: &[u32], cpufreq: &[&str]) -> FakeTree {
    let tree = FakeTree::new(&["sys/devices/system/cpu/cpufreq/boost=1"]);
    for (cpu, socket) in sockets.iter().enumerate() {
        tree.set(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), &socket.to_string());
        for file in cpufreq {
            let (path, text) = file.split_once('=').unwrap();
            tree.set(&cpufreq_file(cpu, path), text);
        }
    }
    tree
}

fn cpufreq_file(cpu: usize, path: &str) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{path}")
}

const TIMES: &str = "stats/time_in_state=1000000 0\n2000000 0";
const RATED: &str = "cpuinfo_max_freq=2000000";

#[test]
fn what_is_known_decides_the_power_of_a_busy_cpu() {
    // 100 W, two CPUs: 35 W per busy CPU at 2 GHz.
    for (cpufreq, states, expected_uw, basis) in [
        (&[][..], "", 35_000_000, "no cpufreq and one voltage"),
        (&["scaling_cur_freq=1000000"], "", 35_000_000, "no cpufreq"),
        (&["scaling_cur_freq=1000000", RATED], "", 17_500_000, "frequency at each reading"),
        (&["scaling_cur_freq=1000000"], "1000:0.5,2000:1", 4_375_000, "between those of --tdp-states"),
        (&["scaling_cur_freq=1000000", "base_frequency=1000000", RATED], "", 35_000_000, "--tdp,"),
        (&[TIMES, "scaling_cur_freq=2000000", RATED], "", 35_000_000, "the time in each frequency"),
    ] {
        let tree = machine(&[0, 0], cpufreq);
        let mut opened = opened(&tree, "100", states).unwrap();
        assert_eq!(opened.source.read(), [Reading::BusyPowerUw(expected_uw)], "{cpufreq:?} {states}");
        assert!(opened.basis.contains(basis), "{}", opened.basis);
        assert_eq!(opened.source.domains()[0].label, Label::Modelled);
        assert_eq!(opened.source.domains()[0].divided_by, DividedBy::CpuTime);
    }
}

#[test]
fn sockets_have_their_own_frequencies() {
    let tree = machine(&[0, 1, 0, 1], &[TIMES, RATED]);
    let mut source = opened(&tree, "100", "").unwrap().source;
    let sockets: Vec<_> = source.domains().iter().map(|domain| (domain.name.as_str(), domain.socket)).collect();
    assert_eq!(sockets, [("cpu", Some(0)), ("cpu", Some(1))]);
    for (cpu, times) in [(0, "1000000 9\n2000000 0"), (2, "1000000 0\n2000000 3"), (1, "1000000 1\n2000000 3")] {
        tree.set(&cpufreq_file(cpu, "stats/time_in_state"), times);
    }
    tree.set(&cpufreq_file(3, "stats/time_in_state"), "1000000 5\n2000000 15");
    // Socket 0: half of 35 W on CPU 0, 35 W on CPU 2. Socket 1: 7/8 on both.
    assert_eq!(source.read(), [Reading::BusyPowerUw(26_250_000), Reading::BusyPowerUw(30_625_000)]);
}

#[test]
fn a_machine_that_is_busy_throughout_draws_seven_tenths_of_its_tdp() {
    let mut source = opened(&machine(&[0, 0, 0, 0], &[]), "100", "").unwrap().source;
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    for (busy_ns, expected) in [(4_000_000_000, 70_000_000), (1_000_000_000, 17_500_000), (0, 0)] {
        let load = [SocketLoad { socket: 0, cpus: 4, busy_ns }];
        let deltas = meters.advance(
            MonotonicNs(1),
            &source.read(),
            1_000_000_000,
            &Usage { sockets: &load, ..Usage::default() },
        );
        assert_eq!(deltas[0].measured, MicroJoules(expected));
    }
}

#[test]
fn a_cpu_that_goes_offline_does_not_count_and_all_of_them_fail() {
    let tree = machine(&[0, 0], &["scaling_cur_freq=1000000", RATED]);
    let mut source = opened(&tree, "100", "").unwrap().source;
    tree.set(&cpufreq_file(1, "scaling_cur_freq"), "2000000");
    assert_eq!(source.read(), [Reading::BusyPowerUw(26_250_000)]);
    tree.remove(&cpufreq_file(0, "scaling_cur_freq"));
    assert_eq!(source.read(), [Reading::BusyPowerUw(35_000_000)]);
    for (text, cause) in [("", FaultCause::Malformed), ("0", FaultCause::Malformed), ("fast", FaultCause::Malformed)] {
        tree.set(&cpufreq_file(1, "scaling_cur_freq"), text);
        let [Reading::Failed(fault)] = &source.read()[..] else { panic!("{text:?} is not a frequency") };
        assert!(fault.cause == cause && fault.text.contains("cpu1/cpufreq"), "{fault:?}");
    }
    tree.break_file(&cpufreq_file(1, "scaling_cur_freq"));
    assert!(matches!(&source.read()[..], [Reading::Failed(fault)] if fault.cause == FaultCause::Unreadable));
}

#[test]
fn the_tdp_may_come_from_powercap() {
    let tree = machine(&[0, 1], &[]);
    let refused = |tree: &FakeTree| opened(tree, "", "").err().map(|error| error.kind);
    assert_eq!(refused(&tree), Some(UnusableKind::NotAsked));
    for (zone, name, watts) in [("intel-rapl:0", "package-1", "80"), ("intel-rapl:1", "package-0", "100")] {
        tree.set(&format!("powercap/{zone}/name"), name);
        tree.set(&format!("powercap/{zone}/constraint_0_name"), "short_term");
        tree.set(&format!("powercap/{zone}/constraint_0_max_power_uw"), "999000000");
        assert_eq!(refused(&tree), Some(UnusableKind::NotAsked), "no long-term limit of {name}");
        tree.set(&format!("powercap/{zone}/constraint_1_name"), "long_term");
        tree.set(&format!("powercap/{zone}/constraint_1_max_power_uw"), "0");
        assert_eq!(refused(&tree), Some(UnusableKind::NotAsked), "0 is not a limit");
        tree.set(&format!("powercap/{zone}/constraint_1_max_power_uw"), &format!("{watts}000000"));
    }
    let mut by_powercap = opened(&tree, "", "").unwrap();
    assert_eq!(by_powercap.source.read(), [Reading::BusyPowerUw(70_000_000), Reading::BusyPowerUw(56_000_000)]);
    assert!(by_powercap.basis.contains("powercap"), "{}", by_powercap.basis);
    let mut given = opened(&tree, "10", "").unwrap().source;
    assert_eq!(given.read(), [Reading::BusyPowerUw(7_000_000), Reading::BusyPowerUw(7_000_000)]);
}

#[test]
fn a_machine_without_topology_is_not_modelled() {
    let tree = FakeTree::new(&["sys/devices/system/cpu/cpu0/online=0"]);
    assert_eq!(opened(&tree, "65", "").err().unwrap().kind, UnusableKind::Absent);
    let tree = FakeTree::new(&["sys/devices/system/cpu/cpu0/topology/physical_package_id=-1"]);
    for package in ["-1", "256", "0"] {
        tree.set("sys/devices/system/cpu/cpu0/topology/physical_package_id", package);
        assert_eq!(opened(&tree, "65", "").unwrap().source.domains()[0].socket, Some(0), "{package}");
    }
}
