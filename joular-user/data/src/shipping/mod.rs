//! Brings the runs of a data set to another store, such as a bucket, once they have ended.
//!
//! A run is rolled up into a file without a name, and published as one file that has all its tables
//! ([`crate::dataset::bundle`]), or as files of one table each. Their names follow
//! from the run, and a file that is there already is left alone. So it does no harm to do any of it again: after
//! a failure, after a restart, or beside another shipper. What has arrived is noted in the data set's own
//! directory ([`ledger`]), so that it is not rolled up again.
//!
//! The data set is the spool. While the other store is away, runs stay where they are, as long as the data set
//! keeps them.

#[cfg(test)]
mod bundle_tests;
mod ledger;
mod pace;
mod passed;
mod sending;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    io,
    mem::{self, Discriminant},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use thiserror::Error;

use self::{
    ledger::Ledger,
    pace::Pace,
    sending::{Sent, Target},
};
pub use self::{ledger::Spool, passed::Passed, sending::Layout};
use crate::{
    dataset::{
        error::DataSetError,
        layout::RunName,
        read::{
            files::{self, RunFiles},
            run_row::{self, RunRow},
        },
        store::{ClaimKind, Scratch, SharedPlace, Store, StoredFile},
    },
    model::units::UnixMicros,
    output::OutputError,
    redact::Redaction,
    rollup,
};

/// Room for a rollup that a service holds, so that it can ship when the disk is full: many times that of a quarter of an
/// hour of ten JVMs. Of a small disk it is a part of what is free.
const RESERVED: u64 = 16 << 20;
const RESERVED_PART: u64 = 16;

/// What [`Options::looks_first`] does not promise, for people.
pub const LOOKS_FIRST: &str = "the store is asked for each file before it is written: if two ship a run at the same moment, \
                               both write it, and the later one stays";

/// What is shipped, and how fast.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of the windows that arrive; `None`: as recorded.
    pub window_ns: Option<u64>,
    /// What is made of a run that is rolled up.
    pub layout: Layout,
    /// Whether a bucket is asked whether it has a file, and then told to write it: for those that cannot do both at once. If
    /// two do that at the same moment, both write the file, and the later one stays.
    pub looks_first: bool,
    /// What is shown there of command lines.
    pub redaction: Redaction,
    /// Bytes per second, on average.
    pub most_bytes_per_s: Option<u64>,
    /// Where the file of a run that is under way lies. It has no name there, and is not larger than the run.
    pub scratch: PathBuf,
}

/// Why a pass did not ship all that there is.
#[derive(Debug, Error)]
pub enum ShipError {
    /// The data set cannot be read as a whole.
    #[error(transparent)]
    DataSet(DataSetError),
    /// The other store does not take files, or there is no room for those that are to go there.
    #[error(transparent)]
    Target(#[from] OutputError),
}

impl From<DataSetError> for ShipError {
    fn from(error: DataSetError) -> Self {
        match error {
            DataSetError::Output(error) => Self::Target(error),
            error => Self::DataSet(error),
        }
    }
}

/// What kind of failure it is, whatever it says of paths and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    store: Discriminant<ShipError>,
    output: Option<Discriminant<OutputError>>,
    io: Option<io::ErrorKind>,
}

impl ShipError {
    /// Two failures of one cause need one message.
    pub fn cause(&self) -> Cause {
        let output = match self {
            Self::DataSet(_) => None,
            Self::Target(error) => Some(mem::discriminant(error)),
        };
        let io = self.source().and_then(|source| source.downcast_ref()).map(io::Error::kind);
        Cause { store: mem::discriminant(self), output, io }
    }
}

/// Ships the runs of one data set to one store.
pub struct Shipper {
    from: Arc<dyn Store>,
    to: SharedPlace,
    options: Options,
    ledger: Ledger,
    /// Made when it is needed, and kept.
    scratch: Option<Arc<Scratch>>,
    /// Runs that were there at the start and that nobody writes to any more, whether or not they have an end.
    ended: BTreeSet<RunName>,
    /// Runs that have ended and have not arrived, at the last look, with their start if it can be read.
    waiting: BTreeMap<RunName, Option<UnixMicros>>,
    /// Runs that were counted as missed and whose files are still there.
    missed: BTreeSet<RunName>,
    told: BTreeSet<RunName>,
    told_of_ledger: bool,
}

