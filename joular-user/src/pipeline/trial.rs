//! Tries what a recording opens while another one goes on, so that a mistake in a new configuration ends nothing.
//!
//! Two recordings cannot have all of it at once: an address that is listened at and a data set that is written stay
//! with the one that goes on. If the new recording fails there, or later, [`super::serve`] goes back to the old one.

use joular_data::dataset::{OutputDirectory, store::SharedPlace};

use super::{Failure, metrics};
use crate::{
    calibration::{CalibrationError, file},
    config::{AgentConfig, CalibrationChoice},
    energy,
    kernel::counters,
    privileges::{self, lent::as_the_user},
};

/// Opens what `new` needs and `old` does not have, and closes it again.
pub fn try_beside(old: &AgentConfig, new: &AgentConfig) -> Result<(), Failure> {
    counters::check(&new.live.counters)?;
    energy::select(&new.live.energy)?;
    as_the_user(|| files_and_sockets(old, new)).map_err(super::unprivileged)?
}

fn files_and_sockets(old: &AgentConfig, new: &AgentConfig) -> Result<(), Failure> {
    if let Some(server) = &new.live.metrics {
        let is_listening = old.live.metrics.as_ref().is_some_and(|old| old.address == server.address);
        match is_listening {
            true => drop(metrics::secrets(server)?),
            false => drop(metrics::listen(server)?),
        }
    }
    new.live.otlp.as_ref().map(metrics::collector).transpose()?;
    if let Some(path) = new.config.output.as_ref().filter(|path| Some(*path) != old.config.output.as_ref()) {
        OutputDirectory::create_lasting(path, privileges::invoking_user())?;
    }
    if let Some(ship) = &new.config.ship {
        SharedPlace::of(ship.to.as_ref(), privileges::invoking_user())?;
    }
    if let CalibrationChoice::File(path) = &new.config.calibration {
        file::read(path).map_err(CalibrationError::from)?;
    }
    Ok(())
}
