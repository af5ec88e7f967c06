//! Tests the container image: it records the host's JVMs with no more than the capabilities and system calls that
//! the manifests give it, on a root directory that is read-only.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    containers::{self, podman::Podman},
    dataset::{DataSet, share},
    java::Workload,
    kernels,
    kubelet::lay_files,
    notes,
    packages::Packages,
    paths,
    prometheus::{answer, free_port},
};
use serde_json::Value;

/// A run ends after ten seconds. The agent looks for runs to ship once or twice a minute, at a moment of chance, and
/// ships at the lowest priority, here on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// 30 MiB.
const MOST_BYTES: u64 = 30 << 20;

/// Capabilities that the DaemonSet adds.
fn capabilities() -> Result<Vec<String>> {
    let text = fs::read_to_string(paths::root().join("packaging/kubernetes/daemon-set.yaml"))?;
    let list = text.lines().find_map(|line| line.trim().strip_prefix("add: "));
    Ok(serde_json::from_str(list.context("the DaemonSet adds no capabilities")?)?)
}

/// The profile of system calls, but one that ends the process where the real one refuses: a call that is missing in
/// the profile cannot go unnoticed.
fn strict_seccomp(folder: &Path) -> Result<String> {
    let mut profile: Value =
        serde_json::from_str(&fs::read_to_string(paths::root().join("packaging/container/seccomp.json"))?)?;
    profile["defaultAction"] = "SCMP_ACT_KILL_PROCESS".into();
    profile.as_object_mut().context("a profile")?.remove("defaultErrnoRet");
    let file = folder.join("seccomp.json");
    fs::write(&file, profile.to_string())?;
    Ok(format!("--security-opt=seccomp={}", file.display()))
}

/// Paths of the probes that the DaemonSet has.
fn probes() -> Result<Vec<String>> {
    let text = fs::read_to_string(paths::root().join("packaging/kubernetes/daemon-set.yaml"))?;
    let path = |line: &str| Some(line.split_once("httpGet: { path: ")?.1.split_once(',')?.0.to_owned());
    Ok(text.lines().filter_map(path).collect())
}

#[test]
fn the_container_image_records_with_exactly_the_capabilities_and_calls_of_its_manifests() -> Result<()> {
    let Some(packages) = Packages::find() else {
        notes::skipped("there are no packages to test: `cargo xtask test --slow` makes them");
        return Ok(());
    };
    if !containers::are_installed() {
        notes::skipped("there is no podman to run containers with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let (podman, folder) = (Podman::new()?, tempfile::tempdir()?);
    let image = podman.load(&packages.image()?)?;
    let jvm = Workload::new("Busy").start()?;
    // Perf events would need another capability.
    let (alloc, port) = (kernels::probes_are_links()?, free_port()?);
    let config = format!(
        "pid = [{}]\nrotate = '10s'\nflush = '1s'\nenergy = 'model'\nship = '/var/lib/joular-bpf/place'\nmetrics = '127.0.0.1:{port}'\n\
         metrics-token = '/etc/joular-bpf/secret/metrics-token'\nalloc = {alloc}\n",
        jvm.pid()
    );
    let token = [("metrics-token".to_owned(), "a-token\n".to_owned())].into();
    lay_files(&folder.path().join("secret"), &token, 0o440, None)?;
    fs::write(folder.path().join("agent.toml"), config)?;
    let data = folder.path().join("data");
    share(data.join("place"))?;
    let mut options: Vec<String> = ["--pid=host", "--cgroupns=private", "--read-only", "--read-only-tmpfs=false"]
        .into_iter()
        .chain(["--security-opt=no-new-privileges", "--cap-drop=all", "--env=NODE_NAME=node-7"])
        .map(str::to_owned)
        .collect();
    options.extend(capabilities()?.iter().map(|name| format!("--cap-add={name}")));
    options.push(strict_seccomp(folder.path())?);
    options.push(format!("--volume={}:/var/lib/joular-bpf", data.display()));
    options.push(format!("--volume={}:/etc/joular-bpf/agent.toml:ro", folder.path().join("agent.toml").display()));
    options.push(format!("--volume={}:/etc/joular-bpf/secret:ro", folder.path().join("secret").display()));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let command = ["agent", "--log-format", "json"].map(str::to_owned);
    let container = podman.start_with(&options, &image, &command)?;
    wait_for("a run that was shipped from a container", LIMIT, || Ok(data.join("place/raw").is_dir().then_some(())))
        .with_context(|| podman.logs(&container).unwrap_or_default())?;
    let asked = |path: &str, headers: &str| -> Result<String> {
        let answer = answer(port, path, headers)?.context("it serves metrics")?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    };
    let probes = probes()?;
    ensure!(probes.len() == 3, "{probes:?}");
    for probe in probes {
        ensure!(asked(&probe, "")? == "HTTP/1.1 200 OK", "{probe}");
    }
    ensure!(asked("/metrics", "")? == "HTTP/1.1 401 Unauthorized");
    ensure!(asked("/metrics", "Authorization: Bearer a-token\r\n")? == "HTTP/1.1 200 OK");
    let code = podman.stop(&container)?;
    let logs = podman.logs(&container)?;
    ensure!(code == 0, "exit code {code}: {logs}");
    ensure!(!logs.contains("\"level\":\"warning\""), "{logs}");
    let found = DataSet::at(data.join("data")).rows(
        "SELECT any_value(hostname) AS host, (SELECT sum(self_cpu_ns) FILTER (method = 'Busy.spin')::DOUBLE
           / sum(self_cpu_ns) FROM methods) AS share FROM runs",
    )?;
    ensure!(found[0]["host"] == "node-7", "{found:?}");
    ensure!(found[0]["share"].as_f64().is_some_and(|share| share > 0.9), "{found:?}");
    // As it travels. How large it is unpacked depends on how its program was optimised.
    let bytes = fs::metadata(packages.image()?)?.len();
    ensure!(bytes <= MOST_BYTES, "{bytes} bytes");
    Ok(())
}
