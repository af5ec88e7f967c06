//! Flags of a recording, as typed or as in the configuration file: one type is
//! both, so the file mirrors the flags by construction. Values stay as they
//! are; [`crate::config`] validates them.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Deserializer};

/// Help headings, in order of importance.
mod heading {
    pub const TARGETS: &str = "Targets (one of these)";
    pub const RECORDING: &str = "Recording";
    pub const ENERGY: &str = "Energy";
    pub const OUTPUT: &str = "Output";
}

/// Flags, all optional. The comments are the help texts.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flags {
    /// Processes with this name, running or yet to start
    ///
    /// The name is the kernel's (`comm`, at most 15 bytes), or a pattern with *, ? and [...]. Several may
    /// follow, and the flag may be repeated.
    #[arg(long, value_name = "NAME", num_args = 1.., help_heading = heading::TARGETS)]
    pub comm: Vec<String>,

    /// Processes with these ids
    #[arg(long, value_name = "PID", num_args = 1.., value_delimiter = ',', help_heading = heading::TARGETS)]
    pub pid: Vec<u32>,

    /// Every process of the host
    #[arg(long, help_heading = heading::TARGETS)]
    pub all: bool,

    /// Interpret a recording instead of measuring; needs no privileges
    #[arg(long, value_name = "FILE", help_heading = heading::TARGETS)]
    pub replay: Option<PathBuf>,

    /// Stop after this time, e.g. 30s, 5m, 1h [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub duration: Option<String>,

    /// Length of an attribution window, 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = heading::RECORDING)]
    pub interval: Option<String>,

    /// Stack samples per second and CPU, 1 to 10000 [default: 99]
    #[arg(long, value_name = "HZ", help_heading = heading::RECORDING)]
    pub frequency: Option<u32>,

    /// Also write the event stream, for --replay
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    pub record: Option<PathBuf>,

    /// Read flags from a TOML file; those given here override it
    #[arg(long, value_name = "FILE", help_heading = heading::RECORDING)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Where joules come from: auto, or one or several of perf, powercap, hwmon, scmi, powerjoular, watts,
    /// model, tdp, hwmon-gpu, nvml and replay [default: auto]
    ///
    /// auto takes the first that works, in this order, adds devices that it does not measure, and checks
    /// perf against powercap. Several are separated by commas, or the flag is repeated. A choice that does
    /// not work is an error. `joular-bpf sources` shows what there is here.
    #[arg(long, value_name = "SOURCE,…", value_delimiter = ',', help_heading = heading::ENERGY)]
    #[serde(deserialize_with = "one_or_several")]
    pub energy: Vec<String>,

    /// File that watts and powerjoular read power from, or the recording whose readings replay plays back
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub energy_file: Option<PathBuf>,

    /// Power of a vCPU for model, in watts [default: published figures of the processor]
    #[arg(long, value_name = "IDLE:FULL", help_heading = heading::ENERGY)]
    pub model_watts: Option<String>,

    /// Thermal design power of a processor for tdp, in watts [default: powercap's long-term limit]
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    #[serde(deserialize_with = "number_as_text")]
    pub tdp: Option<String>,

    /// Voltages at the processor's frequencies for tdp, as its manufacturer gives them, e.g.
    /// 800:0.7,2400:1.1 [default: one voltage]
    #[arg(long, value_name = "MHZ:VOLTS,...", help_heading = heading::ENERGY)]
    pub tdp_states: Option<String>,

    /// Where powercap zones are [default: /sys/class/powercap]
    #[arg(long, value_name = "DIR", help_heading = heading::ENERGY)]
    pub powercap_root: Option<PathBuf>,

    /// What becomes of idle power: separate, spread or active [default: separate]
    ///
    /// separate sets the idle baseline apart, spread divides everything among busy threads (as JoularJX
    /// does), active sets apart what falls to idle CPU time (as Kepler does).
    #[arg(long, value_name = "POLICY", help_heading = heading::ENERGY)]
    pub idle: Option<String>,

    /// Idle power of a socket in watts, if you know it
    #[arg(long, value_name = "WATTS", help_heading = heading::ENERGY)]
    pub idle_watts: Option<f64>,

    /// Power of two busy hyper-threads of a core relative to one, 1 to 2 [default: 1.125]
    #[arg(long, value_name = "RATIO", help_heading = heading::ENERGY)]
    pub smt_ratio: Option<f64>,

    /// What `joular-bpf calibrate` found here, or none
    /// [default: /var/lib/joular-bpf/calibration.json if it is there; as recorded with --replay]
    #[arg(long, value_name = "FILE", help_heading = heading::ENERGY)]
    pub calibration: Option<PathBuf>,

    /// What busy threads are compared by: time on CPU, cycles of the hardware's counters, or auto, which
    /// takes cycles where they are counted [default: auto]
    #[arg(long, value_name = "UNIT", help_heading = heading::ENERGY)]
    pub weights: Option<String>,

    /// Directory of the data set [default: joular-out]
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub output: Option<PathBuf>,

    /// Write no data set
    #[arg(long, help_heading = heading::OUTPUT)]
    pub no_output: bool,

    /// Longest time that data stays unwritten, 1s to 1h [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = heading::OUTPUT)]
    pub flush: Option<String>,

    /// Rows of the live table, 1 to 1000 [default: 20]
    #[arg(long, value_name = "N", help_heading = heading::OUTPUT)]
    pub top: Option<u32>,

    /// One JSON object per window on standard output
    #[arg(long, help_heading = heading::OUTPUT)]
    pub json: bool,

    /// Nothing on standard output
    #[arg(long, help_heading = heading::OUTPUT)]
    pub quiet: bool,

    /// Print what the eBPF programs log, for those who work on them
    #[arg(long, hide_short_help = true, help_heading = heading::RECORDING)]
    pub kernel_log: bool,

    /// Where the proc file system is, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub proc_root: Option<PathBuf>,

    /// Where the topology of CPUs is, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub cpu_root: Option<PathBuf>,

    /// Where energy sources look for sysfs, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub sys_root: Option<PathBuf>,
}

