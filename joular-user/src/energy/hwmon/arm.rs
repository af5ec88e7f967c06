//! Finds the meters of processors and modules with Arm's architecture among hwmon chips.
//!
//! | driver | what is used | domains |
//! |---|---|---|
//! | `power_meter` | NVIDIA Grace has one meter for each part of a socket, and its `power1_oem_info` says which: `Module`, `Grace`, `CPU` or `SysIO Power Socket N` (NVIDIA/DCGM, modules/sysmon/DcgmSystemMonitor.cpp, reads these texts) | `package` of socket N: Grace; `core` and `sysio`: parts of it; `platform` of socket N: what the module draws beside Grace |
//! | `apm_xgene` | `power1_input` labelled `CPU power`, `power2_input` labelled `IO power`, µW (Linux, drivers/hwmon/xgene-hwmon.c) | `core`, `io` |
//! | `altra_hwmon`, which is not in the kernel | `energyN_input` labelled `Core Energy NNN`, in µJ, one for each core (its source: labels are a text of the firmware and a number) | `core`: all together |
//! | `ina3221` on Jetson modules | voltage in mV (`inN_input`) × current in mA (`currN_input`) of channels with the labels `VDD_IN`, `VDD_CPU_GPU_CV` and `VDD_CPU_CV` (Linux, Documentation/hwmon/ina3221.rst, arch/arm64/boot/dts/nvidia/tegra234-p3701.dtsi and -p3767.dtsi) | `package`: the rail of the CPUs; `platform`: the rest of `VDD_IN`, the whole module |
//!
//! A module contains its Grace, and Grace its CPU and its SysIO rails. The documents of Alumet's plugin
//! grace-hopper say so by NVIDIA's Grace Performance Tuning Guide ("Power Telemetry"): a module is Grace,
//! GPU and both memories with their regulators. So it is not divided among processes: what it draws beside
//! Grace is mostly the GPU. What a sensor is of that nothing names, such as other rails of a Jetson or
//! other energies of an Altra, is not used.
//!
//! `smpro_hwmon` (Linux, Documentation/hwmon/smpro-hwmon.rst) runs on the management controller of an
//! Ampere Altra, and shows the power of the machine beside it. Processes on the controller draw none of it.

use std::{collections::BTreeMap, path::PathBuf};

use joular_data::model::domain::{Domain, Label, Meter, Role};

use super::{Chip, Found, NAME, PACKAGE_MAX_WATTS, Place, counter, of_driver};

/// A driver whose figures are of another machine.
pub(super) const OF_ANOTHER_MACHINE: &str = "smpro_hwmon";

pub(super) const ABOUT_ANOTHER_MACHINE: &str = "smpro_hwmon shows the power of the machine that this controller manages: \
                                                record there, with --energy watts and a file that has the power";

/// What one of Grace's meters is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grace {
    Module,
    Socket,
    Cpu,
    SysIo,
}

