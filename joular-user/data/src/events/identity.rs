//! Says which machine a run was made on, and what its owners say of it.

use serde::{Deserialize, Serialize};

use super::RunInfo;
use crate::model::target_text::TargetText;

/// What tells a host from others of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Of the installed system: machine-id(5).
    pub machine_id: Option<TargetText>,
    /// What the cloud calls the machine.
    pub instance_id: Option<TargetText>,
    /// Labels that the configuration gives the host, each as `key=value`, in order.
    pub labels: Vec<TargetText>,
}

/// A machine. Hosts with the same name are different machines if anything else differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine<'a> {
    pub host: &'a TargetText,
    pub machine_id: Option<&'a TargetText>,
    pub instance_id: Option<&'a TargetText>,
}

/// The same, to be kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineKey {
    host: TargetText,
    machine_id: Option<TargetText>,
    instance_id: Option<TargetText>,
}

impl Machine<'_> {
    pub fn key(self) -> MachineKey {
        let Self { host, machine_id, instance_id } = self;
        MachineKey { host: host.clone(), machine_id: machine_id.cloned(), instance_id: instance_id.cloned() }
    }
}

impl RunInfo {
    pub fn machine(&self) -> Machine<'_> {
        let HostIdentity { machine_id, instance_id, .. } = &self.identity;
        Machine { host: &self.host, machine_id: machine_id.as_ref(), instance_id: instance_id.as_ref() }
    }
}

/// The value of one of several labels, each `key=value`.
pub fn label<'a>(labels: &'a [TargetText], key: &str) -> Option<&'a str> {
    labels.iter().find_map(|label| label.raw().strip_prefix(key)?.strip_prefix('='))
}
