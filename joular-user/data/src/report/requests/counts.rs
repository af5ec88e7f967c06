//! Reads how many requests there were of each route: a CSV file.
//!
//! Columns `route` and `count` are needed. `handler` is a pattern of its handlers' names, else the route itself is. `begin` and
//! `end` say when requests were counted, else it was all the time that is looked at. A route may have several rows.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use jiff::Timestamp;
use serde::Deserialize;

use super::RequestsError;
use crate::{
    model::{target_text::TargetText, units::UnixMicros},
    report::profile::Names,
};

/// The data set is read once for each.
const MOST_SPANS: usize = 100;
/// Rows of a file: each is compared with each handler.
const MOST_ROWS: usize = 10_000;

/// When requests were counted; without an end, as far as the selection goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counted {
    pub(super) begin: Option<UnixMicros>,
    pub(super) end: Option<UnixMicros>,
}

/// Requests of a route in a span.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Place in [`Counts::routes`].
    pub(super) route: usize,
    handlers: Names,
}

impl Row {
    /// Whether a handler serves the route: its pattern fits `package.Class.method`, or only `Class.method`.
    pub(super) fn is_served_by(&self, handler: &str) -> bool {
        let class = handler.rfind('.').and_then(|name| handler.get(..name)?.rfind('.'));
        let short = class.and_then(|package| handler.get(package + 1..)).unwrap_or(handler);
        self.handlers.allow(handler) || self.handlers.allow(short)
    }
}

/// A file of counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) routes: Vec<TargetText>,
    /// By route: all its requests.
    pub(super) requests: Vec<u64>,
    pub(super) by_span: BTreeMap<Counted, Vec<Row>>,
}

#[derive(Deserialize)]
struct Line {
    route: String,
    count: u64,
    handler: Option<String>,
    begin: Option<String>,
    end: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Counts, RequestsError> {
    let failed = |cause| RequestsError::Read { path: path.to_owned(), cause };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(failed)?;
    let (mut counts, mut numbers) = (Counts::default(), HashMap::new());
    for (row, line) in reader.deserialize().enumerate() {
        if row >= MOST_ROWS {
            return Err(RequestsError::Rows { path: path.to_owned(), most: MOST_ROWS });
        }
        counts.add(&mut numbers, line.map_err(failed)?).map_err(|cause| RequestsError::Row {
            path: path.to_owned(),
            // The first one has the names of columns.
            row: row + 2,
            cause,
        })?;
    }
    match counts.by_span.len() {
        0 => Err(RequestsError::Empty { path: path.to_owned() }),
        spans if spans > MOST_SPANS => Err(RequestsError::Spans { path: path.to_owned(), spans, most: MOST_SPANS }),
        _ => Ok(counts),
    }
}

impl Counts {
    fn add(&mut self, numbers: &mut HashMap<String, usize>, line: Line) -> Result<(), String> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let span = Counted { begin: moment(some(line.begin))?, end: moment(some(line.end))? };
        if span.begin.is_some() && span.end.is_some() && span.end <= span.begin {
            return Err("end is not after begin".to_owned());
        }
        let pattern = some(line.handler).unwrap_or_else(|| line.route.clone());
        let handlers = Names::parse(&[pattern]).map_err(|error| error.to_string())?;
        let route = *numbers.entry(line.route).or_insert_with_key(|name| {
            self.routes.push(name.as_str().into());
            self.requests.push(0);
            self.routes.len() - 1
        });
        self.requests[route] = self.requests[route].saturating_add(line.count);
        let rows = self.by_span.entry(span).or_default();
        if rows.iter().any(|row| row.route == route) {
            return Err("there is a count of this route and this time already".to_owned());
        }
        rows.push(Row { route, handlers });
        Ok(())
    }
}

/// A time of RFC 3339, or seconds since 1970.
fn moment(text: Option<String>) -> Result<Option<UnixMicros>, String> {
    let Some(text) = text else { return Ok(None) };
    let stamp = text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond);
    #[allow(clippy::cast_possible_truncation, reason = "microseconds since 1970, bounded")]
    let seconds = || text.parse::<f64>().ok().filter(|s| (0.0..1e11).contains(s)).map(|s| (s * 1e6).round() as i64);
    match stamp.or_else(seconds) {
        Some(micros) => Ok(Some(UnixMicros(micros))),
        None => {
            Err(format!("'{}' is not a time: write 2026-03-01T12:00:00Z, or seconds since 1970", text.escape_debug()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Counts, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_route_has_a_count_a_time_and_a_pattern_of_its_handlers() {
        let counts = parsed(
            "route, count, handler, begin, end\n/cart, 10, CartController.*, 1970-01-01T00:00:01Z, 2.5\n/pay, 4, , 1, 2.5\n\
             /cart, 5, CartController.*, 3, 4\n",
        );
        let counts = counts.unwrap();
        assert_eq!((counts.routes, counts.requests), (vec!["/cart".into(), "/pay".into()], vec![15, 4]));
        let spans: Vec<_> = counts.by_span.iter().map(|(span, rows)| (span.begin, span.end, rows.len())).collect();
        let at = |micros| Some(UnixMicros(micros));
        assert_eq!(spans, [(at(1_000_000), at(2_500_000), 2), (at(3_000_000), at(4_000_000), 1)]);
    }

    #[test]
    fn a_pattern_fits_with_and_without_the_package() {
        let counts = parsed("route,count\nCartController.add,1\n").unwrap();
        let row = &counts.by_span[&Counted::default()][0];
        for (handler, expected) in [
            ("shop.CartController.add", true),
            ("CartController.add", true),
            ("shop.MyCartController.add", false),
            ("shop.CartController.addAll", false),
            ("add", false),
        ] {
            assert_eq!(row.is_served_by(handler), expected, "{handler}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_its_row() {
        for (text, expected) in [
            ("route,count\n", "there is none"),
            ("route\n/a\n", "missing field `count`"),
            ("route,count\n/a,-1\n", "reading counts of requests"),
            ("route,count,begin\n/a,1,noon\n", "row 2: 'noon' is not a time"),
            ("route,count,begin,end\n/a,1,5,5\n", "row 2: end is not after begin"),
            ("route,count\n/a,1\n/a,1\n", "row 3: there is a count of this route"),
            ("route,count,handler\n/a,1,[\n", "row 2: '[' is not a pattern"),
        ] {
            let message = parsed(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        let many: String = (0..=10_000).map(|route| format!("/{route},1\n")).collect();
        assert!(parsed(&format!("route,count\n{many}")).unwrap_err().contains("more than 10000 rows"));
        let many: String = (0..101).map(|second| format!("/a,1,{second},{}\n", second + 1)).collect();
        assert!(parsed(&format!("route,count,begin,end\n{many}")).unwrap_err().contains("of 101 different times"));
    }
}
