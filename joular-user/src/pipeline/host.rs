//! Collects facts about the machine that go with every run.

use std::{
    env,
    ffi::{CStr, OsString},
    fs,
    path::Path,
};

use joular_data::model::target_text::TargetText;

use crate::kernel::cpus;

/// Environment variable with the name of the host, for a recorder in a container: that has a name of its own, which
/// changes with each start.
const NODE_NAME: &str = "NODE_NAME";

/// What a run says about where it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    pub name: TargetText,
    pub kernel: String,
    pub cpu_model: String,
    pub arch: String,
    pub online_cpus: u32,
    pub sockets: u32,
    pub memory_bytes: u64,
}

impl Host {
    /// Reads the facts about the machine that this runs on.
    pub fn of_this_machine(proc_root: &Path) -> Self {
        Self::read(proc_root, Path::new(cpus::CPU_ROOT))
    }

    /// Reads the facts; what cannot be read stays empty or 0.
    pub fn read(proc_root: &Path, cpu_root: &Path) -> Self {
        let system = rustix::system::uname();
        let online = cpus::online(cpu_root);
        let mut sockets: Vec<u32> = online.iter().map(|cpu| cpu.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        let text = |file: &str| fs::read_to_string(proc_root.join(file)).unwrap_or_default();
        Self {
            name: name(env::var_os(NODE_NAME), system.nodename()).into(),
            kernel: system.release().to_string_lossy().into_owned(),
            arch: system.machine().to_string_lossy().into_owned(),
            cpu_model: cpu_model(&text("cpuinfo")).unwrap_or_default(),
            online_cpus: u32::try_from(online.len()).unwrap_or(u32::MAX),
            sockets: u32::try_from(sockets.len()).unwrap_or(u32::MAX),
            memory_bytes: memory_bytes(&text("meminfo")).unwrap_or(0),
        }
    }
}

fn name(given: Option<OsString>, own: &CStr) -> String {
    let given = given.filter(|name| !name.is_empty());
    given.map_or_else(|| own.to_string_lossy().into_owned(), |name| name.to_string_lossy().into_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"));
    line.map_or_else(|| arm_cores(cpuinfo), |line| Some(line.split_once(':')?.1.trim().to_owned()))
}

/// Cores by implementer and part (arch/arm64/include/asm/cputype.h in Linux).
const ARM_CORES: [(&str, &str, &str); 20] = [
    ("0x41", "0xd03", "Cortex-A53"),
    ("0x41", "0xd05", "Cortex-A55"),
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd09", "Cortex-A73"),
    ("0x41", "0xd0a", "Cortex-A75"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse N1"),
    ("0x41", "0xd0d", "Cortex-A77"),
    ("0x41", "0xd40", "Neoverse V1"),
    ("0x41", "0xd41", "Cortex-A78"),
    ("0x41", "0xd42", "Cortex-A78AE"),
    ("0x41", "0xd44", "Cortex-X1"),
    ("0x41", "0xd46", "Cortex-A510"),
    ("0x41", "0xd47", "Cortex-A710"),
    ("0x41", "0xd48", "Cortex-X2"),
    ("0x41", "0xd49", "Neoverse N2"),
    ("0x41", "0xd4f", "Neoverse V2"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1A"),
];

/// The kinds of cores of a machine whose kernel names no model, as on aarch64.
fn arm_cores(cpuinfo: &str) -> Option<String> {
    let values = |key: &'static str| {
        let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        pairs.filter(move |(found, _)| found.trim() == key).map(|(_, value)| value.trim())
    };
    let mut cores: Vec<String> = Vec::new();
    for (implementer, part) in values("CPU implementer").zip(values("CPU part")) {
        let known = ARM_CORES.iter().find(|(by, number, _)| (*by, *number) == (implementer, part));
        let unknown = || format!("implementer {implementer}, part {part}");
        let name = known.map_or_else(unknown, |(.., name)| (*name).to_owned());
        if !cores.contains(&name) {
            cores.push(name);
        }
    }
    (!cores.is_empty()).then(|| cores.join(" and "))
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_host_of_a_container() {
        assert_eq!(name(None, c"box"), "box");
        assert_eq!(name(Some("".into()), c"box"), "box");
        assert_eq!(name(Some("node-7".into()), c"box"), "node-7");
    }

    #[test]
    fn model_and_memory_are_read_from_text() {
        assert_eq!(cpu_model("processor : 0\nmodel name\t: AMD EPYC 7763\n").as_deref(), Some("AMD EPYC 7763"));
        let core =
            |part: &str| format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: {part}\n\n");
        assert_eq!(cpu_model(&core("0xd0c").repeat(4)).as_deref(), Some("Neoverse N1"));
        let [little, big, other] = ["0xd05", "0xd0b", "0x000"].map(core);
        let both = format!("{little}{little}{big}{big}");
        assert_eq!(cpu_model(&both).as_deref(), Some("Cortex-A55 and Cortex-A76"));
        assert_eq!(cpu_model(&other).as_deref(), Some("implementer 0x41, part 0x000"));
        assert_eq!(
            cpu_model(&format!("{both}Model\t: Raspberry Pi 5 Model B\n")).as_deref(),
            Some("Raspberry Pi 5 Model B")
        );
        assert_eq!(cpu_model("").as_deref(), None);
        assert_eq!(memory_bytes("MemTotal:       1024 kB\n"), Some(1_048_576));
        assert_eq!(memory_bytes("MemTotal: x kB\n"), None);
    }
}
