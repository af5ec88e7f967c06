//! Tests a fleet: hosts with an agent and JVMs each, and one bucket. What is in the bucket is what each host
//! recorded, to the microjoule, whatever happens to agents, to the bucket, to disks and to clocks meanwhile.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::{
    clock::wait_for,
    containers::{
        self,
        containerd::{Containerd, PodConfig},
        image::{Image, java_command},
        podman::Podman,
    },
    dataset::DataSet,
    java::Workload,
    jdk::Jdk,
    mount::Tmpfs,
    network::Network,
    notes, paths,
    process::{Finished, Running},
    profiler::END,
    python,
    s3::S3,
    service::Manager,
    wall_clock::WallClock,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(90);
const BUCKET: &str = "s3://fleet/energy";
const IMAGE: &str = "localhost/jvm:1";
const SECOND_NS: i128 = 1_000_000_000;

/// A host: a name and a network of its own, and an agent for its own JVMs.
struct Host {
    name: &'static str,
    network: Network,
    folder: tempfile::TempDir,
    manager: Manager,
    data: PathBuf,
    config: PathBuf,
}

impl Host {
    /// `more` of its agent's configuration. Its data set is on a disk of its own, or beside that.
    fn new(name: &'static str, network: Network, pids: &[u32], more: &str, disk: Option<&Tmpfs>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = disk.map_or(folder.path(), Tmpfs::path).join("data");
        let config = folder.path().join("agent.toml");
        let text = format!(
            "pid = {pids:?}\noutput = {data:?}\nrotate = '10s'\nflush = '1s'\ninterval = '200ms'\nenergy = 'model'\n\
             model-watts = '2:10'\nship = '{BUCKET}'\nship-window = '5s'\nship-layout = 'tables'\nkeep = '1h'\nkeep-free = '0'\n{more}\n"
        );
        fs::write(&config, text)?;
        Ok(Self { name, network, manager: Manager::new(folder.path())?, data, config, folder })
    }

    /// Starts the agent under the host's name, in its network.
    fn start(&mut self, server: &S3) -> Result<Running> {
        let [enter, network] = self.network.launcher();
        let mut command = Command::new(enter);
        let script = format!("hostname {} && exec \"$@\"", self.name);
        command
            .args([&network, "unshare", "--uts", "sh", "-c", &script, "sh"])
            .arg(paths::joular_bpf())
            .envs(server.environment());
        self.manager.start(command, &self.config)
    }

    /// Starts the agent and ends it, until nothing waits any more: an end takes ten seconds at most.
    fn ship_the_rest(&mut self, server: &S3) -> Result<()> {
        let mut stderr = String::new();
        for _ in 0..5 {
            stderr = stop(self.start(server)?)?.stderr;
            if !stderr.contains(" wait") {
                return Ok(());
            }
        }
        bail!("{}: {stderr}", self.name)
    }

    /// Waits until a run has ended and another one has files.
    fn wait_rotation(&self, before: usize) -> Result<()> {
        wait_for("another run", LIMIT, || Ok((self.runs()? >= before + 2).then_some(())))
    }

    fn runs(&self) -> Result<usize> {
        if !self.data.join("windows").is_dir() {
            return Ok(0);
        }
        let rows = DataSet::at(&self.data).rows("SELECT count(DISTINCT run_id) AS runs FROM windows")?;
        Ok(rows[0]["runs"].as_u64().context("a count")? as usize)
    }
}

fn stop(agent: Running) -> Result<Finished> {
    agent.signal(Signal::TERM)?;
    let finished = agent.finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(finished)
}

