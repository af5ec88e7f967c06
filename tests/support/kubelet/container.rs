//! Says to a container runtime what a manifest says of a container.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    Confinement, Node,
    fields::Fields,
    probe::{Probes, ports},
    volumes::Volumes,
};

/// What kubelets hide and protect of /proc and /sys where `procMount` says nothing: the longest list of any release.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Where pods find what they show to the API server.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A container for CRI, and what else is known of it.
pub struct Container {
    pub config: Value,
    pub ports: Vec<Value>,
    pub probes: Probes,
    pub capabilities: Vec<String>,
    pub memory_bytes: u64,
}

/// Reads the only container of a pod.
pub fn read(container: &mut Fields, node: &Node, pod: &Confinement, volumes: &Volumes) -> Result<Container> {
    let name = container.text("name")?;
    // It must be there: nothing is pulled here.
    container.expect("imagePullPolicy", "IfNotPresent")?;
    let (ports, by_name) = ports(container)?;
    let probes = Probes::read(container, &by_name)?;
    let (security, capabilities) = container.object("securityContext", |context| security(context, pod))?;
    let (resources, memory_bytes) = container.object("resources", resources)?;
    let config = json!({
        "metadata": {"name": name},
        // What the runtime makes of a name without a registry.
        "image": {"image": format!("docker.io/library/{}", container.text("image")?)},
        // The image knows what it runs.
        "args": container.texts("args")?,
        "envs": environment(container, node)?,
        "mounts": mounts(container, volumes)?,
        "labels": {"io.kubernetes.container.name": name},
        "log_path": format!("{name}.log"),
        "linux": {"resources": resources, "security_context": security},
    });
    Ok(Container { config, ports, probes, capabilities, memory_bytes })
}

/// Variables of secrets, and after them those that have a name here.
fn environment(container: &mut Fields, node: &Node) -> Result<Vec<Value>> {
    let mut variables = BTreeMap::new();
    container.objects("envFrom", |from| {
        let (name, is_optional) =
            from.object("secretRef", |secret| Ok((secret.text("name")?, secret.flag_or("optional", false)?)))?;
        let secret = node.secrets.get(&name);
        ensure!(is_optional || secret.is_some(), "there is no secret {name}");
        variables.extend(secret.cloned().unwrap_or_default());
        Ok(())
    })?;
    container.objects("env", |variable| {
        let name = variable.text("name")?;
        let of_field = |from: &mut Fields| from.object("fieldRef", |field| field_of(&field.text("fieldPath")?, node));
        let value = match variable.maybe_object("valueFrom", of_field)? {
            Some(value) => value,
            None => variable.text("value")?,
        };
        variables.insert(name, value);
        Ok(())
    })?;
    Ok(variables.iter().map(|(key, value)| json!({"key": key, "value": value})).collect())
}

fn field_of(path: &str, node: &Node) -> Result<String> {
    match path {
        "spec.nodeName" => Ok(node.name.clone()),
        "status.hostIP" => Ok(node.address.clone()),
        _ => bail!("the tests' kubelet does not know the field {path}"),
    }
}

fn mounts(container: &mut Fields, volumes: &Volumes) -> Result<Vec<Value>> {
    let mut mounts = container.objects("volumeMounts", |mount| {
        let (name, sub_path) = (mount.text("name")?, mount.maybe_text("subPath")?);
        Ok(json!({
            "container_path": mount.text("mountPath")?,
            "host_path": volumes.path(&name, sub_path.as_deref())?,
            "readonly": mount.flag_or("readOnly", false)?,
        }))
    })?;
    mounts.push(json!({"container_path": TOKEN, "host_path": volumes.add_token()?, "readonly": true}));
    Ok(mounts)
}

/// Also the capabilities that it may have.
fn security(context: &mut Fields, pod: &Confinement) -> Result<(Value, Vec<String>)> {
    let (dropped, added) = context.object("capabilities", |list| Ok((list.texts("drop")?, list.texts("add")?)))?;
    ensure!(dropped == ["ALL"], "{dropped:?} are dropped, and the tests' kubelet knows ALL only");
    let security = json!({
        "capabilities": {"add_capabilities": added, "drop_capabilities": dropped},
        "privileged": context.flag_or("privileged", false)?,
        "namespace_options": pod.namespaces,
        "readonly_rootfs": context.flag_or("readOnlyRootFilesystem", false)?,
        "supplemental_groups": pod.groups,
        "no_new_privs": !context.flag_or("allowPrivilegeEscalation", true)?,
        "masked_paths": MASKED,
        "readonly_paths": READ_ONLY,
        "seccomp": {"profile_type": pod.seccomp},
        "apparmor": {"profile_type": pod.apparmor},
    });
    Ok((security, added))
}

/// Also the most memory that it may use.
fn resources(resources: &mut Fields) -> Result<(Value, u64)> {
    let limit = resources.object("limits", |limits| bytes(&limits.text("memory")?))?;
    let (cpu, memory) =
        resources.object("requests", |requests| Ok((requests.text("cpu")?, bytes(&requests.text("memory")?)?)))?;
    let thousandths: u64 =
        cpu.strip_suffix('m').with_context(|| format!("the CPU time is not in thousandths: {cpu}"))?.parse()?;
    // The more of the node's memory a pod asks for, the later it is killed when there is none.
    let score = (1000 - (1000 * memory / node_bytes()?).min(1000)).clamp(3, 999);
    let told = json!({"cpu_shares": thousandths * 1024 / 1000, "memory_limit_in_bytes": limit, "oom_score_adj": score});
    Ok((told, limit))
}

/// Bytes of `1Gi` or `128Mi`.
fn bytes(quantity: &str) -> Result<u64> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let found = units.iter().find_map(|(unit, shift)| Some((quantity.strip_suffix(unit)?, shift)));
    let (number, shift) = found.with_context(|| format!("the amount of memory has no known unit: {quantity}"))?;
    Ok(number.parse::<u64>()? << shift)
}

fn node_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    Ok(total.context("MemTotal of /proc/meminfo")?.parse::<u64>()? << 10)
}
