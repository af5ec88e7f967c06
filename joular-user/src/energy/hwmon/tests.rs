use joular_data::{
    attribution::counter::{Meters, Usage},
    model::{
        domain::{FaultCause, ReadFault, Reading},
        units::{MicroJoules, MonotonicNs},
    },
};

use super::*;
use crate::energy::{EnergyChoice, EnergySource, meter_files::fake::FakeTree};

fn options(tree: &FakeTree) -> EnergyOptions {
    EnergyOptions {
        choice: EnergyChoice::Auto,
        sys_root: tree.root().to_owned(),
        proc_root: tree.root().to_owned(),
        powercap_root: tree.root().to_owned(),
        ..EnergyOptions::default()
    }
}

pub(super) fn tree(files: &[&str]) -> FakeTree {
    let tree = FakeTree::new(&[]);
    for file in files {
        let (path, text) = file.split_once('=').unwrap();
        tree.set(&format!("class/hwmon/{path}"), text);
    }
    tree
}

pub(super) fn opened(tree: &FakeTree, name: &'static str) -> Result<Box<dyn EnergySource>, Unusable> {
    open(&options(tree), name).map(|opened| opened.source)
}

/// Each domain as `name socket role less = reading`.
#[track_caller]
pub(super) fn check(name: &'static str, files: &[&str], expected: &[&str]) {
    let tree = tree(files);
    let mut source = opened(&tree, name).unwrap();
    let readings = source.read();
    let shown: Vec<String> = source
        .domains()
        .iter()
        .zip(readings)
        .map(|(domain, reading)| {
            let (name, socket, role, less) = (&domain.name, domain.socket, domain.role, &domain.less);
            let socket = socket.map_or("-".to_owned(), |socket| socket.to_string());
            format!("{name} {socket} {role:?} {less:?} = {reading:?}")
        })
        .collect();
    assert_eq!(shown, expected);
    assert!(source.domains().iter().all(|domain| domain.source == name && source.name() == name));
}

const AMD_ENERGY: [&str; 9] = [
    "hwmon0/name=amd_energy",
    "hwmon0/energy1_label=Ecore000",
    "hwmon0/energy1_input=1",
    "hwmon0/energy2_label=Ecore001",
    "hwmon0/energy2_input=2",
    "hwmon0/energy3_label=Esocket0",
    "hwmon0/energy3_input=30",
    "hwmon0/energy4_label=Esocket1",
    "hwmon0/energy4_input=40",
];
const POWER_METER: [&str; 2] = ["hwmon1/name=power_meter", "hwmon1/power1_average=250000000"];
const DISCRETE: [&str; 3] = ["hwmon2/name=amdgpu", "hwmon2/in0_label=vddgfx", "hwmon2/power1_average=30000000"];

#[test]
fn sockets_of_amd_energy_are_packages_and_its_cores_are_not_used() {
    let expected = ["package 0 Shared [] = CounterUj(30)", "package 1 Shared [] = CounterUj(40)"];
    check(NAME, &AMD_ENERGY, &expected);
}

#[test]
fn a_platform_is_what_packages_leave_and_gpus_are_parts_of_it() {
    check(NAME, &POWER_METER, &["platform - Shared [] = PowerUw(250000000)"]);
    let files = [&AMD_ENERGY[..], &POWER_METER, &DISCRETE].concat();
    let expected = [
        "package 0 Shared [] = CounterUj(30)",
        "package 1 Shared [] = CounterUj(40)",
        "gpu0 - Part { of: 3 } [] = PowerUw(30000000)",
        "platform - Unshared [0, 1] = PowerUw(250000000)",
    ];
    check(NAME, &files, &expected);
    let expected = ["gpu0 - Part { of: 1 } [] = PowerUw(30000000)", "platform - Shared [] = PowerUw(250000000)"];
    check(NAME, &[&POWER_METER[..], &DISCRETE].concat(), &expected);
    let expected = [
        "package 0 Shared [] = CounterUj(30)",
        "package 1 Shared [] = CounterUj(40)",
        "gpu0 - Unshared [] = PowerUw(30000000)",
    ];
    check(NAME, &[&AMD_ENERGY[..], &DISCRETE].concat(), &expected);
}

#[test]
fn a_gpu_that_sleeps_leaves_the_machine_its_energy() {
    let tree = tree(&[&POWER_METER[..], &DISCRETE].concat());
    let mut source = opened(&tree, NAME).unwrap();
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    tree.break_file("class/hwmon/hwmon2/power1_average");
    let deltas = meters.advance(MonotonicNs(1_000_000_000), &source.read(), 1_000_000_000, &Usage::default());
    let [gpu, platform] = deltas[..] else { panic!("{deltas:?}") };
    assert_eq!(gpu.fault, Some(FaultCause::Unreadable));
    assert_eq!((platform.fault, platform.measured), (None, MicroJoules(250_000_000)));
}

