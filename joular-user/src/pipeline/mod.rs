//! Takes a run from its configuration to its exit code.
//!
//! [`live`] makes events from the running system, [`mod@replay`] reads them from a file; both feed
//! a [`consumer::Consumer`]. This file opens what a run needs in the order in which it can fail:
//! what was asked for and the output first, kernel last.

mod agent;
mod calibration;
mod command;
mod consumer;
mod core_types;
mod deep;
mod failure;
mod held;
pub mod host;
mod identity;
mod live;
mod metrics;
mod outputs;
mod recording_file;
mod replay;
mod sampler;
mod stack_age;
mod symbol_feed;
mod told;
mod top;
mod trial;
mod wake;
mod weights;

use std::{fs::File, io, path::Path, rc::Rc, time::Duration};

use joular_data::{
    dataset::write::Unwritten,
    events::{Event, HostIdentity, RunEnd, RunInfo},
    model::{
        cores,
        domain::Domain,
        policy::{Calibrated, Policy, PolicyChoices},
        units::Pid,
    },
};

pub use self::{
    agent::{Load, serve},
    calibration::calibrate,
    command::{measure, measure_run},
    deep::{checks_of_service, environment_file},
    failure::Failure,
    replay::policy_again,
    top::show,
};
use self::{
    consumer::Consumer,
    host::Host,
    live::{Live, Marks, Schedule},
    outputs::Outputs,
};
use crate::{
    agent::{Heartbeat, Progress, ServiceState, Shipping, service},
    cli::Exit,
    clock,
    config::{self, Config, Input, duration::nanoseconds},
    context::{ContextReader, Roots},
    energy::{self, EnergySource, Selected, watch},
    experiment, heap,
    kernel::{LoadOptions, Loaded, Programs, counters, cpus::CPU_ROOT},
    messages,
    output::GuestPower,
    privileges::{
        self,
        lent::{self, as_the_user},
    },
    procs::{
        kubernetes::{Pods, Say},
        limits,
        proc_files::ProcFiles,
        registry::Registry,
        selection::Selection,
    },
    shutdown::{Shutdown, StopReason},
    symbols::{Symbolizer, SymbolizerOptions},
    unwind::Publisher,
};

/// Runs what the configuration says.
pub fn run(config: &Config) -> Result<Exit, Failure> {
    match &config.input {
        Input::Live(live) => Ok(exit_of(&record_with(config, live, Until::Stopped)?, live)),
        Input::Replay(recording) => replay(config, recording),
    }
}

fn exit_of(recorded: &Recorded, live: &config::Live) -> Exit {
    if recorded.has_matched {
        return Exit::Success;
    }
    let advice = "check with `ps -eo pid,comm`";
    messages::warn(&format!("no process matched {} during the run: {advice}", live.selection));
    Exit::NothingMatched
}

/// How a recording came to its end.
struct Recorded {
    reason: StopReason,
    /// Whether any process was a target.
    has_matched: bool,
}

/// What ends a recording, beside its duration.
enum Until {
    /// A signal.
    Stopped,
    /// A signal, or for a service a new configuration.
    Reloaded(agent::Service),
    /// The end of a command.
    Command(Box<command::Command>),
    /// A signal, or that who watches it has left.
    Left(top::Watched),
}

/// Records in an event loop.
fn record_with(config: &Config, options: &config::Live, until: Until) -> Result<Recorded, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::Start { what: "the event loop", source })?;
    runtime.block_on(record(config, options, until))
}

fn unprivileged(source: io::Error) -> Failure {
    Failure::Start { what: "the use of its rights", source }
}

