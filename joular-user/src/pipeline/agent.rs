//! Records as a service: until it is stopped, and with a new configuration whenever there is one.
//!
//! Other rules for the names of services hold from the next window on. Anything else that is new ends the recording and
//! begins another one, with a gap of about a second between their windows. A configuration that is wrong changes
//! nothing: what it needs is opened before the old recording ends, as far as two recordings can have it, and if the new
//! recording still does not begin, the old configuration is used again.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
};

use super::{Failure, Recorded, Until, record_with, trial};
use crate::{
    agent::service,
    cli::Exit,
    config::{AgentConfig, ConfigError},
    messages,
    privileges::lent::as_the_user,
    shutdown::{Reload, StopReason},
};

/// Reads the configuration.
pub type Load = Rc<dyn Fn() -> Result<AgentConfig, ConfigError>>;

/// A recording of a service.
pub struct Service {
    /// At SIGHUP.
    pub reload: Reload,
    /// Becomes true when windows begin.
    pub has_begun: Rc<Cell<bool>>,
}

/// Records until stopped. At SIGHUP, `load` is asked for the configuration to go on with.
///
/// # Errors
/// As those of a recording, unless there is an older configuration to go on with.
pub fn serve(mut config: AgentConfig, load: &Load) -> Result<Exit, Failure> {
    let mut before = None;
    loop {
        let reloads = Rc::new(RefCell::new(Reloads { config: config.clone(), next: None }));
        let has_begun = Rc::default();
        let service = Service { reload: reload(load, &reloads), has_begun: Rc::clone(&has_begun) };
        let recorded = record_with(&config.config, &config.live, Until::Reloaded(service));
        match (recorded, before.take()) {
            (Err(error), Some(before)) if !has_begun.get() => {
                messages::error(&format!("going on with the old configuration: {error}"));
                config = before;
                messages::redact_by(&config.config.redaction);
            }
            (recorded, _) => {
                let Recorded { reason, .. } = recorded?;
                let Reloads { config: now, next } = reloads.replace(Reloads { config: config.clone(), next: None });
                match next.filter(|_| reason == StopReason::Reload) {
                    Some(next) => (before, config) = (Some(now), next),
                    None => return Ok(Exit::Success),
                }
            }
        }
    }
}

/// What a recording has, and what comes next.
struct Reloads {
    config: AgentConfig,
    next: Option<AgentConfig>,
}

/// Reads the configuration again. Returns whether the recording is to end, so that the next one begins with it.
fn reload(load: &Load, reloads: &Rc<RefCell<Reloads>>) -> Reload {
    let (load, reloads) = (Rc::clone(load), Rc::clone(reloads));
    Box::new(move || {
        service::reloading();
        let mut reloads = reloads.borrow_mut();
        let refused = |error: &dyn std::fmt::Display| {
            messages::error(&format!("going on with the old configuration: {error}"));
            service::ready();
            false
        };
        let next = match read(&load) {
            Ok(next) => next,
            Err(error) => return refused(&error),
        };
        if reloads.config.differs_in_rules_only(&next) {
            reloads.config.take_rules_of(next);
            messages::info("going on with the new rules for the names of services");
            service::ready();
            return false;
        }
        if let Err(error) = trial::try_beside(&reloads.config, &next) {
            return refused(&error);
        }
        messages::redact_by(&next.config.redaction);
        messages::info("recording again, with the new configuration");
        reloads.next = Some(next);
        true
    })
}

fn read(load: &Load) -> Result<AgentConfig, ConfigError> {
    let unread = |error: io::Error| ConfigError::Plain { cause: format!("reading it as its user: {error}") };
    as_the_user(|| load()).map_err(unread)?
}
