//! Writes `--json`: one JSON object per line, for programs. Its `type` is `run` first, `window` for
//! each window, and `summary` last.

use std::{collections::BTreeMap, io::Write};

use joular_data::{
    attribution::window_report::{DomainAudit, MethodRow, WindowReport},
    events::{ProcessInfo, RunEnd, RunInfo},
    model::{
        domain::{FaultCause, Label},
        frame::Marker,
    },
    output::{Output, OutputError, Result},
    stacks::StackTable,
    totals::{MethodKey, Ranking, Sums, Tally, Totals, by_process},
};
use serde::Serialize;

use super::json_jvms::{self, Jvm, Quality};

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
    domains: Vec<Domain<'a>>,
    audit: Audit<'a>,
    processes: Vec<ProcessFigures<'a>>,
    jvms: Vec<Jvm>,
    quality: Vec<Quality>,
    methods: Vec<Method<'a>>,
    methods_omitted: usize,
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
    idle_uj: u64,
    target_cpu_ns: u64,
    samples: u64,
    lost: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct ProcessFigures<'a> {
    pid: u32,
    comm: &'a str,
    title: &'a str,
    energy_uj: u64,
    cpu_ns: u64,
    samples: u64,
}

#[derive(Serialize)]
struct Method<'a> {
    pid: u32,
    method: String,
    signature: Option<&'a str>,
    module: Option<&'a str>,
    kind: &'static str,
    self_uj: u64,
    total_uj: u64,
    self_cpu_ns: u64,
    total_cpu_ns: u64,
    self_samples: u64,
    total_samples: u64,
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
    processes: Vec<ProcessFigures<'a>>,
    /// What JVMs did; processes that found no room share an entry without a pid.
    jvms: Vec<Jvm>,
    /// Samples of JVMs, and how many of them by what is wrong with their stacks.
    jvm_samples: u64,
    jvm_samples_by_cause: &'a BTreeMap<&'static str, u64>,
    methods: Vec<RunMethod<'a>>,
    methods_omitted: usize,
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
    self_sigma_joules: f64,
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
}

fn write(out: &mut impl Write, message: &Message<'_>) -> Result<()> {
    let written = serde_json::to_string(message)
        .map_err(Into::into)
        .and_then(|line| writeln!(out, "{line}"))
        .and_then(|()| out.flush());
    written.map_err(|source| OutputError::Stream { what: "the JSON lines", source })
}

impl<W: Write> Output for JsonOutput<W> {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        write(&mut self.out, &Message::Run(run))
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.totals.process(process);
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.totals.window(report, stacks);
        let sums = Sums::of(report);
        let message = Window {
            index: report.index,
            start_us: report.wall_start.0,
            length_ns: report.length_ns,
            domains: report.domains.iter().map(domain).collect(),
            audit: audit(&sums),
            processes: window_processes(report, &self.totals),
            jvms: json_jvms::of_window(report),
            quality: json_jvms::quality(report),
            methods: window_methods(report, stacks),
            methods_omitted: report.methods.len().saturating_sub(MAX_METHODS),
        };
        write(&mut self.out, &Message::Window(message))
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        let totals = &self.totals;
        let message = Summary {
            ended_us: end.ended.0,
            reason: &end.reason,
            windows: totals.sums.windows,
            elapsed_ns: totals.sums.elapsed_ns,
            audit: audit(&totals.sums),
            unresolved_uj: totals.unresolved().0,
            no_sample_uj: totals.marker(Marker::NoSample).0,
            processes: run_processes(totals),
            jvms: json_jvms::of_run(&totals.jvms),
            jvm_samples: totals.jvms.samples,
            jvm_samples_by_cause: totals.jvms.causes(),
            methods: run_methods(&totals.methods),
            methods_omitted: totals.methods.ranked().len().saturating_sub(MAX_METHODS),
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

fn audit(sums: &Sums) -> Audit<'_> {
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
        idle_uj: sums.unattributed.idle.0,
        target_cpu_ns: sums.target_cpu_ns,
        samples: sums.samples,
        lost: &sums.losses,
    }
}

fn window_processes<'a>(report: &'a WindowReport, totals: &'a Totals) -> Vec<ProcessFigures<'a>> {
    let figures = |(process, share): (&'a _, _)| process_of(process, totals, &Tally::from(share));
    by_process(report).map(figures).collect()
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
    }
}

