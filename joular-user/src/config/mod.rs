//! Resolves what a run does: it merges flags and configuration file, and checks them.
//!
//! Resolving is pure ([`Config::resolve`]); only reading the file is not. Every error names its
//! place: the flag, or file, line and key.

mod access;
mod agent;
mod baseline;
pub mod calibration;
mod command;
mod conflicts;
mod counters;
mod diff;
pub mod duration;
mod energy;
mod experiment;
pub mod file;
mod footprint;
mod kubernetes;
pub mod labels;
mod load;
mod memory;
mod metrics;
mod otlp;
mod part;
mod picture;
mod policy;
mod redaction;
mod report;
mod retention;
mod rollup;
mod sampler;
mod scraping;
mod selection;
mod serve;
mod services;
mod ship;
mod sweep;
mod tier;
mod top;
mod trust;
mod validate;
mod weights;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use joular_data::{
    dataset::DEFAULT_FLUSH_NS,
    model::{counter::Counter, policy::PolicyChoices},
    redact::Redaction,
};
use thiserror::Error;

use self::duration::parse_duration;
pub use self::{
    access::{AccessRules, Sight},
    agent::AgentConfig,
    baseline::{Check, baseline_to_check, baseline_to_save, of_session},
    calibration::{Calibrate, CalibrationChoice},
    command::CommandRun,
    diff::diff_choices,
    energy::energy_options,
    experiment::experiment,
    file::ConfigFile,
    footprint::footprint,
    load::{Load, LoadAction, Loading, load},
    memory::MemoryBy,
    metrics::{Metrics, TlsFiles},
    otlp::Otlp,
    part::{AUTO_APP, part, unreadable},
    picture::{drawing, page},
    policy::policy_choices,
    redaction::{redaction, redaction_if_asked, secrets},
    report::{WeightsAgain, exported_measure, report_request, requests, watts_request, weights_again},
    retention::Retention,
    rollup::rollup_window_ns,
    sampler::SamplerChoice,
    scraping::{Scraping, scraping},
    serve::{Serving, reading_time, serving},
    ship::{Ship, ship_once},
    sweep::{SweepRun, sweep},
    tier::{sources, tiers},
    top::top,
    trust::Trust,
    validate::{schedule, validation},
    weights::WeightChoice,
};
use crate::{
    cli::{self, Flags},
    energy::{EnergyOptions, shared_file::STALE_AFTER},
    procs::{kubernetes::Source, selection::Selection, service::rules::SharedRules},
};

/// Methods in a live table at most: more than a terminal has lines.
const MOST_METHODS: u32 = 1000;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub input: Input,
    /// Directory of the data set; `None` writes none.
    pub output: Option<PathBuf>,
    /// Longest time that data stays unwritten, 1 s to 1 h.
    pub flush: Duration,
    pub retention: Retention,
    /// Where runs go that have ended.
    pub ship: Option<Ship>,
    /// Choices that differ from the default or, in a replay, from the recording.
    pub policy: PolicyChoices,
    pub calibration: CalibrationChoice,
    /// What is shown of command lines.
    pub redaction: Redaction,
    pub screen: Screen,
    /// Whether sums over the run leave what no sample hit at `[no sample]`.
    pub no_infer: bool,
    /// Rows of the live table, 1 to 1000.
    pub top: usize,
    /// Whether standard output is that of a command: everything goes to standard error.
    pub is_beside_command: bool,
    /// Usually `/proc`.
    pub proc_root: PathBuf,
    /// Another place of CPU topology than the kernel's own, for tests.
    pub cpu_root: Option<PathBuf>,
}

/// Length of windows.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// Shorter windows have too little in them.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Where events come from.
#[derive(Clone, Debug)]
pub enum Input {
    Live(Box<Live>),
    Replay(PathBuf),
}

