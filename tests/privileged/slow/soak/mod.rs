//! Tests a long run on a machine where nothing stays: JVMs, programs, threads and containers come and
//! go, a CPU too, and somebody sets the clock. The run loses nothing that it should count, and grows by nothing.

mod churn;
mod disturb;
mod look;
mod stop;

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    bpf_objects,
    clock::{monotonic_ns, wait_for},
    dataset::DataSet,
    java::Workload,
    notes,
    profiler::{Output, Profiler, Run},
    statistics::median,
};

use self::{
    churn::Came,
    look::Look,
    stop::{EndsIt, Stop},
};

const MINUTES: &str = "SOAK_MINUTES";
const SEED: &str = "SOAK_SEED";
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The figures of so many moments are published.
const PUBLISHED: u32 = 12;
const CLOCK_IS_SET: u32 = 8;
/// A run lets files go 10 s after their process has ended. A busy machine may let it do so later.
const RELEASED: Duration = Duration::from_secs(15);
/// The kernel frees maps after all CPUs have passed through the scheduler.
const FREED: Duration = Duration::from_secs(10);
/// It reads thousands of files.
const AUDITED: Duration = Duration::from_secs(600);

/// By which the memory of the last third may exceed that of the middle one. The table of paths is built
/// anew when it is far larger than recent windows need, so that it is between once and several times as
/// large as its smallest; and the JVMs of a moment are more or fewer.
const GROWTH_KIB: f64 = 8.0 * 1024.0;
/// Until then, tables fill that have a bound, and the largest moment is still to come: a shorter run is not
/// judged by its memory.
const SETTLED: Duration = Duration::from_secs(9 * 60);

/// What a run of seconds and one of hours has room for alike: the kernel's maps are sized for more
/// than comes in a window here.
const NEVER: [&str; 5] = [
    "lost_thread_map_full",
    "lost_sample_map_full",
    "lost_stack_ring_full",
    "lost_lifecycle_ring_full",
    "lost_known_stacks_full",
];

fn number(variable: &str, default: u64) -> Result<u64> {
    env::var(variable).map_or(Ok(default), |text| text.parse().with_context(|| format!("{variable}={text}")))
}

/// Looks at the profiler until the time is over, or somebody failed.
fn watch(profiler: &Profiler, length: Duration, stop: &Stop) -> Result<Vec<Look>> {
    let _end = EndsIt(stop);
    let (begin, mut looks, mut published) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < length && !stop.wait(LOOK_EVERY) {
        let look = Look::at(begin.elapsed(), profiler.pid())?;
        if look.at >= length * published / PUBLISHED {
            notes::figure(&format!("soak: {look}"));
            published += 1;
        }
        looks.push(look);
    }
    Ok(looks)
}

/// Everything comes and goes while the profiler is looked at.
fn churn(profiler: &Profiler, length: Duration, seed: u64) -> Result<(Vec<Look>, Came)> {
    let stop = &Stop::default();
    let pause = length / CLOCK_IS_SET;
    thread::scope(|scope| {
        let run = |churn: Box<dyn FnOnce() -> Result<Came> + Send>| {
            scope.spawn(move || {
                let _end = EndsIt(stop);
                churn()
            })
        };
        let threads = [
            run(Box::new(move || churn::jvms(seed, stop))),
            run(Box::new(move || churn::threads(seed + 1, stop))),
            run(Box::new(move || churn::programs(seed + 2, stop))),
            run(Box::new(move || churn::containers(seed + 3, stop))),
            run(Box::new(move || disturb::cpus(seed + 4, stop))),
            run(Box::new(move || disturb::clock(seed + 5, pause, stop))),
        ];
        let looks = watch(profiler, length, stop);
        let came = threads.into_iter().map(|thread| thread.join().expect("it returns an error, if any"));
        let came = came.collect::<Result<Vec<_>>>()?;
        anyhow::Ok((looks?, came.into_iter().fold(Came::default(), Came::join)))
    })
}

fn expect_flat(looks: &[Look]) -> Result<()> {
    let third = looks.len() / 3;
    let medians = |looks: &[Look]| {
        let of = |value: fn(&Look) -> u64| median(&looks.iter().map(|look| value(look) as f64).collect::<Vec<_>>());
        (of(|look| look.resident_kib), of(|look| look.threads))
    };
    let (before_kib, threads_before) = medians(&looks[third..2 * third]);
    let (after_kib, threads_after) = medians(&looks[2 * third..]);
    notes::figure(&format!("soak: {before_kib} KiB in the middle third, {after_kib} KiB in the last"));
    let has_settled = looks.get(third).is_some_and(|look| look.at >= SETTLED);
    ensure!(!has_settled || after_kib <= before_kib + GROWTH_KIB, "memory grew from {before_kib} to {after_kib} KiB");
    // One more may be reading a file.
    ensure!(threads_after <= threads_before + 1.0, "threads grew from {threads_before} to {threads_after}");
    Ok(())
}

