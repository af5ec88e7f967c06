//! Finds out which hours tiers have, as the place is now.
//!
//! A tier has an hour if its note says that it was made of the very runs that are there now, and that none of them was left
//! out. It also has it if there are fewer than it was made of: others have expired or were erased, and only the sums have them.
//! An hour of which that is not certain is read from the runs: a host that was late is not missing then. So is one in which
//! runs and sums were not erased alike.
//!
//! That costs listing the time that is asked for, as reading the runs would, and a small file for each day or hour.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    panic,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use super::{
    super::{
        erase::Rules,
        note::{Note, OfHour},
        tier::Tier,
        unit::{Unit, hash_of},
    },
    plan::{Asked, HOUR_US, Hour, Hours},
};
use crate::{
    dataset::{
        bundle::{TierMark, place_of},
        column::Table as _,
        error::{DataSetError, Result},
        layout::{FilePlace, RunName, date},
        read::files::MAX_FILES,
        store::{self, Hour as HourOfDay, Part, Store},
        tables::Windows,
    },
    model::units::UnixMicros,
};

/// Notes that are read side by side: a bucket answers each after some 30 ms.
const AT_ONCE: usize = 16;

/// A place with its tiers.
pub(super) struct Place {
    root: Arc<dyn Store>,
    tiers: Vec<(Tier, Arc<dyn Store>)>,
}

/// What is known of the time that is asked for.
pub(super) struct Covered {
    pub(super) hours: Hours,
    /// Whether there are runs that are files of tables: no tier has those.
    pub(super) has_tables: bool,
}

/// Bundles by the hour of their start.
type Bundles = BTreeMap<i64, Vec<PathBuf>>;

impl Place {
    /// `None` if it has no tiers.
    pub(super) fn open(root: &Path) -> Result<Option<Self>> {
        let mut tiers = Vec::new();
        for tier in Tier::ALL {
            if let Some(store) = opened(root, tier)? {
                tiers.push((tier, store));
            }
        }
        Ok(if tiers.is_empty() { None } else { Some(Self { root: store::open(root)?, tiers }) })
    }

    fn tier(&self, tier: Tier) -> Option<&Arc<dyn Store>> {
        self.tiers.iter().find(|(known, _)| *known == tier).map(|(_, store)| store)
    }

    /// What was erased of it.
    pub(super) fn erased(&self) -> Result<Rules> {
        Rules::read(&self.root)
    }

    /// Which hours of the time tiers have whose windows are not longer than those of `longest`.
    pub(super) fn covered(&self, asked: Asked, longest: Tier, erased: &Rules) -> Result<Covered> {
        let part = part(asked);
        let runs = bundles(&self.root, &part)?;
        let has_tables = has_tables(&self.root, asked, &runs)?;
        // A run may go on in the hour after that of its start.
        let mut hours: Hours = BTreeMap::new();
        for hour in runs.keys().flat_map(|hour| [*hour, hour.saturating_add(1)]) {
            hours.insert(hour, Hour { has_runs: true, ..Hour::default() });
        }
        for (tier, store) in self.tiers.iter().rev().filter(|(tier, _)| *tier <= longest) {
            let of_runs = hours.iter().filter(|(_, hour)| hour.has_runs).map(|(hour, _)| *hour);
            let mut units = units(*tier, of_runs.collect(), store, &part)?;
            if *tier == Tier::Minutes {
                // Finer windows are read of edges, and of hours that the other tier lacks.
                let is_whole =
                    |hour: i64| hours.get(&hour).is_some_and(|known| known.hourly) && !asked.has_edge_in(hour);
                units.retain(|unit| !is_whole(unit.start.0.div_euclid(HOUR_US)));
            }
            for (unit, note) in units.iter().zip(notes(store, &units)?) {
                let Some(note) = note else { continue };
                for (number, of_hour) in hours_of(*unit, &note) {
                    let start = UnixMicros(number.saturating_mul(HOUR_US));
                    let is_apart = erased.have_apart(*tier, start) && runs_of(number, &runs).next().is_some();
                    if !is_apart && has_all(&of_hour, number, &runs) {
                        let hour = hours.entry(number).or_default();
                        match tier {
                            Tier::Minutes => hour.minutes = true,
                            Tier::Hourly => hour.hourly = true,
                        }
                    }
                }
            }
        }
        Ok(Covered { hours, has_tables })
    }

    pub(super) fn has(&self, tier: Tier) -> bool {
        self.tier(tier).is_some()
    }
}

/// The tier of a place; `None` if there is none, or it is not for whoever asks: runs may be read by more people.
fn opened(root: &Path, tier: Tier) -> Result<Option<Arc<dyn Store>>> {
    let store = match store::open(&root.join(tier.folder())) {
        Err(DataSetError::Open { cause, .. })
            if [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&cause.kind()) =>
        {
            return Ok(None);
        }
        store => store?,
    };
    match TierMark::read(&store) {
        Err(DataSetError::Io { cause, .. } | DataSetError::Bucket { cause, .. })
            if cause.kind() == ErrorKind::PermissionDenied =>
        {
            Ok(None)
        }
        mark => Ok(mark?.map(|_| store)),
    }
}

