//! Writes a recording of Java Flight Recorder, which JDK Mission Control, IntelliJ IDEA and the JDK's tool `jfr` open.
//!
//! It consists of chunks ([`chunk`]). Each describes the types of its events ([`metadata`]) and has the constants that they
//! refer to ([`pools`], whose types are in [`constants`]). [`events`] defines what happened, [`about`] what a recording is
//! of, [`values`] how all of it is encoded, and [`names`] how Java's names look in it.
//!
//! Samples know their window and no moment. They are spread evenly over it, as are those of async-profiler in one type of
//! events, whether their leaf is Java code or not: JDK's type of native samples is for threads that may well wait.
//!
//! Chunks are cut by size. So memory holds one, beside what rows are about and the collections.

mod about;
mod chunk;
mod constants;
mod events;
mod metadata;
mod names;
mod pools;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod tests;
mod values;

use std::io::Write;

use self::{
    chunk::{Chunks, Clock},
    events::During,
    pools::Pools,
};
use super::{
    ExportFormat, Exported, Result, Selection, Writer, origin,
    timeline::{Take, Timeline},
};
use crate::{
    events::Machine,
    model::{
        domain::{Label, Role},
        target_text::TargetText,
        units::MicroJoules,
    },
    report::{
        measure::Measure,
        profile::{AmountRow, Catalog, Collected, DomainEnergy, Filter, Run, row::EnergyRow},
    },
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "jfr", writer: Writer::Binary(write) };

/// A chunk of the JVM's own recordings has up to 12 MB.
const CHUNK_BYTES: usize = 4 << 20;

/// Most samples that a row becomes. A thread takes 100 a second by default, and 10 000 at most.
const MOST_SAMPLES: u64 = 1 << 16;

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    write_in_chunks(selection, out, CHUNK_BYTES)
}

fn write_in_chunks(selection: &Selection<'_>, out: &mut dyn Write, chunk_bytes: usize) -> Result<Exported> {
    let mut timeline = selection.timeline()?;
    let origin = origin(&timeline.overview);
    let collected = timeline.collected()?;
    // A collection may have begun before the first window did.
    let first = collected.collections.keys().map(|(start, ..)| *start).min();
    let clock = Clock { start: first.map_or(timeline.start(), |first| first.min(timeline.start())) };
    let catalog = timeline.catalog();
    let chunks = Chunks::new(out, clock, Pools::new(catalog), chunk_bytes);
    let is_modelled = catalog.runs.iter().map(is_modelled).collect();
    let mut recording = Recording { chunks, clock, is_modelled, energy: MicroJoules(0) };
    recording.begin(&timeline, selection.filter, &origin);
    timeline.scan_with_amounts(&mut recording)?;
    timeline.domains(|catalog, domain| recording.power(catalog, domain))?;
    recording.collections(&timeline, &collected)?;
    recording.chunks.finish()?;
    Ok(Exported { energy: recording.energy, origin })
}

/// Whether a model computes some of a run's energy.
fn is_modelled(run: &Run) -> bool {
    let domains = run.info.domains.iter().filter(|domain| matches!(domain.role, Role::Shared | Role::Unshared));
    domains.map(|domain| domain.label).any(Label::is_estimate)
}

/// Moments that are spread evenly over a window: in the middles of as many parts of it.
fn moments(window: During, count: u64) -> impl Iterator<Item = u64> {
    let length = u128::from(window.end.saturating_sub(window.start));
    (0..count).map(move |place| {
        let into = length * (2 * u128::from(place) + 1) / (2 * u128::from(count));
        window.start.saturating_add(u64::try_from(into).unwrap_or(u64::MAX))
    })
}

struct Recording<'a> {
    chunks: Chunks<'a>,
    clock: Clock,
    /// By run.
    is_modelled: Vec<bool>,
    energy: MicroJoules,
}

