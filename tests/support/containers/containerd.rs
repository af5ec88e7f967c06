//! Pods of containerd, started over the interface that Kubernetes uses for it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{image::Image, podman::Podman, run};
use crate::{clock::wait_for, process::Running, python};

const STARTED: Duration = Duration::from_secs(30);
/// Containers of Kubernetes are in this namespace of containerd's.
const NAMESPACE: &str = "k8s.io";
const PAUSE: &str = "localhost/pause:1";
/// The namespace is that of the node, as CRI's numbers say it.
pub const NODE: u32 = 2;

/// A containerd that shares nothing with that of the system; it ends when it is dropped.
pub struct Containerd {
    home: TempDir,
    _server: Running,
    pods: Vec<String>,
}

/// What a kubelet tells a runtime of a pod.
#[derive(Clone, Debug)]
pub struct PodConfig {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

impl PodConfig {
    /// Pods differ by their number, from 0 to 99.
    pub fn new(number: usize, namespace: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self {
            // Kubernetes gives pods such ids.
            uid: format!("6a9f2f3e-5c1b-4d39-9a53-0c7b2f1e8d{number:02}"),
            namespace: namespace.to_owned(),
            name: format!("pod-{number}"),
            labels,
        }
    }
}

/// A pod of one container.
#[derive(Clone, Debug)]
pub struct Pod {
    pub uid: String,
    sandbox: String,
    /// 64 hexadecimal digits.
    pub container: String,
    /// Of the container's first process, as the host sees it.
    pub pid: u32,
    log: PathBuf,
}

impl Containerd {
    /// `pause` is the image of each pod's first container.
    fn start(pause: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let path = |name: &str| home.path().join(name).display().to_string();
        let config = format!(
            "version = 2\nroot = '{}'\nstate = '{}'\n[grpc]\naddress = '{}'\n[plugins.'io.containerd.grpc.v1.cri']\n\
             # Some hosts do not allow root to lower the score.\nrestrict_oom_score_adj = true\nsandbox_image = '{pause}'\n",
            path("root"),
            path("state"),
            path("socket"),
        );
        fs::write(path("config.toml"), config).context("writing containerd's settings")?;
        let server = Running::spawn("containerd", Command::new("containerd").args(["--config", &path("config.toml")]))?;
        let started = Self { home, _server: server, pods: Vec::new() };
        wait_for("containerd to answer", STARTED, || {
            let answer = started.ctr().arg("version").output().context("starting ctr")?;
            Ok(answer.status.success().then_some(()))
        })?;
        Ok(started)
    }

    /// With no image but that of each pod's first container, which `podman` packs.
    pub fn new(podman: &Podman) -> Result<Self> {
        let containerd = Self::start(PAUSE)?;
        containerd.add(podman, &Image::pause()?, PAUSE)?;
        Ok(containerd)
    }

    /// With the image of a JVM, called so, which `podman` packs.
    pub fn with_image(podman: &Podman, image: &Image, name: &str) -> Result<Self> {
        let containerd = Self::new(podman)?;
        containerd.add(podman, image, name)?;
        Ok(containerd)
    }

    fn add(&self, podman: &Podman, image: &Image, name: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let archive = folder.path().join("image.tar");
        podman.import(image, name)?;
        podman.save(name, &archive)?;
        self.import(&archive)
    }

    /// Takes images from an archive.
    pub fn import(&self, archive: &Path) -> Result<()> {
        run(self.ctr().args(["images", "import"]).arg(archive)).map(drop)
    }

    /// Gives an image another name, by which pods may have it.
    pub fn tag(&self, image: &str, name: &str) -> Result<()> {
        run(self.ctr().args(["images", "tag", image, name]))?;
        // What Kubernetes may use is told of it a little later.
        wait_for("an image's name", STARTED, || Ok((run(self.cri("has")?.arg(name))? == "true").then_some(())))
    }

    /// Runs a command in a pod's only container, which is called main.
    pub fn run(&mut self, config: &PodConfig, image: &str, command: &[String]) -> Result<Pod> {
        let PodConfig { uid, namespace, name, labels } = config;
        let namespaces = json!({"network": NODE});
        let sandbox = json!({
            "metadata": {"name": name, "uid": uid, "namespace": namespace},
            "log_directory": self.home.path().join("logs").join(uid),
            "labels": labels,
            "linux": {
                "cgroup_parent": format!("/kubepods/burstable/pod{uid}"),
                "security_context": {"namespace_options": namespaces},
            },
        });
        let container = json!({
            "metadata": {"name": "main"},
            "image": {"image": image},
            "command": command,
            "log_path": "main.log",
            "linux": {"security_context": {"namespace_options": namespaces}},
        });
        self.run_pod(&sandbox, &container)
    }

    /// Runs a pod of which all is said: a PodSandboxConfig and a ContainerConfig as `cri.py` takes them.
    pub fn run_pod(&mut self, sandbox: &Value, container: &Value) -> Result<Pod> {
        let said = |value: &Value, key: &str| {
            value[key].as_str().map(str::to_owned).with_context(|| format!("no {key} in {value}"))
        };
        let log = PathBuf::from(said(sandbox, "log_directory")?).join(said(container, "log_path")?);
        let uid = said(&sandbox["metadata"], "uid")?;
        let text = run(self.cri("run")?.args([sandbox.to_string(), container.to_string()]))?;
        let started: Value = serde_json::from_str(&text).with_context(|| format!("cri.py: {text}"))?;
        let sandbox = said(&started, "sandbox")?;
        self.pods.push(sandbox.clone());
        let pid = started["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.with_context(|| format!("no pid in {text}"))?;
        Ok(Pod { uid, sandbox, container: said(&started, "container")?, pid, log })
    }

    /// Ends a pod's container as a kubelet does: it is asked to, and killed after so long. Its exit code.
    pub fn stop(&self, pod: &Pod, grace: Duration) -> Result<i64> {
        let text = run(self.cri("stop")?.args([&pod.container, &grace.as_secs().to_string()]))?;
        let ended: Value = serde_json::from_str(&text).with_context(|| format!("cri.py: {text}"))?;
        ended["exit_code"].as_i64().with_context(|| format!("no exit code in {text}"))
    }

    /// Removes a pod.
    pub fn remove(&mut self, pod: &Pod) -> Result<()> {
        run(self.cri("remove")?.arg(&pod.sandbox))?;
        self.pods.retain(|sandbox| *sandbox != pod.sandbox);
        Ok(())
    }

    /// Waits until a pod's container has printed `ready`.
    pub fn wait_ready(&self, pod: &Pod) -> Result<()> {
        super::wait_ready(pod.pid, || pod.printed())
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path().join("socket")
    }

    fn ctr(&self) -> Command {
        let mut command = Command::new("ctr");
        command.args(["--namespace", NAMESPACE, "--address"]).arg(self.socket());
        command
    }

    fn cri(&self, action: &str) -> Result<Command> {
        // One of the engines' packages brings gRPC along.
        let mut command = python::ENGINES.script("cri.py")?;
        command.arg(action).arg(self.socket());
        Ok(command)
    }
}

impl Pod {
    /// What its container has printed by now.
    pub fn printed(&self) -> Result<String> {
        let log = fs::read_to_string(&self.log).with_context(|| format!("reading {}", self.log.display()))?;
        // Each line has a time, a stream, and whether it is whole, before what was printed.
        let printed = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
        Ok(printed.collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        for pod in &self.pods {
            let _removed = self.cri("remove").and_then(|mut command| run(command.arg(pod)));
        }
    }
}
