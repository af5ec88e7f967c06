//! Compiles the native workloads of `tests/fixtures/native`.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::paths;

/// The compiler that links Rust programs is there wherever they are built.
const COMPILER: &str = "cc";
const MUSL: &str = "musl-gcc";
const OPTIMISED: &[&str] = &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"];

/// Compiles a workload to `program`, optimised and without frame pointers.
pub fn compile(source: &str, program: &Path) -> Result<()> {
    run(COMPILER, source, program, OPTIMISED)
}

/// The same for the C library musl, in which nothing is described.
pub fn compile_for_musl(source: &str, program: &Path) -> Result<()> {
    run(MUSL, source, program, OPTIMISED)
}

/// Whether [`compile_for_musl`] has its compiler.
pub fn has_musl() -> bool {
    Command::new(MUSL).arg("--version").output().is_ok_and(|said| said.status.success())
}

/// Compiles a source as a library, in which the macro `define` is set.
pub fn compile_library(source: &str, define: &str, library: &Path) -> Result<()> {
    run(COMPILER, source, library, &["-O2", "-shared", "-fPIC", "-D", define])
}

/// Compiles a workload to a `program` that needs no library.
pub fn compile_static(source: &str, program: &Path) -> Result<()> {
    run(COMPILER, source, program, &["-O2", "-static"])
}

fn run(compiler: &str, source: &str, target: &Path, flags: &[&str]) -> Result<()> {
    let source = paths::fixtures().join("native").join(source);
    let output = Command::new(compiler).args(flags).arg("-o").arg(target).arg(source).output()?;
    ensure!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
