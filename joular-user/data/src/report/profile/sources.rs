//! Reads a selection in pieces of time, some of them from sums that lie within a place.
//!
//! Who knows of such sums chooses ([`Choose`]): [`crate::fleet`] does. A piece has windows that start in its times, pieces are
//! apart, and a window is of one piece only. So nothing counts twice. Without a choice all is read where it was recorded.

use std::{fmt, path::Path, sync::Arc};

use serde_json::{Map, Value, json};

use super::{catalog::Run, filter::Filter, moment::Moment};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        read::{
            files::{self, Found, RunFiles},
            marks, run_row,
            span::Stretches,
            unreadable::Unreadable,
        },
        store::{self, Part, Store},
        tables::Marks,
    },
    model::units::UnixMicros,
};

/// Chooses in which pieces a place is read.
pub trait Choose: fmt::Debug + Send + Sync {
    /// What is chosen for a filter, the same each time; `None`: there is nothing to choose from at this place.
    ///
    /// # Errors
    /// If what there is cannot be listed or read, or what was wished for is not there.
    fn choose(&self, root: &Path, filter: &Filter) -> Result<Option<Arc<Choice>>>;
}

/// Who chooses, if anybody does. Copies share the choice, so all that a question reads is read alike.
#[derive(Clone, Debug, Default)]
pub struct Sources(Option<Arc<dyn Choose>>);

/// In which pieces a place is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub pieces: Vec<Piece>,
    pub read_from: ReadFrom,
}

/// Windows that are read in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where within the place they lie; `None`: the place itself.
    pub folder: Option<&'static str>,
    /// They start at the first moment of a pair or later, and before the second one. Pairs are in order, and apart.
    /// `None`: whenever they start.
    pub times: Option<Vec<(UnixMicros, UnixMicros)>>,
}

/// What figures were read from, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFrom {
    /// The tier with the longest windows, or `raw`.
    pub tier: &'static str,
    /// Length of that tier's windows, as flags have it: `1h`; `None`: as they were recorded.
    pub resolution: Option<&'static str>,
    /// Whether other pieces of time were read from elsewhere.
    pub is_joined: bool,
    /// Whether only the files of some services were read.
    pub is_of_services: bool,
    /// Why the runs were read, if nobody wished for them.
    pub reason: Option<String>,
    /// Whether people have to be told, because sums could have been expected.
    pub is_unexpected: bool,
}

/// Where a run was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPiece {
    /// As [`Piece::folder`].
    pub folder: Option<&'static str>,
    /// Its windows that count; `None`: all.
    pub(crate) only: Option<Stretches>,
}

impl Sources {
    pub fn by(choose: Arc<dyn Choose>) -> Self {
        Self(Some(choose))
    }

    /// # Errors
    /// As [`Choose::choose`].
    pub(super) fn choice(&self, root: &Path, filter: &Filter) -> Result<Option<Arc<Choice>>> {
        self.0.as_ref().map_or(Ok(None), |choose| choose.choose(root, filter))
    }
}

impl ReadFrom {
    /// What was recorded, whose name is `raw`.
    pub const RAW: &'static str = "raw";

    /// For people; `None`: what they expect anyway.
    pub fn text(&self) -> Option<String> {
        let Self { tier, is_joined, reason, is_unexpected, .. } = self;
        match (self.is_of_sums(), is_joined) {
            (true, true) => Some(format!(
                "read from {tier} sums, and from finer ones and the runs at the edges and for hours that these lack"
            )),
            (true, false) => Some(format!("read from {tier} sums")),
            (false, _) => reason.as_ref().filter(|_| *is_unexpected).map(|why| format!("read from the runs: {why}")),
        }
    }

    /// The same for who can name another tier.
    pub fn line(&self) -> Option<String> {
        let advice = if self.is_of_sums() { "; --tier raw reads the runs" } else { "" };
        self.text().map(|text| text + advice)
    }

