//! Sums a unit of a tier: an hour, or a day.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use twox_hash::XxHash64;

use super::{
    Made,
    before::Before,
    claim::Claimed,
    erase::Rules,
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

    /// Hours of its own.
    pub(super) fn own_part(self) -> Part {
        let last = UnixMicros(self.end().0.saturating_sub(1));
        Part { hours: (Some(Hour::of(self.start)), Some(Hour::of(last))), ..Part::default() }
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
    let is_done = match &known {
        Some(known) => is_done(known, &sources, unit, made)?,
        None => false,
    };
    if is_done || sources.runs.is_empty() {
        made.unchanged += usize::from(is_done);
        return Ok(());
    }
    let Some(claimed) = Claimed::take(&opened.to, unit, now)? else {
        made.claimed += 1;
        return Ok(());
    };
    let before = Before::look(&opened.to, unit)?;
    // Who had the claim until now may have summed it since it was looked at.
    if Note::read(&opened.to, unit)? != known {
        made.claimed += 1;
        return Ok(());
    }
    let Some(note) = write_all(&before, opened, unit, sources, known, scratch, made)? else {
        made.claimed += 1;
        claimed.lose();
        return Ok(());
    };
    // Before the note: nobody would look for the claim on what is done.
    claimed.end()?;
    let is_noted = note.publish(&before, unit)?;
    made.units += usize::from(is_noted);
    made.claimed += usize::from(!is_noted);
    Ok(())
}

/// Whether a unit has what can be had of its sources. What could not be read is tried again, and named each time.
fn is_done(known: &Note, sources: &Sources, unit: Unit, made: &mut Made) -> Result<bool> {
    if known.sources != sources.hash {
        // Those that have expired since were in it.
        return Ok(known.runs > sources.runs.len());
    }
    for run in sources.runs.iter().filter(|run| known.lacks(run.row.within())) {
        match read::source(run, unit, &Rules::default(), &mut ReadStacks::default()) {
            Ok(_) => return Ok(false),
            Err(error) if error.file().is_some() => made.left_out.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Writes the files of a unit. Returns its note, which is to be written last; `None` if another one has written some of the files
/// meanwhile.
fn write_all(
    before: &Before<'_>,
    opened: &Opened,
    unit: Unit,
    sources: Sources,
    known: Option<Note>,
    scratch: &Path,
    made: &mut Made,
) -> Result<Option<Note>> {
    let mut stacks = ReadStacks::default();
    // After the claim: whoever erases meanwhile finds the unit claimed, or is found here.
    let rules = Rules::read(&opened.records)?.of_tier(unit.tier);
    let Sources { runs, hash, hours } = sources;
    let (sums, left_out) = add_all(&runs, (unit, &rules), &mut stacks, made)?;
    let mut note = Note { sources: hash, runs: runs.len(), left_out: Some(left_out), hours, ..Note::default() };
    for service in sums.finish(&stacks) {
        let file = write::encode(&service, unit, &stacks, scratch)?;
        if !before.replace(&file.folder, &file.name, &file.bytes)? {
            return Ok(None);
        }
        made.files += 1;
        made.bytes += file.bytes.len() as u64;
        note.measured_uj = note.measured_uj.saturating_add(service.measured().0);
        note.files.insert(file.folder.join(file.name));
    }
    let files_before = known.map(|known| known.files).unwrap_or_default();
    let gone: Vec<PathBuf> = files_before.difference(&note.files).cloned().collect();
    if !gone.is_empty() {
        if !before.has_same_note()? {
            return Ok(None);
        }
        opened.to.remove_all(&gone)?;
    }
    Ok(Some(note))
}

/// A run that cannot be read is left out, and named. Returns the paths of these, too.
fn add_all(
    runs: &[RunFiles],
    (unit, rules): (Unit, &Rules),
    stacks: &mut ReadStacks,
    made: &mut Made,
) -> Result<(Sums, BTreeSet<PathBuf>)> {
    let (mut sums, mut left_out) = (Sums::new(unit), BTreeSet::new());
    StoredFile::expect(runs.iter().map(|run| &run.row));
    for run in runs {
        match read::source(run, unit, rules, stacks) {
            Ok(Some(source)) => {
                sums.add(source, stacks);
                made.runs += 1;
            }
            Ok(None) => {}
            Err(error) if error.file().is_some() => {
                left_out.insert(run.row.within().to_owned());
                made.left_out.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((sums, left_out))
}

fn sources(from: &Arc<dyn Store>, unit: Unit) -> Result<Sources> {
    // Notes before files: files are then at least as new as what the hash says.
    let (mut of_what, mut of_hours) = (Vec::new(), Vec::new());
    if unit.tier == Tier::Hourly {
        for hour in hours(unit) {
            let note = Note::read(from, hour)?.unwrap_or_default();
            of_hours.push(OfHour::of(&note));
            of_what.push(note.sources);
            // An hour that lacks a source is another one than with it.
            of_what.extend(note.left_out.iter().flatten().map(|path| path.to_string_lossy().into_owned()));
        }
    }
    let runs: Vec<RunFiles> = bundle::found(from, &unit.part())?.into_values().collect();
    let hash = match unit.tier {
        Tier::Minutes => hash_of(runs.iter().map(|run| run.row.within())),
        Tier::Hourly => hashed(&of_what),
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
