//! Refuses flags that exclude each other.

use super::{ConfigError, Places, energy::energy_text};
use crate::{cli::Flags, energy::EnergyChoice};

impl Places {
    /// Refuses flags that exclude each other in one place. Between flags and file, the flag
    /// overrides.
    pub(super) fn refuse_conflicts(&self, flags: &Flags) -> Result<(), ConfigError> {
        self.refuse_several_targets(flags)?;
        for (first, second, advice) in [("output", "no-output", "choose one"), ("json", "quiet", "choose one")] {
            if flags.has(first) && flags.has(second) {
                return Err(self.conflict(second, first, advice));
            }
        }
        if flags.replay.is_some()
            && let Some(key) = flags.live_only()
        {
            return Err(self.conflict(&key, "replay", "a recording fixes it"));
        }
        let choice = energy_text(flags).and_then(|text| text.parse::<EnergyChoice>().ok());
        if flags.energy_file.is_some() && choice.is_some_and(|choice| !choice.reads_file()) {
            return Err(self.conflict(
                "energy-file",
                "energy",
                "only auto, microjoules, powerjoular, watts and replay read a file",
            ));
        }
        Ok(())
    }

    pub(super) fn conflict(&self, key: &str, other: &str, advice: &'static str) -> ConfigError {
        ConfigError::Conflict { place: self.place(key), other: self.place(other), advice }
    }
}
