//! Finds the packages of applications in a selection: of Java code that ran, and is neither the JDK's, nor a known library's
//! ([`known`]), nor generated. [`prefixes`] shortens them.
//!
//! A library is an application where a JVM was started with its main class, as H2's server is. A class that launches the code
//! of others, as Tomcat's does, says nothing.

mod known;
mod prefixes;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
};

use self::{
    known::{Known, names_above},
    prefixes::Judge,
};
use super::profile::{App, Filter, Process, Profile};
use crate::{
    dataset::error::Result,
    model::{
        frame::{Frame, UNNAMED_PACKAGE},
        units::MicroJoules,
    },
};

/// Packages that are found at most, those with most energy.
const MOST: usize = 16;
/// A package counts if one in so many joules of the JVMs passes through it.
const LEAST_PART: u64 = 1_000;
/// What names of files that JVMs are started with end in.
const FILES: [&str; 3] = [".jar", ".war", ".java"];
/// The method that a launcher calls.
const MAIN: &str = "main";

/// Packages of an application, and what they have of a selection's energy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppEnergy {
    /// Those that were found have most energy first.
    pub packages: Vec<PackageEnergy>,
    /// All energy of the selection's JVMs.
    pub jvms: MicroJoules,
    /// Of that, what call paths with Java code on them have.
    pub java: MicroJoules,
}

/// What an application's package has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageEnergy {
    /// A package, a class where its package has libraries below it, or [`UNNAMED_PACKAGE`].
    pub package: String,
    /// Of call paths through it.
    pub total: MicroJoules,
    /// Of call paths on which it is nearest the leaf of all the application's packages.
    pub own: MicroJoules,
}

/// The packages of applications in a data set, and `libraries` are none of them. As [`App`] takes them.
///
/// # Errors
/// If the data set cannot be read.
pub fn find(data: &Path, filter: &Filter, libraries: &[String]) -> Result<Vec<String>> {
    let profile = filter.unreadable.reading(|| Profile::read(data, filter, None))?;
    let found = AppEnergy::found(&profile, libraries);
    Ok(found.packages.into_iter().map(|package| package.package).collect())
}

impl AppEnergy {
    /// Finds the packages in a profile, which is not in an application's view already.
    pub fn found(profile: &Profile, libraries: &[String]) -> Self {
        let paths = JvmPaths::of(profile);
        let (known, trimmed) = (Known::built_in(), App::prefixes(libraries));
        let of_mains = mains(profile).into_iter().flat_map(|class| known.app_of_main(class)).collect();
        let classes = paths.classes();
        let packages = Judge::new(known, &trimmed, &of_mains).packages(classes.into_iter());
        let mut found = paths.energy_of(&packages);
        let least = found.jvms.0 / LEAST_PART;
        found.packages.retain(|package| package.total.0 > least);
        found.packages.sort_by_key(|package| Reverse(package.total));
        found.packages.truncate(MOST);
        if found.packages.len() < packages.len() {
            // What packages have that do not count goes to their callers.
            let kept: Vec<String> = found.packages.into_iter().map(|package| package.package).collect();
            found = paths.energy_of(&kept);
        }
        found
    }

    /// What these packages have. The profile may be in their view.
    pub fn of(profile: &Profile, packages: &[String]) -> Self {
        JvmPaths::of(profile).energy_of(packages)
    }

    /// Energy of call paths through any of the packages.
    pub fn reached(&self) -> MicroJoules {
        self.packages.iter().map(|package| package.own).sum()
    }
}

/// Call paths of JVMs, with their energy.
struct JvmPaths<'a> {
    profile: &'a Profile,
    /// By path, µJ.
    energies: Vec<u64>,
}

impl<'a> JvmPaths<'a> {
    fn of(profile: &'a Profile) -> Self {
        let (catalog, jvms) = (&profile.catalog, &profile.overview.jvms);
        let mut is_jvm = vec![false; catalog.processes.len()];
        for process in jvms.keys() {
            if let Some(is_jvm) = is_jvm.get_mut(process.index()) {
                *is_jvm = true;
            }
        }
        let mut energies = vec![0_u64; catalog.paths.len()];
        for entry in &profile.entries {
            let process = catalog.thread(entry.thread).process;
            let energy = energies.get_mut(entry.path.index()).filter(|_| is_jvm.get(process.index()) == Some(&true));
            if let Some(energy) = energy {
                *energy = energy.saturating_add(entry.energy.0);
            }
        }
        Self { profile, energies }
    }

