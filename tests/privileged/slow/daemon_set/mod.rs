//! Tests the DaemonSet as a node runs it: a pod of a real container runtime, made of the manifest as it is. It records,
//! its probes answer, and a rollout while it ships neither loses a run nor ships one twice.

mod confinement;
mod place;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    containers::{
        self,
        containerd::{Containerd, Pod},
        podman::Podman,
    },
    dataset::{DataSet, share},
    java::{Jvm, Workload},
    kernels,
    kubelet::{self, Node},
    notes,
    packages::Packages,
    paths,
    process::Running,
    prometheus::{answer, free_port},
    python,
    s3::S3,
};
use serde_json::{Value, json};

use self::{
    confinement::{expect_confined, expect_secret_mode},
    place::{Place, run_of},
};

/// A run ends after ten seconds. The agent looks for runs to ship once or twice a minute, at a moment of chance, and
/// ships at the lowest priority, here on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
const MANIFEST: &str = "packaging/kubernetes/daemon-set.yaml";
/// Where the container has the directory of its data.
const DATA: &str = "/var/lib/joular-bpf";
const VERSIONS: [&str; 2] = [env!("CARGO_PKG_VERSION"), "0.99.0"];
/// So slow that a run takes a minute or so.
const SLOWLY: [(&str, &str); 1] = [("ship-rate", "'1KiB'")];
/// As the manifest's grace period permits: docs/agent.md.
const ALL_AT_END: [(&str, &str); 1] = [("ship-at-end", "'45s'")];
/// What a rollout has to say, and no more.
const LEFT_OVER: &str = "what waits is shipped after the next start";

/// A node with a JVM on it, and the DaemonSet that is rolled out there.
struct Rollout {
    containerd: Containerd,
    node: Node,
    daemon_set: Value,
    place: Place,
    jvm: Jvm,
    port: u16,
    /// The node's directory of the data.
    folder: tempfile::TempDir,
}

impl Rollout {
    fn new(packages: &Packages, to_bucket: bool) -> Result<Self> {
        let (folder, port) = (tempfile::tempdir()?, free_port()?);
        let containerd = Containerd::new(&Podman::new()?)?;
        containerd.import(&packages.image()?)?;
        for version in VERSIONS {
            let name = format!("docker.io/library/joular-bpf:{version}");
            containerd.tag(&format!("localhost/joular-bpf:{}", VERSIONS[0]), &name)?;
        }
        let place = if to_bucket {
            Place::Bucket(S3::with_bucket("fleet")?)
        } else {
            let path = folder.path().join("data/place");
            share(&path)?;
            Place::Directory(path)
        };
        let mut secrets = BTreeMap::from([("joular-bpf".to_owned(), of([("metrics-token", "a-token\n")]))]);
        if to_bucket {
            secrets.insert("joular-bpf-environment".to_owned(), place.environment());
        }
        let node = Node {
            name: "node-7".to_owned(),
            address: "127.0.0.1".to_owned(),
            folder: folder.path().join("kubelet"),
            config_maps: BTreeMap::new(),
            secrets,
        };
        let mut daemon_set = kubelet::daemon_set(&paths::root().join(MANIFEST))?;
        let spec = &mut daemon_set["spec"]["template"]["spec"];
        // What this machine's other users have is left alone.
        spec["containers"][0]["ports"][0]["containerPort"] = port.into();
        let volumes = spec["volumes"].as_array_mut().context("volumes")?;
        let data = volumes.iter_mut().find(|volume| volume["hostPath"]["path"] == DATA);
        data.context("a volume of data")?["hostPath"]["path"] = json!(folder.path().join("data"));
        Ok(Self { containerd, node, daemon_set, place, jvm: Workload::new("Busy").start()?, port, folder })
    }

    fn data(&self) -> DataSet {
        DataSet::at(self.folder.path().join("data/data"))
    }

