//! Tests the service: systemd's notifications, new configurations, and that what it ships is what it recorded,
//! however it ends.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::{DataSet, share},
    java::Workload,
    paths,
    process::{Finished, Running},
    profiler::END,
    service::Manager,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

/// Of whole windows: a recorder that is killed while it writes files leaves rows that belong to none.
fn sums(data: &Path) -> Result<Vec<serde_json::Value>> {
    DataSet::at(data).rows(
        "WITH whole AS (SELECT DISTINCT run_id, window_start FROM windows)
         SELECT (SELECT sum(energy_uj)::BIGINT FROM threads SEMI JOIN whole USING (run_id, window_start)) AS threads,
           (SELECT sum(energy_uj)::BIGINT FROM branches SEMI JOIN whole USING (run_id, window_start)) AS branches,
           (SELECT sum(self_uj)::BIGINT FROM methods SEMI JOIN whole USING (run_id, window_start)) AS methods,
           (SELECT sum(measured_uj)::BIGINT FROM windows) AS measured,
           (SELECT sum(cpu_ns)::BIGINT FROM threads SEMI JOIN whole USING (run_id, window_start)) AS cpu_ns,
           (SELECT count(DISTINCT run_id) FROM runs) AS runs",
    )
}

#[test]
fn a_service_ships_what_it_records_through_reloads_and_kills() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (config, data, bucket) =
        (folder.path().join("agent.toml"), folder.path().join("data"), folder.path().join("bucket"));
    let jvm = Workload::new("Busy").start()?;
    let write = |interval: &str| {
        let text = format!(
            "pid = [{}]\noutput = {data:?}\nrotate = '10s'\nflush = '1s'\nenergy = 'model'\nmodel-watts = '2:10'\n\
             interval = '{interval}'\nship = {bucket:?}\nship-window = '5s'\nship-layout = 'tables'\n\
             ship-at-end = '60s'\n",
            jvm.pid()
        );
        fs::write(&config, text)
    };
    write("100ms")?;
    share(&bucket)?;
    let mut manager = Manager::new(folder.path())?;
    let mut service = manager.start(Command::new(paths::joular_bpf()), &config)?;
    let status = manager.wait("STATUS=")?;
    ensure!(status.starts_with("STATUS=Recording 1 process, "), "{status}");
    manager.wait("WATCHDOG=1")?;

    // A mistake changes nothing, and the service goes on.
    fs::write(&config, "shipp = 1")?;
    service.signal(Signal::HUP)?;
    manager.wait("RELOADING=1")?;
    manager.wait("READY=1")?;
    service.wait_stderr("{\"time\":", LIMIT)?;
    manager.wait("WATCHDOG=1")?;

    // Another configuration is another run.
    write("200ms")?;
    service.signal(Signal::HUP)?;
    manager.wait("RELOADING=1")?;
    manager.wait("READY=1")?;
    let shipped = || -> Result<Option<()>> {
        Ok(bucket.join("windows").is_dir().then_some(()).filter(|()| fs::read_dir(bucket.join("runs")).is_ok()))
    };
    wait_for("a run that was shipped at the end of its recording", LIMIT, shipped)?;

    // Killed in the middle of a run, of which some files are there.
    wait_for("files of the second run", LIMIT, || {
        let runs = DataSet::at(&data)
            .rows("SELECT count(DISTINCT run_id) AS runs FROM windows WHERE window_ns > 150000000")?;
        Ok(runs[0]["runs"].as_u64().filter(|runs| *runs > 0))
    })?;
    service.kill();
    let mut service = manager.start(Command::new(paths::joular_bpf()), &config)?;
    manager.wait("WATCHDOG=1")?;
    service.forget_seen();
    service.signal(Signal::TERM)?;
    manager.wait("STOPPING=1")?;
    let Finished { stderr, .. } = ended(service)?;
    ensure!(!stderr.contains("\"error\"") && !stderr.contains("wait"), "{stderr}");

    ensure!(sums(&bucket)? == sums(&data)?, "{:?} {:?}", sums(&bucket)?, sums(&data)?);
    for set in [&data, &bucket] {
        let mut command = Command::new(paths::joular_bpf());
        let audit = Running::spawn("audit", command.arg("audit").arg(set))?.finish(LIMIT)?;
        ensure!(audit.code() == Some(0), "{audit:?}");
    }
    Ok(())
}

fn ended(service: Running) -> Result<Finished> {
    let finished = service.finish(END + LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(finished)
}
