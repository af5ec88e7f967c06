//! Tests live metrics with a real Prometheus: what it holds is what the data set has, and the queries of our dashboard
//! and alerts say something.

use std::{
    fs::{self, Permissions},
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::share,
    java::Workload,
    notes, paths,
    profiler::{Output, Run},
    prometheus::{self, Prometheus, free_port},
    python,
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);
/// Of 100 ms.
const WINDOWS: f64 = 120.0;
/// Between two scrapes.
const SCRAPE_S: f64 = 1.0;

/// Metrics that must be the data set's sums, and what these are sums of.
const SUMS: [(&str, &str, &str); 4] = [
    ("joular_targets_joules_total", "energy_uj", "threads"),
    ("sum(joular_method_joules_total)", "energy_uj", "branches"),
    ("sum(joular_domain_joules_total)", "measured_uj", "windows"),
    ("sum(joular_domain_part_joules_total{part=\"attributed\"})", "attributed_uj", "windows"),
];

/// Queries of the dashboard with a choice for each of its variables.
fn of_dashboard() -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(paths::root().join("packaging/grafana/joular-bpf.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().context("panels")? {
        for target in panel["targets"].as_array().context("targets")? {
            let query = target["expr"].as_str().context("a query")?.to_owned();
            let chosen = [("$service", ".*"), ("$instance", ".*"), ("$__rate_interval", "10s"), ("$__range", "10s")];
            let query = chosen.iter().fold(query, |query, (variable, choice)| query.replace(variable, choice));
            ensure!(!query.contains('$'), "a variable is left: {query}");
            queries.push((panel["title"].as_str().context("a title")?.to_owned(), query));
        }
    }
    Ok(queries)
}

/// Names and queries of the alerts.
fn of_alerts() -> Result<Vec<(String, String)>> {
    let file = paths::root().join("packaging/prometheus/joular-alerts.yml");
    prometheus::check_rules(&file)?;
    let text = fs::read_to_string(file)?;
    let values =
        |key: &'static str| text.lines().filter_map(move |line| line.trim().trim_start_matches("- ").strip_prefix(key));
    Ok(values("alert: ").zip(values("expr: ")).map(|(name, query)| (name.to_owned(), query.to_owned())).collect())
}

