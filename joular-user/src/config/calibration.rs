//! Resolves what a calibration does, and which one a run uses.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{ConfigError, Places, proc_root};
use crate::{calibration::file::DEFAULT_PATH, cli::CalibrateFlags, energy::EnergyOptions};

/// Which calibration a run uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CalibrationChoice {
    /// [`DEFAULT_PATH`] if it is there and holds; in a replay, the recording's own.
    #[default]
    Usual,
    None,
    /// This one or an error.
    File(PathBuf),
}

impl CalibrationChoice {
    pub fn of(given: Option<&Path>) -> Self {
        match given {
            None => Self::Usual,
            Some(path) if path.as_os_str() == "none" => Self::None,
            Some(path) => Self::File(path.to_owned()),
        }
    }
}

/// A checked calibration to be made.
#[derive(Clone, Debug)]
pub struct Calibrate {
    pub output: PathBuf,
    /// 6 s to 10 min.
    pub duration: Duration,
    pub energy: EnergyOptions,
    pub json: bool,
    pub proc_root: PathBuf,
}

impl Calibrate {
    /// # Errors
    /// [`ConfigError::Invalid`] and [`ConfigError::Conflict`].
    pub fn resolve(flags: CalibrateFlags) -> Result<Self, ConfigError> {
        let flags = flags.into();
        let places = Places::typed(&flags);
        places.refuse_conflicts(&flags)?;
        let limits = Duration::from_secs(6)..=Duration::from_secs(600);
        let duration = places.time("duration", flags.duration.as_deref(), limits)?;
        Ok(Self {
            duration: duration.unwrap_or(Duration::from_secs(20)),
            energy: places.energy(&flags)?,
            json: flags.json,
            proc_root: proc_root(&flags),
            output: flags.output.unwrap_or_else(|| DEFAULT_PATH.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(change: impl FnOnce(&mut CalibrateFlags)) -> Result<Calibrate, ConfigError> {
        let mut flags = CalibrateFlags::default();
        change(&mut flags);
        Calibrate::resolve(flags)
    }

    #[test]
    fn defaults_complete_a_calibration() {
        let calibrate = resolved(|_| ()).unwrap();
        assert_eq!(calibrate.output, PathBuf::from("/var/lib/joular-bpf/calibration.json"));
        assert_eq!((calibrate.duration, calibrate.json), (Duration::from_secs(20), false));
        assert_eq!(calibrate.energy.choice.name(), "auto");
    }

    #[test]
    fn mistakes_name_the_flag() {
        let message = |change: fn(&mut CalibrateFlags)| resolved(change).unwrap_err().to_string();
        let duration = message(|flags| flags.duration = Some("5s".into()));
        assert_eq!(duration, "--duration: \"5s\" is not between 6s and 600s");
        assert!(message(|flags| flags.source.energy = vec!["rapl".into()]).starts_with("--energy: \"rapl\""));
    }

    #[test]
    fn none_is_a_choice_and_everything_else_a_file() {
        let of = |text| CalibrationChoice::of(Some(Path::new(text)));
        assert_eq!(CalibrationChoice::of(None), CalibrationChoice::Usual);
        assert_eq!(of("none"), CalibrationChoice::None);
        assert_eq!(of("./none"), CalibrationChoice::File("./none".into()));
    }
}
