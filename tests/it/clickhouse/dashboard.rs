//! Every query of the dashboard and of its alerts runs, and the flame graph is one.

use std::fs;

use joular_tests::paths;
use serde_json::Value;

use super::{Loaded, attributed};

fn read(name: &str) -> Value {
    let text = fs::read_to_string(paths::root().join("packaging/grafana").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Titles and SQL of the panels.
fn panels(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().unwrap();
    let sql = |panel: &Value| {
        let targets = panel["targets"].as_array().unwrap();
        assert_eq!(targets.len(), 1, "{panel}");
        (panel["title"].as_str().unwrap().to_owned(), targets[0]["rawSql"].as_str().unwrap().to_owned())
    };
    panels.iter().map(sql).collect()
}

/// Names and SQL of the variables that are asked for.
fn variables(dashboard: &Value) -> Vec<(String, String)> {
    let all = dashboard["templating"]["list"].as_array().unwrap().iter().filter(|variable| variable["type"] == "query");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|variable| (text(&variable["name"]), text(&variable["query"]))).collect()
}

/// What Grafana's data source makes of its macros, for three hours and with one value of each variable. `None`: all values.
fn filled(sql: &str, chosen: Option<[(&str, &str); 4]>) -> String {
    let (from, to) = ("(now() - INTERVAL 3 HOUR)", "now()");
    let mut sql = sql.to_owned();
    while let Some((before, inside, after)) = call(&sql, "$__conditionalAll(") {
        let (condition, _) = inside.rsplit_once(',').unwrap();
        sql = format!("{before}{}{after}", if chosen.is_none() { "1=1" } else { condition });
    }
    while let Some((before, column, after)) = call(&sql, "$__timeFilter(") {
        sql = format!("{before}{column} >= {from} AND {column} <= {to}{after}");
    }
    for (name, value) in chosen.into_iter().flatten() {
        sql = sql.replace(&format!("${{{name}:singlequote}}"), &format!("'{value}'"));
    }
    let sql = sql.replace("$__fromTime", from).replace("$__toTime", to).replace("$__interval_s", "60");
    let sql = sql.replace("${database}", "joular").replace("$before", "1.0").replace("$after", "2.0");
    assert!(!sql.contains('$'), "{sql}");
    sql
}

/// The first call of a macro: what stands before it, in its brackets, and after it.
fn call(sql: &str, name: &str) -> Option<(String, String, String)> {
    let (before, rest) = sql.split_once(name)?;
    let mut depth = 1;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    })?;
    Some((before.to_owned(), rest[..end].to_owned(), rest[end + 1..].to_owned()))
}

const CHOSEN: [(&str, &str); 4] = [("service", "checkout"), ("version", "2.0"), ("host", "web-2"), ("namespace", "")];

#[test]
fn every_query_of_the_dashboard_runs_and_finds_what_was_loaded() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let dashboard = read("joular-clickhouse.json");
    for (title, sql) in panels(&dashboard) {
        let all = loaded.server.rows(&filled(&sql, None)).unwrap_or_else(|error| panic!("{title}: {error:#}"));
        assert!(!all.is_empty(), "{title}");
        // There may be none of one service on one host.
        loaded.server.rows(&filled(&sql, Some(CHOSEN))).unwrap_or_else(|error| panic!("{title}: {error:#}"));
    }
    for (name, sql) in variables(&dashboard) {
        let values = loaded.server.rows(&filled(&sql, None)).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let expected = match name.as_str() {
            "service" => "checkout",
            "host" => "web-2",
            "version" | "before" | "after" => "2.0",
            // No pod was recorded.
            _ => continue,
        };
        let found = values.iter().any(|row| row.as_object().unwrap().values().any(|value| value == expected));
        assert!(found, "{name}: {values:?}");
    }
}

/// The rows of the panel of this title.
fn rows(loaded: &mut Loaded, title: &str) -> Vec<Value> {
    let panels = panels(&read("joular-clickhouse.json"));
    let (_, sql) = panels.iter().find(|(found, _)| found.starts_with(title)).unwrap();
    loaded.server.rows(&filled(sql, None)).unwrap()
}

