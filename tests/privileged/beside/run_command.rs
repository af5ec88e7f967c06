//! Tests `run`: the command is measured from its first instruction to its last with all that it starts, as its user,
//! with its own output, exit code and signals.

use std::{fs, os::unix::fs::MetadataExt as _, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    paths,
    process::{Finished, Running},
    profiler::Output,
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(60);

fn spawn(options: &[&str], script: &str) -> Result<Running> {
    // A shell cannot trap signals that were ignored when it began, as they are under `nohup`.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(paths::joular_bpf());
    command.args(["run", "--energy", "model"]).args(options).args(["--", "sh", "-c", script]);
    Running::spawn("joular-bpf run", &mut command)
}

fn run(options: &[&str], script: &str) -> Result<Finished> {
    spawn(options, script)?.finish(LIMIT)
}

#[test]
fn exit_codes_and_signals_are_the_commands() -> Result<()> {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        let finished = run(&["--quiet"], script)?;
        ensure!(finished.code() == Some(code), "{script}: {finished:?}");
    }
    for (program, code, cause) in [("/nowhere/at-all", 127, "No such file"), ("/etc/passwd", 126, "Permission denied")]
    {
        let mut command = Command::new(paths::joular_bpf());
        let finished =
            Running::spawn("joular-bpf run", command.args(["run", "--quiet", "--", program]))?.finish(LIMIT)?;
        ensure!(finished.code() == Some(code) && finished.stderr.contains(cause), "{program}: {finished:?}");
    }
    Ok(())
}

#[test]
fn signals_are_handed_on() -> Result<()> {
    for (signal, code) in [(Signal::TERM, 41), (Signal::INT, 42), (Signal::USR1, 43), (Signal::HUP, 44)] {
        let traps = "trap 'exit 41' TERM; trap 'exit 42' INT; trap 'exit 43' USR1; trap 'exit 44' HUP";
        let mut running = spawn(&["--quiet"], &format!("{traps}; echo ready; while :; do sleep 0.05; done"))?;
        running.wait_stdout("ready", LIMIT)?;
        running.signal(signal)?;
        let finished = running.finish(LIMIT)?;
        ensure!(finished.code() == Some(code), "{signal:?}: {finished:?}");
    }
    Ok(())
}

/// A terminal sends what a key asks for to the command, too. What a program sends reaches joular-bpf alone.
#[test]
fn in_a_terminal_a_signal_of_a_program_is_handed_on_and_one_of_a_key_reaches_the_command_once() -> Result<()> {
    const INTERRUPT: &str = "\u{3}";
    const QUIT: &str = "\u{1c}";
    let traps = "trap 'i=$((i+1)); echo int $i' INT; trap 'q=$((q+1)); echo quit $q' QUIT; \
                 trap 'echo so far $i $q' USR1; trap 'exit 41' TERM";
    let script = format!("stty -echo; i=0; q=0; {traps}; echo parent $PPID; while :; do sleep 0.05; done");
    let line = format!(
        "exec env --default-signal {} run --quiet --energy model -- sh -c \"$SCRIPT\"",
        paths::joular_bpf().display()
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]).env("SCRIPT", script);
    let mut terminal = Running::spawn("script", &mut command)?;
    let parent = terminal.wait_stdout("parent ", LIMIT)?;
    let pid = parent.trim().trim_start_matches("parent ").parse().ok().and_then(Pid::from_raw).context("a pid")?;
    for (sent, key, signal, name) in [(1, INTERRUPT, Signal::INT, "int"), (1, QUIT, Signal::QUIT, "quit")] {
        kill_process(pid, signal)?;
        terminal.wait_stdout(&format!("{name} {sent}"), LIMIT)?;
        terminal.say(key)?;
        terminal.wait_stdout(&format!("{name} {}", sent + 1), LIMIT)?;
    }
    // Signals are handed on in their order: a key's would have come before this one.
    kill_process(pid, Signal::USR1)?;
    let so_far = terminal.wait_stdout("so far ", LIMIT)?;
    ensure!(so_far.trim() == "so far 2 2", "{so_far}");
    kill_process(pid, Signal::TERM)?;
    let finished = terminal.finish(LIMIT)?;
    ensure!(finished.code() == Some(41), "{finished:?}");
    Ok(())
}

