//! Stacks of JVMs of every release and collector, without any flag: whole and
//! right, down to interpreted and inlined methods and their lines.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Collector, Jdk, Workload},
    known::{self, CallLines, Report, Root},
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(30);

/// Of a thousand samples five may be incomplete or, for an instruction or two, where
/// nothing tells who called.
const TOLERATED: f64 = 0.005;
const FREQUENCY: f64 = 999.0;

/// Profiles a JVM that runs the known workloads; what its stacks are like.
fn report(name: String, workload: Workload, duration: &str, root: Root) -> Result<Report> {
    let output = Output::new()?;
    let jvm = workload.start().with_context(|| name.clone())?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", FREQUENCY.to_string()).with("--duration", duration);
    let finished = run.argument("--quiet").output(output.dir()).finish(LIMIT + END)?;
    assert_eq!(finished.code(), Some(0), "{name}: {finished:?}");
    let stacks = known::stacks(&output.data, jvm.pid())?;
    let report = Report::of(name, &stacks, &CallLines::read()?, root);
    report.save()?;
    print!("{report}");
    expect_all_samples(&report, &output, jvm.pid())?;
    Ok(report)
}

/// A CPU's time and samples go together, however much of it others take.
fn expect_all_samples(report: &Report, output: &Output, pid: u32) -> Result<()> {
    let threads = report.scenarios.iter().map(|(name, _)| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let cpu_seconds = output.data.number(&format!(
        "SELECT coalesce(sum(cpu_ns), 0)::DOUBLE / 1e9 FROM threads WHERE pid = {pid} AND thread_name IN ({threads})"
    ))?;
    let (samples, due) = (report.total().samples(), FREQUENCY * cpu_seconds);
    ensure!(samples > 300.0 && samples > 0.9 * due, "{}: {samples} samples in {cpu_seconds} s of CPU time", report.jvm);
    Ok(())
}

/// All that is wrong with any of them.
fn expect_right(reports: &[Report]) {
    let mut complaints = Vec::new();
    for report in reports {
        complaints.extend(report.complaints(TOLERATED));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn stacks_are_right_on_every_jdk_with_every_collector() -> Result<()> {
    let mut reports = Vec::new();
    for jdk in Jdk::pinned()? {
        for collector in &jdk.collectors {
            let workload = known::workload().jdk(jdk).flag(&collector.flag());
            reports.push(report(format!("{jdk} {collector}"), workload, "4s", Root::Native)?);
        }
    }
    expect_right(&reports);
    Ok(())
}

#[test]
fn stacks_are_right_without_compilers_and_with_the_first_one_only() -> Result<()> {
    let mut reports = Vec::new();
    for jdk in Jdk::pinned()? {
        for (name, flag) in [("int", "-Xint"), ("c1", "-XX:TieredStopAtLevel=1")] {
            let workload = known::workload().jdk(jdk).flag(&Collector::Serial.flag()).flag(flag);
            reports.push(report(format!("{jdk} {name}"), workload, "3s", Root::Native)?);
        }
    }
    expect_right(&reports);
    Ok(())
}

/// By default JVMs say only at safepoints which of its inlined methods code belongs
/// to, and C2 puts none into counted loops with these collectors. If they say it
/// everywhere, leaves are right, too.
#[test]
fn stacks_end_in_their_leaves_if_jvms_say_everywhere_what_is_inlined() -> Result<()> {
    for jdk in Jdk::pinned()? {
        let collector = if jdk.release == 11 { Collector::Serial } else { Collector::Parallel };
        let workload = known::workload().jdk(jdk).flag(&collector.flag()).flag("-XX:-TieredCompilation");
        let workload = workload.flag("-XX:+UnlockDiagnosticVMOptions").flag("-XX:+DebugNonSafepoints");
        let report = report(format!("{jdk} c2"), workload, "4s", Root::Native)?;
        let complaints = [report.complaints(TOLERATED), report.complaints_of_leaves()].concat();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
    Ok(())
}

/// Another vendor's build: its own compiler, its own symbols.
#[test]
fn stacks_are_right_on_the_jdk_of_the_system() -> Result<()> {
    let mut reports = Vec::new();
    for jdk in Jdk::all()?.iter().filter(|jdk| jdk.is_system) {
        reports.push(report(jdk.to_string(), known::workload().jdk(jdk), "4s", Root::Native)?);
    }
    expect_right(&reports);
    Ok(())
}

/// Of a thousand frames none may be missing: `recurse-1000` would have no right stack.
#[test]
fn stacks_of_a_thousand_frames_are_whole() -> Result<()> {
    for jdk in Jdk::pinned()? {
        // Nothing is inlined: each frame stands on the stack itself.
        let workload = known::workload().jdk(jdk).argument("recurse-1000").dont_inline("known.Recursion::*");
        let report = report(format!("{jdk} 1000 frames"), workload, "4s", Root::Native)?;
        let tally = report.of_scenario("recurse-1000").context("no samples of the recursion")?;
        let complaints = report.complaints(TOLERATED);
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        assert!(tally.frames / tally.samples() > 1000.0, "{jdk}");
    }
    Ok(())
}
