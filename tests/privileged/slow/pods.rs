//! Tests what Kubernetes knows of pods: told by a real container runtime, or as a kubelet tells it, it is in the data
//! set, names services and selects targets, also in pods that start later; and who tells nothing changes nothing.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    containers::{
        self,
        containerd::{Containerd, Pod, PodConfig},
        image::java_command,
        podman::Podman,
    },
    dataset::{DataSet, text},
    notes, paths,
    process::{Finished, Running},
    profiler::{Output, Run},
    python,
};
use serde_json::{Value, json};

use crate::beside::containers::jvm_image;

const JVM: &str = "localhost/shop/checkout:9";
const TOKEN: &str = "kubelets-token";
const START: Duration = Duration::from_secs(60);
const LABELS: [(&str, &str); 2] = [("app.kubernetes.io/name", "checkout"), ("app.kubernetes.io/version", "1.4.2")];

/// What is known last of a process, or nothing if it was not a target.
fn known(data: &DataSet, pid: u32) -> Result<Option<Vec<String>>> {
    let columns = ["namespace", "pod_name", "container_name", "image", "service", "version", "service_from"];
    let shown = columns.map(|column| format!("coalesce({column}, '-') AS {column}")).join(", ");
    let rows =
        data.rows(&format!("SELECT {shown} FROM processes WHERE pid = {pid} ORDER BY window_start DESC LIMIT 1"))?;
    let texts = |row| columns.iter().map(|column| text(row, column).map(str::to_owned)).collect::<Result<_>>();
    rows.first().map(texts).transpose()
}

fn expect_known(data: &DataSet, pid: u32, expected: &[&str]) -> Result<()> {
    let found = known(data, pid)?;
    ensure!(found.as_deref().is_some_and(|found| found == expected), "process {pid}: {found:?}, not {expected:?}");
    Ok(())
}

#[test]
fn pods_have_the_names_and_labels_that_runtime_and_kubelet_know() -> Result<()> {
    if !containers::are_installed() || !python::ENGINES.is_ready() {
        notes::skipped("there is no containerd with its client (`cargo xtask setup` installs both on Debian)");
        return Ok(());
    }
    let podman = Podman::new()?;
    let mut containerd = Containerd::with_image(&podman, &jvm_image()?, JVM)?;
    let mut start = |number, namespace, labels: &[_]| -> Result<Pod> {
        containerd.run(&PodConfig::new(number, namespace, labels), JVM, &java_command("Busy"))
    };
    let (first, other) = (start(0, "shop", &LABELS)?, start(1, "default", &LABELS)?);
    let socket = format!("{}", containerd.socket().display());

    let output = Output::new()?;
    let run = Run::modelled().with("--kubernetes", &socket).with("--namespace", "sh*");
    let run = run.with("--label", "app.kubernetes.io/name=checkout").argument("--json").output(output.dir());
    let mut profiler = run.start()?;
    profiler.wait_window()?;
    let second = containerd.run(&PodConfig::new(2, "shop", &LABELS), JVM, &java_command("Busy"))?;
    let own = format!("\"pid\":{},", second.pid);
    while !profiler.wait_window()?.contains(&own) {}
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    for (pod, name) in [(&first, "pod-0"), (&second, "pod-2")] {
        expect_known(&output.data, pod.pid, &["shop", name, "main", JVM, "checkout", "1.4.2", "label"])?;
    }
    ensure!(known(&output.data, other.pid)?.is_none(), "a pod of another namespace is not a target");
    let labels = output
        .data
        .rows("SELECT DISTINCT array_to_string(labels, ' ') AS labels FROM processes WHERE pod IS NOT NULL")?;
    let expected = LABELS.map(|(key, value)| format!("{key}={value}")).join(" ");
    ensure!(labels.len() == 1 && text(&labels[0], "labels")? == expected, "{labels:?}");

    reported_by_label(&output)?;
    of_a_kubelet(&first, &other)
}

