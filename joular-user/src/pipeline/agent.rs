//! Records as a service: until it is stopped, and with a new configuration whenever there is one.
//!
//! A new configuration ends the recording and begins another one, with a gap of about a second between their
//! windows. A configuration that is wrong changes nothing.

use std::{cell::RefCell, io, rc::Rc};

use super::{Failure, Recorded, Until, record_with, replay};
use crate::{
    agent::service,
    cli::Exit,
    config::{Config, ConfigError, Input},
    messages,
    privileges::lent::as_the_user,
    shutdown::{Reload, StopReason},
};

/// Reads the configuration.
pub type Load = Rc<dyn Fn() -> Result<Config, ConfigError>>;

/// Records until stopped. At SIGHUP, `load` is asked for the configuration to go on with.
///
/// # Errors
/// As those of a recording.
pub fn serve(mut config: Config, load: &Load) -> Result<Exit, Failure> {
    loop {
        let live = match &config.input {
            Input::Live(live) => live,
            Input::Replay(recording) => return replay(&config, recording),
        };
        let next = Rc::new(RefCell::new(None));
        let Recorded { reason, .. } = record_with(&config, live, Until::Reloaded(reload(load, &next)))?;
        match next.take().filter(|_| reason == StopReason::Reload) {
            Some(reloaded) => config = reloaded,
            None => return Ok(Exit::Success),
        }
    }
}

/// Reads the configuration again, and notes it as the next one if it is right.
fn reload(load: &Load, next: &Rc<RefCell<Option<Config>>>) -> Reload {
    let (load, next) = (Rc::clone(load), Rc::clone(next));
    Box::new(move || {
        service::reloading();
        let unread = |error: io::Error| ConfigError::Plain { cause: format!("reading it as its user: {error}") };
        match as_the_user(|| load()).map_err(unread).and_then(|loaded| loaded) {
            Ok(config) => {
                messages::redact_by(&config.redaction);
                messages::info("recording again, with the new configuration");
                *next.borrow_mut() = Some(config);
                true
            }
            Err(error) => {
                messages::error(&format!("going on with the old configuration: {error}"));
                service::ready();
                false
            }
        }
    })
}
