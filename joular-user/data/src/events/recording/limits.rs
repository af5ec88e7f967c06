//! Limits the size of a recorded event. A run never comes near these bounds. Without them a small
//! file could make its reader keep gigabytes, and make every path as long as the file likes.

use joular_ebpf::abi::{IoKind, MAX_USER_FRAMES, OBJECT_AGES};

use crate::{
    events::{
        Event, HostIdentity, ProcessInfo, RunInfo, Runtime, Symbol, Window, WindowAllocations, WindowCollections,
        WindowCounters, WindowIo,
    },
    model::{
        cores::CoreType,
        counter::Counter,
        domain::{DividedBy, Reading},
        frame::Frame,
        target_text::TargetText,
    },
};

const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_NAME_BYTES: usize = 4 * 1024;
/// Arguments of a command line: their number, and their bytes together. The kernel allows a command
/// 2 MiB; of a process's no more than 16 KiB are read.
const MAX_ARGUMENTS: usize = 64 * 1024;
const MAX_COMMAND_BYTES: usize = 2 * 1024 * 1024;
const MAX_DOMAINS: usize = 1024;
const MAX_LABELS: usize = 1024;
const MAX_CPUS: usize = 65_536;
const MAX_CORE_TYPES: usize = 64;
/// Threads may be seen on several sockets.
const MAX_THREADS: usize = 1 << 20;
const MAX_SAMPLES: usize = 1 << 21;
const MAX_LOSSES: usize = 1024;
/// Frames of one address: the inlined functions there.
const MAX_INLINED: usize = 64;
/// In a window.
const MAX_COLLECTIONS: usize = 1 << 16;
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_SYMBOL_FRAMES: usize = 1 << 20;

/// Refuses an event that no run makes, and says what is wrong with it.
pub(super) fn check(event: &Event) -> Result<(), String> {
    match event {
        Event::RunStarted(run) => run_info(run),
        Event::Process(process) => process_info(process),
        Event::Stack(stack) => at_most(stack.frames.len(), MAX_USER_FRAMES, "frames in a stack"),
        Event::Symbols { symbols, .. } => names(symbols),
        Event::Energy(reading) => readings(&reading.readings),
        Event::Window(contents) => window(contents),
        Event::RunEnded(end) => text(&end.reason),
        Event::Mark(mark) => [&mark.name, &mark.attributes].into_iter().flatten().try_for_each(|said| name(said.raw())),
        Event::Context(context) => context.governor.as_deref().map_or(Ok(()), name),
        Event::Counters(counters) => counts(counters),
        Event::Allocations(allocations) => allocated(allocations),
        Event::Collections(window) => collected(window),
        Event::Io(io) => moved(io),
        Event::LongName(long) => name(long.name.raw()),
        Event::BufferEnds(ends) => at_most(ends.len(), MAX_THREADS, "threads that allocated"),
        // Eight bytes each, no more than the event itself.
        Event::ProcessEnded { .. } | Event::StacksForgotten(_) | Event::AllocationsUnsampled { .. } => Ok(()),
    }
}

fn core_types(types: &[CoreType]) -> Result<(), String> {
    at_most(types.len(), MAX_CORE_TYPES, "types of cores")?;
    for of in types {
        name(&of.name)?;
        at_most(of.cpus.len(), MAX_CPUS, "CPUs of a type")?;
        at_most(of.places.len(), MAX_CPUS, "places of a type")?;
    }
    Ok(())
}

fn run_info(run: &RunInfo) -> Result<(), String> {
    at_most(run.domains.len(), MAX_DOMAINS, "energy domains")?;
    for domain in &run.domains {
        name(&domain.name)?;
        name(&domain.source)?;
        at_most(domain.less.len(), MAX_DOMAINS, "domains that another one contains")?;
        if let DividedBy::CpuWeightsByCoreType(types) = &domain.divided_by {
            core_types(types)?;
        }
    }
    let baselines = run.policy.calibration.iter().flat_map(|calibrated| &calibrated.baselines);
    at_most(baselines.clone().count(), MAX_DOMAINS, "calibrated domains")?;
    for baseline in baselines {
        name(&baseline.domain)?;
    }
    name(run.host.raw())?;
    for part in [&run.run_id, &run.version, &run.kernel, &run.cpu_model, &run.arch] {
        name(part)?;
    }
    for part in [&run.sampling_event, &run.energy_source] {
        name(part)?;
    }
    text(&run.energy_reason)?;
    let HostIdentity { machine_id, instance_id, labels } = &run.identity;
    at_most(labels.len(), MAX_LABELS, "labels")?;
    for part in labels.iter().chain(machine_id).chain(instance_id) {
        name(part.raw())?;
    }
    arguments(run.command_line.iter().map(String::as_str), MAX_COMMAND_BYTES)
}

