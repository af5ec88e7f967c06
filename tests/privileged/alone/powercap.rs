//! Tests energy of counters that we control: the total exactly, each thread's share within 2 %.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    chance::repeat_once,
    dataset::float,
    powercap::{FakePowercap, Log, Watts},
    profiler::{Output, Run},
    schedstat,
    shared::Shared,
    stolen::Stolen,
};

use crate::{burner::Burner, readings};

const WATTS: Watts = Watts { idle: 20, per_cpu: 30 };
const BURN: Duration = Duration::from_secs(10);

struct Measured {
    output: Output,
    log: Log,
    schedstat: HashMap<u32, u64>,
    /// By how much a thread may have been on a CPU for longer than `schedstat` says.
    stolen_ns: u64,
}

/// A run that all tests here look at. Both CPUs are kept busy: what else runs there gets
/// its own share.
fn measured() -> Result<Arc<Measured>> {
    static RUN: Shared<Measured> = Shared::new();
    RUN.get(|| measure(1))
}

fn measure(measures: u32) -> Result<Measured> {
    let output = Output::new()?;
    let counters = FakePowercap::start(1, WATTS)?;
    let mut burner = Burner::start(&[100, 50])?;
    let stolen = Stolen::start()?;
    let before = schedstat::when_blocked(burner.pid(), BURN)?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root());
    let run = run.with("--idle", "separate").with("--idle-watts", WATTS.idle.to_string());
    let profiler = run.pid(burner.pid()).output(output.dir()).start()?;
    burner.burn(measures * BURN)?;
    let after = schedstat::when_blocked(burner.pid(), BURN)?;
    profiler.stop()?;
    let schedstat = after.into_iter().map(|(tid, ns)| (tid, ns - before[&tid])).collect();
    let stolen_ns = stolen.of_all_at_most_ns()?;
    Ok(Measured { output, log: counters.finish()?.remove(0), schedstat, stolen_ns })
}

#[test]
fn each_window_measured_exactly_what_the_counter_advanced() -> Result<()> {
    let measured = measured()?;
    let rows = readings::of(&measured.output.data, "package", 0)?;
    assert!(rows.len() >= 10, "{} windows", rows.len());
    readings::expect_explained(&measured.log, &rows)
}

#[test]
fn each_threads_joules_are_its_watts_times_its_time_within_two_percent() -> Result<()> {
    repeat_once(|measures| match measures {
        1 => expect_watts_times_time(&*measured()?),
        more => expect_watts_times_time(&measure(more)?),
    })
}

fn expect_watts_times_time(measured: &Measured) -> Result<()> {
    let rows =
        measured.output.data.rows("SELECT tid, sum(energy_uj)::BIGINT AS energy_uj FROM threads GROUP BY tid")?;
    let mut busy = 0;
    for (tid, cpu_ns) in measured.schedstat.iter().filter(|(_, ns)| **ns > 2_000_000_000) {
        let row = rows.iter().find(|row| row["tid"] == *tid).with_context(|| format!("no row of thread {tid}"))?;
        let energy_uj = |ns: u64| ns as f64 / 1000.0 * WATTS.per_cpu as f64;
        let (expected_uj, stolen_uj) = (energy_uj(*cpu_ns), energy_uj(measured.stolen_ns));
        let excess_uj = float(row, "energy_uj")? - expected_uj;
        assert!(
            (-0.02 * expected_uj..=0.02 * expected_uj + stolen_uj).contains(&excess_uj),
            "thread {tid}: {excess_uj:.0} µJ more than {expected_uj:.0} µJ, of which {stolen_uj:.0} may be stolen"
        );
        busy += 1;
    }
    assert_eq!(busy, 2, "{:?}", measured.schedstat);
    Ok(())
}

#[test]
fn the_static_share_is_idle_watts_times_time() -> Result<()> {
    let measured = measured()?;
    let totals = &measured.output.data.rows(
        "SELECT sum(static_uj)::BIGINT AS static_uj, sum(window_ns)::BIGINT AS ns FROM windows WHERE domain LIKE 'package%'",
    )?[0];
    let expected_uj = float(totals, "ns")? / 1000.0 * WATTS.idle as f64;
    let ratio = float(totals, "static_uj")? / expected_uj;
    assert!((ratio - 1.0).abs() <= 0.001, "{ratio:.5} of {expected_uj:.0} µJ");
    Ok(())
}

#[test]
fn figures_of_a_counter_are_labelled_with_their_source() -> Result<()> {
    let measured = measured()?;
    let rows = measured.output.data.rows("SELECT DISTINCT source FROM windows")?;
    assert_eq!(rows, [serde_json::json!({"source": "powercap"})]);
    Ok(())
}
