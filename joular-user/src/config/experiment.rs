//! Resolves what an experiment runs.

use std::{collections::BTreeMap, time::Duration};

use joular_data::redact::Redaction;
use serde_json::{Map, Value, json};

use super::{ConfigError, duration::parse_duration};
use crate::{
    cli::{ExperimentFlags, RunFlags, refused::BY_EXPERIMENTS},
    experiment::{Circumstances, around::Around, conduct::Experiment, plan, work::is_amount},
    privileges,
};

/// Runs of each variant, if there is something to compare and nothing else is said.
const REPEAT: u32 = 3;
const MAX_REPEAT: u32 = 100_000;
/// Options of a recording that may change while an experiment is interrupted.
const UNCHECKED: [&str; 2] = ["output", "quiet"];

/// # Errors
/// If a flag cannot be understood.
pub fn experiment(flags: &RunFlags) -> Result<Experiment, ConfigError> {
    let chosen = &flags.experiment;
    let variants = plan::variants(&flags.command, &chosen.variant, &chosen.parameter)
        .map_err(|error| ConfigError::Plain { cause: error.to_string() })?;
    if let Some(name) = flags.flags.first_of(BY_EXPERIMENTS) {
        return Err(invalid(
            name,
            "an experiment prints no windows: use --export-json FILE for its results, or --output DIR for all data"
                .to_owned(),
        ));
    }
    let is_comparison = variants.len() > 1;
    let repeat = chosen.repeat.unwrap_or(if is_comparison { REPEAT } else { 1 });
    if repeat == 0 || repeat > MAX_REPEAT {
        return Err(invalid("repeat", format!("{repeat} is not between 1 and {MAX_REPEAT}")));
    }
    if let Some(work) = chosen.work.filter(|work| !is_amount(*work)) {
        return Err(invalid("work", format!("{work} is not an amount of work: give a number above 0")));
    }
    let cool_down = chosen.cool_down.as_deref().map(parse_duration).transpose();
    Ok(Experiment {
        variants,
        repeat,
        warmup: chosen.warmup.unwrap_or_default(),
        cool_down: cool_down.map_err(|error| invalid("cool-down", error.to_string()))?.unwrap_or(Duration::ZERO),
        around: Around { prepare: chosen.prepare.clone(), cleanup: chosen.cleanup.clone(), user: None },
        seed: chosen.seed,
        directory: flags.flags.output.clone(),
        shows_output: chosen.show_output,
        ignores_failure: chosen.ignore_failure,
        work: chosen.work,
        work_rule: work_rule(chosen),
        circumstances: Circumstances {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            options: options(flags),
            ..Default::default()
        },
        redaction: Redaction::default(),
        owner: privileges::invoking_user(),
    })
}

/// Options that change what is measured.
fn options(flags: &RunFlags) -> BTreeMap<String, Value> {
    let Ok(Value::Object(recording)) = serde_json::to_value(&flags.flags) else { return BTreeMap::new() };
    let more = json!({
        "user": flags.user,
        "phase-start": flags.phase_start,
        "phase-end": flags.phase_end,
        "mark": flags.mark,
        "cool-down": flags.experiment.cool_down,
        "prepare": flags.experiment.prepare,
        "cleanup": flags.experiment.cleanup,
        "ignore-failure": flags.experiment.ignore_failure,
    });
    let more = if let Value::Object(more) = more { more } else { Map::new() };
    let is_given = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]);
    let given = recording.into_iter().chain(more);
    given.filter(|(name, value)| is_given(value) && !UNCHECKED.contains(&name.as_str())).collect()
}

fn work_rule(flags: &ExperimentFlags) -> Option<String> {
    let printed = flags.work_regex.as_ref().map(|pattern| format!("printed: {pattern}"));
    printed.or_else(|| flags.work.map(|work| format!("{work} a run")))
}

fn invalid(place: &str, cause: String) -> ConfigError {
    ConfigError::Invalid { place: format!("--{place}"), cause }
}
