//! Runs commands about a place that hosts ship to. None of them needs privileges.

use std::{
    env,
    io::{self, Write as _},
    num::NonZeroU32,
    thread,
};

use jiff::Timestamp;
use joular_data::{
    dataset::{
        bundle::{self, Init},
        expire,
        store::{self, SharedPlace},
    },
    fleet::{self, Order, Subject},
    model::units::UnixMicros,
    shipping::{self, Shipper},
    text::count,
};

use super::{unless_closed, unwritten};
use crate::{
    cli::{CompactFlags, EraseFlags, Exit, ExpireFlags, RedactFlags, ShipFlags},
    config::{self, ConfigError},
    messages, privileges,
    progress::Progress,
};

/// Says once at a place in how many groups its hosts are.
fn init_place(flags: &ShipFlags, hosts: NonZeroU32) -> anyhow::Result<Exit> {
    let place = SharedPlace::of(&flags.data, privileges::invoking_user())?.open()?;
    let made = bundle::init(&place, hosts, now())?;
    let mut out = io::stdout().lock();
    let said = if flags.json {
        serde_json::to_writer(&mut out, &made).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        let Init { path, groups, since } = &made;
        let groups = count(u64::from(*groups), "group");
        writeln!(out, "{}: {groups} of hosts, for runs from {since} on", path.display())
    };
    unless_closed(said).map_err(unwritten("what was done"))?;
    Ok(Exit::Success)
}

pub(super) fn ship(flags: &ShipFlags) -> anyhow::Result<Exit> {
    if let Some(hosts) = flags.hosts {
        return init_place(flags, hosts);
    }
    let ship = config::ship_once(flags)?;
    // Of a run in a bucket nobody knows whether it is still arriving.
    store::refuse_bucket("shipping", &flags.data)?;
    store::refuse_experiment("shipping", &flags.data)?;
    let to = SharedPlace::of(ship.to.as_ref(), privileges::invoking_user())?;
    if ship.looks_first {
        messages::info(shipping::LOOKS_FIRST);
    }
    let options = ship.options(env::temp_dir(), config::redaction(&flags.command_line)?);
    let (passed, result) = Shipper::of_recorded(store::open(&flags.data)?, to, options)?.pass(&mut |wait| {
        thread::sleep(wait);
        false
    });
    passed.problems.iter().for_each(|problem| messages::warn(problem));
    let said = passed.say(flags.json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("what was done"))?;
    result?;
    Ok(if passed.waiting_runs > 0 { Exit::Failure } else { Exit::Success })
}

/// Sums by service what hosts have shipped.
pub(super) fn compact(flags: &CompactFlags, place: &SharedPlace) -> anyhow::Result<Exit> {
    let refused = |flag: &str| ConfigError::Invalid {
        place: flag.to_owned(),
        cause: "it is for data sets of one host, and not for a place that hosts ship to".to_owned(),
    };
    if flags.output.is_some() {
        return Err(refused("--output").into());
    }
    if flags.redaction != RedactFlags::default() {
        return Err(refused("--redact").into());
    }
    let now = now();
    let micros = |time: Timestamp| UnixMicros(time.as_microsecond());
    let end = flags.until.map_or(now, |until| now.min(micros(until)));
    let span = flags
        .since
        .map_or_else(|| fleet::Span::of_hours(flags.hours, now), |since| fleet::Span { begin: micros(since), end });
    let progress = Progress::waiting("summing what hosts shipped");
    let done = fleet::compact(place, &span, &env::temp_dir(), now)?;
    drop(progress);
    done.left_out().for_each(|source| messages::warn(&format!("left out: {source}")));
    unless_closed(done.say(flags.json, &mut io::stdout().lock())).map_err(unwritten("what was done"))?;
    Ok(Exit::Success)
}

pub(super) fn expire(flags: &ExpireFlags) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let said = if flags.lifecycle {
        writeln!(out, "{:#}", store::lifecycle(flags.place.as_ref(), flags.keep_days)?)
    } else {
        let place = SharedPlace::of(flags.place.as_ref(), None)?;
        let progress = Progress::waiting("removing old runs");
        let done = expire::run(&place, flags.keep_days, now(), flags.dry_run)?;
        drop(progress);
        done.say(flags.json, &mut out)
    };
    unless_closed(said).map_err(unwritten("what was done"))?;
    Ok(Exit::Success)
}

/// Erases a service, a pod or a host.
pub(super) fn erase(flags: &EraseFlags) -> anyhow::Result<Exit> {
    let EraseFlags { of_service, of_pod, of_host, before, .. } = flags;
    let service = of_service.clone().map(Subject::Service);
    let subject = service.or(of_pod.clone().map(Subject::Pod)).or(of_host.clone().map(Subject::Host));
    let order = Order {
        subject,
        before: before.map(|before| UnixMicros(before.as_microsecond())),
        records_anyway: flags.record,
        is_trial: flags.dry_run,
    };
    let place = SharedPlace::of(flags.place.as_ref(), privileges::invoking_user())?;
    let progress = Progress::waiting("erasing");
    let done = fleet::erase(&place, &order, &env::temp_dir(), now())?;
    drop(progress);
    done.left_out.iter().for_each(|file| messages::warn(&format!("left as it is: {file}")));
    unless_closed(done.say(flags.json, &mut io::stdout().lock())).map_err(unwritten("what was done"))?;
    Ok(if done.is_incomplete() { Exit::Failure } else { Exit::Success })
}

fn now() -> UnixMicros {
    UnixMicros(Timestamp::now().as_microsecond())
}
