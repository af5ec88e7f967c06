//! Turns the many small files of a long run, or of a fleet, into few large ones, for `joular-bpf
//! compact`. Rows and their order stay the same; [`plan`] says which files become one. Where a
//! stack is described several times, only the first row stays.
//!
//! Rows pass through one batch at a time, so memory is that of one compressed file and of the ids
//! of a run's stacks. The result is built beside the data set and takes its place at once
//! ([`replace`]). An interruption at any point leaves the old data set or the new one, whole.

mod plan;
mod replace;

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::{Path, PathBuf},
};

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use serde::Serialize;

use self::{plan::Merge, replace::Staging};
use super::error::{DataSetError, Result};
use crate::{
    dataset::{
        OutputDirectory,
        column::Table as _,
        read::{
            columns::{Columns, TableFile},
            files::{self, RunFiles},
            footer::Footer,
            run_row,
        },
        redacting,
        store::{self, ClaimKind, LocalDirectory, Store, StoredFile},
        tables::{Runs, Stacks, stacks},
        write::MergedFile,
    },
    output::OutputError,
    redact::{CommandLines, Redaction},
    text::count,
};

/// Bound on a run's own row.
const MAX_ROW_BYTES: u64 = 64 << 20;

/// What became of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    pub runs: u64,
    pub files_before: u64,
    pub files_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Rows of stacks that had a row already.
    pub stacks_left_out: u64,
    /// There was nothing to merge, and nothing was changed.
    pub is_unchanged: bool,
}

/// Merges a data set's small files, in place or into a new directory that belongs to `owner`. Command lines are as
/// `redaction` shows them.
///
/// # Errors
/// As [`in_place`] and [`beside`].
pub fn run(data: &Path, output: Option<&Path>, owner: Option<(u32, u32)>, redaction: &Redaction) -> Result<Compacted> {
    let done = match output {
        Some(output) => copied(data, output, owner, redaction),
        None => replaced(data, redaction),
    };
    done.map_err(about_room)
}

/// Command lines stay as they are.
fn as_they_are() -> Redaction {
    Redaction::default().showing(CommandLines::Full)
}

/// Puts the compacted data set in place of `data`.
///
/// # Errors
/// If a run is writing there, if it holds what is no part of a data set, or a
/// file cannot be read or written; nothing is changed then.
pub fn in_place(data: &Path) -> Result<Compacted> {
    replaced(data, &as_they_are()).map_err(about_room)
}

fn replaced(data: &Path, redaction: &Redaction) -> Result<Compacted> {
    let root = root_of(data)?;
    let owner = replace::owner(&root)?;
    let _lock = OutputDirectory::create(&root, owner)?;
    let mut plan = Plan::of(&root)?;
    replace::refuse_foreign(&root, &plan.paths())?;
    // Free of what an interrupted run left, even if that one was all but done.
    replace::remove_leftover(&root, Some(&root))?;
    let is_merged = plan.runs.iter().all(|(_, merges)| merges.iter().all(Merge::is_one_part));
    if is_merged && redaction.shown == CommandLines::Full {
        return Ok(Compacted { files_after: plan.done.files_before, is_unchanged: true, ..plan.done.unchanged() });
    }
    replace::refuse_mounted(&root)?;
    let staging = Staging::make(&root, owner)?;
    staging.try_exchange(&root)?;
    plan.write(staging.directory.store(), redaction)?;
    staging.exchange(&root, &plan.paths())?;
    Ok(plan.done)
}

/// Writes the compacted data set to `output`, which must not exist or be empty.
///
/// # Errors
/// As [`in_place`], and if `output` holds anything.
pub fn beside(data: &Path, output: &Path, owner: Option<(u32, u32)>) -> Result<Compacted> {
    copied(data, output, owner, &as_they_are()).map_err(about_room)
}

fn copied(data: &Path, output: &Path, owner: Option<(u32, u32)>, redaction: &Redaction) -> Result<Compacted> {
    let root = root_of(data)?;
    let _lock = store::open(&root)?.claim(ClaimKind::Read)?;
    let mut plan = Plan::of(&root)?;
    replace::refuse_taken(output)?;
    replace::remove_leftover(output, None)?;
    let staging = Staging::make(output, owner)?;
    plan.write(staging.directory.store(), redaction)?;
    staging.rename(output)?;
    Ok(plan.done)
}

/// Gives a full disk an error of its own: it costs a recording its windows, but costs nothing here.
fn about_room(error: DataSetError) -> DataSetError {
    match error {
        DataSetError::Output(OutputError::DiskFull { path }) => DataSetError::NoRoom { path },
        error => error,
    }
}

/// The data set itself, with links resolved.
fn root_of(data: &Path) -> Result<PathBuf> {
    store::refuse_bucket("compacting", data)?;
    let root = data.canonicalize().map_err(|cause| DataSetError::Open { path: data.into(), cause })?;
    // Says so if it is none, before anything is made in it.
    files::find(&store::open(&root)?)?;
    Ok(root)
}

/// Which files become one.
struct Plan {
    runs: Vec<(RunFiles, Vec<Merge>)>,
    done: Compacted,
}

impl Plan {
    fn of(root: &Path) -> Result<Self> {
        let mut plan = Self { runs: Vec::new(), done: Compacted::default() };
        for files in files::find(&store::open(root)?)? {
            let merges = plan::of(&files)?;
            plan.runs.push((files, merges));
        }
        plan.done.runs = plan.runs.len() as u64;
        for file in plan.files() {
            plan.done.files_before += 1;
            plan.done.bytes_before += file.size_bytes()?;
        }
        Ok(plan)
    }

