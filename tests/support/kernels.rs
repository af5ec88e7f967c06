//! Starts kernels other than the one that runs here, in virtual machines. They are Debian's own,
//! downloaded as packages and unpacked, never installed. Emulated (no KVM is needed), one starts
//! within seconds.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{
    initramfs::Initramfs,
    machine::{Machine, X86_64},
    process::{Finished, Running},
};

/// A kernel to start.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `6.1.0-56-cloud-amd64`
    pub release: String,
    image: PathBuf,
    machine: &'static Machine,
}

/// Whether probes in a process are links of their own kind on the kernel that runs here, and no perf events.
pub fn probes_are_links() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next()).with_context(|| format!("'{release}' has no version"))?;
    Ok(version >= (6, 10))
}

/// The kernel with PREEMPT_RT, if it was unpacked.
pub fn realtime() -> Option<Kernel> {
    X86_64.realtime()
}

/// The kernels of x86-64 that were unpacked, but for that with PREEMPT_RT.
pub fn all() -> Vec<Kernel> {
    X86_64.kernels()
}

pub(crate) fn all_in(machine: &'static Machine, dir: &Path) -> Vec<Kernel> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<Kernel> = entries
        // What an interrupted download left.
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .filter_map(|entry| {
            let boot = fs::read_dir(entry.path().join("boot")).ok()?;
            let image = boot.flatten().map(|file| file.path()).find(|path| release_of(path).is_some())?;
            Some(Kernel { release: release_of(&image)?, image, machine })
        })
        .collect();
    found.sort_by(|one, other| one.release.cmp(&other.release));
    found
}

fn release_of(image: &Path) -> Option<String> {
    Some(image.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned())
}

/// Why no kernel of x86-64 can be started here; None if one can. The programs in it are this machine's.
pub fn missing() -> Option<&'static str> {
    if cfg!(target_arch = "x86_64") { X86_64.missing() } else { Some("starting a kernel needs x86-64") }
}

/// [`Machine::root`] of x86-64.
pub fn root(script: &str) -> Result<Initramfs> {
    X86_64.root(script)
}

/// [`Machine::put_jvm`] of x86-64.
pub fn put_jvm(root: &mut Initramfs, release: u32) -> Result<()> {
    X86_64.put_jvm(root, release)
}

/// Script that prints a file as text, by a name.
pub fn print_file(name: &str, file: &str) -> String {
    format!("echo BEGIN {name}; base64 {file}; echo END")
}

/// The files that were printed by a name.
pub fn printed(said: &str, name: &str) -> Result<Vec<Vec<u8>>> {
    let decode = |text: &str| {
        let mut printed = tempfile::NamedTempFile::new()?;
        printed.write_all(text.as_bytes())?;
        let output = Command::new("base64").args(["--decode", "--ignore-garbage"]).arg(printed.path()).output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(output.stdout)
    };
    let (said, begin) = (format!("{said}\n"), format!("BEGIN {name}\n"));
    // A line of Base64 may begin so, but no line is so short.
    said.split(&begin).skip(1).map(|printed| decode(printed.split_once("\nEND\n").context("an end")?.0)).collect()
}

/// Script that prints a table of the data set in /tmp/out as text.
pub fn print_table(table: &str) -> String {
    format!("for file in /tmp/out/{table}/*/*/*; do {}; done", print_file(table, "$file"))
}

/// Puts files that were printed so where a data set has them.
pub fn unpack_table(said: &str, table: &str, directory: &Path) -> Result<()> {
    let folder = directory.join(table).join("date=2026-01-01/host=emulated");
    fs::create_dir_all(&folder)?;
    for (number, file) in printed(said, table)?.into_iter().enumerate() {
        fs::write(folder.join(format!("{number}.parquet")), file)?;
    }
    Ok(())
}

impl Kernel {
    /// Whether it was built with this line in its configuration.
    pub fn has(&self, line: &str) -> bool {
        let configuration = self.image.with_file_name(format!("config-{}", self.release));
        fs::read_to_string(configuration).is_ok_and(|text| text.lines().any(|one| one == line))
    }

    /// Starts it with two CPUs; what it wrote to its serial console.
    pub fn boot(&self, root: Initramfs, limit: Duration) -> Result<Finished> {
        self.start(root, &[])?.finish(limit)
    }

    /// Starts it with two CPUs, and with more arguments for QEMU, in which `MEMORY` is the size of its memory, and
    /// `HALF` is half of that.
    pub fn start(&self, root: Initramfs, more: &[&str]) -> Result<Booted> {
        // The file system is there twice until it is unpacked, and may fill half of the memory.
        let half_mib = 640 + 3 * (root.len() >> 20).div_ceil(2);
        let memory_mib = 2 * half_mib;
        let dir = tempfile::tempdir()?;
        let initramfs = dir.path().join("initramfs");
        fs::write(&initramfs, root.finish()).context("writing the initramfs")?;
        let mut qemu = Command::new(self.machine.qemu);
        // Emulated even where /dev/kvm is: not every machine that has it can use it.
        // One thread emulates both CPUs. With one for each, a CPU may run code that the other one has patched long since,
        // which a kernel that patches itself takes for a breakpoint of nobody's.
        qemu.args(["-accel", "tcg,thread=single", "-smp", "2", "-m", &memory_mib.to_string()])
            .args(self.machine.arguments);
        qemu.args(["-nographic", "-no-reboot", "-nic", "none"]);
        qemu.arg("-append").arg(format!("console={} quiet panic=-1", self.machine.console));
        let sized = |argument: &&str| {
            argument.replace("MEMORY", &format!("{memory_mib}M")).replace("HALF", &format!("{half_mib}M"))
        };
        qemu.args(more.iter().map(sized));
        qemu.arg("-kernel").arg(&self.image).arg("-initrd").arg(&initramfs);
        let machine = Running::spawn(&format!("Linux {}", self.release), &mut qemu)?;
        Ok(Booted { machine, _initramfs: dir })
    }
}

/// A virtual machine that runs.
pub struct Booted {
    pub machine: Running,
    _initramfs: TempDir,
}

impl Booted {
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        self.machine.finish(limit)
    }
}
