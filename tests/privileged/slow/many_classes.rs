//! Tests a JVM that calls methods of a hundred thousand classes. Each has a name of its own, which the profiler has to read, to
//! keep for a while, and to write.

use std::time::Duration;

use anyhow::{Result, ensure};
use joular_tests::{
    java::Workload,
    notes, process,
    profiler::{Output, Run},
};

const CLASSES: u32 = 100_000;
const LENGTH: Duration = Duration::from_secs(60);
/// Of the samples of Java code.
const WHOLE: f64 = 0.995;
/// So many are as many different methods, but for what chance sees twice.
const ENOUGH_METHODS: f64 = 20_000.0;
/// A thousand new stacks a second are kept for some windows, and wait to be written for a minute.
const PEAK_KIB: u64 = 256 * 1024;

#[test]
fn a_hundred_thousand_classes_keep_their_names_in_bounded_memory() -> Result<()> {
    let jvm = Workload::new("ManyClasses").argument(&format!("classes={CLASSES}")).start()?;
    let output = Output::new()?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999").argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    std::thread::sleep(LENGTH);
    let peak = process::status_kib(profiler.pid(), "VmHWM:")?;
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let (samples, whole) = output.data.java_stacks()?;
    let methods = output
        .data
        .number("SELECT count(DISTINCT method)::DOUBLE FROM methods WHERE method LIKE 'Generated______.run'")?;
    let text = format!("{whole} of {samples}, {methods} methods, at most {peak} KiB");
    notes::figure(&text);
    ensure!(whole >= WHOLE, "{text}: {finished:?}");
    ensure!(methods >= ENOUGH_METHODS, "{text}");
    ensure!(peak <= PEAK_KIB, "{text}");
    Ok(())
}
