//! Where joules come from.
//!
//! A source ([`EnergySource`]) says which [`domain`]s it knows and reads their
//! meters; [`counter`] turns readings into energy per window, live and replayed
//! alike. [`select`] chooses the source. A new source is one file, and one line
//! in [`SOURCES`].

pub mod counter;
pub mod cpuinfo;
pub mod domain;
pub mod model;
pub mod powercap;
pub mod shared_file;
pub mod watts;

use std::path::PathBuf;

use thiserror::Error;

use self::{
    domain::{Domain, Reading},
    model::{Model, ModelError, VcpuPower},
    powercap::{Powercap, PowercapError},
    shared_file::{Format, SharedFile, SharedFileError},
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

/// A kind of source: its name and how it is opened. The reason says on what
/// its figures are based.
struct SourceKind {
    name: &'static str,
    open: fn(&EnergyOptions) -> Result<Selected, EnergyError>,
}

/// All kinds, in the order in which `auto` tries them: measured before
/// reported before modelled.
const SOURCES: [SourceKind; 4] = [
    SourceKind { name: powercap::NAME, open: open_powercap },
    SourceKind { name: Format::PowerJoular.name(), open: |options| open_shared_file(options, Format::PowerJoular) },
    SourceKind { name: Format::Watts.name(), open: |options| open_shared_file(options, Format::Watts) },
    SourceKind { name: model::NAME, open: open_model },
];

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
        self == Self::Auto || [Format::Watts, Format::PowerJoular].iter().any(|format| format.name() == self.name())
    }
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no such energy source: use one of auto, {}", known_sources())]
pub struct UnknownSource;

fn known_sources() -> String {
    SOURCES.map(|kind| kind.name).join(", ")
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
    /// Usually [`powercap::DEFAULT_ROOT`].
    pub powercap_root: PathBuf,
    /// For `watts` and `powerjoular`.
    pub file: Option<PathBuf>,
    /// Usually `/proc/cpuinfo`.
    pub cpuinfo: PathBuf,
    /// For `model`, instead of the published coefficients.
    pub model_watts: Option<VcpuPower>,
}

/// A source that works.
pub struct Selected {
    pub source: Box<dyn EnergySource>,
    /// Which source and why, in one sentence for people.
    pub reason: String,
}

/// Why there is no energy source.
#[derive(Debug, Error)]
pub enum EnergyError {
    #[error(transparent)]
    Powercap(#[from] PowercapError),
    #[error("no file to read power from: name it with --energy-file PATH")]
    NoFile,
    #[error(transparent)]
    SharedFile(#[from] SharedFileError),
    #[error(transparent)]
    Model(#[from] ModelError),
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
    for kind in &SOURCES {
        match options.choice {
            EnergyChoice::Only(name) if name != kind.name => {}
            EnergyChoice::Only(_) => return (kind.open)(options).map(|selected| selected.named(kind.name, "chosen")),
            EnergyChoice::Auto => match (kind.open)(options) {
                Ok(selected) if refused.is_empty() => return Ok(selected.named(kind.name, "first choice")),
                Ok(selected) => return Ok(selected.named(kind.name, &refused.join("; "))),
                // Not worth a word: nobody asked for a file.
                Err(EnergyError::NoFile) => {}
                Err(error) => refused.push(format!("{} not usable: {error}", kind.name)),
            },
        }
    }
    Err(EnergyError::None(refused.join("; ")))
}

impl Selected {
    fn new(source: impl EnergySource + 'static, reason: impl Into<String>) -> Self {
        Self { source: Box::new(source), reason: reason.into() }
    }

    /// `name: basis (why)`
    fn named(mut self, name: &str, why: &str) -> Self {
        self.reason = format!("{name}: {} ({why})", self.reason);
        self
    }
}

fn open_powercap(options: &EnergyOptions) -> Result<Selected, EnergyError> {
    let source = Powercap::open(&options.powercap_root)?;
    let names: Vec<&str> = source.domains().iter().map(|domain| domain.name.as_str()).collect();
    let reason = format!("hardware counters of {}", names.join(", "));
    Ok(Selected::new(source, reason))
}

fn open_shared_file(options: &EnergyOptions, format: Format) -> Result<Selected, EnergyError> {
    let path = options.file.as_ref().ok_or(EnergyError::NoFile)?;
    Ok(Selected::new(SharedFile::open(path, format)?, format!("power reported in {}", path.display())))
}

fn open_model(options: &EnergyOptions) -> Result<Selected, EnergyError> {
    let source = Model::open(&options.cpuinfo, options.model_watts)?;
    let reason = source.reason().to_owned();
    Ok(Selected::new(source, reason))
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
                powercap_root: self.path("powercap"),
                file,
                cpuinfo: self.path("cpuinfo"),
                model_watts: None,
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
        assert!(matches!(machine.select("powercap", Some("5\n")), Err(EnergyError::Powercap(_))));
        assert!(matches!(machine.select("watts", None), Err(EnergyError::NoFile)));
        assert!(matches!(machine.select("powerjoular", Some("5\n")), Err(EnergyError::SharedFile(_))));
        assert_eq!(machine.select("watts", Some("5\n")).unwrap().source.name(), "watts");
        assert_eq!(Machine::new(true, true).select("model", None).unwrap().source.name(), "model");
        assert!(matches!(Machine::new(true, false).select("model", None), Err(EnergyError::Model(_))));
    }

    #[test]
    fn with_nothing_usable_every_reason_is_given() {
        let Err(error) = Machine::new(false, false).select("auto", None) else { panic!("selected something") };
        let message = error.to_string();
        assert!(message.contains("powercap not usable") && message.contains("model not usable"), "{message}");
    }

    #[test]
    fn choices_have_the_names_of_the_sources() {
        for name in ["auto", "powercap", "watts", "powerjoular", "model"] {
            assert_eq!(name.parse::<EnergyChoice>().unwrap().name(), name);
        }
        let message = "rapl".parse::<EnergyChoice>().unwrap_err().to_string();
        assert_eq!(message, "no such energy source: use one of auto, powercap, powerjoular, watts, model");
    }
}
