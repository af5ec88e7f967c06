//! Tests stacks through code that most programs run rarely, and some all the time: C1's search among the
//! types of a class, which has no frame and whose arguments are pushed; and the start of a thread, during
//! which the C library's table says nothing.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::{
    java::Workload,
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
const WHOLE: f64 = 0.995;

/// Samples of stacks that contain a text, and the parts that are whole and that contain another.
fn look(output: &Output, contains: &str, caller: &str) -> Result<[f64; 3]> {
    let rows = output.data.rows(&format!(
        "SELECT coalesce(sum(samples), 0)::DOUBLE AS n,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE / greatest(sum(samples), 1) AS whole,
           coalesce(sum(samples) FILTER (contains(folded, '{caller}')), 0)::DOUBLE / greatest(sum(samples), 1) AS called
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)
         WHERE category = 'java' AND contains(folded, '{contains}')"
    ))?;
    let row = rows.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
    Ok([number("n")?, number("whole")?, number("called")?])
}

/// Records a JVM for so many seconds; `None` if there are too few samples to say anything.
fn judge(jdk: &Jdk, seconds: u32) -> Result<Option<()>> {
    let output = Output::new()?;
    let workload = Workload::new("RareCode").jdk(jdk).flag("-XX:TieredStopAtLevel=1");
    let jvm = workload.dont_inline("RareCode::checks").dont_inline("RareCode::starts").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", format!("{seconds}s")).with("--frequency", "1999");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    drop(jvm);
    for (what, least, caller) in
        [("slow_subtype_check", 300.0, "RareCode.checks;"), ("kernel_clone", 10.0, "RareCode.starts;")]
    {
        let [samples, whole, called] = look(&output, what, caller)?;
        let text = format!("{jdk}: {what}: {samples} samples, {whole:.4} whole, {called:.4} called by {caller}");
        notes::figure(&text);
        if samples < least {
            return Ok(None);
        }
        ensure!(whole >= WHOLE && called >= WHOLE, "{text}");
    }
    Ok(Some(()))
}

/// Others may have most of the CPUs' time: then it takes longer.
fn expect(jdk: &Jdk) -> Result<()> {
    for seconds in [2, 6, 15] {
        if judge(jdk, seconds)?.is_some() {
            return Ok(());
        }
    }
    bail!("{jdk}: too few samples in 15 s")
}

#[test]
fn searches_among_types_and_starts_of_threads_have_whole_stacks() -> Result<()> {
    Jdk::all()?.iter().try_for_each(expect)
}
