//! Tests that nothing is created and nothing is lost: in every window of every domain, live and
//! from a replay, which gives the same bytes each time.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{
    dataset::DataSet,
    java::Workload,
    powercap::{FakePowercap, Watts},
    profiler::{END, Output, Run},
    shared::Shared,
};

const WATTS: Watts = Watts { idle: 9, per_cpu: 14 };
const LIMIT: Duration = Duration::from_secs(10);

/// A run over a JVM and the fake counters of two packages; recorded if wanted.
fn record(output: &Output, options: &[&str]) -> Result<()> {
    let counters = FakePowercap::start(2, WATTS)?;
    let jvm = Workload::new("Busy").frame_pointers().argument("threads=2").argument("rest=3").start()?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root());
    let run = run.pid(jvm.pid()).with("--duration", "5s").with("--interval", "500ms").output(output.dir());
    let run = options.iter().fold(run, |run, option| run.argument(option));
    let finished = run.finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(())
}

/// A run with idle power set apart, and its recording.
struct Recorded {
    live: Output,
    recording: PathBuf,
}

impl Recorded {
    fn get() -> Result<Arc<Self>> {
        static RUN: Shared<Recorded> = Shared::new();
        RUN.get(|| {
            let live = Output::new()?;
            let recording = live.beside("run.jrec");
            let path = recording.to_str().unwrap();
            record(&live, &["--idle", "separate", "--idle-watts", "9", "--record", path])?;
            Ok(Self { live, recording })
        })
    }
}

fn expect_conserved(data: &DataSet) -> Result<()> {
    ensure!(data.number("SELECT count(*) FROM windows WHERE measured_uj > 0")? >= 8.0, "hardly any window has energy");
    data.expect_none(
        "windows whose energy is not all accounted for",
        "SELECT * FROM windows WHERE attributed_uj + static_uj + unattributed_uj <> measured_uj
         OR unattributed_uj <> other_processes_uj + kernel_uj + profiler_uj + unslotted_uj + failed_reads_uj + suspended_uj + idle_uj
            + unshared_uj",
    )?;
    data.expect_none(
        "windows whose CPU time is not all accounted for",
        "SELECT * FROM windows WHERE cpu_busy_ns + cpu_idle_ns + cpu_unslotted_ns <> cpu_elapsed_ns",
    )?;
    data.expect_none(
        "runs whose methods do not sum to what was attributed",
        "WITH rows AS (SELECT run_id, sum(self_uj) AS uj FROM methods GROUP BY 1),
         audit AS (SELECT run_id, sum(attributed_uj) AS uj FROM windows GROUP BY 1)
         SELECT * FROM audit LEFT JOIN rows USING (run_id) WHERE audit.uj <> coalesce(rows.uj, 0)",
    )?;
    for table in ["threads", "branches", "quality"] {
        data.expect_none(
            &format!("windows whose {table} do not sum to what was attributed"),
            &format!(
                "WITH rows AS (SELECT window_start, sum(energy_uj) AS uj FROM {table} GROUP BY 1),
                 audit AS (SELECT window_start, sum(attributed_uj) AS uj FROM windows GROUP BY 1)
                 SELECT * FROM audit LEFT JOIN rows USING (window_start) WHERE audit.uj <> coalesce(rows.uj, 0)"
            ),
        )?;
    }
    for table in ["quality", "jvms"] {
        let sums = "window_start, pid, sum(energy_uj) AS uj, sum(cpu_ns) AS ns, sum(samples) AS n";
        data.expect_none(
            &format!("processes whose rows in {table} do not sum to their threads"),
            &format!(
                "WITH rows AS (SELECT {sums} FROM {table} GROUP BY ALL),
                 whole AS (SELECT {sums} FROM threads GROUP BY ALL)
                 SELECT * FROM whole LEFT JOIN rows USING (window_start, pid)
                 WHERE (whole.uj, whole.ns, whole.n) IS DISTINCT FROM (rows.uj, rows.ns, rows.n)"
            ),
        )?;
    }
    Ok(())
}

#[test]
fn every_window_adds_up_to_the_microjoule_when_idle_is_separate() -> Result<()> {
    let run = Recorded::get()?;
    expect_conserved(&run.live.data)?;
    let share = run.live.data.number("SELECT sum(static_uj) / sum(measured_uj) FROM windows")?;
    assert!(share > 0.1, "with 9 W of idle power, the static share is {share:.3}");
    Ok(())
}

#[test]
fn every_window_adds_up_to_the_microjoule_when_idle_is_spread() -> Result<()> {
    let output = Output::new()?;
    record(&output, &["--idle", "spread"])?;
    expect_conserved(&output.data)
}

#[test]
fn every_window_adds_up_with_the_model() -> Result<()> {
    let output = Output::new()?;
    let jvm = Workload::new("Busy").start()?;
    let finished = Run::modelled().pid(jvm.pid()).with("--duration", "5s").with("--interval", "500ms");
    let finished = finished.output(output.dir()).finish(LIMIT + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    expect_conserved(&output.data)
}

#[test]
fn a_replay_says_what_the_run_said_and_twice_the_same_bytes() -> Result<()> {
    let run = Recorded::get()?;
    let (live, path) = (&run.live, run.recording.as_os_str());
    let replays = [Output::new()?, Output::new()?];
    for replay in &replays {
        let finished = Run::new().with("--replay", path).output(replay.dir()).finish(LIMIT)?;
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        expect_conserved(&replay.data)?;
    }
    let [first, second] = [replays[0].data.files()?, replays[1].data.files()?];
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    assert!(!first.is_empty());
    for (path, bytes) in &first {
        assert!(second[path] == *bytes, "{} differs between two replays", path.display());
    }
    for table in ["windows", "threads", "methods", "branches", "jvms", "quality"] {
        let sql = format!("SELECT count(*) AS n, sum(hash(t))::VARCHAR AS content FROM {table} t");
        assert_eq!(live.data.rows(&sql)?, replays[0].data.rows(&sql)?, "{table}: live and replayed");
    }
    let again = Run::new().with("--replay", path).output(live.dir()).finish(LIMIT)?;
    assert_eq!(again.code(), Some(6), "a run is in a data set once: {again:?}");
    Ok(())
}

#[test]
fn a_replay_needs_no_privileges() -> Result<()> {
    let run = Recorded::get()?;
    let user = super::errors::Unprivileged::new()?;
    let theirs = user.adopt(&run.recording)?;
    let finished = user.joular_bpf(&["--replay", &theirs, "--output", &user.path("out")])?.finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    expect_conserved(&DataSet::at(user.path("out")))
}

#[test]
fn a_truncated_recording_yields_what_it_holds_and_says_so() -> Result<()> {
    let whole = std::fs::read(&Recorded::get()?.recording)?;
    for percent in [5, 50, 95] {
        let replay = Output::new()?;
        let cut = replay.beside("cut.jrec");
        std::fs::write(&cut, &whole[..whole.len() * percent / 100])?;
        let finished = Run::new().with("--replay", cut.as_os_str()).output(replay.dir()).finish(LIMIT)?;
        let stderr = finished.stderr.to_lowercase();
        assert!(finished.code().is_some_and(|code| code < 2), "{percent} %: {finished:?}");
        assert!(!stderr.contains("panicked"), "{percent} %: {stderr}");
        let says_so = ["truncated", "incomplete", "without its end"].iter().any(|word| stderr.contains(word));
        assert!(says_so, "{percent} %: the message does not say that the recording is not whole: {stderr}");
        if replay.dir().exists() {
            replay.data.expect_readable()?;
        }
    }
    Ok(())
}
