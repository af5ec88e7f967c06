//! Tests what commands say of themselves: by lines of their output, by socket and pipe, well and ill.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    browser::{self, Browser},
    dataset::text,
    notes, paths,
    process::{Finished, Running},
    profiler::Output,
};

const LIMIT: Duration = Duration::from_secs(60);

fn run(output: &Output, options: &[&str], command: &[&str]) -> Result<Finished> {
    let mut line = Command::new(paths::joular_bpf());
    line.args(["run", "--energy", "model", "--output"]).arg(output.dir()).args(options).arg("--").args(command);
    Running::spawn("joular-bpf run", &mut line)?.finish(LIMIT)
}

/// What a subcommand says of a data set.
fn on(output: &Output, arguments: &[&str]) -> Result<Finished> {
    let mut line = Command::new(paths::joular_bpf());
    let (subcommand, options) = arguments.split_first().context("a subcommand")?;
    line.arg(subcommand).arg(output.dir()).args(options);
    Running::spawn("joular-bpf", &mut line)?.finish(LIMIT)
}

/// What the table has, each as `kind name phase attributes`.
fn marks(output: &Output) -> Result<Vec<String>> {
    let rows = output.data.rows(
        "SELECT concat_ws(' ', kind, name, coalesce(phase, '-'), attributes) AS mark FROM marks ORDER BY window_start, said_at",
    )?;
    rows.iter().map(|row| Ok(text(row, "mark")?.to_owned())).collect()
}

#[test]
fn lines_of_output_begin_and_end_phases_and_stay_as_they_are() -> Result<()> {
    let output = Output::new()?;
    let rules =
        ["--phase-start", "^=== (?<phase>\\w+)", "--phase-end", "^(?<phase>\\w+) done", "--mark", "GC\\(\\d+\\)"];
    let script = "echo '=== load'; echo '=== parse'; sleep 0.1; echo 'parse done'; echo 'x GC(1) y'; echo 'load done'; \
                  echo '=== load'; sleep 0.1; printf 'load done\\nno end of line'";
    let finished = run(&output, &rules, &["sh", "-c", script])?;
    let expected = "=== load\n=== parse\nparse done\nx GC(1) y\nload done\n=== load\nload done\nno end of line";
    ensure!(finished.code() == Some(0) && finished.stdout == expected, "{finished:?}");
    let expected = [
        "begin load load",
        "begin parse load/parse",
        "end parse load/parse",
        "event GC(1) -",
        "end load load",
        "begin load load",
        "end load load",
    ];
    let found = marks(&output)?;
    ensure!(found == expected, "{found:?}");
    let shown = finished.stderr.lines().find(|line| line.ends_with("2 ×  load")).context("the phase in the summary")?;
    ensure!(shown.contains(" CPU s"), "{finished:?}");
    let chosen = on(&output, &["report", "--phase", "parse", "--by", "process"])?;
    ensure!(chosen.code() == Some(0) && chosen.stdout.starts_with("1 run on "), "{chosen:?}");
    expect_page(&output)
}

/// The web page has a bar for each phase and a tick for each event.
fn expect_page(output: &Output) -> Result<()> {
    let Some(program) = browser::program() else {
        notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    };
    let page = output.beside("page.html");
    let made = on(output, &["html", "--output", page.to_str().context("a path of text")?])?;
    ensure!(made.code() == Some(0), "{made:?}");
    let mut browser = Browser::start(program)?;
    browser.open(&page)?;
    let titles = browser.text(
        "[...document.querySelectorAll('#power-chart .timeline title')].map((title) => title.textContent.split(':')[0].split(' at ')[0]).join(', ')",
    )?;
    ensure!(titles == "load, load/parse, load, GC(1)", "{titles}");
    Ok(())
}

