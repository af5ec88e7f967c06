//! Trees as the drivers of machines with Arm's architecture lay them out.

use joular_data::{
    attribution::counter::{Meters, Usage},
    model::units::{MicroJoules, MonotonicNs},
};

use super::{
    super::UnusableKind,
    NAME,
    tests::{check, opened, tree},
};

/// A meter of Grace in the layout that `power_meter` had for long: files of the device.
fn grace(hwmon: u32, part: &str, socket: u32, watts: u32) -> Vec<String> {
    let device = format!("hwmon{hwmon}/device");
    vec![
        format!("{device}/name=power_meter"),
        format!("{device}/power1_average={watts}000000"),
        format!("{device}/power1_oem_info={part} Power Socket {socket}"),
        format!("{device}/power1_is_battery=0"),
    ]
}

#[track_caller]
fn check_all(files: &[Vec<String>], expected: &[&str]) {
    let files: Vec<&str> = files.iter().flatten().map(String::as_str).collect();
    check(NAME, &files, expected);
}

#[test]
fn a_grace_hopper_module_is_told_from_its_grace_and_that_from_its_cpu() {
    let files =
        [grace(1, "Module", 0, 400), grace(2, "Grace", 0, 150), grace(3, "CPU", 0, 90), grace(4, "SysIO", 0, 20)];
    let expected = [
        "package 0 Shared [] = PowerUw(150000000)",
        "core 0 Part { of: 0 } [] = PowerUw(90000000)",
        "sysio 0 Part { of: 0 } [] = PowerUw(20000000)",
        "platform 0 Unshared [0] = PowerUw(400000000)",
    ];
    check_all(&files, &expected);
}

#[test]
fn nested_meters_are_not_counted_twice() {
    let files =
        [grace(1, "Module", 0, 400), grace(2, "Grace", 0, 150), grace(3, "CPU", 0, 90), grace(4, "SysIO", 0, 20)];
    let files: Vec<&str> = files.iter().flatten().map(String::as_str).collect();
    let tree = tree(&files);
    let mut source = opened(&tree, NAME).unwrap();
    let mut meters = Meters::new(source.domains());
    meters.start(MonotonicNs(0), &source.read());
    let deltas = meters.advance(MonotonicNs(1_000_000_000), &source.read(), 1_000_000_000, &Usage::default());
    let measured: Vec<MicroJoules> = deltas.iter().map(|delta| delta.measured).collect();
    assert_eq!(measured, [150, 90, 20, 250].map(|joules| MicroJoules(joules * 1_000_000)));
}

#[test]
fn sockets_of_a_grace_superchip_are_packages() {
    let files = [grace(0, "Grace", 1, 120), grace(1, "CPU", 1, 80), grace(2, "Grace", 0, 110), grace(3, "SysIO", 0, 9)];
    let expected = [
        "package 0 Shared [] = PowerUw(110000000)",
        "sysio 0 Part { of: 0 } [] = PowerUw(9000000)",
        "package 1 Shared [] = PowerUw(120000000)",
        "core 1 Part { of: 2 } [] = PowerUw(80000000)",
    ];
    check_all(&files, &expected);
}

#[test]
fn a_part_without_its_whole_is_what_there_is() {
    check_all(&[grace(0, "CPU", 0, 80), grace(1, "SysIO", 0, 9)], &["package 0 Shared [] = PowerUw(80000000)"]);
    check_all(&[grace(0, "Module", 2, 300)], &["platform 2 Shared [] = PowerUw(300000000)"]);
    let modules = [grace(0, "Module", 0, 300), grace(1, "CPU", 0, 80)];
    let expected = ["package 0 Shared [] = PowerUw(80000000)", "platform 0 Unshared [0] = PowerUw(300000000)"];
    check_all(&modules, &expected);
    // One meter of a part is not the machine's.
    let sys_io = grace(0, "SysIO", 0, 9);
    let files: Vec<&str> = sys_io.iter().map(String::as_str).collect();
    assert_eq!(opened(&tree(&files), NAME).err().unwrap().kind, UnusableKind::Absent);
}

#[test]
fn texts_that_name_no_part_leave_a_meter_what_it_was() {
    for text in
        ["", "Power Socket 0", "Grace Power Socket", "Grace Power Socket x", "Grace Power Socket 99999999999", "\u{1b}"]
    {
        let files = ["hwmon0/name=power_meter", "hwmon0/power1_average=5", &format!("hwmon0/power1_oem_info={text}")];
        check(NAME, &files, &["platform - Shared [] = PowerUw(5)"]);
    }
}

#[test]
fn the_layout_of_power_meter_since_it_registers_in_the_new_way_is_read_too() {
    let files = [
        "hwmon7/name=power_meter",
        "hwmon7/power1_average=7000000",
        "hwmon7/power1_oem_info=Grace Power Socket 0",
        "hwmon8/name=power_meter",
        "hwmon8/device/power1_average=3000000",
        "hwmon8/device/power1_oem_info=CPU Power Socket 0",
    ];
    let expected = ["package 0 Shared [] = PowerUw(7000000)", "core 0 Part { of: 0 } [] = PowerUw(3000000)"];
    check(NAME, &files, &expected);
}

