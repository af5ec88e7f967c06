//! Small Debians with systemd, each in a directory: what packages are installed on. And packages that are unpacked, each in a
//! directory or several in one, and not installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::paths;

/// Makes such directories from Debian's packages; its package has the same name.
pub const PROGRAM: &str = "mmdebstrap";
/// What every one of them has.
const PACKAGES: &str = "systemd,systemd-sysv,dbus";
/// Half of it is documentation.
const NOT_WANTED: [&str; 3] = ["doc", "man", "locale"];

/// A Debian, by its name below `target` and the packages that only it has.
pub struct Debian {
    name: &'static str,
    packages: &'static str,
}

pub const PLAIN: Debian = Debian { name: "debian", packages: "" };

/// With a policy, and what loads it and labels files.
pub const WITH_SELINUX: Debian = Debian { name: "debian-selinux", packages: ",selinux-policy-default" };

pub const ALL: [Debian; 2] = [PLAIN, WITH_SELINUX];

impl Debian {
    /// Its root directory, once it was made.
    pub fn root(&self) -> Option<PathBuf> {
        Some(self.directory()).filter(|directory| directory.exists())
    }

    fn directory(&self) -> PathBuf {
        paths::target().join(self.name)
    }

    /// Makes it, as root, of the release that this machine has.
    pub fn make(&self) -> Result<()> {
        let target = self.directory();
        // Aside first: what an interrupted download left is not taken for whole.
        let partial = target.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))?;
        }
        let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
        let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let mut command = Command::new(PROGRAM);
        command.args(["--mode=root", "--variant=apt"]).arg(format!("--include={PACKAGES}{}", self.packages));
        command.args(NOT_WANTED.map(|name| format!("--dpkgopt=path-exclude=/usr/share/{name}/*")));
        command.arg(suite.context("/etc/os-release has no VERSION_CODENAME")?).arg(&partial);
        run(&mut command)?;
        fs::rename(&partial, &target).with_context(|| format!("moving a Debian to {}", target.display()))
    }
}

/// Debian's packages, of this machine's processor or of another.
pub struct Packages {
    /// What apt is told.
    options: Vec<String>,
    /// Where lists of packages are kept that are not this machine's.
    lists: Option<PathBuf>,
}

impl Packages {
    /// Those that apt installs here.
    pub const fn own() -> Self {
        Self { options: Vec::new(), lists: None }
    }

    /// Those of another processor, as Debian calls it. What apt knows of them is in a directory of their own.
    pub fn foreign(processor: &str, directory: &Path) -> Self {
        let (lists, cache) = (directory.join("lists"), directory.join("cache"));
        let options = [
            format!("APT::Architecture={processor}"),
            format!("APT::Architectures={processor}"),
            format!("Dir::State::lists={}", lists.display()),
            // None is installed.
            "Dir::State::status=/dev/null".to_owned(),
            format!("Dir::Cache={}", cache.display()),
        ];
        let options = options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect();
        Self { options, lists: Some(lists) }
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = Command::new(program);
        apt.args(&self.options);
        apt
    }

    /// Finds out which packages there are, unless apt does that for this machine.
    pub fn update(&self) -> Result<()> {
        let Some(lists) = &self.lists else { return Ok(()) };
        let cache = lists.with_file_name("cache").join("archives/partial");
        for directory in [&lists.join("partial"), &cache] {
            fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
        }
        run(self.apt("apt-get").arg("update"))
    }

    /// The kernel that a package depends on, which stands for the newest of a line.
    pub fn newest_kernel(&self, line: &str) -> Result<Option<String>> {
        let output = self.apt("apt-cache").args(["depends", line]).output().context("starting apt-cache")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
        Ok(package.map(|release| format!("linux-image-{release}")))
    }

    /// Downloads a package and unpacks it to a directory of its name in `directory`, unless it is there. Needs no
    /// privileges.
    pub fn unpack(&self, directory: &Path, package: &str) -> Result<PathBuf> {
        let target = directory.join(package);
        if target.exists() {
            return Ok(target);
        }
        // Aside first: what an interrupted download left is not taken for whole.
        let partial = directory.join(format!(".{package}"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(&partial).with_context(|| format!("creating {}", partial.display()))?;
        run(self.apt("apt-get").args(["download", package]).current_dir(&partial))?;
        let archive = fs::read_dir(&partial)?.flatten().map(|entry| entry.path()).find(|path| path.is_file());
        let archive = archive.with_context(|| format!("apt-get download {package} left no file"))?;
        run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&partial))?;
        fs::remove_file(&archive)?;
        fs::rename(&partial, &target).with_context(|| format!("moving {package} to {}", target.display()))?;
        Ok(target)
    }

    /// Unpacks packages and all that they depend on to one directory, unless it is there: a root directory whose dpkg takes them
    /// for installed, as none of their scripts has run. Needs no privileges.
    pub fn root(&self, target: &Path, packages: &[&str]) -> Result<()> {
        if target.exists() {
            return Ok(());
        }
        // Aside first: what an interrupted download left is not taken for whole.
        let (partial, archives) = (target.with_extension("partial"), target.with_extension("archives"));
        for directory in [&partial, &archives] {
            if directory.exists() {
                fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
            }
        }
        fs::create_dir_all(archives.join("partial")).with_context(|| format!("creating {}", archives.display()))?;
        let mut apt = self.apt("apt-get");
        // This machine's locks are not for what is unpacked elsewhere.
        apt.args(["-o", "Debug::NoLocking=true", "-o", &format!("Dir::Cache::archives={}", archives.display())]);
        run(apt.args(["--yes", "--no-install-recommends", "--download-only", "install"]).args(packages))?;
        let database = partial.join("var/lib/dpkg");
        fs::create_dir_all(database.join("updates")).with_context(|| format!("creating {}", database.display()))?;
        let mut status = String::new();
        for entry in fs::read_dir(&archives)?.flatten() {
            let archive = entry.path();
            if archive.extension().is_some_and(|end| end == "deb") {
                run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&partial))?;
                status += &as_installed(&archive)?;
            }
        }
        ensure!(!status.is_empty(), "apt-get install --download-only {packages:?} left no file");
        fs::write(database.join("status"), status).context("writing the status of packages")?;
        fs::remove_dir_all(&archives).with_context(|| format!("removing {}", archives.display()))?;
        fs::rename(&partial, target).with_context(|| format!("moving packages to {}", target.display()))
    }
}

/// What dpkg's database says of a package that is installed.
fn as_installed(archive: &Path) -> Result<String> {
    let output = Command::new("dpkg-deb").arg("--field").arg(archive).output().context("starting dpkg-deb")?;
    ensure!(output.status.success(), "dpkg-deb --field {}: {output:?}", archive.display());
    let fields = String::from_utf8_lossy(&output.stdout);
    Ok(format!("{}\nStatus: install ok installed\n\n", fields.trim_end()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