#[test]
fn a_prometheus_holds_what_the_data_set_has_and_answers_our_dashboard_and_alerts() -> Result<()> {
    if !prometheus::is_installed() {
        notes::skipped("there is no Prometheus (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let (output, port) = (Output::new()?, free_port()?);
    let jvm = Workload::new("Busy").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--interval", "100ms").with("--flush", "1s").argument("--quiet");
    share(output.beside("shipped"))?;
    let run = run.with("--metrics", format!("127.0.0.1:{port}")).with("--ship", output.beside("shipped"));
    let prometheus = Prometheus::scraping(port)?;
    let profiler = run.output(output.dir()).start()?;
    wait_for("enough scrapes", LIMIT, || {
        Ok(prometheus.number("joular_windows_total").is_ok_and(|windows| windows >= WINDOWS).then_some(()))
    })?;
    for (title, query) in of_dashboard()? {
        let series = prometheus.query(&query)?;
        let may_be_empty = title == "Losses per minute";
        ensure!(may_be_empty || !series.is_empty(), "{title}: {query} has no series");
        ensure!(series.iter().all(|series| series.value.is_finite()), "{title}: {query}");
    }
    let alerts = of_alerts()?;
    ensure!(alerts.len() >= 13, "{alerts:?}");
    for (name, query) in alerts {
        let series = prometheus.query(&query)?;
        // A machine under load may lose a window's boundary, or be late.
        let may_fire = ["JoularLosses", "JoularLate"].contains(&name.as_str());
        ensure!(may_fire || series.is_empty(), "{name} fires on a healthy recording: {query}");
    }
    profiler.stop()?;

    // The last scrape is of one moment: all its figures are up to its last window.
    let scraped = |query: &str| prometheus.number(&format!("last_over_time({query}[1h])"));
    let until_us = (scraped("joular_last_window_start_seconds")? * 1e6).round();
    for (metric, column, table) in SUMS {
        let inner = metric.strip_prefix("sum(").and_then(|metric| metric.strip_suffix(')'));
        let query =
            inner.map_or(format!("last_over_time({metric}[1h])"), |inner| format!("sum(last_over_time({inner}[1h]))"));
        let found_uj = (prometheus.number(&query)? * 1e6).round();
        let sql = format!("SELECT sum({column})::DOUBLE FROM {table} WHERE epoch_us(window_start) <= {until_us}");
        let expected_uj = output.data.number(&sql)?;
        ensure!((found_uj - expected_uj).abs() < 2.0, "{metric}: {found_uj} µJ, the data set has {expected_uj}");
    }
    // Prometheus extrapolates to the ends of the time that is asked for, by less than a scrape each.
    let of = |function: &str| prometheus.number(&format!("{function}(joular_targets_joules_total[1h])"));
    let gained = of("max_over_time")? - of("min_over_time")?;
    let windows_s = scraped("joular_windows_seconds_total")?;
    let of_scrape = 2.0 * SCRAPE_S * scraped("joular_targets_joules_total")? / windows_s;
    let increase = of("increase")?;
    ensure!((increase - gained).abs() <= of_scrape, "increase() says {increase} J, the counter gained {gained} J");
    let series = prometheus.query("last_over_time(joular_process_joules_total[1h])")?;
    ensure!(series.iter().any(|series| series.labels["service"] == "Busy"), "no series of the service");
    Ok(())
}

#[test]
fn each_fault_raises_its_alert() -> Result<()> {
    if !prometheus::is_installed() {
        notes::skipped("there is no Prometheus (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let tests = fs::read_to_string(paths::root().join("tests/fixtures/alerts.yml"))?;
    for (name, _) in of_alerts()? {
        let raised = format!("alertname: {name}\n        exp_alerts:\n          - ");
        ensure!(tests.contains(&raised), "no fault of {name}");
    }
    prometheus::test_rules(&tests, &paths::root().join("packaging/prometheus/joular-alerts.yml"))
}

#[test]
fn a_prometheus_scrapes_over_tls_whom_it_trusts_with_a_token() -> Result<()> {
    if !prometheus::is_installed() || !python::ENGINES.is_ready() {
        notes::skipped(
            "there is no Prometheus, or no Python to make certificates with (`cargo xtask setup` installs both)",
        );
        return Ok(());
    }
    let (output, port) = (Output::new()?, free_port()?);
    let path = |name: &str| output.beside(name);
    let made = python::ENGINES.script("certificates.py")?.arg(path("")).output()?;
    ensure!(made.status.success(), "{made:?}");
    fs::write(path("token"), "a-token\n")?;
    fs::set_permissions(path("token"), Permissions::from_mode(0o600))?;
    let jvm = Workload::new("Busy").start()?;
    let run = Run::modelled().pid(jvm.pid()).argument("--quiet").with("--metrics", format!("127.0.0.1:{port}"));
    let run = run.with("--metrics-token", path("token")).with("--metrics-cert", path("server.crt"));
    let profiler = run.with("--metrics-key", path("server.key")).output(output.dir()).start()?;
    let trusting = Prometheus::scraping_over_tls(port, &path("ca.crt"), &path("token"))?;
    let wary = Prometheus::scraping_over_tls(port, &path("other.crt"), &path("token"))?;
    wait_for("scrapes over TLS", LIMIT, || {
        Ok(trusting.number("joular_windows_total").is_ok_and(|windows| windows >= 3.0).then_some(()))
    })?;
    ensure!(wait_for("a scrape that fails", LIMIT, || Ok(wary.number("up").ok()))? == 0.0, "it trusts another one");
    // Who does not speak TLS gets no metrics.
    let mut plain = TcpStream::connect(("127.0.0.1", port))?;
    plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a-token\r\n\r\n")?;
    let mut answer = Vec::new();
    let _reset = plain.read_to_end(&mut answer);
    ensure!(!String::from_utf8_lossy(&answer).contains("joular"), "{}", String::from_utf8_lossy(&answer));
    ensure!(profiler.stop()?.code() == Some(0));

    fs::copy(path("ca.crt"), path("server.crt"))?;
    let run = Run::modelled().pid(jvm.pid()).with("--metrics", format!("127.0.0.1:{port}"));
    let run = run.with("--metrics-cert", path("server.crt")).with("--metrics-key", path("server.key"));
    let refused = run.argument("--no-output").finish(LIMIT)?;
    ensure!(refused.code() == Some(2) && refused.stderr.contains("cannot be used with the key"), "{refused:?}");
    Ok(())
}

#[test]
fn clients_are_known_by_their_certificates_and_probes_need_none() -> Result<()> {
    if !python::ENGINES.is_ready() {
        notes::skipped("there is no Python to make certificates with (`cargo xtask setup` installs it)");
        return Ok(());
    }
    let (output, port) = (Output::new()?, free_port()?);
    let path = |name: &str| output.beside(name);
    let made = python::ENGINES.script("certificates.py")?.arg(path("")).output()?;
    ensure!(made.status.success(), "{made:?}");
    let run = Run::modelled().pid(std::process::id()).argument("--no-output").argument("--quiet");
    let run = run.with("--metrics", format!("127.0.0.1:{port}")).with("--metrics-client-ca", path("ca.crt"));
    let run = run.with("--metrics-cert", path("server.crt")).with("--metrics-key", path("server.key"));
    let profiler = run.start()?;
    let get = |page: &str, client: Option<&str>| -> Result<String> {
        let mut get = python::ENGINES.script("tls_get.py")?;
        get.arg(format!("https://127.0.0.1:{port}/{page}")).arg(path("ca.crt"));
        get.args(client.iter().flat_map(|name| [path(&format!("{name}.crt")), path(&format!("{name}.key"))]));
        Ok(String::from_utf8_lossy(&get.output()?.stdout).trim().to_owned())
    };
    wait_for("a probe", LIMIT, || Ok((get("readyz", None)? == "200").then_some(())))?;
    for (client, expected) in [(Some("client"), "200"), (None, "401"), (Some("stranger"), "refused")] {
        let status = get("metrics", client)?;
        ensure!(status.starts_with(expected), "{client:?}: {status}");
    }
    ensure!(profiler.stop()?.code() == Some(0));
    Ok(())
}
