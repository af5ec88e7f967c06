//! Tests stacks of virtual threads that leave their carriers in all the ways there are: they are whole, wherever their
//! older frames are.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    java::Workload,
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
/// Of the samples of carriers.
const WHOLE: f64 = 0.995;

const WAYS: [&str; 11] =
    ["stays", "sleeps", "parks", "yields", "locks", "monitors", "waits", "pinned", "queues", "descend", "structured"];

/// Each thread has a carrier of its own, so that all of them run.
const CARRIERS: [&str; 2] =
    ["-Djdk.virtualThreadScheduler.parallelism=64", "-Djdk.virtualThreadScheduler.maxPoolSize=64"];

/// Samples of a way.
struct Samples {
    all: f64,
    whole: f64,
}

fn samples(output: &Output, condition: &str) -> Result<Samples> {
    let rows = output.data.rows(&format!(
        "SELECT coalesce(sum(samples), 0)::DOUBLE AS all_samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE AS whole
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)
         WHERE category = 'java' AND {condition}"
    ))?;
    let row = rows.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
    Ok(Samples { all: number("all_samples")?, whole: number("whole")? })
}

fn expect_whole(jdk: &Jdk, flags: &[&str]) -> Result<()> {
    repeat_once(|measures| judge(jdk, flags, 4 * measures))
}

fn judge(jdk: &Jdk, flags: &[&str], seconds: u32) -> Result<()> {
    let output = Output::new()?;
    let workload = Workload::new("VirtualThreads").jdk(jdk).flag("--enable-preview");
    let jvm = CARRIERS.iter().chain(flags).fold(workload, |workload, flag| workload.flag(flag)).start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", format!("{seconds}s")).with("--frequency", "999");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    drop(jvm);
    let what = format!("{} {flags:?}", jdk.version);
    let carriers = samples(&output, "contains(folded, 'VirtualThreads.')")?;
    let part = carriers.whole / carriers.all;
    notes::figure(&format!("{what}: virtual threads: {} samples, {part:.4} whole", carriers.all));
    ensure!(carriers.all >= 1_000.0 && part >= WHOLE, "{what}: {part} of {} samples", carriers.all);
    for way in WAYS {
        let Samples { all, whole } = samples(&output, &format!("contains(folded, 'VirtualThreads.{way};')"))?;
        // While frames are put into the heap, they are not read there.
        ensure!(all >= 20.0 && whole >= 0.98 * all, "{what}: {way}: {whole} of {all} samples are whole");
    }
    output.data.expect_none(
        "callers that do not call it",
        "SELECT folded FROM stacks WHERE contains(folded, ';VirtualThreads.work')
           AND NOT regexp_matches(folded, 'VirtualThreads[.](stays|sleeps|parks|yields|locks|monitors|waits|pinned|\
             queues|descend|structured|lambda[$]structured[$][0-9]+);VirtualThreads[.]work')",
    )
}

#[test]
fn stacks_of_virtual_threads_are_whole() -> Result<()> {
    let jdks = Jdk::all()?;
    let mut jdks = jdks.iter().filter(|jdk| jdk.release >= 21).peekable();
    ensure!(jdks.peek().is_some(), "no JDK has virtual threads");
    jdks.try_for_each(|jdk| expect_whole(jdk, &[]).and_then(|()| expect_whole(jdk, &["-Xint"])))
}
