//! Writes `--json`: one JSON object per line, for programs. Its `type` is `run` first, `window` for
//! each window, and `summary` last.

use std::{collections::BTreeMap, io::Write};

use joular_data::{
    attribution::window_report::{DomainAudit, MethodRow, WindowReport, pools},
    events::{ProcessInfo, RunEnd, RunInfo},
    model::{
        domain::{FaultCause, Label},
        frame::Marker,
        target_text::TargetText,
        units::Pid,
    },
    output::{Output, OutputError, Result},
    stacks::StackTable,
    text::harmless_json,
    totals::{
        RunSums, Tally, Totals,
        audit::model_note,
        by_process,
        measured::{self, Amounts},
    },
};
use serde::Serialize;

use super::{
    json_context::Context,
    json_jvms::{self, Jvm, Quality},
    json_phases,
};

/// Methods per line; how many were left out is in `methods_omitted`. The
/// Parquet data set has all of them.
const MAX_METHODS: usize = 50;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Message<'a> {
    Run(&'a RunInfo),
    Window(Window<'a>),
    Summary(Summary<'a>),
}

#[derive(Serialize)]
struct Window<'a> {
    index: u64,
    /// Microseconds since 1970 UTC.
    start_us: i64,
    length_ns: u64,
    /// `null` where a recording does not say.
    context: Option<Context<'a>>,
    domains: Vec<Domain<'a>>,
    audit: Audit<'a>,
    processes: Vec<ProcessFigures<'a>>,
    jvms: Vec<Jvm>,
    quality: Vec<Quality>,
    methods: Vec<Method<'a>>,
    methods_omitted: usize,
    /// What programs said. Begins and ends of phases hold from the window's end on.
    marks: Vec<json_phases::Mark<'a>>,
}

#[derive(Serialize)]
struct Domain<'a> {
    domain: &'a str,
    socket: Option<u32>,
    core: Option<u32>,
    source: &'a str,
    label: &'static str,
    measured_uj: u64,
    attributed_uj: u64,
    static_uj: u64,
    unattributed_uj: u64,
    merged: u32,
    fault: Option<&'static str>,
    read_failed: bool,
    ambiguous: bool,
}

/// Sums over all domains, of a window or of a run.
#[derive(Serialize)]
struct Audit<'a> {
    energy_label: Option<&'static str>,
    ambiguous: u64,
    read_failed: u64,
    measured_uj: u64,
    attributed_uj: u64,
    static_uj: u64,
    unattributed_uj: u64,
    other_processes_uj: u64,
    kernel_uj: u64,
    profiler_uj: u64,
    unslotted_uj: u64,
    failed_reads_uj: u64,
    unshared_uj: u64,
    suspended_uj: u64,
    idle_uj: u64,
    target_cpu_ns: u64,
    inexact_cpu_ns: u64,
    samples: u64,
    lost: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct ProcessFigures<'a> {
    pid: u32,
    comm: &'a TargetText,
    title: &'a TargetText,
    energy_uj: u64,
    cpu_ns: u64,
    samples: u64,
    /// Bytes and counts by measure, of a window.
    #[serde(skip_serializing_if = "Measured::is_empty")]
    measured: Measured,
}

/// Bytes and counts by the names that `--measure` takes.
type Measured = BTreeMap<&'static str, u64>;

fn by_name(amounts: &Amounts) -> Measured {
    amounts.iter().map(|(measure, amount)| (measure.name(), *amount)).collect()
}

#[derive(Serialize)]
struct Method<'a> {
    pid: u32,
    method: TargetText,
    signature: Option<&'a TargetText>,
    module: Option<&'a TargetText>,
    kind: &'static str,
    self_uj: u64,
    total_uj: u64,
    self_cpu_ns: u64,
    total_cpu_ns: u64,
    self_samples: u64,
    total_samples: u64,
    /// The 95 % interval of sampling, from the process's samples in this window alone.
    self_low_uj: u64,
    self_high_uj: u64,
    /// Half of it, as the standard deviation of a normal distribution.
    self_sigma_uj: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    ended_us: i64,
    reason: &'a str,
    windows: u64,
    elapsed_ns: u64,
    audit: Audit<'a>,
    unresolved_uj: u64,
    no_sample_uj: u64,
    /// Energy of methods inferred from samples of other windows.
    inferred_uj: u64,
    processes: Vec<ProcessFigures<'a>>,
    /// Bytes and counts of all targets, by measure.
    measured: Measured,
    /// What JVMs did; processes that found no room share an entry without a pid.
    jvms: Vec<Jvm>,
    /// Samples of JVMs, and how many of them by what is wrong with their stacks.
    jvm_samples: u64,
    jvm_samples_by_cause: &'a BTreeMap<&'static str, u64>,
    /// What intervals do not cover, if the energy is a model's.
    interval_note: Option<&'static str>,
    methods: Vec<RunMethod<'a>>,
    methods_omitted: usize,
    phases: Vec<json_phases::Phase<'a>>,
}

