//! Does for a pod of a DaemonSet what a kubelet does: lays its volumes, says to the container runtime what the manifest
//! says, and asks its probes.
//!
//! It knows the keys that the manifest has, and refuses all others ([`fields`]). It keeps to the node's network, since
//! nothing here gives pods one of their own.

mod container;
mod fields;
mod probe;
mod volumes;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use self::{fields::Fields, volumes::Volumes};
pub use self::{
    probe::{Probe, Probes},
    volumes::lay_files,
};
use crate::{
    containers::containerd::NODE,
    machine::{AARCH64, X86_64},
    python,
};

/// Names and contents of a configuration map or a secret.
pub type Files = BTreeMap<String, String>;

/// A node, and what its kubelet is told by the API server.
pub struct Node {
    pub name: String,
    pub address: String,
    /// For volumes and logs.
    pub folder: PathBuf,
    pub config_maps: BTreeMap<String, Files>,
    pub secrets: BTreeMap<String, Files>,
}

impl Node {
    fn config_map(&self, name: &str) -> Result<&Files> {
        self.config_maps.get(name).with_context(|| format!("there is no configuration map {name}"))
    }
}

/// What a kubelet makes of a pod.
pub struct Pod {
    /// For CRI.
    pub sandbox: Value,
    pub container: Value,
    pub probes: Probes,
    /// How long its end may take.
    pub grace: Duration,
    /// Without the `CAP_` in front.
    pub capabilities: Vec<String>,
    pub memory_bytes: u64,
}

/// What a pod says of all its containers.
struct Confinement {
    namespaces: Value,
    seccomp: u32,
    apparmor: u32,
    groups: Vec<u32>,
}

/// The DaemonSet of a file.
pub fn daemon_set(file: &Path) -> Result<Value> {
    let mut command: Command = python::ENGINES.script("objects.py")?;
    let output = command.arg(file).output().context("starting objects.py")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let found = objects.into_iter().find(|object| object["kind"] == "DaemonSet");
    found.with_context(|| format!("no DaemonSet in {}", file.display()))
}

/// Lays the volumes of a DaemonSet's pod on a node. Pods differ by their number, from 0 to 99.
pub fn prepare(daemon_set: &Value, node: &Node, number: u8) -> Result<Pod> {
    Fields::read("DaemonSet", daemon_set.clone(), |set| {
        set.expect("apiVersion", "apps/v1")?;
        set.expect("kind", "DaemonSet")?;
        let (name, namespace) = set.object("metadata", |metadata| {
            metadata.labels("labels")?;
            Ok((metadata.text("name")?, metadata.text("namespace")?))
        })?;
        let pod = Identity {
            name: format!("{name}-{number:02}"),
            namespace,
            uid: format!("7c1e0b52-94d3-4f6a-8a7e-1d2c3b4a5f{number:02}"),
        };
        set.object("spec", |spec| {
            // How a controller replaces pods: on one node, the new one is made when the old one is gone.
            spec.object("updateStrategy", |strategy| {
                strategy.object("rollingUpdate", |roll| roll.text("maxUnavailable"))
            })?;
            let selected = spec.object("selector", |selector| selector.labels("matchLabels"))?;
            spec.object("template", |template| {
                let labels = template.object("metadata", |metadata| metadata.labels("labels"))?;
                ensure!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)), "{selected:?}, {labels:?}");
                template.object("spec", |spec| pod.of(spec, node, labels))
            })
        })
    })
}

struct Identity {
    name: String,
    namespace: String,
    uid: String,
}

impl Identity {
    fn of(&self, spec: &mut Fields, node: &Node, mut labels: BTreeMap<String, String>) -> Result<Pod> {
        let Self { name, namespace, uid } = self;
        // What schedulers and the API server make of a pod.
        spec.ignore(&["serviceAccountName", "priorityClassName", "tolerations"]);
        spec.expect("nodeSelector", json!({"kubernetes.io/os": "linux"}))?;
        spec.expect("affinity", affinity())?;
        spec.expect("automountServiceAccountToken", true)?;
        let confinement = confinement(spec)?;
        let folder = node.folder.join("pods").join(uid);
        let mut volumes = Volumes::new(node, folder.join("volumes"), confinement.groups.first().copied());
        spec.objects("volumes", |volume| volumes.add(volume))?;
        let read = |container: &mut Fields| container::read(container, node, &confinement, &volumes);
        let Ok([container]) = <[_; 1]>::try_from(spec.objects("containers", read)?) else {
            bail!("the tests' kubelet knows pods of one container only")
        };
        let grace = spec.number_or("terminationGracePeriodSeconds", 30)?;
        let known = [("name", name), ("namespace", namespace), ("uid", uid)];
        labels.extend(known.map(|(key, value)| (format!("io.kubernetes.pod.{key}"), value.clone())));
        let sandbox = json!({
            "metadata": {"name": name, "uid": uid, "namespace": namespace},
            "log_directory": folder.join("logs"),
            "port_mappings": container.ports,
            "labels": labels,
            "linux": {
                // It has requests, and not all of them are limits, too.
                "cgroup_parent": format!("/kubepods/burstable/pod{uid}"),
                "security_context": {
                    "namespace_options": confinement.namespaces,
                    "supplemental_groups": confinement.groups,
                    "privileged": false,
                    "seccomp": {"profile_type": confinement.seccomp},
                    "apparmor": {"profile_type": confinement.apparmor},
                },
            },
        });
        Ok(Pod {
            sandbox,
            container: container.config,
            probes: container.probes,
            grace: Duration::from_secs(grace.into()),
            capabilities: container.capabilities,
            memory_bytes: container.memory_bytes,
        })
    }
}

/// Nodes with a processor that the image has a program for. This machine has one of them.
fn affinity() -> Value {
    let processors = [&X86_64, &AARCH64].map(|machine| machine.debian);
    let processor = json!({"key": "kubernetes.io/arch", "operator": "In", "values": processors});
    let terms = json!([{ "matchExpressions": [processor] }]);
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
}

fn confinement(spec: &mut Fields) -> Result<Confinement> {
    let pid = if spec.flag_or("hostPID", false)? { NODE } else { 0 };
    spec.object("securityContext", |context| {
        let mut profile = |key| context.object(key, |profile| profile_type(&profile.text("type")?));
        let (seccomp, apparmor) = (profile("seccompProfile")?, profile("appArmorProfile")?);
        let group = context.number_or("fsGroup", 0)?;
        // Without CNI, a pod with a network of its own does not start.
        let namespaces = json!({"network": NODE, "pid": pid, "ipc": 0});
        Ok(Confinement { namespaces, seccomp, apparmor, groups: (group != 0).then_some(group).into_iter().collect() })
    })
}

/// As CRI's numbers say it.
fn profile_type(name: &str) -> Result<u32> {
    match name {
        "RuntimeDefault" => Ok(0),
        "Unconfined" => Ok(1),
        _ => bail!("the tests' kubelet does not know profiles of type {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{notes, paths};

    #[test]
    fn the_daemon_set_runs_on_nodes_of_the_processors_that_the_image_is_for() -> Result<()> {
        if !python::ENGINES.is_ready() {
            notes::skipped("a reader of YAML is missing (`cargo xtask setup` installs it)");
            return Ok(());
        }
        let set = daemon_set(&paths::root().join("packaging/kubernetes/daemon-set.yaml"))?;
        ensure!(set["spec"]["template"]["spec"]["affinity"] == affinity(), "{set}");
        Ok(())
    }
}
