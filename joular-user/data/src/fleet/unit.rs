//! Sums a unit of a tier: an hour, or a day.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use twox_hash::XxHash64;

use super::{
    Made,
    claim::Claimed,
    note::{Note, OfHour},
    read,
    sums::Sums,
    tier::{Opened, Tier},
    write,
};
use crate::{
    dataset::{
        bundle,
        error::Result,
        read::{files::RunFiles, stacks::ReadStacks},
        store::{Hour, Part, Store, StoredFile},
    },
    model::units::UnixMicros,
};

const HOUR_US: i64 = 3_600_000_000;

/// What is summed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) tier: Tier,
    pub(super) start: UnixMicros,
}

impl Unit {
    pub(super) const fn end(self) -> UnixMicros {
        UnixMicros(self.start.0.saturating_add(self.tier.unit_us()))
    }

    /// Whether a window that starts then is in it.
    pub(super) const fn has(self, start: UnixMicros) -> bool {
        start.0 >= self.start.0 && start.0 < self.end().0
    }

    /// Whether one of the windows that start in this span may be in it.
    pub(super) const fn overlaps(self, first: i64, last: i64) -> bool {
        first < self.end().0 && last >= self.start.0
    }

    /// Number of the tier's window in which a window lies that starts then.
    pub(super) const fn number(self, start: UnixMicros) -> i64 {
        start.0.div_euclid(self.tier.window_us())
    }

    /// Hours whose bundles may have windows of it. A bundle may go on in the hour after that of its start.
    fn part(self) -> Part {
        let first = match self.tier {
            Tier::Minutes => UnixMicros(self.start.0.saturating_sub(HOUR_US)),
            Tier::Hourly => self.start,
        };
        let last = UnixMicros(self.end().0.saturating_sub(1));
        Part { hours: (Some(Hour::of(first)), Some(Hour::of(last))), ..Part::default() }
    }
}

/// What a unit is made of.
struct Sources {
    runs: Vec<RunFiles>,
    /// Tells them, and what they have, from others.
    hash: String,
    /// Of a day: what its hours were made of.
    hours: Vec<OfHour>,
}

/// Sums a unit, unless that was done from the same sources.
pub(super) fn sum(opened: &Opened, unit: Unit, scratch: &Path, now: UnixMicros, made: &mut Made) -> Result<()> {
    let known = Note::read(&opened.to, unit)?;
    let sources = sources(&opened.from, unit)?;
    // Those that have expired since were in it.
    let is_done = known.as_ref().is_some_and(|known| known.sources == sources.hash || known.runs > sources.runs.len());
    if is_done || sources.runs.is_empty() {
        made.unchanged += usize::from(is_done);
        return Ok(());
    }
    let Some(_claimed) = Claimed::take(&opened.to, unit, now)? else {
        made.claimed += 1;
        return Ok(());
    };
    let mut stacks = ReadStacks::default();
    let left_before = made.left_out.len();
    let sums = add_all(&sources.runs, unit, &mut stacks, made)?;
    let left_out = Some(made.left_out.len().saturating_sub(left_before));
    let Sources { runs, hash, hours } = sources;
    let mut note = Note { sources: hash, runs: runs.len(), left_out, hours, ..Note::default() };
    for service in sums.finish(&stacks) {
        let file = write::encode(&service, unit, &stacks, scratch)?;
        opened.to.publish(&file.folder, &file.name, &file.bytes)?;
        made.files += 1;
        made.bytes += file.bytes.len() as u64;
        note.measured_uj = note.measured_uj.saturating_add(service.measured().0);
        note.files.insert(file.folder.join(file.name));
    }
    let before = known.map(|known| known.files).unwrap_or_default();
    let gone: Vec<PathBuf> = before.difference(&note.files).cloned().collect();
    opened.to.remove_all(&gone)?;
    note.publish(&opened.to, unit)?;
    made.units += 1;
    Ok(())
}

/// A run that cannot be read is left out, and named.
fn add_all(runs: &[RunFiles], unit: Unit, stacks: &mut ReadStacks, made: &mut Made) -> Result<Sums> {
    let mut sums = Sums::new(unit);
    StoredFile::expect(runs.iter().map(|run| &run.row));
    for run in runs {
        match read::source(run, unit, stacks) {
            Ok(Some(source)) => {
                sums.add(source, stacks);
                made.runs += 1;
            }
            Ok(None) => {}
            Err(error) if error.file().is_some() => made.left_out.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(sums)
}

fn sources(from: &Arc<dyn Store>, unit: Unit) -> Result<Sources> {
    // Notes before files: files are then at least as new as what the hash says.
    let mut of_hours = Vec::new();
    if unit.tier == Tier::Hourly {
        for hour in hours(unit) {
            of_hours.push(Note::read(from, hour)?.map(|note| OfHour::of(&note)).unwrap_or_default());
        }
    }
    let runs: Vec<RunFiles> = bundle::found(from, &unit.part())?.into_values().collect();
    let hash = match unit.tier {
        Tier::Minutes => hash_of(runs.iter().map(|run| run.row.within())),
        Tier::Hourly => hashed(&of_hours.iter().map(|hour| hour.sources.as_str()).collect::<Vec<_>>()),
    };
    Ok(Sources { runs, hash, hours: of_hours })
}

/// Tells the bundles of an hour from others, by their paths.
pub(super) fn hash_of<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    let paths: BTreeSet<&Path> = paths.collect();
    hashed(&paths.into_iter().map(Path::to_string_lossy).collect::<Vec<_>>())
}

fn hashed(of_what: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> = of_what.iter().map(AsRef::as_ref).collect();
    format!("{:016x}", XxHash64::oneshot(0, texts.join("\n").as_bytes()))
}

/// The hours of a day.
fn hours(day: Unit) -> impl Iterator<Item = Unit> {
    (0..24).map(move |hour| Unit { tier: Tier::Minutes, start: UnixMicros(day.start.0.saturating_add(hour * HOUR_US)) })
}
