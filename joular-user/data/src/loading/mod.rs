//! Brings bundles of a place to a database, each run exactly once, and compares what the two have.
//!
//! Bundles go in batches ([`batch`]), each with one `INSERT`. A batch that has arrived is noted in the database itself, in
//! its table `loads`: a database that is made anew is filled anew. A batch without a note may have arrived in part, and is
//! sent again as it was; the database remembers the blocks of the last batches by their token, and leaves out what it has.
//! Of an older batch it is asked what there is of its runs ([`check`]), before anything is sent.

mod batch;
mod check;
mod listing;
mod loaded;
mod warehouse;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use thiserror::Error;

use self::{batch::Batch, listing::GroupHour, warehouse::Database};
pub use self::{
    check::{Checked, check},
    loaded::Loaded,
    warehouse::{Warehouse, WarehouseError},
};
use crate::{
    dataset::{
        clickhouse::{Bundle, Gathered, RunFigures},
        error::DataSetError,
        store::{Store, StoredFile},
    },
    model::units::UnixMicros,
    output::OutputError,
};

/// No bundle is larger: one of an hour of a loaded host has 7 MiB.
const MAX_BUNDLE_BYTES: u64 = 256 << 20;

/// Batches after which a database may have forgotten an earlier one. Its tables remember 10 000 blocks, and a batch is at
/// most four of them: of two days, perhaps in two parts.
const REMEMBERED_BATCHES: u64 = 2_500;

/// Why not all could be loaded, or compared.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error(transparent)]
    DataSet(#[from] DataSetError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    #[error("writing the list of bundles {name}: {cause}")]
    Claim { name: String, cause: serde_json::Error },
}

/// Loads the bundles of a place.
pub struct Loader<'a> {
    store: Arc<dyn Store>,
    database: Database<'a>,
    /// Bundles that could not be read: they are told once.
    told: HashSet<String>,
    /// Which bundles of a group's hour have arrived, of those that this knows: [`listing::names_sum`].
    arrived: BTreeMap<GroupHour, u64>,
}

impl<'a> Loader<'a> {
    /// `database` is a name as [`crate::dataset::clickhouse::is_name`] has it.
    pub fn new(store: Arc<dyn Store>, warehouse: &'a dyn Warehouse, database: &'a str) -> Self {
        let database = Database { warehouse, name: database };
        Self { store, database, told: HashSet::new(), arrived: BTreeMap::new() }
    }

    /// Loads the bundles that have not arrived, the oldest hour first, of hours that end after `since`.
    ///
    /// # Errors
    /// If the place or the database cannot be used. What has arrived before counts, and the next pass goes on there.
    pub fn pass(&mut self, since: Option<UnixMicros>) -> (Loaded, Result<(), LoadError>) {
        let mut loaded = Loaded::default();
        let result = self.load(since, &mut loaded);
        (loaded, result)
    }

    fn load(&mut self, since: Option<UnixMicros>, loaded: &mut Loaded) -> Result<(), LoadError> {
        self.database.check_schema()?;
        let groups = listing::groups(&self.store, since)?;
        self.arrived.retain(|group, _| group.ends_after(since));
        let mut of_hour: (Option<UnixMicros>, HashMap<String, u64>) = (None, HashMap::new());
        for (group, bundles) in groups {
            let wanted = listing::names_sum(bundles.iter().map(|bundle| &bundle.name));
            if self.arrived.get(&group) == Some(&wanted) {
                continue;
            }
            if of_hour.0 != Some(group.hour) {
                of_hour = (Some(group.hour), self.database.loaded(&group)?);
            }
            let of_group = |batch: &&String| batch.rsplit_once('/').is_some_and(|(name, _)| name == group.name);
            let names = of_hour.1.keys().filter(of_group).filter_map(|batch| of_hour.1.get(batch));
            let arrived = names.fold(0_u64, |sum, names| sum.wrapping_add(*names));
            // Without a look at the claims, which are files. By names: one may have expired, and another one come.
            if arrived != wanted {
                for batch in batch::batches(&self.store, &group, &bundles, now())? {
                    if !of_hour.1.contains_key(&batch.name) {
                        self.load_batch(&group, &batch, loaded)?;
                    }
                }
            }
            self.arrived.insert(group, wanted);
        }
        Ok(())
    }

    fn load_batch(&mut self, group: &GroupHour, batch: &Batch, loaded: &mut Loaded) -> Result<(), LoadError> {
        let mut gathered = Gathered::begin()?;
        let (mut runs, mut names) = (Vec::new(), Vec::new());
        for name in &batch.bundles {
            match bundle(&self.store, group, name) {
                Ok(bundle) => {
                    gathered.add(&bundle)?;
                    runs.push(bundle.figures);
                    names.push(name);
                }
                Err(error) if error.file().is_some() => {
                    if self.told.insert(format!("{}/{name}", group.name)) {
                        loaded.problems.push(error.to_string());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        let file = gathered.finish()?;
        let is_new = match self.is_forgotten(batch)? {
            true => match self.arrived_part(&runs)? {
                Part::All => false,
                Part::None => true,
                Part::Some(run) => {
                    loaded.problems.push(format!(
                        "batch {} arrived in part, as of run {run}, and too long ago to be sent again: load all anew, as \
                         docs/fleet/clickhouse.md says",
                        batch.name
                    ));
                    return Ok(());
                }
            },
            false => true,
        };
        if is_new {
            loaded.bytes += file.len() as u64;
            self.database.insert(batch, file)?;
            loaded.batches += 1;
            loaded.runs += runs.len() as u64;
        }
        self.database.note(group, batch, &runs, listing::names_sum(names))?;
        Ok(())
    }

    /// Whether the database may not know any more what it has of a batch.
    fn is_forgotten(&self, batch: &Batch) -> Result<bool, LoadError> {
        Ok(self.database.loaded_since(batch)? > REMEMBERED_BATCHES)
    }

    fn arrived_part(&self, runs: &[RunFigures]) -> Result<Part, LoadError> {
        let found = self.database.figures(runs)?;
        if found.is_empty() {
            return Ok(Part::None);
        }
        let differing = runs.iter().find(|run| check::difference(run, found.get(&run.run_id)).is_some());
        Ok(differing.map_or(Part::All, |run| Part::Some(run.run_id.clone())))
    }
}

/// What a database has of a batch.
enum Part {
    All,
    None,
    /// With a run that differs.
    Some(String),
}

fn bundle(store: &Arc<dyn Store>, group: &GroupHour, name: &str) -> Result<Bundle, DataSetError> {
    let stored = StoredFile::new(store, group.path_of(name));
    let bytes = stored.read_whole(MAX_BUNDLE_BYTES)?;
    Bundle::read(&stored.path(), bytes.into())
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
