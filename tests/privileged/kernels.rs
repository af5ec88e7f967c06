//! Other kernels than the one that runs here, started in virtual machines: the
//! programs load there, attach, and see what runs, by name and for how long.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    kernels::{self, Kernel},
    paths,
};
use serde_json::Value;

/// An emulated machine takes seconds; on a loaded one a minute.
const LIMIT: Duration = Duration::from_secs(180);

/// A process that is busy all the time, of which everything must be found out.
const SCRIPT: &str = "\
    (sleep 1; echo burn 60000; sleep 60) | burner 100 &\n\
    joular-bpf doctor\n\
    joular-bpf --all --frequency 199 --duration 4s --energy model --model-watts 10:30 --no-output --json\n\
    echo exit code $?";

/// What joular-bpf says on a kernel.
fn record(kernel: &Kernel) -> Result<String> {
    let mut root = kernels::root(SCRIPT)?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    root.program("/bin/burner", Path::new(env!("CARGO_BIN_EXE_burner")))?;
    let finished = kernel.boot(root, LIMIT)?;
    assert!(finished.stdout.contains("exit code"), "{finished:?}");
    // A serial console ends its lines as teletypes do.
    Ok(finished.stdout.replace('\r', ""))
}

fn check(kernel: &Kernel) -> Result<()> {
    let said = record(kernel)?;
    assert!(said.contains("\nexit code 0\n"), "Linux {}:\n{said}", kernel.release);
    assert!(said.contains("they load and pass the verifier"), "{said}");
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let windows: Vec<Value> = records.filter(|record| record["type"] == "window").collect();
    let (mut length_ns, mut cpu_ns, mut samples, mut lost) = (0, 0, 0, Vec::new());
    let mut methods = Vec::new();
    for window in &windows {
        let processes = window["processes"].as_array().context("no processes")?;
        let burner = processes.iter().find(|process| process["comm"] == "burner").context("no burner")?;
        length_ns += window["length_ns"].as_u64().unwrap_or(0);
        cpu_ns += burner["cpu_ns"].as_u64().unwrap_or(0);
        samples += burner["samples"].as_u64().unwrap_or(0);
        let own = window["methods"].as_array().into_iter().flatten().filter(|method| method["pid"] == burner["pid"]);
        methods.extend(own.filter_map(|method| method["method"].as_str().map(str::to_owned)));
        lost.extend(window["audit"]["lost"].as_object().into_iter().flatten().map(|(cause, _)| cause.clone()));
    }
    let seconds = length_ns as f64 / 1e9;
    assert!(seconds > 3.0, "{seconds} s: {said}");
    assert!(cpu_ns as f64 > 0.5e9 * seconds, "the burner ran for {cpu_ns} ns in {seconds} s");
    assert!(samples as f64 > 40.0 * seconds, "{samples} samples of the burner in {seconds} s");
    assert!(methods.iter().any(|method| method.contains("burner::burn")), "its methods: {methods:?}");
    // An emulated machine may be late, but it loses no stack.
    lost.retain(|cause| cause.contains("stack") || cause.contains("full"));
    assert_eq!(lost, Vec::<String>::new(), "{said}");
    Ok(())
}

#[test]
fn debians_kernels_load_the_programs_and_see_what_runs() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    for kernel in kernels::all() {
        check(&kernel).with_context(|| format!("Linux {}", kernel.release))?;
    }
    Ok(())
}