    /// Classes of Java code on paths that have energy, each once, without what is behind a `$`.
    fn classes(&self) -> HashSet<&'a str> {
        let paths = &self.profile.catalog.paths;
        let mut ran = vec![false; paths.frames().len()];
        for path in paths.indices().filter(|path| self.energies[path.index()] > 0) {
            paths.path(path).iter().for_each(|frame| ran[frame.index()] = true);
        }
        let ran = paths.frames().iter().zip(ran).filter(|(frame, ran)| *ran && frame.kind.is_java());
        ran.filter_map(|(frame, _)| class_of(frame)).collect()
    }

    fn energy_of(&self, packages: &[String]) -> AppEnergy {
        let paths = &self.profile.catalog.paths;
        let numbers: HashMap<&str, usize> = packages.iter().map(String::as_str).zip(0..).collect();
        let of_frames: Vec<Option<usize>> = paths.frames().iter().map(|frame| number(&numbers, frame)).collect();
        let is_java: Vec<bool> = paths.frames().iter().map(|frame| frame.kind.is_java()).collect();
        let mut sums = vec![[MicroJoules(0); 2]; packages.len()];
        let (mut jvms, mut java) = (MicroJoules(0), MicroJoules(0));
        // Which path a package was on last.
        let mut last = vec![None; packages.len()];
        for (path, energy) in paths.indices().zip(&self.energies).filter(|(_, energy)| **energy > 0) {
            let (frames, energy) = (paths.path(path), MicroJoules(*energy));
            jvms = jvms.saturating_add(energy);
            if frames.iter().any(|frame| is_java[frame.index()]) {
                java = java.saturating_add(energy);
            }
            let mut leaf_to_root = frames.iter().rev().filter_map(|frame| of_frames[frame.index()]).peekable();
            if let Some(nearest) = leaf_to_root.peek() {
                sums[*nearest][1] = sums[*nearest][1].saturating_add(energy);
            }
            for package in leaf_to_root {
                if last[package].replace(path) != Some(path) {
                    sums[package][0] = sums[package][0].saturating_add(energy);
                }
            }
        }
        let energies = packages.iter().zip(sums);
        let package =
            |(package, [total, own]): (&String, [_; 2])| PackageEnergy { package: package.clone(), total, own };
        AppEnergy { packages: energies.map(package).collect(), jvms, java }
    }
}

/// A class without what is behind a `$`. `None`: no class, or one that was generated outside of all packages.
fn class_of(frame: &Frame) -> Option<&str> {
    let class = frame.class.as_ref()?.raw();
    let start = class.rfind('.').map_or(0, |dot| dot + 1);
    // Some begin with a `$`: proxies, and what shells compile.
    let mut behind_first = class.get(start..)?.char_indices().skip(1);
    let end = behind_first.find(|(_, c)| ['$', '/'].contains(c)).map_or(class.len(), |(end, _)| start + end);
    class.get(..end).filter(|class| start > 0 || !class.starts_with('$'))
}

/// The package that a frame is of, as [`App::has`] sees it.
fn number(numbers: &HashMap<&str, usize>, frame: &Frame) -> Option<usize> {
    let class = frame.class.as_ref()?.raw();
    let unnamed = || numbers.get(UNNAMED_PACKAGE).filter(|_| !class.contains('.'));
    names_above(class).find_map(|name| numbers.get(name)).or_else(unnamed).copied()
}

/// Main classes of the selection's JVMs: as recorded, or where that is a file, as their stacks show them.
fn mains(profile: &Profile) -> BTreeSet<&str> {
    let (catalog, jvms) = (&profile.catalog, &profile.overview.jvms);
    let mut mains = BTreeSet::new();
    let mut is_unknown = vec![false; catalog.processes.len()];
    for index in jvms.keys() {
        let Some(process) = catalog.processes.get(index.index()) else { continue };
        match main_class(process) {
            Some(class) => {
                mains.insert(class);
            }
            None => is_unknown[index.index()] = true,
        }
    }
    if is_unknown.contains(&true) {
        let of_unknown = |thread| is_unknown.get(catalog.thread(thread).process.index()) == Some(&true);
        for entry in profile.entries.iter().filter(|entry| of_unknown(entry.thread)) {
            let first = catalog.paths.frames_of(entry.path).find(|frame| frame.kind.is_java());
            mains.extend(first.filter(|frame| frame.name == MAIN).and_then(class_of));
        }
    }
    mains
}

/// The class of what a JVM was started with: a class, `module/class`, a module, or a file, which has none.
fn main_class(process: &Process) -> Option<&str> {
    let class = process.main_class.as_ref()?.raw().rsplit('/').next()?;
    (!FILES.iter().any(|file| class.ends_with(file))).then_some(class)
}
