//! Describes the machines that are emulated: which emulator, which of Debian's packages, and where they are unpacked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    debian::Packages,
    initramfs::Initramfs,
    java,
    jdk::{self, Jdk},
    kernels::{Kernel, all_in},
    paths,
};

/// The shell and tools of the virtual machine.
const BUSYBOX: &str = "busybox-static";

/// The C library, for programs of a machine that is not this one.
const LIBC: &str = "libc6";
/// What of it a JVM needs.
const LIBRARIES: [&str; 6] =
    ["ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"];

/// The JVM of Debian's, where PyPI has none of that release. Debian's package depends on many others, for fonts and the like.
const JVM: (u32, &str) = (17, "openjdk-17-jre-headless");
/// What it needs beyond the C library: packages, and the library in each.
const ITS_LIBRARIES: [(&str, &str, &str); 3] = [
    ("zlib1g", "lib", "libz.so.1"),
    ("libgcc-s1", "lib", "libgcc_s.so.1"),
    ("libstdc++6", "usr/lib", "libstdc++.so.6"),
];
/// What installs packages, and libraries that programs of packages use.
const DPKG: [&str; 3] = ["dpkg", "libc-bin", "libgcc-s1"];

/// A machine that can be emulated.
#[derive(Debug)]
pub struct Machine {
    /// As Rust and PyPI call its processor.
    pub processor: &'static str,
    /// The emulator.
    pub qemu: &'static str,
    /// Arguments of it.
    pub(crate) arguments: &'static [&'static str],
    /// Its first serial port, as the kernel calls it.
    pub(crate) console: &'static str,
    /// As Debian and images of containers call the processor.
    pub debian: &'static str,
    /// Packages that depend on the newest kernel of their line.
    lines: [&'static str; 2],
    /// The same for a kernel with PREEMPT_RT, which only tests of such kernels start.
    realtime_line: Option<&'static str>,
}

pub static X86_64: Machine = Machine {
    processor: "x86_64",
    qemu: "qemu-system-x86_64",
    arguments: &["-cpu", "max"],
    console: "ttyS0",
    debian: "amd64",
    lines: ["linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"],
    realtime_line: Some("linux-image-rt-amd64"),
};

/// Pointers are signed by a way of the emulator's own: the architecture's takes most of the time that emulation takes.
pub static AARCH64: Machine = Machine {
    processor: "aarch64",
    qemu: "qemu-system-aarch64",
    arguments: &["-machine", "virt", "-cpu", "max,pauth-impdef=on"],
    console: "ttyAMA0",
    debian: "arm64",
    lines: ["linux-image-cloud-arm64", "linux-image-6.12-cloud-arm64"],
    realtime_line: None,
};

