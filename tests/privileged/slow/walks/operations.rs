//! An SRE records again and again into one directory, and looks while a recording goes on.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::unix_us,
    paths,
    process::{Finished, Running},
};

use super::{LIMIT, Walk, joular, json, line_with, record, split};

/// A user without rights: `nobody`.
const NOBODY: u32 = 65534;
const DAY_MS: i64 = 86_400_000;

pub fn walk() -> Result<()> {
    let mut walk = Walk::of("SRE")?;
    let jvm = split()?;
    let (pid, dir) = (jvm.pid().to_string(), walk.at("out"));
    let short = ["-p", &pid, "-d", "3s", "-o", &dir];
    walk.step(record(&short), 0, |said| line_with(&said.stdout, "ended by duration"))?;
    let between_us = unix_us();
    walk.step(record(&short), 0, |said| {
        line_with(&said.stderr, "has 1 earlier run: reports sum all; --run last shows this recording alone")
    })?;
    walk.step(joular(&["runs", &dir]), 0, |said| {
        ensure!(said.stdout.lines().count() == 3, "not two runs");
        line_with(&said.stdout, "duration")
    })?;
    walk.step(joular(&["report", &dir]), 0, |said| line_with(&said.stdout, "2 runs on "))?;
    walk.step(joular(&["report", &dir, "--run", "last"]), 0, |said| line_with(&said.stdout, "1 run on "))?;
    times(&mut walk, &dir, between_us)?;
    while_it_records(&mut walk, &pid)?;
    walk.step(joular(&["report", &walk.at("no-such")]), 1, |said| {
        line_with(&said.stderr, "record into it first, or name the directory that --output named")
    })?;
    as_somebody_else(&mut walk, &dir)?;
    walk.end();
    Ok(())
}

/// Times of the day, times that are none, and times at which there was nothing.
fn times(walk: &mut Walk, dir: &str, between_us: i64) -> Result<()> {
    let energy = |said: &Finished| {
        let report = json(said)?;
        report["selection"]["energy_uj"].as_u64().with_context(|| format!("no energy: {report}"))
    };
    let all = walk.step(joular(&["report", dir, "--json"]), 0, |said| Ok(format!("{} µJ", energy(said)?)))?;
    let whole = energy(&all)?;
    let clock = time_of_day(between_us);
    walk.step(joular(&["report", dir, "--since", &clock, "--json"]), 0, |said| {
        let later = energy(said)?;
        ensure!((1..whole).contains(&later), "{later} of {whole}");
        Ok(format!("{later} µJ"))
    })?;
    walk.step(joular(&["report", dir, "--since=-5s"]), 2, |said| {
        line_with(&said.stderr, "is not a time: write 2026-03-01T12:00:00Z or with an offset")
    })?;
    let page = walk.at("page.html");
    walk.step(joular(&["html", dir, "--since", "1h", "-o", &page]), 1, |said| {
        line_with(&said.stderr, "--since and --until are times in UTC, or times into the run")
    })?;
    Ok(())
}

/// UTC, as `--since` takes it.
fn time_of_day(moment_us: i64) -> String {
    let ms = (moment_us / 1000).rem_euclid(DAY_MS);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A directory to which little is written yet is not one of nothing.
fn while_it_records(walk: &mut Walk, pid: &str) -> Result<()> {
    let dir = walk.at("under-way");
    let mut profiler = record(&["-p", pid, "--json", "-o", &dir]).start()?;
    profiler.wait_window()?;
    let by = format!("a recording goes on (process {}): it writes its windows once a minute", profiler.pid());
    walk.step(joular(&["report", &dir]), 0, |said| line_with(&said.stderr, &by))?;
    let by = format!("goes on (process {})", profiler.pid());
    walk.step(joular(&["runs", &dir]), 0, |said| line_with(&said.stdout, &by))?;
    profiler.stop().map(drop)
}

/// A copy of the program, because the walk's user may not even reach where it was built.
fn as_somebody_else(walk: &mut Walk, dir: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("joular-bpf");
    fs::copy(paths::joular_bpf(), &program)?;
    for path in [folder.path(), program.as_path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let mut command = Command::new(&program);
    command.args(["report", dir]).uid(NOBODY).gid(NOBODY);
    let finished = Running::spawn("joular-bpf of nobody", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(1), "{finished:?}");
    let seen = line_with(&finished.stderr, "it is another user's: read it as its owner or with sudo")?;
    walk.saw("sudo -u nobody joular-bpf report out", &seen);
    Ok(())
}
