//! A method and another one that is inlined into it, in the same piece of machine
//! code: time must go to the right one of them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::float,
    java::{Jdk, Jvm, Workload},
    profiler::{END, Output, Run},
};

const RECORDED: &str = "10s";
/// What safepoints alone may put off: each loop of the workload has one, but code
/// before and behind it may count as the other method's.
const COARSE: f64 = 0.06;

const LIMIT: Duration = Duration::from_secs(15);

/// Part of `outer` itself, between two moments, as the workload measured it.
pub fn measured_share(jvm: &Jvm, start_us: f64, end_us: f64) -> Result<f64> {
    let records = jvm.records();
    let moment = |record: &serde_json::Value| record["wall_us"].as_f64().unwrap_or(0.0);
    let first = records.iter().find(|record| moment(record) >= start_us).context("no line after the start")?;
    let last = records.iter().rfind(|record| moment(record) <= end_us).context("no line before the end")?;
    let spent = |column| Ok::<_, anyhow::Error>(float(last, column)? - float(first, column)?);
    let (outer, inlined) = (spent("outer_ns")?, spent("inlined_ns")?);
    ensure!(outer > 1e9, "the workload hardly ran between {first} and {last}");
    Ok(outer / (outer + inlined))
}

/// What the profiler says, and what is so.
struct Split {
    jvm: String,
    share: f64,
    expected: f64,
    sigma: f64,
}

pub fn start(jdk: &Jdk, flags: &[&str]) -> Result<Jvm> {
    let mut workload = Workload::new("InlinedSplit").jdk(jdk).dont_inline("InlinedSplit::outer");
    workload = workload.flag("-XX:CompileCommand=inline,InlinedSplit::inlined").argument("seconds=120");
    flags.iter().fold(workload, |workload, flag| workload.flag(flag)).start()
}

fn measure(jdk: &Jdk, flags: &[&str]) -> Result<Split> {
    let output = Output::new()?;
    let jvm = start(jdk, flags)?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999").with("--duration", RECORDED);
    let finished = run.argument("--quiet").output(output.dir()).finish(LIMIT + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");

    let data = &output.data;
    let start = data.number("SELECT min(epoch_us(window_start)) FROM windows")?;
    let end = data.number("SELECT max(epoch_us(window_start) + window_ns // 1000) FROM windows")?;
    let expected = measured_share(&jvm, start, end)?;
    let sum =
        |what: &str| data.number(&format!("SELECT coalesce(sum(self_samples), 0)::DOUBLE FROM methods WHERE {what}"));
    let (outer, inlined) = (sum("method = 'InlinedSplit.outer'")?, sum("method = 'InlinedSplit.inlined'")?);
    let samples = outer + inlined;
    assert!(samples > 2000.0, "{jdk} {flags:?}: only {samples} samples in {RECORDED} at 999 Hz");
    let as_inlined = sum("method = 'InlinedSplit.inlined' AND kind = 'inlined'")?;
    assert!(as_inlined > 0.98 * inlined, "{jdk} {flags:?}: {as_inlined} of {inlined} samples are seen as inlined");
    let (share, sigma) = (outer / samples, (expected * (1.0 - expected) / samples).sqrt());
    println!("{jdk} {flags:?}: {share:.4} of {samples} samples, measured inside {expected:.4}, σ {sigma:.4}");
    Ok(Split { jvm: format!("{jdk} {flags:?}"), share, expected, sigma })
}

/// Measures on all JDKs; fails with those that are further off than allowed twice: at
/// so many sigmas, one in some hundred is so by chance.
fn expect_within(flags: &[&str], allowed: impl Fn(&Split) -> f64) -> Result<()> {
    let is_off = |split: &Split| (split.share - split.expected).abs() > allowed(split);
    let mut wrong = Vec::new();
    for jdk in Jdk::pinned()? {
        let first = measure(jdk, flags)?;
        if !is_off(&first) {
            continue;
        }
        let second = measure(jdk, flags)?;
        if is_off(&second) {
            wrong.extend([first, second].map(|Split { jvm, share, expected, sigma }| {
                let distance = (share - expected).abs() / sigma;
                format!("{jvm}: {share:.4}, measured inside {expected:.4}: {distance:.1} σ apart")
            }));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn an_inlined_method_and_its_caller_share_their_time_as_measured_inside() -> Result<()> {
    expect_within(&["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"], |split| 3.0 * split.sigma)
}

/// By default a JVM says only at safepoints which method code belongs to.
#[test]
fn without_debug_information_at_every_instruction_the_shares_are_near() -> Result<()> {
    expect_within(&[], |split| COARSE + 3.0 * split.sigma)
}
