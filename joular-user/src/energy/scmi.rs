//! Reads Arm SCMI powercap zones: power that the platform's firmware reports.
//!
//! The kernel's `arm_scmi_powercap` driver registers the control type `arm-scmi`, and below it a
//! zone per domain of the firmware, nested as the firmware says: `arm-scmi:0`, `arm-scmi:0:0`, … A
//! zone has `name` and `power_uw`, the average power over the firmware's averaging interval in µW,
//! and no energy (Linux, drivers/powercap/arm_scmi_powercap.c). With firmware without monitoring,
//! reading it fails with EINVAL.
//!
//! A zone's power contains its children's, so only the outermost are used. A zone's name tells
//! people which part of the machine it is, but tells programs nothing: a zone is divided among all
//! who ran.

use std::path::{Path, PathBuf};

use joular_data::model::domain::{Domain, Label, Meter, plain_name};

use super::{Adds, EnergyOptions, Opened, SourceKind, Unusable, UnusableKind, meter_files::MeterFiles, sysfs};

/// Name of this source in `--energy` and in data sets.
const NAME: &str = "scmi";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "Arm SCMI powercap zones: power that the firmware reports",
    permission: "to read power_uw of the zones",
    adds: Adds::Never,
    open,
};

/// The control type, and what its zones' names start with.
const CONTROL_TYPE: &str = "arm-scmi";
const ZONE_PREFIX: &str = "arm-scmi:";

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let root = &options.powercap_root;
    let mut meters: Vec<(Domain, PathBuf)> = Vec::new();
    for (number, zone) in outermost(root) {
        let text = sysfs::read_value(&zone.join("name")).ok().unwrap_or_default();
        let name = plain_name(&text).unwrap_or_else(|| format!("zone{number}"));
        let name = unique(name, number, &meters);
        let domain = Domain::new(&name, None, NAME, Label::Reported, Meter::Power);
        meters.push((domain, zone.join("power_uw")));
    }
    if meters.is_empty() {
        let text =
            format!("looking for {ZONE_PREFIX}N zones in {}: there are none: use another source", root.display());
        return Err(Unusable::new(UnusableKind::Absent, text));
    }
    let source = MeterFiles::open(NAME, meters)?;
    let basis = format!("firmware-reported power of {}", source.names());
    Ok(Opened::new(source, basis, "1 µW to 1 mW, averaged by the firmware"))
}

/// The zones that no other contains: `/sys/class/powercap` lists all zones, the
/// control type's directory its outermost.
fn outermost(root: &Path) -> Vec<(u32, PathBuf)> {
    let listed = |directory: &Path| sysfs::numbered(directory, ZONE_PREFIX).unwrap_or_default();
    let zones = listed(root);
    if zones.is_empty() { listed(&root.join(CONTROL_TYPE)) } else { zones }
}

