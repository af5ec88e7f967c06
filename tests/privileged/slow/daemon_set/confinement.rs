//! Checks that a container has what the manifest says, and no more: a runtime may leave out what its machine lacks.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{containers::containerd::Pod, kubelet};

use super::DATA;

/// The container has what the manifest says, and no more.
pub fn expect_confined(pod: &Pod, prepared: &kubelet::Pod) -> Result<()> {
    let of_process = |file: &str| {
        let path = format!("/proc/{}/{file}", pod.pid);
        fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    };
    let status = of_process("status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":"));
        line.map(str::trim).with_context(|| format!("no {name} in {status}"))
    };
    let numbers = [("DAC_READ_SEARCH", 2), ("SYS_PTRACE", 19), ("SYSLOG", 34)];
    let newer = [("PERFMON", 38), ("BPF", 39), ("CHECKPOINT_RESTORE", 40)];
    let numbers: BTreeMap<&str, u32> = numbers.into_iter().chain(newer).collect();
    let mut expected = 0;
    for name in &prepared.capabilities {
        expected |= 1_u64 << numbers.get(&**name).with_context(|| format!("the number of CAP_{name}"))?;
    }
    ensure!(u64::from_str_radix(field("CapBnd")?, 16)? == expected, "not {:?}: {status}", prepared.capabilities);
    ensure!(field("Seccomp")? == "2" && field("NoNewPrivs")? == "1", "{status}");
    let mounts = of_process("mountinfo")?;
    for (path, option) in [
        ("/", "ro"),
        ("/host/sys", "ro"),
        ("/etc/joular-bpf/agent.toml", "ro"),
        ("/etc/joular-bpf/secret", "ro"),
        (DATA, "rw"),
    ] {
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount =
            fields.into_iter().rfind(|fields| fields[4] == path).with_context(|| format!("{path}: {mounts}"))?;
        ensure!(mount[5].split(',').any(|one| one == option), "{mount:?} is not {option}");
    }
    let own = Path::new("/proc/self/ns/pid").read_link()?;
    ensure!(Path::new(&format!("/proc/{}/ns/pid", pod.pid)).read_link()? == own, "it has the host's process IDs");
    expect_memory(&of_process("cgroup")?, prepared.memory_bytes)
}

/// Its control group's limit, wherever this machine has it.
fn expect_memory(groups: &str, bytes: u64) -> Result<()> {
    let file = groups.lines().find_map(|line| {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
        match controllers {
            "memory" => Some(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")),
            "" => Some(format!("/sys/fs/cgroup{path}/memory.max")).filter(|file| Path::new(file).exists()),
            _ => None,
        }
    });
    let file = file.with_context(|| format!("a group with memory: {groups}"))?;
    let limit = fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    ensure!(limit.trim() == bytes.to_string(), "{file}: {limit}, not {bytes}");
    Ok(())
}

/// Nobody but these may read the container's secrets, although they lie behind links.
pub fn expect_secret_mode(pod: &Pod, mode: u32) -> Result<()> {
    let path = format!("/proc/{}/root/etc/joular-bpf/secret/metrics-token", pod.pid);
    let found = fs::metadata(&path).with_context(|| format!("reading {path}"))?.mode() & 0o777;
    ensure!(found == mode, "{path} has mode {found:o}, not {mode:o}");
    Ok(())
}
