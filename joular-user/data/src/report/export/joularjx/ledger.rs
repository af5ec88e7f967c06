//! Sums rows as they are read: over the current window, over the whole, and over each second. A
//! window's rows are written when it ends, those of seconds when there are many. So memory does not
//! grow with the length of a run.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    path::{Path, PathBuf},
};

use super::rows::{self, Names};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::{
        export::{Result, files::Files},
        profile::ThreadIndex,
    },
};

/// Whose view of the methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum View {
    All,
    App,
}

impl View {
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::App => "app",
        }
    }

    const fn in_file(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::App => "filtered",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Methods,
    CallTrees,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Methods, Self::CallTrees];

    const fn folder(self) -> &'static str {
        match self {
            Self::Methods => "methods",
            Self::CallTrees => "calltrees",
        }
    }

    const fn in_file(self) -> &'static str {
        match self {
            Self::Methods => "methods",
            Self::CallTrees => "call-trees",
        }
    }
}

/// What a file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject {
    /// Of a process, see [`Ledger::open`].
    pub(super) directory: u32,
    pub(super) view: View,
    pub(super) kind: Kind,
}

/// Seconds of methods that are kept before they are written.
const MOST_SECONDS: usize = 1_000_000;

#[derive(Default)]
pub(super) struct Ledger {
    directories: Vec<Directory>,
    window: BTreeMap<Subject, BTreeMap<(ThreadIndex, u32), u64>>,
    total: BTreeMap<Subject, HashMap<u32, u64>>,
    /// Energy of a method, by its name, in a second.
    evolution: BTreeMap<(u32, View, u32), BTreeMap<i64, u64>>,
    seconds: usize,
    latest: i64,
}

struct Directory {
    below: PathBuf,
    pid: u32,
}

impl Ledger {
    pub(super) fn find(&self, below: &Path) -> Option<u32> {
        let place = self.directories.iter().position(|directory| directory.below == below)?;
        u32::try_from(place).ok()
    }

    /// Where a directory is, below that of the export.
    pub(super) fn path(&self, directory: u32) -> Option<&Path> {
        self.directories.get(directory as usize).map(|directory| directory.below.as_path())
    }

    /// A process's directory, which is there.
    pub(super) fn open(&mut self, below: PathBuf, pid: u32) -> u32 {
        self.directories.push(Directory { below, pid });
        u32::try_from(self.directories.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn add(&mut self, place: Subject, thread: ThreadIndex, name: u32, energy: MicroJoules) {
        let window = self.window.entry(place).or_default().entry((thread, name)).or_default();
        *window = window.saturating_add(energy.0);
    }

    /// Notes that there is a file, even if it gets nothing.
    pub(super) fn see(&mut self, place: Subject) {
        self.window.entry(place).or_default();
    }

    /// Writes the window's files and takes its sums to the totals.
    pub(super) fn end_window(
        &mut self,
        files: &mut Files,
        names: &Names,
        end: UnixMicros,
        length_ns: u64,
    ) -> Result<()> {
        let (second, millisecond) = (end.0.div_euclid(1_000_000), end.0.div_euclid(1000));
        if self.seconds > MOST_SECONDS && second != self.latest {
            self.write_evolution(files, names)?;
        }
        self.latest = second;
        for (place, sums) in std::mem::take(&mut self.window) {
            let mut text = String::new();
            let totals = self.total.entry(place).or_default();
            for ((_, name), energy) in &sums {
                row(&mut text, names.text(*name), &rows::watts(*energy, length_ns));
                let total = totals.entry(*name).or_default();
                *total = total.saturating_add(*energy);
                if place.kind == Kind::Methods {
                    let seconds = self.evolution.entry((place.directory, place.view, *name)).or_default();
                    let before = seconds.len();
                    let sum = seconds.entry(second).or_default();
                    *sum = sum.saturating_add(*energy);
                    self.seconds += seconds.len() - before;
                }
            }
            let Some(directory) = self.directories.get(place.directory as usize) else { continue };
            let (view, kind) = (place.view, place.kind);
            let name =
                format!("joularJX-{}-{millisecond}-{}-{}-power.csv", directory.pid, view.in_file(), kind.in_file());
            let folder = directory.below.join(view.folder()).join("runtime").join(kind.folder());
            files.append(&folder.join(name), &text)?;
        }
        Ok(())
    }

    /// Writes the files about the whole.
    pub(super) fn finish(&mut self, files: &mut Files, names: &Names) -> Result<()> {
        self.write_evolution(files, names)?;
        for (place, sums) in std::mem::take(&mut self.total) {
            let mut sums: Vec<(u64, &str)> =
                sums.into_iter().map(|(name, energy)| (energy, names.text(name))).collect();
            sums.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
            let mut text = String::new();
            for (energy, name) in sums {
                row(&mut text, name, &rows::joules(energy));
            }
            let Some(directory) = self.directories.get(place.directory as usize) else { continue };
            let (view, kind) = (place.view, place.kind);
            let name = format!("joularJX-{}-{}-{}-energy.csv", directory.pid, view.in_file(), kind.in_file());
            let folder = directory.below.join(view.folder()).join("total").join(kind.folder());
            files.append(&folder.join(name), &text)?;
        }
        Ok(())
    }

    /// Writes one file for methods whose names make the same file name.
    fn write_evolution(&mut self, files: &mut Files, names: &Names) -> Result<()> {
        self.seconds = 0;
        let mut by_file: BTreeMap<PathBuf, BTreeMap<i64, u64>> = BTreeMap::new();
        for ((directory, view, name), seconds) in std::mem::take(&mut self.evolution) {
            let Some(directory) = self.directories.get(directory as usize) else { continue };
            let before = format!("joularJX-{}-", directory.pid);
            let name = rows::file_name(&before, names.text(name), "-evolution.csv");
            let file = by_file.entry(directory.below.join(view.folder()).join("evolution").join(name)).or_default();
            for (second, energy) in seconds {
                let sum = file.entry(second).or_default();
                *sum = sum.saturating_add(energy);
            }
        }
        for (path, seconds) in by_file {
            let mut text = String::new();
            for (second, energy) in seconds {
                row(&mut text, &second.to_string(), &rows::joules(energy));
            }
            files.append(&path, &text)?;
        }
        Ok(())
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{name},{value}");
}