impl Machine {
    /// That with this machine's processor.
    pub fn this() -> Result<&'static Self> {
        let this = [&X86_64, &AARCH64].into_iter().find(|machine| machine.is_this());
        this.with_context(|| format!("no machine with {} can be emulated", std::env::consts::ARCH))
    }

    /// Whether this machine has such a processor.
    pub fn is_this(&self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    fn dir(&self) -> PathBuf {
        let kernels = paths::target().join("kernels");
        if self.debian == X86_64.debian { kernels } else { kernels.join(self.debian) }
    }

    /// Where the kernel with PREEMPT_RT is unpacked, apart from those that every test of kernels starts.
    fn realtime_dir(&self) -> PathBuf {
        self.dir().join("realtime")
    }

    /// The kernels that were unpacked, but for that with PREEMPT_RT.
    pub fn kernels(&'static self) -> Vec<Kernel> {
        all_in(self, &self.dir())
    }

    /// The kernel with PREEMPT_RT, if it was unpacked.
    pub fn realtime(&'static self) -> Option<Kernel> {
        all_in(self, &self.realtime_dir()).pop()
    }

    /// Why nothing can be started here; None if it can.
    pub fn missing(&'static self) -> Option<&'static str> {
        let starts =
            |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
        let has_kernels = !self.kernels().is_empty();
        if !has_kernels && !starts("apt-get") {
            Some("the kernel to start needs Debian's packages")
        } else if !starts(self.qemu) {
            Some("there is no QEMU for the processor")
        } else if !has_kernels || !self.busybox().exists() {
            Some("no kernel was unpacked in target/kernels (`cargo xtask setup --slow` does that on Debian)")
        } else {
            None
        }
    }

    fn busybox(&self) -> PathBuf {
        self.dir().join(BUSYBOX).join("bin/busybox")
    }

    /// A root directory with Debian's dpkg, and what that needs, on a machine that is not this one.
    pub fn dpkg(&self) -> PathBuf {
        self.dir().join("dpkg")
    }

    /// Debian's packages for it.
    fn packages(&self) -> Packages {
        if self.is_this() { Packages::own() } else { Packages::foreign(self.debian, &self.dir().join("apt")) }
    }

    /// Downloads what is missing; needs a Debian package manager, and no privileges.
    pub fn fetch(&'static self) -> Result<()> {
        let packages = self.packages();
        packages.update()?;
        self.needed().try_for_each(|package| packages.unpack(&self.dir(), package).map(drop))?;
        if !self.is_this() {
            packages.root(&self.dpkg(), &DPKG)?;
        }
        // Which of them there are depends on the release of Debian.
        for (dir, line) in self.lines() {
            if let Some(kernel) = packages.newest_kernel(line)? {
                unpack(&packages, &dir, &kernel)?;
            }
        }
        ensure!(!self.kernels().is_empty(), "none of {:?} is known to apt-get", self.lines);
        Ok(())
    }

    /// Whether there is nothing to download: the newest kernel of every line is there.
    pub fn is_complete(&'static self) -> bool {
        let packages = self.packages();
        let newest_is_there = |(dir, line): (PathBuf, &str)| {
            packages.newest_kernel(line).is_ok_and(|kernel| kernel.is_none_or(|kernel| dir.join(kernel).exists()))
        };
        let has_needed = self.needed().all(|package| self.dir().join(package).exists());
        let has_dpkg = self.is_this() || self.dpkg().exists();
        self.missing().is_none() && has_needed && has_dpkg && self.lines().all(newest_is_there)
    }

    /// Packages that are not kernels. Programs of this machine are there already.
    fn needed(&self) -> impl Iterator<Item = &'static str> {
        let of_another = [LIBC, JVM.1].into_iter().chain(ITS_LIBRARIES.map(|(package, ..)| package));
        [BUSYBOX].into_iter().chain(of_another.filter(|_| !self.is_this()))
    }

    /// Each line, and where its kernel is unpacked.
    fn lines(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let realtime = self.realtime_line.map(|line| (self.realtime_dir(), line));
        self.lines.map(|line| (self.dir(), line)).into_iter().chain(realtime)
    }

    /// A file system with a shell, in which `script` runs as the first process, and
    /// the machine is switched off at its end.
    pub fn root(&self, script: &str) -> Result<Initramfs> {
        let mut root = Initramfs::default();
        for dir in ["proc", "sys", "dev", "tmp", "run"] {
            root.directory(dir);
        }
        root.file("bin/busybox", &fs::read(self.busybox()).context("reading busybox")?);
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

    /// Puts the JVM of a release that is in `/jdk/bin/java` there, and the tests' classes in `/classes`.
    pub fn put_jvm(&self, root: &mut Initramfs, release: u32) -> Result<()> {
        self.put_jvm_at(root, release, "/jdk")
    }

    /// The same in another directory than `/jdk`, so that there can be several.
    pub fn put_jvm_at(&self, root: &mut Initramfs, release: u32, at: &str) -> Result<()> {
        root.tree(Path::new("/classes"), &java::classes()?)?;
        if self.is_this() {
            let jdk = Jdk::pinned()?.find(|jdk| jdk.release == release).with_context(|| format!("no JDK {release}"))?;
            let home = put_home(root, &jdk.java, at)?;
            let needing = ["bin/java", "lib/server/libjvm.so", "lib/libjava.so", "lib/libzip.so"];
            return needing.iter().try_for_each(|program| root.libraries(&home.join(program)));
        }
        let libraries = self.dir().join(LIBC).join("lib/aarch64-linux-gnu");
        LIBRARIES.iter().try_for_each(|name| put_library(root, &libraries, name))?;
        if release == JVM.0 {
            self.put_debians_jvm(root, at)
        } else {
            put_home(root, &jdk::of_processor(release, self.processor)?, at).map(drop)
        }
    }

    fn put_debians_jvm(&self, root: &mut Initramfs, at: &str) -> Result<()> {
        let (packages, (_, jvm)) = (self.packages(), JVM);
        let unpacked = packages.unpack(&self.dir(), jvm)?;
        let homes = unpacked.join("usr/lib/jvm");
        let home = fs::read_dir(&homes).with_context(|| format!("listing {}", homes.display()))?.flatten();
        let home = home.map(|entry| entry.path()).find(|path| path.join("bin/java").exists());
        root.whole_at(at, &home.with_context(|| format!("no JVM in {}", homes.display()))?)?;
        // What is to be configured is there, and links lead to it.
        root.whole_at("/etc", &unpacked.join("etc"))?;
        for (package, directory, name) in ITS_LIBRARIES {
            let directory = packages.unpack(&self.dir(), package)?.join(directory).join("aarch64-linux-gnu");
            put_library(root, &directory, name)?;
        }
        Ok(())
    }
}

/// Puts the home of a `java` there; where it is on this machine.
fn put_home<'a>(root: &mut Initramfs, java: &'a Path, at: &str) -> Result<&'a Path> {
    let home = java.ancestors().nth(2).context("java is in bin")?;
    root.tree(Path::new(at), home)?;
    Ok(home)
}

fn put_library(root: &mut Initramfs, directory: &Path, name: &str) -> Result<()> {
    let bytes = fs::read(directory.join(name)).with_context(|| format!("reading {name}"))?;
    root.file(&format!("lib/{name}"), &bytes);
    Ok(())
}

/// Modules are ten times as large as what starts.
fn unpack(packages: &Packages, dir: &Path, kernel: &str) -> Result<()> {
    let modules = packages.unpack(dir, kernel)?.join("lib/modules");
    if modules.exists() {
        fs::remove_dir_all(&modules)?;
    }
    Ok(())
}
