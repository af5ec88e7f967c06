//! Resolves what an experiment runs.

use std::{collections::BTreeMap, time::Duration};

use joular_data::{experiment::plot::PlotFormat, redact::Redaction, text::count};
use serde_json::{Map, Value, json};

use super::{ConfigError, duration::parse_duration};
use crate::{
    cli::{ExperimentFlags, RunFlags, refused::BY_EXPERIMENTS},
    experiment::{
        Circumstances,
        around::Around,
        conduct::Experiment,
        log::Until,
        plan::{self, Variant},
        work::is_amount,
    },
    privileges,
};

/// Runs of each variant, if there is something to compare and nothing else is said.
const REPEAT: u32 = 3;
const MAX_REPEAT: u32 = 100_000;
/// Runs of each variant at most, if they go on until intervals are narrow, and at least. Of fewer runs, what they vary
/// by is so uncertain that an interval is often narrow by chance.
const MOST_UNTIL: u32 = 100;
const LEAST_UNTIL: u32 = 10;
/// Variants that a message names.
const NAMED: usize = 8;
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
    let repeat = chosen.repeat.unwrap_or(match chosen.until_interval {
        Some(_) => MOST_UNTIL,
        None if is_comparison => REPEAT,
        None => 1,
    });
    if repeat == 0 || repeat > MAX_REPEAT {
        return Err(invalid("repeat", format!("{repeat} is not between 1 and {MAX_REPEAT}")));
    }
    if let Some(work) = chosen.work.filter(|work| !is_amount(*work)) {
        return Err(invalid("work", format!("{work} is not an amount of work: give a number above 0")));
    }
    if let Some(path) = &chosen.export_plot {
        PlotFormat::of(path).map_err(|error| invalid("export-plot", error.to_string()))?;
    }
    let cool_down = chosen.cool_down.as_deref().map(parse_duration).transpose();
    let around = around(chosen, &variants)?;
    Ok(Experiment {
        variants,
        repeat,
        until: until(chosen, repeat)?,
        warmup: chosen.warmup.unwrap_or_default(),
        cool_down: cool_down.map_err(|error| invalid("cool-down", error.to_string()))?.unwrap_or(Duration::ZERO),
        around,
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

/// When fewer runs than `repeat` are enough.
fn until(flags: &ExperimentFlags, repeat: u32) -> Result<Option<Until>, ConfigError> {
    let Some(text) = flags.until_interval.as_deref() else {
        return match flags.min_runs {
            None => Ok(None),
            Some(_) => {
                Err(invalid("min-runs", "give --until-interval PERCENT, too: it ends the experiment".to_owned()))
            }
        };
    };
    let percent = text.trim().strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let percent = percent.filter(|percent| *percent > 0.0 && *percent < 100.0).ok_or_else(|| {
        invalid("until-interval", format!("'{text}' is not a percentage between 0 and 100: write e.g. 2%"))
    })?;
    let min_runs = flags.min_runs.unwrap_or_else(|| LEAST_UNTIL.min(repeat));
    if min_runs < 2 || min_runs > repeat {
        return Err(invalid("min-runs", format!("{min_runs} is not between 2 and {repeat}, as --repeat says")));
    }
    Ok(Some(Until { percent, min_runs }))
}

/// The commands around runs, if there are as many as variants need.
fn around(flags: &ExperimentFlags, variants: &[Variant]) -> Result<Around, ConfigError> {
    let around = Around { prepare: flags.prepare.clone(), cleanup: flags.cleanup.clone(), user: None };
    let Some((side, commands)) = around.unfit(variants.len()) else { return Ok(around) };
    let names: Vec<&str> = variants.iter().take(NAMED).map(|variant| variant.name.as_str()).collect();
    let more = if variants.len() > NAMED { ", …" } else { "" };
    let each = match variants.len() {
        1 => String::new(),
        _ => format!(" for all, or once for each, in this order: {}{more}", names.join(", ")),
    };
    let place = side.option().trim_start_matches("--");
    let variants = count(variants.len(), "variant");
    Err(invalid(place, format!("{} for {variants}: give it once{each}", count(commands, "command"))))
}

/// One text as it is, several as a list.
fn one_or_each(commands: &[String]) -> Value {
    match commands {
        [one] => json!(one),
        each => json!(each),
    }
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
        "prepare": one_or_each(&flags.experiment.prepare),
        "cleanup": one_or_each(&flags.experiment.cleanup),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn resolved(options: &[&str]) -> Result<Experiment, ConfigError> {
        let words = [&["joular-bpf", "run"][..], options, &["--", "sleep", "1"]].concat();
        match cli::parse(words.into_iter().map(Into::into)).unwrap().command {
            Some(Command::Run(flags)) => experiment(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn runs_go_on_until_intervals_are_narrow_within_bounds() {
        for (options, repeat, until) in [
            (&["--repeat", "7"][..], 7, None),
            (&["--until-interval", "2%"], 100, Some((2.0, 10))),
            (&["--until-interval", " 2.5 % "], 100, Some((2.5, 10))),
            (&["--until-interval", "0.1", "--min-runs", "2", "--repeat", "30"], 30, Some((0.1, 2))),
            (&["--until-interval", "5", "--repeat", "4"], 4, Some((5.0, 4))),
        ] {
            let found = resolved(options).unwrap();
            let until = until.map(|(percent, min_runs)| Until { percent, min_runs });
            assert_eq!((found.repeat, found.until), (repeat, until), "{options:?}");
        }
    }

    #[test]
    fn what_bounds_nothing_is_told() {
        for (options, expected) in [
            (&["--min-runs", "5"][..], "--min-runs: give --until-interval"),
            (&["--until-interval", "0"], "--until-interval: '0' is not a percentage"),
            (&["--until-interval=-1%"], "--until-interval: '-1%' is not a percentage"),
            (&["--until-interval", "NaN"], "'NaN' is not a percentage"),
            (&["--until-interval", "2%%"], "'2%%' is not a percentage"),
            (&["--until-interval", "narrow"], "'narrow' is not a percentage"),
            (&["--until-interval", "2", "--min-runs", "1"], "--min-runs: 1 is not between 2 and 100"),
            (&["--until-interval", "2", "--min-runs", "9", "--repeat", "8"], "--min-runs: 9 is not between 2 and 8"),
        ] {
            let error = resolved(options).unwrap_err().to_string();
            assert!(error.contains(expected), "{options:?}: {error}");
        }
    }

    #[test]
    fn commands_around_runs_are_among_what_must_stay() {
        let found = resolved(&["--prepare", "make clean", "--cleanup", "true"]).unwrap();
        assert_eq!(found.circumstances.options.get("prepare"), Some(&json!("make clean")));
        assert_eq!(found.circumstances.options.get("cleanup"), Some(&json!("true")));
        let options = |line: &[&str]| resolved(line).unwrap().circumstances.options;
        assert_eq!(options(&["--until-interval", "2", "--repeat", "50"]), options(&[]), "more runs may be asked for");
    }

    fn of_variants(options: &[&str]) -> Result<Experiment, ConfigError> {
        let variants = ["--variant", "old=true", "--variant", "new=false"];
        let words = [&["joular-bpf", "run"][..], &variants, options].concat();
        match cli::parse(words.into_iter().map(Into::into)).unwrap().command {
            Some(Command::Run(flags)) => experiment(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_around_runs_are_for_all_variants_or_one_for_each() {
        let found = of_variants(&["--prepare", "a", "--prepare", "b", "--cleanup", "c"]).unwrap();
        assert_eq!((found.around.prepare, found.around.cleanup), (vec!["a".into(), "b".into()], vec!["c".into()]));
        assert_eq!(found.circumstances.options.get("prepare"), Some(&json!(["a", "b"])));
        assert_eq!(found.circumstances.options.get("cleanup"), Some(&json!("c")));
        let three = ["--cleanup", "a", "--cleanup", "b", "--cleanup", "c"];
        let refused = of_variants(&three).unwrap_err().to_string();
        let expected =
            "--cleanup: 3 commands for 2 variants: give it once for all, or once for each, in this order: old, new";
        assert!(refused.contains(expected), "{refused}");
        let refused = resolved(&three[..4]).unwrap_err().to_string();
        assert!(refused.ends_with("--cleanup: 2 commands for 1 variant: give it once"), "{refused}");
    }

    #[test]
    fn a_plot_has_a_format_by_its_name() {
        for path in ["a.svg", "A.PDF", "-"] {
            assert!(resolved(&["--export-plot", path]).is_ok(), "{path}");
        }
        let refused = resolved(&["--export-plot", "a.png"]).unwrap_err().to_string();
        assert!(refused.contains("--export-plot: a.png ends in neither .svg nor .pdf"), "{refused}");
    }
}
