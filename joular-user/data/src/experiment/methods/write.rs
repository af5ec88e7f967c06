//! Writes the paragraph, a topic after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Conduct, Machine, Markup, Methods, Recorded, markup::Paragraph};
use crate::{
    experiment::replicates::{Figure, VariantSummary, outliers, runs_of_each},
    model::{
        domain::{Domain, Label, Role},
        target_text::TargetText,
    },
    text::{count, seconds},
};

/// Variants that are named.
const NAMED: usize = 8;

impl Methods<'_> {
    /// The paragraph, with its line's end.
    pub fn paragraph(&self, markup: Markup) -> String {
        let mut said = Paragraph::new(markup);
        self.machine(&mut said);
        match &self.recorded {
            Some(recorded) => recorded.write(&mut said),
            None => self.unrecorded(&mut said),
        }
        self.conduct.write(&self.summary.variants, &mut said);
        self.statistics(&mut said);
        said.end()
    }

    fn machine(&self, said: &mut Paragraph) {
        let recorded = self.recorded.as_ref().and_then(|recorded| recorded.runs.first());
        let recorded = recorded.map(|run| Machine {
            cpu_model: run.info.cpu_model.clone(),
            online_cpus: run.info.online_cpus,
            kernel: run.info.kernel.clone(),
            version: run.info.version.clone(),
        });
        let machine = recorded.or_else(|| self.conduct.machine.clone()).unwrap_or_default();
        match machine.version.as_str() {
            "" => said.sentence("Energy was recorded with joular-bpf, whose version was not recorded."),
            version => said.sentence("Energy was recorded with joular-bpf ").code(version).words("."),
        };
        match machine.cpu_model.as_str() {
            "" => said.sentence("The model of the processor was not recorded"),
            model => said.sentence("The processor was ").code(model),
        };
        match machine.online_cpus {
            0 => said.words("; the number of CPUs was not recorded"),
            cpus => said.words(&format!(" with {} online", count(u64::from(cpus), "CPU"))),
        };
        match machine.kernel.as_str() {
            "" => said.words("; the kernel was not recorded."),
            kernel => said.words("; the kernel was Linux ").code(kernel).words("."),
        };
    }

    /// Without a data set, only the label of the energy is known.
    fn unrecorded(&self, said: &mut Paragraph) {
        said.sentence(
            "The experiment kept no data set, so that memory, the frequency governor, the energy source with its domains, \
             the sampling of stacks, the attribution of energy, and whether the commands ran on a JVM were not recorded.",
        );
        match self.summary.energy_label.as_deref().and_then(|name| Label::ALL.into_iter().find(|l| l.name() == name)) {
            Some(label) => said.sentence(&format!("Energy is {}: {}.", label.words(), meaning(label))),
            None => said.sentence("How the figures of energy came about was not recorded."),
        };
    }

    fn statistics(&self, said: &mut Paragraph) {
        said.sentence(match self.summary.ranking.figure {
            Figure::JoulesPerWork => "The compared figure is the mean over runs of each run's energy per unit of work",
            Figure::Watts => "The compared figure is the mean power of runs",
            Figure::Seconds => "The compared figure is the mean duration of runs",
            Figure::CpuSeconds => "The compared figure is the mean CPU time of runs",
            Figure::Joules => "The compared figure is the mean energy of runs",
        });
        if let Some(work) = &self.conduct.work {
            said.words(" (units of work: ").code(work.as_str()).words(")");
        }
        said.words(", with Student's 95 % interval.");
        if self.summary.variants.len() > 1 {
            said.sentence(
                "Each variant is compared with the one that needs least: the ratio of means has Fieller's 95 % interval, and \
                 the difference is tested by Welch's test, with Holm's correction for all pairs of variants.",
            );
        }
        let outliers: usize = self.summary.variants.iter().map(|variant| variant.outliers.len()).sum();
        said.sentence(&format!(
            "{} counted as an outlier (modified z-score above {}, of variants with {} runs or more); outliers are part of all \
             figures.",
            match outliers {
                0 => "No run".to_owned(),
                outliers => count(outliers, "run"),
            },
            outliers::THRESHOLD,
            outliers::LEAST_RUNS
        ));
        if let Some(precision) = &self.summary.precision {
            said.sentence(match precision.is_reached {
                true => "The intervals are as narrow as was wanted.",
                false => "Not all intervals are as narrow as was wanted.",
            });
        }
        for drift in &self.summary.drifts {
            said.sentence(&format!("A drift was found (p = {:.1e}): {}.", drift.p, drift.sentence));
        }
    }
}

