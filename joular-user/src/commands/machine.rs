//! Commands about this machine: recording, and what goes before it.

use std::io;

use super::unwritten;
use crate::{
    cli::{CalibrateFlags, DoctorFlags, Exit, Flags},
    config::{self, Calibrate, Config},
    doctor, pipeline, sources,
};

pub(super) fn record(flags: Flags) -> anyhow::Result<Exit> {
    Ok(pipeline::run(&Config::load(flags)?)?)
}

pub(super) fn check(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let proc_root = flags.source.proc_root.clone().unwrap_or_else(|| "/proc".into());
    let options = config::energy_options(flags.into())?;
    doctor::run(&mut io::stdout().lock(), &proc_root, &options, json).map_err(unwritten("the checks"))
}

pub(super) fn list(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let options = config::energy_options(flags.into())?;
    sources::run(&mut io::stdout().lock(), &options, json).map_err(unwritten("the sources"))
}

pub(super) fn calibrate(flags: CalibrateFlags) -> anyhow::Result<Exit> {
    Ok(pipeline::calibrate(&Calibrate::resolve(flags)?, &mut io::stdout().lock())?)
}