/// Hours in which bundles of the time may have begun.
fn part(asked: Asked) -> Part {
    let begin = asked.since.map(|since| HourOfDay::of(UnixMicros(since.0.saturating_sub(HOUR_US))));
    Part { hours: (begin, asked.until.map(HourOfDay::of)), ..Part::default() }
}

/// The bundles of a part of a place.
fn bundles(store: &Arc<dyn Store>, part: &Part) -> Result<Bundles> {
    let mut found = Bundles::new();
    for path in store.list_bundles(part, MAX_FILES)? {
        if let Some(hour) = place_of(&path).and_then(|_| hour_of(&path)) {
            found.entry(hour).or_default().push(path);
        }
    }
    Ok(found)
}

/// The hour of its start, by the names of its folders.
fn hour_of(bundle: &Path) -> Option<i64> {
    let mut parts = bundle.iter().skip(1).map(|part| part.to_str());
    let date = parts.next()??.strip_prefix("date=")?;
    let hour = parts.next()??.strip_prefix("hour=")?;
    let start: jiff::Timestamp = format!("{date}T{hour}:00:00Z").parse().ok()?;
    Some(start.as_microsecond().div_euclid(HOUR_US))
}

/// Units of a tier that may have been summed: those of which there are runs, or sums.
fn units(tier: Tier, of_runs: Vec<i64>, store: &Arc<dyn Store>, part: &Part) -> Result<Vec<Unit>> {
    let mut part = part.clone();
    if tier == Tier::Hourly {
        part.hours.0 = part.hours.0.map(HourOfDay::first_of_day);
    }
    let mut starts: BTreeSet<i64> = bundles(store, &part)?.into_keys().collect();
    starts.extend(of_runs);
    let unit_us = tier.unit_us();
    let units: BTreeSet<i64> =
        starts.into_iter().map(|hour| hour.saturating_mul(HOUR_US).div_euclid(unit_us)).collect();
    Ok(units.into_iter().map(|number| Unit { tier, start: UnixMicros(number.saturating_mul(unit_us)) }).collect())
}

/// The notes of units, in their order.
fn notes(store: &Arc<dyn Store>, units: &[Unit]) -> Result<Vec<Option<Note>>> {
    let each = units.len().div_ceil(AT_ONCE).max(1);
    thread::scope(|scope| {
        let read = |units: &[Unit]| units.iter().map(|unit| Note::read(store, *unit)).collect::<Result<Vec<_>>>();
        let readers: Vec<_> = units.chunks(each).map(|units| scope.spawn(move || read(units))).collect();
        let mut notes = Vec::with_capacity(units.len());
        for reader in readers {
            notes.extend(reader.join().unwrap_or_else(|caught| panic::resume_unwind(caught))?);
        }
        Ok(notes)
    })
}

/// What is noted of each hour of a unit.
fn hours_of(unit: Unit, note: &Note) -> Vec<(i64, OfHour)> {
    let first = unit.start.0.div_euclid(HOUR_US);
    match unit.tier {
        Tier::Minutes => vec![(first, OfHour::of(note))],
        // Of a day that lacks anything nobody knows which hour lacks it.
        Tier::Hourly if !note.is_whole() => Vec::new(),
        Tier::Hourly => (first..).zip(note.hours.iter().cloned()).collect(),
    }
}

/// The bundles that may have windows of an hour.
fn runs_of(hour: i64, runs: &Bundles) -> impl Iterator<Item = &Path> {
    let hours = [hour.saturating_sub(1), hour].into_iter();
    hours.filter_map(move |hour| runs.get(&hour)).flatten().map(PathBuf::as_path)
}

/// Whether an hour was summed from all of its runs that are there now.
fn has_all(noted: &OfHour, hour: i64, runs: &Bundles) -> bool {
    let now = runs_of(hour, runs).count();
    let has_the_same = || noted.sources == hash_of(runs_of(hour, runs));
    // What was left out may be among those that are still there.
    noted.runs > 0 && (now == 0 || (noted.is_whole && (noted.runs > now || has_the_same())))
}

/// Whether there are windows in the time whose runs are files of tables, and not bundles, too.
fn has_tables(root: &Arc<dyn Store>, asked: Asked, runs: &Bundles) -> Result<bool> {
    let (since, until) = (asked.since.map(date), asked.until.map(date));
    let part = Part { since, until, ..part(asked) };
    let files = root.list_part(&[Windows::NAME], &part, MAX_FILES)?;
    let of_tables = files.iter().filter_map(|file| FilePlace::of(file)).filter(|place| part.has_date(place.date()));
    let of_tables: BTreeSet<RunName> = of_tables.map(|place| place.run()).collect();
    if of_tables.is_empty() {
        return Ok(false);
    }
    let bundled: BTreeSet<RunName> = runs.values().flatten().filter_map(|path| Some(place_of(path)?.run())).collect();
    Ok(!of_tables.is_subset(&bundled))
}
