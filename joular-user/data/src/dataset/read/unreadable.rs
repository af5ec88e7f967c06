//! Says what becomes of runs that cannot be read: they are an error, or they are left out and named.
//!
//! A run is left out whole. If one of its files turns out to be damaged when others of it have been read already,
//! everything is read anew without the run ([`Unreadable::reading`]). So no sum has a part of it, and a sound data set costs
//! nothing more.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use super::{
    columns::TableFile,
    files::{self, Found, RunFiles},
    footer::Footer,
    run_row::{self, RunRow},
    side_by_side,
};
use crate::{
    dataset::{
        bundle::Earlier,
        column::Table as _,
        error::{DataSetError, OfDataSet, Result},
        layout::RunName,
        store::{Part, Store, StoredFile},
        tables::Marks,
    },
    model::units::UnixMicros,
    text::escape,
};

/// Runs that a line names.
const MAX_NAMED: usize = 3;

/// What becomes of runs that cannot be read. By default they are an error. Copies share what was left out, so all that a
/// command reads leaves out the same runs.
#[derive(Clone, Debug, Default)]
pub struct Unreadable(Option<Arc<Mutex<LeftOut>>>);

/// What is read of a run, by which it is known when it began.
pub(crate) trait Begun {
    fn began(&self) -> UnixMicros;
}

impl Begun for RunRow {
    fn began(&self) -> UnixMicros {
        self.info.started
    }
}

/// The runs that were left out, by data set and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRuns {
    pub skipped: Vec<Skipped>,
    /// All that were looked at, whether they can be read or not.
    pub looked_at: usize,
}

/// A run that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The file that cannot be read.
    pub path: String,
    pub why: String,
}

#[derive(Debug, Default)]
struct LeftOut {
    /// By data set.
    data_sets: BTreeMap<PathBuf, Runs>,
}

/// What is known of the runs of a data set.
#[derive(Debug, Default)]
struct Runs {
    skipped: BTreeMap<RunName, Skipped>,
    /// Those that were read at the last look.
    read: Vec<RunFiles>,
    /// Runs at the largest look, whether they can be read or not.
    looked_at: usize,
    /// How often a run turned out to be damaged late.
    surprises: usize,
}

impl Unreadable {
    /// They are left out.
    pub fn left_out() -> Self {
        Self(Some(Arc::default()))
    }

    /// The runs of these parts of a store that `is_wanted` has by their names, each with what `read` makes of its files.
    ///
    /// # Errors
    /// If there is no run, none of those that are wanted can be read, unless others have been read already (`has_others`), or
    /// the store cannot be listed.
    pub(crate) fn runs<T>(
        &self,
        store: &Arc<dyn Store>,
        (parts, has_others): (&[Part], bool),
        is_wanted: impl Fn(&RunFiles) -> bool,
        read: impl Fn(&RunFiles) -> Result<T> + Sync,
    ) -> Result<Vec<(T, RunFiles)>>
    where
        T: Begun + Send,
    {
        let mut found = files::find_parts(store, parts)?;
        if let (None, Some(run)) = (&self.0, found.without_row.first()) {
            return Err(run.no_row(store));
        }
        found.runs.retain(&is_wanted);
        found.without_row.retain(&is_wanted);
        // What is over before the first of them is over before all; `None` is less than any moment.
        let begin = parts.iter().map(|part| part.begin).min().flatten();
        let earlier = Earlier::taken_from(&mut found.runs, begin);
        let more = |kept: &[(T, RunFiles)]| {
            earlier.wanted(&kept.iter().map(|(read, files)| (files.place.run(), read.began())).collect())
        };
        self.kept(store, (found, has_others), more, read)
    }

    /// The same with the rows of the runs.
    ///
    /// # Errors
    /// As [`Self::runs`].
    pub(crate) fn with_rows(
        &self,
        store: &Arc<dyn Store>,
        part: &Part,
        is_wanted: impl Fn(&RunFiles) -> bool,
    ) -> Result<Vec<(RunRow, RunFiles)>> {
        if self.0.is_some() {
            return self.runs(store, (slice::from_ref(part), false), is_wanted, |files| run_row::read(&files.row));
        }
        let mut found = files::find_with_rows(store)?;
        found.retain(|(_, files)| is_wanted(files));
        Ok(found)
    }

