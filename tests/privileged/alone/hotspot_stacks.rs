//! Tests stacks of JVMs of every release and collector, without any flag: they are whole and right,
//! down to interpreted and inlined methods and their lines.

use std::{
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    bpf_stats::{BpfStats, programs},
    chance::repeat_once,
    java::{Collector, Jdk, Jvm, Workload},
    known::{self, CallLines, Report, Root},
    profiler::{Output, Run},
};

/// Of a thousand samples five may be incomplete. They may also be in an instruction or two where
/// nothing tells who called.
const TOLERATED: f64 = 0.005;
/// Often, so that two seconds of a JVM are thousands of samples.
const FREQUENCY: f64 = 1999.0;
/// Of a second each.
const WINDOWS: u32 = 2;

/// A JVM that ran the known workloads, and what the profiler saw.
struct Recorded {
    name: String,
    pid: u32,
    output: Output,
    /// Time in the profiler's programs. A thread's CPU time contains it, and no sample can be taken
    /// in it, which counts at this frequency.
    programs_ns: u64,
}

impl Recorded {
    fn new(name: String, jvm: &Jvm, measures: u32) -> Result<Self> {
        let output = Output::new()?;
        let stats = BpfStats::enable()?;
        let run = Run::modelled().pid(jvm.pid()).with("--frequency", FREQUENCY.to_string());
        jvm.thaw()?;
        let mut profiler = run.argument("--json").output(output.dir()).start()?;
        for _ in 0..measures * WINDOWS {
            profiler.wait_window()?;
        }
        // Its dozen of busy threads would only keep the profiler from writing files.
        jvm.freeze()?;
        let programs_ns = programs(&profiler)?.values().map(|program| program.run_time_ns).sum();
        drop(stats);
        profiler.stop().with_context(|| name.clone())?;
        Ok(Self { name, pid: jvm.pid(), output, programs_ns })
    }

    /// What its stacks are like.
    fn judge(&self) -> Result<Report> {
        let stacks = known::stacks(&self.output.data, self.pid)?;
        let report = Report::of(self.name.as_str(), &stacks, &CallLines::read()?, Root::Native);
        report.save()?;
        print!("{report}");
        self.expect_all_samples(&report)?;
        Ok(report)
    }

    /// A CPU's time and samples go together, however much of it others take.
    fn expect_all_samples(&self, report: &Report) -> Result<()> {
        let threads = report.scenarios.iter().map(|(name, _)| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let cpu_seconds = self.output.data.number(&format!(
            "SELECT coalesce(sum(cpu_ns), 0)::DOUBLE / 1e9 FROM threads WHERE pid = {} AND thread_name IN ({threads})",
            self.pid
        ))?;
        let samples = report.total().samples();
        let share = samples / self.output.data.number("SELECT sum(samples)::DOUBLE FROM threads")?;
        let due = FREQUENCY * (cpu_seconds - share * self.programs_ns as f64 / 1e9);
        println!("{}: {samples} samples, {due:.0} due", report.jvm);
        ensure!(
            samples > 300.0 && (0.9 * due..1.1 * due).contains(&samples),
            "{}: {samples} samples, {due} due",
            report.jvm
        );
        Ok(())
    }
}

/// Profiles JVMs one after the other. While one is recorded, the next one starts, and
/// the stacks of the one before are judged.
fn reports(workloads: Vec<(String, Workload)>, measures: u32) -> Result<Vec<Report>> {
    thread::scope(|scope| {
        let (sender, started) = sync_channel(0);
        scope.spawn(move || {
            for (name, workload) in workloads {
                // Held when it is warm, until it is its turn.
                let jvm = workload.start().and_then(|jvm| jvm.freeze().map(|_| jvm)).with_context(|| name.clone());
                if sender.send((name, jvm)).is_err() {
                    return;
                }
            }
        });
        let started: Receiver<(String, Result<Jvm>)> = started;
        let mut judged = Vec::new();
        for (name, jvm) in started {
            let recorded = Recorded::new(name, &jvm?, measures)?;
            judged.push(scope.spawn(move || recorded.judge()));
        }
        judged.into_iter().map(|thread| thread.join().expect("it returns an error, if any")).collect()
    })
}

/// Profiles JVMs, and complains of all that is wrong with any of them, and of what else the test looks for.
fn expect_right(
    workloads: impl Fn() -> Result<Vec<(String, Workload)>>,
    others: impl Fn(&Report) -> Vec<String>,
) -> Result<()> {
    repeat_once(|measures| {
        let reports = reports(workloads()?, measures)?;
        let of_report = |report: &Report| [report.complaints(TOLERATED), others(report)].concat();
        let complaints: Vec<String> = reports.iter().flat_map(of_report).collect();
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        Ok(())
    })
}

fn no_others(_: &Report) -> Vec<String> {
    Vec::new()
}

#[test]
fn stacks_are_right_across_jdks_and_collectors() -> Result<()> {
    let workload = |(jdk, collector): (&Jdk, Collector)| {
        (format!("{jdk} {collector}"), known::workload().jdk(jdk).flag(&collector.flag()))
    };
    expect_right(|| Ok(Jdk::pairs()?.into_iter().map(workload).collect()), no_others)
}

#[test]
fn stacks_are_right_across_jdks_without_compilers_and_with_the_first_one_only() -> Result<()> {
    const MODES: [(&str, &str); 2] = [("int", "-Xint"), ("c1", "-XX:TieredStopAtLevel=1")];
    let of_jdk = |jdk: &'static Jdk| {
        MODES.map(|(name, flag)| {
            let workload = known::workload().jdk(jdk).flag(&Collector::Serial.flag()).flag(flag);
            (format!("{jdk} {name}"), workload)
        })
    };
    expect_right(|| Ok(Jdk::tried()?.into_iter().flat_map(of_jdk).collect()), no_others)
}