fn process_info(process: &ProcessInfo) -> Result<(), String> {
    name(process.comm.raw())?;
    let service = process.service.as_ref();
    let places = [&process.executable, &process.cgroup, &process.container, &process.pod, &process.unit];
    for part in places.into_iter().flatten().chain(service.and_then(|service| service.version.as_ref())) {
        text(part.raw())?;
    }
    if let Some(service) = service {
        text(service.name.raw())?;
    }
    if let Runtime::Jvm { version, main_class, collector, unwinding, .. } = &process.runtime {
        for part in [version, main_class, collector, unwinding].into_iter().flatten() {
            text(part.raw())?;
        }
    }
    arguments(process.command_line.iter().map(TargetText::raw), MAX_TEXT_BYTES)
}

fn readings(readings: &[Reading]) -> Result<(), String> {
    at_most(readings.len(), MAX_DOMAINS, "readings")?;
    readings.iter().try_for_each(|reading| match reading {
        Reading::Failed(fault) => text(&fault.text),
        Reading::CounterUj(_) | Reading::PowerUw(_) | Reading::BusyPowerUw(_) | Reading::Modelled => Ok(()),
    })
}

fn names(symbols: &[Symbol]) -> Result<(), String> {
    at_most(symbols.len(), MAX_SYMBOLS, "symbols")?;
    let mut frames = 0;
    for symbol in symbols {
        at_most(symbol.frames.len(), MAX_INLINED, "frames at an address")?;
        frames += symbol.frames.len();
        symbol.frames.iter().try_for_each(frame)?;
    }
    at_most(frames, MAX_SYMBOL_FRAMES, "frames")
}

fn frame(frame: &Frame) -> Result<(), String> {
    name(frame.name.raw())?;
    if let Some(class) = &frame.class {
        name(class.raw())?;
    }
    [&frame.signature, &frame.module, &frame.file].into_iter().flatten().try_for_each(|part| text(part.raw()))
}

fn window(window: &Window) -> Result<(), String> {
    at_most(window.cpus.len(), MAX_CPUS, "CPUs")?;
    at_most(window.threads.len(), MAX_THREADS, "threads")?;
    at_most(window.samples.len(), MAX_SAMPLES, "samples")?;
    at_most(window.losses.len(), MAX_LOSSES, "losses")?;
    window.losses.iter().try_for_each(|loss| name(&loss.cause))
}

fn allocated(allocations: &WindowAllocations) -> Result<(), String> {
    at_most(allocations.threads.len(), MAX_THREADS, "threads that allocated")?;
    at_most(allocations.samples.len(), MAX_SAMPLES, "samples of allocations")
}

fn collected(window: &WindowCollections) -> Result<(), String> {
    at_most(window.collections.len(), MAX_COLLECTIONS, "collections")?;
    at_most(window.fates.len(), MAX_SAMPLES, "fates of sampled objects")?;
    for collection in &window.collections {
        name(collection.collector.raw())?;
        collection.cause.as_ref().map_or(Ok(()), |cause| name(cause.raw()))?;
        at_most(collection.ages.len(), OBJECT_AGES, "ages of objects")?;
    }
    Ok(())
}

fn moved(io: &WindowIo) -> Result<(), String> {
    at_most(io.threads.len(), IoKind::ALL.len() * MAX_THREADS, "threads that moved bytes")?;
    at_most(io.samples.len(), MAX_SAMPLES, "samples of moved bytes")
}

fn counts(counted: &WindowCounters) -> Result<(), String> {
    at_most(counted.counters.len(), Counter::ALL.len(), "counters")?;
    at_most(counted.threads.len(), MAX_THREADS, "threads that counted")?;
    counted.threads.iter().try_for_each(|thread| at_most(thread.counts.len(), counted.counters.len(), "counts"))
}

fn arguments<'a>(arguments: impl ExactSizeIterator<Item = &'a str>, most_bytes: usize) -> Result<(), String> {
    at_most(arguments.len(), MAX_ARGUMENTS, "arguments")?;
    at_most(arguments.map(str::len).sum(), most_bytes, "bytes of a command line")
}

fn text(text: &str) -> Result<(), String> {
    at_most(text.len(), MAX_TEXT_BYTES, "bytes of text")
}

fn name(name: &str) -> Result<(), String> {
    at_most(name.len(), MAX_NAME_BYTES, "bytes of a name")
}

fn at_most(count: usize, most: usize, of_what: &str) -> Result<(), String> {
    if count <= most { Ok(()) } else { Err(format!("{count} {of_what}, of which {most} are allowed")) }
}
