//! Tests the service: systemd's notifications, new configurations, and that what it ships is what it recorded,
//! however it ends.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::DataSet,
    java::Workload,
    paths,
    process::{Finished, Running},
    profiler::END,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

/// A service manager, as far as a service knows.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    /// All that it was told, a line each.
    told: Vec<String>,
}

impl Manager {
    fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path, told: Vec::new() })
    }

    /// Starts the service, and waits until it is ready.
    fn start(&mut self, config: &Path) -> Result<Running> {
        let mut command = Command::new(paths::joular_bpf());
        command.args(["agent", "--log-format", "json", "--config"]).arg(config).env("NOTIFY_SOCKET", &self.path);
        let service = Running::spawn("joular-bpf agent", &mut command)?;
        self.wait("READY=1")?;
        Ok(service)
    }

    /// Waits until it is told something that begins so, and forgets what was told before.
    fn wait(&mut self, beginning: &str) -> Result<String> {
        wait_for(beginning, LIMIT, || {
            let mut buffer = [0; 4096];
            while let Ok(length) = self.socket.recv(&mut buffer) {
                self.told.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(ToOwned::to_owned));
            }
            let found = self.told.iter().position(|line| line.starts_with(beginning));
            Ok(found.and_then(|position| self.told.drain(..=position).next_back()))
        })
    }
}

fn sums(data: &Path) -> Result<Vec<serde_json::Value>> {
    DataSet::at(data).rows(
        "SELECT (SELECT sum(energy_uj)::BIGINT FROM threads) AS threads,
           (SELECT sum(energy_uj)::BIGINT FROM branches) AS branches,
           (SELECT sum(self_uj)::BIGINT FROM methods) AS methods,
           (SELECT sum(measured_uj)::BIGINT FROM windows) AS measured,
           (SELECT sum(cpu_ns)::BIGINT FROM threads) AS cpu_ns,
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
             interval = '{interval}'\nship = {bucket:?}\nship-window = '5s'\n",
            jvm.pid()
        );
        fs::write(&config, text)
    };
    write("100ms")?;
    let mut manager = Manager::new(folder.path())?;
    let mut service = manager.start(&config)?;
    let status = manager.wait("STATUS=")?;
    ensure!(status.starts_with("STATUS=Recording 1 processes, "), "{status}");
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
    let mut service = manager.start(&config)?;
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
    let finished = service.finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(finished)
}