/// Nothing of what has ended is held, and all else is as it was at the beginning.
fn expect_released(profiler: &Profiler, first: &Look, files: &BTreeSet<PathBuf>, length: Duration) -> Result<()> {
    let pid = profiler.pid();
    let released = wait_for("what is gone to be let go", RELEASED, || {
        let is_released = look::gone(pid, files)?.is_empty() && Look::at(length, pid)?.threads <= first.threads;
        Ok(is_released.then_some(()))
    });
    released.with_context(|| format!("{} threads; open: {:?}", first.threads, look::gone(pid, files)))?;
    let last = Look::at(length, pid)?;
    notes::figure(&format!("soak: after all has ended: {last}"));
    ensure!(last.lasting() == first.lasting(), "descriptors: {:?}, then {:?}", first.lasting(), last.lasting());
    let objects = |look: &Look| (look.programs, look.maps, look.links);
    ensure!(objects(&last) == objects(first), "eBPF objects: {:?}, then {:?}", objects(first), objects(&last));
    Ok(())
}

fn expect_nothing_lost(data: &DataSet) -> Result<()> {
    let rows = data.rows(
        "SELECT sum(COLUMNS('(lost_.*)'))::BIGINT AS '\\1'
         FROM (SELECT DISTINCT window_start, COLUMNS('lost_.*') FROM windows)",
    )?;
    let losses = rows.first().and_then(|row| row.as_object()).context("sums of losses")?;
    ensure!(NEVER.iter().all(|name| losses.contains_key(*name)), "other columns: {losses:?}");
    let lost: Vec<_> = losses.iter().filter(|(_, count)| count.as_i64() != Some(0)).collect();
    notes::figure(&format!("soak: losses: {lost:?}"));
    let never = NEVER.join(" + ");
    data.expect_none(
        "windows that lost what there is room for",
        &format!(
            "SELECT DISTINCT window_index, window_ns, switches, cpu_unslotted_ns, cpu_busy_ns, cpu_idle_ns, {0}
             FROM windows WHERE {never} > 0 ORDER BY 1",
            NEVER.join(", ")
        ),
    )
}

/// The data set has every JVM, all of the time in order, and every microjoule.
fn expect_whole(data: &DataSet, came: &Came, length_ns: u64) -> Result<()> {
    let audit = Run::new().argument("audit").argument(data.dir()).finish(AUDITED)?;
    notes::figure(&format!("soak: audit: {}", audit.stdout.lines().last().unwrap_or_default()));
    ensure!(audit.code() == Some(0) && audit.stdout.contains("every microjoule is accounted for"), "{audit:?}");
    let seen = data.rows("SELECT DISTINCT pid FROM threads")?;
    let seen: BTreeSet<_> = seen.iter().filter_map(|row| row["pid"].as_u64()).collect();
    let missing: Vec<_> = came.pids.iter().filter(|pid| !seen.contains(&u64::from(**pid))).collect();
    ensure!(missing.is_empty(), "without a row: JVMs {missing:?}");
    let windows = "SELECT DISTINCT window_start, window_ns, window_index FROM windows";
    let recorded_ns = data.number(&format!("SELECT sum(window_ns)::DOUBLE FROM ({windows})"))?;
    #[allow(clippy::cast_precision_loss, reason = "nanoseconds of an hour")]
    let length_ns = length_ns as f64;
    ensure!(recorded_ns >= length_ns, "{recorded_ns} ns in windows, {length_ns} ns of churn");
    data.expect_none(
        "windows that begin before those before them",
        &format!(
            "WITH pairs AS (SELECT *, lead(window_start) OVER (ORDER BY window_index) AS next FROM ({windows}))
             SELECT * FROM pairs WHERE next <= window_start"
        ),
    )?;
    let whole = data.number(
        "SELECT sum(samples) FILTER (is_complete)::DOUBLE / sum(samples) FROM quality WHERE category = 'java'",
    )?;
    notes::figure(&format!("soak: {:.2} % of the stacks of Java threads are whole", 100.0 * whole));
    Ok(())
}

/// It takes as long as it says: half an hour, or `SOAK_MINUTES`.
#[test]
fn a_long_run_among_what_comes_and_goes_stays_exact_and_does_not_grow() -> Result<()> {
    let length = Duration::from_secs(60 * number(MINUTES, 30)?);
    let seed = number(SEED, monotonic_ns())?;
    notes::figure(&format!("soak: {SEED}={seed}"));
    let output = Output::new()?;
    // One of them lives from before the beginning to the end.
    let steady = Workload::new("Waker").argument("sleep-20-40").argument("park-50-100").start()?;
    let run = Run::modelled().with("--comm", "java").with("--frequency", "199").with("--flush", "10s");
    let mut profiler = run.argument("--json").output(output.dir()).start()?;
    (0..3).try_for_each(|_| profiler.wait_window().map(drop))?;
    let (first, files) = (Look::at(Duration::ZERO, profiler.pid())?, look::files(profiler.pid())?);
    notes::figure(&format!("soak: {first}"));

    let began_ns = monotonic_ns();
    let (looks, came) = churn(&profiler, length, seed)?;
    let length_ns = monotonic_ns() - began_ns;
    notes::figure(&format!("soak: came and went: {:?}", came.counts));
    drop(steady);
    expect_released(&profiler, &first, &files, length)?;
    let objects = bpf_objects::of(profiler.pid())?;
    ensure!(!objects.is_empty(), "a running profiler holds programs");
    profiler.stop()?;
    wait_for("the kernel to free all eBPF objects", FREED, || {
        Ok(bpf_objects::all().is_disjoint(&objects).then_some(()))
    })?;
    // All are told of: nobody repeats half an hour for the second one.
    let found = [expect_flat(&looks), expect_nothing_lost(&output.data), expect_whole(&output.data, &came, length_ns)];
    let complaints: Vec<_> = found.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}
