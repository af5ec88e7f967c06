//! Shows a newcomer the first minute: a Java program, ten seconds of profiling, and the data set
//! read with SQL and pandas.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{java::Workload, paths, python};

use crate::{build, setup, shell};

/// Long enough for one method to stand out, short enough to wait for.
const DURATION: &str = "10s";

pub fn run() -> Result<()> {
    let program = setup::demo(|| build::build(build::Profile::Dev))?;
    let output = paths::target().join("demo");
    if output.exists() {
        // The figures shown are those of this run alone.
        fs::remove_dir_all(&output).with_context(|| format!("removing {}", output.display()))?;
    }

    shell::step("starting a Java program: two threads price, serialise, pack and seal orders");
    let jvm = Workload::new("shop.Main").frame_pointers().argument("60").start()?;

    shell::step(&format!("joular-bpf --pid {} --duration {DURATION} --output target/demo", jvm.pid()));
    let mut profiler = build::profiler(&program);
    profiler.args(["--pid", &jvm.pid().to_string(), "--duration", DURATION, "--output"]).arg(&output);
    let status = profiler.status().context("starting joular-bpf")?;
    ensure!(status.success(), "joular-bpf: {status}");
    drop(jvm);
    read(&output)
}

/// Runs the queries that it shows.
fn read(output: &Path) -> Result<()> {
    shell::step("reading the data set with DuckDB and pandas");
    print!("{}", python::script("demo.py", output, &[])?);
    println!("\nThe data set is in target/demo, its columns are described in docs/schema.md.");
    println!("Next: cargo xtask run -- --comm java --duration 30s --output joular-out");
    Ok(())
}