    /// All files that the plan reads.
    fn files(&self) -> Vec<StoredFile> {
        let of_run = |(files, merges): &(RunFiles, Vec<Merge>)| {
            merges.iter().flat_map(Merge::files).chain([&files.row]).cloned().collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    fn paths(&self) -> HashSet<PathBuf> {
        self.files().iter().map(StoredFile::path).collect()
    }

    fn write(&mut self, to: &LocalDirectory, redaction: &Redaction) -> Result<()> {
        for (files, merges) in &self.runs {
            let mut stacks = HashSet::new();
            for (number, merge) in merges.iter().enumerate() {
                self.done.stacks_left_out += write_merge(merge, number, &mut stacks, to, redaction)?;
            }
            copy_row(files, to, redaction)?;
        }
        self.check(to)
    }

    /// Reads what was written, before the old files are given up for it.
    fn check(&mut self, to: &LocalDirectory) -> Result<()> {
        let written = files::find(&store::open(to.path())?)?;
        let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
        for files in &written {
            for merge in plan::of(files)? {
                merge.rows().for_each(|(table, count)| *rows.entry(table).or_default() += count);
                self.done.files_after += merge.files().count() as u64;
                for file in merge.files() {
                    self.done.bytes_after += file.size_bytes()?;
                }
            }
            self.done.files_after += 1;
            self.done.bytes_after += files.row.size_bytes()?;
        }
        let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
        for merge in self.runs.iter().flat_map(|(_, merges)| merges) {
            merge.rows().for_each(|(table, count)| *expected.entry(table).or_default() += count);
        }
        if let Some(stacks) = expected.get_mut(Stacks::NAME) {
            *stacks = stacks.saturating_sub(self.done.stacks_left_out);
        }
        if rows == expected && written.len() == self.runs.len() {
            return Ok(());
        }
        let problem = format!("it has {rows:?} rows where {expected:?} were read: this is a defect, please report it");
        Err(DataSetError::Damaged { path: to.path().into(), problem })
    }
}

impl Compacted {
    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let before = count(self.files_before, "file");
        if self.is_unchanged {
            return writeln!(out, "nothing to merge: {}, {:.1} MiB", before, mib(self.bytes_before));
        }
        writeln!(
            out,
            "merged {before} of {:.1} MiB into {} of {:.1} MiB, without {} of stacks",
            mib(self.bytes_before),
            count(self.files_after, "file"),
            mib(self.bytes_after),
            count(self.stacks_left_out, "repeated description")
        )
    }

    fn unchanged(self) -> Self {
        Self { bytes_after: self.bytes_before, ..self }
    }
}

/// Returns how many stacks were described already.
fn write_merge(
    merge: &Merge,
    number: usize,
    stacks: &mut HashSet<i64>,
    to: &LocalDirectory,
    redaction: &Redaction,
) -> Result<u64> {
    let mut left_out = 0;
    for (table, merged) in &merge.tables {
        let place = (merge.place.folder(table), merge.place.numbered(number));
        left_out += merge_files(table, &merged.files, &merged.footer, (stacks, redaction), to, &place)?;
    }
    Ok(left_out)
}

/// Merges files of a table, all with this footer's columns and metadata, into the file of this folder and
/// name. Of stacks only those are kept that are not in `stacks` yet, and command lines are as they are to be shown. Returns
/// how many stacks were left out.
pub(crate) fn merge_files(
    table: &'static str,
    files: &[StoredFile],
    footer: &Footer,
    (stacks, redaction): (&mut HashSet<i64>, &Redaction),
    to: &dyn Store,
    (folder, name): &(PathBuf, String),
) -> Result<u64> {
    let mut left_out = 0;
    let mut file = MergedFile::start(table, footer.schema.clone(), footer.metadata.clone())?;
    for stored in files {
        let mut rows = TableFile::open(stored)?;
        while let Some(batch) = rows.next_batch().transpose()? {
            let columns = rows.columns(&batch);
            let copied = if table == Stacks::NAME {
                let is_new = new_stacks(&columns, stacks)?;
                left_out += is_new.false_count() as u64;
                let failed = |cause| DataSetError::Arrow { path: stored.path(), cause };
                Some(filter_record_batch(&batch, &is_new).map_err(failed)?)
            } else {
                redacting::batch(table, (&columns, &batch), &stored.path(), redaction)?
            };
            file.write(copied.as_ref().unwrap_or(&batch))?;
        }
    }
    file.publish(to, folder, name)?;
    Ok(left_out)
}

fn new_stacks(columns: &Columns<'_>, known: &mut HashSet<i64>) -> Result<BooleanArray> {
    let ids = columns.ints(stacks::STACK_ID)?;
    let is_new: Vec<bool> = (0..columns.rows()).map(|row| Ok(known.insert(ids.get(row)?))).collect::<Result<_>>()?;
    Ok(BooleanArray::from(is_new))
}

/// Copies the row's file, if it is whole.
fn copy_row(files: &RunFiles, to: &LocalDirectory, redaction: &Redaction) -> Result<()> {
    run_row::read(&files.row)?;
    let bytes = redacting::file(Runs::NAME, &files.row, MAX_ROW_BYTES, redaction)?;
    Ok(to.publish(&files.place.folder(Runs::NAME), &files.place.name, &bytes)?)
}
