//! Finds figures for answers: those of `report --json`, `diff --json` and `audit --json`, with joules beside microjoules.

use joular_data::{
    dataset::audit,
    fleet::choice::View,
    model::units::{MicroJoules, UnixMicros},
    report::{
        profile::{Filter, Names, Profile, Stop},
        ranking::{
            By, RankedRow, Ranking, Sort,
            groups::Groups,
            json,
            neighbours::{self, Side},
            rows::Cut,
        },
    },
};
use serde_json::{Map, Value, json};

use super::tools::{Found, Work, rows};
use crate::query::{Part, Query, Refusal, SIDES, comparison, tables};

/// Lines of a flame graph, unless a call says how many, and at most.
const LINES: usize = 50;
pub const MOST_LINES: usize = 200;

/// What is said of an answer's data beside its tables, as a report has it.
const KEYS: [&str; 11] = [
    "energy_label",
    "energy_sources",
    "selection",
    "audit",
    "interval_note",
    "unnamed_uj",
    "losses",
    "ambiguous_readings",
    "failed_readings",
    "warnings",
    "hints",
];

/// What a report has of these at a place that hosts ship to.
const SOURCE: [&str; 4] = ["tier", "resolution", "is_joined", "tier_reason"];

/// Its lists that may be cut.
const LISTS: [&str; 4] = ["/warnings", "/hints", "/skipped", "/extent/hosts"];

pub fn services(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    of_tables(&query.with("by", Some(&[By::Service, By::Process].map(By::name).join(","))), now, stop)
}

pub fn top(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    of_tables(query, now, stop)
}

fn of_tables(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    let top = rows(query)?;
    let part = query.part_showing(tables::views(query), now, stop)?;
    let request = tables::request(&query.with("top", Some(&top.to_string())), part)?;
    Ok(Box::new(move |place| Ok(with_tables(tables::value(place, &request)?))))
}

pub fn flame(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    let lines = query.number("lines", 1..=MOST_LINES, LINES)?;
    let query = query.with("by", Some(By::Branch.name())).with("top", Some(&lines.to_string()));
    let request = tables::request(&query, query.part_showing(tables::views(&query), now, stop)?)?;
    Ok(Box::new(move |place| {
        let mut report = tables::value(place, &request)?;
        let table = report.get_mut("tables").and_then(|tables| tables.get_mut(0)).map(Value::take).unwrap_or_default();
        let mut found = beside(&report);
        let of_rows = table.get("rows").and_then(Value::as_array);
        let lines: Vec<Value> = of_rows.into_iter().flatten().map(line).collect();
        found.insert("lines".to_owned(), json!(lines));
        let others = table.get("others").and_then(Value::as_object).map(|others| {
            json!({ "lines": others.get("rows"), "self_uj": others.get("self_uj"), "joules": joules_of(others, "self_uj") })
        });
        found.insert("others".to_owned(), json!(others));
        Ok(found_with(found, &["/lines"]))
    }))
}

/// A call path as flame graphs have it: frames from root to leaf, then microjoules.
fn line(row: &Value) -> Value {
    let of = |key: &str| row.get(key).cloned().unwrap_or_default();
    let energy = row.get("self_uj").and_then(Value::as_u64).unwrap_or(0);
    let path = row.get("name").and_then(Value::as_str).unwrap_or_default();
    json!({
        "line": format!("{path} {energy}"),
        "self_uj": energy,
        "joules": MicroJoules(energy).joules(),
        "low_uj": of("self_low_uj"),
        "high_uj": of("self_high_uj"),
        "percent": of("self_percent"),
        "samples": of("self_samples"),
    })
}

pub fn callers(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    let (top, views) = (rows(query)?, [View::Table(By::Method)]);
    let Part { filter, app } = query.part_showing(views, now, stop)?;
    let names = Names::parse(&query.many("method")).map_err(|error| Refusal::bad(format!("method: {error}")))?;
    Ok(Box::new(move |place| {
        let profile = filter.unreadable.reading(|| Profile::read(place, &filter, app.as_ref()))?;
        let tables = neighbours_of(&profile, &filter, &names, top);
        let report = as_object(json::of_tables(&profile, &tables));
        let mut found = beside(&report);
        // What neighbours have of their own is nothing that was asked for.
        for (index, (name, without)) in [("methods", ""), ("callers", "self_"), ("callees", "self_")].iter().enumerate()
        {
            let table = report.get("tables").and_then(|tables| tables.get(index)).cloned().unwrap_or_default();
            let table = in_joules(table, without);
            let of = |key: &str| table.get(key).cloned().unwrap_or_default();
            found.insert((*name).to_owned(), of("rows"));
            found.insert(format!("other_{name}"), of("others"));
        }
        Ok(found_with(found, &["/methods", "/callers", "/callees"]))
    }))
}

/// The methods of these names, and who stands beside them.
fn neighbours_of(profile: &Profile, filter: &Filter, names: &Names, top: usize) -> [Ranking; 3] {
    let all = Cut { top: 0, sort: Sort::Total, is_partial: !filter.allows_all_paths() };
    let mut methods = Ranking::of(profile, &Groups::of(By::Method, profile), all, None, None);
    let name =
        |row: &RankedRow| row.group.details.first().and_then(Value::as_str).is_some_and(|name| names.allow(name));
    methods.rows.retain(name);
    let [callers, callees] = [Side::Callers, Side::Callees].map(|side| neighbours::ranking(profile, filter, side, top));
    [methods, callers, callees]
}

