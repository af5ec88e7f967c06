//! Says why a selection is empty, for what would show nothing.

use std::path::Path;

use super::profile::{Filter, Profile};
use crate::dataset::error::{DataSetError, Result};

/// Processes that an error names.
const NAMED: usize = 5;

/// # Errors
/// If nothing at all was recorded of the selection.
pub(super) fn expect_any(path: &Path, profile: &Profile, filter: &Filter) -> Result<()> {
    if !profile.entries.is_empty() || profile.measures_apart().any(|measure| profile.measured.amount(measure) > 0) {
        return Ok(());
    }
    Err(DataSetError::NothingSelected { path: path.to_owned(), there: there_is(profile, filter) })
}

/// What there is to select from.
fn there_is(profile: &Profile, filter: &Filter) -> String {
    let mut names: Vec<String> = profile.catalog.processes.iter().map(|process| process.title().to_string()).collect();
    // Of those that may not be seen no name is known.
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let time = match (filter.since, filter.until) {
        (None, None) => "",
        _ => "; --since and --until are times in UTC, or times into the run",
    };
    match names.as_slice() {
        [] => format!("no process of the data set was recorded yet{time}"),
        names => format!("there are processes {}{more}{time}", names.join(", ")),
    }
}