/// How to measure.
#[derive(Clone, Debug)]
pub struct Live {
    pub selection: Selection,
    /// `None`: until a signal.
    pub duration: Option<Duration>,
    /// Window length, 100 ms to 60 s.
    pub interval: Duration,
    /// Samples per second and CPU, 1 to 10 000.
    pub frequency: u32,
    pub energy: EnergyOptions,
    /// Whether it is measured first how often energy counters advance.
    pub counter_watch: bool,
    pub memory_by: MemoryBy,
    pub weights: WeightChoice,
    pub sampler: SamplerChoice,
    /// What is counted for each thread.
    pub counters: Vec<Counter>,
    /// Whether allocations of JVMs are sampled.
    pub allocations: bool,
    /// Whether bytes are counted that threads move through sockets and files.
    pub io: bool,
    /// Name services.
    pub service_rules: SharedRules,
    /// Of this host, by key.
    pub labels: BTreeMap<String, String>,
    /// Where virtual machines are told what they use.
    pub guest_power: Option<PathBuf>,
    /// Who is asked for pods.
    pub kubernetes: Option<Source>,
    /// Where to write the event stream.
    pub record: Option<PathBuf>,
    /// Serve live metrics.
    pub metrics: Option<Metrics>,
    /// Methods of each process that have metrics of their own.
    pub metrics_methods: usize,
    /// Push metrics and profiles.
    pub otlp: Option<Otlp>,
    /// Print what the eBPF programs log.
    pub kernel_log: bool,
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    #[default]
    Table,
    Json,
    /// The summary at the end alone.
    Summary,
    Quiet,
}

/// Why there is no valid configuration. All are wrong use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    #[error("reading configuration {path}: {cause}: check --config")]
    File { path: String, cause: String },
    #[error("{path}:{line}: {message}")]
    Syntax { path: String, line: usize, message: String },
    #[error("{place}: {cause}")]
    Invalid { place: String, cause: String },
    #[error("{place} cannot be used with {other}: {advice}")]
    Conflict { place: String, other: String, advice: &'static str },
    /// The cause says where.
    #[error("{cause}")]
    Plain { cause: String },
}

impl Config {
    /// Reads the configuration file if there is one, and resolves.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn load(flags: Flags) -> Result<Self, ConfigError> {
        let file = flags.config.as_deref().map(ConfigFile::read).transpose()?;
        Self::resolve(flags, file)
    }

    /// Merges flags and file: flags override, defaults complete.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn resolve(flags: Flags, file: Option<ConfigFile>) -> Result<Self, ConfigError> {
        let (places, merged) = Places::merged(flags, file)?;
        places.config(merged)
    }
}

/// Knows where each value came from, for messages.
struct Places {
    file: Option<ConfigFile>,
    typed: Flags,
}

impl Places {
    fn typed(flags: &Flags) -> Self {
        Self { file: None, typed: flags.clone() }
    }

    /// Completes flags from a file.
    fn merged(flags: Flags, file: Option<ConfigFile>) -> Result<(Self, Flags), ConfigError> {
        let mut places = Self::typed(&flags);
        places.refuse_conflicts(&flags)?;
        let mut merged = flags;
        if let Some(file) = file {
            let in_file = Self { file: Some(file.clone()), typed: Flags::default() };
            in_file.refuse_conflicts(&file.flags)?;
            merged = merged.or_else_from(file.flags.clone());
            places.file = Some(file);
        }
        Ok((places, merged))
    }

    fn config(&self, flags: Flags) -> Result<Config, ConfigError> {
        let flush = self.time("flush", flags.flush.as_deref(), Duration::from_secs(1)..=Duration::from_secs(3600))?;
        let top = match self.number("top", flags.top, 0..=MOST_METHODS)? {
            Some(0) => MOST_METHODS,
            top => top.unwrap_or(20),
        };
        let screen = match (flags.json, flags.quiet) {
            (true, _) => Screen::Json,
            (false, true) => Screen::Quiet,
            (false, false) => Screen::Table,
        };
        let output = flags.output.clone().unwrap_or_else(|| cli::DATA_SET.into());
        Ok(Config {
            output: (!flags.no_output).then_some(output),
            flush: flush.unwrap_or(Duration::from_nanos(DEFAULT_FLUSH_NS)),
            retention: self.retention(&flags)?,
            ship: self.ship(&flags)?,
            policy: self.policy(&flags)?,
            calibration: CalibrationChoice::of(flags.calibration.as_deref()),
            redaction: self.redaction(&flags)?,
            screen,
            no_infer: flags.no_infer,
            top: top as usize,
            is_beside_command: false,
            proc_root: proc_root(&flags),
            cpu_root: flags.cpu_root.clone(),
            input: match &flags.replay {
                Some(recording) => Input::Replay(recording.clone()),
                None => Input::Live(Box::new(self.live(flags)?)),
            },
        })
    }

