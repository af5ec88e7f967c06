//! Tests energy events of perf, with the kernel's clock in place of energy. Event type 1
//! (software), config 0 (cpu-clock) counts nanoseconds on its CPU. So with 10⁻⁹ J per count the
//! package that sysfs is made to describe draws 1 W.

use std::{fs, path::Path, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{
    profiler::{Output, Run},
    topology::{self, Cpus},
};

use crate::{burner::Burner, readings};

const LIMIT: Duration = Duration::from_secs(60);

/// A PMU with one event that advances by `scale` joules per nanosecond.
fn describe(root: &Path, pmu: &str, cpumask: &str, event: &str, scale: &str) -> Result<()> {
    let pmu = root.join("bus/event_source/devices").join(pmu);
    fs::create_dir_all(pmu.join("events"))?;
    for (file, text) in [
        ("type".to_owned(), "1"),
        ("cpumask".to_owned(), cpumask),
        (format!("events/{event}"), "event=0x00"),
        (format!("events/{event}.scale"), scale),
        (format!("events/{event}.unit"), "Joules"),
    ] {
        fs::write(pmu.join(file), format!("{text}\n"))?;
    }
    Ok(())
}

#[test]
fn events_of_perf_are_measured_to_the_boundary_and_survive_dropped_privileges() -> Result<()> {
    let sys = tempfile::tempdir()?;
    describe(sys.path(), "power", "0", "energy-pkg", "1e-9")?;
    let output = Output::new()?;
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(20))?;
    let run = Run::new().with("--energy", "perf").with("--sys-root", sys.path()).pid(burner.pid());
    let finished = run.with("--duration", "4s").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let kinds = output.data.rows("SELECT DISTINCT domain, socket, source, label FROM windows")?;
    let expected = serde_json::json!({"domain": "package", "socket": 0, "source": "perf", "label": "measured"});
    assert_eq!(kinds, [expected]);
    // 1 W is 1 µJ per µs, from one reading to the next: a window's length and
    // by how much later its end was read than its start.
    let off = "SELECT sum(measured_uj) / (sum(window_ns) / 1000.0) AS watts FROM windows";
    let watts = output.data.number(off)?;
    ensure!((0.97..=1.03).contains(&watts), "{watts} W instead of 1 W");
    ensure!(output.data.number("SELECT sum(attributed_uj) FROM windows")? > 0.0, "nothing was attributed");
    Ok(())
}

/// A package of 5 W whose two cores draw 1 W each, as AMD counts them: what runs
/// on one core has nothing of the other's.
#[test]
fn a_cores_energy_goes_to_what_ran_on_it() -> Result<()> {
    let sys = tempfile::tempdir()?;
    describe(sys.path(), "power", "0", "energy-pkg", "5e-9")?;
    describe(sys.path(), "power_core", "0-1", "energy-core", "1e-9")?;
    let cpus = topology::create(sys.path().join("devices/system/cpu"), Cpus::TwoCores)?;
    let output = Output::new()?;
    let mut burner = Burner::start(&[100, 100])?;
    let tids = burner.pin(&[0, 1])?;
    burner.begin(Duration::from_secs(20))?;
    let run = Run::new().with("--energy", "perf").with("--sys-root", sys.path()).with("--cpu-root", cpus);
    let run = run.with("--idle", "spread").with("--weights", "time").pid(burner.pid());
    let finished = run.with("--duration", "4s").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let watts = "SELECT domain, core, round(sum(measured_uj) / (sum(window_ns) / 1000.0), 1) AS watts
                 FROM windows GROUP BY 1, 2 ORDER BY 1, 2";
    let expected = serde_json::json!([
        {"domain": "core", "core": 0, "watts": 1.0},
        {"domain": "core", "core": 1, "watts": 1.0},
        {"domain": "uncore", "core": null, "watts": 3.0},
    ]);
    assert_eq!(serde_json::Value::Array(output.data.rows(watts)?), expected);
    for (core, tid) in tids.iter().enumerate() {
        output.data.expect_none(
            "time of a pinned thread on another core",
            &format!("SELECT * FROM weights WHERE tid = {tid} AND core <> {core} AND cpu_ns > 0"),
        )?;
        // Its share of its own core, and no energy of the other one: that went
        // to whoever ran there, so both cores together have all of theirs.
        let share = output.data.number(&format!(
            "WITH mine AS (SELECT sum(cpu_ns) AS ns FROM weights WHERE tid = {tid}),
                  ran AS (SELECT sum(cpu_ns) AS ns FROM weights WHERE core = {core} AND claimant <> 'idle'),
                  all_ran AS (SELECT sum(cpu_ns) AS ns FROM weights WHERE claimant <> 'idle'),
                  core AS (SELECT sum(measured_uj) AS uj FROM windows WHERE core = {core}),
                  uncore AS (SELECT sum(measured_uj) AS uj FROM windows WHERE domain = 'uncore')
             SELECT (SELECT sum(energy_uj) FROM threads WHERE tid = {tid})
                 / (mine.ns / ran.ns * core.uj + mine.ns / all_ran.ns * uncore.uj)
             FROM mine, ran, all_ran, core, uncore"
        ))?;
        ensure!((0.99..=1.01).contains(&share), "thread on core {core}: {share} of what it should have");
    }
    readings::expect_audited(&output.data)
}

#[test]
fn a_machine_without_energy_events_is_named_with_its_path() -> Result<()> {
    let (sys, output) = (tempfile::tempdir()?, Output::new()?);
    let run = Run::new().argument("--all").with("--energy", "perf").with("--sys-root", sys.path());
    let finished = run.with("--duration", "2s").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() != Some(0), "{finished:?}");
    ensure!(finished.stderr.contains(&sys.path().display().to_string()), "{}", finished.stderr);
    Ok(())
}
