//! Reads how many requests there were of each route: a CSV file.
//!
//! Columns `route` and `count` are needed. `handler` is a pattern of its handlers' names, else that of another row of the
//! route, else the route itself is. `begin` and `end` say when requests were counted, else it was all the time that is
//! looked at. A route may have several rows.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    path::Path,
    sync::Arc,
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
/// Rows of them: each is compared with each handler.
const MOST_ROWS: usize = 10_000;
/// Rows of a file: of two hundred routes, counted every ten seconds, those of half a day.
const MOST_LINES: usize = 1_000_000;

/// When requests were counted; without an end, as far as the selection goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) struct Counted {
    pub(in crate::report) begin: Option<UnixMicros>,
    pub(in crate::report) end: Option<UnixMicros>,
}

/// Requests of a route in a span.
#[derive(Clone, Debug)]
pub(in crate::report) struct Row {
    /// Place in [`Counts::routes`].
    pub(in crate::report) route: usize,
    pub(in crate::report) count: u64,
    /// Equal patterns are one.
    handlers: Arc<Names>,
    /// Whether a method can have such a name.
    is_of_methods: bool,
}

impl Row {
    /// Whether a handler serves the route: its pattern fits `package.Class.method`, or only `Class.method`.
    pub(in crate::report) fn is_served_by(&self, handler: &str) -> bool {
        let class = handler.rfind('.').and_then(|name| handler.get(..name)?.rfind('.'));
        let short = class.and_then(|package| handler.get(package + 1..)).unwrap_or(handler);
        self.is_of_methods && (self.handlers.allow(handler) || self.handlers.allow(short))
    }

    /// Whether two rows mean the same handlers.
    pub(in crate::report) fn is_like(&self, other: &Self) -> bool {
        self.route == other.route && Arc::ptr_eq(&self.handlers, &other.handlers)
    }
}

/// Rows of a span, by route.
pub(in crate::report) type Rows = BTreeMap<usize, Row>;

/// A file of counts.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Counts {
    pub(in crate::report) routes: Vec<TargetText>,
    pub(in crate::report) by_span: BTreeMap<Counted, Rows>,
}

#[derive(Deserialize)]
struct Line {
    route: String,
    count: u64,
    handler: Option<String>,
    begin: Option<String>,
    end: Option<String>,
}

pub(in crate::report) fn read(path: &Path) -> Result<Counts, RequestsError> {
    let failed = |cause| RequestsError::Read { path: path.to_owned(), cause };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(failed)?;
    let mut reading = Reading::default();
    for (row, line) in reader.deserialize().enumerate() {
        if row >= MOST_LINES {
            return Err(RequestsError::Rows { path: path.to_owned(), most: MOST_LINES });
        }
        reading.add(line.map_err(failed)?).map_err(|cause| RequestsError::Row {
            path: path.to_owned(),
            // The first one has the names of columns.
            row: row + 2,
            cause,
        })?;
    }
    if reading.by_span.is_empty() {
        return Err(RequestsError::Empty { path: path.to_owned() });
    }
    Ok(reading.finish())
}

impl Counts {
    /// By route: all its requests.
    pub(in crate::report) fn requests(&self) -> Vec<u64> {
        let mut requests = vec![0_u64; self.routes.len()];
        for row in self.by_span.values().flat_map(BTreeMap::values) {
            requests[row.route] = requests[row.route].saturating_add(row.count);
        }
        requests
    }

