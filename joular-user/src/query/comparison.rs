//! Compares two parts of the data set, as `diff` does.

use std::path::Path;

use joular_data::report::diff::{self, Choices, Comparison};

use super::{Part, Query, Refusal};
use crate::{cli::DiffFlags, config};

const MOST_ROWS: usize = 1_000_000;

/// Choices as `diff` has them (`measure`, `by`, `view`, `per`, `top`).
///
/// # Errors
/// If a value cannot be understood, or does not fit another.
pub fn choices(query: &Query) -> Result<Choices, Refusal> {
    let text = |name: &str| query.one(name).map(str::to_owned);
    let top = query.one("top").map(|_| query.number("top", 0..=MOST_ROWS, 0)).transpose()?;
    if query.one("per") == Some("request") {
        return Err(Refusal::bad("per: 'request' is not one of time, cpu, run, none".to_owned()));
    }
    let flags = DiffFlags {
        measure: text("measure"),
        by: text("by"),
        view: text("view"),
        per: text("per"),
        top,
        as_attributed: true,
        json: true,
        ..DiffFlags::default()
    };
    Ok(config::diff_choices(&flags)?)
}

/// Compares both sides.
///
/// # Errors
/// If the data set cannot be read, or has nothing of the measure.
pub fn of(place: &Path, [left, right]: &[Part; 2], choices: &Choices) -> Result<Comparison, Refusal> {
    Ok(diff::run_parts(place, [&left.filter, &right.filter], left.app.as_ref(), choices)?)
}

/// The comparison as `diff --json` prints it.
///
/// # Errors
/// As [`of`].
pub fn read(place: &Path, sides: &[Part; 2], choices: &Choices) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::new();
    let written = of(place, sides, choices)?.write(choices, None, &mut body);
    written.map_err(|error| Refusal::broken(error.to_string()))?;
    Ok(body)
}
