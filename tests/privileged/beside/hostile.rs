//! Tests hostile targets: their memory or their files are on a file system that does not answer, or there is
//! no end to what they show. They hold up nobody: windows end in time, other targets have their names, and
//! the run ends when it is told to.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    fakes::{Fakes, PAGE},
    fuse::Mirror,
    java::{Jvm, Workload},
    jdk::Jdk,
    process::Running,
    profiler::{Output, Profiler, Run},
    schedstat,
};
use serde_json::Value;

const WINDOWS: usize = 6;
/// Of one second each: nothing is waited for longer than that.
const LONGEST_NS: u64 = 2_500_000_000;
const FAKES: usize = 10;
/// They keep the CPUs busy, so that the profiler may be late.
const LONGEST_WITH_FAKES_NS: u64 = 1_500_000_000;

fn busy(jdk: &Jdk) -> Workload {
    Workload::new("Busy").dont_inline("Busy::spin").jdk(jdk)
}

/// Records processes, of which some are hostile.
fn record(output: &Output, pids: &[u32]) -> Result<Profiler> {
    let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let run = Run::modelled().with("--pid", pids).with("--frequency", "199").argument("--json");
    run.output(output.dir()).start()
}

fn expect_windows(profiler: &mut Profiler, longest_ns: u64) -> Result<()> {
    for number in 0..WINDOWS {
        let window: Value = serde_json::from_str(&profiler.wait_window()?)?;
        let length_ns = window["length_ns"].as_u64().context("no length")?;
        ensure!(length_ns < longest_ns, "window {number} took {length_ns} ns");
    }
    Ok(())
}

/// Its methods have names, and its time is all there.
fn expect_named(output: &Output, jvm: &Jvm) -> Result<()> {
    let pid = jvm.pid();
    let named = output.data.number(&format!(
        "SELECT coalesce(sum(self_samples) FILTER (method = 'Busy.spin'), 0)::DOUBLE / sum(self_samples)
         FROM methods WHERE pid = {pid}"
    ))?;
    ensure!(named > 0.9, "{named} of the samples are in Busy.spin");
    Ok(())
}

#[test]
fn memory_that_never_comes_holds_up_nobody() -> Result<()> {
    let (fakes, output) = (Fakes::new()?, Output::new()?);
    let mirror = fakes.mirror()?;
    let hostile = fakes.start(&mirror.path().join(PAGE))?;
    mirror.die();
    let jvm = busy(pinned()?).start()?;
    let mut profiler = record(&output, &[hostile.pid(), jvm.pid()])?;
    let before_ns = schedstat::process(hostile.pid())?;
    expect_windows(&mut profiler, LONGEST_NS)?;
    let used_ns = schedstat::process(hostile.pid())? - before_ns;
    ensure!(mirror.has_waiting(), "nobody touched the memory that does not come");
    // That it still waits does not keep it from ending.
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    expect_named(&output, &jvm)?;
    // Its own time is still counted; the first window may have begun later.
    let counted_ns = output.data.number(&format!("SELECT sum(cpu_ns) FROM threads WHERE pid = {}", hostile.pid()))?;
    ensure!(counted_ns > 0.8 * used_ns as f64, "{counted_ns} ns of the {used_ns} ns that it used");
    Ok(())
}

#[test]
fn what_never_ends_costs_others_nothing() -> Result<()> {
    let (fakes, output) = (Fakes::new()?, Output::new()?);
    let hostile = (0..FAKES).map(|_| fakes.start(Path::new("-"))).collect::<Result<Vec<_>>>()?;
    let jvm = busy(pinned()?).start()?;
    let mut pids: Vec<u32> = hostile.iter().map(Running::pid).collect();
    // The last to come, as far as that matters.
    pids.push(jvm.pid());
    let mut profiler = record(&output, &pids)?;
    expect_windows(&mut profiler, LONGEST_WITH_FAKES_NS)?;
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    expect_named(&output, &jvm)
}

fn pinned() -> Result<&'static Jdk> {
    Jdk::all()?.iter().find(|jdk| !jdk.is_system).context("no pinned JDK")
}

#[test]
fn files_that_never_come_hold_up_nobody() -> Result<()> {
    let output = Output::new()?;
    let jdk = pinned()?;
    let mirror = Mirror::mount(jdk.java.parent().and_then(Path::parent).context("a JDK has a directory")?)?;
    let on_mirror = busy(&Jdk { java: mirror.path().join("bin/java"), ..jdk.clone() }).start()?;
    let jvm = busy(jdk).start()?;
    mirror.die();
    let mut profiler = record(&output, &[on_mirror.pid(), jvm.pid()])?;
    expect_windows(&mut profiler, LONGEST_NS)?;
    ensure!(mirror.has_waiting(), "nobody touched the files that do not come");
    // A process that waits for such a file system cannot end before it answers.
    drop(mirror);
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    expect_named(&output, &jvm)
}
