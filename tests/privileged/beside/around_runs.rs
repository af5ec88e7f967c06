//! Tests the shell commands that run before and after each run of an experiment.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{clock::wait_for, profiler::Output};
use rustix::process::Signal;

use super::experiments::{LIMIT, log, run, runs, spawn};

/// What commands around runs and the command itself have written, a word each.
fn words(file: &Path) -> Result<Vec<String>> {
    Ok(fs::read_to_string(file)?.split_whitespace().map(ToOwned::to_owned).collect())
}

#[test]
fn commands_around_runs_come_before_and_after_each_and_only_the_same_ones_go_on() -> Result<()> {
    let output = Output::new()?;
    let dir = output.dir().to_str().context("a path of text")?.to_owned();
    let file = output.beside("said");
    let shown = file.display();
    let (prepare, cleanup) = (format!("echo before-{{n}} >> '{shown}'"), format!("echo after-{{n}} >> '{shown}'; cat"));
    let script = format!("echo run-{{n}} >> '{shown}'");
    let common = ["--repeat", "2", "--warmup", "1", "--output", &dir, "--parameter", "n=7", "--cleanup", &cleanup];
    let of =
        |prepare: &str, command: &str| run(&[&common[..], &["--prepare", prepare, "--", "sh", "-c", command]].concat());
    let finished = of(&prepare, &script)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let expected = ["before-7", "run-7", "after-7"].repeat(3);
    ensure!(words(&file)? == expected, "{:?}", words(&file)?);
    let other = of("true", &script)?;
    ensure!(other.code() == Some(6) && other.stderr.contains("--prepare differs"), "{other:?}");
    ensure!(words(&file)? == expected, "an experiment that is refused runs nothing");
    Ok(())
}

#[test]
fn a_command_before_or_after_a_run_that_fails_ends_the_experiment_and_is_named() -> Result<()> {
    for (options, expected, said) in [
        (["--prepare", "exit 3", "--cleanup", "echo after >> "], "--prepare of base ended with exit code 3", vec![]),
        (
            ["--prepare", "echo before >> ", "--cleanup", "exit 4;"],
            "--cleanup of base ended with exit code 4",
            vec!["before"],
        ),
    ] {
        let output = Output::new()?;
        let dir = output.dir().to_str().context("a path of text")?.to_owned();
        let file = output.beside("said");
        fs::write(&file, "")?;
        let options = options.map(|text| match text.strip_suffix(">> ") {
            Some(text) => format!("{text} >> '{}'", file.display()),
            None => text.to_owned(),
        });
        let options = options.each_ref().map(String::as_str);
        let finished = run(&[&options[..], &["--repeat", "2", "--output", &dir, "--", "true"]].concat())?;
        ensure!(finished.code() == Some(1) && finished.stderr.contains(expected), "{finished:?}");
        ensure!(words(&file)? == said, "{:?}", words(&file)?);
        // The run before a cleanup that fails was measured all the same.
        ensure!(runs(&log(output.dir())?).len() == said.len(), "{}", log(output.dir())?);
    }
    Ok(())
}

/// A run that fails is cleaned up after, and so is one that is interrupted.
#[test]
fn what_was_prepared_is_undone_after_a_run_that_does_not_count() -> Result<()> {
    let output = Output::new()?;
    let (began, file) = (output.beside("began"), output.beside("said"));
    let cleanup = format!("echo after >> '{}'", file.display());
    let failed = run(&["--repeat", "2", "--cleanup", &cleanup, "--", "false"])?;
    ensure!(failed.code() == Some(1) && failed.stderr.contains("base ended with exit code 1"), "{failed:?}");
    ensure!(words(&file)? == ["after"], "{:?}", words(&file)?);
    let script = format!("touch '{}'; exec sleep 100", began.display());
    let running = spawn(&["--repeat", "2", "--cleanup", &cleanup, "--", "sh", "-c", &script])?;
    wait_for("the command to begin", LIMIT, || Ok(began.exists().then_some(())))?;
    running.signal(Signal::TERM)?;
    let finished = running.finish(LIMIT)?;
    ensure!(finished.code() == Some(143) && words(&file)? == ["after", "after"], "{finished:?}");
    Ok(())
}

#[test]
fn an_experiment_that_is_asked_to_end_while_it_prepares_measures_nothing() -> Result<()> {
    let output = Output::new()?;
    let (began, ran) = (output.beside("began"), output.beside("ran"));
    let prepare = format!("touch '{}'; exec sleep 100", began.display());
    let mut words = vec!["--repeat", "2", "--prepare", &prepare, "--", "touch"];
    words.extend(ran.to_str());
    let running = spawn(&words)?;
    wait_for("the preparation to begin", LIMIT, || Ok(began.exists().then_some(())))?;
    running.signal(Signal::TERM)?;
    let finished = running.finish(LIMIT)?;
    ensure!(finished.code() == Some(143) && finished.stderr.contains("interrupted"), "{finished:?}");
    ensure!(!ran.exists(), "{finished:?}");
    Ok(())
}

#[test]
fn each_variant_may_have_commands_of_its_own() -> Result<()> {
    let output = Output::new()?;
    let file = output.beside("said");
    let say = |word: &str| format!("echo {word} >> '{}'", file.display());
    let variants = ["old", "new"].map(|name| format!("{name}=sh -c 'echo run-{name} >> \"{}\"'", file.display()));
    let [old, new, after] = ["before-old", "before-new", "after"].map(say);
    let options = ["--repeat", "3", "--variant", &variants[0], "--variant", &variants[1]];
    let finished = run(&[&options[..], &["--prepare", &old, "--prepare", &new, "--cleanup", &after]].concat())?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let words = words(&file)?;
    let of = |name: &str| ["before-", "run-"].map(|place| format!("{place}{name}"));
    for runs in words.chunks(3) {
        let is_whole = ["old", "new"].into_iter().any(|name| runs[..2] == of(name)) && runs[2] == "after";
        ensure!(is_whole, "{words:?}");
    }
    ensure!(words.len() == 18 && words.iter().filter(|word| *word == "run-new").count() == 3, "{words:?}");
    Ok(())
}
