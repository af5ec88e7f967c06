//! Tests what the recorder costs where a process has very much of something, beside one that does the same with little of
//! it: two recorders run at once, one for each, and stretches of the same time are compared, so that what else the machine
//! does is in both.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Jvm, Workload},
    notes,
    profiler::{Profiler, Run},
    schedstat,
    statistics::{median, median_interval_95},
};

/// Of its own, so that nobody else records it.
const NAME: &str = "measured-java";
const SECONDS: &str = "seconds=3600";

/// CPU seconds of both recorders in each stretch, after a time in which they read everything for the first time.
fn compare(recorders: [&Profiler; 2], warm_up: Duration, stretch: Duration, count: usize) -> Result<Vec<[f64; 2]>> {
    let used_ns =
        || Ok::<_, anyhow::Error>([schedstat::process(recorders[0].pid())?, schedstat::process(recorders[1].pid())?]);
    thread::sleep(warm_up);
    let (mut before, mut stretches) = (used_ns()?, Vec::new());
    for _ in 0..count {
        thread::sleep(stretch);
        let after = used_ns()?;
        stretches.push([0, 1].map(|at| (after[at] - before[at]) as f64 / 1e9));
        before = after;
    }
    Ok(stretches)
}

/// The median of figures and the interval that it is in with 95 %, as text too.
fn interval(figures: &[f64], what: &str) -> Result<(f64, f64)> {
    let (least, most) = median_interval_95(figures).context("too few stretches")?;
    notes::figure(&format!(
        "{what}: median {:.3}, {least:.3} to {most:.3}, {} stretches",
        median(figures),
        figures.len()
    ));
    Ok((least, most))
}

/// A JVM, also where a shell or `unshare` has started it as its child.
fn process_of(jvm: &Jvm) -> Result<u32> {
    let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", jvm.pid()))?;
    Ok(text.split_whitespace().next().map(str::parse).transpose()?.unwrap_or_else(|| jvm.pid()))
}

const MANY_THREADS: u32 = 3_000;
const FEW_THREADS: u32 = 50;
const WINDOW: Duration = Duration::from_millis(250);
const MOST_US_PER_THREAD: f64 = 2.0;
/// As in a container: numbers of processes and mounts of its own.
const NAMESPACES: [&str; 5] = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"];

fn idle(threads: u32, launcher: &[&str]) -> Result<Jvm> {
    let workload = Workload::new("IdleThreads").argument(&format!("threads={threads}")).argument(SECONDS).named(NAME);
    let workload = workload.flag("-Xss256k").flag("-XX:+UseSerialGC");
    if launcher.is_empty() { workload.start() } else { workload.launched_by(launcher).start() }
}

/// What each window costs for a thread that did not run in it: of the whole recorder, so at least what its main thread
/// does.
#[test]
fn threads_that_do_not_run_cost_alloc_next_to_nothing() -> Result<()> {
    for (place, launcher) in [("on the host", &[][..]), ("in namespaces of its own", &NAMESPACES)] {
        let jvms = [idle(MANY_THREADS, launcher)?, idle(FEW_THREADS, launcher)?];
        let start = |jvm: &Jvm| {
            let run =
                Run::modelled().pid(process_of(jvm)?).argument("--alloc").argument("--no-output").argument("--quiet");
            run.with("--interval", format!("{}ms", WINDOW.as_millis())).start()
        };
        let recorders = [start(&jvms[0])?, start(&jvms[1])?];
        let stretch = Duration::from_secs(5);
        let stretches = compare([&recorders[0], &recorders[1]], stretch, stretch, 12)?;
        let windows = stretch.as_secs_f64() / WINDOW.as_secs_f64();
        let threads = f64::from(MANY_THREADS - FEW_THREADS);
        let us: Vec<f64> = stretches.iter().map(|[many, few]| 1e6 * (many - few) / windows / threads).collect();
        let (_, most) = interval(&us, &format!("µs a window for a thread that does not run, {place}"))?;
        ensure!(most <= MOST_US_PER_THREAD, "{place}: {us:?} µs");
    }
    Ok(())
}

const MAPPINGS: u32 = 60_000;
/// As many as a search looks into, so that both JVMs work alike.
const FEW_MAPPINGS: u32 = 64;
const MOST_RATIO: f64 = 1.5;

/// The list of mappings is read now and then, at most every 30 s where it is long, so a stretch is at least as long.
#[test]
fn many_mappings_cost_little_more_than_few() -> Result<()> {
    let start = |mappings: u32| {
        let workload =
            Workload::new("ManyMappings").argument(&format!("mappings={mappings}")).argument(SECONDS).named(NAME);
        workload.argument("rest=10").start()
    };
    let jvms = [start(MAPPINGS)?, start(FEW_MAPPINGS)?];
    let record = |jvm: &Jvm| Run::modelled().pid(jvm.pid()).argument("--no-output").argument("--quiet").start();
    let recorders = [record(&jvms[0])?, record(&jvms[1])?];
    let (warm_up, stretch) = (Duration::from_secs(30), Duration::from_secs(30));
    let stretches = compare([&recorders[0], &recorders[1]], warm_up, stretch, 12)?;
    let ratios: Vec<f64> = stretches.iter().map(|[many, few]| many / few).collect();
    let cores =
        |at: usize| 100.0 * median(&stretches.iter().map(|pair| pair[at]).collect::<Vec<_>>()) / stretch.as_secs_f64();
    let text =
        format!("{:.2} % of a core with {MAPPINGS} mappings, {:.2} % with {FEW_MAPPINGS}, ratio", cores(0), cores(1));
    // On a machine that others use as well the spread is large: it fails when it is certain that the ratio is.
    let (least, _) = interval(&ratios, &text)?;
    ensure!(least <= MOST_RATIO, "{ratios:?}");
    Ok(())
}
