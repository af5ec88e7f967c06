//! A person at a terminal: a small one, a usual one, and one that takes lines only.

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    notes, paths,
    tmux::{self, Terminal},
};

use super::{MODELLED, Walk, joular, line_with, split};

/// Lines of a terminal that is not small.
const SCREEN: usize = 60;
/// How the live table begins.
const TABLE: &str = "joular-bpf on ";

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("person at a terminal")?;
    for command in ["record", "report"] {
        walk.step(joular(&[command, "-h"]), 0, |said| {
            let lines = said.stdout.lines().count();
            ensure!(lines <= SCREEN, "{lines} lines");
            Ok(format!("{lines} lines, the last one: {}", line_with(&said.stdout, "All flags: --help")?))
        })?;
    }
    if !tmux::is_installed() {
        notes::skipped("there is no tmux (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let jvm = split()?;
    let pid = jvm.pid().to_string();
    live_table(&mut walk, &pid)?;
    whole_terminal(&mut walk, &pid)?;
    lines_only(&mut walk, &pid)?;
    walk.end();
    Ok(())
}

/// Types a command line of joular-bpf, and one that shows its exit code; returns what a row shows of it.
fn typed(terminal: &Terminal, words: &[&str]) -> Result<String> {
    let line = [words, &MODELLED[..]].concat().join(" ");
    terminal.run(&format!("{} {line}; echo \"code $?\"", paths::joular_bpf().display()))?;
    Ok(format!("joular-bpf {line}"))
}

/// The table has a method where there is little room, and no copy of it is left behind.
fn live_table(walk: &mut Walk, pid: &str) -> Result<()> {
    let terminal = Terminal::open(40, 12, None)?;
    let line = typed(&terminal, &["record", "-p", pid, "-d", "6s", "--no-output"])?;
    let is_shown = |screen: &str| screen.contains("METHOD") && screen.contains("Split.heavy");
    let screen = terminal.wait("a method in the live table", is_shown)?;
    terminal.wait_text("code 0")?;
    let history = terminal.history()?;
    let tables = history.lines().filter(|line| line.starts_with(TABLE)).count();
    ensure!(tables == 1, "{tables} tables in\n{history}");
    walk.saw(&format!("{line}, on 40x12"), &format!("{}; one table is left", line_with(&screen, "Split.heavy")?));
    Ok(())
}

fn whole_terminal(walk: &mut Walk, pid: &str) -> Result<()> {
    let terminal = Terminal::open(80, 24, None)?;
    let line = typed(&terminal, &["top", "-p", pid])?;
    let is_shown = |screen: &str| ["(modelled)", "PROCESS", "Split"].iter().all(|part| screen.contains(part));
    let screen = terminal.wait("the process in top", is_shown)?;
    ensure!(terminal.is_alternate()?, "it is not on a screen of its own:\n{screen}");
    let heading = line_with(&screen, "(modelled)")?;
    terminal.keys(&["q"])?;
    terminal.wait_text("code 0")?;
    ensure!(!terminal.is_alternate()?, "the terminal is not as it was");
    walk.saw(&format!("{line}, on 80x24, then q"), &heading);
    Ok(())
}

fn lines_only(walk: &mut Walk, pid: &str) -> Result<()> {
    // Wide, so that no line is broken.
    let terminal = Terminal::open(300, 60, Some("dumb"))?;
    let line = typed(&terminal, &["record", "-p", pid, "-d", "3s", "--no-output"])?;
    terminal.wait_text("code 0")?;
    let history = terminal.history()?;
    ensure!(!history.lines().any(|line| line.starts_with(TABLE)), "a table on a terminal of lines:\n{history}");
    ensure!(!history.contains("[J") && !history.contains("[0m"), "escape codes:\n{history}");
    let seen = line_with(&history, " J so far ").with_context(|| history.clone())?;
    walk.saw(&format!("TERM=dumb {line}"), &seen);
    Ok(())
}
