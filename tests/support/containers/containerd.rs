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

/// A pod of one container, which is called main.
#[derive(Clone, Debug)]
pub struct Pod {
    pub uid: String,
    /// 64 hexadecimal digits.
    pub container: String,
    /// Of the container's first process, as the host sees it.
    pub pid: u32,
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

    /// With the image of a JVM, called so, which `podman` has packed.
    pub fn with_image(podman: &Podman, image: &Image, name: &str) -> Result<Self> {
        const PAUSE: &str = "localhost/pause:1";
        let (containerd, archives) = (Self::start(PAUSE)?, tempfile::tempdir()?);
        for (image, name) in [(image, name), (&Image::pause()?, PAUSE)] {
            let archive = archives.path().join("image.tar");
            podman.import(image, name)?;
            podman.save(name, &archive)?;
            containerd.import(&archive)?;
            fs::remove_file(&archive)?;
        }
        Ok(containerd)
    }

    /// Takes images from an archive.
    fn import(&self, archive: &Path) -> Result<()> {
        run(self.ctr().args(["images", "import"]).arg(archive)).map(drop)
    }

    pub fn run(&mut self, config: &PodConfig, image: &str, command: &[String]) -> Result<Pod> {
        let PodConfig { uid, namespace, name, labels } = config;
        let logs = self.logs(uid);
        let pod = json!({"uid": uid, "namespace": namespace, "name": name, "labels": labels, "logs": logs}).to_string();
        let text = run(self.cri("run")?.args([&pod, image]).args(command))?;
        let started: Value = serde_json::from_str(&text).with_context(|| format!("cri.py: {text}"))?;
        let name = |key: &str| started[key].as_str().map(str::to_owned).with_context(|| format!("no {key} in {text}"));
        self.pods.push(name("sandbox")?);
        let pid = started["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Ok(Pod {
            uid: config.uid.clone(),
            container: name("container")?,
            pid: pid.with_context(|| format!("no pid in {text}"))?,
        })
    }

    /// Waits until a pod's container has printed `ready`.
    pub fn wait_ready(&self, pod: &Pod) -> Result<()> {
        let log = self.logs(&pod.uid).join("main.log");
        super::wait_ready(pod.pid, || {
            let log = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
            // Each line has a time, a stream, and whether it is whole, before what was printed.
            let printed = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
            Ok(printed.collect::<Vec<_>>().join("\n"))
        })
    }

    /// Where the logs of a pod's containers are.
    fn logs(&self, pod_uid: &str) -> PathBuf {
        self.home.path().join("logs").join(pod_uid)
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

impl Drop for Containerd {
    fn drop(&mut self) {
        for pod in &self.pods {
            let _removed = self.cri("remove").and_then(|mut command| run(command.arg(pod)));
        }
    }
}
