//! Compiles the native workloads of `tests/fixtures/native`.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::paths;

/// Compiles a workload to `program`, optimised and without frame pointers.
pub fn compile(source: &str, program: &Path) -> Result<()> {
    run(source, program, &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"])
}

/// Compiles a source as a library, in which the macro `define` is set.
pub fn compile_library(source: &str, define: &str, library: &Path) -> Result<()> {
    run(source, library, &["-O2", "-shared", "-fPIC", "-D", define])
}

/// Compiles a workload to a `program` that needs no library.
pub fn compile_static(source: &str, program: &Path) -> Result<()> {
    run(source, program, &["-O2", "-static"])
}

fn run(source: &str, target: &Path, flags: &[&str]) -> Result<()> {
    let source = paths::fixtures().join("native").join(source);
    // The compiler that links Rust programs is there wherever they are built.
    let output = Command::new("cc").args(flags).arg("-o").arg(target).arg(source).output()?;
    ensure!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
