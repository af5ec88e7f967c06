//! Holds what became of a pass of a shipper.

use std::io;

use serde::Serialize;

use crate::{model::units::UnixMicros, text::count};

/// What became of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passed {
    pub runs: u64,
    /// Published in this pass.
    pub files: u64,
    pub bytes: u64,
    /// Whether there was something to ship, and the other store could be opened for it.
    #[serde(skip)]
    pub has_reached: bool,
    /// Runs that have ended and wait, after the pass.
    pub waiting_runs: u64,
    /// Of these, runs that cannot be read.
    pub unreadable_runs: u64,
    /// When the oldest run that waits began, of those whose row can be read.
    #[serde(skip)]
    pub oldest_waiting: Option<UnixMicros>,
    /// Runs that were removed from the data set before they arrived.
    pub missed_runs: u64,
    /// What went wrong beside, such as with a run that cannot be read, each reported once.
    pub problems: Vec<String>,
}

impl Passed {
    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let mib = self.bytes as f64 / f64::from(1 << 20);
        let (runs, files) = (count(self.runs, "run"), count(self.files, "new file"));
        writeln!(out, "shipped {runs}: {files}, {mib:.1} MiB")?;
        let waiting = count(self.waiting_runs, "run");
        if self.waiting_runs > 0 { writeln!(out, "not shipped: {waiting}") } else { Ok(()) }
    }
}
