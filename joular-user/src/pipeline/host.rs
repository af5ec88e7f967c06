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
    let line = cpuinfo.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
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
        assert_eq!(memory_bytes("MemTotal:       1024 kB\n"), Some(1_048_576));
        assert_eq!(memory_bytes("MemTotal: x kB\n"), None);
    }
}
