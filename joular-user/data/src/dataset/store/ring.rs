//! Bounds a data set that is written for ever: the oldest runs go when there is too much.
//!
//! Runs go whole, because later files of a run refer to stacks and processes of earlier ones. So the run
//! that is being written stays, and a recorder that wants a bound begins a new run from time to time
//! ([`crate::dataset::write::Rotated`]). When the disk is full, or has less free space than `keep_free` asks
//! for, the oldest run that is not spared is removed before a file is written.
//!
//! A run's age is counted in time that was recorded after it, not by the wall clock: a clock that is set
//! wrong removes nothing.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Claim, ClaimKind, KeepFree, Object, Published, Room, Store, StoredFile};
use crate::{
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        layout::{FilePlace, RunName},
        read::{files::MAX_FILES, footer::Footer, run_row},
        tables::{Runs, TABLES, Windows},
    },
    model::units::UnixMicros,
    output::OutputError,
    text::seconds,
};

/// How much a data set may hold, beside the run that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Recorded time, nanoseconds.
    pub time_ns: Option<u64>,
    pub bytes: Option<u64>,
    /// What stays free on the file system; without it, a run goes only when nothing is.
    pub keep_free: Option<KeepFree>,
}

/// What says that a run was removed because the disk is full.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Whether a run stays although there is no room.
type IsSpared = Box<dyn Fn(&RunName) -> bool + Send + Sync>;

/// What is told of a run before it is removed, and whether it has any window.
type Removing = Box<dyn Fn(&RunName, bool) + Send + Sync>;

/// A store whose oldest runs go.
pub struct Ring {
    store: Arc<dyn Store>,
    limits: Limits,
    tell: Tell,
    is_spared: IsSpared,
    removing: Removing,
    /// What is known of runs that have ended: they are measured once.
    measured: Mutex<BTreeMap<RunName, Kept>>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("store", &self.store).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A run that may be removed.
#[derive(Clone, Debug, Default)]
struct Kept {
    started: UnixMicros,
    time_ns: u64,
    bytes: u64,
    has_windows: bool,
    /// In the order of removal: `windows`, which says which rows are whole, is the first, the run's row the
    /// last.
    files: Vec<PathBuf>,
}

impl Ring {
    /// `tell` is called with a line for people when a run goes because the disk is full.
    pub fn new(store: Arc<dyn Store>, limits: Limits, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (tell, is_spared, removing) = (Box::new(tell), Box::new(|_: &_| false), Box::new(|_: &_, _| ()));
        Self { store, limits, tell, is_spared, removing, measured: Mutex::default() }
    }

    /// Without room, other runs than these go. Beyond the limits of time and bytes they go like all others.
    #[must_use]
    pub fn sparing(self, is_spared: impl Fn(&RunName) -> bool + Send + Sync + 'static) -> Self {
        Self { is_spared: Box::new(is_spared), ..self }
    }

    /// `removing` is called with every run before it goes, for whatever reason, and with whether it has any window.
    #[must_use]
    pub fn announcing(self, removing: impl Fn(&RunName, bool) + Send + Sync + 'static) -> Self {
        Self { removing: Box::new(removing), ..self }
    }

    /// Removes the oldest runs until the rest is within the limits.
    fn enforce(&self, current: &RunName) -> Result<()> {
        let runs = self.runs(current)?;
        let (mut time_ns, mut bytes, mut is_over) = (0_u64, 0_u64, false);
        for (name, run) in runs.iter().rev() {
            (time_ns, bytes) = (time_ns.saturating_add(run.time_ns), bytes.saturating_add(run.bytes));
            let is_beyond = |sum: u64, most: Option<u64>| most.is_some_and(|most| sum > most);
            // A run that is older than one that has to go, goes too: nobody expects holes.
            is_over |= is_beyond(time_ns, self.limits.time_ns) || is_beyond(bytes, self.limits.bytes);
            // Without windows it is what was left when a removal was interrupted, or nothing at all.
            if is_over || !run.has_windows {
                self.remove_run(name, run)?;
            }
        }
        Ok(())
    }

    /// Removes runs until what is to be published has room, and what is beyond the limits then.
    fn with_room<T>(
        &self,
        folder: &Path,
        name: &str,
        bytes: &[u8],
        publish: impl Fn() -> Result<T, OutputError>,
    ) -> Result<T, OutputError> {
        let current = of_file(folder, name);
        let failed = |error| as_output(error, self.path());
        let published = loop {
            let published = if self.leaves_enough(bytes.len() as u64) {
                publish()
            } else {
                Err(OutputError::KeptFree { path: self.path().join(folder).join(name) })
            };
            match published {
                Err(error @ (OutputError::DiskFull { .. } | OutputError::KeptFree { .. })) => {
                    let why = match error {
                        OutputError::KeptFree { .. } => "less than --keep-free would stay free",
                        _ => "no space left on the device",
                    };
                    if !self.make_room(&current, why).map_err(failed)? {
                        return Err(error);
                    }
                }
                published => break published?,
            }
        };
        // A run begins or ends: the time to look.
        if folder.starts_with(Runs::NAME) {
            self.enforce(&current).map_err(failed)?;
        }
        Ok(published)
    }

