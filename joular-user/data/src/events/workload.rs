//! Describes what Kubernetes runs in a container.

use serde::{Deserialize, Serialize};

use super::label;
use crate::model::target_text::TargetText;

/// What Kubernetes says of a container and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pub namespace: TargetText,
    /// Name of the pod.
    pub pod: TargetText,
    /// Name of the container within its pod; `None`: only the pod is known.
    pub container: Option<TargetText>,
    /// Image of the container, as the pod names it.
    pub image: Option<TargetText>,
    /// Labels of the pod, each as `key=value`, in order.
    pub labels: Vec<TargetText>,
}

impl Workload {
    /// The value of one of the pod's labels.
    pub fn label(&self, key: &str) -> Option<&str> {
        label(&self.labels, key)
    }
}
