//! Looks at what a process holds: memory, threads, descriptors by kind, eBPF objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use joular_tests::{bpf_objects, process::status_kib, schedstat};

/// What a process held at a moment.
pub struct Look {
    pub at: Duration,
    pub resident_kib: u64,
    /// Without files that are mapped, whose pages the kernel may take away: the program itself is most of them.
    pub own_kib: u64,
    pub threads: u64,
    pub cpu: Duration,
    /// By kind; files are one kind.
    pub descriptors: BTreeMap<String, usize>,
    pub programs: usize,
    pub maps: usize,
    pub links: usize,
}

impl Look {
    pub fn at(at: Duration, pid: u32) -> Result<Self> {
        let objects = bpf_objects::of(pid)?;
        let of_kind = |kind: &str| objects.iter().filter(|(its, _)| *its == kind).count();
        let mut descriptors = BTreeMap::new();
        for (_, target) in descriptors_of(pid)? {
            *descriptors.entry(kind(&target)).or_default() += 1;
        }
        Ok(Self {
            at,
            resident_kib: status_kib(pid, "VmRSS:")?,
            own_kib: status_kib(pid, "RssAnon:")? + status_kib(pid, "RssShmem:")?,
            threads: threads(pid)?,
            cpu: Duration::from_nanos(schedstat::process(pid)?),
            descriptors,
            programs: of_kind("program"),
            maps: of_kind("map"),
            links: of_kind("link"),
        })
    }

    /// What does not depend on which processes there are: all but files of theirs, and copies of such.
    pub fn lasting(&self) -> BTreeMap<&str, usize> {
        let lasting = self.descriptors.iter().filter(|(kind, _)| !kind.starts_with('/') && *kind != FILE);
        lasting.map(|(kind, count)| (kind.as_str(), *count)).collect()
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, resident_kib, own_kib, threads, cpu, descriptors, programs, maps, links } = self;
        let (at, cpu, open) = (at.as_secs(), cpu.as_secs_f64(), descriptors.values().sum::<usize>());
        write!(f, "{at} s | {resident_kib} KiB, {own_kib} of its own | {threads} threads | {cpu:.2} s CPU | ")?;
        write!(f, "{programs} programs, {maps} maps, {links} links | {open} descriptors: {descriptors:?}")
    }
}

const FILE: &str = "file";
/// The profiler's own memory, in which it keeps the symbols of few files for some windows.
const MEMORY: &str = "/memfd:";
/// The kernel adds this to the path of a file that was deleted.
const DELETED: &str = " (deleted)";
const NO_FILES: [&str; 4] = [MEMORY, "/proc/", "/sys/", "/dev/"];

/// `socket:[123]` and `socket:[124]` are of one kind.
fn kind(target: &Path) -> String {
    let text = target.to_string_lossy();
    if NO_FILES.iter().any(|start| text.starts_with(start)) {
        text.chars().filter(|c| !c.is_ascii_digit()).collect()
    } else if text.starts_with('/') {
        FILE.to_owned()
    } else {
        text.split(":[").next().unwrap_or_default().to_owned()
    }
}

/// But for those that close probes: the first probe starts as many as there ever are.
fn threads(pid: u32) -> Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("listing threads of {pid}"))? {
        // A thread may end between listing and reading.
        let Ok(name) = fs::read_to_string(entry?.path().join("comm")) else { continue };
        count += u64::from(name.trim_end() != "probe-closer");
    }
    Ok(count)
}

/// Each descriptor's link below `/proc`, and what it says.
fn descriptors_of(pid: u32) -> Result<Vec<(PathBuf, PathBuf)>> {
    let dir = format!("/proc/{pid}/fd");
    let entries = fs::read_dir(&dir).with_context(|| format!("listing {dir}"))?;
    // A descriptor may be closed between listing and reading.
    Ok(entries.flatten().filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?))).collect())
}

/// The files that a process has open.
pub fn files(pid: u32) -> Result<BTreeSet<PathBuf>> {
    Ok(descriptors_of(pid)?.into_iter().map(|(_, target)| target).filter(|target| kind(target) == FILE).collect())
}

/// What of a process's descriptors is of processes that are gone, of files that are, or of files that no
/// process has mapped. The files of `before` may be open.
pub fn gone(pid: u32, before: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>> {
    let mapped = mapped()?;
    let is_unused = |target: &PathBuf| kind(target) == FILE && !before.contains(target) && !mapped.contains(target);
    // Some programs delete a library that they use.
    let is_used = |target: &PathBuf| target.to_string_lossy().ends_with(DELETED) && mapped.contains(target);
    let is_gone = |link: &Path, target: &PathBuf| !is_used(target) && is_gone(link, target).unwrap_or(false);
    let descriptors = descriptors_of(pid)?.into_iter();
    let gone = descriptors.filter(|(link, target)| is_unused(target) || is_gone(link, target));
    Ok(gone.map(|(_, target)| target).collect())
}

/// The files that all processes have mapped.
fn mapped() -> Result<BTreeSet<PathBuf>> {
    let mut mapped = BTreeSet::new();
    for entry in fs::read_dir("/proc")? {
        // Not every entry is a process, and a process may end meanwhile.
        let Ok(maps) = fs::read_to_string(entry?.path().join("maps")) else { continue };
        mapped.extend(maps.lines().filter_map(|line| Some(line[line.find('/')?..].into())));
    }
    Ok(mapped)
}

/// Nothing for a descriptor that was closed meanwhile.
fn is_gone(link: &Path, target: &Path) -> Option<bool> {
    if target.to_string_lossy().starts_with(MEMORY) {
        return Some(false);
    }
    if target.starts_with("/") {
        // The path of a file that was deleted, or whose file system was unmounted, is none or another's.
        let (file, named) = (fs::metadata(link).ok()?, fs::symlink_metadata(target).ok());
        return Some(named.is_none_or(|named| (named.dev(), named.ino()) != (file.dev(), file.ino())));
    }
    let about = fs::read_to_string(link.to_string_lossy().replace("/fd/", "/fdinfo/")).ok()?;
    Some(about.lines().any(|line| line.starts_with("Pid:") && line.trim_end().ends_with("-1")))
}