    /// Whether others have what they are to have, with a file of so many bytes.
    fn leaves_enough(&self, bytes: u64) -> bool {
        let kept = self.limits.keep_free.zip(self.store.room());
        kept.is_none_or(|(keep_free, room)| keep_free.allows(room, bytes))
    }

    /// Removes the oldest run that may go. Returns whether there was any.
    fn make_room(&self, current: &RunName, why: &str) -> Result<bool> {
        let runs = self.runs(current)?;
        let Some((name, oldest)) = runs.iter().find(|(name, _)| !(self.is_spared)(name)) else { return Ok(false) };
        self.remove_run(name, oldest)?;
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let mib = oldest.bytes as f64 / f64::from(1 << 20);
        let time_s = seconds(oldest.time_ns);
        (self.tell)(&format!(
            "{}: {why}: removed the oldest run, {time_s:.0} s in {mib:.1} MiB",
            self.store.path().display()
        ));
        Ok(true)
    }

    fn remove_run(&self, name: &RunName, run: &Kept) -> Result<()> {
        (self.removing)(name, run.has_windows);
        run.files.iter().try_for_each(|file| Ok(self.store.remove(file)?))
    }

    /// All runs but the current one, the oldest first.
    fn runs(&self, current: &RunName) -> Result<Vec<(RunName, Kept)>> {
        let mut files: BTreeMap<RunName, Vec<PathBuf>> = BTreeMap::new();
        for table in TABLES.iter().rev().chain([&Runs::NAME]) {
            for file in self.store.list(table, MAX_FILES)? {
                if let Some(name) = FilePlace::of(&file).map(|place| place.run()).filter(|name| name != current) {
                    files.entry(name).or_default().push(file);
                }
            }
        }
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.retain(|name, _| files.contains_key(name));
        for (name, files) in files {
            if let Entry::Vacant(entry) = measured.entry(name) {
                entry.insert(self.measure(files)?);
            }
        }
        let mut runs: Vec<_> = measured.iter().map(|(name, run)| (name.clone(), run.clone())).collect();
        runs.sort_by_key(|(_, run)| run.started);
        Ok(runs)
    }

    /// Measures a run that is not written to any more. A file that cannot be read counts by its size alone.
    fn measure(&self, files: Vec<PathBuf>) -> Result<Kept> {
        let mut run = Kept::default();
        let stored = |file: &PathBuf| StoredFile::new(&self.store, file);
        for file in &files {
            run.bytes = run.bytes.saturating_add(stored(file).size_bytes()?);
        }
        let of_table = |table: &str| files.iter().filter(move |file| file.starts_with(table)).collect::<Vec<_>>();
        let mut windows = of_table(Windows::NAME);
        run.has_windows = !windows.is_empty();
        // The first and the last one tell how long the run is.
        windows.sort_by_key(|file| FilePlace::of(file).map(|place| (place.name.len(), place.name)));
        let ends = [windows.first(), windows.last()].into_iter().flatten();
        let spans = ends.filter_map(|file| Footer::read(&stored(file)).ok()?.windows);
        let span = spans.reduce(|all, next| (all.0.min(next.0), all.1.max(next.1)));
        let starts_ns = span.map_or(0, |(first, last)| last.abs_diff(first).saturating_mul(1000));
        // One that cannot be read is the oldest: it helps nobody.
        if let Some(Ok(row)) = of_table(Runs::NAME).first().map(|file| run_row::read(&stored(file))) {
            run.started = row.info.started;
            run.time_ns = starts_ns.saturating_add(row.info.interval_ns);
        }
        Ok(Kept { files, ..run })
    }
}

fn of_file(folder: &Path, name: &str) -> RunName {
    FilePlace::of(&folder.join(name)).map(|place| place.run()).unwrap_or_default()
}

/// What goes wrong while room is made is told as what went wrong with writing.
fn as_output(error: DataSetError, path: &Path) -> OutputError {
    match error {
        DataSetError::Output(error) => error,
        error => {
            let source = std::io::Error::other(error.to_string());
            OutputError::Io { action: "removing old runs of", path: path.into(), source }
        }
    }
}

impl Store for Ring {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>> {
        self.store.list(table, most)
    }

    fn open(&self, file: &Path) -> Result<Object> {
        self.store.open(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        self.with_room(folder, name, bytes, || self.store.publish(folder, name, bytes))
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        self.with_room(folder, name, bytes, || self.store.publish_new(folder, name, bytes))
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.store.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.store.find(folder, name)
    }

    fn room(&self) -> Option<Room> {
        self.store.room()
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.store.claim(kind)
    }
}