    /// Times that follow each other and have the same handlers are one: no window is divided where one ends and the next
    /// begins.
    ///
    /// # Errors
    /// If there are too many for the data set to be read for each.
    pub(super) fn joined(&self, path: &Path) -> Result<Vec<(Counted, Vec<Row>)>, RequestsError> {
        let mut joined: Vec<(Counted, Rows)> = Vec::new();
        for (span, rows) in &self.by_span {
            match joined.last_mut() {
                Some((before, sums)) if before.end.is_some() && before.end == span.begin && are_alike(sums, rows) => {
                    before.end = span.end;
                    for row in rows.values() {
                        match sums.entry(row.route) {
                            Entry::Occupied(mut sum) => {
                                sum.get_mut().count = sum.get().count.saturating_add(row.count);
                            }
                            Entry::Vacant(place) => {
                                place.insert(row.clone());
                            }
                        }
                    }
                }
                _ => joined.push((*span, rows.clone())),
            }
        }
        let spans = joined.len();
        if spans > MOST_SPANS {
            return Err(RequestsError::Spans { path: path.to_owned(), spans, most: MOST_SPANS });
        }
        if joined.iter().map(|(_, rows)| rows.len()).sum::<usize>() > MOST_ROWS {
            return Err(RequestsError::Rows { path: path.to_owned(), most: MOST_ROWS });
        }
        Ok(joined.into_iter().map(|(span, rows)| (span, rows.into_values().collect())).collect())
    }
}

/// Whether two times have the same rows, but for those that no handler can serve.
fn are_alike(one: &Rows, other: &Rows) -> bool {
    let mut one = one.values().filter(|row| row.is_of_methods);
    let mut other = other.values().filter(|row| row.is_of_methods);
    one.all(|row| other.next().is_some_and(|next| row.is_like(next))) && other.next().is_none()
}

/// A file of which lines are being read.
#[derive(Default)]
struct Reading {
    routes: Vec<TargetText>,
    numbers: HashMap<String, usize>,
    patterns: HashMap<String, Arc<Names>>,
    /// By route: the pattern of the first row that has one.
    handlers: Vec<Option<Arc<Names>>>,
    by_span: BTreeMap<Counted, Lines>,
}

/// Lines of a span, by route: the count, and the pattern of handlers if the line has one.
type Lines = BTreeMap<usize, (u64, Option<Arc<Names>>)>;

