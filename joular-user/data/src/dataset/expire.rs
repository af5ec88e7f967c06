//! Removes runs from a place that hosts ship to, once they are older than they are to be kept.
//!
//! A run goes whole, when nothing of it is of a date that is kept. Files that no row belongs to go alike: they are what an
//! interruption left. Nothing is written, so it may be interrupted and repeated, and two may run at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
};

use serde::Serialize;

use super::{
    column::Table as _,
    error::{DataSetError, Result},
    layout::date,
    read::{
        files::{self, Found, RunFiles},
        run_row,
    },
    store::{Hour, Part, SharedPlace, Store, StoredFile},
    tables::{Runs, TABLES},
};
use crate::{model::units::UnixMicros, text::count};

const DAY_US: i64 = 86_400_000_000;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Expired {
    /// The first date that is kept, in UTC.
    pub kept_since: String,
    pub runs: usize,
    pub files: usize,
    /// Runs that began earlier and go on after that date. They stay whole.
    pub runs_that_go_on: usize,
    /// Nothing was removed: this is what would be.
    pub is_trial: bool,
}

/// Removes what is older than `days` whole days, today in UTC not counted. A trial only looks.
///
/// # Errors
/// If the place does not prove itself, cannot be listed, or a file cannot be removed.
pub fn run(place: &SharedPlace, days: u32, now: UnixMicros, is_trial: bool) -> Result<Expired> {
    let store = place.open()?;
    let first_kept = UnixMicros(now.0.saturating_sub(i64::from(days).saturating_mul(DAY_US)));
    let mut done = Expired { kept_since: date(first_kept), is_trial, ..Expired::default() };
    // With the first date that is kept, so that runs which go on in it are known.
    let next = UnixMicros(first_kept.0.saturating_add(DAY_US));
    let part = Part { until: Some(done.kept_since.clone()), hours: (None, Some(Hour::of(next))), ..Part::default() };
    let Found { mut runs, without_row } = match files::find_all(&store, &part) {
        Err(DataSetError::NoRun { .. }) => return Ok(done),
        found => found?,
    };
    runs.retain(|run| run.place.date() < done.kept_since.as_str());
    let (old, mut going_on): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.dates().1 < done.kept_since.as_str());
    StoredFile::expect(old.iter().map(|run| &run.row));
    let mut ended = Vec::new();
    for run in old {
        let is_old = has_ended_before(&run, first_kept)?;
        if is_old { ended.push(run) } else { going_on.push(run) }
    }
    done.runs_that_go_on = going_on.len();
    ended.extend(without_row.into_iter().filter(|run| run.dates().1 < done.kept_since.as_str()));
    done.runs = ended.len();
    done.files = remove(&store, &ended, is_trial)?;
    Ok(done)
}

/// By its row. A recording that slept may have no window on the first date that is kept, and some later. A row that
/// cannot be read says nothing, so the files' dates decide; a bucket that is away may have one that says something.
fn has_ended_before(run: &RunFiles, first_kept: UnixMicros) -> Result<bool> {
    let end = match run_row::read(&run.row) {
        Ok(row) => row.end,
        Err(error) if error.file().is_some() => None,
        Err(error) => return Err(error),
    };
    Ok(end.is_none_or(|(end, _)| date(end.ended) < date(first_kept)))
}

/// Windows say which rows count, so they go first, and the rows of runs last: whoever reads meanwhile sees no part of a
/// window. Returns the number of files.
pub(crate) fn remove(store: &Arc<dyn Store>, runs: &[RunFiles], is_trial: bool) -> Result<usize> {
    let mut by_table: BTreeMap<&str, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in runs.iter().flat_map(RunFiles::all) {
        let within = file.within();
        let first = within.iter().next().and_then(|first| first.to_str()).unwrap_or_default();
        let table = TABLES.into_iter().find(|table| *table == first).unwrap_or(Runs::NAME);
        by_table.entry(table).or_default().insert(within.to_owned());
    }
    let files = by_table.values().map(BTreeSet::len).sum();
    if is_trial {
        return Ok(files);
    }
    for table in TABLES.iter().rev().chain([&Runs::NAME]) {
        if let Some(files) = by_table.remove(table) {
            store.remove_all(&files.into_iter().collect::<Vec<_>>())?;
        }
    }
    Ok(files)
}

