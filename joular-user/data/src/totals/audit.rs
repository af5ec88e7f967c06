//! Says in words where a run's energy went and what is doubtful about it, the same at a run's end
//! and in every report.

use super::RunSums;
use crate::{
    attribution::window_report::CpuAudit,
    events::RunInfo,
    model::{domain::Label, units::MicroJoules},
    text::{
        count, escape,
        figures::{self, Places},
        seconds, share, watts,
    },
};

/// A larger disagreement than reading two counters one after the other explains.
const MOST_DISAGREEMENT_PERCENT: f64 = 1.0;

/// The energy source with the label that every figure from it carries.
pub fn source(run: &RunInfo, label: Option<Label>) -> String {
    let source = escape(&run.energy_source);
    label.map_or(source.clone(), |label| format!("{source} ({})", label.words()))
}

/// Items that add up to what was measured, as they are shown.
pub fn audit(sums: &RunSums) -> String {
    let line =
        |[name, joules, part, power]: [String; 4]| format!("  {name:<24} {joules:>14} J  {part:>5} %  {power:>9} W\n");
    audit_rows(sums).into_iter().map(line).collect()
}

/// Item, joules, per cent and watts: joules and watts end where those of the whole end.
pub fn audit_rows(sums: &RunSums) -> Vec<[String; 4]> {
    let items = audit_items(sums);
    let energies: Vec<MicroJoules> = items.iter().map(|(_, energy)| *energy).collect();
    let power = |energy: MicroJoules| watts(energy, sums.elapsed_ns);
    let places = Places::of(power(sums.measured), sums.label);
    // The last item is the sum of the others.
    let joules = figures::adding_up(energies.split_last().map_or(&[], |(_, items)| items), sums.label);
    let row = |((name, energy), joules): ((&str, MicroJoules), String)| {
        [name.to_owned(), joules, format!("{:.1}", share(energy, sums.measured)), places.write(power(energy))]
    };
    items.into_iter().zip(joules).map(row).collect()
}

/// Items by their names, and their sum last; some only if there is any of them.
pub fn audit_items(sums: &RunSums) -> Vec<(&'static str, MicroJoules)> {
    let rest = &sums.unattributed;
    let items = [
        ("targets", sums.attributed, true),
        ("static (idle share)", sums.static_share, true),
        ("other processes", rest.other_processes, true),
        ("kernel threads", rest.kernel, true),
        ("joular-bpf itself", rest.profiler, true),
        ("threads without a slot", rest.unslotted, false),
        ("gone at failed reads", rest.failed_reads, false),
        ("nothing ran", rest.idle, false),
        ("outside the CPUs", rest.unshared, false),
        ("through suspends", rest.suspended, false),
    ];
    let shown = items.into_iter().filter(|(_, energy, always)| *always || energy.0 > 0);
    shown.map(|(name, energy, _)| (name, energy)).chain([("= energy of all domains", sums.measured)]).collect()
}

/// What a 95 % interval does not cover, if the energy is a model's.
pub fn model_note(label: Option<Label>) -> Option<&'static str> {
    (label == Some(Label::Modelled)).then_some(MODEL_NOTE)
}

/// No figure is given: docs/energy-model.md says why.
const MODEL_NOTE: &str = "Intervals cover sampling only. The energy is modelled: the model's own error on this machine is \
                          not known, and is likely larger.";

/// What a reader of the figures must know; empty in a good run.
pub fn warnings(sums: &RunSums) -> Vec<String> {
    let mut warnings = Vec::new();
    if !sums.losses.is_empty() {
        let causes: Vec<String> =
            sums.losses.iter().map(|(cause, count)| format!("{} {count}", escape(cause))).collect();
        warnings.push(format!("lost: {}", causes.join(", ")));
    }
    if sums.inexact_cpu_ns > 0 {
        let (off, why) = (seconds(sums.inexact_cpu_ns), CpuAudit::WHY_INEXACT);
        warnings.push(format!("inexact: {why}, and CPU times may be off by {off:.3} s"));
    }
    if sums.ambiguous > 0 {
        warnings.push(format!("ambiguous: {} of energy counters", count(sums.ambiguous, "uncertain reading")));
    }
    // Two reads of one register, microseconds apart, in windows of 100 ms or more.
    if let Some(percent) = sums.disagreement_percent().filter(|percent| percent.abs() > MOST_DISAGREEMENT_PERCENT) {
        warnings.push(format!("disagreement: a second counter of the same energy says {percent:+.1} %"));
    }
    if sums.read_failed > 0 {
        let readings = count(sums.read_failed, "reading");
        warnings.push(format!("failed: {readings} of energy counters, whose energy came later"));
    }
    warnings
}
