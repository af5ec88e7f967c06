//! Decides which zones to use, so that no joule is counted twice.
//!
//! A zone is known by its `name`, never by its number: psys may be `:1`, dram may be `:0:0` or
//! `:0:2`. What each name means:
//!
//! - `package-N`: a processor; used, `N` is the socket.
//! - `package-N-die-M`: a die of it. Intel's multi-die processors have a
//!   register per die, and their sum is the package. Others
//!   (AMD Zen 1 and 2) show the package's register once per die: all but the first
//!   are dropped. The vendor decides, not the values: dies may have values close together.
//! - `dram`: not in the package it is listed under; used.
//! - `core`, `uncore`: on Intel, parts of the package they are listed under; used
//!   as such. On AMD `core` is a single core's register, whichever core asked: not used.
//! - `psys`, or `psys-N` where package N counts it: the platform with all
//!   packages; used, one of them.
//! - everything of `intel-rapl-mmio`: the same registers by another way; not used.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use joular_data::model::domain::Meter;

use super::counter_file::{CounterFile, read_number};
use crate::energy::{
    rapl::{RaplKind, Register},
    sysfs::read_value,
};

/// More entries than any machine has zones; bounds a hostile or broken tree.
const MAX_ENTRIES: usize = 4096;

/// A zone to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub kind: RaplKind,
    pub socket: Option<u32>,
    /// Die, where the package has a zone for each.
    pub die: Option<u32>,
    /// Largest value of the counter; 0 if the kernel does not say.
    pub range_uj: u64,
    pub directory: PathBuf,
}

impl Zone {
    pub fn counter(&self) -> CounterFile {
        CounterFile::new(self.directory.join("energy_uj"))
    }

    pub fn register(&self) -> Register {
        let &Self { kind, socket, die, range_uj, .. } = self;
        let meter = Meter::Counter { range_uj, unit_uj: unit_uj(range_uj), max_watts: kind.max_watts() };
        Register { kind, socket, die, core: None, meter }
    }
}

/// One step of the register: the range is 2³² − 1 of them. The step is not a
/// whole number of µJ (2⁻¹⁴ J is 61.04), so it is rounded; at least 1.
pub fn unit_uj(range_uj: u64) -> u64 {
    const STEPS: u64 = 0xffff_ffff;
    (range_uj.saturating_add(STEPS / 2) / STEPS).max(1)
}

/// The zones below `root` that are used, mirrored dies still among them, by
/// socket and die, each package before what is listed under it, psys last.
///
/// # Errors
/// If `root` cannot be listed.
pub fn discover(root: &Path, is_intel: bool) -> io::Result<Vec<Zone>> {
    let (mut zones, mut platforms) = (Vec::new(), Vec::new());
    for directory in subdirectories(root, "intel-rapl:")? {
        let own_name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // `/sys/class/powercap` also lists the zones below zones.
        if own_name.matches(':').count() != 1 {
            continue;
        }
        let name = read_value(&directory.join("name")).unwrap_or_default();
        if name == "psys" || name.starts_with("psys-") {
            platforms.push(zone(RaplKind::Platform, None, None, directory));
        } else if let Some((socket, die)) = parse_package(&name) {
            let inner = zones_below(root, &directory, own_name);
            zones.push(zone(RaplKind::Package, Some(socket), die, directory));
            let used = inner.into_iter().filter(|(kind, _)| is_intel || *kind == RaplKind::Dram);
            zones.extend(used.map(|(kind, directory)| zone(kind, Some(socket), die, directory)));
        }
    }
    zones.sort_by_key(|zone| (zone.socket, zone.die));
    if !is_intel {
        keep_first_dies(&mut zones);
    }
    zones.extend(platforms.into_iter().next());
    Ok(zones)
}

/// The zones of the package zone `own_name`, one of a kind: below its directory
/// or, as in `/sys/class/powercap`, beside it.
fn zones_below(root: &Path, directory: &Path, own_name: &str) -> Vec<(RaplKind, PathBuf)> {
    let prefix = format!("{own_name}:");
    let below = subdirectories(directory, &prefix).unwrap_or_default();
    let beside = subdirectories(root, &prefix).unwrap_or_default();
    let all: Vec<(String, PathBuf)> = below
        .into_iter()
        .chain(beside)
        .filter_map(|directory| Some((read_value(&directory.join("name")).ok()?, directory)))
        .collect();
    [("core", RaplKind::Cores), ("uncore", RaplKind::Uncore), ("dram", RaplKind::Dram)]
        .into_iter()
        .filter_map(|(name, kind)| Some((kind, all.iter().find(|(found, _)| found == name)?.1.clone())))
        .collect()
}

fn zone(kind: RaplKind, socket: Option<u32>, die: Option<u32>, directory: PathBuf) -> Zone {
    let range_uj = read_number(&directory.join("max_energy_range_uj")).unwrap_or(0);
    Zone { kind, socket, die, range_uj, directory }
}

/// Keeps each package's first die with its zones; `zones` are in the order of dies.
fn keep_first_dies(zones: &mut Vec<Zone>) {
    let mut first: BTreeMap<Option<u32>, Option<u32>> = BTreeMap::new();
    zones.retain(|zone| *first.entry(zone.socket).or_insert(zone.die) == zone.die);
}

/// `package-N` or `package-N-die-M` to `(N, Some(M))`.
fn parse_package(name: &str) -> Option<(u32, Option<u32>)> {
    let rest = name.strip_prefix("package-")?;
    match rest.split_once("-die-") {
        Some((socket, die)) => Some((socket.parse().ok()?, Some(die.parse().ok()?))),
        None => Some((rest.parse().ok()?, None)),
    }
}

/// Entries of `parent` whose name starts with `prefix`, in order of name.
fn subdirectories(parent: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let starts = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
    let entries = fs::read_dir(parent)?.take(MAX_ENTRIES).filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.filter(starts).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
