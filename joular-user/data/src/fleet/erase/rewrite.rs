//! Erases processes of a run: in its bundle, or in its files of tables.
//!
//! A bundle takes the place of the old one at once. Files of tables are replaced one by one, `processes` last: they say which
//! processes are erased, so that whoever goes on after an interruption does the same. What is written follows from the run
//! and the processes alone.

use std::{path::Path, sync::Arc};

use super::{made, rules::erased_key, source::with_erased};
use crate::{
    dataset::{
        bundle,
        column::Table as _,
        erasing::{
            Going, Keys, Made,
            fates::{self, Fate},
        },
        error::{DataSetError, Result},
        layout::FilePlace,
        read::{
            files::{self, RunFiles},
            footer::Footer,
            run_row::RunRow,
        },
        schema::{SCHEMA_VERSION, key},
        store::{Scratch, Store, StoredFile},
        tables::{Processes, Runs, Stacks, TABLES},
    },
    model::units::MicroJoules,
    redact::{CommandLines, Redaction},
};

/// What was done to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) files: usize,
    /// Files of which no row was left.
    pub(super) removed: usize,
    pub(super) rows: u64,
    /// Energy of what was erased. It stays in the run.
    pub(super) energy: MicroJoules,
}

/// A run, and what comes in place of what goes.
struct Rewriting<'a> {
    run: &'a RunFiles,
    going: Going,
    made: Arc<dyn Store>,
    done: Rewritten,
}

/// Erases processes of a run. Files are made in the folder `scratch`.
///
/// # Errors
/// If a file cannot be read or written, or the run is not a rollup or of a later version.
pub(super) fn run(
    store: &Arc<dyn Store>,
    run: &RunFiles,
    row: &RunRow,
    keys: &Keys,
    scratch: &Path,
) -> Result<Rewritten> {
    refuse_later(run)?;
    let keys = with_erased(keys);
    let made = Arc::new(Scratch::within(scratch)?);
    let energy = made::of_rollup(run, row, &keys, made.as_ref())?;
    let going = Going::of(run, keys, erased_key())?;
    let mut rewriting = Rewriting { run, going, made, done: Rewritten { energy, ..Rewritten::default() } };
    if run.is_bundle() {
        rewriting.bundle(store, scratch)?
    } else {
        rewriting.tables(store)?
    }
    Ok(rewriting.done)
}

/// What a later version has in it, nobody knows.
fn refuse_later(run: &RunFiles) -> Result<()> {
    let metadata = Footer::read(&run.row)?.metadata;
    let version = metadata.iter().find(|(name, _)| name == key::SCHEMA_VERSION).and_then(|(_, text)| text.parse().ok());
    if version.is_some_and(|version: i64| version > SCHEMA_VERSION) {
        let problem = "a later joular-bpf wrote it: erase with that one".to_owned();
        return Err(DataSetError::Damaged { path: run.row.path(), problem });
    }
    Ok(())
}

impl Rewriting<'_> {
    fn bundle(&mut self, store: &Arc<dyn Store>, scratch: &Path) -> Result<()> {
        let Some((folder, name)) = self.run.row.place() else { return Ok(()) };
        let place = &self.run.place;
        let tables: Arc<dyn Store> = Arc::new(Scratch::within(scratch)?);
        if let Some(bytes) = self.row()?.bytes {
            tables.publish(&place.folder(Runs::NAME), &place.name, &bytes)?;
        }
        for (number, table) in (0..self.run.parts.len()).flat_map(|number| TABLES.map(|table| (number, table))) {
            let Some((place, made)) = self.table(number, table)? else { continue };
            if let Some(bytes) = made.bytes {
                tables.publish(&place.folder(table), &place.name, &bytes)?;
            }
        }
        let run = files::find(&tables)?.into_iter().next();
        let run = run.ok_or_else(|| DataSetError::NoRun { path: self.run.row.path() })?;
        let bytes = bundle::encode(&run, &Redaction::default().showing(CommandLines::Full))?;
        store.publish(folder, name, &bytes)?;
        self.done.files += 1;
        Ok(())
    }

    fn tables(&mut self, store: &Arc<dyn Store>) -> Result<()> {
        if let (Made { is_same: false, bytes: Some(bytes), .. }, Some((folder, name))) =
            (self.row()?, self.run.row.place())
        {
            store.publish(folder, name, &bytes)?;
            self.done.files += 1;
        }
        let last = [Stacks::NAME, Processes::NAME];
        let first = TABLES.into_iter().filter(|table| !last.contains(table) && fates::of(table) != Fate::Kept);
        for table in first.chain(last) {
            for number in 0..self.run.parts.len() {
                let Some((place, made)) = self.table(number, table)? else { continue };
                match made {
                    Made { is_same: true, .. } => {}
                    Made { bytes: Some(bytes), .. } => {
                        store.publish(&place.folder(table), &place.name, &bytes)?;
                        self.done.files += 1;
                    }
                    Made { bytes: None, .. } => {
                        store.remove(&place.folder(table).join(&place.name))?;
                        self.done.removed += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn row(&self) -> Result<Made> {
        self.going.table(Runs::NAME, fates::of(Runs::NAME), Some(&self.run.row), None)
    }

    /// A table of a part of the run; `None` if there is no such part.
    fn table(&mut self, number: usize, table: &'static str) -> Result<Option<(FilePlace, Made)>> {
        let Some((place, part)) = self.run.parts.get(number) else { return Ok(None) };
        let within = place.folder(table).join(&place.name);
        let is_made = self.made.list(table, usize::MAX)?.contains(&within);
        let made = is_made.then(|| StoredFile::new(&self.made, within));
        let made = self.going.table(table, fates::of(table), part.named(table), made.as_ref())?;
        self.done.rows = self.done.rows.saturating_add(made.gone);
        Ok(Some((place.clone(), made)))
    }
}
