//! Tests a method and another one that is inlined into it, in the same piece of machine code,
//! beside one that is compiled apart: time must go to the right one of them.
//!
//! What is promised depends on what the JVM says of its code. Compiled methods are told apart
//! exactly. With `-XX:+DebugNonSafepoints` so are the methods inlined into one. By default the JVM
//! describes only safepoints. Each loop here has one, which speaks for all of the loop, so that the
//! split is nearly as measured. Were the next safepoint to speak for a place, the instructions
//! between a loop's safepoint and its end would count as the other loop's.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{DataSet, float},
    java::{Jdk, Jvm, Workload},
    notes,
    profiler::{END, Output, Run},
    shared::Shared,
};

use super::leaf_descriptors::Leaves;

const RECORDED: &str = "10s";
const LIMIT: Duration = Duration::from_secs(15);
/// Of a share, among inlined methods. It was 0.16 where the next safepoint spoke for a place.
const TOLERATED_BY_DEFAULT: f64 = 0.03;

/// The code for which a JVM says what is inlined there.
#[derive(Clone, Copy, Debug)]
pub enum Described {
    Safepoints,
    Everything,
}

impl Described {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Safepoints => &[],
            Self::Everything => &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"],
        }
    }
}

/// What each method of the workload had, of time or of samples.
#[derive(Clone, Copy, Debug)]
struct Split {
    outer: f64,
    inlined: f64,
    apart: f64,
}

impl Split {
    /// Part of `outer` itself in its compiled code.
    fn within(self) -> f64 {
        self.outer / (self.outer + self.inlined)
    }

    /// Part of that code in all three methods.
    fn compiled(self) -> f64 {
        (self.outer + self.inlined) / self.all()
    }

    fn all(self) -> f64 {
        self.outer + self.inlined + self.apart
    }

    /// As the workload measured it between two moments.
    fn measured_by(jvm: &Jvm, start_us: f64, end_us: f64) -> Result<Self> {
        let records = jvm.records();
        let moment = |record: &serde_json::Value| record["wall_us"].as_f64().unwrap_or(0.0);
        let first = records.iter().find(|record| moment(record) >= start_us).context("no line after the start")?;
        let last = records.iter().rfind(|record| moment(record) <= end_us).context("no line before the end")?;
        let spent = |column| Ok::<_, anyhow::Error>(float(last, column)? - float(first, column)?);
        let split = Self { outer: spent("outer_ns")?, inlined: spent("inlined_ns")?, apart: spent("apart_ns")? };
        ensure!(split.outer > 1e9, "the workload hardly ran between {first} and {last}");
        Ok(split)
    }

    /// As the data set has it.
    fn sampled(data: &DataSet) -> Result<Self> {
        let sum = |what: &str| {
            data.number(&format!("SELECT coalesce(sum(self_samples), 0)::DOUBLE FROM methods WHERE {what}"))
        };
        let of = |method: &str| sum(&format!("method = 'InlinedSplit.{method}'"));
        let split = Self { outer: of("outer")?, inlined: of("inlined")?, apart: of("apart")? };
        ensure!(split.outer + split.inlined > 2000.0, "only {split:?} samples in {RECORDED} at 999 Hz");
        let as_inlined = sum("method = 'InlinedSplit.inlined' AND kind = 'inlined'")?;
        ensure!(as_inlined > 0.98 * split.inlined, "{as_inlined} of {split:?} samples are seen as inlined");
        Ok(split)
    }
}

/// A share by samples, and what it is.
pub struct Share {
    sampled: f64,
    measured: f64,
    sigma: f64,
}

impl Share {
    fn new(sampled: f64, measured: f64, samples: f64) -> Self {
        Self { sampled, measured, sigma: (measured * (1.0 - measured) / samples).sqrt() }
    }

    pub fn distance(&self) -> f64 {
        (self.sampled - self.measured).abs() / self.sigma
    }

    fn text(&self) -> String {
        format!("{:.4}, measured inside {:.4}: {:.1} σ", self.sampled, self.measured, self.distance())
    }
}

/// A run over a JVM, seen in every way that tests look at it.
pub struct Recorded {
    pub jvm: String,
    samples: Split,
    truth: Split,
    /// Of the compiled code, looked up in several ways.
    leaves: Leaves,
}

