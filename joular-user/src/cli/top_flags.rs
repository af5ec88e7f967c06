//! Defines the flags of `top`: those of a recording that make sense for a live view.

use std::path::PathBuf;

use clap::Args;

use super::{heading, merge::define_shared_flags};

define_shared_flags! {
/// Flags of `top`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct TopFlags {
    /// Processes with this name, or a pattern with *, ? and [...], running now or started later
    #[arg(long, value_name = "NAME", num_args = 1.., help_heading = heading::TARGETS)]
    pub comm: Vec<String>,

    /// Every JVM, running now or started later [default: if no other targets are given]
    #[arg(long, help_heading = heading::TARGETS)]
    pub jvms: bool,

    /// Processes with these ids; the view closes when none of them is left
    #[arg(short, long, value_name = "PID", num_args = 1.., value_delimiter = ',', help_heading = heading::TARGETS)]
    pub pid: Vec<u32>,

    /// Processes in these containers
    #[arg(long, value_name = "ID", num_args = 1.., help_heading = heading::TARGETS)]
    pub container: Vec<String>,

    /// Processes in the pods with these uids, or patterns; with --kubernetes also by name
    #[arg(long, value_name = "POD", num_args = 1.., help_heading = heading::TARGETS)]
    pub pod: Vec<String>,

    /// Processes in pods of these namespaces, or patterns; needs --kubernetes
    #[arg(long, value_name = "NAMESPACE", num_args = 1.., help_heading = heading::TARGETS)]
    pub namespace: Vec<String>,

    /// Processes in pods with these labels, where VALUE may be a pattern; needs --kubernetes
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., help_heading = heading::TARGETS)]
    pub label: Vec<String>,

    /// Processes in these control groups and the groups in them
    #[arg(long, value_name = "PATH", num_args = 1.., help_heading = heading::TARGETS)]
    pub cgroup: Vec<String>,

    /// Processes of these services, or patterns
    #[arg(long, value_name = "SERVICE", num_args = 1.., help_heading = heading::TARGETS)]
    pub service: Vec<String>,

    /// Every process of the host
    #[arg(long, help_heading = heading::TARGETS)]
    pub all: bool,

    /// Show what `joular-bpf record --record FILE` wrote, as fast as it was recorded; needs no privileges
    #[arg(long, value_name = "FILE", help_heading = heading::TARGETS)]
    pub replay: Option<PathBuf>,

    /// Who knows names, images and labels of this host's pods, as for a recording [default with the flag alone: kubelet]
    #[arg(long, value_name = "SOURCE", num_args = 0..=1, default_missing_value = "kubelet",
          help_heading = heading::RECORDING)]
    pub kubernetes: Option<String>,

    /// Bearer token for the kubelet [default: that of the pod's service account, if there is one]
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub kubernetes_token: Option<PathBuf>,

    /// Certificates of those who sign the kubelet's, or none [default: those of the pod's service account]
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub kubernetes_ca: Option<PathBuf>,

    /// Stop after this time, e.g. 30s, 5m or 1h30m [default: until q is typed]
    #[arg(short, long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub duration: Option<String>,

    /// Length of a window, after each of which the view is drawn, 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub interval: Option<String>,

    /// Stack samples per second of CPU time, on average, 1 to 10000 [default: 99]
    #[arg(long, value_name = "HZ", help_heading = heading::RECORDING)]
    pub frequency: Option<u32>,

    /// Energy sources, as for a recording [default: auto]
    #[arg(long, value_name = "SOURCE,…", value_delimiter = ',', help_heading = heading::ENERGY)]
    pub energy: Vec<String>,

    /// File that the sources microjoules, watts, powerjoular and replay read
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub energy_file: Option<PathBuf>,

    /// Models of boards for the source board, before those that are built in
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub board_models: Option<PathBuf>,

    /// Power of a vCPU for the source model, idle and fully busy, in watts
    #[arg(long, value_name = "IDLE:FULL", help_heading = heading::ENERGY)]
    pub model_watts: Option<String>,

    /// Thermal design power of a processor for the source tdp, in watts
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    pub tdp: Option<String>,

    /// Where powercap zones are [default: /sys/class/powercap]
    #[arg(long, value_name = "DIR", help_heading = heading::ENERGY)]
    pub powercap_root: Option<PathBuf>,

    /// Policy for idle power: separate, spread or active [default: separate]
    #[arg(long, value_name = "POLICY", help_heading = heading::ENERGY)]
    pub idle: Option<String>,

    /// Idle power of a socket in watts [default: from the calibration or the model]
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    pub idle_watts: Option<f64>,

    /// Calibration that `joular-bpf calibrate` wrote, or none
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub calibration: Option<PathBuf>,

    /// Directory of a data set to write beside the view [default: none is written]
    #[arg(short, long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub output: Option<PathBuf>,

    /// Directory of the proc file system, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub proc_root: Option<PathBuf>,
    /// Directory of the CPU topology, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub cpu_root: Option<PathBuf>,
    /// Directory of sysfs for energy sources, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub sys_root: Option<PathBuf>,
}
}