/// The domains of such chips; the indices in them are those of this list.
pub(super) fn meters(chips: &[Chip]) -> Vec<Found> {
    let kinds = [grace, altra, xgene, jetson];
    kinds.into_iter().map(|of_kind| of_kind(chips)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Whether a chip is one of Grace's meters.
pub(super) fn is_grace(chip: &Chip) -> bool {
    grace_meter(chip).is_some()
}

fn grace_meter(chip: &Chip) -> Option<(u32, Grace)> {
    let text = chip.text("power1_oem_info")?;
    let (part, socket) = text.split_once(" Power Socket ")?;
    let part = match part {
        "Module" => Grace::Module,
        "Grace" => Grace::Socket,
        "CPU" => Grace::Cpu,
        "SysIO" => Grace::SysIo,
        _ => return None,
    };
    Some((socket.parse().ok()?, part))
}

fn power(name: &str, socket: Option<u32>, place: impl Into<Place>) -> Found {
    (Domain::new(name, socket, NAME, Label::Reported, Meter::Power), place.into())
}

fn grace(chips: &[Chip]) -> Vec<Found> {
    let mut sockets: BTreeMap<u32, BTreeMap<Grace, PathBuf>> = BTreeMap::new();
    for chip in of_driver(chips, "power_meter") {
        let path = chip.first_of(&["power1_average", "power1_input"]);
        if let (Some((socket, part)), Some(path)) = (grace_meter(chip), path) {
            sockets.entry(socket).or_default().entry(part).or_insert(path);
        }
    }
    let mut found = Vec::new();
    for (socket, mut parts) in sockets {
        let socket = Some(socket);
        let of = found.len();
        let (grace, cpu, sys_io) =
            (parts.remove(&Grace::Socket), parts.remove(&Grace::Cpu), parts.remove(&Grace::SysIo));
        // Without Grace's own meter nothing has what the two are parts of, and the CPU's stands for the socket.
        let (package, inner) = match grace {
            Some(path) => (Some(path), [("core", cpu), ("sysio", sys_io)]),
            None => (cpu, [("core", None), ("sysio", None)]),
        };
        let has_package = package.is_some();
        found.extend(package.map(|path| power("package", socket, path)));
        for (name, path) in inner {
            found.extend(path.map(|path| {
                let (domain, place) = power(name, socket, path);
                (Domain { role: Role::Part { of }, ..domain }, place)
            }));
        }
        if let Some(path) = parts.remove(&Grace::Module) {
            let (domain, place) = power("platform", socket, path);
            let rest = |domain| Domain { role: Role::Unshared, less: vec![of], ..domain };
            found.push((if has_package { rest(domain) } else { domain }, place));
        }
    }
    found
}

fn altra(chips: &[Chip]) -> Vec<Found> {
    let cores = |chip: &Chip| -> Vec<PathBuf> {
        let of_cores = chip.labels("energy").filter(|(_, label)| label.starts_with("Core Energy "));
        of_cores.filter_map(|(channel, _)| chip.path(&format!("energy{channel}_input"))).collect()
    };
    // The numbers in labels leave out cores that are off, so they are not the kernel's.
    let all: Vec<PathBuf> = of_driver(chips, "altra_hwmon").flat_map(cores).collect();
    let domain = Domain::new("core", None, NAME, Label::Reported, counter(PACKAGE_MAX_WATTS));
    if all.is_empty() { Vec::new() } else { vec![(domain, Place::Sum(all))] }
}

fn xgene(chips: &[Chip]) -> Vec<Found> {
    let mut found = of_driver(chips, "apm_xgene");
    let (Some(chip), None) = (found.next(), found.next()) else { return Vec::new() };
    let labelled = |wanted: &str| {
        let (channel, _) = chip.labels("power").find(|(_, label)| label == wanted)?;
        chip.path(&format!("power{channel}_input"))
    };
    let cpu = labelled("CPU power").map(|path| power("core", None, path));
    let io = labelled("IO power").filter(|_| cpu.is_some()).map(|path| {
        let (domain, place) = power("io", None, path);
        (Domain { role: Role::Unshared, ..domain }, place)
    });
    cpu.into_iter().chain(io).collect()
}

fn jetson(chips: &[Chip]) -> Vec<Found> {
    let rail = |names: &[&str]| {
        let chips = of_driver(chips, "ina3221");
        let mut channels = chips.flat_map(|chip| (1..=3).map(move |channel| (chip, channel)));
        channels.find_map(|(chip, channel)| {
            let label = chip.text(&format!("in{channel}_label"))?;
            let is_on = !chip.says(&format!("in{channel}_enable"), "0");
            let file = |kind: &str| chip.path(&format!("{kind}{channel}_input"));
            (is_on && names.contains(&label.as_str())).then(|| Some(Place::Product([file("in")?, file("curr")?])))?
        })
    };
    let mut found = Vec::new();
    found.extend(rail(&["VDD_CPU_GPU_CV", "VDD_CPU_CV"]).map(|place| power("package", None, place)));
    if let Some(place) = rail(&["VDD_IN"]) {
        let (mut domain, place) = power("platform", None, place);
        if !found.is_empty() {
            domain.role = Role::Unshared;
            domain.less.push(0);
        }
        found.push((domain, place));
    }
    found
}