async fn record(config: &Config, options: &config::Live, until: Until) -> Result<Recorded, Failure> {
    let unheard = |source| Failure::Start { what: "signal handling", source };
    let listen = || Shutdown::listen(Exit::Interrupted.code());
    let has_begun = match &until {
        Until::Reloaded(service) => Some(Rc::clone(&service.has_begun)),
        Until::Stopped | Until::Command(_) | Until::Left(_) => None,
    };
    let is_service = has_begun.is_some();
    let (start, marks, totals, mut shutdown) = match until {
        Until::Stopped => (None, Marks::none(), None, listen().map_err(unheard)?),
        Until::Reloaded(agent::Service { reload, .. }) => {
            (None, Marks::none(), None, listen().and_then(|signals| signals.reload_by(reload)).map_err(unheard)?)
        }
        Until::Command(command) => {
            let command::Parts { start, arriving, shutdown, totals } = command.parts().map_err(unheard)?;
            (Some(start), Marks::of(arriving), totals, shutdown)
        }
        Until::Left(top::Watched { view, left }) => {
            (None, Marks::none(), Some(view), listen().map(|signals| signals.or_when(left)).map_err(unheard)?)
        }
    };
    lent::take_up().map_err(unprivileged)?;
    limits::raise_open_files();
    heap::keep_small();
    // Before the verifier's half a second, which would take many where all CPUs are busy.
    privileges::raise_priority();
    let proc_files = ProcFiles::new(&config.proc_root).with_rules(options.service_rules.clone());
    match options.selection.absent(&proc_files) {
        Some(absent) if absent.is_all => return Err(Failure::Absent(absent)),
        Some(absent) => messages::warn(&format!("{absent}: recording the others")),
        None => {}
    }
    counters::check(&options.counters)?;
    let mut selected = energy::select(&options.energy)?;
    let domains = watched_domains(selected.source.as_mut(), options);
    let unwritten = is_service.then(Unwritten::default);
    let Outputs { mut outputs, shipper } =
        as_the_user(|| Outputs::open(config, unwritten.as_ref())).map_err(unprivileged)??;
    let progress = shipper.is_some().then(Progress::default);
    let service = ServiceState { unwritten, progress: progress.clone() };
    outputs.extend(as_the_user(|| metrics::outputs(options, &service)).map_err(unprivileged)??);
    outputs.extend(totals);
    if let Some(directory) = &options.guest_power {
        outputs.push(Box::new(GuestPower::new(directory.clone(), messages::warn)));
    }
    let recorder =
        as_the_user(|| options.record.as_deref().map(recording_file::open).transpose()).map_err(unprivileged)??;
    let cpu_root = config.cpu_root.as_deref().unwrap_or(Path::new(CPU_ROOT));
    let per_core = selected.source.domains().iter().any(|domain| domain.core.is_some());
    let load = LoadOptions {
        sampler: sampler::chosen(options.sampler, messages::warn)?,
        frequency_hz: options.frequency,
        interval_ns: nanoseconds(options.interval),
        all_targets: options.selection.is_all(),
        told: told::by(&options.selection),
        log: options.kernel_log,
        cpu_root: cpu_root.into(),
        cycles: weights::counted(options.weights, cpu_root),
        counters: options.counters.clone(),
        allocations: options.allocations,
        io: options.io,
        per_core,
    };
    let Loaded { programs, banks, ring, unwind_maps } = sampler::load(options.sampler, load, messages::warn)?;
    if let Err(error) = privileges::drop_unneeded(programs.probes_need_sys_admin()) {
        messages::warn(&format!("all privileges are kept, because dropping those not needed failed: {error}"));
    }
    // Threads keep what was dropped before they were there.
    let shipping = shipper.zip(progress);
    if config.ship.as_ref().is_some_and(|ship| ship.looks_first) {
        messages::info(joular_data::shipping::LOOKS_FIRST);
    }
    let start_shipping = |((shipper, to), progress)| Shipping::start(shipper, to, progress);
    let shipping = as_the_user(|| shipping.map(start_shipping).transpose()).map_err(unprivileged)?;
    let shipping = shipping.map_err(|source| Failure::Start { what: "the thread that ships", source })?;
    if is_service {
        outputs.push(Box::new(Heartbeat::new(service)));
    }
    let proc_files = match &options.kubernetes {
        Some(source) => {
            let say = Say { info: messages::info, warn: messages::warn };
            let pods = as_the_user(|| Pods::watch(source.clone(), say)).map_err(unprivileged)?;
            proc_files
                .with_pods(pods.map_err(|source| Failure::Start { what: "the thread that asks for pods", source })?)
        }
        None => proc_files,
    };
    let host = Host::read(&config.proc_root, cpu_root);
    let roots = Roots { cpu: cpu_root, sys: &options.energy.sys_root, proc: &config.proc_root };
    let now = calibration::fingerprint_of(roots, &host, selected.source.as_ref(), programs.event_name());
    let calibrated = as_the_user(|| calibration::for_run(&config.calibration, &now)).map_err(unprivileged)??;
    let found = as_the_user(|| core_types::for_run(cpu_root, per_core, &config.calibration, &now));
    let found = found.map_err(unprivileged)?;
    if let Some(warning) = cores::warning(&found.types) {
        messages::warn(&warning);
    }
    let mut info = run_info(config, options, &selected, domains, &programs, host, calibrated);
    info.policy.smt_permille = config.policy.smt_permille.or(found.smt_permille).unwrap_or(info.policy.smt_permille);
    core_types::divide(&mut info, &found.types, options.memory_by);
    let mut consumer = Consumer::new(outputs, recorder, config.redaction.clone());
    consumer.take(&Event::RunStarted(Box::new(info)))?;
    let mut live = Live {
        programs,
        banks,
        ring,
        registry: Registry::new(proc_files, options.selection.clone()),
        symbolizer: Symbolizer::new(&config.proc_root, SymbolizerOptions::default()),
        unwind: Publisher::new(unwind_maps),
        source: selected.source,
        context: ContextReader::new(roots),
        notify: Box::new(messages::warn),
    };
    let ends_with_targets = options.selection.is_of_pids() && !is_service;
    let schedule = Schedule { interval: options.interval, duration: options.duration, ends_with_targets };
    let ready = |targets: usize| {
        match start {
            Some(start) => start.now(),
            None => announce(targets, &options.selection, &selected.reason),
        }
        if let Some(has_begun) = has_begun {
            has_begun.set(true);
            service::ready();
        }
    };
    let outcome = live.record(&mut consumer, schedule, marks, &mut shutdown, ready).await;
    match outcome {
        Ok(StopReason::Interrupt) => messages::info("stopping: the last windows are being written"),
        Ok(StopReason::Targets) => messages::info("the recording ends: no process of --pid is left"),
        _ => {}
    }
    // Whatever failed, what still works is brought to its end.
    let ended = end(&mut consumer, *outcome.as_ref().unwrap_or(&StopReason::Failure));
    let finished = consumer.finish();
    shutdown.all_is_written();
    match (shipping, &outcome) {
        (Some(shipping), Ok(StopReason::Reload)) => shipping.hand_over(),
        (Some(shipping), _) => shipping.end(config.ship.as_ref().map_or(Duration::ZERO, |ship| ship.at_end)),
        (None, _) => {}
    }
    let reason = outcome?;
    ended?;
    finished?;
    Ok(Recorded { reason, has_matched: live.registry.ever_matched() })
}