impl Shipper {
    /// Ships what is there and what ends from now on. Whoever calls this is the only one who writes to the data set,
    /// and begins no run before.
    ///
    /// # Errors
    /// If the data set cannot be read.
    pub fn before_recording(from: Arc<dyn Store>, to: SharedPlace, options: Options) -> Result<Self, DataSetError> {
        let ended = files::rows(&from)?.into_keys().collect();
        let free = from.room().map_or(u64::MAX, |room| room.free_bytes);
        // Without room it is made when there is some.
        let scratch = Scratch::reserving(&options.scratch, RESERVED.min(free / RESERVED_PART)).ok().map(Arc::new);
        Ok(Self { scratch, ..Self::new(from, to, options, ended)? })
    }

    /// Ships what is there. Of a data set that a recording writes to, these are the runs that have an end.
    ///
    /// # Errors
    /// If the data set cannot be read, or there is no run in it.
    pub fn of_recorded(from: Arc<dyn Store>, to: SharedPlace, options: Options) -> Result<Self, ShipError> {
        let runs = files::find(&from)?;
        let ended = match from.claim(ClaimKind::Read) {
            Ok(_nobody_writes) => runs.iter().map(|run| run.place.run()).collect(),
            Err(OutputError::InUse { .. }) => BTreeSet::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self::new(from, to, options, ended)?)
    }

    fn new(
        from: Arc<dyn Store>,
        to: SharedPlace,
        options: Options,
        ended: BTreeSet<RunName>,
    ) -> Result<Self, DataSetError> {
        let target = format!("{} {}", to.path().display(), options.window_ns.unwrap_or(0));
        let ledger = Ledger::read(&from, target)?;
        Ok(Self {
            from,
            to,
            options,
            ledger,
            scratch: None,
            ended,
            waiting: BTreeMap::new(),
            missed: BTreeSet::new(),
            told: BTreeSet::new(),
            told_of_ledger: false,
        })
    }

    /// For whoever removes runs of the data set.
    pub fn spool(&self) -> Spool {
        self.ledger.spool.clone()
    }

    /// Ships every run that has ended, the oldest first. `wait` is called to keep the pace, and says whether to
    /// stop.
    ///
    /// # Errors
    /// If the data set cannot be read, or the other store takes nothing. What was shipped before counts, and the
    /// next pass goes on there.
    pub fn pass(&mut self, wait: &mut dyn FnMut(Duration) -> bool) -> (Passed, Result<(), ShipError>) {
        let mut passed = Passed::default();
        let result = self.ship(&mut passed, wait);
        passed.waiting_runs = self.waiting.len() as u64;
        passed.unreadable_runs = self.waiting.keys().filter(|name| self.told.contains(*name)).count() as u64;
        passed.oldest_waiting = self.waiting.values().copied().flatten().min();
        (passed, result)
    }

