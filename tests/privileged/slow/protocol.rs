//! Tests that the validation protocol runs, is recorded, and is compared with a meter, on counters whose truth is known.

use std::{fmt::Write as _, fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    notes,
    powercap::{FakePowercap, Log, Watts},
    profiler::{Output, Run},
};
use serde_json::Value;

const WATTS: Watts = Watts { idle: 20, per_cpu: 15 };
/// The meter shows these watts, and the counters' by this factor.
const OFFSET: f64 = 30.0;
const GAIN: f64 = 1.2;
/// Of the meter: a window has two of its readings, so each is a span.
const PERIOD_US: i64 = 200_000;
const ROUNDS: &str = "2";
const STEPS: usize = 24;
/// The first and the last span of a step have a neighbour in another step, and count for nothing. All steps last 4 minutes
/// and 48 seconds.
const STEP: &str = "6s";
const LIMIT: Duration = Duration::from_secs(400);

/// What a meter shows that averages over its period.
fn readings(counter: &Log) -> Result<String> {
    let mut log = "time,watts\n".to_owned();
    let entries = counter.entries();
    let (first, last) = (entries.first().context("no value")?.wall_us, entries.last().context("no value")?.wall_us);
    let mut at_us = first;
    while at_us + PERIOD_US < last {
        let energy_uj = counter.energy_uj_at(at_us + PERIOD_US)? - counter.energy_uj_at(at_us)?;
        let watts = OFFSET + GAIN * energy_uj / PERIOD_US as f64;
        writeln!(log, "{},{watts:.3}", at_us + PERIOD_US / 2)?;
        at_us += PERIOD_US;
    }
    Ok(log)
}

fn figure(of: &Value) -> Result<f64> {
    of.as_f64().with_context(|| format!("{of} is not a number"))
}

#[test]
fn a_protocol_finds_offset_gain_and_shares_of_counters_that_follow_cpu_time() -> Result<()> {
    let output = Output::new()?;
    let counters = FakePowercap::start(1, WATTS)?;
    let config = output.beside("joular-bpf.toml");
    fs::write(&config, format!("energy = [\"powercap\"]\npowercap-root = {:?}\n", counters.root()))?;
    let protocol = || Run::new().argument("validate").argument(output.dir()).argument("--protocol").argument("--json");
    let recorded = protocol().with("--config", &config).with("--rounds", ROUNDS).with("--step", STEP).finish(LIMIT)?;
    ensure!(recorded.code() == Some(0), "{recorded:?}");
    let log = output.beside("meter.csv");
    fs::write(&log, readings(counters.finish()?.first().context("no counter")?)?)?;
    let found = protocol().with("--reference", &log).with("--max-shift", "0s").finish(LIMIT)?;
    ensure!(found.code() == Some(0), "{found:?}");
    let found: Value = serde_json::from_str(&found.stdout)?;
    check_meter(&found["meter"])?;
    check_steps(found["steps"].as_array().context("no steps")?)?;
    check_pairs(found["pairs"].as_array().context("no pairs")?)
}

fn check_meter(meter: &Value) -> Result<()> {
    let [offset, gain] = ["offset_w", "gain"].map(|of| figure(&meter[of]["value"]));
    let (offset, gain) = (offset?, gain?);
    notes::figure(&format!("the protocol's offset {offset:.2} W (30), gain {gain:.3} (1.2), of {meter}"));
    ensure!((gain / GAIN - 1.0).abs() < 0.05 && (offset - OFFSET).abs() < 3.0, "{meter}");
    Ok(())
}

/// A program that works in a part of the time draws that part.
fn check_steps(steps: &[Value]) -> Result<()> {
    ensure!(steps.len() == STEPS, "{} steps", steps.len());
    let watts = |name: &str| {
        let step = steps.iter().find(|step| step["step"] == name);
        figure(&step.with_context(|| format!("no step {name}"))?["recorded_w"]["value"])
    };
    for program in ["compute", "memory", "vector"] {
        let idle = watts("idle")?;
        let beyond = |percent: u32| Ok::<f64, anyhow::Error>(watts(&format!("{program}-{percent}"))? - idle);
        let part = beyond(50)? / beyond(100)?;
        ensure!((0.4..0.65).contains(&part), "half of {program} draws {part:.2} of the whole: {steps:?}");
    }
    Ok(())
}

/// Counters follow CPU time, and so do shares: those of two programs that always work are halves.
fn check_pairs(pairs: &[Value]) -> Result<()> {
    ensure!(pairs.len() == 3, "{pairs:?}");
    for pair in pairs.iter().filter(|pair| pair["programs"] != serde_json::json!(["memory", "io"])) {
        let given = figure(&pair["given"]["value"])?;
        ensure!((given - 0.5).abs() < 0.05, "{pair}");
        for by in pair["alone"].as_array().context("nothing alone")? {
            ensure!(figure(&by["error"]["value"])?.abs() < 0.08, "{pair}");
        }
    }
    Ok(())
}