/// The methods with the most self energy, in an order that is always the same.
fn window_methods<'a>(report: &'a WindowReport, stacks: &'a StackTable) -> Vec<Method<'a>> {
    let mut rows: Vec<&MethodRow> = report.methods.iter().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse((row.own.energy, row.total.energy)), row.process, row.method));
    let method = |row: &'a MethodRow| {
        let frame = stacks.frame(row.method);
        Some(Method {
            pid: report.processes.get(row.process)?.pid.0,
            method: frame.method(),
            signature: frame.signature.as_deref(),
            module: frame.module.as_deref(),
            kind: frame.kind.name(),
            self_uj: row.own.energy.0,
            total_uj: row.total.energy.0,
            self_cpu_ns: row.own.cpu_ns,
            total_cpu_ns: row.total.cpu_ns,
            self_samples: row.own.samples,
            total_samples: row.total.samples,
            self_sigma_uj: row.own.sigma.0,
        })
    };
    rows.into_iter().take(MAX_METHODS).filter_map(method).collect()
}

fn run_methods(methods: &Ranking<MethodKey>) -> Vec<RunMethod<'_>> {
    let ranked = methods.ranked().into_iter().take(MAX_METHODS);
    ranked
        .map(|(key, tally)| RunMethod {
            method: &key.name,
            signature: key.signature.as_deref(),
            module: key.module.as_deref(),
            self_uj: tally.energy.0,
            self_cpu_ns: tally.cpu_ns,
            self_samples: tally.samples,
            self_sigma_joules: tally.sigma_joules(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use joular_data::fixture::{self, BUSY, Load, SMALL};
    use serde_json::Value;

    use super::*;

    fn messages(load: Load, windows: u64) -> Vec<Value> {
        let mut output = JsonOutput::new(Vec::new());
        fixture::play(&mut output, load, windows).unwrap();
        let text = String::from_utf8(output.out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_run_is_its_start_its_windows_and_its_summary() {
        let messages = messages(SMALL, 2);
        let types: Vec<_> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["run", "window", "window", "summary"]);
        assert_eq!(messages[1]["domains"][0]["label"], "modelled");
        assert_eq!(messages[3]["audit"]["energy_label"], "modelled");
    }

    #[test]
    fn windows_sum_to_the_summary() {
        let messages = messages(SMALL, 3);
        let figure = |message: &Value| message["audit"]["measured_uj"].as_u64().unwrap();
        assert_eq!(messages[1..4].iter().map(figure).sum::<u64>(), figure(&messages[4]));
    }

    #[test]
    fn parts_of_jvms_sum_to_the_whole_in_windows_and_over_the_run() {
        let messages = messages(SMALL, 3);
        let jvms = |message: &Value| message["jvms"].as_array().unwrap().clone();
        let energy = |jvm: &Value| jvm["energy_uj"].as_u64().unwrap();
        for jvm in messages[1..].iter().flat_map(jvms) {
            let parts = jvm["parts_uj"].as_object().unwrap();
            assert_eq!(parts.values().filter_map(Value::as_u64).sum::<u64>(), energy(&jvm), "{jvm}");
            assert!(jvm["vm_tax_uj"].as_u64().unwrap() >= parts["gc"].as_u64().unwrap(), "{jvm}");
        }
        let sum = |message: &Value| jvms(message).iter().map(energy).sum::<u64>();
        assert!(sum(&messages[4]) > 0);
        assert_eq!(messages[1..4].iter().map(sum).sum::<u64>(), sum(&messages[4]));
    }

    #[test]
    fn every_sample_of_a_jvm_has_a_cause() {
        let messages = messages(BUSY, 2);
        let summary = &messages[3];
        let causes = summary["jvm_samples_by_cause"].as_object().unwrap();
        let sum: u64 = causes.values().filter_map(Value::as_u64).sum();
        assert_eq!(summary["jvm_samples"], sum);
        assert!(causes.contains_key("complete") && causes.contains_key("depth"), "{causes:?}");
        let rows = messages[1..3].iter().flat_map(|message| message["quality"].as_array().unwrap());
        assert_eq!(rows.map(|row| row["samples"].as_u64().unwrap()).sum::<u64>(), sum, "all processes are JVMs");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let messages = messages(BUSY, 1);
        assert_eq!(messages[1]["methods"].as_array().unwrap().len(), MAX_METHODS);
        assert_eq!(messages[1]["methods_omitted"], 150);
    }
}
