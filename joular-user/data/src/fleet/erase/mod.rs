//! Erases from a place what hosts shipped of a service, a pod or a host, and what tiers have of a service, so that every sum
//! stays what it was ([`erase`]).
//!
//! What belongs to erased processes becomes that of one process of the run, which is called `[erased]` as a service, a thread
//! and a method ([`mod@fates`] says what becomes of each table, [`rewrite`] does it). Runs of an erased host go whole. The
//! records of a place say what is erased ([`record`]): they are there before anything is changed, and whoever sums runs that
//! come later goes by them.
//!
//! What is written follows from what is there and from the records. So it may be interrupted and repeated. Two at once each
//! apply all records, and look again at their end: whichever wrote last knew of both.

mod fates;
mod made;
mod record;
mod recorded;
mod rewrite;
mod rows;
mod rules;
mod say;
mod source;
#[cfg(test)]
mod tests;
mod tiers;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

pub use self::record::Subject;
use self::{record::Record, tiers::OfTier};
pub(super) use self::{rules::Rules, source::in_source};
use super::{
    names::ERASED,
    tier::{Tier, within},
};
use crate::{
    dataset::{
        bundle::TierMark,
        error::{DataSetError, Result},
        expire,
        layout::{RunName, date, path_part},
        read::{
            files::{self, Found, RunFiles},
            run_row,
        },
        store::{Hour, Part, SharedPlace, Store, StoredFile},
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
    /// Hours and days of tiers that somebody else was at.
    pub claimed: usize,
    /// Files that could not be read or changed, each with the reason.
    pub left_out: Vec<String>,
    /// Nothing was changed: this is what would be.
    pub is_trial: bool,
}

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
        let mut rules = Rules::read(&self.place)?;
        if let Some(asked) = asked.filter(|asked| !rules.0.iter().any(|known| known.covers(asked))) {
            let alone = Rules(vec![asked.clone()]);
            let is_there = || Ok::<_, DataSetError>(self.trial(&alone, scratch, now)?.has_any());
            if order.records_anyway || order.is_trial || is_there()? {
                if !order.is_trial {
                    done.record = Some(record::publish(&self.place, &asked)?);
                }
                rules.0.push(asked);
            } else {
                return Ok(done);
            }
        }
        loop {
            // Of hosts only their names are looked at.
            let of_hosts = matches!(order.subject, Some(Subject::Host(_)));
            rules.0.retain(|record| !of_hosts || matches!(record.subject, Subject::Host(_)));
            self.apply(&rules, scratch, now, &mut done)?;
            let mut later = Rules::read(&self.place)?;
            later.0.retain(|record| !of_hosts || matches!(record.subject, Subject::Host(_)));
            if order.is_trial || later == rules {
                return Ok(done);
            }
            rules = later;
        }
    }

    /// What the rules would erase.
    fn trial(&self, rules: &Rules, scratch: &Path, now: UnixMicros) -> Result<Erased> {
        let mut trial = Erased { is_trial: true, ..Erased::default() };
        self.apply(rules, scratch, now, &mut trial)?;
        Ok(trial)
    }

    fn apply(&self, rules: &Rules, scratch: &Path, now: UnixMicros, done: &mut Erased) -> Result<()> {
        let Some(end) = rules.end() else { return Ok(()) };
        (done.claimed, done.left_out) = (0, Vec::new());
        let folder = |(name, _)| format!("host={}", path_part(name));
        let hosts = rules.are_of_hosts().then(|| rules.hosts().map(folder).collect());
        let part = Part { until: Some(date(end)), hosts, hours: (None, Some(Hour::of(end))), ..Part::default() };
        let found = match files::find_each(&self.place, &part) {
            Err(DataSetError::NoRun { .. }) => Found::default(),
            found => found?,
        };
        let bundles: HashSet<RunName> =
            found.runs.iter().filter(|run| run.is_bundle()).map(|run| run.place.run()).collect();
        StoredFile::expect(found.runs.iter().map(|run| &run.row));
        for run in &found.runs {
            let is_bundled = !run.is_bundle() && bundles.contains(&run.place.run());
            match self.run(run, rules, (is_bundled, scratch), done) {
                // It has expired meanwhile.
                Err(error) if error.is_gone() => {}
                Err(error) if error.file().is_some() || matches!(error, DataSetError::RollUp { .. }) => {
                    done.left_out.push(error.to_string());
                }
                result => result?,
            }
        }
        for run in &found.without_row {
            self.without_row(run, rules, bundles.contains(&run.place.run()), done)?;
        }
        for (tier, store) in &self.tiers {
            OfTier { tier: *tier, store, scratch, now }.erase(rules, done)?;
        }
        Ok(())
    }

    fn run(
        &self,
        run: &RunFiles,
        rules: &Rules,
        (is_bundled, scratch): (bool, &Path),
        done: &mut Erased,
    ) -> Result<()> {
        let row = run_row::read(&run.row)?;
        let keys = rules.processes(run, row.info.started)?;
        let goes_whole = rules.have_host(&row.info) || is_bundled && !keys.is_empty();
        if !goes_whole && keys.is_empty() {
            return Ok(());
        }
        done.runs += 1;
        if goes_whole {
            done.removed += expire::remove(&self.place, std::slice::from_ref(run), done.is_trial)?;
            return Ok(());
        }
        if done.is_trial {
            done.files += if run.is_bundle() { 1 } else { run.all().count() };
            return Ok(());
        }
        let rewritten = match row.rolled_up_from_ns {
            Some(_) => rewrite::run(&self.place, run, &row, &keys, scratch)?,
            None => recorded::run(&self.place, run, &row, &keys, scratch)?,
        };
        done.files += rewritten.files;
        done.removed += rewritten.removed;
        done.rows = done.rows.saturating_add(rewritten.rows);
        done.energy_uj = done.energy_uj.saturating_add(rewritten.energy.0);
        Ok(())
    }

    /// Files of a run that has no row, or none yet. Those of a run that is a bundle nobody needs.
    fn without_row(&self, run: &RunFiles, rules: &Rules, is_bundled: bool, done: &mut Erased) -> Result<()> {
        let keys = match rules.processes(run, UnixMicros(i64::MIN)) {
            Err(error) if error.file().is_some() => {
                done.left_out.push(error.to_string());
                return Ok(());
            }
            keys => keys?,
        };
        if rules.have_folder(&run.place) || is_bundled && !keys.is_empty() {
            done.runs += 1;
            done.removed += expire::remove(&self.place, std::slice::from_ref(run), done.is_trial)?;
        } else if !keys.is_empty() {
            let file = run.row.path();
            let advice = "its run has no row in table runs yet: erase --again once it has arrived";
            done.left_out.push(format!("{}: {advice}", file.display()));
        }
        Ok(())
    }
}