impl Recorded {
    /// The first run of this kind, which tests share.
    pub fn first(jdk: &Jdk, described: Described) -> Result<Arc<Self>> {
        static RUNS: [[Shared<Recorded>; 4]; 2] = [const { [const { Shared::new() }; 4] }; 2];
        let index = Jdk::pinned()?.position(|pinned| pinned.release == jdk.release).context("a pinned JDK")?;
        RUNS[described as usize].get(index).context("more JDKs than expected")?.get(|| Self::new(jdk, described))
    }

    fn new(jdk: &Jdk, described: Described) -> Result<Self> {
        let name = format!("{jdk}, describing {described:?}");
        let (output, jvm) = (Output::new()?, start(jdk, described.flags())?);
        let recording = output.beside("leaves.jrec");
        let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999").with("--duration", RECORDED);
        let run = run.argument("--quiet").with("--record", &recording).output(output.dir());
        let finished = run.finish(LIMIT + END)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        let start_us = output.data.number("SELECT min(epoch_us(window_start)) FROM windows")?;
        let end_us = output.data.number("SELECT max(epoch_us(window_start) + window_ns // 1000) FROM windows")?;
        let truth = Split::measured_by(&jvm, start_us, end_us)?;
        let samples = Split::sampled(&output.data).with_context(|| name.clone())?;
        let leaves = Leaves::read(&recording, jvm.pid())?;
        println!("{name}: samples {samples:?}, truth {truth:?}, leaves {leaves:?}");
        Ok(Self { jvm: name, samples, truth, leaves })
    }

    fn within(&self) -> Share {
        Share::new(self.samples.within(), self.truth.within(), self.samples.outer + self.samples.inlined)
    }

    fn compiled(&self) -> Share {
        Share::new(self.samples.compiled(), self.truth.compiled(), self.samples.all())
    }

    /// The same if leaves are looked up at or above, and as the last below.
    pub fn looked_up(&self) -> [Share; 2] {
        let truth = self.truth.within();
        self.leaves.ways.map(|(outer, inlined)| Share::new(outer / (outer + inlined), truth, outer + inlined))
    }
}

fn start(jdk: &Jdk, flags: &[&str]) -> Result<Jvm> {
    let workload = Workload::new("InlinedSplit").jdk(jdk).argument("seconds=120");
    let workload = workload.dont_inline("InlinedSplit::outer").dont_inline("InlinedSplit::apart");
    let workload = workload.flag("-XX:CompileCommand=inline,InlinedSplit::inlined");
    flags.iter().fold(workload, |workload, flag| workload.flag(flag)).start()
}

/// Checks that a share is within 3 σ, on all JDKs. One that is further off must be so twice to
/// fail, because one in some hundred is so by chance.
pub fn expect_within_3_sigma(described: Described, share: impl Fn(&Recorded) -> Share) -> Result<()> {
    let mut wrong = Vec::new();
    for jdk in Jdk::pinned()? {
        let first = Recorded::first(jdk, described)?;
        if share(&first).distance() <= 3.0 {
            continue;
        }
        let second = Recorded::new(jdk, described)?;
        if share(&second).distance() > 3.0 {
            let texts = [&*first, &second].map(|run| share(run).text());
            wrong.push(format!("{}: {}", first.jvm, texts.join("; again ")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn an_inlined_method_and_its_caller_share_their_time_as_measured_inside() -> Result<()> {
    expect_within_3_sigma(Described::Everything, Recorded::within)?;
    expect_within_3_sigma(Described::Everything, Recorded::compiled)
}

#[test]
fn without_debug_information_everywhere_compiled_methods_have_their_time() -> Result<()> {
    expect_within_3_sigma(Described::Safepoints, Recorded::compiled)?;
    for jdk in Jdk::pinned()? {
        let run = Recorded::first(jdk, Described::Safepoints)?;
        let share = run.within();
        let error = (share.sampled - share.measured).abs();
        assert!(error < TOLERATED_BY_DEFAULT, "{jdk} by default: {}", share.text());
        notes::figure(&format!(
            "{jdk} by default: of a compiled method, the part that is not of what is inlined: {:.4}, truth {:.4}",
            share.sampled, share.measured
        ));
    }
    Ok(())
}
