//! Starts kernels other than the one that runs here, in virtual machines. They are Debian's own,
//! downloaded as packages and unpacked, never installed. Emulated (no KVM is needed), one starts
//! within seconds.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{
    debian,
    initramfs::Initramfs,
    java::{self, Jdk},
    paths,
    process::{Finished, Running},
};

/// Packages that depend on the newest kernel of their line.
const LINES: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"];

/// The same for a kernel with PREEMPT_RT, which only tests of such kernels start.
const REALTIME_LINE: &str = "linux-image-rt-amd64";

const QEMU: &str = "qemu-system-x86_64";

/// The shell and tools of the virtual machine.
const BUSYBOX: &str = "busybox-static";

/// A kernel to start.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `6.1.0-56-cloud-amd64`
    pub release: String,
    image: PathBuf,
}

/// Whether probes in a process are links of their own kind on the kernel that runs here, and no perf events.
pub fn probes_are_links() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next()).with_context(|| format!("'{release}' has no version"))?;
    Ok(version >= (6, 10))
}

fn dir() -> PathBuf {
    paths::target().join("kernels")
}

/// Where the kernel with PREEMPT_RT is unpacked, apart from those that every test of kernels starts.
fn realtime_dir() -> PathBuf {
    dir().join("realtime")
}

/// The kernel with PREEMPT_RT, if it was unpacked.
pub fn realtime() -> Option<Kernel> {
    all_in(&realtime_dir()).pop()
}

/// The kernels that were unpacked, but for that with PREEMPT_RT.
pub fn all() -> Vec<Kernel> {
    all_in(&dir())
}

fn all_in(dir: &Path) -> Vec<Kernel> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<Kernel> = entries
        // What an interrupted download left.
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .filter_map(|entry| {
            let boot = fs::read_dir(entry.path().join("boot")).ok()?;
            let image = boot.flatten().map(|file| file.path()).find(|path| release_of(path).is_some())?;
            Some(Kernel { release: release_of(&image)?, image })
        })
        .collect();
    found.sort_by(|one, other| one.release.cmp(&other.release));
    found
}

fn release_of(image: &Path) -> Option<String> {
    Some(image.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned())
}

/// Why nothing can be started here; None if it can.
pub fn missing() -> Option<&'static str> {
    let has_qemu = Command::new(QEMU).arg("--version").output().is_ok_and(|output| output.status.success());
    let has_apt = Command::new("apt-get").arg("--version").output().is_ok_and(|output| output.status.success());
    if !cfg!(target_arch = "x86_64") {
        Some("starting a kernel needs x86-64")
    } else if all().is_empty() && !has_apt {
        Some("the kernel to start needs Debian's packages")
    } else if !has_qemu {
        Some("there is no qemu-system-x86_64")
    } else if all().is_empty() || !busybox().exists() {
        Some("no kernel was unpacked in target/kernels (`cargo xtask setup` does that on Debian)")
    } else {
        None
    }
}

fn busybox() -> PathBuf {
    dir().join(BUSYBOX).join("bin/busybox")
}

/// Downloads what is missing; needs a Debian package manager, and no privileges.
pub fn fetch() -> Result<()> {
    unpack(&dir(), BUSYBOX)?;
    // Which of them there are depends on the release of Debian.
    for (dir, line) in lines() {
        if let Some(package) = newest(line)? {
            unpack(&dir, &package)?;
        }
    }
    ensure!(!all().is_empty(), "none of {LINES:?} is known to apt-get");
    Ok(())
}

/// Whether there is nothing to download: the newest kernel of every line is there.
pub fn is_complete() -> bool {
    let newest_is_there = |(dir, line): (PathBuf, &str)| {
        newest(line).is_ok_and(|package| package.is_none_or(|package| dir.join(package).exists()))
    };
    missing().is_none() && lines().all(newest_is_there)
}

/// Each line, and where its kernel is unpacked.
fn lines() -> impl Iterator<Item = (PathBuf, &'static str)> {
    LINES.map(|line| (dir(), line)).into_iter().chain([(realtime_dir(), REALTIME_LINE)])
}

fn newest(line: &str) -> Result<Option<String>> {
    let output = Command::new("apt-cache").args(["depends", line]).output().context("starting apt-cache")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    Ok(package.map(|release| format!("linux-image-{release}")))
}

/// Modules are ten times as large as what starts.
fn unpack(dir: &Path, package: &str) -> Result<()> {
    let modules = debian::unpack(dir, package)?.join("lib/modules");
    if modules.exists() {
        fs::remove_dir_all(&modules)?;
    }
    Ok(())
}

/// A file system with a shell, in which `script` runs as the first process, and
/// the machine is switched off at its end.
pub fn root(script: &str) -> Result<Initramfs> {
    let mut root = Initramfs::default();
    for dir in ["proc", "sys", "dev", "tmp", "run"] {
        root.directory(dir);
    }
    root.file("bin/busybox", &fs::read(busybox()).context("reading busybox")?);
    let init = format!(
        "#!/bin/busybox sh\n\
         export PATH=/bin\n\
         /bin/busybox --install -s /bin\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs dev /dev\n\
         mount -t tracefs tracefs /sys/kernel/tracing\n\
         {script}\n\
         poweroff -f\n"
    );
    root.file("init", init.as_bytes());
    Ok(root)
}

/// Puts the JVM that is in `/jdk/bin/java` there, and the tests' classes in `/classes`.
pub fn put_jvm(root: &mut Initramfs, release: u32) -> Result<()> {
    let jdk = Jdk::pinned()?.find(|jdk| jdk.release == release).with_context(|| format!("no JDK {release}"))?;
    let home = jdk.java.ancestors().nth(2).context("java is in bin")?;
    root.tree(Path::new("/jdk"), home)?;
    root.tree(Path::new("/classes"), &java::classes()?)?;
    for program in ["bin/java", "lib/server/libjvm.so", "lib/libjava.so", "lib/libzip.so"] {
        root.libraries(&home.join(program))?;
    }
    Ok(())
}

/// Script that prints a table of the data set in /tmp/out as text.
pub fn print_table(table: &str) -> String {
    format!("for file in /tmp/out/{table}/*/*/*; do echo BEGIN {table}; base64 $file; echo END; done")
}

/// Puts files that were printed so where a data set has them.
pub fn unpack_table(said: &str, table: &str, directory: &Path) -> Result<()> {
    let folder = directory.join(table).join("date=2026-01-01/host=emulated");
    fs::create_dir_all(&folder)?;
    for (number, printed) in said.split(&format!("BEGIN {table}\n")).skip(1).enumerate() {
        let text = folder.join("text");
        fs::write(&text, printed.split("END").next().context("an end")?)?;
        let output = Command::new("base64").args(["--decode", "--ignore-garbage"]).arg(&text).output()?;
        ensure!(output.status.success(), "{output:?}");
        fs::write(folder.join(format!("{number}.parquet")), output.stdout)?;
        fs::remove_file(text)?;
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
        let mut qemu = Command::new(QEMU);
        // Emulated even where /dev/kvm is: not every machine that has it can use it.
        // One thread emulates both CPUs. With one for each, a CPU may run code that the other one has patched long since,
        // which a kernel that patches itself takes for a breakpoint of nobody's.
        qemu.args(["-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", &memory_mib.to_string()]);
        qemu.args(["-nographic", "-no-reboot", "-nic", "none"]);
        qemu.args(["-append", "console=ttyS0 quiet panic=-1"]);
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
