//! Tries all that the configuration of a service names, for `joular-bpf agent --check --deep`.

use std::{io, path::Path};

use joular_data::{
    dataset::{
        OutputDirectory,
        store::{SharedPlace, Store as _, Trial, try_place},
    },
    output::OutputError,
};

use super::{Failure, metrics};
use crate::{
    calibration::file,
    config::{AgentConfig, CalibrationChoice, Live, Metrics, Ship},
    kernel::{
        counters,
        features::{Check, Verdict},
    },
    output::secret_file::{self, SecretFileError},
    privileges::{self, lent::as_the_user},
};

/// Beside the configuration, with credentials for the unit's environment.
const ENVIRONMENT: &str = "agent.env";

/// A check of each part of the configuration that can fail.
pub fn checks_of_service(service: &AgentConfig, file: &Path) -> Vec<Check> {
    let mut checks: Vec<Check> = counters_of(&service.live).into_iter().collect();
    checks.extend(environment_file(file).map(|found| of("credentials", found)));
    checks.extend(
        as_the_user(|| checks_as_user(service))
            .unwrap_or_else(|error| vec![failed("user", format!("going on as the user who called: {error}"))]),
    );
    checks
}

fn checks_as_user(service: &AgentConfig) -> Vec<Check> {
    let AgentConfig { config, live, .. } = service;
    let calibration = match &config.calibration {
        CalibrationChoice::File(path) => Some(of("calibration", file::read(path).map(|_| path.display().to_string()))),
        _ => None,
    };
    [
        calibration,
        config.output.as_deref().map(data_set),
        config.ship.as_ref().map(shipping),
        live.metrics.as_ref().map(endpoint),
        live.otlp.as_ref().map(collector),
        live.kubernetes.as_ref().map(|source| {
            let found = source.count_pods().map(|pods| format!("{source} lists {pods}"));
            of("pods", found.map_err(|cause| format!("asking {source}: {cause}")))
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether credentials beside a configuration are for their owner alone; `None` if there are none.
pub fn environment_file(configuration: &Path) -> Option<Result<String, String>> {
    let path = configuration.with_file_name(ENVIRONMENT);
    let shown = path.display().to_string();
    match secret_file::open(&path) {
        Ok(_) => Some(Ok(shown)),
        Err(SecretFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(format!("{shown}: {error}"))),
    }
}

fn of<E: std::fmt::Display>(name: &'static str, found: Result<String, E>) -> Check {
    match found {
        Ok(found) => Check::new(name, Verdict::Good, found, None),
        Err(error) => failed(name, error.to_string()),
    }
}

fn failed(name: &'static str, found: String) -> Check {
    Check::new(name, Verdict::Failed, found, None)
}

fn counters_of(live: &Live) -> Option<Check> {
    let asked: Vec<_> = live.counters.iter().map(|counter| counter.name()).collect();
    (!asked.is_empty()).then(|| of("counters asked for", counters::check(&live.counters).map(|()| asked.join(", "))))
}

/// The directory is made if it is not there, as a recording would.
fn data_set(path: &Path) -> Check {
    let name = "data set";
    match OutputDirectory::create(path, privileges::invoking_user()) {
        Ok(directory) => {
            let room = directory.store().room();
            let free = room.map(|room| format!(", {} MiB are free", room.free_bytes >> 20)).unwrap_or_default();
            Check::new(name, Verdict::Good, format!("{} can be written{free}", path.display()), None)
        }
        Err(OutputError::InUse { .. }) => {
            Check::new(name, Verdict::Good, format!("{} is being written by a recording", path.display()), None)
        }
        Err(error) => failed(name, error.to_string()),
    }
}

fn shipping(ship: &Ship) -> Check {
    let name = "shipping";
    let place = SharedPlace::of(ship.to.as_ref(), privileges::invoking_user());
    let Trial { keeps_what_is_there, unread, unremoved } =
        match place.and_then(|place| place.open()).and_then(|place| try_place(place.as_ref(), !ship.looks_first)) {
            Ok(trial) => trial,
            Err(error) => return failed(name, error.to_string()),
        };
    let to = &ship.to;
    if !keeps_what_is_there && !ship.looks_first {
        let found = format!("{to} can be written, but it replaces a file that is there");
        let advice = "two hosts that ship at once may replace each other's files: use a store with conditional writes, or set \
                      ship-look-first";
        return Check::new(name, Verdict::Failed, found, Some(advice));
    }
    let lacks = [unread.map(|cause| format!("read: {cause}")), unremoved.map(|cause| format!("removed: {cause}"))];
    let lacks: Vec<String> = lacks.into_iter().flatten().collect();
    if lacks.is_empty() {
        let kept = if ship.looks_first { "" } else { " not replaced," };
        let found = format!("{to}: a small file was written,{kept} read and removed");
        return Check::new(name, Verdict::Good, found, None);
    }
    let found = format!("{to} can be written. The small file cannot be {}", lacks.join("; nor "));
    Check::new(name, Verdict::Limited, found, Some("shipping only writes; remove .partial/check-… there by hand"))
}

fn endpoint(metrics: &Metrics) -> Check {
    let name = "metrics";
    let Metrics { address, .. } = metrics;
    match metrics::listen(metrics) {
        Ok(_) => {
            let secrets = [("token", metrics.token.is_some()), ("certificate", metrics.tls.is_some())];
            let read: Vec<&str> = secrets.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect();
            let with = if read.is_empty() { String::new() } else { format!(", with {}", read.join(" and ")) };
            Check::new(name, Verdict::Good, format!("{address} can be served{with}"), None)
        }
        Err(Failure::Metrics { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            Check::new(name, Verdict::Limited, format!("{address} is in use"), Some("by a service that runs already?"))
        }
        Err(error) => failed(name, error.to_string()),
    }
}

fn collector(otlp: &crate::config::Otlp) -> Check {
    let pushed = metrics::collector(otlp).map_err(|error| error.to_string()).and_then(|collector| {
        collector
            .try_push()
            .map(|()| format!("{} takes metrics", otlp.url))
            .map_err(|cause| format!("pushing to {}: {cause}", otlp.url))
    });
    of("OpenTelemetry", pushed)
}
