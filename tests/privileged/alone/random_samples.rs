//! Tests that samples stand for CPU time whatever timers and loops a workload has: threads that wake
//! at fixed times, and loops as long as the mean time between samples. Each thread measures itself how
//! its CPU time divides between two functions.

use std::{collections::HashMap, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    chance::repeat_once,
    dataset::{float, text},
    java::Workload,
    native,
    process::Running,
    profiler::{END, Output, Run},
    statistics::{RARE_SIGMAS, rare_chi_square},
};

const FREQUENCY_HZ: f64 = 99.0;
const RECORDED: Duration = Duration::from_secs(20);
/// Busy threads have as many samples sooner.
const LOOPS_RECORDED: Duration = Duration::from_secs(12);
/// Short windows are many, so that the variance over them is known well.
const WINDOW: &str = "100ms";
const LIMIT: Duration = Duration::from_secs(20);

/// Periods in milliseconds, and how long each thread runs the first function then, in microseconds. It
/// runs the second twice as long.
const PERIODS: [(u32, u32); 7] = [(1, 40), (2, 40), (5, 80), (10, 130), (20, 200), (50, 600), (100, 2_000)];

/// Loops without a pause. One is 7 ms long, one as long as the mean time between samples.
const LOOPS: [&str; 2] = ["busy-0-2333", "busy-0-3367"];

fn threads(kinds: [&str; 2]) -> Vec<String> {
    let of_kind = |kind| PERIODS.iter().map(move |(period_ms, us)| format!("{kind}-{period_ms}-{us}"));
    kinds.into_iter().flat_map(of_kind).collect()
}

/// What a recording found of a thread.
struct Found {
    thread: String,
    first: f64,
    second: f64,
    /// Samples that its CPU time makes one expect.
    due: f64,
    samples: f64,
    /// Squares of the differences between samples and those due, over its windows.
    squares: f64,
}

fn found(output: &Output) -> Result<Vec<Found>> {
    let rows = output.data.rows(&format!(
        "WITH paths AS (SELECT DISTINCT stack_id, folded FROM stacks),
              parts AS (SELECT tid, thread_name,
                     coalesce(sum(samples) FILTER (folded SIMILAR TO '.*(part_a|Waker\\.a).*'), 0)::DOUBLE AS first,
                     coalesce(sum(samples) FILTER (folded SIMILAR TO '.*(part_b|Waker\\.b).*'), 0)::DOUBLE AS second
                FROM branches JOIN paths USING (stack_id) GROUP BY ALL),
              whole AS (SELECT tid, sum(samples)::DOUBLE AS samples,
                     sum(cpu_ns)::DOUBLE / 1e9 * {FREQUENCY_HZ} AS due,
                     sum((samples - cpu_ns / 1e9 * {FREQUENCY_HZ}) ** 2)::DOUBLE AS squares
                FROM threads WHERE pid IS NOT NULL GROUP BY ALL)
         SELECT * FROM parts JOIN whole USING (tid)"
    ))?;
    let of_row = |row| {
        let number = |column| float(row, column);
        Ok(Found {
            thread: text(row, "thread_name")?.to_owned(),
            first: number("first")?,
            second: number("second")?,
            due: number("due")?,
            samples: number("samples")?,
            squares: number("squares")?,
        })
    };
    rows.iter().map(of_row).collect()
}

/// Share of the first function, by thread, as the threads say at their end.
fn measured(said: &str) -> HashMap<String, f64> {
    let share = |line: &str| {
        let (thread, times) = line.split_once(' ')?;
        let (first, second) = times.split_once(' ')?;
        let (first, second): (f64, f64) = (first.parse().ok()?, second.parse().ok()?);
        Some((thread.to_owned(), first / (first + second)))
    };
    said.lines().filter_map(share).collect()
}

/// How much more the number of samples may vary than if each came by itself. Over the 240 windows of
/// two busy threads it is 1 ± 0.09.
const VARIANCE: f64 = 1.3;

