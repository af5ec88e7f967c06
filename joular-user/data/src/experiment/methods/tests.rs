use super::*;
use crate::{
    dataset::fixture as data_set,
    events::RunInfo,
    experiment::replicates::{Precision, Replicate, Variant, summarize},
    fixture,
    model::{
        domain::{Domain, Label, Meter, Role},
        policy::Policy,
    },
};

fn variant(name: &str, joules: &[f64]) -> Variant {
    let run = |(order, joules): (u32, &f64)| Replicate { order, joules: *joules, ..Replicate::default() };
    Variant { name: name.into(), replicates: (0..).zip(joules).map(run).collect() }
}

fn two() -> Vec<Variant> {
    vec![variant("old", &[2.0, 2.2, 2.1]), variant("new", &[1.0, 1.1, 1.05])]
}

fn known() -> Conduct {
    let machine =
        Machine { cpu_model: "Own CPU".into(), online_cpus: 2, kernel: "6.1.0".into(), version: "0.1.0".into() };
    let options =
        [("cool-down", "5s"), ("prepare", "make clean")].map(|(name, value)| (name.into(), vec![value.into()]));
    Conduct {
        machine: Some(machine),
        seed: 7,
        warmup: Some(1),
        most: 3,
        options: Some(options.into()),
        left_out: [("warm-up".to_owned(), 2), ("ended with exit code 3".to_owned(), 1)].into(),
        ..Conduct::default()
    }
}

fn of(info: RunInfo) -> Run {
    Run { info, ..Run::default() }
}

fn recorded() -> Recorded {
    Recorded {
        runs: vec![of(fixture::run())],
        governors: ["schedutil".to_owned()].into(),
        jvms: [(Some("21.0.2".into()), Some("G1".into()))].into(),
    }
}

