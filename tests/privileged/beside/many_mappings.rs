//! Tests a JVM that has mapped tens of thousands of files, most of them below the JVM's library.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{
    chance::repeat_once,
    java::{Jvm, Workload},
    notes,
    profiler::{END, Output, Run},
};

/// Nearly as many as the kernel allows by default.
const MAPPINGS: usize = 60_000;
/// Their list is longer than what once was read of one.
const LONG: usize = 8 << 20;
const LIMIT: Duration = Duration::from_secs(20);
const WHOLE: f64 = 0.995;
const ENOUGH_SAMPLES: f64 = 100.0;

/// How many lines of a process's list are before the code of libjvm, and how many bytes.
fn below_libjvm(pid: u32) -> Result<(usize, usize)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let is_code = |line: &str| line.contains(" r-xp ") && line.ends_with("/libjvm.so");
    let below: Vec<&str> = maps.lines().take_while(|line| !is_code(line)).collect();
    Ok((below.len(), below.iter().map(|line| line.len() + 1).sum()))
}

/// How many samples of Java code there are, and which part of them have whole stacks.
fn expect_whole_stacks(jvm: &Jvm, what: &str, seconds: u32) -> Result<()> {
    let output = Output::new()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", format!("{seconds}s")).with("--frequency", "999");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let (samples, whole) = output.data.java_stacks()?;
    let text = format!("{what}: {whole} of {samples}");
    notes::figure(&text);
    ensure!(samples > ENOUGH_SAMPLES && whole >= WHOLE, "{text}: {finished:?}");
    ensure!(!format!("{finished:?}").contains("not_kept"), "nothing of it is left out: {finished:?}");
    Ok(())
}

#[test]
fn a_jvm_with_many_mappings_has_whole_stacks() -> Result<()> {
    let jvm = Workload::new("ManyMappings").argument(&format!("mappings={MAPPINGS}")).start()?;
    let (lines, bytes) = below_libjvm(jvm.pid())?;
    ensure!(lines > MAPPINGS && bytes > LONG, "{lines} mappings, {bytes} bytes are below libjvm.so");
    let what = format!("{lines} mappings, {bytes} bytes below libjvm.so");
    repeat_once(|measures| expect_whole_stacks(&jvm, &what, 3 * measures))
}