/// The name or, if another zone has it, the first free one counting up from the
/// zone's number.
fn unique(name: String, number: u32, others: &[(Domain, PathBuf)]) -> String {
    let is_free = |name: &String| others.iter().all(|(other, _)| other.name != *name);
    let numbered = (u64::from(number)..).map(|number| format!("zone{number}"));
    std::iter::once(name).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::Reading;

    use super::*;
    use crate::energy::{EnergyChoice, meter_files::fake::FakeTree};

    fn opened(tree: &FakeTree) -> Result<Opened, Unusable> {
        open(&EnergyOptions {
            choice: EnergyChoice::These(vec![NAME]),
            sys_root: "/nowhere".into(),
            proc_root: "/nowhere".into(),
            powercap_root: tree.root().to_owned(),
            ..EnergyOptions::default()
        })
    }

    #[track_caller]
    fn check(files: &[&str], expected: &[(&str, u64)]) {
        let tree = FakeTree::new(files);
        let mut source = opened(&tree).unwrap().source;
        let readings = source.read();
        let names: Vec<&str> = source.domains().iter().map(|domain| domain.name.as_str()).collect();
        let (expected_names, powers): (Vec<&str>, Vec<u64>) = expected.iter().copied().unzip();
        assert_eq!(names, expected_names);
        assert_eq!(readings, powers.into_iter().map(Reading::PowerUw).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_outermost_zones_are_used() {
        let files = [
            "arm-scmi:0/name=SoC",
            "arm-scmi:0/power_uw=9000000",
            "arm-scmi:0:0/name=big cluster",
            "arm-scmi:0:0/power_uw=5000000",
            "arm-scmi:1/name=DDR",
            "arm-scmi:1/power_uw=1000000",
            "intel-rapl:0/name=package-0",
            "dtpm:0/power_uw=4",
        ];
        check(&files, &[("soc", 9_000_000), ("ddr", 1_000_000)]);
    }

    #[test]
    fn zones_may_stand_below_their_control_type() {
        let files = [
            "arm-scmi/arm-scmi:0/name=SoC",
            "arm-scmi/arm-scmi:0/power_uw=5",
            "arm-scmi/arm-scmi:0/arm-scmi:0:0/name=cpu",
        ];
        check(&files, &[("soc", 5)]);
    }

    /// As Linux lays them out: the class has a link to each zone, wherever that is.
    #[test]
    fn zones_are_found_by_the_links_of_their_class() {
        let zone = "devices/virtual/powercap/arm-scmi/arm-scmi:0";
        let files = [
            format!("{zone}/name=SoC"),
            format!("{zone}/power_uw=7000000"),
            format!("{zone}/enabled=1"),
            format!("{zone}/constraint_0_name=pai"),
            format!("{zone}/constraint_0_power_limit_uw=9000000"),
            format!("{zone}/arm-scmi:0:0/name=big"),
            format!("{zone}/arm-scmi:0:0/power_uw=4000000"),
            "class/powercap/intel-rapl=".to_owned(),
        ];
        let tree = FakeTree::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let links = [("arm-scmi", zone.strip_suffix("/arm-scmi:0").unwrap()), ("arm-scmi:0", zone)];
        for (name, target) in links.into_iter().chain([("arm-scmi:0:0", &*format!("{zone}/arm-scmi:0:0"))]) {
            let link = tree.path(&format!("class/powercap/{name}"));
            std::os::unix::fs::symlink(format!("../../{target}"), link).unwrap();
        }
        let options = EnergyOptions { powercap_root: tree.path("class/powercap"), ..EnergyOptions::default() };
        let mut source = open(&options).unwrap().source;
        assert_eq!(source.read(), [Reading::PowerUw(7_000_000)]);
        assert_eq!(source.domains()[0].name, "soc");
    }

    #[test]
    fn zones_with_one_name_are_told_apart() {
        let files = ["arm-scmi:0/name=x", "arm-scmi:0/power_uw=1", "arm-scmi:3/name=X", "arm-scmi:3/power_uw=2"];
        check(&files, &[("x", 1), ("zone3", 2)]);
    }

    #[test]
    fn zones_without_a_name_of_their_own_are_numbered_however_others_are_named() {
        let files = [
            "arm-scmi:0/name=zone2",
            "arm-scmi:0/power_uw=1",
            "arm-scmi:1/name=soc",
            "arm-scmi:1/power_uw=2",
            "arm-scmi:2/name=soc",
            "arm-scmi:2/power_uw=3",
            "arm-scmi:3/name=\u{1b}",
            "arm-scmi:3/power_uw=4",
        ];
        check(&files, &[("zone2", 1), ("soc", 2), ("zone3", 3), ("zone4", 4)]);
    }

    #[test]
    fn zones_without_monitoring_are_no_source() {
        let refused = opened(&FakeTree::new(&["intel-rapl:0/name=package-0"])).err().unwrap();
        assert_eq!(refused.kind, UnusableKind::Absent);
        let tree = FakeTree::new(&["arm-scmi:0/name=SoC", "arm-scmi:0/power_uw=1"]);
        tree.break_file("arm-scmi:0/power_uw");
        assert_eq!(opened(&tree).err().unwrap().kind, UnusableKind::Broken);
    }
}