/// Compares what was recorded with what the threads measured.
fn check(found: &[Found], measured: &HashMap<String, f64>) -> Result<()> {
    let mut chi_square = 0.0;
    let (mut samples, mut due, mut squares) = (0.0, 0.0, 0.0);
    for thread in found.iter().filter(|found| measured.contains_key(&found.thread)) {
        let share = measured.get(&thread.thread).context("it was filtered by that")?;
        let count = thread.first + thread.second;
        let distance = (thread.first - count * share) / (count * share * (1.0 - share)).sqrt();
        println!(
            "{}: {} of {count} in the first function, {share:.3} measured, {distance:.1} σ; {} samples, {:.1} due",
            thread.thread, thread.first, thread.samples, thread.due
        );
        assert!(count > 20.0, "{}: {count} samples with a known function", thread.thread);
        assert!(distance * distance <= rare_chi_square(1.0), "{}: {distance:.1} σ apart", thread.thread);
        chi_square += distance * distance;
        samples += thread.samples;
        due += thread.due;
        squares += thread.squares;
    }
    let threads = measured.len() as f64;
    println!(
        "χ² {chi_square:.1} of {threads}; {samples} samples, {due:.0} due; variance {:.2} times Poisson's",
        squares / due
    );
    assert!(chi_square <= rare_chi_square(threads), "χ² {chi_square:.1} of {threads}");
    assert!((samples - due).abs() <= RARE_SIGMAS * due.sqrt(), "{samples} samples, {due:.0} due");
    assert!(squares <= VARIANCE * due, "samples of a thread in a window vary {:.2} times as Poisson's", squares / due);
    Ok(())
}

#[test]
fn threads_that_wake_at_fixed_times_have_samples_in_proportion_to_their_time() -> Result<()> {
    repeat_once(wake_at_fixed_times)
}

fn wake_at_fixed_times(measures: u32) -> Result<()> {
    let output = Output::new()?;
    let program = output.beside("waker");
    native::compile("waker.c", &program)?;
    let mut waker = Running::spawn("waker", Command::new(&program).args(threads(["epoll", "timer"])))?;
    waker.wait_stdout("ready", LIMIT)?;
    let workload = Workload::new("Waker").dont_inline("Waker::a").dont_inline("Waker::b");
    let jvm = threads(["sleep", "park"]).iter().fold(workload, |workload, thread| workload.argument(thread)).start()?;
    let run = Run::modelled()
        .pid(waker.pid())
        .argument(jvm.pid().to_string())
        .with("--duration", format!("{}s", (measures * RECORDED).as_secs()))
        .with("--interval", WINDOW);
    let finished = run.output(output.dir()).finish(measures * RECORDED + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let mut measured = measured(&waker.finish(LIMIT)?.stdout);
    measured.extend(self::measured(&jvm.finish(LIMIT)?.stdout));
    assert_eq!(measured.len(), 4 * PERIODS.len(), "{measured:?}");
    check(&found(&output)?, &measured)
}

#[test]
fn loops_have_samples_in_proportion_to_the_time_of_their_parts() -> Result<()> {
    repeat_once(loops)
}

fn loops(measures: u32) -> Result<()> {
    let output = Output::new()?;
    let program = output.beside("waker");
    native::compile("waker.c", &program)?;
    let mut waker = Running::spawn("waker", Command::new(&program).args(LOOPS))?;
    waker.wait_stdout("ready", LIMIT)?;
    let run = Run::modelled().pid(waker.pid()).with("--interval", WINDOW);
    let run = run.with("--duration", format!("{}s", (measures * LOOPS_RECORDED).as_secs()));
    let finished = run.output(output.dir()).finish(measures * LOOPS_RECORDED + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let measured = measured(&waker.finish(LIMIT)?.stdout);
    assert_eq!(measured.len(), LOOPS.len(), "{measured:?}");
    check(&found(&output)?, &measured)
}