#[test]
fn one_fam15h_power_is_the_package_and_several_are_not_told_apart() {
    let one = ["hwmon3/name=fam15h_power", "hwmon3/power1_input=45000000", "hwmon3/power1_average=1"];
    check(NAME, &one, &["package - Shared [] = PowerUw(45000000)"]);
    let two = [&one[..], &["hwmon4/name=fam15h_power", "hwmon4/power1_input=46000000"]].concat();
    assert!(opened(&tree(&two), NAME).is_err());
}

#[test]
fn discrete_gpus_are_nobodys_and_an_apu_is_not_used() {
    let files = [
        &DISCRETE[..],
        &["hwmon3/name=amdgpu", "hwmon3/in1_label=vddnb", "hwmon3/power1_input=9"],
        &["hwmon5/name=xe", "hwmon5/energy2_input=7"],
        &["hwmon10/name=i915", "hwmon10/energy1_input=8"],
        &["hwmon11/name=i915_gt0", "hwmon11/energy1_input=8"],
    ]
    .concat();
    let expected = [
        "gpu0 - Unshared [] = PowerUw(30000000)",
        "gpu1 - Unshared [] = CounterUj(7)",
        "gpu2 - Unshared [] = CounterUj(8)",
    ];
    check(GPU_NAME, &files, &expected);
    let refused = opened(&tree(&files), NAME).err().map(|error| error.kind);
    assert_eq!(refused, Some(UnusableKind::Absent), "a machine is not measured by its GPUs");
}

#[test]
fn of_what_is_not_known_nothing_is_used() {
    for (files, seen) in [
        (&["hwmon0/name=k10temp", "hwmon1/name=ina226", "hwmon1/power1_input=5"][..], "ina226, k10temp"),
        (&["hwmon0/name=power_meter", "hwmon0/power1_is_battery=1", "hwmon0/power1_average=5"], "power_meter"),
        (&["hwmon0/name=power_meter", "hwmon0/power1_average=5", "hwmon1/name=power_meter"], "power_meter"),
        (&["hwmon0/name=power_meter"], "power_meter"),
        (&["hwmon0/name=\u{1b}[2J"], "\\u{1b}[2J"),
        (&["hwmon0/temp1_input=1"], "none at all"),
        (&["hwmonx/name=power_meter"], "none at all"),
    ] {
        let refused = opened(&tree(files), NAME).err().unwrap();
        assert_eq!(refused.kind, UnusableKind::Absent, "{files:?}");
        assert!(refused.text.contains(&format!("there is {seen}:")), "{refused}");
    }
    let refused = open(&options(&FakeTree::new(&[])), NAME).err().unwrap();
    assert!(refused.kind == UnusableKind::Absent && refused.text.starts_with("listing "), "{refused}");
}

#[test]
fn a_number_that_another_chip_was_given_is_not_read() {
    let tree = tree(&AMD_ENERGY);
    let mut source = opened(&tree, NAME).unwrap();
    let causes = |readings: Vec<Reading>| -> Vec<Option<FaultCause>> {
        let cause = |reading| if let Reading::Failed(ReadFault { cause, .. }) = reading { Some(cause) } else { None };
        readings.into_iter().map(cause).collect()
    };
    assert_eq!(causes(source.read()), [None, None]);
    for (driver, expected) in [("nvme", Some(FaultCause::Gone)), ("amd_energy", None)] {
        tree.remove("class/hwmon/hwmon0/energy4_input");
        tree.set("class/hwmon/hwmon0/energy4_input", "50");
        tree.set("class/hwmon/hwmon0/name", driver);
        assert_eq!(causes(source.read()), [None, expected], "{driver}");
    }
}

#[test]
fn a_sensor_that_goes_away_fails_alone() {
    let tree = tree(&AMD_ENERGY);
    let mut source = opened(&tree, NAME).unwrap();
    tree.remove("class/hwmon/hwmon0/energy4_input");
    let readings = source.read();
    assert_eq!(readings[0], Reading::CounterUj(30));
    let Reading::Failed(fault) = &readings[1] else { panic!("{readings:?}") };
    assert_eq!(fault.cause, FaultCause::Gone);
    assert!(fault.text.ends_with("energy4_input: it is gone"), "{}", fault.text);
}
