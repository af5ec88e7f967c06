//! A CI engineer compares two versions, and makes a gate of it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Walk, experiment, joular, json, line_with};

/// How far the same figure of two commands may be apart, relatively.
const EQUAL: f64 = 1e-3;

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("CI engineer")?;
    let [dir, results, baseline] = ["energy", "results.json", "baseline.json"].map(|name| walk.at(name));
    let (base, more) = (format!("{dir}/base"), format!("{dir}/more"));
    walk.step(experiment(&dir, &["--export-json", &results]), 0, |said| {
        line_with(&said.stderr, "Energy of a run, in ")
    })?;
    let results: Value = serde_json::from_str(&fs::read_to_string(&results)?)?;
    walk.step(joular(&["diff", &base, &more]), 0, |said| {
        let first = said.stdout.lines().next().unwrap_or_default();
        ensure!(first.starts_with("Energy of a run, in "), "another figure, or none, is named first");
        Ok(first.to_owned())
    })?;
    walk.step(joular(&["diff", &base, &more, "--json"]), 0, |said| same_figures(&json(said)?, &results))?;
    walk.step(joular(&["baseline", "save", &base, &baseline]), 0, |said| {
        ensure!(said.stdout.is_empty(), "it prints");
        Ok("nothing, and a file".to_owned())
    })?;
    let check = |data: &str, options: &[&str]| {
        joular(&[&["baseline", "check", &baseline, data, "--fail-above", "5%"], options].concat())
    };
    walk.step(check(&base, &[]), 0, |said| {
        line_with(&said.stdout, "verdict")?;
        line_with(&said.stderr, "passed: nothing is certainly more than ")
    })?;
    walk.step(check(&more, &[]), 8, |said| {
        line_with(&said.stdout, "verdict")?;
        line_with(&said.stderr, "certainly needs more than --fail-above allows")
    })?;
    walk.step(check(&more, &["--markdown"]), 8, |said| line_with(&said.stdout, "**Failed:** "))?;
    walk.end();
    Ok(())
}

/// A comparison of an experiment's variants is of what the experiment said of them.
fn same_figures(comparison: &Value, results: &Value) -> Result<String> {
    let unit = comparison["unit"].as_str().context("no unit")?;
    let mut shown = Vec::new();
    for (side, variant) in [("a", 0_usize), ("b", 1)] {
        let of_run = &results["summary"]["variants"][variant]["joules"]["mean"];
        let [found, expected] = [&comparison["total"][side], of_run].map(Value::as_f64);
        let (found, expected) = found.zip(expected).with_context(|| format!("no figures: {comparison} {results}"))?;
        ensure!((found / expected - 1.0).abs() < EQUAL, "{side}: {found} {unit}, but run says {expected}");
        shown.push(format!("{found:.3} {unit}"));
    }
    Ok(format!("{}, as run says", shown.join(" and ")))
}
