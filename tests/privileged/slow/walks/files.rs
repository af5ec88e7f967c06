//! A person of data takes what was recorded elsewhere: into other tools, and through pipes.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::{Walk, joular, json, line_with, record, split};

/// Formats of one file, and how each begins as far as that is known.
const FORMATS: [(&str, &[u8]); 7] = [
    ("pprof", b"\x1f\x8b"),
    ("speedscope", b"{"),
    ("collapsed", b""),
    ("firefox", b"{"),
    ("perfetto", b""),
    ("otlp", b""),
    ("jfr", b"FLR\0"),
];
/// The format of a directory.
const OF_FILES: &str = "joularjx";

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("person of data")?;
    let jvm = split()?;
    let dir = walk.at("out");
    // With what this program never does, which must not widen tables.
    walk.step(record(&["-p", &jvm.pid().to_string(), "-d", "5s", "--io", "-o", &dir]), 0, |said| {
        line_with(&said.stdout, "ended by duration")
    })?;
    drop(jvm);
    exports(&mut walk, &dir)?;
    walk.step(joular(&["report", &dir, "--json"]), 0, |said| {
        let report = json(said)?;
        let first = &report["tables"][0]["rows"][0];
        Ok(format!("{} {} µJ", first["name"].as_str().context("no name")?, first["self_uj"]))
    })?;
    walk.step(joular(&["report", &dir, "--csv"]), 0, |said| {
        ensure!(said.stdout.starts_with("name,"), "the name is not first");
        line_with(&said.stdout, "Split.heavy")
    })?;
    walk.step(joular(&["report", &dir]), 0, |said| full_columns(&said.stdout))?;
    walk.end();
    Ok(())
}

/// Writes every format that help names.
fn exports(walk: &mut Walk, dir: &str) -> Result<()> {
    let help = walk.step(joular(&["export", "--help"]), 0, |said| line_with(&said.stdout, "Format: "))?;
    let named = line_with(&help.stdout, "Format: ")?.replace("Format: ", "").replace(" or ", ", ");
    let mut named: Vec<&str> = named.split(", ").collect();
    named.sort_unstable();
    let mut known: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).chain([OF_FILES]).collect();
    known.sort_unstable();
    ensure!(named == known, "help names {named:?}, here are {known:?}");
    for (format, begin) in FORMATS {
        let path = walk.at(&format!("energy.{format}"));
        walk.step(joular(&["export", dir, "--format", format, "-o", &path]), 0, |said| {
            let file = fs::read(&path)?;
            ensure!(!file.is_empty() && file.starts_with(begin), "it begins with {:?}", file.get(..8));
            line_with(&said.stderr, "exported ")
        })?;
    }
    let folder = walk.at(OF_FILES);
    walk.step(joular(&["export", dir, "--format", OF_FILES, "-o", &folder]), 0, |said| {
        ensure!(Path::new(&folder).join("joularjx-result").is_dir(), "no directory of results");
        line_with(&said.stderr, "exported ")
    })?;
    Ok(())
}

/// The heading of a piped report's first table, in which each column has something. A figure ends where its heading ends,
/// and headings are two blanks apart.
fn full_columns(report: &str) -> Result<String> {
    let mut lines = report.lines().skip_while(|line| !line.ends_with("METHOD"));
    let heading = lines.next().context("no table of methods")?;
    let rows: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    ensure!(!rows.is_empty(), "no rows");
    let mut begin = 0;
    let headings: Vec<&str> = heading.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in &headings {
        let found = heading.get(begin..).and_then(|rest| rest.find(name)).context("a heading")?;
        let end = begin + found + name.len();
        let [from, to] = [begin, end].map(|at| heading.get(..at).unwrap_or_default().chars().count());
        let width = if *name == "METHOD" { usize::MAX } else { to - from };
        let has_something =
            |row: &&str| row.chars().skip(from).take(width).any(|c| c.is_alphabetic() || matches!(c, '1'..='9'));
        ensure!(rows.iter().any(has_something), "there is nothing in {name}: {report}");
        begin = end;
    }
    Ok(headings.join(", "))
}