pub fn diff(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    if !SIDES.iter().any(|side| query.has_any(side)) {
        let message = "say what differs: left and right select A and B, such as {\"version\": [\"1.2\"]}";
        return Err(Refusal::bad(message.to_owned()));
    }
    let top = rows(query)?;
    let choices = comparison::choices(&query.with("top", Some(&top.to_string())))?;
    let sides = query.sides(now, stop)?;
    Ok(Box::new(move |place| {
        let comparison = comparison::of(place, &sides, &choices)?;
        let value = comparison.value(&choices).map_err(|error| Refusal::broken(error.to_string()))?;
        let mut found = as_object(value);
        found.insert("other_rows".to_owned(), json!(comparison.rows.len().saturating_sub(top)));
        found.entry("skipped").or_insert_with(|| json!([]));
        for side in ["a", "b"] {
            let of_side = found.get_mut(side).and_then(Value::as_object_mut);
            of_side.into_iter().for_each(|side| add_joules(side, "energy_uj", "joules"));
        }
        let lists = ["/rows", "/phases", "/warnings", "/notices", "/skipped", "/a/hosts", "/b/hosts"];
        Ok(Found { value: Value::Object(found), lists: lists.map(str::to_owned).to_vec() })
    }))
}

pub fn audit(_: &Query, _: UnixMicros, _: &Stop) -> Result<Work, Refusal> {
    Ok(Box::new(|place| {
        let audits = audit::run(place)?;
        let run = |audit: &audit::RunAudit| {
            let mut run = json!(audit);
            if let Some(run) = run.as_object_mut() {
                for part in ["measured", "attributed", "static", "unattributed", "profiler"] {
                    add_joules(run, &format!("{part}_uj"), &format!("{part}_joules"));
                }
            }
            run
        };
        let value = json!({
            "is_well": audit::is_well(&audits),
            "runs": audits.iter().map(run).collect::<Vec<_>>(),
            "interval_note": "These sums are exact: they have no interval.",
            // It fails where a run cannot be read.
            "skipped": [],
        });
        Ok(Found { value, lists: vec!["/runs".to_owned()] })
    }))
}

/// A report as far as answers have it, with its tables.
pub fn with_tables(mut report: Map<String, Value>) -> Found {
    let tables = match report.remove("tables") {
        Some(Value::Array(tables)) => tables,
        _ => Vec::new(),
    };
    let mut found = beside(&report);
    let rows: Vec<String> = (0..tables.len()).map(|index| format!("/tables/{index}/rows")).collect();
    let shaped = |table: Value| {
        let by = table.get("by").and_then(Value::as_str).and_then(By::named);
        in_joules(table, if by.is_some_and(|by| !by.has_total()) { "total_" } else { "" })
    };
    found.insert("tables".to_owned(), tables.into_iter().map(shaped).collect());
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    found_with(found, &rows)
}

fn found_with(found: Map<String, Value>, rows: &[&str]) -> Found {
    let lists = rows.iter().chain(&LISTS).map(|list| (*list).to_owned()).collect();
    Found { value: Value::Object(found), lists }
}

/// What a report says beside its tables.
fn beside(report: &Map<String, Value>) -> Map<String, Value> {
    let mut found: Map<String, Value> =
        KEYS.iter().map(|key| ((*key).to_owned(), report.get(*key).cloned().unwrap_or_default())).collect();
    if let Some(selection) = found.get_mut("selection").and_then(Value::as_object_mut) {
        add_joules(selection, "energy_uj", "joules");
    }
    found.insert("skipped".to_owned(), report.get("skipped").cloned().unwrap_or_else(|| json!([])));
    found.insert("extent".to_owned(), extent(report.get("extent")));
    found.extend(SOURCE.iter().filter_map(|key| Some(((*key).to_owned(), report.get(*key)?.clone()))));
    found
}

/// Of many runs only the number and the hosts.
fn extent(extent: Option<&Value>) -> Value {
    let of = |key: &str| extent.and_then(|extent| extent.get(key)).cloned().unwrap_or_default();
    let runs = of("runs");
    let runs = runs.as_array().map_or(&[][..], Vec::as_slice);
    let mut hosts: Vec<&str> = runs.iter().filter_map(|run| run.get("host")?.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    json!({
        "start": of("start"),
        "end": of("end"),
        "duration_ns": of("duration_ns"),
        "windows": of("windows"),
        "runs": runs.len(),
        "hosts": hosts,
    })
}

/// A table whose rows have joules, too, without keys that begin with `without`, if that is not empty.
fn in_joules(mut table: Value, without: &str) -> Value {
    let shape = |row: &mut Value| {
        let Some(row) = row.as_object_mut() else { return };
        row.retain(|key, _| without.is_empty() || !key.starts_with(without));
        add_joules(row, "self_uj", "self_joules");
        add_joules(row, "total_uj", "total_joules");
    };
    table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten().for_each(shape);
    table.get_mut("others").into_iter().for_each(shape);
    table
}

fn add_joules(object: &mut Map<String, Value>, of: &str, name: &str) {
    if let Some(joules) = joules_of(object, of) {
        object.insert(name.to_owned(), json!(joules));
    }
}

fn joules_of(object: &Map<String, Value>, of: &str) -> Option<f64> {
    object.get(of).and_then(Value::as_u64).map(|energy| MicroJoules(energy).joules())
}

/// All that is made here are objects.
fn as_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
