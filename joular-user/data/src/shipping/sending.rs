//! Makes files of a run, and publishes them at the place where they go.

use std::{path::Path, sync::Arc, time::Duration};

use super::{Options, Passed, ShipError, pace::Pace};
use crate::{
    dataset::{
        bundle::{self, Groups},
        column::Table as _,
        error::DataSetError,
        layout::FilePlace,
        read::{
            files::{self, RunFiles},
            footer::Footer,
            run_row,
        },
        redacting,
        store::{Published, SharedPlace, Store, StoredFile},
        tables::{Runs, TABLES},
    },
    output::OutputError,
};

/// No file of a rollup is larger.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is made of a run that is rolled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One file, unless the run is long or large.
    #[default]
    Bundles,
    /// A file of each table.
    Tables,
}

impl Layout {
    pub const ALL: [Self; 2] = [Self::Bundles, Self::Tables];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bundles => "bundles",
            Self::Tables => "tables",
        }
    }
}

/// The files that are sent of a run.
pub(super) enum Made {
    Bundle(bundle::BundlePlace, Vec<u8>),
    /// In the order in which readers may see them: the run's row first, and last `windows`, which says which rows of the
    /// other tables are whole.
    Tables(Vec<TableOf>),
}

/// A file of a table.
pub(super) struct TableOf {
    table: &'static str,
    place: FilePlace,
    file: StoredFile,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Whether it was brought to its end.
    pub(super) is_whole: bool,
    /// Whether nothing else is to be sent.
    pub(super) is_stopped: bool,
}

/// The files of a run that was rolled up into this store.
pub(super) fn rolled_up(store: &Arc<dyn Store>, options: &Options) -> Result<Made, DataSetError> {
    let Some(run) = files::find(store)?.into_iter().next() else { return Ok(Made::Tables(Vec::new())) };
    let row = run_row::read(&run.row)?;
    if options.layout == Layout::Bundles && bundle::fits(&row, &run)? {
        let bytes = bundle::encode(&run, &options.redaction)?;
        return Ok(Made::Bundle(bundle::BundlePlace::of(&row.info), bytes));
    }
    Ok(Made::Tables(tables(&run)))
}

/// The files of a run as it was recorded.
pub(super) fn recorded(run: &RunFiles) -> Result<Made, DataSetError> {
    // What was damaged here must not look whole there.
    run.all().try_for_each(|file| Footer::read(file).map(drop))?;
    Ok(Made::Tables(tables(run)))
}

fn tables(run: &RunFiles) -> Vec<TableOf> {
    let row = TableOf { table: Runs::NAME, place: run.place.clone(), file: run.row.clone() };
    let of_table = |table: &'static str| {
        let files = run.parts.iter().filter_map(move |(place, part)| Some((place, part.named(table)?)));
        files.map(move |(place, file)| TableOf { table, place: place.clone(), file: file.clone() })
    };
    [row].into_iter().chain(TABLES.into_iter().flat_map(of_table)).collect()
}

/// Where files go.
pub(super) struct Target {
    store: Arc<dyn Store>,
    groups: Groups,
    /// See [`Options::looks_first`].
    looks_first: bool,
}

impl Target {
    /// Opens a place.
    ///
    /// # Errors
    /// If it cannot be opened, or does not say in which groups hosts are.
    pub(super) fn open(place: &SharedPlace, options: &Options) -> Result<Self, ShipError> {
        let store = place.open()?;
        let groups = match options.layout {
            Layout::Bundles if options.window_ns.is_some() => {
                Groups::read(&store).map_err(|error| OutputError::Groups { problem: error.to_string() })?
            }
            Layout::Bundles | Layout::Tables => Groups::default(),
        };
        let looks_first = options.looks_first && matches!(place, SharedPlace::Store(_));
        Ok(Self { store, groups, looks_first })
    }

    pub(super) fn sending<'a>(
        &'a self,
        options: &'a Options,
        pace: Pace,
        wait: &'a mut dyn FnMut(Duration) -> bool,
    ) -> Sending<'a> {
        Sending { to: self, options, pace, wait }
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        if !self.looks_first {
            return self.store.publish_new(folder, name, bytes);
        }
        if self.store.find(folder, name)?.is_some() {
            return Ok(Published::AlreadyThere);
        }
        self.store.publish(folder, name, bytes).map(|()| Published::Created)
    }
}

/// Sends runs.
pub(super) struct Sending<'a> {
    to: &'a Target,
    options: &'a Options,
    pace: Pace,
    /// Called to keep the pace; says whether to stop.
    wait: &'a mut dyn FnMut(Duration) -> bool,
}

impl Sending<'_> {
    /// Sends what was made of a run, but for what is there.
    ///
    /// # Errors
    /// If a file cannot be read, or the place does not take one.
    pub(super) fn send(&mut self, made: &Made, passed: &mut Passed) -> Result<Sent, ShipError> {
        match made {
            Made::Bundle(place, bytes) => {
                let is_stopped = self.file(&place.folder(&self.to.groups), &place.name, bytes, passed)?;
                Ok(Sent { is_whole: true, is_stopped })
            }
            Made::Tables(files) => {
                for TableOf { table, place, file } in files {
                    let bytes = redacting::file(table, file, MAX_FILE_BYTES, &self.options.redaction)?;
                    if self.file(&place.folder(table), &place.name, &bytes, passed)? {
                        return Ok(Sent { is_whole: false, is_stopped: true });
                    }
                }
                Ok(Sent { is_whole: true, is_stopped: false })
            }
        }
    }

    /// Sends one file. Returns whether to stop.
    fn file(&mut self, folder: &Path, name: &str, bytes: &[u8], passed: &mut Passed) -> Result<bool, ShipError> {
        if self.to.publish(folder, name, bytes)? == Published::AlreadyThere {
            return Ok(false);
        }
        passed.files += 1;
        passed.bytes += bytes.len() as u64;
        Ok((self.wait)(self.pace.after(bytes.len() as u64)))
    }
}
