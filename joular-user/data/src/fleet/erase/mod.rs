//! Erases from a place what hosts shipped of a service, a pod or a host, and what tiers have of a service, so that every sum
//! stays what it was ([`erase`]).
//!
//! What belongs to erased processes becomes that of one process of the run, which is called `[erased]` as a service, a thread
//! and a method ([`crate::dataset::erasing`] says what becomes of each table, [`rewrite`] does it). Runs of an erased host go whole. The
//! records of a place say what is erased ([`record`]): they are there before anything is changed, and whoever sums runs that
//! come later goes by them.
//!
//! What is written follows from what is there and from the records. So it may be interrupted and repeated. One at a time does it,
//! and looks for new records at its end: so it does what others have asked for meanwhile.

mod made;
mod pass;
mod record;
mod recorded;
mod rewrite;
mod rules;
mod say;
mod source;
#[cfg(test)]
mod tests;
mod tiers;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

pub use self::record::Subject;
use self::{pass::Pass, record::Record};
pub(super) use self::{rules::Rules, source::in_source};
use super::{
    claim::Claimed,
    tier::{Tier, within},
};
use crate::{
    dataset::{
        bundle::TierMark,
        erasing::ERASED,
        error::{DataSetError, Result},
        store::{SharedPlace, Store},
    },
    model::units::UnixMicros,
};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// `None`: what is recorded already, in what came since.
    pub subject: Option<Subject>,
    /// What began earlier is erased; `None`: before now.
    pub before: Option<UnixMicros>,
    /// Record it also if there is nothing of it yet.
    pub records_anyway: bool,
    /// Change nothing.
    pub is_trial: bool,
}

/// What was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Erased {
    /// The record that was made.
    pub record: Option<PathBuf>,
    /// Runs with erased processes, and those of erased hosts.
    pub runs: usize,
    /// Files that were written anew.
    pub files: usize,
    /// Files that were removed.
    pub removed: usize,
    /// Rows of erased processes, in runs. Sums stay in their place.
    pub rows: u64,
    /// Energy of what was erased in runs and in each tier, which is kept.
    pub energy_uj: u64,
    /// Files of tiers that are left, because somebody sums their hour or day.
    pub claimed: usize,
    /// Somebody else erases at the place.
    pub is_left_to_another: bool,
    /// Files that could not be read or changed, each with the reason.
    pub left_out: Vec<String>,
    /// Nothing was changed: this is what would be.
    pub is_trial: bool,
}

/// Lets one at a time erase: records that others make meanwhile are its own to apply.
const CLAIM: &str = "erase";

/// A place, and its tiers.
struct Stores {
    place: Arc<dyn Store>,
    tiers: Vec<(Tier, Arc<dyn Store>)>,
}

/// Erases what is asked for, and applies all records. Files are made in the folder `scratch` before they are sent.
///
/// # Errors
/// If the place does not prove itself, is a tier, or cannot be listed or written. What was done until then stays.
pub fn erase(place: &SharedPlace, order: &Order, scratch: &Path, now: UnixMicros) -> Result<Erased> {
    let root = place.open()?;
    if TierMark::read(&root)?.is_some() {
        let problem = "it is a tier: name the place that it is a folder of".to_owned();
        return Err(DataSetError::Damaged { path: root.path().to_owned(), problem });
    }
    let mut stores = Stores { place: Arc::clone(&root), tiers: Vec::new() };
    for tier in Tier::ALL {
        if TierMark::is_in(&root, tier.folder())? {
            stores.tiers.push((tier, within(place, &root, tier)?));
        }
    }
    stores.erase(order, scratch, now)
}

impl Stores {
    fn erase(&self, order: &Order, scratch: &Path, now: UnixMicros) -> Result<Erased> {
        let asked = |subject: &Subject| Record::new(subject.clone(), order.before.unwrap_or(now), now);
        let asked = order.subject.as_ref().map(asked);
        if order.subject == Some(Subject::Service(ERASED.to_owned())) {
            let problem = format!("{ERASED} is what is erased already: name another service");
            return Err(DataSetError::Damaged { path: self.place.path().to_owned(), problem });
        }
        let mut done = Erased { is_trial: order.is_trial, ..Erased::default() };
        let pass = Pass { stores: self, scratch, now, claim: None };
        let mut rules = Rules::read(&self.place)?;
        if let Some(asked) = asked.filter(|asked| !rules.0.iter().any(|known| known.covers(asked))) {
            let is_there = || Ok::<_, DataSetError>(pass.trial(&Rules(vec![asked.clone()]))?.has_any());
            if !(order.records_anyway || order.is_trial || is_there()?) {
                return Ok(done);
            }
            if !order.is_trial {
                done.record = Some(record::publish(&self.place, &asked)?);
            }
            rules.0.push(asked);
        }
        // Of hosts only their names are looked at.
        let of_hosts = matches!(order.subject, Some(Subject::Host(_)));
        let wanted = |rules: Rules| if of_hosts { rules.of_hosts() } else { rules };
        rules = wanted(rules);
        if order.is_trial || rules.0.is_empty() {
            pass.apply(&rules, &mut done)?;
            return Ok(done);
        }
        let Some(claim) = Claimed::of_work(&self.place, CLAIM, now)? else {
            done.is_left_to_another = true;
            return Ok(done);
        };
        let pass = Pass { claim: Some(&claim), ..pass };
        loop {
            pass.apply(&rules, &mut done)?;
            let later = wanted(Rules::read(&self.place)?);
            if later == rules {
                return Ok(done);
            }
            rules = later;
        }
    }
}