impl Recording<'_> {
    /// Says what the recording is of.
    fn begin(&mut self, timeline: &Timeline<'_>, filter: &Filter, origin: &str) {
        let (catalog, at) = (timeline.catalog(), self.clock.ticks(timeline.start()));
        let version = format!("joular-bpf {}", env!("CARGO_PKG_VERSION"));
        let most = MOST_SAMPLES.to_string();
        for (of, name, value) in [
            (&events::ENERGY, "origin", origin),
            (&events::ENERGY, "version", &version),
            (&events::EXECUTION_SAMPLE, "times", "spread evenly over the window in which the samples were taken"),
            (&events::EXECUTION_SAMPLE, "most of a branch in a window", &most),
            (&events::ALLOCATION, "times", "the middle of the window"),
        ] {
            self.chunks.push(&about::Setting { at, of, name, value });
        }
        let mut seen: Vec<Machine<'_>> = Vec::new();
        for run in &catalog.runs {
            let machine = run.info.machine();
            if !seen.contains(&machine) {
                self.host(catalog, run, at);
                seen.push(machine);
            }
        }
        for process in catalog.processes.iter().filter(|process| filter.allows_process(catalog, process)) {
            let known = [&process.jvm_version, &process.collector, &process.main_class];
            if known.into_iter().any(Option::is_some) {
                self.chunks.push(&about::Jvm {
                    at,
                    name: process.comm.raw(),
                    version: process.jvm_version.as_ref().map(TargetText::raw),
                    main_class: process.main_class.as_ref().map(TargetText::raw),
                    start_ms: process.start.0.div_euclid(1000),
                    pid: process.pid.0,
                });
            }
        }
    }

    fn host(&mut self, catalog: &Catalog, run: &Run, at: u64) {
        let info = &run.info;
        let version = format!("Linux {} on {}", info.kernel, catalog.host_title(info.machine()).raw());
        self.chunks.push(&about::System { at, version: &version });
        self.chunks.push(&about::Processor {
            at,
            arch: &info.arch,
            model: &info.cpu_model,
            sockets: info.sockets,
            cpus: info.online_cpus,
        });
    }

    fn power(&mut self, catalog: &Catalog, domain: &DomainEnergy<'_>) -> Result<()> {
        let host = catalog.runs.get(domain.window.run).map(|run| catalog.host_title(run.info.machine()));
        self.chunks.push(&events::Power {
            window: self.clock.during(domain.window.start, domain.window.length_ns),
            domain: domain.name,
            socket: domain.socket,
            core: domain.core,
            energy_uj: domain.energy.0,
            is_modelled: domain.label.is_some_and(Label::is_estimate),
            host: host.as_ref().map_or("", TargetText::raw),
        });
        self.chunks.cut_if_full()
    }

    fn collections(&mut self, timeline: &Timeline<'_>, collected: &Collected) -> Result<()> {
        let end = timeline.overview.span.map_or(0, |(_, end)| self.clock.ticks(end));
        for (number, ((start, process, collector), seen)) in (1..).zip(&collected.collections) {
            let start = self.clock.ticks(*start);
            let end = seen.duration_ns.map_or(end.max(start), |length_ns| start.saturating_add(length_ns));
            self.chunks.push(&events::Collection {
                during: During { start, end },
                number,
                collector,
                cause: seen.cause.as_deref(),
                energy_uj: seen.energy.0,
                before_bytes: seen.before_bytes,
                after_bytes: seen.after_bytes,
                process: &pools::process_title(timeline.catalog(), *process),
            });
            self.chunks.cut_if_full()?;
        }
        Ok(())
    }
}

impl Take for Recording<'_> {
    fn row(&mut self, catalog: &Catalog, row: &EnergyRow) -> Result<()> {
        let window = self.clock.during(row.window_start, row.window_ns);
        let thread = self.chunks.pools.thread(catalog, row.thread);
        let stack = self.chunks.pools.stack(&catalog.paths, row.path);
        self.chunks.push(&events::Energy {
            window,
            thread,
            stack,
            energy_uj: row.energy.0,
            cpu_ns: row.cpu_ns,
            samples: row.samples,
            category: catalog.thread(row.thread).category.name(),
            is_modelled: self.is_modelled.get(row.run).copied().unwrap_or(false),
            is_inferred: row.inferred.is_some(),
        });
        for at in moments(window, row.samples.min(MOST_SAMPLES)) {
            self.chunks.push(&events::ExecutionSample { at, thread, stack });
        }
        self.energy = self.energy.saturating_add(row.energy);
        self.chunks.cut_if_full()
    }

    fn amount(&mut self, catalog: &Catalog, row: &AmountRow<'_>) -> Result<()> {
        if row.part.measure != Measure::Allocated || row.part.amount == 0 {
            return Ok(());
        }
        let window = self.clock.during(row.window_start, row.window_ns);
        let allocation = events::Allocation {
            at: moments(window, 1).next().unwrap_or(window.start),
            thread: self.chunks.pools.thread(catalog, row.thread),
            stack: self.chunks.pools.stack(&catalog.paths, row.path),
            class: row.part.class.map_or(0, |class| self.chunks.pools.class(class)),
            bytes: row.part.amount,
        };
        self.chunks.push(&allocation);
        self.chunks.cut_if_full()
    }
}
