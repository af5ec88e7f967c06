//! Resolves from flags how energy is divided.

use joular_data::model::policy::PolicyChoices;

use super::{ConfigError, Places};
use crate::{cli::Flags, energy::watts};

/// Most that a socket draws when idle, in watts.
const MOST_IDLE_WATTS: f64 = 10_000.0;

/// The policy of flags, without the rest; for `reattribute`.
///
/// # Errors
/// [`ConfigError::Invalid`].
pub fn policy_choices(flags: Flags) -> Result<PolicyChoices, ConfigError> {
    Places { file: None, typed: flags.clone() }.policy(&flags)
}

impl Places {
    pub(super) fn policy(&self, flags: &Flags) -> Result<PolicyChoices, ConfigError> {
        Ok(PolicyChoices {
            idle: flags.idle.as_deref().map(|text| self.parse("idle", text)).transpose()?,
            idle_milliwatts: self.idle_milliwatts(flags.idle_watts)?,
            smt_permille: self.smt_permille(flags.smt_ratio)?,
            ..PolicyChoices::default()
        })
    }

    fn smt_permille(&self, given: Option<f64>) -> Result<Option<u32>, ConfigError> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1000 to 2000 after the range check"
        )]
        let permille = |ratio: f64| (1.0..=2.0).contains(&ratio).then(|| (ratio * 1000.0).round() as u32);
        given
            .map(|ratio| {
                permille(ratio).ok_or_else(|| self.invalid("smt-ratio", format!("{ratio} is not between 1 and 2")))
            })
            .transpose()
    }

    fn idle_milliwatts(&self, given: Option<f64>) -> Result<Option<u64>, ConfigError> {
        let Some(given) = given else { return Ok(None) };
        match watts::microwatts(given).filter(|_| given <= MOST_IDLE_WATTS) {
            Some(microwatts) => Ok(Some(microwatts / 1000)),
            None => Err(self.invalid("idle-watts", format!("{given} is not between 0 and {MOST_IDLE_WATTS} watts"))),
        }
    }
}
