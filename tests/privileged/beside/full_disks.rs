//! Tests the service on a disk that is full for a while: recording and metrics go on, what waits to be shipped stays, and
//! what was lost is counted.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::{DataSet, share},
    java::Workload,
    mount::Tmpfs,
    paths,
    process::Running,
    profiler::END,
    prometheus::{answer, free_port},
    service::Manager,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(90);

/// One metric without labels.
fn metric(port: u16, name: &str) -> Result<f64> {
    let text = answer(port, "/metrics", "")?.context("it is served")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.with_context(|| format!("{name} in {text}"))?.trim().parse()?)
}

/// `options` and what fills the disk, and what the service says of it.
fn goes_through(options: &str, more: &str, fill: impl Fn(&Tmpfs) -> Result<()>, said: &str) -> Result<()> {
    let (disk, folder, port) = (Tmpfs::mount(options)?, tempfile::tempdir()?, free_port()?);
    let [data, place] = ["data", "place"].map(|name| disk.path().join(name));
    let place = folder.path().join(place.file_name().context("a name")?);
    let config = folder.path().join("agent.toml");
    let jvm = Workload::new("Busy").start()?;
    let text = format!(
        "pid = [{}]\noutput = {data:?}\nrotate = '10s'\nflush = '1s'\nenergy = 'model'\nmodel-watts = '2:10'\n\
         interval = '100ms'\nship = {place:?}\nship-window = '5s'\nship-layout = 'tables'\nship-at-end = '60s'\nmetrics = '127.0.0.1:{port}'\n{more}",
        jvm.pid()
    );
    fs::write(&config, text)?;
    let mut manager = Manager::new(folder.path())?;
    let mut service = manager.start(Command::new(paths::joular_bpf()), &config)?;
    // A share that is not mounted, and the first run that waits.
    let runs = || -> Result<u64> {
        if !data.join("windows").is_dir() {
            return Ok(0);
        }
        let rows = DataSet::at(&data).rows("SELECT count(DISTINCT run_id) AS runs FROM windows")?;
        rows[0]["runs"].as_u64().context("a count")
    };
    wait_for("a second run", LIMIT, || Ok((runs()? >= 2).then_some(())))?;

    fill(&disk)?;
    let failed = service.wait_stderr_with("recording goes on", LIMIT)?;
    ensure!(failed.contains(said) && runs()? >= 2, "{failed}");
    let before = metric(port, "joular_windows_total")?;
    wait_for("windows that are lost", LIMIT, || {
        let (lost, windows) = (metric(port, "joular_unwritten_windows_total")?, metric(port, "joular_windows_total")?);
        Ok((lost > 20.0 && windows > before + 20.0).then_some(()))
    })?;
    manager.wait("STATUS=Recording 1 process")?;
    for probe in ["/livez", "/readyz"] {
        let answer = answer(port, probe, "")?;
        ensure!(answer.as_ref().is_some_and(|answer| answer.starts_with("HTTP/1.1 200 ")), "{probe}: {answer:?}");
    }

    disk.make_room()?;
    let again = service.wait_stderr_with("the data set is written again", LIMIT)?;
    ensure!(!place.exists(), "a share is never made");
    share(&place)?;
    service.signal(Signal::TERM)?;
    let finished = service.finish(END + LIMIT)?;
    ensure!(finished.code() == Some(0) && !finished.stderr.contains("\"error\""), "{finished:?}");
    ensure!(!finished.stderr.contains("removed"), "nothing that waits is removed: {finished:?}");

    let lost: u64 = again.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok()).context(again.clone())?;
    let sums = |set: DataSet| {
        set.rows(
            "SELECT sum(measured_uj)::BIGINT AS measured, sum(attributed_uj)::BIGINT AS attributed,
               sum(lost_other)::BIGINT >= 0 AS counted, count(DISTINCT run_id) AS runs FROM windows",
        )
    };
    ensure!(
        sums(DataSet::at(&data))? == sums(DataSet::at(&place))?,
        "{:?} {:?}",
        sums(DataSet::at(&data)),
        sums(DataSet::at(&place))
    );
    let noted = DataSet::at(&data).rows(&format!(
        "SELECT count(*) > 0 AS noted FROM windows WHERE list_contains(other_losses, 'unwritten_windows={lost}')"
    ))?;
    ensure!(lost > 20 && noted[0]["noted"] == true, "{again}: {noted:?}");
    for set in [&data, &place] {
        let mut command = Command::new(paths::joular_bpf());
        let audit = Running::spawn("audit", command.arg("audit").arg(set))?.finish(LIMIT)?;
        ensure!(audit.code() == Some(0), "{audit:?}");
    }
    Ok(())
}

#[test]
fn a_disk_without_bytes() -> Result<()> {
    goes_through("size=24m", "keep-free = '0'", Tmpfs::fill, "no space left on the device")
}

#[test]
fn a_disk_of_which_others_are_to_have_a_part() -> Result<()> {
    goes_through("size=48m", "keep-free = '20MiB'", Tmpfs::fill, "less than --keep-free of the file system")
}

#[test]
fn a_disk_without_inodes() -> Result<()> {
    let fill = |disk: &Tmpfs| disk.fill_with_files();
    goes_through("size=24m,nr_inodes=2000", "keep-free = '0'", fill, "no space left on the device")
}