    /// The configuration beside the manifest, but for what this machine does not have: a kubelet to be asked, counters
    /// of energy, and the time for runs of a quarter of an hour.
    fn configuration(&self, more: &[(&str, &str)]) -> Result<String> {
        let mut keys = BTreeMap::new();
        for line in fs::read_to_string(paths::root().join("packaging/kubernetes/agent.toml"))?.lines() {
            let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else { continue };
            keys.insert(key.to_owned(), value.to_owned());
        }
        for key in ["jvms", "kubernetes"] {
            keys.remove(key).with_context(|| format!("no {key} in the configuration"))?;
        }
        let (port, place) = (self.port, self.place.names().0);
        // Perf events of allocations would need another capability.
        let (pid, alloc) = (self.jvm.pid(), kernels::probes_are_links()?.to_string());
        let (pid, metrics, place) = (format!("[{pid}]"), format!("'127.0.0.1:{port}'"), format!("'{place}'"));
        let own =
            [("pid", &*pid), ("metrics", &metrics), ("ship", &place), ("ship-layout", "'tables'"), ("alloc", &alloc)];
        let quick = [("rotate", "'10s'"), ("flush", "'1s'"), ("energy", "'model'")];
        keys.extend(own.iter().chain(&quick).chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        Ok(keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect())
    }

    /// Starts the pod of a version and waits as long as its probes permit.
    fn start(&mut self, version: usize, more: &[(&str, &str)]) -> Result<(Pod, kubelet::Pod)> {
        let configuration = self.configuration(more)?;
        self.node.config_maps.insert("joular-bpf".to_owned(), of([("agent.toml", &configuration)]));
        let image = format!("joular-bpf:{}", VERSIONS[version]);
        self.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        let prepared = kubelet::prepare(&self.daemon_set, &self.node, u8::try_from(version)?)?;
        let pod = self.containerd.run_pod(&prepared.sandbox, &prepared.container)?;
        prepared.probes.wait().with_context(|| pod.printed().unwrap_or_default())?;
        Ok((pod, prepared))
    }

    /// Ends a pod within its grace period and removes it. What it said as a warning or worse.
    fn end(&mut self, pod: &Pod, prepared: &kubelet::Pod) -> Result<Vec<String>> {
        let asked = Instant::now();
        let code = self.containerd.stop(pod, prepared.grace)?;
        let (took, logs) = (asked.elapsed(), pod.printed()?);
        ensure!(code == 0, "exit code {code} after {took:?}: {logs}");
        ensure!(took < prepared.grace, "{took:?}: {logs}");
        self.containerd.remove(pod)?;
        notes::figure(&format!("a pod of the DaemonSet ends in {:.1} s", took.as_secs_f64()));
        let messages = logs.lines().map(|line| serde_json::from_str(line).with_context(|| logs.clone()));
        let messages = messages.collect::<Result<Vec<Value>>>()?;
        let is_grave = |message: &&Value| ["warning", "error"].iter().any(|level| message["level"] == *level);
        Ok(messages.iter().filter(is_grave).map(|message| message["message"].to_string()).collect())
    }

    /// Waits until a run is being shipped, and others wait.
    fn wait_under_way(&self) -> Result<()> {
        wait_for("a run to be shipped while others wait", LIMIT, || {
            let (begun, arrived) = (self.place.runs_in("runs")?, self.place.runs_in("windows")?);
            let recorded = recorded(&self.data())?;
            // One is being shipped, one waits, and one is being recorded.
            Ok((begun.len() > arrived.len() && recorded.len() >= arrived.len() + 3).then_some(()))
        })
    }
}

fn of<const N: usize>(files: [(&str, &str); N]) -> kubelet::Files {
    files.map(|(name, content)| (name.to_owned(), content.to_owned())).into()
}

/// Runs that there are on the node.
fn recorded(data: &DataSet) -> Result<BTreeSet<String>> {
    let folder = data.dir().join("runs");
    if !folder.is_dir() {
        return Ok(BTreeSet::new());
    }
    DataSet::at(folder).files()?.keys().map(|file| run_of(&file.display().to_string())).collect()
}

fn expect_metrics(port: u16) -> Result<()> {
    for (headers, expected) in [("", "401 Unauthorized"), ("Authorization: Bearer a-token\r\n", "200 OK")] {
        let answer = answer(port, "/metrics", headers)?.context("it serves metrics")?;
        ensure!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "not {expected}: {answer}");
    }
    Ok(())
}

/// What an audit finds in each run, as far as it does not depend on the length of windows.
fn audited(place: &str, environment: BTreeMap<String, String>) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut command = Command::new(paths::joular_bpf());
    let finished =
        Running::spawn("audit", command.args(["audit", place, "--json"]).envs(environment))?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{place}: {finished:?}");
    let runs: Vec<Value> = serde_json::from_str(&finished.stdout)?;
    let names = ["measured_uj", "attributed_uj", "static_uj", "unattributed_uj", "profiler_uj", "samples", "has_ended"];
    let mut found = BTreeMap::new();
    for run in &runs {
        let name = run["run_id"].as_str().context("a run")?.to_owned();
        let before = found.insert(name.clone(), names.map(|name| run[name].clone()).to_vec());
        ensure!(before.is_none(), "{place}: {name} is there twice");
    }
    Ok(found)
}

