//! Reads what programs said: when phases held, and what happened.

use std::collections::BTreeMap;

use super::columns::TableFile;
use crate::{
    dataset::{
        error::Result,
        store::StoredFile,
        tables::{marks, shared},
    },
    events::MarkKind,
    model::{target_text::TargetText, units::UnixMicros},
};

/// A phase of a run, by the starts of windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseWindows {
    pub name: TargetText,
    /// With the phases that it is within.
    pub path: TargetText,
    /// It holds for windows that start later than this one,
    pub after: UnixMicros,
    /// and not later than this one. `None`: it never ended.
    pub last: Option<UnixMicros>,
    /// When it began and ended: the ends of these two windows.
    pub begun: UnixMicros,
    pub ended: Option<UnixMicros>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadEvent {
    pub at: UnixMicros,
    pub name: TargetText,
    pub attributes: Option<TargetText>,
}

impl PhaseWindows {
    pub fn has(&self, start: UnixMicros) -> bool {
        start > self.after && self.last.is_none_or(|last| start <= last)
    }
}

/// The phases of a run's files of table `marks`, in the order of beginning.
///
/// # Errors
/// If a file cannot be read or is damaged.
pub(crate) fn read(files: &[StoredFile]) -> Result<Vec<PhaseWindows>> {
    let mut phases: BTreeMap<i64, PhaseWindows> = BTreeMap::new();
    for file in files {
        TableFile::open(file)?.batches(|columns| {
            let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
            let kinds = columns.names(marks::KIND)?;
            let (names, paths) = (columns.names(marks::NAME)?, columns.names(marks::PHASE)?);
            let numbers = columns.ints(marks::PHASE_NUMBER)?;
            for row in 0..columns.rows() {
                let Some(number) = numbers.maybe(row) else { continue };
                let start = UnixMicros(starts.get(row)?);
                let length_us = i64::try_from(lengths.natural::<u64>(row)? / 1000).unwrap_or(i64::MAX);
                let end = UnixMicros(start.0.saturating_add(length_us));
                if kinds.maybe(row)? == Some(MarkKind::Begin.name()) {
                    let text = |text: Option<&str>| TargetText::from(text.unwrap_or_default());
                    let (name, path) = (text(names.maybe(row)?), text(paths.maybe(row)?));
                    let phase = PhaseWindows { name, path, after: start, last: None, begun: end, ended: None };
                    phases.insert(number, phase);
                } else if let Some(phase) = phases.get_mut(&number) {
                    (phase.last, phase.ended) = (Some(start), Some(end));
                }
            }
            Ok(())
        })?;
    }
    Ok(phases.into_values().collect())
}

/// At most so many events of a run's files, the first ones.
///
/// # Errors
/// If a file cannot be read or is damaged.
pub(crate) fn read_events(files: &[StoredFile], most: usize) -> Result<Vec<ReadEvent>> {
    let mut events = Vec::new();
    for file in files {
        TableFile::open(file)?.batches(|columns| {
            let (times, kinds) = (columns.times(marks::SAID_AT)?, columns.names(marks::KIND)?);
            let (names, attributes) = (columns.names(marks::NAME)?, columns.texts(marks::ATTRIBUTES)?);
            for row in 0..columns.rows() {
                if events.len() < most && kinds.maybe(row)? == Some(MarkKind::Event.name()) {
                    let name = names.maybe(row)?.unwrap_or_default().into();
                    let attributes = attributes.maybe(row).map(TargetText::from);
                    events.push(ReadEvent { at: UnixMicros(times.get(row)?), name, attributes });
                }
            }
            Ok(())
        })?;
    }
    Ok(events)
}
