//! Tests a JVM whose classes come and go, so that their code and metadata are overwritten by
//! others: no name may be wrong, and the profiler may not grow or slow down.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    java::{Collector, Jdk},
    known::{self, CallLines, Report, Root},
    process,
    profiler::{Output, Run},
    schedstat,
};

/// What is not asked for any more is kept for at most 64 windows of a second.
const WARM_UP: Duration = Duration::from_secs(70);
const HALF: Duration = Duration::from_secs(25);
/// What is held is the least of so many looks: a flush every five seconds takes memory for a moment.
const LOOKS: u32 = 60;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Of memory: what a run is allowed at all, and what the second half may add.
const PEAK_KIB: u64 = 128 * 1024;
const GROWTH_KIB: u64 = 12 * 1024;

/// What the profiler used in a stretch of time, and holds at its end.
struct Use {
    /// Its CPU time for each second of the JVM's: other tests leave that more or less of a CPU.
    cpu_ratio: f64,
    resident_kib: u64,
}

impl Use {
    fn measure(profiler: u32, jvm: u32, length: Duration) -> Result<Self> {
        let before = [schedstat::threads(profiler)?, schedstat::threads(jvm)?];
        thread::sleep(length);
        let [profiler_ns, jvm_ns] = [on_cpu_ns(&before[0], profiler)?, on_cpu_ns(&before[1], jvm)?];
        Ok(Self { cpu_ratio: profiler_ns as f64 / jvm_ns as f64, resident_kib: held_kib(profiler)? })
    }
}

/// What a process used since then. Of a thread that ended in between nothing is known.
fn on_cpu_ns(before: &BTreeMap<u32, u64>, pid: u32) -> Result<u64> {
    let since = |(tid, now): (u32, u64)| now - before.get(&tid).copied().unwrap_or_default();
    Ok(schedstat::threads(pid)?.into_iter().map(since).sum())
}

fn held_kib(pid: u32) -> Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..LOOKS {
        least = least.min(process::status_kib(pid, "VmRSS:")?);
        thread::sleep(LOOK_EVERY);
    }
    Ok(least)
}

#[test]
fn two_minutes_of_class_loading_leaves_no_wrong_name_and_no_growing_cost() -> Result<()> {
    let jdk = Jdk::pinned()?.find(|jdk| jdk.release == 21).context("no JDK 21")?;
    let output = Output::new()?;
    let workload = known::workload().jdk(jdk).flag(&Collector::Parallel.flag()).argument("churn-0").argument("churn-1");
    // Code has little room, too: it is overwritten as soon as it is not used.
    let jvm = workload.flag("-XX:ReservedCodeCacheSize=8m").flag("-XX:MaxMetaspaceSize=64m").start()?;
    // Often written, so that what waits for it does not count as growth.
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "499").with("--flush", "5s").argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    let measure = |length| Use::measure(profiler.pid(), jvm.pid(), length);
    let (warm, halves) = (measure(WARM_UP)?, [measure(HALF)?, measure(HALF)?]);
    let peak = process::status_kib(profiler.pid(), "VmHWM:")?;
    profiler.stop()?;

    let stacks = known::stacks(&output.data, jvm.pid())?;
    let report = Report::of(format!("{jdk} churn"), &stacks, &CallLines::read()?, Root::Native);
    report.save()?;
    print!("{report}");
    let total = report.total();
    assert!(total.samples() > 5000.0, "only {} samples", total.samples());
    // What was gone when it was looked up may be marked; nothing may be wrong.
    assert!(total.right() + total.marked >= 0.995 * total.samples(), "{report}{:#?}", report.complaints(0.0));
    assert_eq!(total.wrong_method, 0.0, "{:#?}", report.complaints(0.0));
    // How much is gone by then, depends on when a busy machine lets the profiler run.
    assert!(total.marked <= 0.25 * total.samples(), "{report}");

    assert!(peak <= PEAK_KIB, "{peak} KiB of memory");
    let growth = halves[1].resident_kib.saturating_sub(halves[0].resident_kib);
    assert!(growth <= GROWTH_KIB, "{} KiB after warming up, {growth} more in the second half", warm.resident_kib);
    let ratio = halves[1].cpu_ratio / halves[0].cpu_ratio;
    assert!(ratio <= 1.5, "the second half cost {ratio:.2} times what the first did");
    Ok(())
}
