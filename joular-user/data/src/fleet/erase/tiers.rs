//! Erases a service in a tier: its file of an hour or a day becomes one of `[erased]`.
//!
//! The note of the unit names both files until the old one is gone. So whoever sums the unit anew, whenever that is, removes
//! what is of neither use any more.

use std::{path::Path, sync::Arc};

use super::{Erased, rules::Rules, source::in_source};
use crate::{
    dataset::{
        bundle,
        erasing::{ERASED, Keys},
        error::{DataSetError, Result},
        layout::path_part,
        read::{files::RunFiles, run_row, stacks::ReadStacks},
        store::{Hour, Part, Store},
    },
    fleet::{claim::Claimed, names::Name, note::Note, read, sums::Sums, tier::Tier, unit::Unit, write},
    model::{target_text::TargetText, units::UnixMicros},
};

/// A tier in which services are erased.
pub(super) struct OfTier<'a> {
    pub(super) tier: Tier,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) scratch: &'a Path,
    pub(super) now: UnixMicros,
}

impl OfTier<'_> {
    pub(super) fn erase(&self, rules: &Rules, done: &mut Erased) -> Result<()> {
        for (service, before) in rules.services().filter(|(service, _)| *service != ERASED) {
            let hosts = Some(vec![format!("host={}", path_part(service))]);
            let part = Part { hosts, hours: (None, Some(Hour::of(before))), ..Part::default() };
            for run in bundle::found(self.store, &part)?.into_values() {
                match self.file(&run, service, before, done) {
                    // Somebody else was faster.
                    Err(error) if error.is_gone() => {}
                    Err(error) if error.file().is_some() => done.left_out.push(error.to_string()),
                    result => result?,
                }
            }
            if !done.is_trial {
                self.settle(service)?;
            }
        }
        Ok(())
    }

    /// Takes from notes what an interrupted erasure left in them: files of the service that are gone.
    fn settle(&self, service: &str) -> Result<()> {
        let part = Part { hosts: Some(vec![format!("host={}", path_part(ERASED))]), ..Part::default() };
        let (erased, own) = (write::run_of(Some(ERASED), Some(service)), write::run_of(Some(service), None));
        for run in bundle::found(self.store, &part)?.into_values() {
            let Some((folder, name)) = run.row.place() else { continue };
            let Some(rest) = name.strip_prefix(&erased) else { continue };
            let Some(folder) = folder.parent() else { continue };
            let old = folder.join(format!("host={}", path_part(service))).join(format!("{own}{rest}"));
            let start = match run_row::read(&run.row) {
                Err(error) if error.is_gone() => continue,
                row => row?.info.started,
            };
            let unit = Unit { tier: self.tier, start };
            let note = || Ok::<_, DataSetError>(Note::read(self.store, unit)?.filter(|note| note.files.contains(&old)));
            if note()?.is_none() || !is_gone(self.store, &old)? {
                continue;
            }
            let Some(_claimed) = Claimed::take(self.store, unit, self.now)? else { continue };
            if let Some(mut note) = note()? {
                note.files.remove(&old);
                note.overwrite(self.store, unit)?;
            }
        }
        Ok(())
    }

    /// A file in the folder of the service, which may be another one's, too.
    fn file(&self, run: &RunFiles, service: &str, before: UnixMicros, done: &mut Erased) -> Result<()> {
        let start = run_row::read(&run.row)?.info.started;
        if start >= before {
            return Ok(());
        }
        let unit = Unit { tier: self.tier, start };
        let claimed = if done.is_trial { None } else { Claimed::take(self.store, unit, self.now)? };
        if claimed.is_none() && !done.is_trial {
            done.claimed += 1;
            return Ok(());
        }
        let mut stacks = ReadStacks::default();
        let Some(mut source) = read::source(run, unit, &Rules::default(), &mut stacks)? else { return Ok(()) };
        let is_service = |name: &Name| name.service.as_ref().is_some_and(|name| name.raw() == service);
        if source.processes.is_empty() || !source.processes.values().all(is_service) {
            return Ok(());
        }
        done.files += 1;
        done.energy_uj = done.energy_uj.saturating_add(energy_of(&source));
        if done.is_trial {
            return Ok(());
        }
        let keys: Keys = source.processes.keys().map(|(pid, start)| (pid.0, start_us(*start))).collect();
        in_source(&mut source, &keys, &mut stacks);
        let mut sums = Sums::new(unit);
        sums.add(source, &stacks);
        let erased = sums.finish(&stacks).find(|sum| sum.key.service.as_ref().is_some_and(|name| *name == ERASED));
        let nothing = || DataSetError::Damaged { path: run.row.path(), problem: "it has nothing to sum".to_owned() };
        let mut erased = erased.ok_or_else(nothing)?;
        erased.erased = Some(TargetText::from(service));
        let file = write::encode(&erased, unit, &stacks, self.scratch)?;
        self.replace(run, unit, &file)
    }

    fn replace(&self, run: &RunFiles, unit: Unit, file: &write::File) -> Result<()> {
        let old = run.row.within();
        let mut note = Note::read(self.store, unit)?;
        if let Some(note) = &mut note {
            note.files.insert(file.folder.join(&file.name));
            note.overwrite(self.store, unit)?;
        }
        self.store.publish(&file.folder, &file.name, &file.bytes)?;
        self.store.remove(old)?;
        if let Some(note) = &mut note {
            note.files.remove(old);
            note.overwrite(self.store, unit)?;
        }
        Ok(())
    }
}

fn is_gone(store: &Arc<dyn Store>, file: &Path) -> Result<bool> {
    let place = file.parent().zip(file.file_name().and_then(|name| name.to_str()));
    let Some((folder, name)) = place else { return Ok(true) };
    Ok(store.find(folder, name)?.is_none())
}

fn energy_of(source: &read::Source) -> u64 {
    let threads = source.windows.iter().flat_map(|read| &read.window.threads);
    threads.fold(0, |sum, (_, thread)| sum.saturating_add(thread.energy.0))
}

fn start_us(start_ns: u64) -> Option<i64> {
    i64::try_from(start_ns / 1000).ok()
}