impl Expired {
    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        let (runs, files) = (count(self.runs, "run"), count(self.files, "file"));
        let done = if self.is_trial { "would remove" } else { "removed" };
        write!(out, "{done} {runs} of before {}: {files}", self.kept_since)?;
        match self.runs_that_go_on {
            0 => writeln!(out),
            kept => writeln!(out, "; kept {} that ended later", count(kept, "run")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::dataset::{fixture, store::SHARE_MARK};

    /// A share with a run of the fixture, which ends on the day after that of its start.
    fn share() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fixture::write_as(root.path(), crate::model::policy::Policy::default(), "r-1");
        fs::write(root.path().join(SHARE_MARK), "").unwrap();
        root
    }

    fn date_of(root: &Path) -> UnixMicros {
        let store = crate::dataset::store::open(root).unwrap();
        let run = files::find(&store).unwrap().remove(0);
        run_row::read(&run.row).unwrap().info.started
    }

    fn expired(root: &Path, days: u32, now: i64, is_trial: bool) -> Expired {
        let place = SharedPlace::of(root, None).unwrap();
        run(&place, days, UnixMicros(now), is_trial).unwrap()
    }

    #[test]
    fn a_run_goes_whole_when_its_last_date_is_not_kept_and_not_a_day_earlier() {
        let root = share();
        let started = date_of(root.path()).0;
        let files = fixture::files(root.path()).len();
        assert_eq!(expired(root.path(), 3, started + 3 * DAY_US, false).runs, 0, "its date is the first that is kept");
        let going_on = expired(root.path(), 3, started + 4 * DAY_US, false);
        assert_eq!((going_on.runs, going_on.runs_that_go_on), (0, 1), "it ends on the first date that is kept");
        let trial = expired(root.path(), 3, started + 5 * DAY_US, true);
        assert_eq!((trial.runs, trial.files, trial.is_trial), (1, files, true));
        assert_eq!(fixture::files(root.path()).len(), files, "a trial only looks");
        let done = expired(root.path(), 3, started + 5 * DAY_US, false);
        assert_eq!((done.runs, done.files), (1, files));
        assert_eq!(fixture::files(root.path()).len(), 0);
        assert_eq!(expired(root.path(), 3, started + 5 * DAY_US, false).runs, 0);
    }

    #[test]
    fn what_an_interruption_left_goes_the_next_time() {
        let root = share();
        let started = date_of(root.path()).0;
        fs::remove_dir_all(root.path().join("runs")).unwrap();
        // Another run is there, of the same date.
        let kept = share();
        let row = fixture::files(kept.path()).into_iter().find(|(name, _)| name.starts_with("runs/")).unwrap().0;
        let other = row.replace("r-1", "r-2");
        fs::create_dir_all(root.path().join(&other).parent().unwrap()).unwrap();
        fs::copy(kept.path().join(&row), root.path().join(&other)).unwrap();
        assert_eq!(expired(root.path(), 1, started + 3 * DAY_US, false).runs, 2);
        assert_eq!(fixture::files(root.path()).len(), 0);
    }

    #[test]
    fn a_run_that_ends_on_a_kept_date_stays_although_its_files_are_older() {
        let root = share();
        let started = date_of(root.path()).0;
        let store = crate::dataset::store::open(root.path()).unwrap();
        let run = files::find(&store).unwrap().remove(0);
        assert!(has_ended_before(&run, UnixMicros(started + 2 * DAY_US)).unwrap());
        assert!(!has_ended_before(&run, UnixMicros(started + DAY_US)).unwrap());
        fs::write(run.row.path(), "no Parquet").unwrap();
        assert!(has_ended_before(&run, UnixMicros(started)).unwrap(), "then the files' dates decide");
    }

    #[test]
    fn nothing_is_removed_from_a_directory_that_is_no_share() {
        let root = share();
        fs::remove_file(root.path().join(SHARE_MARK)).unwrap();
        let place = SharedPlace::of(root.path(), None).unwrap();
        let message = run(&place, 1, UnixMicros(i64::MAX), false).unwrap_err().to_string();
        assert!(message.contains(SHARE_MARK), "{message}");
    }
}
