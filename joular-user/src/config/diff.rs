//! Resolves from flags how two data sets are compared.

use std::path::PathBuf;

use joular_data::report::{
    Format,
    diff::{Choices, CompareBy, FailOn, Per, View, Work},
};

use super::{ConfigError, report::measure};
use crate::cli::DiffFlags;

/// Rows that people see unless they say how many.
const ROWS: usize = 20;

const MARGIN: f64 = 0.05;

/// Values of `--fail-on`. `method` is the older name of `row`.
const FAIL_ON: [(&str, FailOn); 4] =
    [("total", FailOn::Total), ("row", FailOn::Row), ("phase", FailOn::Phase), ("method", FailOn::Row)];

/// Choices of a comparison, from all flags of `diff` but those that select a part.
///
/// # Errors
/// If a flag cannot be understood.
pub fn diff_choices(flags: &DiffFlags) -> Result<Choices, ConfigError> {
    let format = Format::of_flags(flags.json, flags.csv, flags.markdown);
    let per = per(flags)?;
    let of_requests = matches!(per, Per::Request { .. });
    let by = if of_requests { CompareBy::Handler } else { CompareBy::default() };
    let choices = Choices {
        measure: measure(flags.measure.as_deref())?,
        by: match &flags.by {
            Some(name) => one_of("by", Some(name), &CompareBy::ALL.map(|by| (by.name(), by)))?,
            None => by,
        },
        view: one_of("view", flags.view.as_deref(), &[("self", View::Itself), ("total", View::Total)])?,
        per,
        margin: flags.margin.as_deref().map(|text| ratio("margin", text)).transpose()?.unwrap_or(MARGIN),
        fail_above: flags.fail_above.as_deref().map(|text| ratio("fail-above", text)).transpose()?,
        fail_on: one_of("fail-on", flags.fail_on.as_deref(), &FAIL_ON)?,
        top: match (flags.top, format) {
            (None, Format::Json | Format::Csv) | (Some(0), _) => None,
            (top, _) => Some(top.unwrap_or(ROWS)),
        },
        format,
        again_in: (!flags.as_attributed).then(std::env::temp_dir),
    };
    if of_requests && choices.by != CompareBy::Handler {
        return Err(ConfigError::Conflict {
            place: "--per request".to_owned(),
            other: format!("--by {}", choices.by.name()),
            advice: "its rows are routes: leave --by out",
        });
    }
    if of_requests && choices.fail_on == FailOn::Phase {
        return Err(ConfigError::Conflict {
            place: "--per request".to_owned(),
            other: "--fail-on phase".to_owned(),
            advice: "requests are not counted by phase: write --fail-on total or row",
        });
    }
    if choices.view == View::Total && !choices.by.has_total() {
        return Err(ConfigError::Conflict {
            place: "--view total".to_owned(),
            other: format!("--by {}", choices.by.name()),
            advice: "only methods, classes, packages and kinds have a total",
        });
    }
    Ok(choices)
}

fn per(flags: &DiffFlags) -> Result<Per, ConfigError> {
    let is_per_request = flags.per.as_deref() == Some("request");
    match (&flags.requests_a, &flags.requests_b, &flags.per) {
        (Some(a), Some(b), per) if is_per_request || per.is_none() => {
            return Ok(Per::Request { a: a.clone(), b: b.clone() });
        }
        (Some(_), Some(_), Some(other)) => {
            return Err(ConfigError::Conflict {
                place: "--requests-a".to_owned(),
                other: format!("--per {}", other.escape_debug()),
                advice: "requests are counted for --per request",
            });
        }
        _ if is_per_request => {
            let cause = "diff divides by counts in files: give one of each side with --requests-a and --requests-b";
            return Err(invalid("per", cause.to_owned()));
        }
        _ => {}
    }
    match (work("work-a", &flags.work_a)?, work("work-b", &flags.work_b)?) {
        (Some(a), Some(b)) => Ok(Per::Work { a, b }),
        _ => {
            // The last one has been dealt with.
            let request = Per::Request { a: PathBuf::new(), b: PathBuf::new() };
            let names = [
                ("time", Per::Time),
                ("cpu", Per::Cpu),
                ("run", Per::Run),
                ("none", Per::Nothing),
                ("request", request),
            ];
            one_of("per", flags.per.as_deref(), &names)
        }
    }
}

/// # Errors
/// If a count of work is none.
pub(super) fn expect_work(place: &str, counts: &[f64]) -> Result<(), ConfigError> {
    match counts.iter().find(|count| !(count.is_finite() && **count > 0.0)) {
        Some(count) => Err(invalid(place, format!("{count} is not an amount of work: give a number above 0"))),
        None => Ok(()),
    }
}

