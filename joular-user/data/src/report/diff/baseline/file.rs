//! Defines the file of a baseline: what was selected, and the sessions. Reads older versions, too.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FORMAT, Keep, VERSION, session::Session};
use crate::{
    model::units::UnixMicros,
    report::diff::{Choices, CompareBy, Side, View},
};

/// What tells a baseline from other JSON.
#[derive(Debug, Deserialize)]
pub struct Head {
    pub format: String,
    pub version: u32,
}

/// The version without sessions: its only one stands in the file itself.
pub const WITHOUT_SESSIONS: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    format: String,
    version: u32,
    pub by: String,
    pub view: String,
    /// What amounts are of, by the name that `--measure` takes.
    pub measure: String,
    /// Options that selected the part, by their names.
    pub part: serde_json::Value,
    /// In the order in which they were added.
    pub sessions: Vec<Session>,
}

/// What a file of [`WITHOUT_SESSIONS`] has beside its session.
#[derive(Debug, Deserialize)]
struct Selected {
    by: String,
    view: String,
    measure: String,
    part: serde_json::Value,
}

impl File {
    pub fn of(session: Session, choices: &Choices, keep: &Keep) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            by: choices.by.name().to_owned(),
            view: if choices.view == View::Total { "total" } else { "self" }.to_owned(),
            measure: choices.measure.name().to_owned(),
            part: keep.part.clone(),
            sessions: vec![session],
        }
    }

    /// Of a file of this version, or of one [`WITHOUT_SESSIONS`].
    pub fn read(bytes: &[u8], version: u32) -> serde_json::Result<Self> {
        if version != WITHOUT_SESSIONS {
            return serde_json::from_slice(bytes);
        }
        let Selected { by, view, measure, part } = serde_json::from_slice(bytes)?;
        let sessions = vec![serde_json::from_slice(bytes)?];
        Ok(Self { format: FORMAT.to_owned(), version: VERSION, by, view, measure, part, sessions })
    }

    /// Units of work of the runs in the order of their starts, if each has some.
    pub fn work(&self) -> Option<Vec<f64>> {
        let mut by_start: Vec<(UnixMicros, Option<f64>)> = self.sessions.iter().flat_map(Session::work).collect();
        by_start.sort_by_key(|(start, _)| *start);
        by_start.into_iter().map(|(_, work)| work).collect()
    }

    /// The most rows that a session does not keep by themselves.
    pub fn rows_left_out(&self) -> usize {
        self.sessions.iter().map(|session| session.rows_left_out).max().unwrap_or_default()
    }

    /// All sessions as one side.
    ///
    /// # Errors
    /// What does not hold together.
    pub fn side(&self, path: &Path) -> Result<Side, String> {
        let by = CompareBy::ALL.into_iter().find(|by| by.name() == self.by).unwrap_or_default();
        let mut sessions = self.sessions.iter().map(|session| session.side(path));
        let first = sessions.next().ok_or("it has no session")??;
        sessions.try_fold(first, |whole, session| Ok(whole.with(session?, by)))
    }
}
