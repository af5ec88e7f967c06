//! Reads Linux hwmon: chips whose driver's name says what they measure.
//!
//! `energyN_input` is µJ, `powerN_input` and `powerN_average` are µW (Linux,
//! Documentation/hwmon/sysfs-interface.rst). Most power sensors are on rails whose place in the
//! machine nobody knows. So only drivers whose documentation says what the figure is of are used:
//!
//! | driver | figure | domain |
//! |---|---|---|
//! | `amd_energy` | `energyN_input` labelled `EsocketN` (Documentation/hwmon/amd_energy.rst up to Linux 5.12, outside the kernel since) | `package` of socket N |
//! | `fam15h_power` | `power1_input`: the whole package (Documentation/hwmon/fam15h_power.rst) | `package` |
//! | `power_meter` | `power1_average`: what ACPI's power meter measures, the machine (ACPI 6.5, section 10.4), or a part that its text names | `platform`; see [`arm`] |
//! | `apm_xgene`, `altra_hwmon`, `ina3221` | processors and modules with Arm's architecture | see [`arm`] |
//! | `amdgpu` | `power1_average` or `_input`: the GPU; on an APU, known by its `vddnb` rail, CPUs included, so not used (Documentation/gpu/amdgpu/thermal.rst) | `gpuN` |
//! | `i915`, `xe` | `energy1_input`: the card, or `energy2_input`: its package; both drivers register for discrete GPUs only (Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon) | `gpuN` |
//!
//! The platform contains packages and GPUs. Its domain is what packages leave, and GPUs are parts
//! of it, so that a GPU that cannot be read takes nothing with it. The drivers extend their
//! registers to 64 bits, so no range is known and none is needed. Reading a sleeping GPU may wake
//! it (`i915`, `xe`) or be refused (EPERM from `amdgpu`). A refusal is a failed read like any
//! other, even at the first look.

mod arm;

use std::path::{Path, PathBuf};

use joular_data::model::domain::{Domain, Label, Meter, Role};

use super::{
    Adds, EnergyOptions, Opened, SourceKind, Unusable, UnusableKind, cpuinfo,
    meter_files::{MeterFiles, Place},
    sysfs,
};

/// Names of the two kinds in `--energy` and in data sets.
const NAME: &str = "hwmon";
const GPU_NAME: &str = "hwmon-gpu";

/// What [`super::SOURCES`] has of processors and the machine.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "processors and the machine, by the hwmon chips amd_energy, fam15h_power, power_meter, apm_xgene, \
               altra_hwmon and ina3221",
    permission: "root or CAP_DAC_READ_SEARCH for amd_energy",
    adds: Adds::Never,
    open: |options| open(options, NAME),
};

/// What [`super::SOURCES`] has of discrete GPUs. They are a kind of their own, because a GPU does
/// not measure the machine.
pub const GPU_KIND: SourceKind = SourceKind {
    name: GPU_NAME,
    measures: "discrete GPUs, by the hwmon chips amdgpu, i915 and xe",
    permission: "none",
    adds: Adds::ToAuto,
    open: |options| open(options, GPU_NAME),
};

/// More than any part sold draws, see [`super::powercap`]. A GPU draws 1.4 kW in 2026.
const PACKAGE_MAX_WATTS: u32 = 1_000;
const GPU_MAX_WATTS: u32 = 3_000;

/// Most labels of a chip: `amd_energy` has one per core.
const MAX_CHANNELS: u32 = 4096;

/// Most chips that a message lists.
const MAX_LISTED: usize = 20;

fn open(options: &EnergyOptions, name: &'static str) -> Result<Opened, Unusable> {
    let root = options.sys_root.join("class/hwmon");
    let chips = chips(&root).map_err(|cause| {
        let text = format!("listing {}: {cause}: this kernel or virtual machine has no sensors", root.display());
        Unusable::new(UnusableKind::Absent, text)
    })?;
    let mut meters: Vec<Found> = if name == NAME { processors(&chips, options) } else { Vec::new() };
    meters.extend(gpus(&chips));
    if name == NAME {
        let platform = platform(&chips, &mut meters);
        meters.extend(platform);
        // GPUs alone say nothing about the processes of this machine.
        if meters.iter().all(|(domain, _)| domain.name.starts_with("gpu")) {
            meters.clear();
        }
    }
    if meters.is_empty() {
        return Err(none_known(&root, &chips));
    }
    for (domain, _) in &mut meters {
        domain.source = name.to_owned();
    }
    let source = MeterFiles::open(name, meters)?;
    let basis = format!("hwmon sensors of {}", source.names());
    Ok(Opened::new(source, basis, "as often as the chip advances, 1 ms to 1 s"))
}

/// A chip: its driver's name and where its files are.
struct Chip {
    driver: String,
    directory: PathBuf,
}

type Found = (Domain, Place);

fn chips(root: &Path) -> std::io::Result<Vec<Chip>> {
    let numbered = sysfs::numbered(root, "hwmon")?;
    let chip = |(_, directory): (u32, PathBuf)| {
        let chip = Chip { driver: String::new(), directory };
        Some(Chip { driver: chip.text("name")?, ..chip })
    };
    Ok(numbered.into_iter().filter_map(chip).collect())
}

impl Chip {
    /// Where a file is. Drivers that register in the old way, as `power_meter` did for long, have their files
    /// in the device's directory (Linux, drivers/hwmon/acpi_power_meter.c, `hwmon_device_register`).
    fn path(&self, name: &str) -> Option<PathBuf> {
        let places = [self.directory.join(name), self.directory.join("device").join(name)];
        places.into_iter().find(|path| path.exists())
    }