fn work(place: &str, counts: &[f64]) -> Result<Option<Work>, ConfigError> {
    expect_work(place, counts)?;
    Ok(match counts {
        [] => None,
        [count] => Some(Work::Whole(*count)),
        counts => Some(Work::OfRuns(counts.to_vec())),
    })
}

fn one_of<T: Clone + Default>(place: &str, text: Option<&str>, names: &[(&str, T)]) -> Result<T, ConfigError> {
    let Some(text) = text else { return Ok(T::default()) };
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let all: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        invalid(place, format!("'{text}' is not one of {}", all.join(", ")))
    })
}

/// `5%` or `5`, as a ratio.
fn ratio(place: &str, text: &str) -> Result<f64, ConfigError> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number
        .map(|number| number / 100.0)
        .ok_or_else(|| invalid(place, format!("'{text}' is not a percentage: write e.g. 5%")))
}

fn invalid(place: &str, cause: String) -> ConfigError {
    ConfigError::Invalid { place: format!("--{place}"), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_means_watts_by_method() {
        let choices = diff_choices(&DiffFlags::default()).unwrap();
        assert_eq!((choices.by, choices.view, choices.per), (CompareBy::Method, View::Itself, Per::Time));
        assert_eq!((choices.margin, choices.fail_above, choices.top), (MARGIN, None, Some(ROWS)));
        let json = diff_choices(&DiffFlags { json: true, ..DiffFlags::default() }).unwrap();
        assert_eq!(json.top, None, "programs get all rows");
        assert!(choices.again_in.is_some(), "sides are attributed alike");
        let as_attributed = diff_choices(&DiffFlags { as_attributed: true, ..DiffFlags::default() }).unwrap();
        assert_eq!(as_attributed.again_in, None);
    }

    #[test]
    fn requests_are_counted_in_a_file_of_each_side_and_rows_are_routes() {
        let some = |text: &str| Some(text.to_owned());
        let files = || DiffFlags { requests_a: Some("a".into()), requests_b: Some("b".into()), ..DiffFlags::default() };
        for flags in [files(), DiffFlags { per: some("request"), by: some("handler"), ..files() }] {
            let choices = diff_choices(&flags).unwrap();
            assert_eq!(choices.per, Per::Request { a: "a".into(), b: "b".into() });
            assert_eq!(choices.by, CompareBy::Handler);
        }
        for (flags, expected) in [
            (DiffFlags { per: some("run"), ..files() }, "--requests-a cannot be used with --per run"),
            (DiffFlags { by: some("method"), ..files() }, "--per request cannot be used with --by method"),
            (DiffFlags { fail_on: some("phase"), ..files() }, "--per request cannot be used with --fail-on phase"),
            (DiffFlags { per: some("request"), ..DiffFlags::default() }, "--per: diff divides by counts in files"),
        ] {
            let message = diff_choices(&flags).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn a_gate_on_any_row_is_named_row_or_method() {
        for (name, expected) in FAIL_ON {
            let flags = DiffFlags { fail_on: Some(name.to_owned()), ..DiffFlags::default() };
            assert_eq!(diff_choices(&flags).unwrap().fail_on, expected, "{name}");
        }
    }

    #[test]
    fn percentages_are_ratios_with_or_without_their_sign() {
        for (text, expected) in [("5%", 0.05), ("5", 0.05), ("0.5 %", 0.005), ("0", 0.0)] {
            assert_eq!(ratio("margin", text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let some = |text: &str| Some(text.to_owned());
        let none = DiffFlags::default;
        for (flags, expected) in [
            (DiffFlags { by: some("line"), ..none() }, "--by: 'line' is not one of method, class"),
            (DiffFlags { per: some("day"), ..none() }, "--per: 'day' is not one of time, cpu, run, none, request"),
            (
                DiffFlags { measure: some("watts"), ..none() },
                "--measure: 'watts' is not a measure: use one of energy, ",
            ),
            (DiffFlags { fail_above: some("-1%"), ..none() }, "--fail-above: '-1%' is not a percentage"),
            (DiffFlags { margin: some("inf"), ..none() }, "--margin: 'inf' is not a percentage"),
            (DiffFlags { work_a: vec![3.0, 0.0], work_b: vec![1.0], ..none() }, "--work-a: 0 is not an amount of work"),
            (DiffFlags { by: some("thread"), view: some("total"), ..none() }, "--view total cannot be used"),
        ] {
            let message = diff_choices(&flags).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