/// Each run has arrived, once, with all that was recorded.
fn expect_arrived(rollout: &Rollout) -> Result<()> {
    let (data, place) = (rollout.data(), &rollout.place);
    let runs: Vec<String> = place.files()?.into_iter().filter(|file| file.starts_with("runs/")).collect();
    let names = runs.iter().map(|file| run_of(file)).collect::<Result<BTreeSet<_>>>()?;
    ensure!(names.len() == runs.len() && names == recorded(&data)?, "{runs:?}, not {:?}", recorded(&data)?);
    let on_node = audited(&data.dir().display().to_string(), BTreeMap::new())?;
    let there = audited(&place.names().1, place.environment())?;
    ensure!(on_node == there, "{on_node:?} recorded, {there:?} shipped");
    ensure!(on_node.keys().eq(names.iter()), "{on_node:?} recorded, {names:?} shipped");
    let found = data.rows(
        "SELECT any_value(hostname) AS host, (SELECT sum(self_cpu_ns) FILTER (method = 'Busy.spin')::DOUBLE
           / sum(self_cpu_ns) FROM methods) AS share FROM runs",
    )?;
    ensure!(found[0]["host"] == "node-7", "{found:?}");
    ensure!(found[0]["share"].as_f64().is_some_and(|share| share > 0.9), "{found:?}");
    notes::figure(&format!("a rollout of the DaemonSet: {} runs have arrived", names.len()));
    Ok(())
}

/// `change` is what a user changes in the DaemonSet, by which the files of secrets have this mode.
fn expect_rollout(to_bucket: bool, secret_mode: u32, change: impl FnOnce(&mut Value)) -> Result<()> {
    let Some(packages) = Packages::find() else {
        notes::skipped("there are no packages to test: `cargo xtask test --slow` makes them");
        return Ok(());
    };
    if !containers::are_installed() || !python::ENGINES.is_ready() {
        notes::skipped("there is no containerd with its client (`cargo xtask setup` installs both on Debian)");
        return Ok(());
    }
    let mut rollout = Rollout::new(&packages, to_bucket)?;
    change(&mut rollout.daemon_set);

    let (first, prepared) = rollout.start(0, &SLOWLY)?;
    expect_confined(&first, &prepared)?;
    expect_secret_mode(&first, secret_mode)?;
    expect_metrics(rollout.port)?;
    rollout.wait_under_way().with_context(|| first.printed().unwrap_or_default())?;
    prepared.probes.liveness.ask()?;
    prepared.probes.readiness.ask()?;
    let warnings = rollout.end(&first, &prepared)?;
    ensure!(warnings.len() == 1 && warnings[0].contains(LEFT_OVER), "{warnings:?}");
    let (left, arrived) = (recorded(&rollout.data())?, rollout.place.runs_in("windows")?);
    ensure!(left.len() >= arrived.len() + 2, "{left:?} recorded, {arrived:?} shipped");

    let (second, prepared) = rollout.start(1, &ALL_AT_END)?;
    expect_confined(&second, &prepared)?;
    expect_metrics(rollout.port)?;
    wait_for("the runs that waited to arrive", LIMIT, || {
        Ok(rollout.place.runs_in("windows")?.is_superset(&left).then_some(()))
    })
    .with_context(|| second.printed().unwrap_or_default())?;
    let warnings = rollout.end(&second, &prepared)?;
    ensure!(warnings.is_empty(), "{warnings:?}");
    expect_arrived(&rollout)
}

#[test]
fn a_rollout_of_the_daemon_set_while_it_ships_loses_no_run_and_ships_none_twice() -> Result<()> {
    expect_rollout(false, 0o400, |_| ())
}

#[test]
fn a_rollout_loses_none_where_a_bucket_needs_a_secret_and_files_have_a_group() -> Result<()> {
    expect_rollout(true, 0o440, |daemon_set| {
        daemon_set["spec"]["template"]["spec"]["securityContext"]["fsGroup"] = 2000.into();
    })
}
