//! Reads the temperature of processors: of hwmon chips whose driver says that it is a package's, or
//! of thermal zones of CPUs.
//!
//! Leakage grows with temperature, by some per cent of the power in 10 °C, so runs at another
//! temperature draw another power.
//!
//! | driver | sensor |
//! |---|---|
//! | `coretemp` | labelled `Package id N` (Linux, Documentation/hwmon/coretemp.rst) |
//! | `k10temp`, `zenpower` | labelled `Tdie`, or else `Tctl`, which may have an offset (Documentation/hwmon/k10temp.rst) |
//! | `cpu_thermal` and thermal zones of type `x86_pkg_temp`, `cpu…`, `soc…` | the only one |

use std::path::{Path, PathBuf};

use super::{MOST_READS, name_in};
use crate::energy::sysfs;

/// Most sensors of a chip: one for each core and some.
const MAX_CHANNELS: u32 = 512;

/// What a sensor at work may show, thousandths of a degree.
const PLAUSIBLE: std::ops::RangeInclusive<i64> = -60_000..=150_000;

#[derive(Debug)]
pub(super) struct Temperature {
    sensors: Vec<PathBuf>,
}

impl Temperature {
    pub(super) fn new(sys_root: &Path) -> Self {
        let chips = sysfs::numbered(&sys_root.join("class/hwmon"), "hwmon").unwrap_or_default();
        let mut sensors: Vec<PathBuf> = chips.iter().flat_map(|(_, chip)| of_chip(chip)).collect();
        if sensors.is_empty() {
            let zones = sysfs::numbered(&sys_root.join("class/thermal"), "thermal_zone").unwrap_or_default();
            let of_cpus =
                zones.iter().filter(|(_, zone)| name_in(&zone.join("type")).is_some_and(|kind| is_cpu(&kind)));
            sensors = of_cpus.map(|(_, zone)| zone.join("temp")).collect();
        }
        sensors.truncate(MOST_READS);
        Self { sensors }
    }

    /// Of all sensors that can be read.
    pub(super) fn hottest_millicelsius(&self) -> Option<i64> {
        self.sensors.iter().filter_map(|sensor| millicelsius(&sysfs::read_value(sensor).ok()?)).max()
    }
}

fn is_cpu(zone: &str) -> bool {
    zone == "x86_pkg_temp" || zone.starts_with("cpu") || zone.starts_with("soc")
}

/// The sensors of a chip that are of whole processors.
fn of_chip(chip: &Path) -> Vec<PathBuf> {
    let labelled = |is_it: fn(&str) -> bool| {
        let labels = (1..=MAX_CHANNELS).map(|channel| (channel, chip.join(format!("temp{channel}_label"))));
        let found = labels.filter(|(_, label)| sysfs::read_value(label).is_ok_and(|label| is_it(&label)));
        found.map(|(channel, _)| chip.join(format!("temp{channel}_input"))).collect::<Vec<_>>()
    };
    match name_in(&chip.join("name")).as_deref() {
        Some("coretemp") => labelled(|label| label.starts_with("Package id")),
        Some("k10temp" | "zenpower") => {
            let die = labelled(|label| label == "Tdie");
            if die.is_empty() { labelled(|label| label == "Tctl") } else { die }
        }
        Some("cpu_thermal") => vec![chip.join("temp1_input")],
        _ => Vec::new(),
    }
}

fn millicelsius(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|found| PLAUSIBLE.contains(found))
}

#[cfg(test)]
mod tests {
    use super::{super::fake_tree::FakeTree, *};

    fn hottest(files: &[(&str, &str)]) -> Option<i64> {
        let tree = FakeTree::new();
        files.iter().for_each(|(path, text)| tree.write(&format!("sys/class/{path}"), text));
        Temperature::new(tree.roots().sys).hottest_millicelsius()
    }

    #[test]
    fn of_two_packages_the_hotter_one_counts_and_cores_do_not() {
        let found = hottest(&[
            ("hwmon/hwmon2/name", "coretemp\n"),
            ("hwmon/hwmon2/temp1_label", "Package id 0\n"),
            ("hwmon/hwmon2/temp1_input", "41000\n"),
            ("hwmon/hwmon2/temp2_label", "Core 0\n"),
            ("hwmon/hwmon2/temp2_input", "90000\n"),
            ("hwmon/hwmon3/name", "coretemp\n"),
            ("hwmon/hwmon3/temp1_label", "Package id 1\n"),
            ("hwmon/hwmon3/temp1_input", "52000\n"),
            ("hwmon/hwmon4/name", "nvme\n"),
            ("hwmon/hwmon4/temp1_input", "99000\n"),
            ("thermal/thermal_zone0/type", "x86_pkg_temp\n"),
            ("thermal/thermal_zone0/temp", "10000\n"),
        ]);
        assert_eq!(found, Some(52_000));
    }

    #[test]
    fn a_die_is_better_than_a_control_temperature() {
        let control = [
            ("hwmon/hwmon0/name", "k10temp\n"),
            ("hwmon/hwmon0/temp1_label", "Tctl\n"),
            ("hwmon/hwmon0/temp1_input", "70000\n"),
        ];
        let die = [("hwmon/hwmon0/temp2_label", "Tdie\n"), ("hwmon/hwmon0/temp2_input", "43000\n")];
        assert_eq!(hottest(&control), Some(70_000));
        assert_eq!(hottest(&[control.as_slice(), &die].concat()), Some(43_000));
    }

    #[test]
    fn without_a_chip_the_zones_of_cpus_count() {
        let found = hottest(&[
            ("thermal/thermal_zone0/type", "acpitz\n"),
            ("thermal/thermal_zone0/temp", "99000\n"),
            ("thermal/thermal_zone1/type", "cpu-thermal\n"),
            ("thermal/thermal_zone1/temp", "38000\n"),
            ("thermal/thermal_zone2/type", "soc_thermal\n"),
            ("thermal/thermal_zone2/temp", "garbage\n"),
        ]);
        assert_eq!(found, Some(38_000));
        assert_eq!(hottest(&[]), None);
    }

    #[test]
    fn figures_of_broken_sensors_are_none() {
        for (text, expected) in
            [("51000\n", Some(51_000)), ("-5000", Some(-5_000)), ("-273150", None), ("255000", None), ("", None)]
        {
            assert_eq!(millicelsius(text), expected, "{text:?}");
        }
    }
}
