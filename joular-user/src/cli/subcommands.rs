//! Defines the flags of the subcommands. A flag that a recording also has keeps its name and
//! meaning, and is validated as one of [`Flags`].

use std::path::PathBuf;

use clap::Args;

use super::{DATA_SET, flags::Flags, merge::define_shared_flags, redaction_flags::RedactFlags};

/// Flags of `reattribute`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ReattributeFlags {
    /// Directory of the data set to read
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Directory of the data set to write
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// Policy for idle power: separate, spread or active [default: as recorded]
    #[arg(long, value_name = "POLICY")]
    pub idle: Option<String>,

    /// Idle power of a socket in watts, 0 if unknown [default: as recorded]
    #[arg(long, value_name = "WATTS")]
    pub idle_watts: Option<f64>,

    /// Power of a core with two busy hyper-threads relative to one busy one, 1 to 2 [default: as recorded]
    #[arg(long, value_name = "RATIO")]
    pub smt_ratio: Option<f64>,

    /// What CPU time counts for: fitted (by the watts that groups of threads draw, learnt from windows of measured energy
    /// as report --watts does) or alike [default: as recorded]
    #[arg(long, value_name = "fitted|alike")]
    pub weights: Option<String>,

    /// Groups of threads whose watts are fitted: thread, thread-pool, category, process, command, service, container, pod,
    /// namespace, host or label:KEY [default: thread-pool]
    #[arg(long, value_name = "GROUPS", requires = "weights")]
    pub by: Option<String>,

    #[command(flatten)]
    pub redaction: RedactFlags,

    /// Calibration of the machine that was recorded, from `joular-bpf calibrate`, or none [default: as recorded]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
}

impl ReattributeFlags {
    /// The same flags as those of a recording.
    pub fn policy(&self) -> Flags {
        Flags { idle: self.idle.clone(), idle_watts: self.idle_watts, smt_ratio: self.smt_ratio, ..Flags::default() }
    }
}

/// Flags of `runs`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RunsFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// Print a JSON array with an object for each run
    #[arg(long)]
    pub json: bool,

    /// Fail if a run's row cannot be read; without this the run is left out and named
    #[arg(long)]
    pub strict: bool,
}

/// Flags of `audit`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AuditFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// Look for secrets in command lines instead, and say where they are
    ///
    /// DIR may be a data set, a recording (.jrec), the directory of an experiment, or a folder of these. What is found is
    /// what a recording takes out by default.
    #[arg(long)]
    pub secrets: bool,

    /// Configuration file whose redact rules apply, too
    #[arg(long, value_name = "FILE", requires = "secrets")]
    pub config: Option<PathBuf>,

    /// Print a JSON array with an object per run; with --secrets one object
    #[arg(long)]
    pub json: bool,
}

/// Flags of `jmh`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct JmhFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// What JMH wrote with -rf json
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,

    /// Print one JSON object
    #[arg(long, group = "format")]
    pub json: bool,

    /// Print a table as comma-separated values
    #[arg(long, group = "format")]
    pub csv: bool,

    /// Print a table in Markdown
    #[arg(long, group = "format")]
    pub markdown: bool,
}

define_shared_flags! {
/// Energy sources and where they look: shared by the subcommands that open sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct SourceFlags {
    /// Energy sources, as for a recording [default: auto]
    #[arg(long, value_name = "SOURCE,…", value_delimiter = ',')]
    pub energy: Vec<String>,

    /// File that the sources microjoules, watts, powerjoular and replay read
    #[arg(long, value_name = "FILE")]
    pub energy_file: Option<PathBuf>,

    /// Models of boards for the source board, before those that are built in
    #[arg(long, value_name = "FILE")]
    pub board_models: Option<PathBuf>,

    /// Power of a vCPU for the source model, in watts
    #[arg(long, value_name = "IDLE:FULL")]
    pub model_watts: Option<String>,

    /// Thermal design power of a processor for the source tdp, in watts
    #[arg(long, value_name = "WATTS")]
    pub tdp: Option<String>,

    /// Voltages at the processor's frequencies for the source tdp
    #[arg(long, value_name = "MHZ:VOLTS,…")]
    pub tdp_states: Option<String>,

    /// Figures of network cards for the source network
    #[arg(long, value_name = "FIGURES", num_args = 0..=1, require_equals = true, default_missing_value = "published")]
    pub nic: Option<String>,

    /// Figures of disks for the source disk
    #[arg(long, value_name = "FIGURES", num_args = 0..=1, require_equals = true, default_missing_value = "published")]
    pub disk: Option<String>,

    /// Where powercap zones are [default: /sys/class/powercap]
    #[arg(long, value_name = "DIR")]
    pub powercap_root: Option<PathBuf>,

    /// Where the proc file system is, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub proc_root: Option<PathBuf>,

    /// Where energy sources look for sysfs, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub sys_root: Option<PathBuf>,
}
}

/// Flags of `doctor` and `sources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct DoctorFlags {
    #[command(flatten)]
    pub source: SourceFlags,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl From<DoctorFlags> for Flags {
    fn from(doctor: DoctorFlags) -> Self {
        Self { json: doctor.json, ..doctor.source.into() }
    }
}

/// Flags of `calibrate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct CalibrateFlags {
    /// File to write [default: /var/lib/joular-bpf/calibration.json]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How long to measure, 6s to 10m, half of it idle and half under load [default: 20s]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,

    #[command(flatten)]
    pub source: SourceFlags,

    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl From<CalibrateFlags> for Flags {
    fn from(calibrate: CalibrateFlags) -> Self {
        let CalibrateFlags { output, duration, source, json } = calibrate;
        Self { output, duration, json, ..source.into() }
    }
}
