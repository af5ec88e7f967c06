//! Which zones to use, so that no joule is counted twice.
//!
//! A zone is known by its `name`, never by its number: psys may be `:1`, dram
//! may be `:0:0` or `:0:2`. What each name means:
//!
//! - `package-N`: a processor; used, `N` is the socket.
//! - `package-N-die-M`: a die of it. Intel's multi-die processors have a
//!   register per die, and their sum is the package. AMD Zen 1 and 2 show one
//!   register once per die: such mirrors are dropped, all but the first.
//! - `dram`: beside the package it is listed under; used.
//! - `core`, `uncore`: parts of the package (and on AMD one core's register): not used.
//! - `psys`: the platform around the packages; used only if there is no package.
//! - everything of `intel-rapl-mmio`: the same registers by another way; not used.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::counter_file::{CounterFile, read_number};

/// More entries than any machine has zones; bounds a hostile or broken tree.
const MAX_ENTRIES: usize = 4096;
/// Longest zone name that is looked at.
const MAX_NAME_BYTES: u64 = 64;
/// Mirrors of one register differ by what a package uses between two reads:
/// 1 J is 1 ms (one update) at 1 kW. Two dies that stand within 1 J of each
/// other twice, of a range of 65 kJ or more, would be taken for mirrors.
const MIRROR_TOLERANCE_UJ: u64 = 1_000_000;
/// Several register updates, so that the second look is a second opinion.
const MIRROR_PAUSE: Duration = Duration::from_millis(20);

/// What a zone measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    Package,
    Dram,
    Platform,
}

impl ZoneKind {
    /// Name of the domain.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Dram => "dram",
            Self::Platform => "platform",
        }
    }

    /// More than any part sold draws (in 2026: 500 W per socket, twice that
    /// for moments), so that what exceeds it is an error and not a load.
    pub const fn max_watts(self) -> u32 {
        match self {
            Self::Package => 1_000,
            Self::Dram => 500,
            Self::Platform => 4_000,
        }
    }
}

/// A zone to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub kind: ZoneKind,
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
}

/// The zones below `root` whose energies are disjoint, mirrored dies still
/// among them, by socket and die, each package before its memory.
///
/// # Errors
/// If `root` cannot be listed.
pub fn discover(root: &Path) -> io::Result<Vec<Zone>> {
    let mut zones = Vec::new();
    let mut platform = None;
    for directory in subdirectories(root, "intel-rapl:")? {
        let own_name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // `/sys/class/powercap` also lists the zones below zones.
        if own_name.matches(':').count() != 1 {
            continue;
        }
        match zone_name(&directory).as_deref() {
            Some("psys") => platform = Some(zone(ZoneKind::Platform, None, None, directory)),
            Some(name) => {
                let Some((socket, die)) = parse_package(name) else { continue };
                let memory = memory_of(root, &directory, own_name);
                zones.push(zone(ZoneKind::Package, Some(socket), die, directory));
                zones.extend(memory.map(|directory| zone(ZoneKind::Dram, Some(socket), die, directory)));
            }
            None => {}
        }
    }
    if zones.is_empty() {
        zones.extend(platform);
    }
    zones.sort_by_key(|zone| (zone.socket, zone.die));
    Ok(zones)
}

/// The dram zone of the package zone `own_name`: below its directory or, as in
/// `/sys/class/powercap`, beside it.
fn memory_of(root: &Path, directory: &Path, own_name: &str) -> Option<PathBuf> {
    let prefix = format!("{own_name}:");
    let below = subdirectories(directory, &prefix).unwrap_or_default();
    let beside = subdirectories(root, &prefix).unwrap_or_default();
    below.into_iter().chain(beside).find(|directory| zone_name(directory).as_deref() == Some("dram"))
}

fn zone(kind: ZoneKind, socket: Option<u32>, die: Option<u32>, directory: PathBuf) -> Zone {
    let range_uj = read_number(&directory.join("max_energy_range_uj")).unwrap_or(0);
    Zone { kind, socket, die, range_uj, directory }
}

/// Keeps one of each set of dies that show the same register.
pub fn drop_mirrored_dies(zones: &mut Vec<Zone>) {
    let sockets: BTreeSet<_> = zones.iter().filter(|zone| zone.die.is_some()).map(|zone| zone.socket).collect();
    for socket in sockets {
        let is_die = |zone: &&Zone| zone.socket == socket && zone.kind == ZoneKind::Package;
        let mut dies: Vec<CounterFile> = zones.iter().filter(is_die).map(Zone::counter).collect();
        if dies.len() < 2 {
            continue;
        }
        let first = read_all(&mut dies);
        std::thread::sleep(MIRROR_PAUSE);
        let second = read_all(&mut dies);
        if is_mirrored(&first) && is_mirrored(&second) {
            let kept = zones.iter().find(is_die).and_then(|zone| zone.die);
            zones.retain(|zone| zone.socket != socket || zone.die == kept);
        }
    }
}

fn read_all(counters: &mut [CounterFile]) -> Vec<Option<u64>> {
    counters.iter_mut().map(|counter| counter.read().ok()).collect()
}

/// Whether all values are there and equal but for the time between the reads.
fn is_mirrored(values: &[Option<u64>]) -> bool {
    let Some(values) = values.iter().copied().collect::<Option<Vec<u64>>>() else { return false };
    let (least, most) = (values.iter().min(), values.iter().max());
    least.zip(most).is_some_and(|(least, most)| most - least <= MIRROR_TOLERANCE_UJ)
}

/// `package-N` or `package-N-die-M` to `(N, Some(M))`.
fn parse_package(name: &str) -> Option<(u32, Option<u32>)> {
    let rest = name.strip_prefix("package-")?;
    match rest.split_once("-die-") {
        Some((socket, die)) => Some((socket.parse().ok()?, Some(die.parse().ok()?))),
        None => Some((rest.parse().ok()?, None)),
    }
}

fn zone_name(directory: &Path) -> Option<String> {
    use io::Read as _;
    let mut name = String::new();
    fs::File::open(directory.join("name")).ok()?.take(MAX_NAME_BYTES).read_to_string(&mut name).ok()?;
    Some(name.trim().to_owned())
}

/// Entries of `parent` whose name starts with `prefix`, in order of name.
fn subdirectories(parent: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let starts = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
    let entries = fs::read_dir(parent)?.take(MAX_ENTRIES).filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.filter(starts).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
