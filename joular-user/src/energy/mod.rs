//! Where joules come from.
//!
//! A source ([`EnergySource`]) says which [`domain`]s it knows and reads their
//! meters; [`counter`] turns readings into energy per window, live and replayed
//! alike. [`select`] chooses the source. A new source is one file, and one line
//! in [`SOURCES`].

pub mod counter;
pub mod cpuinfo;
pub mod domain;
pub mod hwmon;
mod meter_files;
pub mod model;
pub mod nvml;
pub mod policy;
pub mod powercap;
pub mod replay;
pub mod scmi;
pub mod shared_file;
mod sysfs;
pub mod tdp;
pub mod watts;

use std::path::PathBuf;

use thiserror::Error;

use self::{
    domain::{Domain, Reading},
    model::VcpuPower,
    shared_file::Format,
    tdp::TdpOptions,
};

/// Something that can be asked for the energy or power of this machine. A
/// trait because sources come from other places yet are read the same way.
pub trait EnergySource: Send {
    /// As in `--energy` and in data sets.
    fn name(&self) -> &'static str;
    /// What it measures, disjoint; fixed for its lifetime.
    fn domains(&self) -> &[Domain];
    /// All meters now, one reading per domain, in that order. A meter that
    /// cannot be read is [`Reading::Failed`], this time.
    fn read(&mut self) -> Vec<Reading>;
}

/// A kind of source: what `joular-bpf sources` says of it anywhere, and how it
/// is opened here.
pub struct SourceKind {
    pub name: &'static str,
    /// What its figures are.
    pub measures: &'static str,
    /// What it takes to read it.
    pub permission: &'static str,
    open: fn(&EnergyOptions) -> Result<Opened, Unusable>,
}

/// All kinds, in the order in which `auto` tries them: measured before
/// reported before modelled. Those after the model measure no processor, or are
/// for who asks for them.
pub const SOURCES: &[SourceKind] = &[
    powercap::KIND,
    hwmon::KIND,
    scmi::KIND,
    shared_file::POWERJOULAR,
    shared_file::WATTS,
    model::KIND,
    tdp::KIND,
    hwmon::GPU_KIND,
    nvml::KIND,
    replay::KIND,
];

/// A source that works here.
pub struct Opened {
    pub source: Box<dyn EnergySource>,
    /// What its figures are based on, in a few words for people.
    pub basis: String,
    /// Smallest step and how often it advances.
    pub resolution: String,
}

/// Why a source cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Unusable {
    pub kind: UnusableKind,
    /// Operation, object, cause, and what to do.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableKind {
    /// It needs something that was not given, such as a file to read.
    NotAsked,
    /// This machine does not have it.
    Absent,
    /// It is there and may not be read.
    Denied,
    /// It is there and does not work.
    Broken,
}

impl Unusable {
    pub fn new(kind: UnusableKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Which source to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyChoice {
    /// The first that works.
    #[default]
    Auto,
    /// This one or none.
    Only(&'static str),
}

impl EnergyChoice {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Only(name) => name,
        }
    }

    /// Whether `--energy-file` means anything to it.
    pub fn reads_file(self) -> bool {
        let readers = [Format::Watts.name(), Format::PowerJoular.name(), replay::NAME];
        self == Self::Auto || readers.contains(&self.name())
    }
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no such energy source: use one of auto, {}", known_sources())]
pub struct UnknownSource;

fn known_sources() -> String {
    SOURCES.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

impl std::str::FromStr for EnergyChoice {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => SOURCES.iter().find(|kind| kind.name == text).map(|kind| Self::Only(kind.name)).ok_or(UnknownSource),
        }
    }
}

/// Which source, and where to look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyOptions {
    pub choice: EnergyChoice,
    /// Usually `/sys`.
    pub sys_root: PathBuf,
    /// Usually `/proc`.
    pub proc_root: PathBuf,
    /// Usually [`powercap::DEFAULT_ROOT`].
    pub powercap_root: PathBuf,
    /// For `watts`, `powerjoular` and `replay`.
    pub file: Option<PathBuf>,
    /// For `model`, instead of the published coefficients.
    pub model_watts: Option<VcpuPower>,
    /// For `tdp`, what the user knows of the processor.
    pub tdp: Option<TdpOptions>,
}

/// What a run measures with.
pub struct Selected {
    pub source: Box<dyn EnergySource>,
    /// Which source and why, in one sentence for people.
    pub reason: String,
}