/// A number in the configuration file as the command line has it, so that
/// `tdp = 65` means what `--tdp 65` means.
fn number_as_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(u64),
        Decimal(f64),
        Text(String),
    }
    Ok(Some(match Number::deserialize(deserializer)? {
        Number::Whole(number) => number.to_string(),
        Number::Decimal(number) => number.to_string(),
        Number::Text(text) => text,
    }))
}

/// A list in the file may be a single text.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum OneOrSeveral {
        One(String),
        Several(Vec<String>),
    }
    Ok(match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(text) => vec![text],
        OneOrSeveral::Several(texts) => texts,
    })
}

impl Flags {
    /// These flags, completed from `file`. Flags that exclude each other are
    /// taken or left as a group: `--pid 1` replaces a file's `comm`.
    pub fn or_else_from(self, file: Self) -> Self {
        let target = if self.has_target() { &self } else { &file };
        let (comm, pid, all, replay) = (target.comm.clone(), target.pid.clone(), target.all, target.replay.clone());
        let place = if self.output.is_some() || self.no_output { &self } else { &file };
        let (output, no_output) = (place.output.clone(), place.no_output);
        let screen = if self.json || self.quiet { &self } else { &file };
        let (json, quiet) = (screen.json, screen.quiet);
        Self {
            comm,
            pid,
            all,
            replay,
            duration: self.duration.or(file.duration),
            interval: self.interval.or(file.interval),
            frequency: self.frequency.or(file.frequency),
            record: self.record.or(file.record),
            config: self.config,
            energy: if self.energy.is_empty() { file.energy } else { self.energy },
            energy_file: self.energy_file.or(file.energy_file),
            model_watts: self.model_watts.or(file.model_watts),
            tdp: self.tdp.or(file.tdp),
            tdp_states: self.tdp_states.or(file.tdp_states),
            powercap_root: self.powercap_root.or(file.powercap_root),
            idle: self.idle.or(file.idle),
            idle_watts: self.idle_watts.or(file.idle_watts),
            smt_ratio: self.smt_ratio.or(file.smt_ratio),
            calibration: self.calibration.or(file.calibration),
            weights: self.weights.or(file.weights),
            output,
            no_output,
            flush: self.flush.or(file.flush),
            top: self.top.or(file.top),
            json,
            quiet,
            kernel_log: self.kernel_log || file.kernel_log,
            proc_root: self.proc_root.or(file.proc_root),
            cpu_root: self.cpu_root.or(file.cpu_root),
            sys_root: self.sys_root.or(file.sys_root),
        }
    }

    const fn has_target(&self) -> bool {
        !self.comm.is_empty() || !self.pid.is_empty() || self.all || self.replay.is_some()
    }

    /// Names of the flags that only mean something when measuring, if given.
    pub fn live_only(&self) -> impl Iterator<Item = &'static str> {
        [
            ("duration", self.duration.is_some()),
            ("interval", self.interval.is_some()),
            ("frequency", self.frequency.is_some()),
            ("record", self.record.is_some()),
            ("energy", !self.energy.is_empty()),
            ("energy-file", self.energy_file.is_some()),
            ("model-watts", self.model_watts.is_some()),
            ("tdp", self.tdp.is_some()),
            ("tdp-states", self.tdp_states.is_some()),
            ("powercap-root", self.powercap_root.is_some()),
            ("weights", self.weights.is_some()),
            ("cpu-root", self.cpu_root.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }
}