    /// The same of rows alone: files of runs without one are not looked for, and it is no error if there is no run.
    ///
    /// # Errors
    /// As [`Self::runs`].
    pub(crate) fn rows<T: Send>(
        &self,
        store: &Arc<dyn Store>,
        is_wanted: impl Fn(&RunFiles) -> bool,
        read: impl Fn(&RunFiles) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let runs = files::rows_alone(store)?.into_iter().filter(is_wanted).collect();
        let found = Found { runs, without_row: Vec::new() };
        let kept = self.kept(store, (found, false), |_| Vec::new(), read)?;
        Ok(kept.into_iter().map(|(read, _)| read).collect())
    }

    /// `more` says which others are wanted, when those that were found are read.
    fn kept<T: Send>(
        &self,
        store: &Arc<dyn Store>,
        (Found { runs, without_row }, has_others): (Found, bool),
        more: impl FnOnce(&[(T, RunFiles)]) -> Vec<RunFiles>,
        read: impl Fn(&RunFiles) -> Result<T> + Sync,
    ) -> Result<Vec<(T, RunFiles)>> {
        let mut guard = self.lock();
        let left_out = guard.as_mut().map(|left_out| left_out.data_sets.entry(store.path().into()).or_default());
        let mut reading = Reading { left_out, kept: Vec::new(), failed: Vec::new() };
        reading.take(runs, &read)?;
        let more = more(&reading.kept);
        reading.take(more, &read)?;
        let Reading { left_out, mut kept, mut failed } = reading;
        kept.sort_by(|(_, a), (_, b)| a.place.cmp(&b.place));
        let Some(left_out) = left_out else { return Ok(kept) };
        for files in without_row.into_iter().filter(|files| !left_out.has_skipped(files)) {
            let error = files.no_row(store);
            failed.push((files, error));
        }
        if kept.is_empty() && !failed.is_empty() && !has_others {
            return Err(failed.swap_remove(0).1);
        }
        failed.iter().for_each(|(files, error)| left_out.skip(files, error));
        left_out.read = kept.iter().map(|(_, files)| files.clone()).collect();
        left_out.looked_at = left_out.looked_at.max(kept.len() + left_out.skipped.len());
        Ok(kept)
    }

    /// What `read` gives. If a run's files turn out to be damaged meanwhile, and others can be read, `read` is called again,
    /// and gets no file of that run.
    ///
    /// # Errors
    /// As `read`.
    pub fn reading<T, E: OfDataSet>(&self, mut read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        loop {
            let error = match read() {
                Ok(read) => return Ok(read),
                Err(error) => error,
            };
            if !error.data_set().is_some_and(|error| self.leaves_out(error)) {
                return Err(error);
            }
        }
    }

    /// Whether the error is that of a run that can be left out. From now on it is.
    fn leaves_out(&self, error: &DataSetError) -> bool {
        let (Some(mut left_out), Some(path)) = (self.lock(), error.file()) else { return false };
        left_out.data_sets.values_mut().any(|of_data_set| of_data_set.leave_out(path, error))
    }

    fn lock(&self) -> Option<MutexGuard<'_, LeftOut>> {
        self.0.as_ref().map(|left_out| left_out.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The runs that were left out so far.
    pub fn skipped(&self) -> SkippedRuns {
        let Some(left_out) = self.lock() else { return SkippedRuns::default() };
        let data_sets = || left_out.data_sets.values();
        SkippedRuns {
            skipped: data_sets().flat_map(|runs| runs.skipped.values()).cloned().collect(),
            looked_at: data_sets().map(|runs| runs.looked_at).sum(),
        }
    }
}

/// Runs that are read.
struct Reading<'a, T> {
    /// `None`: one that cannot be read is an error.
    left_out: Option<&'a mut Runs>,
    kept: Vec<(T, RunFiles)>,
    failed: Vec<(RunFiles, DataSetError)>,
}