/// By default JVMs say only at safepoints which of its inlined methods code belongs
/// to, and C2 puts none into counted loops with these collectors. If they say it
/// everywhere, leaves are right, too.
#[test]
fn stacks_end_in_their_leaves_across_jdks_if_jvms_say_everywhere_what_is_inlined() -> Result<()> {
    let of_jdk = |jdk: &'static Jdk| {
        let collector = if jdk.release == 11 { Collector::Serial } else { Collector::Parallel };
        let workload = known::workload().jdk(jdk).flag(&collector.flag()).flag("-XX:-TieredCompilation");
        let workload = workload.flag("-XX:+UnlockDiagnosticVMOptions").flag("-XX:+DebugNonSafepoints");
        (format!("{jdk} c2"), workload)
    };
    let pinned = || Ok(Jdk::tried()?.into_iter().filter(|jdk| !jdk.is_system).map(of_jdk).collect());
    expect_right(pinned, Report::complaints_of_leaves)
}

/// Tests another vendor's build: its own compiler, its own symbols.
#[test]
fn stacks_are_right_on_the_jdk_of_the_system() -> Result<()> {
    let of_jdk = |jdk: &Jdk| (jdk.to_string(), known::workload().jdk(jdk));
    expect_right(|| Ok(Jdk::all()?.iter().filter(|jdk| jdk.is_system).map(of_jdk).collect()), no_others)
}

/// Of a thousand frames none may be missing: `recurse-1000` would have no right stack.
#[test]
fn stacks_of_a_thousand_frames_are_whole_across_jdks() -> Result<()> {
    let of_jdk = |jdk: &'static Jdk| {
        // Nothing is inlined: each frame stands on the stack itself.
        let workload = known::workload().jdk(jdk).argument("recurse-1000").dont_inline("known.Recursion::*");
        (format!("{jdk} 1000 frames"), workload)
    };
    // An exact one has a thousand frames of the recursion, neither more nor less.
    let others = |report: &Report| match report.of_scenario("recurse-1000") {
        Some(tally) if tally.exact >= 0.9 * tally.samples() => Vec::new(),
        tally => vec![format!("{}: the recursion: {tally:?}", report.jvm)],
    };
    expect_right(|| Ok(Jdk::tried()?.into_iter().map(of_jdk).collect()), others)
}
