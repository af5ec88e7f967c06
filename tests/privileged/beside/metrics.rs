//! Tests that live metrics are the data set's figures, to the microjoule.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    java::Workload,
    profiler::{END, Output, Run},
    prometheus::{answer, free_port},
};

const LIMIT: Duration = Duration::from_secs(30);
/// Windows of 100 ms that a scrape must have.
const WINDOWS: f64 = 25.0;

/// The text of a scrape; `None` while nobody listens.
fn scraped(port: u16) -> Result<Option<String>> {
    let Some(answer) = answer(port, "/metrics", "Accept: application/openmetrics-text\r\n")? else { return Ok(None) };
    let (head, text) = answer.split_once("\r\n\r\n").context("an answer with a head")?;
    ensure!(head.starts_with("HTTP/1.1 200 ") && text.ends_with("# EOF\n"), "{answer}");
    Ok(Some(text.to_owned()))
}

/// Values of the samples of a metric whose labels have this text.
fn values(text: &str, metric: &str, label: &str) -> Result<Vec<f64>> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let of_metric = samples.filter(|line| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' '])));
    let values = of_metric.filter(|line| line.contains(label)).map(|line| line.rsplit(' ').next().unwrap_or_default());
    values.map(|value| value.parse().with_context(|| format!("{metric}: {value}"))).collect()
}

fn sum(text: &str, metric: &str, label: &str) -> Result<f64> {
    Ok(values(text, metric, label)?.into_iter().sum())
}

/// Millionths, in whole.
fn millionths(value: f64) -> f64 {
    (value * 1e6).round()
}

#[test]
fn a_scrape_has_what_the_data_set_has_up_to_its_last_window() -> Result<()> {
    let (output, port) = (Output::new()?, free_port()?);
    let jvm = Workload::new("Busy").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--interval", "100ms").with("--flush", "1s");
    // Counters go on where the data set begins a new run.
    let run = run.with("--rotate", "10s").with("--metrics", format!("127.0.0.1:{port}")).argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    let text = wait_for("a scrape with enough windows", LIMIT, || {
        let text = scraped(port)?;
        Ok(text.filter(|text| sum(text, "joular_windows_total", "").is_ok_and(|windows| windows >= WINDOWS)))
    })?;
    ensure!(profiler.stop()?.code() == Some(0));
    ensure!(wait_for("the end of the server", END, || Ok(scraped(port)?.is_none().then_some(true)))?);
    let last_us = millionths(sum(&text, "joular_last_window_start_seconds", "")?);
    let until = format!("epoch_us(window_start) <= {last_us}");
    let data = |table: &str, of: &str| {
        output.data.number(&format!("SELECT coalesce(sum({of}), 0)::DOUBLE FROM {table} WHERE {until}"))
    };
    let pid = format!("pid=\"{}\"", jvm.pid());
    for (metric, label, expected) in [
        ("joular_targets_joules_total", "", data("threads", "energy_uj")?),
        ("joular_process_joules_total", pid.as_str(), data("threads", "energy_uj")?),
        ("joular_process_other_joules_total", "", 0.0),
        ("joular_method_joules_total", &pid, data("branches", "energy_uj")?),
        ("joular_jvm_joules_total", &pid, data("jvms", "energy_uj")?),
        ("joular_jvm_joules_total", "part=\"c2\"", data("jvms", "c2_uj")?),
        ("joular_domain_joules_total", "", data("windows", "measured_uj")?),
        ("joular_domain_part_joules_total", "part=\"attributed\"", data("windows", "attributed_uj")?),
        ("joular_domain_part_joules_total", "part=\"idle\"", data("windows", "idle_uj")?),
    ] {
        let found = millionths(sum(&text, metric, label)?);
        ensure!((found - expected).abs() < 0.5, "{metric} {label}: {found} µJ, the data set has {expected}");
    }
    let windows = output.data.number(&format!("SELECT count(DISTINCT window_start) FROM windows WHERE {until}"))?;
    ensure!((sum(&text, "joular_windows_total", "")? - windows).abs() < 0.5, "{windows} windows");
    ensure!(sum(&text, "joular_targets_joules_total", "")? > 0.0, "{text}");
    ensure!(text.contains("main_class=\"Busy\"") && text.contains("service=\"Busy\""), "{text}");
    Ok(())
}
