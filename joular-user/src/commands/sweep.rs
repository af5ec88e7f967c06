//! Runs a command with many values of a parameter, and shows how its energy grows.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use joular_data::{
    experiment::growth::{ClassVerdict, Doubt, Judged, MATERIAL, sweep::Sweep},
    report::{Format, profile::Filter},
    text::escape,
};

use super::experiment::{
    conducted, export_plot, export_runs, on_this_machine, said, tell_of_interruption, view, write_file,
};
use crate::{
    cli::{Exit, SweepFlags},
    config::{self, CommandRun, SweepRun},
    messages,
};

/// More than any sweep's results have.
const MAX_BYTES: u64 = 64 << 20;
/// Methods that are drawn.
const DRAWN: usize = 10;

pub(super) fn run(flags: &SweepFlags) -> anyhow::Result<Exit> {
    // What is wrong is told before anything runs.
    let resolved = CommandRun::resolve(&flags.run)?;
    let mut sweep = config::sweep(flags)?;
    on_this_machine(&mut sweep.experiment, &resolved);
    let before = flags.against.as_deref().map(read).transpose()?;
    // Methods are read from data sets: without a directory, from one that goes again.
    let scratch = match sweep.experiment.directory {
        None => Some(
            tempfile::tempdir()
                .context("making a temporary directory: name another place with TMPDIR, or use --output")?,
        ),
        Some(_) => None,
    };
    if let Some(scratch) = &scratch {
        sweep.experiment.directory = Some(scratch.path().join("sweep"));
    }
    let conducted = conducted(&sweep.experiment)?;
    if let Some(code) = conducted.interrupted {
        if scratch.is_none() {
            tell_of_interruption(&sweep.experiment, &conducted.log);
        }
        return Ok(Exit::Command(code));
    }
    if let Some(precision) = conducted.log.precision() {
        messages::info(&precision.sentence());
    }
    let steps = steps(&sweep);
    let app = view(&flags.run.experiment.app, &steps.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>())?;
    let found = Sweep::read(&steps, &Filter::default(), app.as_ref(), sweep.view)?;
    if !flags.run.flags.quiet {
        said(|width, mut out| found.write(Format::Text, sweep.methods, width, &mut out))?;
    }
    export_runs(&flags.run.experiment, &conducted.log)?;
    export(flags, &sweep, &found)?;
    Ok(before.map_or(Exit::Success, |before| judged(&before, &found)))
}

/// Each value with its data set.
fn steps(sweep: &SweepRun) -> Vec<(f64, PathBuf)> {
    let directory = sweep.experiment.directory.clone().unwrap_or_default();
    let folders = sweep.experiment.variants.iter().map(|variant| directory.join(variant.folder()));
    sweep.values.iter().copied().zip(folders).collect()
}

fn export(flags: &SweepFlags, sweep: &SweepRun, found: &Sweep) -> anyhow::Result<()> {
    let chosen = &flags.run.experiment;
    for (path, format, methods) in [
        (&chosen.export_json, Format::Json, None),
        (&chosen.export_csv, Format::Csv, None),
        (&chosen.export_markdown, Format::Markdown, sweep.methods),
    ] {
        if let Some(path) = path {
            let mut bytes = Vec::new();
            found.write(format, methods, None, &mut bytes)?;
            write_file(path, &bytes)?;
        }
    }
    let drawn = sweep.methods.unwrap_or(DRAWN);
    export_plot(chosen, || found.drawing(drawn))?;
    if let Some(path) = &flags.svg {
        write_file(path, found.svg(drawn).as_bytes())?;
    }
    flags.html.as_ref().map_or(Ok(()), |path| write_file(path, found.page(drawn).as_bytes()))
}

fn read(path: &Path) -> anyhow::Result<Sweep> {
    let mut text = String::new();
    let shown = escape(&path.display().to_string());
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    if let Err(error) = read {
        bail!("reading {shown}: {error}: check --against");
    }
    Sweep::stored(&text).map_err(|error| {
        anyhow::anyhow!("reading {shown}: {error}: --against takes what a sweep has written with --export-json")
    })
}