    fn live(&self, flags: Flags) -> Result<Live, ConfigError> {
        let limits = SHORTEST_INTERVAL..=Duration::from_secs(60);
        let interval = self.time("interval", flags.interval.as_deref(), limits)?;
        let limits = Duration::from_millis(1)..=Duration::MAX;
        let interval = interval.unwrap_or(DEFAULT_INTERVAL);
        if flags.guest_power.is_some() && interval > STALE_AFTER / 2 {
            let most = STALE_AFTER / 2;
            return Err(
                self.invalid("guest-power", format!("virtual machines need news every {most:?}: shorten --interval"))
            );
        }
        let memory_by = flags.dram_by.as_deref().map_or(Ok(MemoryBy::Time), |text| self.parse("dram-by", text))?;
        let live = Live {
            selection: self.selection(&flags)?,
            duration: self.time("duration", flags.duration.as_deref(), limits)?,
            interval,
            guest_power: flags.guest_power.clone(),
            frequency: self.number("frequency", flags.frequency, 1..=10_000)?.unwrap_or(99),
            energy: self.energy(&flags)?,
            counter_watch: !flags.no_counter_watch,
            memory_by,
            weights: flags.weights.as_deref().map_or(Ok(WeightChoice::Auto), |text| self.parse("weights", text))?,
            sampler: flags.sampler.as_deref().map_or(Ok(SamplerChoice::Auto), |text| self.parse("sampler", text))?,
            counters: self.counters(&flags.counters, memory_by)?,
            allocations: flags.alloc || memory_by == MemoryBy::Allocation,
            io: flags.io,
            metrics: self.metrics(&flags)?,
            metrics_methods: self.metrics_methods(&flags)?,
            otlp: self.otlp(&flags)?,
            service_rules: services::rules(&flags.service_rule)
                .map(SharedRules::new)
                .map_err(|cause| self.invalid("[[service-rule]]", cause))?,
            kubernetes: self.kubernetes(&flags)?,
            labels: labels::checked(&flags.labels)
                .map(|()| flags.labels)
                .map_err(|cause| self.invalid("[labels]", cause))?,
            record: flags.record,
            kernel_log: flags.kernel_log,
        };
        // What energy is divided by must be there.
        Ok(Live { io: live.io || live.energy.needs_bytes(), ..live })
    }

    fn time(
        &self,
        key: &str,
        text: Option<&str>,
        limits: std::ops::RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, ConfigError> {
        let Some(text) = text else { return Ok(None) };
        let shown = text.escape_debug();
        match parse_duration(text) {
            Err(error) => Err(self.invalid(key, format!("\"{shown}\" is {error}"))),
            Ok(time) if limits.contains(&time) => Ok(Some(time)),
            Ok(_) if *limits.end() == Duration::MAX => Err(self.invalid(key, "must be longer than 0")),
            Ok(_) => {
                let (least, most) = limits.into_inner();
                Err(self.invalid(key, format!("\"{shown}\" is not between {least:?} and {most:?}")))
            }
        }
    }

    fn number(
        &self,
        key: &str,
        number: Option<u32>,
        limits: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, ConfigError> {
        match number {
            Some(number) if !limits.contains(&number) => {
                let (least, most) = limits.into_inner();
                Err(self.invalid(key, format!("{number} is not between {least} and {most}")))
            }
            _ => Ok(number),
        }
    }

    fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(&self, key: &str, text: &str) -> Result<T, ConfigError> {
        text.parse().map_err(|error| self.invalid(key, format!("\"{}\": {error}", text.escape_debug())))
    }

    fn invalid(&self, key: &str, cause: impl Into<String>) -> ConfigError {
        ConfigError::Invalid { place: self.place(key), cause: cause.into() }
    }

    /// `--key`, or its place in the file if the value in effect is from there.
    fn place(&self, key: &str) -> String {
        match &self.file {
            Some(file) if !self.typed.has(key) => file.place_of(key),
            _ => format!("--{key}"),
        }
    }
}

fn proc_root(flags: &Flags) -> PathBuf {
    flags.proc_root.clone().unwrap_or_else(|| "/proc".into())
}

#[cfg(test)]
mod tests;