/// A method over a whole run, all processes together.
#[derive(Serialize)]
struct RunMethod<'a> {
    method: &'a str,
    signature: Option<&'a str>,
    module: Option<&'a str>,
    self_uj: u64,
    self_cpu_ns: u64,
    self_samples: u64,
    /// The 95 % interval of sampling, as reports have it.
    self_low_uj: u64,
    self_high_uj: u64,
    /// Half of it, as the standard deviation of a normal distribution.
    self_sigma_joules: f64,
    /// Part of `self_uj` that is inferred from samples of other windows.
    self_inferred_uj: u64,
}

/// Writes a run as lines of JSON.
pub struct JsonOutput<W> {
    out: W,
    totals: Totals,
}

impl<W: Write> JsonOutput<W> {
    pub fn new(out: W) -> Self {
        Self { out, totals: Totals::default() }
    }

    /// Leaves energy of windows in which no sample hit a thread at `[no sample]`.
    #[must_use]
    pub fn without_inference(self) -> Self {
        Self { totals: self.totals.without_inference(), ..self }
    }
}

fn write(out: &mut impl Write, message: &Message<'_>) -> Result<()> {
    let written = serde_json::to_string(message)
        .map_err(Into::into)
        .and_then(|line| writeln!(out, "{}", harmless_json(&line)))
        .and_then(|()| out.flush());
    written.map_err(|source| OutputError::Stream { what: "the JSON lines", source })
}

impl<W: Write> Output for JsonOutput<W> {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        self.totals.run(run);
        write(&mut self.out, &Message::Run(run))
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.totals.process(process);
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.totals.process_ended(pid, start_boottime_ns);
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.totals.window(report, stacks);
        let sums = RunSums::of(report);
        let message = Window {
            index: report.index,
            start_us: report.wall_start.0,
            length_ns: report.length_ns,
            context: Context::of(report),
            domains: report.domains.iter().map(domain).collect(),
            audit: audit(&sums),
            processes: window_processes(report, &self.totals),
            jvms: json_jvms::of_window(report),
            quality: json_jvms::quality(report),
            methods: window_methods(report, stacks),
            methods_omitted: report.methods.len().saturating_sub(MAX_METHODS),
            marks: json_phases::marks(report),
        };
        write(&mut self.out, &Message::Window(message))
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        self.totals.finish();
        let totals = &self.totals;
        let message = Summary {
            ended_us: end.ended.0,
            reason: &end.reason,
            windows: totals.sums.windows,
            elapsed_ns: totals.sums.elapsed_ns,
            audit: audit(&totals.sums),
            unresolved_uj: totals.unresolved().0,
            no_sample_uj: totals.marker(Marker::NoSample).0,
            inferred_uj: totals.inferred.0,
            processes: run_processes(totals),
            measured: by_name(&totals.measured.amounts),
            jvms: json_jvms::of_run(&totals.jvms),
            jvm_samples: totals.jvms.samples,
            jvm_samples_by_cause: totals.jvms.causes(),
            interval_note: model_note(totals.sums.label),
            methods: run_methods(totals),
            methods_omitted: totals.methods.ranked().len().saturating_sub(MAX_METHODS),
            phases: json_phases::of_run(totals),
        };
        write(&mut self.out, &Message::Summary(message))
    }
}

fn domain(audit: &DomainAudit) -> Domain<'_> {
    Domain {
        domain: &audit.domain,
        socket: audit.socket,
        core: audit.core,
        source: &audit.source,
        label: audit.label.name(),
        measured_uj: audit.measured.0,
        attributed_uj: audit.attributed.0,
        static_uj: audit.static_share.0,
        unattributed_uj: audit.unattributed.total().0,
        merged: audit.merged,
        fault: audit.fault.map(FaultCause::name),
        read_failed: audit.read_failed(),
        ambiguous: audit.is_ambiguous(),
    }
}