impl Reading {
    fn add(&mut self, line: Line) -> Result<(), String> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let span = Counted { begin: moment(some(line.begin))?, end: moment(some(line.end))? };
        if span.begin.is_some() && span.end.is_some() && span.end <= span.begin {
            return Err("end is not after begin".to_owned());
        }
        let handlers = some(line.handler).map(|pattern| self.pattern(pattern)).transpose()?;
        let route = match self.numbers.get(&line.route) {
            Some(route) => *route,
            None => {
                self.routes.push(line.route.as_str().into());
                self.handlers.push(None);
                self.numbers.insert(line.route, self.routes.len() - 1);
                self.routes.len() - 1
            }
        };
        self.handlers[route] = self.handlers[route].take().or_else(|| handlers.clone());
        match self.by_span.entry(span).or_default().entry(route) {
            Entry::Occupied(_) => Err("there is a count of this route and this time already".to_owned()),
            Entry::Vacant(place) => {
                place.insert((line.count, handlers));
                Ok(())
            }
        }
    }

    /// Compiles each pattern once.
    fn pattern(&mut self, pattern: String) -> Result<Arc<Names>, String> {
        if let Some(known) = self.patterns.get(&pattern) {
            return Ok(Arc::clone(known));
        }
        let names = Arc::new(Names::parse(std::slice::from_ref(&pattern)).map_err(|error| error.to_string())?);
        self.patterns.insert(pattern, Arc::clone(&names));
        Ok(names)
    }

    fn finish(mut self) -> Counts {
        let mut of_routes = Vec::new();
        for route in 0..self.routes.len() {
            let name = self.routes[route].raw().to_owned();
            let is_name = !name.contains(['/', ' ']);
            // What stands for a route in an application need not be a pattern, and then no method has such a name.
            let (handlers, is_of_methods) = match (self.handlers[route].take(), self.pattern(name)) {
                (Some(of_another_row), _) => (of_another_row, true),
                (None, Ok(of_route)) => (of_route, is_name),
                (None, Err(_)) => (Arc::default(), false),
            };
            of_routes.push((handlers, is_of_methods));
        }
        let row = |(route, (count, own)): (usize, (u64, Option<Arc<Names>>))| {
            let (of_route, is_of_methods) = &of_routes[route];
            let handlers = own.unwrap_or_else(|| Arc::clone(of_route));
            (route, Row { route, count, handlers, is_of_methods: *is_of_methods })
        };
        let by_span = self.by_span.into_iter().map(|(span, rows)| (span, rows.into_iter().map(row).collect()));
        Counts { by_span: by_span.collect(), routes: self.routes }
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
        let counts = read(file.path()).map_err(|error| error.to_string())?;
        counts.joined(file.path()).map_err(|error| error.to_string())?;
        Ok(counts)
    }

    fn at(second: i64) -> Option<UnixMicros> {
        Some(UnixMicros(second * 1_000_000))
    }

    #[test]
    fn a_route_has_a_count_a_time_and_a_pattern_of_its_handlers() {
        let counts = parsed(
            "route, count, handler, begin, end\n/cart, 10, CartController.*, 1970-01-01T00:00:01Z, 2.5\n/pay, 4, , 1, 2.5\n\
             /cart, 5, CartController.*, 3, 4\n",
        );
        let counts = counts.unwrap();
        assert_eq!((counts.requests(), counts.routes), (vec![15, 4], vec!["/cart".into(), "/pay".into()]));
        let spans: Vec<_> = counts.by_span.iter().map(|(span, rows)| (span.begin, span.end, rows.len())).collect();
        assert_eq!(spans, [(at(1), Some(UnixMicros(2_500_000)), 2), (at(3), at(4), 1)]);
    }

    #[test]
    fn a_pattern_fits_with_and_without_the_package() {
        let counts = parsed("route,count\nCartController.add,1\n").unwrap();
        let row = &counts.by_span[&Counted::default()][&0];
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
    fn one_row_of_a_route_names_its_handler_for_all() {
        let text = "route,count,handler,begin,end\n\
                    GET /a,1,,1,2\nGET /a,2,A.get,2,3\nGET /a,3,B.get,3,4\nGET /[,4,,1,2\n[,5,,1,2\n";
        let counts = parsed(text).unwrap();
        let served = |begin, end, route: usize| {
            let row = &counts.by_span[&Counted { begin: at(begin), end: at(end) }][&route];
            ["A.get", "B.get"].map(|handler| row.is_served_by(handler))
        };
        assert_eq!(served(1, 2, 0), [true, false]);
        assert_eq!(served(2, 3, 0), [true, false]);
        assert_eq!(served(3, 4, 0), [false, true]);
        // These are no patterns, and name no method.
        assert_eq!((served(1, 2, 1), served(1, 2, 2)), ([false; 2], [false; 2]));
    }

    #[test]
    fn times_that_follow_each_other_are_one_if_handlers_are_the_same() {
        let text = "route,count,handler,begin,end\n\
                    a,1,A.get,1,2\na,2,,2,3\nGET /new,9,,2,3\na,3,,4,5\na,4,A.get,5,6\nb,5,B.get,5,6\na,6,,6,\nb,7,,6,\n";
        let counts = parsed(text).unwrap();
        assert_eq!(counts.requests(), [16, 9, 12]);
        let joined: Vec<_> = counts
            .joined(Path::new(""))
            .unwrap()
            .into_iter()
            .map(|(span, rows)| (span.begin, span.end, rows.iter().map(|row| row.count).collect::<Vec<_>>()))
            .collect();
        let expected = [(at(1), at(3), vec![3_u64, 9]), (at(4), at(5), vec![3]), (at(5), None, vec![10, 12])];
        assert_eq!(joined, expected);
        let many: String = (0..5000).map(|second| format!("a,1,{second},{}\n", second + 1)).collect();
        let counts = parsed(&format!("route,count,begin,end\n{many}")).unwrap();
        assert_eq!((counts.by_span.len(), counts.joined(Path::new("")).unwrap().len()), (5000, 1));
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
        let many: String = (0..101).map(|second| format!("/a,1,{},{}\n", 2 * second, 2 * second + 1)).collect();
        assert!(parsed(&format!("route,count,begin,end\n{many}")).unwrap_err().contains("of 101 different times"));
    }
}