    /// Whether any of it is of sums.
    pub fn is_of_sums(&self) -> bool {
        self.tier != Self::RAW
    }

    /// For objects of JSON: `tier`, `resolution` and, if there is something to say, `tier_reason`.
    pub fn keys(&self) -> Map<String, Value> {
        let Self { tier, resolution, is_joined, reason, .. } = self;
        let mut keys = Map::from_iter([
            ("tier".to_owned(), json!(tier)),
            ("resolution".to_owned(), json!(resolution)),
            ("is_joined".to_owned(), json!(is_joined)),
        ]);
        keys.extend(reason.as_ref().map(|reason| ("tier_reason".to_owned(), json!(reason))));
        keys
    }

    /// What a reader of figures about the whole machine must know.
    pub fn warning(&self) -> Option<String> {
        self.is_of_services.then(|| {
            "sums: of these services alone was read, so what stands here about all energy of the windows is theirs, not their \
             hosts'; --tier raw has it"
                .to_owned()
        })
    }
}

impl Piece {
    fn open(&self, root: &Path) -> Result<Arc<dyn Store>> {
        match self.folder {
            Some(folder) => store::open(&root.join(folder)),
            None => store::open(root),
        }
    }

    /// Where its files may be, as far as stores can list that.
    fn parts(&self, filter: &Filter) -> Vec<Part> {
        let Some(times) = &self.times else { return vec![filter.part()] };
        let within = |(begin, end): &(UnixMicros, UnixMicros)| {
            let (since, until) = (Some(Moment::At(*begin)), Some(Moment::At(*end)));
            Filter { since, until, ..filter.clone() }.part()
        };
        times.iter().map(within).collect()
    }

    /// Whether it is of sums that were taken in place of what was recorded, and not wished for.
    const fn is_replaceable(&self) -> bool {
        self.folder.is_some() && self.times.is_some()
    }

    fn of_run(&self) -> RunPiece {
        RunPiece { folder: self.folder, only: self.times.as_deref().map(Stretches::between) }
    }
}

impl Choice {
    /// All where it was recorded.
    pub fn recorded(reason: Option<String>, is_unexpected: bool) -> Self {
        let read_from = ReadFrom {
            tier: ReadFrom::RAW,
            resolution: None,
            is_joined: false,
            is_of_services: false,
            reason,
            is_unexpected,
        };
        Self { pieces: vec![Piece { folder: None, times: None }], read_from }
    }

    /// What is read if a file of sums in it cannot be read: everything where it was recorded. `None`: the error is another one.
    pub(super) fn instead(&self, root: &Path, error: &DataSetError) -> Option<Self> {
        let of_sums = |piece: &&Piece| piece.is_replaceable();
        let mut folders = self.pieces.iter().filter(of_sums).filter_map(|piece| piece.folder);
        let is_of_sums = error.file().is_some_and(|file| folders.any(|folder| file.starts_with(root.join(folder))));
        is_of_sums.then(|| Self::recorded(Some(format!("sums cannot be read: {error}")), true))
    }

    /// The runs of all pieces that the filter allows.
    ///
    /// # Errors
    /// If there is no run, a file cannot be read or is damaged, or a store cannot be listed.
    pub(super) fn runs(&self, root: &Path, filter: &Filter) -> Result<Vec<(Run, RunFiles)>> {
        // What was recorded has what a file of sums lacks, so none is left out.
        let whole = Filter { unreadable: Unreadable::default(), ..filter.clone() };
        let (mut all, mut none, mut has_any) = (Vec::new(), None, false);
        for piece in &self.pieces {
            let filter = if piece.is_replaceable() { &whole } else { filter };
            let of = piece.of_run();
            let read = |files: &RunFiles| Ok(Run { piece: of.clone(), ..read_run(files, filter)? });
            let parts = piece.parts(filter);
            let of_parts = (parts.as_slice(), !all.is_empty());
            match filter.unreadable.runs(&piece.open(root)?, of_parts, |run| filter.may_allow(run), read) {
                Err(error @ DataSetError::NoRun { .. }) => none = Some(error),
                found => {
                    all.extend(found?);
                    has_any = true;
                }
            }
        }
        none.filter(|_| !has_any).map_or(Ok(all), Err)
    }

