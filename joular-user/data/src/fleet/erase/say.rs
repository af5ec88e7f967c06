//! Says what was erased.

use std::io;

use super::Erased;
use crate::{
    model::units::MicroJoules,
    text::{count, exact_joules},
};

impl Erased {
    /// Whether there was anything to erase, or something may be left.
    pub fn has_any(&self) -> bool {
        self.runs + self.files + self.removed > 0 || self.is_incomplete()
    }

    /// Whether something may be left that was to be erased.
    pub fn is_incomplete(&self) -> bool {
        self.is_left_to_another || self.claimed > 0 || !self.left_out.is_empty()
    }

    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        if let Some(record) = &self.record {
            writeln!(out, "recorded in {}", record.display())?;
        }
        if self.is_left_to_another {
            let advice = "erase --again when it has ended; one that was interrupted counts for five minutes";
            return writeln!(out, "changed nothing, because somebody else erases there: {advice}");
        }
        if !self.has_any() {
            return writeln!(out, "there is nothing to erase");
        }
        let (runs, files, removed) = (count(self.runs, "run"), count(self.files, "file"), count(self.removed, "file"));
        if self.is_trial {
            writeln!(out, "would erase in {runs}: {files} to be written anew, {removed} to be removed")?;
        } else {
            let (rows, joules) = (count(self.rows, "row"), exact_joules(MicroJoules(self.energy_uj)));
            writeln!(
                out,
                "erased in {runs}: {files} written anew, {removed} removed, {rows} of erased processes; kept {joules} J of them"
            )?;
        }
        if self.claimed > 0 {
            let files = count(self.claimed, "file");
            writeln!(out, "left {files} of tiers, because somebody sums them: erase --again in half an hour")?;
        }
        Ok(())
    }
}
