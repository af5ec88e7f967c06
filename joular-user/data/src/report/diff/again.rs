//! Attributes sides of a comparison again that were divided differently, so that both are alike.
//!
//! A comparison of sides that are alike pays nothing for it: both have been read before this looks at
//! them. A side whose policy is the common one already is not attributed again.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use thiserror::Error;

use super::{
    Side,
    common_policy::CommonPolicy,
    comparability::{Differences, division},
    warnings,
};
use crate::{
    dataset::{
        DataSetError, reattribute,
        store::{self, Scratch, Store},
    },
    report::profile::Filter,
};

/// Both sides, as far as possible alike.
pub struct Sides {
    pub a: Side,
    pub b: Side,
    /// What was done, for people.
    pub notices: Vec<String>,
    /// Why sides that were divided differently stay so.
    pub obstacle: Option<Obstacle>,
}

impl Sides {
    pub const fn as_they_are(a: Side, b: Side) -> Self {
        Self { a, b, notices: Vec::new(), obstacle: None }
    }
}

/// Why sides are not attributed alike.
#[derive(Debug, Error)]
pub enum Obstacle {
    #[error("--as-attributed compares them as they are")]
    Unwanted,
    #[error("something else was measured, so they would be as little comparable")]
    Measured,
    #[error("idle power is a machine's own, and they were not recorded on the same machines")]
    Machines,
    #[error("a baseline keeps sums and cannot be attributed again: record or reattribute B as the baseline was")]
    Baseline,
    #[error(transparent)]
    Data(#[from] DataSetError),
}

/// Attributes the runs that `filter` allows in a temporary file in `folder`; `read` reads a side from there.
pub fn alike(
    a: Side,
    b: Side,
    filter: &Filter,
    folder: Option<&Path>,
    read: impl Fn(&Arc<dyn Store>, &Path) -> Result<Side, DataSetError>,
) -> Sides {
    let differences = warnings::differences(&a, &b);
    if differences.divided.is_empty() {
        return Sides::as_they_are(a, b);
    }
    match again([&a, &b], &differences, filter, folder, read) {
        Err(obstacle) => Sides { obstacle: Some(obstacle), ..Sides::as_they_are(a, b) },
        Ok([again_a, again_b]) => {
            let names = match (&again_a, &again_b) {
                (Some(_), None) => "A was",
                (None, Some(_)) => "B was",
                _ => "both were",
            };
            let (a, b) = (again_a.unwrap_or(a), again_b.unwrap_or(b));
            let mut notices = differences.divided;
            notices.push(format!(
                "for this comparison both have {}: {names} attributed again in a temporary file, and the data sets are \
                 unchanged; --as-attributed compares them as they are",
                division([&a.runs, &b.runs])
            ));
            Sides { a, b, notices, obstacle: None }
        }
    }
}

/// The sides that do not have the common policy, attributed by it.
fn again(
    sides: [&Side; 2],
    differences: &Differences,
    filter: &Filter,
    folder: Option<&Path>,
    read: impl Fn(&Arc<dyn Store>, &Path) -> Result<Side, DataSetError>,
) -> Result<[Option<Side>; 2], Obstacle> {
    let folder = folder.ok_or(Obstacle::Unwanted)?;
    if differences.is_other_measured {
        return Err(Obstacle::Measured);
    }
    let [a, b] = sides;
    let common = CommonPolicy::of(&a.runs, &b.runs).ok_or(Obstacle::Machines)?;
    let again = |side: &Side| {
        if side.runs.iter().all(|run| common.for_run(&run.info) == run.info.policy) {
            return Ok(None);
        }
        if side.is_baseline {
            return Err(Obstacle::Baseline);
        }
        let scratch: Arc<dyn Store> = Arc::new(Scratch::within(folder).map_err(DataSetError::from)?);
        // Runs that were not selected are in the data set too.
        let selected: BTreeSet<_> = side.runs.iter().map(|run| (run.info.machine(), &run.info.run_id)).collect();
        let runs =
            filter.unreadable.with_rows(&store::open(&side.data)?, &filter.part(), |run| filter.may_allow(run))?;
        reattribute::of_runs(runs, &*scratch, |run| {
            Ok::<_, DataSetError>(selected.contains(&(run.machine(), &run.run_id)).then(|| common.for_run(run)))
        })?;
        Ok(Some(read(&scratch, &side.data)?))
    };
    Ok([again(a)?, again(b)?])
}