#[test]
fn programs_in_four_languages_mark_as_it_is_documented() -> Result<()> {
    let built = tempfile::tempdir()?;
    let (program, source) = (built.path().join("marks"), |name: &str| paths::root().join("docs/marks").join(name));
    let compiled = Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(source("marks.c")).status()?;
    ensure!(compiled.success(), "compiling docs/marks/marks.c");
    let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let python = joular_tests::python::interpreter()?;
    for command in [
        vec![path(program)],
        vec![path(python), path(source("marks.py"))],
        vec!["java".to_owned(), path(source("Marks.java"))],
        vec!["bash".to_owned(), path(source("marks.sh"))],
    ] {
        let output = Output::new()?;
        let finished = run(&output, &[], &command.iter().map(String::as_str).collect::<Vec<_>>())?;
        ensure!(finished.code() == Some(0) && !finished.stderr.contains("not understood"), "{finished:?}");
        let found = marks(&output)?;
        ensure!(found[..2] == ["begin load load", "end load load"] && found.len() == 3, "{command:?}: {found:?}");
        ensure!(found[2].starts_with("event loaded - sum="), "{command:?}: {found:?}");
        let busy = output.data.number(
            "SELECT sum(cpu_ns) / 1e9 FROM threads WHERE window_start > (SELECT min(window_start) FROM marks WHERE kind = \
             'begin') AND window_start <= (SELECT min(window_start) FROM marks WHERE kind = 'end')",
        )?;
        ensure!(busy > 0.005, "{command:?}: {busy} s of CPU time in the phase");
        // Without joular-bpf, the program does the same.
        let (name, arguments) = command.split_first().context("a command")?;
        let alone = Command::new(name).args(arguments).output()?;
        ensure!(alone.status.success() && alone.stderr.is_empty(), "{command:?} alone: {alone:?}");
    }
    Ok(())
}

#[test]
fn marks_that_never_come_or_come_twice_are_told() -> Result<()> {
    let rules = ["--phase-start", "start", "--phase-end", "stop"];
    for (script, expected) in [
        ("echo none", None),
        ("echo start; echo start; sleep 0.1", Some("1 ×  phase/phase")),
        ("echo stop; echo start; sleep 0.1; echo stop; echo stop", Some("2 marks did not count")),
    ] {
        let output = Output::new()?;
        let finished = run(&output, &rules, &["sh", "-c", script])?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        let is_as_expected =
            expected.map_or(!finished.stderr.contains("Phases"), |expected| finished.stderr.contains(expected));
        ensure!(is_as_expected, "{script}: {finished:?}");
    }
    let output = Output::new()?;
    let began = output.beside("began");
    let finished = run(&output, &["--mark", "a(b"], &["touch", began.to_str().context("a path of text")?])?;
    ensure!(finished.code() == Some(2) && finished.stderr.contains("--mark: 'a(b' is not a pattern"), "{finished:?}");
    ensure!(!began.exists(), "the command was started");
    Ok(())
}

#[test]
fn a_flood_of_marks_costs_little_and_hides_nothing_else() -> Result<()> {
    let flood = "
import os, socket, time
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.connect(os.environ['JOULAR_MARKS'])
pipe = open(os.environ['JOULAR_MARKS_PIPE'], 'wb', buffering=0)
sent, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    sender.send(b'begin a%d' % sent)
    sender.send(b'end')
    sender.send(bytes(100_000))
    sender.send(b'event ' + b'x' * 200)
    pipe.write(b'garbage\\n' * 100)
    sent += 1
print(sent)
";
    let output = Output::new()?;
    let python = joular_tests::python::interpreter()?;
    let finished = run(&output, &[], &[&python.to_string_lossy(), "-c", flood])?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(finished.stderr.contains("lines that were sent as marks were not understood"), "{finished:?}");
    let figures = output.data.rows(
        "SELECT count(*) AS windows, sum(window_ns) / 1e9 AS seconds, sum(cpu_profiler_ns) / 1e9 AS profiler, \
         sum(cpu_inexact_ns) AS inexact FROM windows",
    )?;
    println!("measured: {} repetitions, {:?}", finished.stdout.trim(), figures);
    let number = |column: &str| figures[0][column].as_f64().context("a number");
    // Fifty cuts at once, and a hundred a second.
    let most = 50.0 + 100.0 * number("seconds")? + number("seconds")? + 2.0;
    ensure!(number("windows")? <= most, "{figures:?}");
    ensure!(number("profiler")? < 0.5 * number("seconds")?, "{figures:?}");
    Ok(())
}

#[test]
fn what_the_command_may_say_it_with_is_its_users_and_goes_away() -> Result<()> {
    let mut command = Command::new(paths::joular_bpf());
    command.args(["run", "--quiet", "--energy", "model", "--"]);
    command.args(["sh", "-c", "echo begin a > $JOULAR_MARKS_PIPE && test -w $JOULAR_MARKS && dirname $JOULAR_MARKS"]);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534");
    let finished = Running::spawn("joular-bpf run", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let folder = finished.stdout.trim();
    ensure!(folder.contains("joular-bpf-") && fs::metadata(folder).is_err(), "{folder} is still there");
    Ok(())
}