    /// The first of these files that is there.
    fn first_of(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().find_map(|name| self.path(name))
    }

    fn text(&self, file: &str) -> Option<String> {
        sysfs::read_value(&self.path(file)?).ok()
    }

    fn says(&self, file: &str, text: &str) -> bool {
        self.text(file).is_some_and(|found| found == text)
    }

    /// Channels with a label, which are numbered from 1 without a gap.
    fn labels(&self, kind: &str) -> impl Iterator<Item = (u32, String)> {
        (1..=MAX_CHANNELS).map_while(move |channel| Some((channel, self.text(&format!("{kind}{channel}_label"))?)))
    }
}

fn of_driver<'a>(chips: &'a [Chip], driver: &'a str) -> impl Iterator<Item = &'a Chip> {
    chips.iter().filter(move |chip| chip.driver == driver)
}

const fn counter(max_watts: u32) -> Meter {
    Meter::Counter { range_uj: 0, unit_uj: 1, max_watts }
}

/// Domains of processors and, on some machines, of what holds them.
fn processors(chips: &[Chip], options: &EnergyOptions) -> Vec<Found> {
    let mut packages = packages(chips);
    // `amd_energy` shows the same registers as powercap.
    let of_registers = packages.iter_mut().filter(|(domain, _)| domain.label == Label::Measured);
    of_registers.for_each(|(domain, _)| domain.label = cpuinfo::register_label(&options.proc_root));
    if packages.is_empty() { arm::meters(chips) } else { packages }
}

fn packages(chips: &[Chip]) -> Vec<Found> {
    let mut found: Vec<Found> = of_driver(chips, "amd_energy").flat_map(sockets).collect();
    found.sort_by_key(|(domain, _)| domain.socket);
    found.dedup_by_key(|(domain, _)| domain.socket);
    let mut old = of_driver(chips, "fam15h_power");
    // Which of several chips is which socket, nothing says.
    if let (true, Some(chip), None) = (found.is_empty(), old.next(), old.next())
        && let Some(path) = chip.first_of(&["power1_input"])
    {
        found.push((Domain::new("package", None, NAME, Label::Reported, Meter::Power), path.into()));
    }
    found
}

/// `energyN_input` files labelled `EsocketN`; the others, `EcoreNNN`, are of
/// cores, which the sockets contain.
fn sockets(chip: &Chip) -> Vec<Found> {
    let socket = |(channel, label): (u32, String)| {
        let socket = sysfs::number_after(&label, "Esocket")?;
        let domain = Domain::new("package", Some(socket), NAME, Label::Measured, counter(PACKAGE_MAX_WATTS));
        Some((domain, chip.directory.join(format!("energy{channel}_input")).into()))
    };
    chip.labels("energy").filter_map(socket).collect()
}

/// The machine's power meter, if there is exactly one. Each of several may be of a part, or of one
/// of two power supplies, and nothing says which. `others`, which come before it, are contained in
/// it: processors are taken off, and the rest become parts of it.
fn platform(chips: &[Chip], others: &mut [Found]) -> Option<Found> {
    let is_of_machine = |chip: &&Chip| !chip.says("power1_is_battery", "1") && !arm::is_grace(chip);
    let mut meters = of_driver(chips, "power_meter").filter(is_of_machine);
    let (Some(chip), None) = (meters.next(), meters.next()) else { return None };
    if others.iter().any(|(other, _)| other.name == "platform") {
        return None;
    }
    let path = chip.first_of(&["power1_average", "power1_input"])?;
    let mut domain = Domain::new("platform", None, NAME, Label::Reported, Meter::Power);
    let of = others.len();
    for (index, (other, _)) in others.iter_mut().enumerate() {
        if other.role == Role::Shared {
            domain.less.push(index);
            domain.role = Role::Unshared;
        } else {
            other.role = Role::Part { of };
        }
    }
    Some((domain, path.into()))
}

fn gpus(chips: &[Chip]) -> Vec<Found> {
    let found = chips.iter().filter_map(|chip| match chip.driver.as_str() {
        "amdgpu" if !chip.says("in1_label", "vddnb") => {
            Some((Label::Reported, Meter::Power, chip.first_of(&["power1_average", "power1_input"])?))
        }
        "i915" | "xe" => {
            Some((Label::Measured, counter(GPU_MAX_WATTS), chip.first_of(&["energy1_input", "energy2_input"])?))
        }
        _ => None,
    });
    let domain = |(index, (label, meter, path)): (usize, (Label, Meter, PathBuf))| {
        let mut domain = Domain::new(&format!("gpu{index}"), None, GPU_NAME, label, meter);
        domain.role = Role::Unshared;
        (domain, path.into())
    };
    found.enumerate().map(domain).collect()
}

fn none_known(root: &Path, chips: &[Chip]) -> Unusable {
    let mut drivers: Vec<String> = chips.iter().map(|chip| chip.driver.escape_debug().to_string()).collect();
    drivers.sort();
    drivers.dedup();
    drivers.truncate(MAX_LISTED);
    let seen = if drivers.is_empty() { "none at all".to_owned() } else { drivers.join(", ") };
    let advice = if of_driver(chips, arm::OF_ANOTHER_MACHINE).next().is_some() {
        arm::ABOUT_ANOTHER_MACHINE
    } else {
        "load the driver of one, or use another source"
    };
    let text = format!("looking for known power sensors in {}: there is {seen}: {advice}", root.display());
    Unusable::new(UnusableKind::Absent, text)
}

#[cfg(test)]
mod arm_tests;
#[cfg(test)]
mod tests;
