//! Resolves which energy sources are read, and with what.

use std::str::FromStr;

use super::{ConfigError, Places, proc_root};
use crate::{
    cli::Flags,
    energy::{
        EnergyChoice, EnergyOptions,
        devices::FiguresError,
        model::VcpuPower,
        powercap,
        tdp::{self, States, TdpOptions},
    },
    privileges::lent,
};

/// The energy options of flags, without the rest; for `doctor` and `sources`.
///
/// # Errors
/// [`ConfigError::Invalid`] and [`ConfigError::Conflict`].
pub fn energy_options(flags: Flags) -> Result<EnergyOptions, ConfigError> {
    let places = Places::typed(&flags);
    places.refuse_conflicts(&flags)?;
    places.energy(&flags)
}

impl Places {
    pub(super) fn energy(&self, flags: &Flags) -> Result<EnergyOptions, ConfigError> {
        if lent::are_lent() {
            self.refuse_roots(flags)?;
        }
        let choice = match energy_text(flags) {
            Some(text) => self.parse("energy", &text)?,
            None => EnergyChoice::Auto,
        };
        let model_watts: Option<VcpuPower> =
            flags.model_watts.as_deref().map(|text| self.parse("model-watts", text)).transpose()?;
        Ok(EnergyOptions {
            powercap_root: flags.powercap_root.clone().unwrap_or_else(|| powercap::DEFAULT_ROOT.into()),
            file: flags.energy_file.clone().filter(|_| choice.reads_file()),
            choice,
            sys_root: flags.sys_root.clone().unwrap_or_else(|| "/sys".into()),
            proc_root: proc_root(flags),
            dev_root: "/dev".into(),
            board_models: flags.board_models.clone(),
            model_watts,
            tdp: self.tdp(flags)?,
            nic: flags.nic.as_deref().map(|text| self.figures("nic", text)).transpose()?,
            disk: flags.disk.as_deref().map(|text| self.figures("disk", text)).transpose()?,
        })
    }

    /// What is read below a root is read with rights that its user may not have.
    fn refuse_roots(&self, flags: &Flags) -> Result<(), ConfigError> {
        match flags.first_of(&["powercap-root", "proc-root", "cpu-root", "sys-root"]) {
            Some(name) => {
                let cause = "this copy of joular-bpf has rights that you do not have: leave it out, or run as root";
                Err(self.invalid(name, cause))
            }
            None => Ok(()),
        }
    }

    fn figures<T: FromStr<Err = FiguresError>>(&self, flag: &'static str, text: &str) -> Result<T, ConfigError> {
        text.parse().map_err(|cause: FiguresError| self.invalid(flag, cause.to_string()))
    }

    fn tdp(&self, flags: &Flags) -> Result<Option<TdpOptions>, ConfigError> {
        if flags.tdp.is_none() && flags.tdp_states.is_none() {
            return Ok(None);
        }
        let watts = |text: &str| {
            tdp::parse_tdp(text).map_err(|cause| self.invalid("tdp", format!("\"{}\": {cause}", text.escape_debug())))
        };
        let states: Option<States> =
            flags.tdp_states.as_deref().map(|text| self.parse("tdp-states", text)).transpose()?;
        let tdp_uw = flags.tdp.as_deref().map(watts).transpose()?;
        Ok(Some(TdpOptions { tdp_uw, states: states.unwrap_or_default() }))
    }
}

/// Listed or repeated, it is one list.
pub(super) fn energy_text(flags: &Flags) -> Option<String> {
    (!flags.energy.is_empty()).then(|| flags.energy.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_root_is_refused_where_rights_are_lent() {
        type Set = fn(&mut Flags);
        let roots: [(&str, Set); 4] = [
            ("--powercap-root", |flags| flags.powercap_root = Some("/x".into())),
            ("--proc-root", |flags| flags.proc_root = Some("/x".into())),
            ("--cpu-root", |flags| flags.cpu_root = Some("/x".into())),
            ("--sys-root", |flags| flags.sys_root = Some("/x".into())),
        ];
        for (name, set) in roots {
            let mut flags = Flags::default();
            assert!(Places::typed(&flags).refuse_roots(&flags).is_ok());
            set(&mut flags);
            let error = Places::typed(&flags).refuse_roots(&flags).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains("run as root"), "{error}");
        }
    }
}
