//! A Java developer asks which methods of a program burn the energy.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    notes, paths,
    process::Finished,
    profiler::END,
    servers::Program,
    tmux::{self, Terminal},
};
use rustix::process::Signal;
use serde_json::Value;

use super::{Walk, joular, json, line_with, record, split};

/// Windows of a recording that is ended twice.
const WINDOWS: u64 = 10;
/// Rows of a table.
const TOP: usize = 5;
/// Letters that a name has on a terminal at least, beside the mark that it is cut.
const NAME_ROOM: usize = 31;

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("Java developer")?;
    let jvm = split()?;
    let (pid, dir) = (jvm.pid().to_string(), walk.at("out"));
    walk.step(record(&["-p", &pid, "-d", "5s", "-o", &dir]), 0, next_steps)?;
    walk.step(joular(&["report", &dir, "--process", "split"]), 0, |said| {
        line_with(&said.stdout, "nothing in the data set matches this selection")?;
        line_with(&said.stdout, "its 1 run has the processes Split")
    })?;
    let page = walk.at("page.html");
    walk.step(joular(&["html", &dir, "--method", "no.such.Method", "-o", &page]), 1, |said| {
        ensure!(!Path::new(&page).exists(), "there is a page of nothing");
        line_with(&said.stderr, "the selection is empty: there are processes Split")
    })?;
    let graph = walk.at("flame.html");
    walk.step(joular(&["flamegraph", &dir, "--output", &graph]), 0, |said| {
        let page = fs::read_to_string(&graph)?;
        ensure!(page.starts_with("<!DOCTYPE html>") && page.contains("Split.heavy"), "no page with the method");
        line_with(&said.stderr, "(modelled")
    })?;
    java_view(&mut walk, &pid)?;
    ends_with_its_target(&mut walk)?;
    a_second_interrupt_loses_nothing(&mut walk, &pid)?;
    walk.end();
    Ok(())
}

/// The commands that the end of a recording offers, the simplest one first.
fn next_steps(said: &Finished) -> Result<String> {
    line_with(&said.stdout, "ended by duration")?;
    let (_, offered) = said.stdout.split_once("\nThe data is in ").context("no word of the data")?;
    let commands: Vec<&str> = offered.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    ensure!(commands == ["report", "html", "flamegraph"], "{offered}");
    Ok(offered.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first answer is about Java code, and names keep what names them where there is little room.
fn java_view(walk: &mut Walk, small: &str) -> Result<()> {
    let tomcat = Program::Tomcat.is_installed().then(|| Program::Tomcat.start()).transpose()?;
    if tomcat.is_none() {
        notes::skipped("Tomcat is not installed (`cargo xtask setup` does it on Debian): a small program is looked at");
    }
    let pid = tomcat.as_ref().map_or_else(|| small.to_owned(), |server| server.pid.to_string());
    let (dir, top) = (walk.at("java"), TOP.to_string());
    walk.step(record(&["-p", &pid, "-d", "8s", "-o", &dir]), 0, next_steps)?;
    drop(tomcat);
    let said = walk.step(joular(&["report", &dir, "--java", "--json", "--top", &top]), 0, first_name)?;
    walk.step(joular(&["report", &dir, "--top", &top]), 0, |said| {
        line_with(&said.stdout, "Java view: native and kernel code counts for the Java code that called it")
    })?;
    if !tmux::is_installed() {
        notes::skipped("there is no tmux (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let terminal = Terminal::open(80, 100, None)?;
    terminal.run(&format!("{} report {dir} --top {top}; echo \"code $?\"", paths::joular_bpf().display()))?;
    let shown = shown_names(&terminal.wait_text("code 0")?)?;
    let whole = names(&json(&said)?)?;
    for (whole, shown) in whole.iter().zip(&shown).filter(|(whole, _)| is_plain(whole)) {
        ensure!(keeps_its_name(whole, shown), "{whole} is cut to {shown}");
    }
    walk.saw("joular-bpf report java --top 5, on 80 columns", &shown.join(", "));
    Ok(())
}

fn names(report: &Value) -> Result<Vec<String>> {
    let rows = report["tables"][0]["rows"].as_array().context("no rows")?;
    rows.iter().map(|row| Ok(row["name"].as_str().context("no name")?.to_owned())).collect()
}

/// The name of the first row, which must be a method's of a class.
fn first_name(said: &Finished) -> Result<String> {
    let names = names(&json(said)?)?;
    let first = names.first().context("no method")?;
    ensure!(is_plain(first) && first.contains('.'), "{first} is not of Java");
    Ok(first.clone())
}

/// Names of methods, as rows of a table on a terminal show them.
fn shown_names(screen: &str) -> Result<Vec<String>> {
    let mut lines = screen.lines().map(str::trim_end).skip_while(|line| !line.ends_with("METHOD"));
    let at = lines.next().context("no table of methods")?.chars().count() - "METHOD".len();
    Ok(lines.take(TOP).map(|line| line.chars().skip(at).collect()).collect())
}

/// Whether it is neither a name in C++, in which anything may stand, nor one that says what is not known.
fn is_plain(name: &str) -> bool {
    !name.starts_with('[') && !name.contains("::") && !name.contains(' ')
}

/// Whether a name that was cut still has its class and method, or as much of them as has room.
fn keeps_its_name(whole: &str, shown: &str) -> bool {
    let without_parameters = |name: &str| name.split('(').next().unwrap_or_default().trim_matches('…').to_owned();
    let (whole, shown) = (without_parameters(whole), without_parameters(shown));
    let parts: Vec<&str> = whole.rsplitn(3, '.').collect();
    let own = parts.iter().take(2).map(|part| part.chars().count() + 1).sum::<usize>() - 1;
    whole.ends_with(&shown) && shown.chars().count() >= own.min(NAME_ROOM)
}

fn ends_with_its_target(walk: &mut Walk) -> Result<()> {
    let jvm = split()?;
    let run = record(&["-p", &jvm.pid().to_string(), "-o", &walk.at("ended")]);
    let typed = walk.typed(&run);
    let profiler = run.start()?;
    drop(jvm);
    let finished = profiler.finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    walk.saw(&typed, &line_with(&finished.stderr, "no process of --pid is left")?);
    Ok(())
}

fn a_second_interrupt_loses_nothing(walk: &mut Walk, pid: &str) -> Result<()> {
    let dir = walk.at("interrupted");
    let run = record(&["-p", pid, "--interval", "200ms", "--json", "-o", &dir]);
    let typed = walk.typed(&run);
    let mut profiler = run.start()?;
    (0..WINDOWS).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    // It may be gone already, which is as good.
    drop(profiler.signal(Signal::INT));
    let finished = profiler.finish(END)?;
    ensure!(matches!(finished.code(), Some(0 | 130)), "{finished:?}");
    let runs = json(&joular(&["runs", &dir, "--json"]).finish(END)?)?;
    let windows = runs[0]["windows"].as_u64().with_context(|| format!("no windows: {runs}"))?;
    ensure!(windows >= WINDOWS && runs[0]["ended"] == "SIGINT", "{runs}");
    walk.saw(&format!("{typed}, then Ctrl-C twice"), &format!("{windows} windows are in the data set"));
    Ok(())
}
