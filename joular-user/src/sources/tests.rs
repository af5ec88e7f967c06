//! Tests what `joular-bpf sources` says of machines that tests do not run on. Each is built as a
//! tree of files: testdata/NAME.txt. `UPDATE_FIXTURES=1 cargo test` writes the texts as they are
//! now.

use std::{fs, path::Path};

use super::*;
use crate::energy::{
    EnergyChoice,
    perf_pmu::fake::{self, POWER, POWER_CORE},
    powercap::fake_tree::{FakeTree, unprivileged},
};

const PKG: (&str, u8) = ("energy-pkg", 2);
const CORES: (&str, u8) = ("energy-cores", 1);
const RAM: (&str, u8) = ("energy-ram", 3);
const GPU: (&str, u8) = ("energy-gpu", 4);
const PSYS: (&str, u8) = ("energy-psys", 5);
const CORE: (&str, u8) = ("energy-core", 1);

const INTEL_CLIENT: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 151\nstepping : 2\n";
const INTEL_SERVER: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 106\nstepping : 6\n";
const ZEN_2: &str = "vendor_id : AuthenticAMD\ncpu family : 23\nmodel : 49\nstepping : 0\n";
const ZEN_4: &str = "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nstepping : 1\n";
const ARM: &str = "CPU implementer : 0x41\nCPU part : 0xd0c\n";

/// A machine: its powercap tree, and the roots of sysfs and proc.
struct Machine {
    powercap: FakeTree,
    roots: tempfile::TempDir,
}

impl Machine {
    fn new(cpuinfo: &str, powercap: FakeTree) -> Self {
        let roots = tempfile::tempdir().unwrap();
        fs::write(roots.path().join("cpuinfo"), cpuinfo).unwrap();
        Self { powercap, roots }
    }

    fn sys(&self) -> &Path {
        self.roots.path()
    }

    fn options(&self) -> EnergyOptions {
        EnergyOptions {
            choice: EnergyChoice::Auto,
            sys_root: self.sys().to_owned(),
            proc_root: self.sys().to_owned(),
            powercap_root: self.powercap.root().to_owned(),
            ..EnergyOptions::default()
        }
    }

    /// The text with the directories' names, which differ each time, replaced.
    fn listed(&self, perf: SourceKind) -> String {
        let mut kinds: Vec<SourceKind> = vec![perf];
        // Whether NVIDIA's library is there is up to the machine that tests.
        kinds.extend(SOURCES.iter().filter(|kind| !["perf", "nvml"].contains(&kind.name)).copied());
        let mut out = Vec::new();
        run_among(&kinds, &mut out, &self.options(), false).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.replace(self.powercap.root().to_str().unwrap(), "POWERCAP").replace(self.sys().to_str().unwrap(), "ROOT")
    }

    #[track_caller]
    fn check(&self, name: &str, perf: SourceKind) {
        compare(name, &self.listed(perf));
    }
}

#[track_caller]
fn compare(name: &str, text: &str) {
    let path = format!("{}/src/sources/testdata/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{name}: if this is meant, run with UPDATE_FIXTURES=1");
}

fn intel_client() -> Machine {
    let zones = FakeTree::new()
        .zone("intel-rapl:0", "package-0", 50_000_000)
        .zone("intel-rapl:0:0", "core", 30_000_000)
        .zone("intel-rapl:0:1", "uncore", 1_000_000)
        .zone("intel-rapl:1", "psys", 90_000_000);
    let machine = Machine::new(INTEL_CLIENT, zones);
    fake::cpus(machine.sys(), [(0, 0, 0)]);
    fake::pmu(machine.sys(), "power", POWER, "0", &[CORES, PKG, GPU, PSYS]);
    machine
}

#[test]
fn intel_client_with_psys() {
    intel_client().check("intel_client", fake::ALLOWED);
}

#[test]
fn intel_client_of_a_user_without_privileges() {
    let machine = intel_client();
    for zone in ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:1"] {
        machine.powercap.deny(zone, "energy_uj");
    }
    let directories = [machine.powercap.root(), machine.sys()];
    let text = unprivileged(&directories, || machine.listed(fake::DENIED));
    compare("intel_client_denied", &text);
}

#[test]
fn intel_server_with_two_sockets() {
    let zones = FakeTree::new()
        .zone("intel-rapl:0", "package-1", 20_000_000)
        .zone("intel-rapl:0:0", "dram", 2_000_000)
        .zone("intel-rapl:1", "package-0", 10_000_000)
        .zone("intel-rapl:1:0", "dram", 1_000_000)
        .zone("intel-rapl-mmio:0", "package-0", 10_000_000)
        .zone("intel-rapl-mmio:0:0", "dram", 1_000_000);
    let machine = Machine::new(INTEL_SERVER, zones);
    fake::cpus(machine.sys(), [(0, 0, 0), (24, 1, 0)]);
    fake::pmu(machine.sys(), "power", POWER, "0,24", &[PKG, RAM]);
    machine.check("intel_server", fake::ALLOWED);
}

