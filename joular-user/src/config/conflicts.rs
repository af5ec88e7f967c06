//! Refuses flags that exclude each other.

use super::{ConfigError, Places, energy::energy_text};
use crate::{cli::Flags, energy::EnergyChoice};

impl Places {
    /// Refuses flags that exclude each other in one place. Between flags and file, the flag
    /// overrides.
    pub(super) fn refuse_conflicts(&self, flags: &Flags) -> Result<(), ConfigError> {
        self.refuse_several_targets(flags)?;
        for (first, second, advice) in [("output", "no-output", "choose one"), ("json", "quiet", "choose one")] {
            if is_given(flags, first) && is_given(flags, second) {
                return Err(self.conflict(second, first, advice));
            }
        }
        if flags.replay.is_some()
            && let Some(key) = flags.live_only().next()
        {
            return Err(self.conflict(key, "replay", "a recording fixes it"));
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

/// Whether a flag was given at all.
pub(super) fn is_given(flags: &Flags, key: &str) -> bool {
    match key {
        "pid" => !flags.pid.is_empty(),
        "all" => flags.all,
        "replay" => flags.replay.is_some(),
        "output" => flags.output.is_some(),
        "no-output" => flags.no_output,
        "json" => flags.json,
        "quiet" => flags.quiet,
        "flush" => flags.flush.is_some(),
        "rotate" => flags.rotate.is_some(),
        "keep" => flags.keep.is_some(),
        "keep-size" => flags.keep_size.is_some(),
        "top" => flags.top.is_some(),
        "command-line" => flags.command_line.is_some(),
        "idle" => flags.idle.is_some(),
        "idle-watts" => flags.idle_watts.is_some(),
        "smt-ratio" => flags.smt_ratio.is_some(),
        _ => {
            let given = flags.conditions().into_iter().filter(|(_, texts)| !texts.is_empty());
            given.map(|(name, _)| name).chain(flags.live_only()).any(|name| name == key)
        }
    }
}
