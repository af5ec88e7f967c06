//! Tests stacks of virtual threads: they are whole, or say that their older frames are in the heap,
//! which is so after a thread has left its carrier.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
/// Of the samples of carriers.
const FOLLOWED: f64 = 0.995;
/// The first JDK in which a thread within a monitor leaves its carrier.
const LEAVES_WITHIN_MONITORS: u32 = 24;

const WAYS: [&str; 11] =
    ["stays", "sleeps", "parks", "yields", "locks", "monitors", "waits", "pinned", "queues", "descend", "structured"];
/// Ways in which a thread leaves its carrier only where monitors do not keep it there.
const WITHIN_MONITORS: [&str; 3] = ["monitors", "waits", "pinned"];

/// Each thread has a carrier of its own, so that all of them run.
const CARRIERS: [&str; 2] =
    ["-Djdk.virtualThreadScheduler.parallelism=64", "-Djdk.virtualThreadScheduler.maxPoolSize=64"];

/// Samples of a way.
struct Samples {
    all: f64,
    whole: f64,
    /// Also those that end where older frames are in the heap, and then go on in the carrier.
    followed: f64,
}

fn samples(output: &Output, condition: &str) -> Result<Samples> {
    let rows = output.data.rows(&format!(
        "SELECT coalesce(sum(samples), 0)::DOUBLE AS all_samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE AS whole,
           coalesce(sum(samples) FILTER (is_complete OR walk_end = 'frozen'
             AND contains(folded, 'ForkJoinWorkerThread.run')), 0)::DOUBLE AS followed
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)
         WHERE category = 'java' AND {condition}"
    ))?;
    let row = rows.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
    Ok(Samples { all: number("all_samples")?, whole: number("whole")?, followed: number("followed")? })
}

fn expect_followed(jdk: &Jdk, flags: &[&str]) -> Result<()> {
    let output = Output::new()?;
    let workload = Workload::new("VirtualThreads").jdk(jdk).flag("--enable-preview");
    let jvm = CARRIERS.iter().chain(flags).fold(workload, |workload, flag| workload.flag(flag)).start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "4s").with("--frequency", "999");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    drop(jvm);
    let what = format!("{} {flags:?}", jdk.version);
    let carriers = samples(&output, "contains(folded, 'VirtualThreads.')")?;
    let part = carriers.followed / carriers.all;
    notes::figure(&format!(
        "{what}: virtual threads: {} samples, {:.4} whole, {part:.4} whole or with frames in the heap",
        carriers.all,
        carriers.whole / carriers.all
    ));
    ensure!(carriers.all >= 1_000.0 && part >= FOLLOWED, "{what}: {part} of {} samples", carriers.all);
    for way in WAYS {
        // Below a frame of the way itself; what leaves its carrier within has none of that in the heap.
        let Samples { all, whole, followed } = samples(&output, &format!("contains(folded, 'VirtualThreads.{way};')"))?;
        ensure!(all >= 20.0 && followed >= 0.99 * all, "{what}: {way}: {followed} of {all} samples are followed");
        let stays = way == "stays" || jdk.release < LEAVES_WITHIN_MONITORS && WITHIN_MONITORS.contains(&way);
        ensure!(!stays || whole >= 0.99 * all, "{what}: {way}: {whole} of {all} samples are whole");
        let is_left = ["sleeps", "parks", "yields"].contains(&way);
        ensure!(
            !is_left || whole <= 0.01 * all,
            "{what}: {way}: {whole} of {all} samples, whose callers are in the heap"
        );
    }
    output.data.expect_none(
        "callers that do not call it",
        "SELECT folded FROM stacks WHERE contains(folded, ';VirtualThreads.work')
           AND NOT regexp_matches(folded, 'VirtualThreads[.](stays|sleeps|parks|yields|locks|monitors|waits|pinned|\
             queues|descend|structured|lambda[$]structured[$][0-9]+);VirtualThreads[.]work')",
    )
}

#[test]
fn stacks_of_virtual_threads_are_whole_but_for_what_is_in_the_heap() -> Result<()> {
    let jdks = Jdk::all()?;
    let mut jdks = jdks.iter().filter(|jdk| jdk.release >= 21).peekable();
    ensure!(jdks.peek().is_some(), "no JDK has virtual threads");
    jdks.try_for_each(|jdk| expect_followed(jdk, &[]).and_then(|()| expect_followed(jdk, &["-Xint"])))
}
