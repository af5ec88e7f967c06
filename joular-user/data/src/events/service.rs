//! Names the service that a process belongs to, for readers who know services and not processes.

use serde::{Deserialize, Serialize};

use crate::model::target_text::TargetText;

/// The service of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub name: TargetText,
    pub version: Option<TargetText>,
    pub from: ServiceFrom,
}

/// Where the name of a service comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceFrom {
    /// A rule of the configuration file.
    Rule,
    /// The systemd unit.
    Unit,
    /// The manifest or the file name of the jar that a JVM runs.
    Jar,
    /// The main class of a JVM.
    MainClass,
    /// The process's own name, because nothing else is known.
    #[default]
    Comm,
    /// A label of the Kubernetes pod.
    Label,
    /// The image of the container.
    Image,
    /// The program's settings of OpenTelemetry.
    OpenTelemetry,
}

impl ServiceFrom {
    /// As the data set has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Unit => "unit",
            Self::Jar => "jar",
            Self::MainClass => "main-class",
            Self::Comm => "comm",
            Self::Label => "label",
            Self::Image => "image",
            Self::OpenTelemetry => "otel",
        }
    }
}