#[test]
fn amd_zen_2_with_mirrored_dies() {
    let zones = FakeTree::new()
        .zone("intel-rapl:0", "package-0-die-0", 5_000_000)
        .zone("intel-rapl:0:0", "core", 70_000)
        .zone("intel-rapl:1", "package-0-die-1", 5_000_300)
        .zone("intel-rapl:1:0", "core", 80_000);
    let machine = Machine::new(ZEN_2, zones);
    machine.check("amd_zen_2", fake::ALLOWED);
}

#[test]
fn amd_zen_4_with_a_counter_per_core() {
    let zones = FakeTree::new().zone("intel-rapl:0", "package-0", 5_000_000).zone("intel-rapl:0:0", "core", 70_000);
    let machine = Machine::new(ZEN_4, zones);
    fake::cpus(machine.sys(), (0..8).map(|cpu| (cpu, 0, cpu)));
    fake::pmu(machine.sys(), "power", POWER, "0", &[PKG]);
    fake::pmu(machine.sys(), "power_core", POWER_CORE, "0-7", &[CORE]);
    machine.check("amd_zen_4", fake::ALLOWED);
}

#[test]
fn arm_server_with_scmi_only() {
    let zones = FakeTree::new().file("arm-scmi", "enabled", "1").file("arm-scmi:0", "name", "soc").file(
        "arm-scmi:0",
        "power_uw",
        "12000000",
    );
    Machine::new(ARM, zones).check("arm_scmi", fake::ALLOWED);
}

#[test]
fn virtual_machine_with_nothing() {
    let machine = Machine::new(ZEN_4, FakeTree::new());
    fs::remove_dir(machine.powercap.root()).unwrap();
    machine.check("virtual_machine", fake::ALLOWED);
}

#[test]
fn json_says_what_the_text_says() {
    let mut out = Vec::new();
    let kinds = [fake::ALLOWED, *SOURCES.iter().find(|kind| kind.name == "model").unwrap()];
    run_among(&kinds, &mut out, &intel_client().options(), true).unwrap();
    let listing: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert!(listing["would_fail"].is_null());
    let found = &listing["sources"];
    assert_eq!(found[0]["state"], "chosen");
    assert_eq!(
        found[0]["domains"][1],
        serde_json::json!({
            "domain": "core", "socket": 0, "cores": [], "role": "part", "of": "package", "less": [], "label": "measured",
            "update": null
        })
    );
    assert_eq!(found[0]["domains"][3]["less"], serde_json::json!(["package"]));
    assert_eq!((&found[1]["source"], &found[1]["usable"]), (&"model".into(), &true.into()));
}

#[test]
fn nothing_usable_is_a_failure() {
    let machine = Machine::new(ARM, FakeTree::new());
    fs::remove_file(machine.sys().join("cpuinfo")).unwrap();
    let exit = run_among(SOURCES, &mut Vec::new(), &machine.options(), false).unwrap();
    assert_eq!(exit, Exit::Failure);
}

#[test]
fn what_a_recording_would_refuse_is_a_failure_whatever_else_works() {
    let machine = intel_client();
    let kinds = [fake::DENIED, *SOURCES.iter().find(|kind| kind.name == "model").unwrap()];
    for (choice, why) in [
        ("perf", Some("energy source perf cannot be used: opening event energy-pkg on CPU 0: permission denied")),
        ("model", None),
        ("auto", None),
    ] {
        let options = EnergyOptions { choice: choice.parse().unwrap(), ..machine.options() };
        let [mut text, mut json] = [Vec::new(), Vec::new()];
        let exits = [(&mut text, false), (&mut json, true)]
            .map(|(out, is_json)| run_among(&kinds, out, &options, is_json).unwrap());
        assert_eq!(exits, [if why.is_some() { Exit::Failure } else { Exit::Success }; 2], "{choice}");
        let text = String::from_utf8(text).unwrap();
        let said = text.lines().last().and_then(|line| line.strip_prefix("a recording would fail: "));
        assert_eq!(said.is_some(), why.is_some(), "{text}");
        assert!(said.unwrap_or_default().starts_with(why.unwrap_or_default()), "{text}");
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["would_fail"].as_str(), said);
    }
}