fn replay(config: &Config, recording: &Path) -> Result<Exit, Failure> {
    let file = File::open(recording).map_err(|source| Failure::OpenRecording { path: recording.into(), source })?;
    let mut consumer = Consumer::new(Outputs::open(config, None)?.outputs, None, config.redaction.clone());
    let outcome = replay::replay(file, config, &mut consumer, |_| true);
    consumer.finish()?;
    outcome.map_err(|source| Failure::Replay { path: recording.into(), source })?;
    Ok(Exit::Success)
}

/// What is measured. Short windows of slow counters are told of.
fn watched_domains(source: &mut dyn EnergySource, options: &config::Live) -> Vec<Domain> {
    let window_ns = nanoseconds(options.interval);
    let updates = if options.counter_watch { watch::watch(&mut [&mut *source]).concat() } else { Vec::new() };
    let domains = watch::noted(source.domains(), &updates, window_ns);
    watch::notice(&domains, window_ns).iter().for_each(|notice| messages::warn(notice));
    domains
}

fn run_info(
    config: &Config,
    options: &config::Live,
    selected: &Selected,
    domains: Vec<Domain>,
    programs: &Programs,
    host: Host,
    calibration: Option<Calibrated>,
) -> RunInfo {
    let started = clock::unix_micros_at(clock::monotonic_now());
    let pid = std::process::id();
    RunInfo {
        run_id: format!("{}-{}-{pid}", host.name.raw(), started.0),
        host: host.name,
        started,
        boottime_offset_ns: clock::boottime_offset_ns(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: host.kernel,
        cpu_model: host.cpu_model,
        arch: host.arch,
        online_cpus: host.online_cpus,
        sockets: host.sockets,
        memory_bytes: host.memory_bytes,
        command_line: experiment::own_command_line(),
        sampling_event: programs.event_name().to_owned(),
        frequency_hz: options.frequency,
        interval_ns: nanoseconds(options.interval),
        energy_source: selected.source.name().to_owned(),
        energy_reason: selected.reason.clone(),
        domains,
        policy: PolicyChoices { calibration: Some(calibration), ..config.policy.clone() }
            .over(Policy { weight_unit: weights::unit(programs.counts()), ..Policy::default() }),
        profiler_pid: Pid(pid),
        identity: identity_of_host(config, options),
    }
}

fn identity_of_host(config: &Config, options: &config::Live) -> HostIdentity {
    let places = identity::Places { proc: &config.proc_root, sys: &options.energy.sys_root };
    let attributes = std::env::var(identity::RESOURCE_ATTRIBUTES).ok();
    identity::read(&places, &options.labels, attributes.as_deref(), messages::warn)
}

fn end(consumer: &mut Consumer, reason: StopReason) -> Result<(), Failure> {
    let ended = clock::unix_micros_at(clock::monotonic_now());
    Ok(consumer.take(&Event::RunEnded(RunEnd { ended, reason: reason.name().to_owned() }))?)
}

fn announce(targets: usize, selection: &Selection, reason: &str) {
    let found = match targets {
        0 => format!("no process yet; waiting for one that matches {selection}"),
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    messages::info(&format!("recording {found}; energy: {reason}"));
}
