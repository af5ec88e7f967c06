//! Tests that samples tell whether they interrupted the kernel: stacks of a program that is in it nearly always end there,
//! and those of a program that computes do not.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    notes,
    process::Running,
    profiler::{END, Output, Run},
};

const ENOUGH_SAMPLES: f64 = 100.0;
/// Interrupts and page faults are in the kernel, too, and calls begin and end outside of it.
const REST: f64 = 0.1;

/// Which part of a program's samples has a frame of the kernel as its leaf.
fn in_kernel(name: &str, arguments: &[&str], seconds: u32) -> Result<f64> {
    let (program, output) = (Running::spawn(name, Command::new(name).args(arguments))?, Output::new()?);
    let run = Run::modelled().pid(program.pid()).with("--frequency", "999").with("--duration", format!("{seconds}s"));
    let finished = run.output(output.dir()).finish(END * 2)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let sums = output.data.rows(
        "SELECT sum(samples)::DOUBLE AS samples,
           coalesce(sum(samples) FILTER (frames[-1].kind = 'kernel'), 0)::DOUBLE AS in_kernel
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) USING (stack_id)
         WHERE samples > 0",
    )?;
    let row = sums.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row}"));
    let (samples, in_kernel) = (number("samples")?, number("in_kernel")?);
    let part = in_kernel / samples;
    notes::figure(&format!("{name}: {part:.4} of {samples} samples are in the kernel"));
    ensure!(samples > ENOUGH_SAMPLES, "{name}: {samples} samples");
    Ok(part)
}

#[test]
fn samples_tell_whether_they_interrupted_the_kernel() -> Result<()> {
    repeat_once(|measures| {
        let copies = in_kernel("dd", &["if=/dev/zero", "of=/dev/null", "bs=1M", "status=none"], 3 * measures)?;
        let computes = in_kernel("sh", &["-c", "while :; do :; done"], 3 * measures)?;
        ensure!(copies > 1.0 - REST && computes < REST, "{copies} of the one that copies, {computes} of the other");
        Ok(())
    })
}
