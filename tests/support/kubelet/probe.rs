//! Asks a container how it is.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::fields::Fields;
use crate::{clock::wait_for, prometheus::answer_within};

/// A request over HTTP, and how often it may fail.
pub struct Probe {
    pub path: String,
    port: u16,
    period: Duration,
    timeout: Duration,
    failures: u32,
}

impl Probe {
    /// Ports have names.
    pub fn read(probe: &mut Fields, ports: &BTreeMap<String, u16>) -> Result<Self> {
        let (path, port) = probe.object("httpGet", |get| {
            let path = get.text("path")?;
            let port = get.text("port")?;
            Ok((path, *ports.get(&port).with_context(|| format!("the container has no port {port}"))?))
        })?;
        let seconds = |number: u32| Duration::from_secs(number.into());
        // Kubernetes' defaults.
        let period = seconds(probe.number_or("periodSeconds", 10)?);
        let timeout = seconds(probe.number_or("timeoutSeconds", 1)?);
        Ok(Self { path, port, period, timeout, failures: probe.number_or("failureThreshold", 3)? })
    }

    /// Fails unless it answers well, in time.
    pub fn ask(&self) -> Result<()> {
        // Kubelets keep no connection.
        let answer = answer_within(self.timeout, self.port, &self.path, "Connection: close\r\n")?;
        let answer = answer.with_context(|| format!("nobody listens at {}", self.port))?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "{}: {answer}", self.path);
        Ok(())
    }

    /// Waits until it answers well, for as long as a kubelet would before it ends the container.
    pub fn wait(&self) -> Result<()> {
        let (limit, mut last) = (self.period * self.failures, Ok(()));
        let waited = wait_for("a probe to succeed", limit, || {
            last = self.ask();
            Ok(last.is_ok().then_some(()))
        });
        waited.with_context(|| format!("{last:?}"))
    }
}

/// All that a container has.
pub struct Probes {
    pub startup: Probe,
    pub liveness: Probe,
    pub readiness: Probe,
}

impl Probes {
    pub fn read(container: &mut Fields, ports: &BTreeMap<String, u16>) -> Result<Self> {
        let mut probe = |key| container.object(key, |probe| Probe::read(probe, ports));
        Ok(Self {
            startup: probe("startupProbe")?,
            liveness: probe("livenessProbe")?,
            readiness: probe("readinessProbe")?,
        })
    }

    /// Waits as a kubelet does: the others are asked when the first one has succeeded.
    pub fn wait(&self) -> Result<()> {
        [&self.startup, &self.liveness, &self.readiness].into_iter().try_for_each(Probe::wait)
    }
}

/// The ports of a container: what CRI is told of them, and their numbers by name.
pub fn ports(container: &mut Fields) -> Result<(Vec<Value>, BTreeMap<String, u16>)> {
    let ports = container.objects("ports", |port| {
        let (name, number) = (port.text("name")?, port.number_or("containerPort", 0)?);
        Ok((name, u16::try_from(number)?))
    })?;
    // TCP.
    let mappings = ports.iter().map(|(_, number)| json!({"protocol": 0, "container_port": number}));
    Ok((mappings.collect(), ports.iter().cloned().collect()))
}
