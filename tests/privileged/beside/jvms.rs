//! Tests that JVMs of every kind and at every time of their lives are in the data set, with their
//! methods' names.

use std::time::Duration;

use anyhow::Result;
use joular_tests::{
    java::Workload,
    profiler::{Output, Run},
};

/// Long enough for several windows, and for a JVM's code to be asked for twice.
const WATCHED: Duration = Duration::from_secs(5);

const LIMIT: Duration = Duration::from_secs(60);

/// Sampled often, so that a few seconds are thousands of samples.
fn run_for_java(output: &Output) -> Run {
    Run::modelled().with("--comm", "java").with("--frequency", "199").output(output.dir())
}

/// A perf map knows no inlined methods: what tests look for stays a frame.
fn busy() -> Workload {
    Workload::new("Busy").dont_inline("Busy::spin")
}

/// CPU seconds that a process spent in methods with such a name.
fn seconds_in(output: &Output, pid: u32, method: &str) -> Result<f64> {
    output.data.number(&format!(
        "SELECT coalesce(sum(self_cpu_ns), 0)::DOUBLE / 1e9 FROM methods WHERE pid = {pid} AND method = '{method}'"
    ))
}

/// CPU seconds of the process.
fn seconds_of(output: &Output, pid: u32) -> Result<f64> {
    output.data.number(&format!("SELECT coalesce(sum(cpu_ns), 0)::DOUBLE / 1e9 FROM threads WHERE pid = {pid}"))
}

/// Lets the run see the JVM for a while: ends when the JVM has had that much CPU.
fn let_run(pid: u32, time: Duration) -> Result<()> {
    let before = joular_tests::schedstat::process(pid)?;
    joular_tests::clock::wait_for("the JVM to use CPU time", LIMIT, || {
        let used = joular_tests::schedstat::process(pid)? - before;
        Ok((u128::from(used) >= time.as_nanos()).then_some(()))
    })
}

#[test]
fn a_jvm_with_frame_pointers_shows_its_methods_and_who_called_them() -> Result<()> {
    let output = Output::new()?;
    let jvm = busy().frame_pointers().argument("depth=12").start()?;
    let profiler = run_for_java(&output).start()?;
    let_run(jvm.pid(), WATCHED)?;
    profiler.stop()?;
    let (spinning, all) = (seconds_in(&output, jvm.pid(), "Busy.spin")?, seconds_of(&output, jvm.pid())?);
    assert!(spinning >= 0.9 * all, "Busy.spin has {spinning:.2} s of {all:.2} s");
    let through_callers = output.data.number(&format!(
        "SELECT coalesce(sum(b.cpu_ns), 0)::DOUBLE / 1e9 FROM branches b
         JOIN (SELECT DISTINCT branch_id, folded FROM stacks) s USING (branch_id)
         WHERE pid = {} AND folded LIKE '%Busy.descend%Busy.spin%'",
        jvm.pid()
    ))?;
    assert!(through_callers >= 0.9 * all, "{through_callers:.2} s of {all:.2} s came through Busy.descend");
    Ok(())
}

#[test]
fn a_jvm_without_frame_pointers_shows_its_hot_method() -> Result<()> {
    let output = Output::new()?;
    let jvm = busy().start()?;
    let profiler = run_for_java(&output).start()?;
    let_run(jvm.pid(), WATCHED)?;
    profiler.stop()?;
    let (spinning, all) = (seconds_in(&output, jvm.pid(), "Busy.spin")?, seconds_of(&output, jvm.pid())?);
    assert!(spinning >= 0.9 * all, "Busy.spin has {spinning:.2} s of {all:.2} s");
    Ok(())
}

#[test]
fn two_jvms_at_once_are_kept_apart() -> Result<()> {
    let output = Output::new()?;
    let spinning = busy().frame_pointers().start()?;
    let split = Workload::new("Split").frame_pointers().dont_inline("Split::heavy").start()?;
    let profiler = run_for_java(&output).start()?;
    let_run(spinning.pid(), WATCHED)?;
    profiler.stop()?;
    assert!(seconds_in(&output, spinning.pid(), "Busy.spin")? > 1.0);
    assert!(seconds_in(&output, split.pid(), "Split.heavy")? > 1.0);
    assert_eq!(seconds_in(&output, spinning.pid(), "Split.heavy")?, 0.0);
    assert_eq!(seconds_in(&output, split.pid(), "Busy.spin")?, 0.0);
    Ok(())
}

#[test]
fn a_jvm_that_starts_during_the_run_is_found() -> Result<()> {
    let output = Output::new()?;
    let profiler = run_for_java(&output).start()?;
    let jvm = busy().frame_pointers().start()?;
    let_run(jvm.pid(), WATCHED)?;
    let expected = joular_tests::schedstat::process(jvm.pid())? as f64 / 1e9;
    profiler.stop()?;
    let all = seconds_of(&output, jvm.pid())?;
    // All its life was within the run; only what came while we stopped is open.
    assert!(all >= 0.97 * expected, "{all:.2} s of {expected:.2} s");
    assert!(seconds_in(&output, jvm.pid(), "Busy.spin")? >= 0.7 * all);
    Ok(())
}

#[test]
fn a_jvm_that_exits_during_the_run_has_its_last_second_and_its_names() -> Result<()> {
    let output = Output::new()?;
    let jvm = Workload::new("ShortLived")
        .dont_inline("ShortLived::farewell")
        .dont_inline("ShortLived::lastSecond")
        .frame_pointers()
        .argument("seconds=6")
        .argument("last=1")
        .start()?;
    let pid = jvm.pid();
    let profiler = run_for_java(&output).start()?;
    let ended = jvm.finish(LIMIT)?;
    assert!(ended.stdout.contains("done"), "{ended:?}");
    profiler.stop()?;
    // A method that was hot for seconds, and one that ran in the last second only.
    let farewell = seconds_in(&output, pid, "ShortLived.farewell")?;
    assert!(farewell > 1.0, "ShortLived.farewell has {farewell:.2} s");
    let last = seconds_in(&output, pid, "ShortLived.lastSecond")?;
    assert!((0.7..=1.1).contains(&last), "ShortLived.lastSecond has {last:.2} s of one second");
    Ok(())
}

#[test]
fn threads_of_a_jvm_have_their_names_and_categories() -> Result<()> {
    let output = Output::new()?;
    let profiler = run_for_java(&output).start()?;
    let jvm = busy().frame_pointers().argument("threads=2").start()?;
    let_run(jvm.pid(), WATCHED)?;
    profiler.stop()?;
    let categories = output.data.rows(&format!(
        "SELECT category, string_agg(DISTINCT thread_name, ' ') AS names FROM threads WHERE pid = {} GROUP BY category",
        jvm.pid()
    ))?;
    let names = |category: &str| {
        let row = categories.iter().find(|row| row["category"] == category);
        row.and_then(|row| row["names"].as_str()).unwrap_or_default().to_owned()
    };
    assert!(names("java").contains("busy-0") && names("java").contains("busy-1"), "{categories:?}");
    assert!(names("jit").contains("C2 CompilerThre") || names("jit").contains("C1 CompilerThre"), "{categories:?}");
    Ok(())
}