fn audit(sums: &RunSums) -> Audit<'_> {
    Audit {
        energy_label: sums.label.map(Label::name),
        ambiguous: sums.ambiguous,
        read_failed: sums.read_failed,
        measured_uj: sums.measured.0,
        attributed_uj: sums.attributed.0,
        static_uj: sums.static_share.0,
        unattributed_uj: sums.unattributed.total().0,
        other_processes_uj: sums.unattributed.other_processes.0,
        kernel_uj: sums.unattributed.kernel.0,
        profiler_uj: sums.unattributed.profiler.0,
        unslotted_uj: sums.unattributed.unslotted.0,
        failed_reads_uj: sums.unattributed.failed_reads.0,
        unshared_uj: sums.unattributed.unshared.0,
        suspended_uj: sums.unattributed.suspended.0,
        idle_uj: sums.unattributed.idle.0,
        target_cpu_ns: sums.target_cpu_ns,
        inexact_cpu_ns: sums.inexact_cpu_ns,
        samples: sums.samples,
        lost: &sums.losses,
    }
}

fn window_processes<'a>(report: &'a WindowReport, totals: &'a Totals) -> Vec<ProcessFigures<'a>> {
    let figures = |((process, share), amounts): ((&'a _, _), Amounts)| {
        let of_process = process_of(process, totals, &Tally::from(share));
        ProcessFigures { measured: by_name(&amounts), ..of_process }
    };
    by_process(report).zip(measured::by_process(report)).map(figures).collect()
}

fn run_processes(totals: &Totals) -> Vec<ProcessFigures<'_>> {
    totals.processes.ranked().into_iter().map(|(process, tally)| process_of(process, totals, tally)).collect()
}

fn process_of<'a>(
    process: &'a joular_data::attribution::window_report::ProcessRef,
    totals: &'a Totals,
    tally: &Tally,
) -> ProcessFigures<'a> {
    ProcessFigures {
        pid: process.pid.0,
        comm: &process.comm,
        title: totals.title(process),
        energy_uj: tally.energy.0,
        cpu_ns: tally.cpu_ns,
        samples: tally.samples,
        measured: Measured::new(),
    }
}

/// The methods with the most self energy, in an order that is always the same.
fn window_methods<'a>(report: &'a WindowReport, stacks: &'a StackTable) -> Vec<Method<'a>> {
    let mut rows: Vec<&MethodRow> = report.methods.iter().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse((row.own.energy, row.total.energy)), row.process, row.method));
    let pools = pools(report.methods.iter().map(|row| (row.process, &row.own)));
    let method = |row: &'a MethodRow| {
        let frame = stacks.frame(row.method);
        let interval = pools.get(&row.process)?.interval(row.own.energy, &row.own.sampled());
        Some(Method {
            pid: report.processes.get(row.process)?.pid.0,
            method: frame.method(),
            signature: frame.signature.as_ref(),
            module: frame.module.as_ref(),
            kind: frame.kind.name(),
            self_uj: row.own.energy.0,
            total_uj: row.total.energy.0,
            self_cpu_ns: row.own.cpu_ns,
            total_cpu_ns: row.total.cpu_ns,
            self_samples: row.own.samples,
            total_samples: row.total.samples,
            self_low_uj: interval.low.0,
            self_high_uj: interval.high.0,
            self_sigma_uj: interval.sigma().0,
        })
    };
    rows.into_iter().take(MAX_METHODS).filter_map(method).collect()
}

fn run_methods(totals: &Totals) -> Vec<RunMethod<'_>> {
    let intervals = totals.sampling.intervals();
    let ranked = totals.methods.ranked().into_iter().take(MAX_METHODS);
    ranked
        .map(|(key, tally)| {
            let interval = intervals.of(key, tally.energy);
            RunMethod {
                method: key.name(),
                signature: key.signature(),
                module: key.module(),
                self_uj: tally.energy.0,
                self_cpu_ns: tally.cpu_ns,
                self_samples: tally.samples,
                self_low_uj: interval.low.0,
                self_high_uj: interval.high.0,
                self_sigma_joules: interval.deviation() / 1e6,
                self_inferred_uj: tally.inferred.0,
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
