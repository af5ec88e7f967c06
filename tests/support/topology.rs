//! Writes the files from which CPU topology is read, of machines that tests make up.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// What the first two CPUs are to each other.
#[derive(Clone, Copy)]
pub enum Cpus {
    /// One core on two sockets, which no machine has: a CPU's time can be told
    /// by its socket.
    Siblings,
    TwoSockets,
    /// Two cores of one socket.
    TwoCores,
}

/// Makes the tree `root` of two CPUs, for `--cpu-root`.
pub fn create(root: PathBuf, cpus: Cpus) -> Result<PathBuf> {
    for cpu in 0..2 {
        let siblings = if matches!(cpus, Cpus::Siblings) { "0-1".to_owned() } else { cpu.to_string() };
        let topology = root.join(format!("cpu{cpu}/topology"));
        let (socket, core) = if matches!(cpus, Cpus::TwoCores) { (0, cpu) } else { (cpu, 0) };
        write(&topology.join("physical_package_id"), &socket.to_string())?;
        write(&topology.join("core_id"), &core.to_string())?;
        write(&topology.join("thread_siblings_list"), &siblings)?;
    }
    write(&root.join("online"), "0-1")?;
    Ok(root)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file has a directory")?)?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