/// What a label means in a sentence.
const fn meaning(label: Label) -> &'static str {
    match label {
        Label::Measured => "hardware counters that measure energy were read",
        Label::MeasuredCoarsely => {
            "hardware counters that measure energy were read, which advance seldom or are filtered by the processor, so that \
             long runs are measured well and short times are not"
        }
        Label::Reported => "power that the machine or an instrument reports was integrated over time",
        Label::ModelledByProcessor => "counters were read that the processor itself fills from a model of its activity",
        Label::Modelled => "it was computed from utilisation by a model and not measured",
        Label::Replayed => "it was played back from another recording",
    }
}

impl Recorded {
    fn write(&self, said: &mut Paragraph) {
        let memories = self.each(|run| run.info.memory_bytes);
        match memories.first().filter(|bytes| **bytes > 0) {
            Some(bytes) => said.sentence(&format!("It had {} of memory.", gibibytes(*bytes))),
            None => said.sentence("The size of its memory was not recorded."),
        };
        match self.governors.len() {
            0 => said.sentence("No frequency governor was recorded, as on a machine without cpufreq."),
            1 => {
                said.sentence("The frequency governor was ").codes(self.governors.iter().map(String::as_str)).words(".")
            }
            _ => said
                .sentence("Frequency governors were ")
                .codes(self.governors.iter().map(String::as_str))
                .words(", not the same all the time."),
        };
        self.jvms(said);
        self.energy(said);
        let sampling = self.each(|run| (run.info.sampling_event.clone(), run.info.frequency_hz, run.info.interval_ns));
        for (event, frequency_hz, interval_ns) in sampling {
            said.sentence("Stacks were sampled by ").code(event).words(&format!(
                " {frequency_hz} times per second of CPU time on average, in windows of {} s.",
                seconds(interval_ns)
            ));
        }
    }

    fn jvms(&self, said: &mut Paragraph) {
        if self.jvms.is_empty() {
            said.sentence("No JVM was among the measured processes.");
        }
        for (version, collector) in &self.jvms {
            match version {
                Some(version) => said.sentence("Commands ran on a JVM of version ").code(version.clone()),
                None => said.sentence("Commands ran on a JVM whose version was not recorded"),
            };
            match collector {
                Some(collector) => said.words(" with the garbage collector ").code(collector.clone()).words("."),
                None => said.words("; its garbage collector was not recorded."),
            };
        }
    }

    fn energy(&self, said: &mut Paragraph) {
        for (source, reason) in self.each(|run| (run.info.energy_source.clone(), run.info.energy_reason.clone())) {
            said.sentence("Energy came from the source ").code(source).words(" (").code(reason).words(").");
        }
        let mut by_label: BTreeMap<Label, BTreeSet<&str>> = BTreeMap::new();
        let is_counted = |domain: &&Domain| matches!(domain.role, Role::Shared | Role::Unshared);
        for domain in self.runs.iter().flat_map(|run| &run.info.domains).filter(is_counted) {
            by_label.entry(domain.label).or_default().insert(&domain.name);
        }
        if by_label.is_empty() {
            said.sentence("No domain of energy was recorded.");
        }
        for (label, names) in by_label {
            said.sentence("The energy of ").codes(names).words(&format!(" is {}: {}.", label.words(), meaning(label)));
        }
        let policies = self.each(|run| {
            (run.info.policy.weights(), run.info.policy.idle.name().to_owned(), run.info.policy.calibration.is_some())
        });
        for (weights, idle, is_calibrated) in policies {
            let calibrated = if is_calibrated { "a calibration" } else { "no calibration" };
            said.sentence("A command has the energy of its threads, among which domains are divided by ")
                .codes(self.runs.iter().flat_map(|run| &run.info.domains).map(divided_by).collect::<BTreeSet<_>>())
                .words(" (weights of CPU time: ")
                .code(weights)
                .words("; idle power: ")
                .code(idle)
                .words(&format!("; with {calibrated} of the machine)."));
        }
    }
}