/// Tells what grows otherwise than before. A slower growth is not a reason to fail.
fn judged(before: &Sweep, after: &Sweep) -> Exit {
    let judged = after.against(before);
    let is_total = |judged: &Judged<'_>| std::ptr::eq(judged.curve, &after.total);
    let methods = judged.iter().filter(|judged| !is_total(judged)).count();
    let mut exit = Exit::Success;
    for judged in &judged {
        let is_undecided = is_total(judged) && judged.change.verdict == ClassVerdict::NotCertain;
        if judged.is_striking() || is_undecided {
            let name = if is_total(judged) { "total".to_owned() } else { judged.curve.name.to_string() };
            messages::warn(&format!("{name}: {}", sentence(judged, methods)));
        }
        if judged.fails() {
            exit = Exit::Regression;
        } else if is_undecided {
            exit = Exit::Undecided;
        }
    }
    exit
}

fn sentence(judged: &Judged<'_>, methods: usize) -> String {
    let change = &judged.change;
    let said = format!("{}: {} before, {} now", change.verdict.name(), change.before.name(), change.after.name());
    let more = 100.0 * (change.at_largest - 1.0);
    match change.doubt {
        Some(Doubt::NoClass) => format!("{said}, {more:+.1} % at the largest n: {}", Doubt::NoClass.sentence()),
        Some(doubt) => format!("{said}: {}", doubt.sentence()),
        None if !judged.stands => {
            format!("{said}: a hint only, as {methods} methods are compared: repeat both sweeps with more runs")
        }
        None if change.is_faster && !change.is_worse() => {
            format!("{said}: no failure, as it needs {more:+.1} % at the largest n, not over {:.0} %", 100.0 * MATERIAL)
        }
        None => format!("{said}: {more:+.1} % at the largest n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Joules at n.
    type Joules = fn(f64) -> f64;

    /// A sweep of runs that vary by 1 %, as it is stored, with the growth of its total and of its methods.
    fn stored(largest: f64, total: Joules, methods: &[Joules]) -> Sweep {
        let curve = |name: &str, joules: Joules| -> Value {
            let values = (0..8).map(|step| (largest * 10_f64.powf(f64::from(step - 7) * 0.4)).round());
            let runs = values.flat_map(|value| [0.99, 1.0, 1.01].map(|run| (value, joules(value) * run)));
            let points = runs.map(|(value, joules)| json!({"value": value, "joules": joules, "variance": 0.0}));
            json!({"name": name, "samples": 900, "points": points.collect::<Vec<_>>()})
        };
        let methods: Vec<Value> = methods.iter().map(|joules| curve("a.B.c", *joules)).collect();
        let total = curve("total", total);
        Sweep::stored(&json!({"with_callees": false, "total": total, "cpu": total, "methods": methods}).to_string())
            .unwrap()
    }

    #[test]
    fn a_gate_fails_if_something_grows_faster_and_needs_more() {
        let (line, square): (Joules, Joules) = (|n| 2.0 + 5e-5 * n, |n| 2.0 + 1e-10 * n * n);
        // At 10⁶ n² needs 4 % more than n.
        let slight: Joules = |n| 2.0 + 52e-12 * n * n;
        let before = stored(1e6, line, &[line]);
        for (after, expected) in [
            (stored(1e6, line, &[line]), Exit::Success),
            (stored(1e6, square, &[]), Exit::Regression),
            (stored(1e6, line, &[square]), Exit::Regression),
            (stored(1e6, slight, &[slight]), Exit::Success),
            (stored(3e6, square, &[square]), Exit::Undecided),
            (stored(1e6, warming_up, &[]), Exit::Undecided),
        ] {
            assert_eq!(judged(&before, &after), expected, "{:?}", after.against(&before));
        }
        assert_eq!(judged(&stored(1e6, square, &[square]), &before), Exit::Success);
    }

    fn warming_up(n: f64) -> f64 {
        2.0 + 5e-5 * n + if n < 2e4 { 1.0 } else { 0.0 }
    }
}