/// Why there is no energy source.
#[derive(Debug, Error)]
pub enum EnergyError {
    #[error("energy source {name} cannot be used: {why}")]
    Chosen { name: &'static str, why: Unusable },
    #[error("no energy source is usable: {0}")]
    None(String),
}

/// Opens the chosen source. `auto` tries all in order; an explicit choice that
/// does not work is an error, never replaced by another source.
///
/// # Errors
/// Why the chosen source, or every source, cannot be used.
pub fn select(options: &EnergyOptions) -> Result<Selected, EnergyError> {
    let mut refused: Vec<String> = Vec::new();
    for kind in SOURCES {
        match options.choice {
            EnergyChoice::Only(name) if name != kind.name => {}
            EnergyChoice::Only(_) => {
                let opened = (kind.open)(options).map_err(|why| EnergyError::Chosen { name: kind.name, why })?;
                return Ok(opened.selected(kind.name, "chosen"));
            }
            EnergyChoice::Auto => match (kind.open)(options) {
                Ok(opened) if refused.is_empty() => return Ok(opened.selected(kind.name, "first choice")),
                Ok(opened) => return Ok(opened.selected(kind.name, &refused.join("; "))),
                // Not worth a word: nobody asked for a file.
                Err(error) if error.kind == UnusableKind::NotAsked => {}
                Err(error) => refused.push(format!("{} not usable: {error}", kind.name)),
            },
        }
    }
    Err(EnergyError::None(refused.join("; ")))
}

impl Opened {
    pub fn new(source: impl EnergySource + 'static, basis: impl Into<String>, resolution: impl Into<String>) -> Self {
        Self { source: Box::new(source), basis: basis.into(), resolution: resolution.into() }
    }

    /// `name: basis (why)`
    fn selected(self, name: &str, why: &str) -> Selected {
        Selected { source: self.source, reason: format!("{name}: {} ({why})", self.basis) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine whose parts are there or not.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(has_powercap: bool, has_cpuinfo: bool) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            if has_powercap {
                let zone = machine.path("powercap/intel-rapl:0");
                fs::create_dir_all(&zone).unwrap();
                fs::write(zone.join("name"), "package-0\n").unwrap();
                fs::write(zone.join("energy_uj"), "1\n").unwrap();
            }
            if has_cpuinfo {
                fs::write(machine.path("cpuinfo"), "").unwrap();
            }
            machine
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn select(&self, choice: &str, report: Option<&str>) -> Result<Selected, EnergyError> {
            let file = report.map(|text| {
                fs::write(self.path("report"), text).unwrap();
                self.path("report")
            });
            select(&EnergyOptions {
                choice: choice.parse().unwrap(),
                sys_root: self.path("sys"),
                proc_root: self.0.path().to_owned(),
                powercap_root: self.path("powercap"),
                file,
                model_watts: None,
                tdp: None,
            })
        }
    }

    #[test]
    fn auto_prefers_measured_to_reported_to_modelled() {
        for (has_powercap, report, expected) in [
            (true, Some("5\n"), "powercap"),
            (false, Some("a,1,5\n"), "powerjoular"),
            (false, Some("5\n"), "watts"),
            (false, Some("nothing\n"), "model"),
            (false, None, "model"),
        ] {
            let selected = Machine::new(has_powercap, true).select("auto", report).unwrap();
            assert_eq!(selected.source.name(), expected, "{}", selected.reason);
            assert!(selected.reason.starts_with(expected), "{}", selected.reason);
        }
    }

    #[test]
    fn the_reason_says_why_the_others_were_not_usable() {
        let reason = Machine::new(false, true).select("auto", Some("nothing\n")).unwrap().reason;
        for part in ["model: estimated", "powercap not usable: listing", "watts not usable: reading"] {
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn an_explicit_choice_is_never_replaced() {
        let machine = Machine::new(false, true);
        let refused = |choice, report| match machine.select(choice, report) {
            Err(EnergyError::Chosen { name, why }) if name == choice => why.kind,
            _ => panic!("{choice} was not refused"),
        };
        assert_eq!(refused("powercap", Some("5\n")), UnusableKind::Absent);
        assert_eq!(refused("watts", None), UnusableKind::NotAsked);
        assert_eq!(refused("powerjoular", Some("5\n")), UnusableKind::Broken);
        assert_eq!(machine.select("watts", Some("5\n")).unwrap().source.name(), "watts");
        assert_eq!(Machine::new(true, true).select("model", None).unwrap().source.name(), "model");
        assert!(matches!(Machine::new(true, false).select("model", None), Err(EnergyError::Chosen { .. })));
    }

    #[test]
    fn with_nothing_usable_every_reason_is_given() {
        let Err(error) = Machine::new(false, false).select("auto", None) else { panic!("selected something") };
        let message = error.to_string();
        assert!(message.contains("powercap not usable") && message.contains("model not usable"), "{message}");
    }

    #[test]
    fn auto_tries_what_needs_asking_for_after_the_model() {
        let place = |name: &str| SOURCES.iter().position(|kind| kind.name == name).unwrap();
        for name in ["powercap", "hwmon", "scmi", "powerjoular", "watts"] {
            assert!(place(name) < place("model"), "{name} says something of this machine's power");
        }
        for name in ["tdp", "hwmon-gpu", "nvml", "replay"] {
            assert!(place("model") < place(name), "{name} is not what a machine draws");
        }
    }

    #[test]
    fn choices_have_the_names_of_the_sources() {
        for name in
            ["auto", "powercap", "hwmon", "scmi", "watts", "powerjoular", "model", "tdp", "hwmon-gpu", "nvml", "replay"]
        {
            assert_eq!(name.parse::<EnergyChoice>().unwrap().name(), name);
        }
        let message = "rapl".parse::<EnergyChoice>().unwrap_err().to_string();
        let names = "auto, powercap, hwmon, scmi, powerjoular, watts, model, tdp, hwmon-gpu, nvml, replay";
        assert_eq!(message, format!("no such energy source: use one of {names}"));
    }
}
