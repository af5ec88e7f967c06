//! Defines the flags of a recording, from the command line or from the configuration file. Both are the same type, so
//! the file always mirrors the flags. Values are kept as given; [`crate::config`] validates them.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    heading,
    merge::define_flags,
    redaction_flags::RedactRuleFlags,
    service_rule::ServiceRuleFlags,
    written::{number_as_text, one_or_several},
};

define_flags! {
/// Flags, all optional. The comments are the help texts.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flags {
    /// Processes with this name, running now or started later
    ///
    /// The name is the kernel's (`comm`, at most 15 bytes) or a pattern with *, ? and [...]. Give several
    /// names after one flag, or repeat the flag.
    #[arg(long, alias = "process", value_name = "NAME", num_args = 1.., help_heading = heading::TARGETS)]
    pub comm: Vec<String>,

    /// Every JVM, whatever launched it [default: if no other targets are given]
    ///
    /// A process that loads a JVM later is found before it is twice as old. With flags from --container to --service,
    /// JVMs must meet a condition of each kind.
    #[arg(long, help_heading = heading::TARGETS)]
    pub jvms: bool,

    /// Processes with these ids; the recording ends when none of them is left
    #[arg(short, long, value_name = "PID", num_args = 1.., value_delimiter = ',', help_heading = heading::TARGETS)]
    pub pid: Vec<u32>,

    /// Processes in these containers: ids, the first 12 or more digits of them, or patterns
    ///
    /// With --comm and several of the flags from here to --service, processes must meet a condition of each kind:
    /// `--comm java --pod UID` records the JVMs of a pod.
    #[arg(long, value_name = "ID", num_args = 1.., help_heading = heading::TARGETS)]
    pub container: Vec<String>,

    /// Processes in the pods with these uids, or patterns; with --kubernetes also by name
    #[arg(long, value_name = "POD", num_args = 1.., help_heading = heading::TARGETS)]
    pub pod: Vec<String>,

    /// Processes in pods of these namespaces, or patterns; needs --kubernetes
    #[arg(long, value_name = "NAMESPACE", num_args = 1.., help_heading = heading::TARGETS)]
    pub namespace: Vec<String>,

    /// Processes in pods with these labels, where VALUE may be a pattern; needs --kubernetes
    ///
    /// Labels with different keys must all be there; values of one key are alternatives.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., help_heading = heading::TARGETS)]
    pub label: Vec<String>,

    /// Processes in these control groups and the groups in them, e.g. /system.slice/tomcat9.service
    #[arg(long, value_name = "PATH", num_args = 1.., help_heading = heading::TARGETS)]
    pub cgroup: Vec<String>,

    /// Processes of these services, or patterns; the configuration file may have rules that name services
    #[arg(long, value_name = "SERVICE", num_args = 1.., help_heading = heading::TARGETS)]
    pub service: Vec<String>,

    /// Every process of the host
    #[arg(long, help_heading = heading::TARGETS)]
    pub all: bool,

    /// Replay a recording (see --record) instead of measuring; needs no privileges
    #[arg(long, value_name = "FILE", help_heading = heading::TARGETS)]
    pub replay: Option<PathBuf>,

    /// Stop after this time, e.g. 30s, 5m or 1h30m [default: run until Ctrl-C]
    #[arg(short, long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub duration: Option<String>,

    /// Length of an attribution window, 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub interval: Option<String>,

    /// Stack samples per second of CPU time, on average, 1 to 10000 [default: 99]
    #[arg(long, value_name = "HZ", help_heading = heading::RECORDING)]
    pub frequency: Option<u32>,

    /// What takes samples: timer (at random moments, only while targets run), cpu-clock (the kernel's event, at a fixed
    /// rate, also on idle CPUs) or auto, which is timer where the machine allows it [default: auto]
    #[arg(long, value_name = "SAMPLER", help_heading = heading::RECORDING)]
    pub sampler: Option<String>,

    /// Who knows names, images and labels of this host's pods: kubelet, the address of a kubelet, or the socket of a
    /// container runtime [default with the flag alone: kubelet]
    ///
    /// kubelet is the kubelet at https://NODE_IP:10250, where NODE_IP is of the environment, else 127.0.0.1. It is
    /// asked for /pods. A container runtime is asked over CRI, e.g. at /run/containerd/containerd.sock.
    #[arg(long, value_name = "SOURCE", num_args = 0..=1, default_missing_value = "kubelet",
        help_heading = heading::RECORDING)]
    pub kubernetes: Option<String>,

    /// Bearer token for the kubelet [default: that of the pod's service account, if there is one]
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub kubernetes_token: Option<PathBuf>,

    /// Certificates of those who sign the kubelet's, or none: then whoever answers is believed and gets the token
    /// [default: those of the pod's service account]
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub kubernetes_ca: Option<PathBuf>,

    /// Count these for each thread, at most 8 at once: page-faults, minor-faults, major-faults, context-switches,
    /// cpu-migrations, and where the hardware counts them cycles, instructions, cache-references, cache-misses,
    /// branches, branch-misses, ref-cycles, L1-dcache-load-misses, LLC-load-misses and dTLB-load-misses
    ///
    /// The data set has them in table counters. Each makes context switches a little slower. Separate several by
    /// commas, or repeat the flag.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = heading::RECORDING)]
    #[serde(deserialize_with = "one_or_several")]
    pub counters: Vec<String>,

    /// Sample what threads of JVMs allocate: bytes by class and call path
    ///
    /// Three functions of each JVM get a probe, which the kernel puts into its memory and takes out at the end. The JVM
    /// calls them about as often as it hands out memory to threads, not for each object.
    #[arg(long, help_heading = heading::RECORDING)]
    pub alloc: bool,

    /// Count bytes that are sent, received, read and written, by call path
    ///
    /// Functions of the kernel that move bytes through sockets of TCP and UDP and through regular files get a program each.
    #[arg(long, help_heading = heading::RECORDING)]
    pub io: bool,

    /// Also write the event stream to a file, for --replay
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub record: Option<PathBuf>,

    /// Read flags from a TOML file; flags on the command line override it
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Energy sources: auto, or one or several of perf, powercap, hwmon, scmi, microjoules, powerjoular, watts, board,
    /// model, tdp, hwmon-gpu, nvml, network, disk and replay [default: auto]
    ///
    /// auto takes the first source of this list that works. It adds sources of devices that the first does not
    /// measure, and compares perf with powercap where both work. Separate several sources by commas, or repeat the
    /// flag. A named source that does not work is an error. `joular-bpf sources` lists the sources of this machine.
    #[arg(long, value_name = "SOURCE,…", value_delimiter = ',', help_heading = heading::ENERGY)]
    #[serde(deserialize_with = "one_or_several")]
    pub energy: Vec<String>,

    /// File that the sources microjoules, powerjoular and watts read, or recording that the source replay reads
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub energy_file: Option<PathBuf>,

    /// Models of boards for the source board, which come before those that are built in
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub board_models: Option<PathBuf>,

    /// Power of a vCPU for the source model, idle and fully busy, in watts [default: published figures of the processor]
    #[arg(long, value_name = "IDLE:FULL", help_heading = heading::ENERGY)]
    pub model_watts: Option<String>,

    /// Thermal design power of a processor for the source tdp, in watts [default: powercap's long-term limit]
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    #[serde(deserialize_with = "number_as_text")]
    pub tdp: Option<String>,

    /// Voltages at the processor's frequencies for the source tdp, as the manufacturer gives them, e.g.
    /// 800:0.7,2400:1.1 [default: one voltage]
    #[arg(long, value_name = "MHZ:VOLTS,...", help_heading = heading::ENERGY)]
    pub tdp_states: Option<String>,

    /// Model the energy of network cards, by bytes that --io counts, with the figures given here
    ///
    /// FIGURES are idle-watts=, down-watts= and active-watts= (power of a card that moves nothing, that has no link, that
    /// sends as fast as its link can), sent-nj= and received-nj= (energy of a byte), with commas between them. Give
    /// idle-watts=, and either active-watts= or both energies of a byte: nothing is published that would do for your card.
    /// --nic brings --io with it. The whole run is labelled modelled then.
    #[arg(long, value_name = "FIGURES", num_args = 0..=1, require_equals = true, default_missing_value = "published",
        help_heading = heading::ENERGY)]
    pub nic: Option<String>,

    /// Model the energy of disks, by bytes that --io counts, with published figures or those given here
    ///
    /// FIGURES are idle-watts=, read-uj= and write-uj= (energy of a request), byte-read-nj= and byte-written-nj=, with commas
    /// between them. What is not given is as published for disks of that kind. --disk brings --io with it. The whole run
    /// is labelled modelled then.
    #[arg(long, value_name = "FIGURES", num_args = 0..=1, require_equals = true, default_missing_value = "published",
        help_heading = heading::ENERGY)]
    pub disk: Option<String>,

    /// Directory of the powercap zones [default: /sys/class/powercap]
    #[arg(long, value_name = "DIR", help_heading = heading::ENERGY)]
    pub powercap_root: Option<PathBuf>,

    /// Do not look for 140 ms, before the recording, at how often energy counters advance
    #[arg(long, help_heading = heading::ENERGY)]
    pub no_counter_watch: bool,

    /// What measured energy of memory is divided by: time, allocation or cache-misses [default: time]
    ///
    /// It holds for the domain dram, where there is one. allocation brings --alloc with it: threads of targets share by
    /// the bytes that they allocated what they have together by time. cache-misses brings --counters cache-misses with it.
    #[arg(long, value_name = "WHAT", help_heading = heading::ENERGY)]
    pub dram_by: Option<String>,

    /// Policy for idle power: separate, spread or active [default: separate]
    ///
    /// separate sets the idle power apart. spread divides all energy among busy threads, as JoularJX
    /// does. active sets apart the share of idle CPU time, as Kepler does.
    #[arg(long, value_name = "POLICY", help_heading = heading::ENERGY)]
    pub idle: Option<String>,

    /// Idle power of a socket in watts [default: from the calibration or the model]
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    pub idle_watts: Option<f64>,

    /// Power of a core with two busy hyper-threads relative to one busy one, 1 to 2 [default: as calibrated, else 1.125]
    #[arg(long, value_name = "RATIO", help_heading = heading::ENERGY)]
    pub smt_ratio: Option<f64>,

    /// Calibration that `joular-bpf calibrate` wrote, or none
    /// [default: /var/lib/joular-bpf/calibration.json if it is there; with --replay as recorded]
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub calibration: Option<PathBuf>,

    /// What energy is divided by: time (CPU time), cycles (of the hardware's counters) or auto, which is
    /// cycles where the hardware counts them [default: auto]
    #[arg(long, value_name = "UNIT", help_heading = heading::ENERGY)]
    pub weights: Option<String>,

    /// Directory of the data set [default: joular-out]
    #[arg(short, long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub output: Option<PathBuf>,

    /// Write no data set
    #[arg(long, help_heading = heading::OUTPUT)]
    pub no_output: bool,

    /// Write files at least this often, 1s to 1h [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub flush: Option<String>,

    /// Begin a new run in the data set whenever the clock passes a multiple of this time, 10s to 24h: each is
    /// complete in itself [default: 15m with --keep, --keep-size, --keep-free or --ship, else one run]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub rotate: Option<String>,

    /// Keep so much recorded time beside the present run, e.g. 48h, and remove older runs
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub keep: Option<String>,

    /// Keep so many bytes beside the present run, e.g. 500MiB or 2GiB, and remove older runs; with --keep,
    /// what is reached first
    #[arg(long, value_name = "SIZE", help_heading = heading::OUTPUT)]
    pub keep_size: Option<String>,

    /// Keep so much of the file system free, e.g. 2GiB or 5% (4 GiB at most, and of inodes), and remove older runs for it,
    /// but none that waits to be shipped [default: 5% for the agent, else 0]
    #[arg(long, value_name = "SIZE", help_heading = heading::OUTPUT)]
    pub keep_free: Option<String>,

    /// Bring each run to this place once it has ended: a directory, s3://BUCKET/PREFIX, gs://… or az://…
    ///
    /// A run that has arrived does so once, whatever fails in between. While the place is away, runs wait in the
    /// data set, as long as --keep and --keep-size keep them. A directory must hold a file .joular-bpf-share.
    #[arg(long, value_name = "PLACE", help_heading = heading::OUTPUT)]
    pub ship: Option<String>,

    /// Length of the windows that are shipped, a multiple of --interval up to 24h, or recorded: as they are [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub ship_window: Option<String>,

    /// What a shipped run is: bundles (one file, there whole or not at all) or tables (a file of each) [default: bundles]
    #[arg(long, value_name = "WHAT", help_heading = heading::OUTPUT)]
    pub ship_layout: Option<String>,
    /// Ask a bucket for each file before writing it: for stores without conditional writes, where two may write one file
    #[arg(long, help_heading = heading::OUTPUT)]
    pub ship_look_first: bool,
    /// Ship no more than so many bytes per second, on average, e.g. 500KiB or 2MiB [default: no limit]
    #[arg(long, value_name = "SIZE", help_heading = heading::OUTPUT)]
    pub ship_rate: Option<String>,
    /// How long the end of the recording waits until its last run has arrived, up to 1h [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub ship_at_end: Option<String>,

    /// What is shown of command lines: none, redacted (without the values of options, properties and variables whose names
    /// suggest a secret, and without users and passwords in URLs) or full [default: redacted]
    ///
    /// It holds for all that is written: recording, data set, metrics and messages. The configuration file may have rules of
    /// what else is secret. docs/operating.md says what is found and what is not.
    #[arg(long, value_name = "WHAT", help_heading = heading::OUTPUT)]
    pub command_line: Option<String>,

    /// Methods in the live table, 0 for as many as fit [default: 20]; of a sweep in its results, 0 for all [default: 10]
    #[arg(long, value_name = "N", help_heading = heading::OUTPUT)]
    pub top: Option<u32>,

    /// Leave energy of windows in which no sample hit a thread at [no sample] in the live view and the summary
    #[arg(long, help_heading = heading::OUTPUT)]
    pub no_infer: bool,

    /// Print one JSON object per window to standard output
    #[arg(long, help_heading = heading::OUTPUT)]
    pub json: bool,

    /// Print nothing to standard output
    #[arg(long, help_heading = heading::OUTPUT)]
    pub quiet: bool,

    /// Serve live metrics in OpenMetrics format over HTTP, at this address [default with the flag alone: 127.0.0.1:9897]
    ///
    /// They are at /metrics. An address that other hosts reach needs --metrics-token or --metrics-client-ca.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:9897",
          help_heading = heading::OUTPUT)]
    pub metrics: Option<String>,

    /// Serve metrics only to who shows the bearer token in this file, which only its owner and group may read
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub metrics_token: Option<PathBuf>,

    /// Serve metrics over TLS, with the certificate in this PEM file, followed by those that sign it
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub metrics_cert: Option<PathBuf>,

    /// The private key of --metrics-cert, a PEM file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub metrics_key: Option<PathBuf>,

    /// Serve metrics only to clients with a certificate that those in this PEM file sign; with --metrics-cert
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub metrics_client_ca: Option<PathBuf>,

    /// Methods of each process with metrics of their own, 0 to 1000; more after minutes [default: 20]
    #[arg(long, value_name = "N", help_heading = heading::OUTPUT)]
    pub metrics_methods: Option<u32>,

    /// Push the same metrics to an OpenTelemetry collector over OTLP with HTTP, at this address [default with the flag
    /// alone: http://127.0.0.1:4318]
    ///
    /// /v1/metrics is put behind it. Names of processes go there, unencrypted unless it is https.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:4318",
          help_heading = heading::OUTPUT)]
    pub otlp: Option<String>,

    /// Time between two pushes, 1s to 1h [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub otlp_interval: Option<String>,

    /// Push profiles too: energy, CPU time and samples of each call path in each interval (experimental, as OTLP's
    /// profiles are)
    #[arg(long, help_heading = heading::OUTPUT)]
    pub otlp_profiles: bool,

    /// Send the headers in this file, one NAME: VALUE a line; only its owner and group may read it
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub otlp_headers: Option<PathBuf>,

    /// Trust the collector's certificate if those in this PEM file sign it, instead of those that the system trusts
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub otlp_ca: Option<PathBuf>,

    /// Tell each virtual machine on this host what it uses, in DIR/NAME/energy_uj and DIR/NAME/watts
    ///
    /// Share DIR/NAME with the virtual machine NAME alone, to read. In it: `joular-bpf --energy microjoules
    /// --energy-file energy_uj`. Virtual machines are targets as others are: `--comm 'qemu*'`.
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub guest_power: Option<PathBuf>,

    // Of the configuration file only: rules that name services, rules of what is secret, and labels of this host.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub service_rule: Vec<ServiceRuleFlags>,
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub redact: Vec<RedactRuleFlags>,
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub labels: BTreeMap<String, String>,

    /// Print the log of the eBPF programs, for their developers
    #[arg(long, hide_short_help = true, help_heading = heading::RECORDING)]
    pub kernel_log: bool,

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
