//! Reads the garbage collections of a selection's processes (`--alloc`), and the ages of what outlived them.

use std::collections::BTreeMap;

use super::{Filter, ProcessIndex, reader::DataSet};
use crate::{
    dataset::{
        error::Result,
        read::{columns::Columns, decode_ahead},
        tables::{Ages, Collections, collections, shared},
    },
    model::units::{MicroJoules, UnixMicros},
};

/// A collection, over all windows that it lasted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenCollection {
    pub cause: Option<String>,
    /// `None`: it was under way when the recording or the selection ended.
    pub duration_ns: Option<u64>,
    pub before_bytes: u64,
    /// `None`: as above.
    pub after_bytes: Option<u64>,
    pub energy: MicroJoules,
}

/// Start, process, and the collector's name.
pub type CollectionKey = (UnixMicros, ProcessIndex, String);

/// What was collected in the windows of a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub collections: BTreeMap<CollectionKey, SeenCollection>,
    /// Bytes by age, from age 1 on, after collections whose collector counts them.
    pub ages: BTreeMap<CollectionKey, Vec<u64>>,
}

impl Collected {
    /// Reads collections in the windows and of the processes that `filter` allows.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn read(data: &mut DataSet, filter: &Filter) -> Result<Self> {
        let mut collected = Self::default();
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            decode_ahead::batches(&data.files::<Collections>(run), &span, |columns| {
                collected.take_collections(data, run, filter, columns)
            })?;
            decode_ahead::batches(&data.files::<Ages>(run), &span, |columns| {
                collected.take_ages(data, run, filter, columns)
            })?;
        }
        Ok(collected)
    }

    fn take_collections(
        &mut self,
        data: &mut DataSet,
        run: usize,
        filter: &Filter,
        columns: &Columns<'_>,
    ) -> Result<()> {
        let causes = columns.texts(collections::CAUSE)?;
        let (durations, befores) = (columns.ints(collections::DURATION_NS)?, columns.ints(collections::BEFORE_BYTES)?);
        let (afters, energies) = (columns.ints(collections::AFTER_BYTES)?, columns.ints(collections::ENERGY_UJ)?);
        for (row, key) in keys(data, run, filter, columns)? {
            let seen = self.collections.entry(key).or_default();
            seen.cause = causes.maybe(row).map(ToOwned::to_owned);
            seen.duration_ns = durations.maybe_natural(row)?;
            seen.before_bytes = befores.natural(row)?;
            seen.after_bytes = afters.maybe_natural(row)?;
            seen.energy = seen.energy.saturating_add(MicroJoules(energies.natural(row)?));
        }
        Ok(())
    }

    fn take_ages(&mut self, data: &mut DataSet, run: usize, filter: &Filter, columns: &Columns<'_>) -> Result<()> {
        let (ages, bytes) = (columns.ints(collections::AGE)?, columns.ints(collections::OBJECT_BYTES)?);
        for (row, key) in keys(data, run, filter, columns)? {
            let (age, bytes): (usize, u64) = (ages.natural(row)?, bytes.natural(row)?);
            let by_age = self.ages.entry(key).or_default();
            let Some(place) = age.checked_sub(1).filter(|place| *place < joular_ebpf::abi::OBJECT_AGES) else {
                return Err(columns.damaged(format!("objects are {age} collections old")));
            };
            if by_age.len() <= place {
                by_age.resize(place + 1, 0);
            }
            by_age[place] = bytes;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }
}

/// The rows that count, and which collection each is about.
fn keys(data: &mut DataSet, run: usize, filter: &Filter, columns: &Columns<'_>) -> Result<Vec<(usize, CollectionKey)>> {
    let (windows, starts) = (columns.times(shared::WINDOW_START)?, columns.times(collections::STARTED)?);
    let (pids, process_starts) = (columns.ints(shared::PID)?, columns.times(shared::PROCESS_START)?);
    let (comms, collectors) = (columns.texts(shared::COMM)?, columns.texts(collections::COLLECTOR)?);
    let span = filter.span(&data.catalog.runs[run]);
    let mut keys = Vec::new();
    for row in 0..columns.rows() {
        let window = UnixMicros(windows.get(row)?);
        if !span.allows(window) || !data.is_whole(run, window) {
            continue;
        }
        let process = data.process_index(run, pids.natural(row)?, process_starts.get(row)?, comms.get(row)?);
        if filter.allows_process(&data.catalog, data.catalog.process(process)) {
            keys.push((row, (UnixMicros(starts.get(row)?), process, collectors.get(row)?.to_owned())));
        }
    }
    Ok(keys)
}
