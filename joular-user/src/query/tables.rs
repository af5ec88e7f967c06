//! Tables of a part of the data set, as `report --json` prints them.

use std::path::Path;

use joular_data::{
    fleet::choice::View,
    report::{
        profile::Filter,
        ranking::{By, Look, Sort, command},
    },
};
use serde_json::{Map, Value};

use super::{Part, Query, Refusal};
use crate::{cli::ReportFlags, config};

/// Rows of a table unless somebody says how many, as `report` has them.
pub const ROWS: usize = 20;
const MOST_ROWS: usize = 1_000_000;

/// What tables show that are asked for (`by`): a name that is none is refused when they are understood.
pub fn views(query: &Query) -> Vec<View> {
    let rows = query.many("by");
    let named = rows.iter().filter_map(|name| By::named(name));
    let by = if rows.is_empty() { vec![By::Method] } else { named.collect() };
    by.into_iter().map(View::Table).collect()
}

/// Understands which tables are wanted (`by`, `measure`, `view`, `top`).
///
/// # Errors
/// If a value cannot be understood, or does not fit another.
pub fn request(query: &Query, Part { filter, app }: Part) -> Result<command::Request, Refusal> {
    let by = Some(query.many("by")).filter(|by| !by.is_empty()).unwrap_or_else(|| vec![By::Method.name().to_owned()]);
    let flags = ReportFlags {
        by,
        measure: query.one("measure").map(str::to_owned),
        top: query.number("top", 0..=MOST_ROWS, ROWS)?,
        sort: query.one("view").unwrap_or(Sort::Own.name()).to_owned(),
        json: true,
        ..ReportFlags::default()
    };
    let request = config::report_request(&flags, None)?;
    let filter = Filter { handler_rules: request.filter.handler_rules.clone(), ..filter };
    Ok(command::Request { filter, app, ..request })
}

/// Reads the tables as an object.
///
/// # Errors
/// If the data set cannot be read, or has nothing of the measure.
pub fn value(place: &Path, request: &command::Request) -> Result<Map<String, Value>, Refusal> {
    match command::value(place, request)? {
        Value::Object(report) => Ok(report),
        _ => Err(Refusal::broken("a report is not an object".to_owned())),
    }
}

/// The same as `report --json` prints it.
///
/// # Errors
/// As [`value`].
pub fn read(place: &Path, request: &command::Request) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::new();
    let said = command::run(place, request, Look::default(), &mut body)?;
    said.written.map_err(|error| Refusal::broken(error.to_string()))?;
    Ok(body)
}
