//! Tests JVMs that are not HotSpot: nothing is asked of them that they take as an order to write dumps.

use std::{process::Command, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{
    native,
    process::Running,
    profiler::{END, Output, Run},
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);
/// A JVM whose structures make no sense is asked for its perf map after three seconds.
const RECORDED: &str = "8s";

/// Starts a program that has mapped libraries of these names.
fn start(directory: &TempDir, libraries: &[&str]) -> Result<Running> {
    let program = directory.path().join("program");
    let mut command = Command::new(&program);
    native::compile("other_jvm.c", &program)?;
    for name in libraries {
        let library = directory.path().join(name);
        native::compile_library("other_jvm.c", "LIBRARY", &library)?;
        command.arg(library);
    }
    let mut jvm = Running::spawn("a JVM", &mut command)?;
    jvm.wait_stdout("ready", LIMIT)?;
    Ok(jvm)
}

#[test]
fn openj9_is_recognised_and_gets_no_signal() -> Result<()> {
    let (output, directories) = (Output::new()?, [tempfile::tempdir()?, tempfile::tempdir()?]);
    let openj9 = start(&directories[0], &["libjvm.so", "libj9vm29.so"])?;
    let unknown = start(&directories[1], &["libjvm.so"])?;
    let run = Run::modelled().with("--pid", format!("{},{}", openj9.pid(), unknown.pid()));
    let finished = run.with("--duration", RECORDED).output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let notice = format!("process {}: falling back to the perf map: it is OpenJ9", openj9.pid());
    ensure!(finished.stderr.contains(&notice), "{}", finished.stderr);
    ensure!(!openj9.finish(LIMIT)?.stdout.contains("asked"), "it got the signal");
    // Which shows that this test would notice.
    ensure!(unknown.finish(LIMIT)?.stdout.contains("asked"), "what may be HotSpot was not asked");
    Ok(())
}