impl Conduct {
    fn write(&self, variants: &[VariantSummary], said: &mut Paragraph) {
        self.runs(variants, said);
        match self.warmup {
            Some(0) => said.sentence("There were no warm-up runs."),
            Some(1) => said.sentence("A warm-up run of each variant came before and does not count."),
            Some(warmup) => {
                said.sentence(&format!("{warmup} warm-up runs of each variant came before and do not count."))
            }
            None => said.sentence("Whether there were warm-up runs was not recorded."),
        };
        match &self.options {
            Some(options) => around(options, said),
            None => {
                said.sentence("Pauses between runs, and commands before and after them, were not recorded.");
            }
        }
        if let Some((percent, least)) = self.until {
            said.sentence(&format!(
                "Rounds were repeated until the 95 % interval of each variant's mean was within ±{percent} % of the mean, at \
                 least {least} and at most {} times; nothing corrects intervals for this rule, which makes them slightly too \
                 narrow.",
                self.most
            ));
        }
        let left_out: usize = self.left_out.values().sum();
        if left_out > 0 {
            let reasons = self.left_out.iter().map(|(why, runs)| format!("{runs} for: {why}"));
            let verb = if left_out == 1 { "was measured and does" } else { "were measured and do" };
            said.sentence(&format!(
                "{} {verb} not count ({}).",
                count(left_out, "run"),
                reasons.collect::<Vec<_>>().join("; ")
            ));
        }
    }

    fn runs(&self, variants: &[VariantSummary], said: &mut Paragraph) {
        let runs = runs_of_each(variants);
        let [_, _, ..] = variants else {
            said.sentence(&format!("One command was measured in {runs}, one after the other."));
            return;
        };
        let names = variants.iter().take(NAMED).map(|variant| variant.name.clone());
        said.sentence(&format!("There are {} variants (", variants.len())).codes::<TargetText>(names);
        if variants.len() > NAMED {
            said.words(&format!(" and {} more", variants.len() - NAMED));
        }
        said.words(&format!(
            ") with {runs} each; each round ran every variant once, in an order that was drawn at random (seed {}).",
            self.seed
        ));
    }
}

fn around(options: &BTreeMap<String, Vec<String>>, said: &mut Paragraph) {
    let given = |name: &str| options.get(name).map(Vec::as_slice).unwrap_or_default();
    match given("cool-down").first().map(String::as_str) {
        Some(pause) => said.sentence("A pause of ").code(pause).words(" came before each run but the first."),
        None => said.sentence("There was no pause between runs."),
    };
    for (name, place) in [("prepare", "before"), ("cleanup", "after")] {
        let commands = given(name);
        let whose = if commands.len() > 1 { " of its variant" } else { "" };
        if !commands.is_empty() {
            said.sentence(&format!("A command{whose} ran {place} each run and was not measured: "));
            said.codes(commands.iter().take(NAMED).map(String::as_str));
            let more = commands.len().saturating_sub(NAMED);
            said.words(&if more > 0 { format!(" and {more} more.") } else { ".".to_owned() });
        }
    }
    if !given("ignore-failure").is_empty() {
        said.sentence("Runs count although their command ended with an error.");
    }
}

fn divided_by(domain: &Domain) -> &'static str {
    domain.divided_by.name()
}

/// To a tenth.
fn gibibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 30;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
