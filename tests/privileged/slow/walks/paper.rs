//! A researcher repeats a measurement, writes what a paper needs, and looks at the runs by method.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{MODELLED, Walk, counting, experiment, joular, line_with};

/// Digits of a figure, with those behind its point.
const DIGITS: usize = 10;

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("researcher")?;
    let dir = walk.at("measured");
    exports(&mut walk, &dir)?;
    walk.step(joular(&["report", &dir]), 0, |said| line_with(&said.stdout, "6 runs on "))?;
    walk.step(joular(&["runs", &dir]), 0, |said| line_with(&said.stdout, "data set"))?;
    let page = walk.at("measured.html");
    walk.step(joular(&["html", &dir, "-o", &page]), 0, |said| {
        ensure!(fs::read_to_string(&page)?.starts_with("<!DOCTYPE html>"), "no page");
        line_with(&said.stderr, "(modelled")
    })?;
    let baseline = walk.at("baseline.json");
    walk.step(joular(&["baseline", "save", &dir, &baseline]), 0, |_| {
        Ok(format!("a baseline of {} bytes", fs::metadata(&baseline)?.len()))
    })?;
    growth(&mut walk)?;
    walk.end();
    Ok(())
}

fn exports(walk: &mut Walk, dir: &str) -> Result<()> {
    let files = [
        ("--export-csv", "variants.csv", "variant,runs,"),
        ("--export-markdown", "variants.md", "| variant |"),
        ("--export-latex", "variants.tex", "\\toprule"),
        ("--export-methods", "methods.md", "modelled"),
        ("--export-runs-csv", "runs.csv", "is_kept"),
    ]
    .map(|(option, name, part)| (option, walk.at(name), part));
    let options: Vec<&str> = files.iter().flat_map(|(option, path, _)| [*option, path.as_str()]).collect();
    walk.step(experiment(dir, &options), 0, |_| {
        for (option, path, part) in &files {
            in_file(path, part).with_context(|| format!("{option} has written something else"))?;
        }
        let runs = fs::read_to_string(&files[4].1)?.lines().skip(1).count();
        ensure!(runs == 6, "{runs} runs in the table of runs");
        in_file(&files[3].1, "modelled")
    })?;
    Ok(())
}

/// The first line of a file that has this.
fn in_file(path: &str, part: &str) -> Result<String> {
    line_with(&fs::read_to_string(path)?, part)
}

/// A page about how energy grows has figures that can be read.
fn growth(walk: &mut Walk) -> Result<()> {
    let (page, count) = (walk.at("growth.html"), counting("{n}"));
    let options = ["--repeat", "2", "--parameter", "n=50000..800000:log:5", "--html", &page, "--", "sh", "-c", &count];
    walk.step(joular(&[&["sweep"], &MODELLED[..], &options].concat()), 0, |_| {
        let page = fs::read_to_string(&page)?;
        let longest = page
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .max_by_key(|figure| digits(figure))
            .unwrap_or_default();
        ensure!(digits(longest) <= DIGITS, "a figure of {} digits: {longest}", digits(longest));
        Ok(format!("the longest figure is {longest}"))
    })?;
    Ok(())
}

fn digits(figure: &str) -> usize {
    figure.chars().filter(char::is_ascii_digit).count()
}