    /// The files of these runs, and those that no row belongs to.
    ///
    /// # Errors
    /// If there is no run, or a store cannot be listed.
    pub(super) fn found(&self, root: &Path, filter: &Filter) -> Result<Found> {
        let (mut all, mut none, mut has_any) = (Found::default(), None, false);
        for piece in &self.pieces {
            match files::find_parts(&piece.open(root)?, &piece.parts(filter)) {
                // A place of which only sums are left has none.
                Err(error @ DataSetError::NoRun { .. }) => none = Some(error),
                found => {
                    let mut found = found?;
                    all.runs.append(&mut found.runs);
                    all.without_row.append(&mut found.without_row);
                    has_any = true;
                }
            }
        }
        none.filter(|_| !has_any).map_or(Ok(all), Err)
    }
}

/// What is known of a run by its row and its marks.
pub(super) fn read_run(files: &RunFiles, filter: &Filter) -> Result<Run> {
    filter.stop.check()?;
    let row = run_row::read(&files.row)?;
    let marks: Vec<_> = files.parts.iter().filter_map(|(_, part)| part.file::<Marks>().cloned()).collect();
    let end = row.end.map(|(end, _)| end);
    Ok(Run { info: row.info, end, phases: marks::read(&marks)?, ..Run::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(tier: &'static str) -> ReadFrom {
        ReadFrom { tier, resolution: None, is_joined: false, is_of_services: false, reason: None, is_unexpected: false }
    }

    #[test]
    fn what_was_read_is_said_unless_it_is_what_people_expect() {
        assert_eq!(read_from(ReadFrom::RAW).line(), None);
        let because = ReadFrom { reason: Some("no hour has been summed yet".to_owned()), ..read_from(ReadFrom::RAW) };
        assert_eq!(because.line(), None);
        assert_eq!(because.keys()["tier_reason"], "no hour has been summed yet");
        let unexpected = ReadFrom { is_unexpected: true, ..because };
        assert_eq!(unexpected.line().unwrap(), "read from the runs: no hour has been summed yet");
        assert_eq!(read_from("hourly").line().unwrap(), "read from hourly sums; --tier raw reads the runs");
        let joined = ReadFrom { is_joined: true, ..read_from("minutes") }.line().unwrap();
        assert!(joined.starts_with("read from minutes sums, and from finer ones"), "{joined}");
        assert_eq!(read_from("hourly").warning(), None);
        assert!(ReadFrom { is_of_services: true, ..read_from("hourly") }.warning().is_some());
    }

    #[test]
    fn a_piece_is_listed_by_the_hours_of_its_own_times() {
        let hour = |hours: i64| UnixMicros((1_772_406_000 + hours * 3600) * 1_000_000);
        let piece = Piece { folder: None, times: Some(vec![(hour(0), hour(1)), (hour(30), hour(31))]) };
        let parts = piece.parts(&Filter::default());
        assert_eq!(parts.len(), 2);
        assert!(parts[0].has_hour("date=2026-03-01", "hour=23") && !parts[0].has_hour("date=2026-03-02", "hour=01"));
        assert!(parts[1].has_hour("date=2026-03-03", "hour=05") && !parts[1].has_hour("date=2026-03-02", "hour=01"));
        let whole = Piece { folder: Some("hourly"), times: None };
        assert_eq!(whole.parts(&Filter::default()), [Filter::default().part()]);
        assert_eq!(whole.of_run(), RunPiece { folder: Some("hourly"), only: None });
    }
}
