//! Writes how an experiment was made, for papers.

use std::{collections::BTreeMap, path::Path};

use joular_data::experiment::{
    methods::{Conduct, Machine, Markup, Methods, Recorded},
    replicates::Summary,
};
use serde_json::Value;

use super::experiment::write_file;
use crate::experiment::{Circumstances, log::Log};

/// Writes a paragraph to `path`. `directory` holds the data sets, if there are any.
pub(super) fn export(path: &Path, log: &Log, summary: &Summary, directory: Option<&Path>) -> anyhow::Result<()> {
    let recorded = directory.map(Recorded::read).transpose()?;
    let methods = Methods { summary, conduct: conduct(log), recorded };
    write_file(path, methods.paragraph(markup(path)).as_bytes())
}

fn markup(path: &Path) -> Markup {
    let is_latex = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tex"));
    if is_latex { Markup::Latex } else { Markup::Markdown }
}

/// What the log says of how runs were made.
fn conduct(log: &Log) -> Conduct {
    let mut left_out = BTreeMap::new();
    for run in &log.left_out {
        *left_out.entry(run.why.clone()).or_default() += 1;
    }
    let until = log.rounds.and_then(|rounds| rounds.until);
    Conduct {
        machine: log.circumstances.as_ref().map(machine),
        seed: log.seed,
        warmup: log.rounds.map(|rounds| rounds.warmup),
        until: until.map(|until| (until.percent, until.min_runs)),
        most: log.rounds.map_or(0, |rounds| rounds.repeat),
        options: log.circumstances.as_ref().map(options),
        work: log.work.clone(),
        left_out,
    }
}

fn machine(known: &Circumstances) -> Machine {
    let Circumstances { cpu_model, online_cpus, kernel, version, .. } = known.clone();
    Machine { cpu_model, online_cpus, kernel, version }
}

fn options(known: &Circumstances) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let texts = |value: &Value| match value {
        Value::Array(values) => values.iter().map(text).collect(),
        one => vec![text(one)],
    };
    known.options.iter().map(|(name, value)| (name.clone(), texts(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{
        log::{Rounds, Until},
        plan,
    };

    #[test]
    fn files_of_tex_are_latex() {
        for (path, expected) in [("methods.tex", Markup::Latex), ("a/METHODS.TEX", Markup::Latex)] {
            assert_eq!(markup(Path::new(path)), expected, "{path}");
        }
        for path in ["methods.md", "tex", "-", "methods.tex.md"] {
            assert_eq!(markup(Path::new(path)), Markup::Markdown, "{path}");
        }
    }

    #[test]
    fn what_the_log_knows_is_described_and_what_an_earlier_one_lacks_is_unknown() {
        let known = Circumstances {
            cpu_model: "Example CPU".into(),
            online_cpus: 4,
            options: [
                ("cool-down".to_owned(), "5s".into()),
                ("ignore-failure".to_owned(), true.into()),
                ("prepare".to_owned(), serde_json::json!(["a", "b"])),
            ]
            .into(),
            ..Circumstances::default()
        };
        let variants = plan::variants(&["true".into()], &[], &[]).unwrap();
        let mut log = Log::new(7, &variants, Some("10 a run".into()), known);
        log.rounds = Some(Rounds { repeat: 50, warmup: 2, until: Some(Until { percent: 2.0, min_runs: 10 }) });
        let found = conduct(&log);
        assert_eq!((found.seed, found.warmup, found.until, found.most), (7, Some(2), Some((2.0, 10)), 50));
        assert_eq!(
            found.machine.map(|machine| (machine.cpu_model, machine.online_cpus)),
            Some(("Example CPU".into(), 4))
        );
        let options = found.options.unwrap();
        assert_eq!(
            options.into_iter().collect::<Vec<_>>(),
            [("cool-down", &["5s"][..]), ("ignore-failure", &["true"]), ("prepare", &["a", "b"])].map(
                |(name, values)| { (name.to_owned(), values.iter().map(ToString::to_string).collect::<Vec<_>>()) }
            )
        );
        (log.circumstances, log.rounds) = (None, None);
        let found = conduct(&log);
        assert_eq!((found.machine, found.warmup, found.options), (None, None, None));
    }
}