    fn ship(&mut self, passed: &mut Passed, wait: &mut dyn FnMut(Duration) -> bool) -> Result<(), ShipError> {
        let runs = files::rows(&self.from)?;
        let waited = mem::take(&mut self.waiting);
        self.count_missed(&runs, &waited, passed);
        self.ledger.retain(|name| runs.contains_key(name));
        self.ended.retain(|name| runs.contains_key(name));
        self.told.retain(|name| runs.contains_key(name));
        let mut due = Vec::new();
        for (name, file) in &runs {
            if self.ledger.spool.has_arrived(name) || self.missed.contains(name) {
                continue;
            }
            match run_row::read(file) {
                Ok(row) if row.end.is_some() || self.ended.contains(name) => {
                    self.waiting.insert(name.clone(), Some(row.info.started));
                    due.push((name, row));
                }
                // Under way.
                Ok(_) => {}
                // It was removed since the rows were listed.
                Err(error) if error.is_gone() => {
                    if waited.contains_key(name) {
                        self.miss(name, passed);
                    }
                }
                Err(error) => self.tell(name, &error, passed),
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        due.sort_by_key(|(_, row)| row.info.started);
        // Not before: a run that has ended has all its files now.
        let mut whole = found(&self.from)?;
        let options = self.options.clone();
        let to = Target::open(&self.to, &options)?;
        let mut sending = to.sending(&options, Pace::new(options.most_bytes_per_s), wait);
        passed.has_reached = true;
        for (name, row) in due {
            let Some(files) = whole.remove(name) else { continue };
            let sent = self.made(row, &files).and_then(|made| sending.send(&made, passed));
            match sent {
                Ok(Sent { is_whole: true, is_stopped }) => {
                    self.waiting.remove(name);
                    passed.runs += 1;
                    // Without a note it is looked at again after a restart, which costs time only.
                    if let Err(error) = self.ledger.add(&self.from, name.clone())
                        && !std::mem::replace(&mut self.told_of_ledger, true)
                    {
                        passed.problems.push(format!("noting what has arrived: {error}"));
                    }
                    if is_stopped {
                        break;
                    }
                }
                Ok(Sent { is_whole: false, .. }) => break,
                // The next pass counts it.
                Err(ShipError::DataSet(_)) if self.ledger.spool.is_removed(name) => {}
                Err(ShipError::DataSet(error)) => self.tell(name, &error, passed),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Counts the runs that went before they arrived: those that a ring has announced, also if no pass has seen them, and
    /// those that waited and are no longer listed in `runs`, whoever removed them. `runs` was listed before this is called: a
    /// run that it lacks was announced by then.
    fn count_missed(
        &mut self,
        runs: &BTreeMap<RunName, StoredFile>,
        waited: &BTreeMap<RunName, Option<UnixMicros>>,
        passed: &mut Passed,
    ) {
        let gone = waited.keys().filter(|name| !runs.contains_key(*name));
        for name in self.ledger.spool.take_removed().iter().chain(gone) {
            self.miss(name, passed);
        }
        self.missed.retain(|name| runs.contains_key(name));
    }

    fn miss(&mut self, name: &RunName, passed: &mut Passed) {
        passed.missed_runs += u64::from(self.missed.insert(name.clone()));
    }

    /// A run that cannot be read must not keep the others from being shipped.
    fn tell(&mut self, name: &RunName, error: &DataSetError, passed: &mut Passed) {
        self.waiting.entry(name.clone()).or_insert(None);
        if self.told.insert(name.clone()) {
            passed.problems.push(error.to_string());
        }
    }

    /// The files that are to be sent of a run.
    fn made(&mut self, row: RunRow, files: &RunFiles) -> Result<sending::Made, ShipError> {
        let Some(window_ns) = self.options.window_ns else { return Ok(sending::recorded(files)?) };
        let scratch: Arc<dyn Store> = self.scratch(files)?;
        rollup::of_run(row, files, scratch.as_ref(), window_ns, &self.options.redaction)?;
        Ok(sending::rolled_up(&scratch, &self.options)?)
    }

    /// Room for what is made of a run's files.
    fn scratch(&mut self, files: &RunFiles) -> Result<Arc<Scratch>, DataSetError> {
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Arc::new(Scratch::within(&self.options.scratch)?),
        };
        let bytes = files.all().map(StoredFile::size_bytes).sum::<Result<u64, _>>()?;
        scratch.begin_again(bytes.max(RESERVED))?;
        Ok(Arc::clone(self.scratch.insert(scratch)))
    }
}

/// All runs of a data set by name; none if there is none yet.
fn found(store: &Arc<dyn Store>) -> Result<BTreeMap<RunName, RunFiles>, DataSetError> {
    match files::find(store) {
        Ok(runs) => Ok(runs.into_iter().map(|run| (run.place.run(), run)).collect()),
        Err(DataSetError::NoRun { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}