#[test]
fn figures_of_panels_are_those_of_the_fleet() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let near = |found: &Value, expected: f64| (found.as_f64().unwrap() / expected - 1.0).abs() < 1e-9;
    let joules = f64::from(u32::try_from(attributed()).unwrap()) / 1e6;
    assert!(near(&rows(&mut loaded, "Power of the services")[0]["power"], joules / 10_800.0));
    assert_eq!(rows(&mut loaded, "Audit")[0]["windows"], 0);
    let lag = rows(&mut loaded, "Lag: ")[0]["lag"].as_f64().unwrap();
    assert!((600.0..7_200.0).contains(&lag), "{lag}");
    let hosts = rows(&mut loaded, "Lag by host");
    assert_eq!(hosts.len(), 3, "{hosts:?}");
    let versions = rows(&mut loaded, "Versions: ");
    let total: f64 = versions.iter().map(|row| row["joules"].as_f64().unwrap()).sum();
    assert!(near(&total.into(), joules), "{versions:?}");
    assert!(versions.iter().all(|row| row["plus_minus"].as_f64() > Some(0.0)), "{versions:?}");
    // Both versions run the same code on the same machine.
    let methods = rows(&mut loaded, "Methods: ");
    assert!(!methods.is_empty() && methods.iter().all(|row| row["verdict"] == "not told apart"), "{methods:?}");
}

#[test]
fn the_flame_graph_is_a_nested_set_whose_root_has_all_energy() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let nodes = rows(&mut loaded, "Flame graph");
    let of = |name: &str| -> Vec<f64> { nodes.iter().map(|node| node[name].as_f64().unwrap()).collect() };
    let (levels, values, selves) = (of("level"), of("value"), of("self"));
    assert!(nodes.len() > 5 && levels[0].abs() < 0.5, "{nodes:?}");
    let joules = f64::from(u32::try_from(attributed()).unwrap()) / 1e6;
    assert!((values[0] / joules - 1.0).abs() < 1e-9, "{} J, not {joules} J", values[0]);
    for (at, level) in levels.iter().enumerate().skip(1) {
        assert!(*level >= 0.5 && *level <= levels[at - 1] + 1.5, "level {level} after {}", levels[at - 1]);
    }
    for (at, node) in nodes.iter().enumerate() {
        let below = (at + 1..nodes.len()).take_while(|below| levels[*below] > levels[at] + 0.5);
        let children: f64 = below.filter(|below| levels[*below] < levels[at] + 1.5).map(|below| values[below]).sum();
        assert!(selves[at] + children <= values[at] * (1.0 + 1e-9), "{node}: {} + {children}", selves[at]);
        // What is left out are paths with less than a 2000th each.
        assert!(selves[at] + children >= values[at] - 0.1 * values[0], "{node}: {} + {children}", selves[at]);
    }
    let labels: Vec<&str> = nodes.iter().filter_map(|node| node["label"].as_str()).collect();
    assert!(labels.contains(&"Hot.heavy"), "{labels:?}");
}

#[test]
fn alerts_say_nothing_of_a_fleet_that_is_well() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let alerts = read("joular-clickhouse-alerts.json");
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 3);
    for rule in rules {
        let sql = rule["data"][0]["model"]["rawSql"].as_str().unwrap();
        let threshold = rule["data"][1]["model"]["conditions"][0]["evaluator"]["params"][0].as_f64().unwrap();
        let found = loaded.server.rows(sql).unwrap_or_else(|error| panic!("{rule}: {error:#}"));
        let over = found.iter().flat_map(|row| row.as_object().unwrap().values()).filter_map(Value::as_f64);
        assert!(over.into_iter().all(|figure| figure <= threshold), "{rule}: {found:?}");
    }
    // One more microjoule than was measured.
    loaded
        .server
        .rows("ALTER TABLE joular.windows UPDATE static_uj = static_uj + 1 WHERE static_uj IS NOT NULL")
        .unwrap();
    let audit = rules.iter().find(|rule| rule["uid"] == "joular-audit").unwrap();
    let audit = audit["data"][0]["model"]["rawSql"].as_str().unwrap();
    let told = loaded.server.rows(audit).unwrap();
    assert!(told[0]["windows"].as_u64() > Some(0), "{told:?}");
}