/// What an audit says of each run, without what differs between windows of a second and of a minute.
fn audited(place: &str, server: &S3) -> Result<BTreeMap<String, Value>> {
    let mut command = Command::new(paths::joular_bpf());
    command.args(["audit", place, "--json"]).envs(server.environment());
    let finished = Running::spawn("audit", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{place}: {finished:?}");
    let runs: Vec<Value> = serde_json::from_str(&finished.stdout)?;
    let sums = |run: &Value| {
        let names =
            ["measured_uj", "attributed_uj", "static_uj", "unattributed_uj", "profiler_uj", "samples", "has_ended"];
        names.iter().map(|name| run[name].clone()).collect()
    };
    runs.iter().map(|run| Ok((run["run_id"].as_str().context("a run")?.to_owned(), sums(run)))).collect()
}

/// What ClickHouse finds in the bucket, and DuckDB on the hosts: microjoules by host and run.
fn by_engines(hosts: &[&Host], server: &S3) -> Result<[BTreeMap<(String, String), u64>; 2]> {
    let environment = server.environment();
    let endpoint = environment.iter().find(|(name, _)| *name == "AWS_ENDPOINT_URL").context("an endpoint")?;
    let mut command = python::ENGINES.script("bucket_sums.py")?;
    command.arg(BUCKET.replace("s3:/", &endpoint.1)).envs(environment.clone());
    let finished = Running::spawn("bucket_sums.py", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let rows: Vec<(String, String, u64)> = serde_json::from_str(&finished.stdout)?;
    let in_bucket = rows.into_iter().map(|(host, run, uj)| ((host, run), uj)).collect();
    let mut on_hosts = BTreeMap::new();
    for host in hosts {
        let sql = "SELECT host, run_id, sum(energy_uj)::BIGINT AS uj FROM threads GROUP BY ALL";
        for row in DataSet::at(&host.data).rows(sql)? {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            on_hosts.insert((text("host"), text("run_id")), row["uj"].as_u64().context("energy")?);
        }
    }
    Ok([in_bucket, on_hosts])
}

#[test]
fn a_bucket_has_what_each_host_recorded_through_kills_outages_and_steps_of_clocks() -> Result<()> {
    if !containers::are_installed() {
        notes::skipped("there is no podman to run containers with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let mut server = S3::with_bucket("fleet")?;
    let podman = Podman::new()?;
    let image = Image::of(Jdk::pinned()?.last().context("no pinned JDK")?)?;
    let mut containerd = Containerd::with_image(&podman, &image, IMAGE)?;
    let command = [java_command("Busy"), ["work=2", "rest=20", "seconds=120"].map(str::to_owned).to_vec()].concat();
    let networks = [Network::new()?, Network::new()?, Network::new()?];
    networks.iter().try_for_each(|network| network.forward(server.port()))?;
    let contained = podman.start_in_network(&networks[2], IMAGE, &command)?;
    podman.wait_ready(&contained)?;
    let labels = [("app.kubernetes.io/name", "checkout")];
    let pod = containerd.run(&PodConfig::new(1, "shop", &labels), IMAGE, &command)?;
    let kubernetes = format!("kubernetes = '{}'", containerd.socket().display());
    let disk = Tmpfs::mount("size=16m")?;
    let start = |network: &Network| {
        let [enter, network] = network.launcher();
        Workload::new("Busy").argument("work=2").argument("rest=20").launched_by(&[&enter, &network]).start()
    };
    let jvms = [0, 0, 1, 2].iter().map(|host: &usize| start(&networks[*host])).collect::<Result<Vec<_>>>()?;
    let pid = |index: usize| jvms[index].pid();
    ensure!(networks[0].has(pid(1))? && networks[2].has(contained.pid)? && !networks[0].has(pid(2))?);
    let [first, second, third] = networks;
    let mut hosts = [
        Host::new("node-1", first, &[pid(0), pid(1)], "", None)?,
        Host::new("node-2", second, &[pid(2), pod.pid], &kubernetes, Some(&disk))?,
        Host::new("node-3", third, &[pid(3), contained.pid], "", None)?,
    ];

    // The bucket is away, and one agent is killed.
    server.tell("away")?;
    let mut agents = hosts.iter_mut().map(|host| host.start(&server)).collect::<Result<Vec<_>>>()?;
    hosts.iter().try_for_each(|host| host.wait_rotation(0))?;
    agents.remove(0).kill();
    // The disk of another one is full. What waits to be shipped stays, and the recording goes on.
    let kept = hosts[1].runs()?;
    disk.fill()?;
    let failed = agents[0].wait_stderr_with("recording goes on", LIMIT)?;
    ensure!(failed.contains("no space left on the device") && hosts[1].runs()? >= kept, "{failed}");
    disk.make_room()?;
    agents[0].wait_stderr_with("the data set is written again", LIMIT)?;
    for agent in agents {
        let stderr = stop(agent)?.stderr;
        ensure!(stderr.contains("503 Service Unavailable") && stderr.contains("wait"), "{stderr}");
    }

    // It is back, and refuses files and loses answers. The clock is set.
    server.tell("well")?;
    server.tell("refuse 0.2")?;
    server.tell("lose 0.2")?;
    let before = hosts.iter().map(Host::runs).collect::<Result<Vec<_>>>()?;
    let agents = hosts.iter_mut().map(|host| host.start(&server)).collect::<Result<Vec<_>>>()?;
    let clock = WallClock::now();
    let step = |by_ns| {
        if let Err(error) = clock.step(by_ns) {
            notes::figure(&format!("a fleet: without steps of the clock: {error:#}"));
        }
    };
    step(3 * SECOND_NS);
    hosts[0].wait_rotation(before[0])?;
    step(-2 * SECOND_NS);
    hosts[2].wait_rotation(before[2])?;
    drop(clock);
    for agent in agents {
        stop(agent)?;
    }

    // All is well, and what waited arrives.
    server.tell("well")?;
    for host in &mut hosts {
        host.ship_the_rest(&server)?;
    }
    podman.remove([&contained])?;

    let in_bucket = audited(BUCKET, &server)?;
    let mut runs = 0;
    for host in &hosts {
        let place = host.data.to_str().context("a path")?;
        for (run, sums) in audited(place, &server)? {
            ensure!(
                in_bucket.get(&run) == Some(&sums),
                "{} {run}: {sums} recorded, {:?} shipped",
                host.name,
                in_bucket.get(&run)
            );
            runs += 1;
        }
    }
    let [clickhouse, duckdb] = by_engines(&hosts.each_ref(), &server)?;
    for (run, uj) in &duckdb {
        ensure!(clickhouse.get(run) == Some(uj), "{run:?}: {uj} µJ recorded, {:?} shipped", clickhouse.get(run));
    }
    notes::figure(&format!("a fleet: {runs} runs of 3 hosts are in the bucket"));
    // A run that a full disk removed may have been shipped before.
    let only_shipped = clickhouse.keys().filter(|run| !duckdb.contains_key(*run));
    ensure!(only_shipped.clone().all(|(host, _)| host == "node-2"), "{clickhouse:?}");
    ensure!(only_shipped.count() <= 2, "{clickhouse:?}");
    let sql = "SELECT DISTINCT namespace, pod_name, service FROM processes WHERE pod IS NOT NULL";
    let pods = DataSet::at(&hosts[1].data).rows(sql)?;
    ensure!(pods == [json!({"namespace": "shop", "pod_name": "pod-1", "service": "checkout"})], "{pods:?}");
    ensure!(runs >= 9 && duckdb.len() >= 9, "{runs} runs, {} with threads", duckdb.len());
    drop(hosts.map(|host| host.folder));
    Ok(())
}