fn reported_by_label(output: &Output) -> Result<()> {
    for (label, has_energy) in [("app.kubernetes.io/name=check*", true), ("app.kubernetes.io/name=orders", false)] {
        let mut command = Command::new(paths::joular_bpf());
        command.arg("report").arg(output.dir()).args(["--label", label, "--json"]);
        let finished = Running::spawn("joular-bpf report", &mut command)?.finish(START)?;
        let report: Value = serde_json::from_str(&finished.stdout).with_context(|| format!("{finished:?}"))?;
        ensure!(
            (report["selection"]["energy_uj"].as_u64().context("an energy")? > 0) == has_energy,
            "{label}: {report}"
        );
    }
    Ok(())
}

/// Two pods of which a kubelet tells other things than the runtime does.
fn of_a_kubelet(named: &Pod, unnamed: &Pod) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    let long = "x".repeat(10_000);
    let container = |pod: &Pod| json!([{"name": "main", "containerID": format!("containerd://{}", pod.container)}]);
    let pods = json!({"kind": "PodList", "items": [
        {"metadata": {"name": "orders-1", "namespace": "sales", "uid": named.uid, "labels": {
            "app.kubernetes.io/name": "or\"ders\n\u{1b}[31m", "long": long, "tier": "back"}},
         "spec": {"containers": [{"name": "main", "image": "orders:7"}]},
         "status": {"containerStatuses": container(named)}},
        {"metadata": {"name": "orders-2", "namespace": "sales", "uid": unnamed.uid, "labels": {
            "app.kubernetes.io/name": long}},
         "spec": {"containers": [{"name": "main", "image": "registry:5000/shop/orders:7"}]},
         "status": {"containerStatuses": container(unnamed)}},
    ]});
    fs::write(path("pods.json"), pods.to_string())?;
    fs::write(path("token"), format!("{TOKEN}\n"))?;
    fs::write(path("wrong-token"), "guessed\n")?;
    let mut server = python::ENGINES.script("kubelet.py")?;
    let mut server = Running::spawn("kubelet.py", server.arg(directory.path()).arg(TOKEN))?;
    let ready = server.wait_stdout("ready ", START)?;
    let port: u16 = ready.trim_start_matches("ready ").trim().parse().with_context(|| format!("a port: {ready}"))?;

    let record = |output: &Output, token: &str, authority: &str| -> Result<Finished> {
        let run = Run::modelled().with("--pid", format!("{},{}", named.pid, unnamed.pid));
        let run = run.with("--kubernetes", format!("https://127.0.0.1:{port}")).with("--duration", "2s");
        let run = run.with("--kubernetes-token", path(token)).with("--kubernetes-ca", path(authority));
        let finished = run.argument("--quiet").output(output.dir()).finish(START)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        Ok(finished)
    };
    let output = Output::new()?;
    let finished = record(&output, "token", "ca.crt")?;
    ensure!(!finished.stderr.contains("asking"), "{finished:?}");
    let label = "or\"ders\n\u{1b}[31m";
    expect_known(&output.data, named.pid, &["sales", "orders-1", "main", "orders:7", label, "7", "label"])?;
    let image = "registry:5000/shop/orders:7";
    expect_known(&output.data, unnamed.pid, &["sales", "orders-2", "main", image, "orders", "7", "image"])?;

    for (token, authority, cause) in [
        ("wrong-token", "ca.crt", "it does not accept the token"),
        ("token", "other.crt", "certificate"),
        ("token", "absent.crt", "No such file"),
    ] {
        let output = Output::new()?;
        let finished = record(&output, token, authority)?;
        let told = finished.stderr.lines().filter(|line| line.contains("asking the kubelet")).collect::<Vec<_>>();
        ensure!(told.len() == 1 && told[0].contains(cause), "it says once why it knows no names: {finished:?}");
        let found = known(&output.data, named.pid)?.context("it is recorded all the same")?;
        ensure!(found[0] == "-", "{found:?}");
    }
    Ok(())
}