#[track_caller]
fn check(said: &str, expected: &[&str]) {
    for expected in expected {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn what_was_recorded_is_said() {
    let summary = summarize(&two());
    let said = Methods { summary: &summary, conduct: known(), recorded: Some(recorded()) }.paragraph(Markup::Markdown);
    check(
        &said,
        &[
            "Energy was recorded with joular-bpf `0.1.0`.",
            "The processor was `Example CPU` with 8 CPUs online; the kernel was Linux `6.12.0`.",
            "It had 16.0 GiB of memory.",
            "The frequency governor was `schedutil`.",
            "Commands ran on a JVM of version `21.0.2` with the garbage collector `G1`.",
            "Energy came from the source `model` (`no counter was found`).",
            "The energy of `cpu` is modelled: it was computed from utilisation by a model and not measured.",
            "divided by `cpu_weights` (weights of CPU time: `time`; idle power: `separate`; with no calibration",
            "Stacks were sampled by `cpu-clock` 99 times per second of CPU time on average, in windows of 1 s.",
            "There are 2 variants (`old` and `new`) with 3 runs each",
            "at random (seed 7).",
            "A warm-up run of each variant",
            "A pause of `5s` came before each run but the first.",
            "A command ran before each run and was not measured: `make clean`.",
            "3 runs were measured and do not count (1 for: ended with exit code 3; 2 for: warm-up).",
            "mean energy of runs, with Student's 95 % interval.",
            "Welch's test",
            "No run counted as an outlier",
        ],
    );
    assert!(!said.contains("recorded:") && !said.contains("not recorded") && said.lines().count() == 1, "{said}");
}

#[test]
fn commands_of_single_variants_are_all_named() {
    let mut conduct = known();
    let options = conduct.options.as_mut().unwrap();
    options.insert("cleanup".into(), ["rm -r old", "rm -r new"].map(str::to_owned).to_vec());
    let said = Methods { summary: &summarize(&two()), conduct, recorded: None }.paragraph(Markup::Markdown);
    let expected = "A command of its variant ran after each run and was not measured: `rm -r old` and `rm -r new`.";
    check(&said, &["A command ran before each run and was not measured: `make clean`.", expected]);
}

#[test]
fn what_was_not_recorded_is_said_to_be_unknown() {
    let summary = summarize(&[variant("base", &[1.0, 1.1])]);
    let methods = Methods { summary: &summary, conduct: Conduct::default(), recorded: None };
    check(
        &methods.paragraph(Markup::Markdown),
        &[
            "joular-bpf, whose version was not recorded",
            "The model of the processor was not recorded",
            "the number of CPUs was not recorded",
            "the kernel was not recorded",
            "memory, the frequency governor, the energy source with its domains, the sampling of stacks",
            "How the figures of energy came about was not recorded.",
            "Whether there were warm-up runs was not recorded.",
            "Pauses between runs, and commands before and after them, were not recorded.",
            "One command was measured in 2 runs",
        ],
    );
    let labelled = summary.clone().labelled(Some(Label::Measured));
    let known = Methods { summary: &labelled, conduct: known(), recorded: None }.paragraph(Markup::Markdown);
    check(&known, &["`Own CPU` with 2 CPUs", "Energy is measured: hardware counters", "were not recorded"]);
    assert!(!known.contains("Welch"), "one variant is compared with nothing: {known}");
    let empty = Recorded { runs: vec![of(RunInfo::default())], ..Recorded::default() };
    check(
        &Methods { summary: &summary, conduct: Conduct::default(), recorded: Some(empty) }.paragraph(Markup::Markdown),
        &[
            "The size of its memory was not recorded",
            "No frequency governor was recorded",
            "No JVM was among the measured processes",
            "No domain of energy was recorded",
        ],
    );
}

#[test]
fn each_way_in_which_energy_came_about_is_said() {
    let domain = |name, label| Domain::new(name, None, "test", label, Meter::Model { idle_uw: 1, full_uw: 2 });
    let mut run = fixture::run();
    run.domains = vec![
        domain("package", Label::Measured),
        domain("dram", Label::Measured),
        domain("nic", Label::Reported),
        Domain { role: Role::Check { of: 0 }, ..domain("other", Label::Modelled) },
    ];
    let summary = summarize(&two());
    let recorded = Recorded { runs: vec![of(run)], ..recorded() };
    let said = Methods { summary: &summary, conduct: known(), recorded: Some(recorded) }.paragraph(Markup::Markdown);
    check(&said, &["The energy of `dram` and `package` is measured", "The energy of `nic` is reported: power that"]);
    assert!(!said.contains("`other`"), "{said}");
}

#[test]
fn a_rule_that_ended_the_experiment_is_said_with_what_it_costs() {
    let variants = two();
    let conduct = Conduct { until: Some((2.0, 10)), most: 100, ..known() };
    for (wanted, expected) in [(90.0, "The intervals are as narrow"), (0.5, "Not all intervals are as narrow")] {
        let summary = summarize(&variants).with_precision(Some(Precision::of(&variants, wanted)));
        let methods = Methods { summary: &summary, conduct: conduct.clone(), recorded: None };
        check(
            &methods.paragraph(Markup::Markdown),
            &["within ±2 % of the mean, at least 10 and at most 100 times", "slightly too narrow", expected],
        );
    }
}

#[test]
fn nothing_that_was_recorded_is_markup() {
    let mut run = fixture::run();
    run.cpu_model = "`A|B` \\input{x} $50_% ±\u{1b}\n".to_owned();
    let summary = summarize(&two());
    let recorded = Recorded { runs: vec![of(run)], ..recorded() };
    let methods = Methods { summary: &summary, conduct: known(), recorded: Some(recorded) };
    let markdown = methods.paragraph(Markup::Markdown);
    check(&markdown, &["was `\\x60A\\x7cB\\x60 \\input{x} $50_% ±\\x1b\\x0a` with"]);
    let latex = methods.paragraph(Markup::Latex);
    check(
        &latex,
        &[
            "\\texttt{\\char96{}A\\textbar{}B\\char96{} \\textbackslash{}input\\{x\\} \\$50\\_\\% $\\pm$",
            "Student's 95 \\% interval",
            "\\texttt{make clean}",
        ],
    );
    for said in [markdown, latex] {
        assert!(!said.trim_end().contains(['\u{1b}', '\n']), "{said}");
    }
}

#[test]
fn facts_are_read_from_data_sets() {
    let root = tempfile::tempdir().unwrap();
    data_set::write(root.path(), Policy::default());
    let found = Recorded::read(root.path()).unwrap();
    assert_eq!(found.runs.iter().map(|run| run.info.host.raw()).collect::<Vec<_>>(), ["node-1"]);
    assert_eq!(found.governors.iter().map(String::as_str).collect::<Vec<_>>(), ["mixed", "schedutil"]);
    assert_eq!(found.jvms.len(), 1, "{found:?}");
    assert!(Recorded::read(&root.path().join("nothing")).is_err());
}
