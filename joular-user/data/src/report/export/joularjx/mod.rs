//! Writes JoularJX's directory of CSV files, row for row as version 3 writes it:
//! `joularjx-result/PID-STARTms/{all,app}/{runtime,total}/{methods,calltrees}/…csv` and
//! `{all,app}/evolution/…csv`.
//!
//! JoularJX sees Java frames only: in `all`, energy goes to the Java frame nearest the leaf. Paths
//! without any (the collector, the compilers, native threads) keep their own frames, so that
//! nothing is lost; JoularJX would not show them. `app` exists where packages are given, and has
//! the energy that their frames are accountable for. Like JoularJX's it has no row for the rest.

mod ledger;
mod rows;

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use self::{
    ledger::{Kind, Ledger, Subject, View},
    rows::Names,
};
use super::{ExportFormat, Exported, Files, Result, Selection, Writer, origin};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::profile::{Catalog, ProcessIndex, row::EnergyRow},
    text::exact_joules,
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "joularjx", writer: Writer::Files(write) };

/// JoularJX's own name for it.
const ROOT: &str = "joularjx-result";

/// A file in each process's directory that says how the energy came about; the others have no place
/// for it.
const ABOUT: &str = "energy.txt";

fn write(selection: &Selection<'_>, files: &mut Files) -> Result<Exported> {
    let unfiltered = Selection { app: None, ..*selection };
    let mut timeline = unfiltered.timeline()?;
    let of_app = selection.app.map(|app| timeline.catalog().paths.of_app(app));
    let hosts = Hosts::of(timeline.catalog());
    let mut export = Export {
        files,
        origin: origin(&timeline.overview),
        hosts,
        names: Names::new(of_app),
        directories: HashMap::new(),
        ledger: Ledger::default(),
        window: None,
        energy: MicroJoules(0),
        energies: BTreeMap::new(),
    };
    // Even if nobody ran, whoever looks finds the directory.
    export.files.folder(Path::new(ROOT))?;
    timeline.scan(|catalog, row| export.take(catalog, row))?;
    export.finish()?;
    Ok(Exported { energy: export.energy, origin: export.origin })
}

/// Whether hosts need folders of their own, because processes of two hosts may have the same id.
struct Hosts {
    are_several: bool,
}

impl Hosts {
    fn of(catalog: &Catalog) -> Self {
        let mut hosts: Vec<_> = catalog.runs.iter().map(|run| run.info.machine()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        Self { are_several: hosts.len() > 1 }
    }
}

struct Export<'a> {
    files: &'a mut Files,
    origin: String,
    hosts: Hosts,
    names: Names,
    directories: HashMap<ProcessIndex, u32>,
    ledger: Ledger,
    /// Run, start and length of the window whose rows are being read.
    window: Option<(usize, UnixMicros, u64)>,
    energy: MicroJoules,
    /// By directory.
    energies: BTreeMap<u32, MicroJoules>,
}

impl Export<'_> {
    fn take(&mut self, catalog: &Catalog, row: &EnergyRow) -> Result<()> {
        let window = (row.run, row.window_start, row.window_ns);
        if self.window != Some(window) {
            self.end_window()?;
            self.window = Some(window);
        }
        let process = catalog.thread(row.thread).process;
        let directory = self.directory(catalog, process)?;
        let shown = self.names.of(&catalog.paths, row.path);
        for (view, names) in [(View::All, Some(shown.all)), (View::App, shown.app)] {
            for kind in Kind::ALL {
                let place = Subject { directory, view, kind };
                match names {
                    Some(names) => self.ledger.add(place, row.thread, names.of(kind), row.energy),
                    None if self.names.have_app() => self.ledger.see(place),
                    None => {}
                }
            }
        }
        self.energy = self.energy.saturating_add(row.energy);
        let of_directory = self.energies.entry(directory).or_default();
        *of_directory = of_directory.saturating_add(row.energy);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.end_window()?;
        self.ledger.finish(self.files, &self.names)?;
        for (directory, energy) in &self.energies {
            let Some(below) = self.ledger.path(*directory) else { continue };
            self.files.append(&below.join(ABOUT), &format!("{} J\n", exact_joules(*energy)))?;
        }
        Ok(())
    }

    fn end_window(&mut self) -> Result<()> {
        let Some((_, start, length_ns)) = self.window.take() else { return Ok(()) };
        let length_us = i64::try_from(length_ns / 1000).unwrap_or(i64::MAX);
        // JoularJX's times are those of its writing, after the second that they are about.
        let end = UnixMicros(start.0.saturating_add(length_us));
        self.ledger.end_window(self.files, &self.names, end, length_ns)
    }

    /// The directory of a process, made when it is first seen. The runs of one JVM's life share it.
    fn directory(&mut self, catalog: &Catalog, index: ProcessIndex) -> Result<u32> {
        if let Some(directory) = self.directories.get(&index) {
            return Ok(*directory);
        }
        let process = catalog.process(index);
        let start_ms = process.start.0.div_euclid(1000);
        let mut below = PathBuf::from(ROOT);
        if self.hosts.are_several {
            below.push(rows::file_name("host-", catalog.host_title(catalog.run_of(process).info.machine()).raw(), ""));
        }
        below.push(format!("{}-{start_ms}", process.pid.0));
        let directory = match self.ledger.find(&below) {
            Some(directory) => directory,
            None => {
                self.files.new_folder(&below)?;
                // First, so that figures are never without it.
                self.files.create(&below.join(ABOUT), &format!("{}\n", self.origin))?;
                self.make_folders(&below)?;
                self.ledger.open(below, process.pid.0)
            }
        };
        self.directories.insert(index, directory);
        Ok(directory)
    }

    fn make_folders(&mut self, below: &Path) -> Result<()> {
        let views = if self.names.have_app() { &[View::All, View::App][..] } else { &[View::All] };
        for view in views {
            for folder in ["runtime/methods", "runtime/calltrees", "total/methods", "total/calltrees", "evolution"] {
                self.files.folder(&below.join(view.folder()).join(folder))?;
            }
        }
        Ok(())
    }
}
