//! Looks at all runs and tiers of a place once, and erases in them what rules say.

use std::{collections::HashSet, path::Path, slice};

use super::{Erased, Stores, recorded, rewrite, rules::Rules, tiers::OfTier};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        expire,
        layout::{RunName, path_part},
        read::{
            files::{self, Found, RunFiles},
            run_row,
        },
        store::{Hour, Part, StoredFile},
    },
    fleet::claim::Claimed,
    model::units::UnixMicros,
};

/// A look at a place.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) stores: &'a Stores,
    pub(super) scratch: &'a Path,
    pub(super) now: UnixMicros,
    /// `None` where nothing is changed.
    pub(super) claim: Option<&'a Claimed>,
}

impl Pass<'_> {
    /// What the rules would erase.
    pub(super) fn trial(&self, rules: &Rules) -> Result<Erased> {
        let mut trial = Erased { is_trial: true, ..Erased::default() };
        self.apply(rules, &mut trial)?;
        Ok(trial)
    }

    /// Erases what the rules say.
    pub(super) fn apply(&self, rules: &Rules, done: &mut Erased) -> Result<()> {
        let Some(end) = rules.end() else { return Ok(()) };
        (done.claimed, done.left_out) = (0, Vec::new());
        let folder = |(name, _)| format!("host={}", path_part(name));
        let hosts = rules.are_of_hosts().then(|| rules.hosts().map(folder).collect());
        // Runs that are files of tables may go on later.
        let part = Part { hosts, hours: (None, Some(Hour::of(end))), ..Part::default() };
        let place = &self.stores.place;
        let found = match files::find_each(place, &part) {
            Err(DataSetError::NoRun { .. }) => Found::default(),
            found => found?,
        };
        let bundles: HashSet<RunName> =
            found.runs.iter().filter(|run| run.is_bundle()).map(|run| run.place.run()).collect();
        StoredFile::expect(found.runs.iter().map(|run| &run.row));
        for run in &found.runs {
            let is_bundled = !run.is_bundle() && bundles.contains(&run.place.run());
            match self.run(run, rules, is_bundled, done) {
                // It has expired meanwhile.
                Err(error) if error.is_gone() => {}
                Err(error) if error.file().is_some() || matches!(error, DataSetError::RollUp { .. }) => {
                    done.left_out.push(error.to_string());
                }
                result => result?,
            }
            self.claim.map_or(Ok(()), Claimed::renew)?;
        }
        for run in &found.without_row {
            self.without_row(run, rules, bundles.contains(&run.place.run()), done)?;
        }
        for (tier, store) in &self.stores.tiers {
            OfTier { tier: *tier, store, scratch: self.scratch, now: self.now }.erase(rules, done)?;
        }
        Ok(())
    }

    /// `is_bundled`: files of tables of a run that is a bundle, too.
    fn run(&self, run: &RunFiles, rules: &Rules, is_bundled: bool, done: &mut Erased) -> Result<()> {
        let place = &self.stores.place;
        let row = run_row::read(&run.row)?;
        let keys = rules.processes(run, row.info.started)?;
        let goes_whole = rules.have_host(&row.info) || is_bundled && !keys.is_empty();
        if !goes_whole && keys.is_empty() {
            return Ok(());
        }
        done.runs += 1;
        if goes_whole {
            done.removed += expire::remove(place, slice::from_ref(run), done.is_trial)?;
            return Ok(());
        }
        if done.is_trial {
            done.files += if run.is_bundle() { 1 } else { run.all().count() };
            return Ok(());
        }
        let rewritten = match row.rolled_up_from_ns {
            Some(_) => rewrite::run(place, run, &row, &keys, self.scratch)?,
            None => recorded::run(place, run, &row, &keys, self.scratch)?,
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
            done.removed += expire::remove(&self.stores.place, slice::from_ref(run), done.is_trial)?;
        } else if !keys.is_empty() {
            let file = run.row.path();
            let advice = "its run has no row in table runs yet: erase --again once it has arrived";
            done.left_out.push(format!("{}: {advice}", file.display()));
        }
        Ok(())
    }
}
