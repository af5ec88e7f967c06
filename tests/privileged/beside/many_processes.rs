//! Tests that more targets are recorded than this process may have open files.

use std::process::{Child, Command};

use anyhow::{Result, ensure};
use joular_tests::{
    paths,
    process::Running,
    profiler::{END, Output},
};

/// Twice the open files that the recorder may have.
const PROCESSES: usize = 512;
const OPEN_FILES: usize = 256;

struct Crowd(Vec<Child>);

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

#[test]
fn more_processes_than_open_files_are_recorded() -> Result<()> {
    let mut crowd = Crowd(Vec::new());
    for _ in 0..PROCESSES {
        // Each wakes now and then, so that it has time in some window, and leaves the CPUs to the tests beside it.
        let script = "i=0; while [ $i -lt 150 ]; do sleep 2; i=$((i+1)); done";
        crowd.0.push(Command::new("sh").args(["-c", script]).spawn()?);
    }
    let (pids, output) = (crowd.0.iter().map(|child| child.id().to_string()).collect::<Vec<_>>(), Output::new()?);
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={OPEN_FILES}:{OPEN_FILES}")).arg(paths::joular_bpf());
    command.args(["--energy", "model", "--quiet", "--duration", "5s", "--pid", &pids.join(","), "--output"]);
    let finished = Running::spawn("joular-bpf", command.arg(output.dir()))?.finish(END * 2)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(finished.stderr.contains(&format!("recording {PROCESSES} processes")), "{finished:?}");
    let recorded = output.data.number("SELECT count(DISTINCT pid) FROM threads WHERE cpu_ns > 0")?;
    ensure!(recorded == PROCESSES as f64, "{recorded} of {PROCESSES} processes have time: {finished:?}");
    Ok(())
}