const XGENE: [&str; 7] = [
    "hwmon0/name=apm_xgene",
    "hwmon0/temp1_label=SoC Temperature",
    "hwmon0/power1_label=CPU power",
    "hwmon0/power1_input=25000000",
    "hwmon0/power2_label=IO power",
    "hwmon0/power2_input=11000000",
    "hwmon0/temp1_input=40000",
];

#[test]
fn an_x_gene_has_cores_and_what_is_beside_them() {
    check(NAME, &XGENE, &["core - Shared [] = PowerUw(25000000)", "io - Unshared [] = PowerUw(11000000)"]);
    let machine = ["hwmon1/name=power_meter", "hwmon1/power1_average=90000000"];
    let expected = [
        "core - Shared [] = PowerUw(25000000)",
        "io - Part { of: 2 } [] = PowerUw(11000000)",
        "platform - Unshared [0] = PowerUw(90000000)",
    ];
    check(NAME, &[&XGENE[..], &machine].concat(), &expected);
    let other = XGENE.map(|file| file.replace("hwmon0", "hwmon1"));
    let two: Vec<&str> = XGENE.into_iter().chain(other.iter().map(String::as_str)).collect();
    assert!(opened(&tree(&two), NAME).is_err(), "which of two is which socket, nothing says");
}

#[test]
fn cores_of_an_altra_are_added_up_and_its_other_energies_are_not_used() {
    let files = [
        "hwmon0/name=altra_hwmon",
        "hwmon0/energy1_label=Core Energy 000",
        "hwmon0/energy1_input=5000000",
        "hwmon0/energy2_label=Core Energy 001",
        "hwmon0/energy2_input=7000000",
        "hwmon0/energy3_label=What Energy 000",
        "hwmon0/energy3_input=900000000",
        "hwmon1/name=altra_hwmon",
        "hwmon1/energy1_label=Core Energy 000",
        "hwmon1/energy1_input=1000000",
    ];
    check(NAME, &files, &["core - Shared [] = CounterUj(13000000)"]);
    assert!(opened(&tree(&["hwmon0/name=altra_hwmon", "hwmon0/temp1_label=SoC"]), NAME).is_err());
}

const ORIN_NX: [&str; 10] = [
    "hwmon3/name=ina3221",
    "hwmon3/in1_label=VDD_IN",
    "hwmon3/in1_input=5000",
    "hwmon3/curr1_input=1200",
    "hwmon3/in2_label=VDD_CPU_GPU_CV",
    "hwmon3/in2_input=5000",
    "hwmon3/curr2_input=400",
    "hwmon3/in3_label=VDD_SOC",
    "hwmon3/in3_input=5000",
    "hwmon3/curr3_input=300",
];

#[test]
fn the_rails_of_a_jetson_are_volts_times_amperes() {
    let expected = ["package - Shared [] = PowerUw(2000000)", "platform - Unshared [0] = PowerUw(6000000)"];
    check(NAME, &ORIN_NX, &expected);
    // AGX Orin has no rail of the whole module.
    let agx = [
        "hwmon1/name=ina3221",
        "hwmon1/in1_label=VDD_GPU_SOC",
        "hwmon1/in1_input=12000",
        "hwmon1/curr1_input=900",
        "hwmon1/in2_label=VDD_CPU_CV",
        "hwmon1/in2_input=12000",
        "hwmon1/curr2_input=250",
        "hwmon2/name=ina3221",
        "hwmon2/in2_label=VDDQ_VDD2_1V8AO",
    ];
    check(NAME, &agx, &["package - Shared [] = PowerUw(3000000)"]);
}

#[test]
fn a_rail_that_is_off_or_not_known_is_not_used() {
    let off = [&ORIN_NX[..], &["hwmon3/in2_enable=0"]].concat();
    check(NAME, &off, &["platform - Shared [] = PowerUw(6000000)"]);
    let other = ["hwmon0/name=ina3221", "hwmon0/in1_label=VDD_USB", "hwmon0/in1_input=1", "hwmon0/curr1_input=1"];
    let nameless = ["hwmon0/name=ina3221", "hwmon0/in1_input=1", "hwmon0/curr1_input=1"];
    let half = ["hwmon0/name=ina3221", "hwmon0/in1_label=VDD_IN", "hwmon0/in1_input=1"];
    for files in [&other[..], &nameless, &half] {
        assert_eq!(opened(&tree(files), NAME).err().unwrap().kind, UnusableKind::Absent, "{files:?}");
    }
}

#[test]
fn a_management_controller_is_told_to_record_elsewhere() {
    let files = ["hwmon0/name=smpro_hwmon", "hwmon0/power1_label=power1 CORE VRD", "hwmon0/power1_input=9000000"];
    let refused = opened(&tree(&files), NAME).err().unwrap();
    assert_eq!(refused.kind, UnusableKind::Absent);
    assert!(refused.text.contains("of the machine that this controller manages"), "{refused}");
}
