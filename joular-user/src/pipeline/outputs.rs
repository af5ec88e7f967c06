//! Opens what takes a run's results: the data set, with what ships its runs, and the screen.

use std::{io, sync::Arc};

use joular_data::{
    dataset::{
        OutputDirectory, ParquetOutput,
        column::Table as _,
        store::{Claim, LocalDirectory, Ring, SharedPlace, Store},
        tables::Runs,
        write::{Rotated, Unwritten},
    },
    output::Output,
    redact::Redaction,
    shipping::{Shipper, Spool},
    text::count,
};

use super::Failure;
use crate::{
    config::{self, Config, Retention, duration::nanoseconds},
    messages,
    output::{FaultNotices, JsonOutput, Screen, ScreenOutput},
    privileges,
};

/// The outputs of a run, and what ships its runs, with the name of the place.
pub struct Outputs {
    pub outputs: Vec<Box<dyn Output>>,
    pub shipper: Option<(Shipper, String)>,
}

impl Outputs {
    /// The outputs that the configuration asks for. The data set comes first: if it cannot be written,
    /// no other output shows the window. With `unwritten`, which then counts windows, all go on without it.
    pub fn open(config: &Config, unwritten: Option<&Unwritten>) -> Result<Self, Failure> {
        let (mut outputs, mut shipper): (Vec<Box<dyn Output>>, _) = (Vec::new(), None);
        if let Some(path) = &config.output {
            let create = if unwritten.is_some() { OutputDirectory::create_lasting } else { OutputDirectory::create };
            let (directory, claim) = create(path, privileges::invoking_user())?.into_parts();
            if let Some(ship) = &config.ship {
                shipper = Some((shipper_of(&directory, ship, &config.redaction)?, ship.to.clone()));
            }
            if unwritten.is_none() {
                say_what_is_there(&directory);
            }
            let spool = shipper.as_ref().map(|(shipper, _)| shipper.spool());
            outputs.push(data_set(directory, claim, spool, unwritten, config));
        }
        outputs.push(Box::new(FaultNotices::new(messages::warn)));
        match config.screen {
            config::Screen::Table => {
                let (screen, top) = (Screen::of(io::stdout()), Some(config.top));
                let screen = ScreenOutput::new(io::stdout(), screen, top, config.output.clone());
                outputs.push(Box::new(if config.no_infer { screen.without_inference() } else { screen }));
            }
            config::Screen::Summary => {
                let screen = ScreenOutput::new(io::stderr(), Screen::of(io::stderr()), None, config.output.clone());
                outputs.push(Box::new(if config.no_infer { screen.without_inference() } else { screen }));
            }
            config::Screen::Json if config.is_beside_command => {
                let json = JsonOutput::new(io::stderr());
                outputs.push(Box::new(if config.no_infer { json.without_inference() } else { json }));
            }
            config::Screen::Json => {
                let json = JsonOutput::new(io::stdout());
                outputs.push(Box::new(if config.no_infer { json.without_inference() } else { json }));
            }
            config::Screen::Quiet => {}
        }
        Ok(Self { outputs, shipper })
    }
}

/// Others sum all runs of a data set, which may not be what is expected of a new recording.
fn say_what_is_there(directory: &LocalDirectory) {
    let earlier = directory.list(Runs::NAME, usize::MAX).map_or(0, |runs| runs.len());
    if earlier > 0 {
        let (path, runs) = (directory.path().display(), count(earlier, "earlier run"));
        messages::info(&format!("{path} has {runs}: reports sum all; --run last shows this recording alone"));
    }
}

/// Where the data set goes. Runs that are shipped stay until they have arrived, unless they are beyond the limits.
fn data_set(
    directory: LocalDirectory,
    claim: Claim,
    spool: Option<Spool>,
    unwritten: Option<&Unwritten>,
    config: &Config,
) -> Box<dyn Output> {
    let store: Box<dyn Store> = match config.retention {
        Retention { limits, .. } if config.retention.is_limited() => {
            let ring = Ring::new(Arc::new(directory), limits, messages::warn);
            Box::new(match spool {
                Some(spool) => {
                    let told = spool.clone();
                    ring.sparing(move |run| !spool.has_arrived(run))
                        .announcing(move |run, has_windows| told.removing(run, has_windows))
                }
                None => ring,
            })
        }
        _ => Box::new(directory),
    };
    let output = ParquetOutput::into_store(store, claim, nanoseconds(config.flush));
    match (config.retention.rotate_ns, unwritten) {
        (Some(rotate_ns), Some(unwritten)) => {
            Box::new(Rotated::new(output, rotate_ns).lasting(unwritten.clone(), messages::warn))
        }
        (Some(rotate_ns), None) => Box::new(Rotated::new(output, rotate_ns)),
        (None, _) => Box::new(output),
    }
}

/// What ships the runs of this data set, whose first run has not begun.
fn shipper_of(directory: &LocalDirectory, ship: &config::Ship, redaction: &Redaction) -> Result<Shipper, Failure> {
    let options = ship.options(directory.path().to_owned(), redaction.clone());
    let to = SharedPlace::of(ship.to.as_ref(), privileges::invoking_user())?;
    Ok(Shipper::before_recording(Arc::new(directory.clone()), to, options)?)
}