#[test]
fn output_is_the_commands_and_totals_are_on_standard_error() -> Result<()> {
    let finished = run(&[], "echo out; echo err >&2")?;
    ensure!(finished.stdout == "out", "{finished:?}");
    ensure!(
        finished.stderr.starts_with("err\n") && finished.stderr.contains("ended by end of the command"),
        "{finished:?}"
    );
    let finished = run(&["--json"], "echo out")?;
    ensure!(finished.stdout == "out" && finished.stderr.contains("\"type\":\"summary\""), "{finished:?}");
    Ok(())
}

#[test]
fn all_that_the_command_starts_is_recorded_to_the_nanosecond_it_used() -> Result<()> {
    let output = Output::new()?;
    let directory = output.dir().to_str().context("a path of text")?;
    // The shell's own account of itself and of all children that it waited for, in hundredths of a second.
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let script =
        format!("sh -c '{busy}'; (exec -a renamed sh -c '{busy}') 2>/dev/null || sh -c '{busy}'; {busy}; times");
    let finished = run(&["--quiet", "--output", directory], &script)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let seconds = |text: &str| -> Result<f64> {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').context("minutes and seconds")?;
        Ok(minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?)
    };
    let told: f64 = finished.stdout.split_whitespace().map(seconds).sum::<Result<f64>>()?;
    let recorded = output.data.number("SELECT sum(cpu_ns) / 1e9 FROM threads")?;
    // Its four figures are cut to hundredths, and it ends a little later.
    ensure!(told > 0.5 && recorded > told - 0.005 && recorded < told * 1.03 + 0.06, "{recorded} s, it says {told} s");
    ensure!(output.data.number("SELECT count(DISTINCT pid) FROM threads")? >= 3.0);
    Ok(())
}

#[test]
fn the_command_has_the_user_behind_sudo_with_the_same_directory_and_limits() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::os::unix::fs::chown(directory.path(), Some(65534), Some(65534))?;
    let mut command = Command::new("prlimit");
    command.arg("--nofile=200:300").arg(paths::joular_bpf());
    command.args(["run", "--quiet", "--", "sh", "-c", "id -G; echo $HOME; touch file; ulimit -n; pwd"]);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").current_dir(directory.path());
    let finished = Running::spawn("joular-bpf run", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let owner = fs::metadata(directory.path().join("file"))?;
    ensure!((owner.uid(), owner.gid()) == (65534, 65534), "{owner:?}");
    let expected = format!("65534\n/nonexistent\n200\n{}", directory.path().display());
    ensure!(finished.stdout == expected, "{finished:?}");
    Ok(())
}

#[test]
fn children_that_outlive_their_parents_are_of_the_command() -> Result<()> {
    let output = Output::new()?;
    let directory = output.dir().to_str().context("a path of text")?;
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    // Its parent has ended and its session is another one, as a daemon's, before it works; the command waits for a file.
    let script = format!(
        "cd \"$(mktemp -d)\"; (setsid sh -c 'sleep 0.3; {busy}; times > told; touch done' &); \
         while [ ! -e done ]; do sleep 0.05; done; cat told; rm -r \"$PWD\""
    );
    let finished = run(&["--quiet", "--output", directory], &script)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let told = finished.stdout.split_whitespace().next().context("the daemon's account")?;
    let (minutes, seconds) = told.trim_end_matches('s').split_once('m').context("minutes and seconds")?;
    let told = minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?;
    let most =
        output.data.number("SELECT max(cpu) / 1e9 FROM (SELECT sum(cpu_ns) AS cpu FROM threads GROUP BY pid)")?;
    ensure!(told > 0.1 && most > told - 0.01, "{most} s recorded, it says {told} s");
    Ok(())
}

#[test]
fn a_recording_that_cannot_begin_starts_no_command() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let began = directory.path().join("began");
    let mut command = Command::new(paths::joular_bpf());
    command.args(["run", "--energy", "file:/nowhere/at-all", "--", "touch"]).arg(&began);
    let finished = Running::spawn("joular-bpf run", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code().is_some_and(|code| code != 0) && !began.exists(), "{finished:?}");
    Ok(())
}
