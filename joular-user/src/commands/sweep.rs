//! Runs a command with many values of a parameter, and shows how its energy grows.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use joular_data::{
    experiment::growth::{
        ClassVerdict, compare,
        sweep::{Curve, Sweep},
    },
    report::{Format, profile::Filter},
    text::escape,
};

use super::experiment::{conducted, on_this_machine, said, tell_of_interruption, write_file};
use crate::{
    cli::{Exit, PartFlags, SweepFlags},
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
    let (_, app) = config::part(&PartFlags { app: flags.run.experiment.app.clone(), ..PartFlags::default() })?;
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
    let found = Sweep::read(&steps(&sweep), &Filter::default(), app.as_ref(), sweep.view)?;
    if !flags.run.flags.quiet {
        said(|mut out| found.write(Format::Text, sweep.methods, &mut out))?;
    }
    export(flags, &sweep, &found)?;
    before.map_or(Ok(Exit::Success), |before| judged(&before, &found))
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
            found.write(format, methods, &mut bytes)?;
            write_file(path, &bytes)?;
        }
    }
    let drawn = sweep.methods.unwrap_or(DRAWN);
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
    serde_json::from_str(&text).map_err(|error| {
        anyhow::anyhow!("reading {shown}: {error}: --against takes what a sweep has written with --export-json")
    })
}

/// Tells what grows otherwise than before. A slower growth is not a reason to fail.
fn judged(before: &Sweep, after: &Sweep) -> anyhow::Result<Exit> {
    let mut exit = Exit::Success;
    let pairs = after.methods.iter().filter_map(|curve| Some((before_of(before, curve)?, curve)));
    for (old, new) in std::iter::once((&before.total, &after.total)).chain(pairs) {
        let (Some(old_growth), Some(new_growth)) = (&old.growth, &new.growth) else { continue };
        let change = compare(old_growth, new_growth);
        let is_total = std::ptr::eq(new, &after.total);
        let name = if is_total { "total".to_owned() } else { new.name.to_string() };
        let classes = format!("{} before, {} now", change.before.name(), change.after.name());
        match change.verdict {
            ClassVerdict::Changed => {
                messages::warn(&format!("{name}: {}: {classes}", change.verdict.name()));
                if change.is_faster {
                    exit = Exit::Regression;
                }
            }
            ClassVerdict::NotCertain if exit == Exit::Success && is_total => {
                messages::warn(&format!("{name}: {}: {classes}", change.verdict.name()));
                exit = Exit::Undecided;
            }
            _ => {}
        }
    }
    Ok(exit)
}

fn before_of<'a>(before: &'a Sweep, curve: &Curve) -> Option<&'a Curve> {
    let key = |curve: &Curve| (curve.name.clone(), curve.signature.clone(), curve.module.clone());
    before.methods.iter().find(|old| key(old) == key(curve))
}