impl<T: Send> Reading<'_, T> {
    fn take(&mut self, runs: Vec<RunFiles>, read: impl Fn(&RunFiles) -> Result<T> + Sync) -> Result<()> {
        StoredFile::expect(runs.iter().flat_map(|files| [&files.row].into_iter().chain(files.of(&[Marks::NAME]))));
        let is_skipped = |files: &RunFiles| self.left_out.as_ref().is_some_and(|left_out| left_out.has_skipped(files));
        let runs: Vec<RunFiles> = runs.into_iter().filter(|files| !is_skipped(files)).collect();
        let read = side_by_side::in_order(&runs, read);
        for (files, read) in runs.into_iter().zip(read) {
            match read {
                Ok(read) => self.kept.push((read, files)),
                Err(error) if self.left_out.is_some() && error.file().is_some() => self.failed.push((files, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl SkippedRuns {
    /// How many there are of how many: `2 of 60 runs`; `None` if there are none.
    pub fn count(&self) -> Option<String> {
        // Others were read, or there would be an error.
        (!self.skipped.is_empty()).then(|| format!("{} of {} runs", self.skipped.len(), self.looked_at))
    }

    /// A line that names them; `None` if there are none.
    pub fn line(&self) -> Option<String> {
        let (skipped, looked_at) = (self.skipped.len(), self.looked_at);
        let named = self.skipped.iter().take(MAX_NAMED).map(|run| escape(&format!("{}: {}", run.path, run.why)));
        let named = named.collect::<Vec<_>>().join("; ");
        let more = skipped.saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        match skipped {
            0 => None,
            1 => Some(format!("1 of {looked_at} runs was left out: {named}")),
            _ => Some(format!("{skipped} of {looked_at} runs were left out: {named}{more}")),
        }
    }
}

impl Runs {
    fn has_skipped(&self, files: &RunFiles) -> bool {
        self.skipped.contains_key(&files.place.run())
    }

    fn skip(&mut self, files: &RunFiles, error: &DataSetError) {
        let path = error.file().map_or_else(|| files.row.path(), Path::to_owned).display().to_string();
        let why = match error {
            DataSetError::NoRunRow { .. } => "the run has no row in table runs: copy the table's file too".to_owned(),
            error => {
                let text = error.to_string();
                text.strip_prefix(&format!("reading {path}: ")).unwrap_or(&text).to_owned()
            }
        };
        self.skipped.insert(files.place.run(), Skipped { path, why });
    }

    /// Leaves out the run that the file at this path is of, if others can be read; also those of others whose files are
    /// seen to be damaged, so that not each of them has all others read again.
    fn leave_out(&mut self, path: &Path, error: &DataSetError) -> bool {
        let (mut left, mut failed) = (Vec::new(), Vec::new());
        let is_whole = self.surprises > 0;
        let is_here = self.read.iter().any(|files| files.has(path));
        if !is_here {
            return false;
        }
        StoredFile::expect(self.read.iter().flat_map(|files| files.all()));
        for files in &self.read {
            if files.has(path) {
                continue;
            }
            match check(files, is_whole) {
                Err(error) if error.file().is_some() => failed.push((files.clone(), error)),
                Ok(()) | Err(_) => left.push(files.clone()),
            }
        }
        if left.is_empty() {
            return false;
        }
        let of_path: Vec<RunFiles> = self.read.iter().filter(|files| files.has(path)).cloned().collect();
        of_path.iter().for_each(|files| self.skip(files, error));
        failed.iter().for_each(|(files, error)| self.skip(files, error));
        self.surprises += 1;
        self.read = left;
        true
    }
}

/// Reads what files say of themselves, or all that is in them.
fn check(files: &RunFiles, is_whole: bool) -> Result<()> {
    for file in files.all() {
        if is_whole {
            TableFile::open(file)?.batches(|_| Ok(()))?;
        } else {
            Footer::read(file)?;
        }
    }
    Ok(())
}
