//! Tests that the 95 % intervals of allocated bytes hold the truth, whatever a program repeats: its loops may keep step with
//! the buffers that samples are taken at.

use std::{collections::BTreeMap, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    clock::wait_for,
    java::{Jdk, Jvm, Workload},
    notes, paths,
    profiler::{Output, Run},
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
/// JVMs that are recorded at once.
const AT_ONCE: usize = 8;
const SMALL_HEAP: &[&str] = &["-Xmx32m", "-XX:+UseSerialGC"];
const LARGE_HEAP: &[&str] = &["-Xms600m", "-Xmx600m", "-XX:+UseG1GC"];
const COMPACT: &[&str] = &["-Xms600m", "-Xmx600m", "-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"];

/// What a program allocates: see the workload's options.
struct Case {
    jdk: &'static Jdk,
    heap: &'static [&'static str],
    objects: &'static str,
    order: &'static str,
}

/// What became of it.
struct Seen {
    /// Methods whose interval has the truth, and all.
    held: usize,
    methods: usize,
    /// Whether the report says that it allocated in step.
    is_in_step: bool,
    text: String,
}

/// Arrays of 8 kB, each followed by a hundred small ones. Without intervals that know of it, 33 or 100 % of all bytes were
/// the arrays', which have 56 %.
#[test]
fn loops_that_keep_step_with_their_buffers_have_intervals_that_hold_the_truth_across_jdks() -> Result<()> {
    repeat_once(|measures| {
        let mut cases = Vec::new();
        for jdk in Jdk::tried()? {
            let heaps = [SMALL_HEAP, LARGE_HEAP, COMPACT].into_iter().take(if jdk.release >= 25 { 3 } else { 2 });
            cases.extend(heaps.map(|heap| Case { jdk, heap, objects: "8192x1,48x100", order: "cycle" }));
        }
        let seen = record(&cases, measures)?;
        let missed: Vec<&str> = seen.iter().filter(|seen| seen.held < seen.methods).map(|seen| &*seen.text).collect();
        ensure!(missed.is_empty(), "{missed:#?}");
        ensure!(seen.iter().filter(|seen| seen.is_in_step).count() * 2 > seen.len(), "hardly any is in step");
        Ok(())
    })
}

/// Sizes and how many of them there are, of which programs are made.
const OBJECTS: [&str; 10] = [
    "8192x1,48x100",
    "16x60,1000x30,2000x10",
    "16x3,24x2,40x1",
    "65536x1,240x200,4096x10",
    "8x1000,40000x1",
    "100x5,100x3",
    "1000x1,24x7,56x3,2000x1,160x20,8192x1",
    "24x1,4096x1",
    "500x2,500x1,40x100",
    "16000x1,64x30,256x3",
];

/// How often an interval may miss: one time in twenty, and as much more as chance makes of so many. Methods of one program
/// miss together.
fn allowed_misses(methods: usize) -> f64 {
    let programs = methods as f64 / 2.5;
    methods as f64 * (0.05 + 3.0 * (0.05 * 0.95 / programs).sqrt())
}

fn expect_most_to_hold(orders: &[&'static str], objects: &[&'static str]) -> Result<()> {
    repeat_once(|measures| {
        let mut cases = Vec::new();
        for jdk in Jdk::tried()? {
            let heaps = [SMALL_HEAP, LARGE_HEAP, COMPACT].into_iter().take(if jdk.release >= 25 { 3 } else { 2 });
            for heap in heaps {
                for order in orders {
                    cases.extend(objects.iter().map(|objects| Case { jdk, heap, objects, order }));
                }
            }
        }
        let seen = record(&cases, measures)?;
        let (held, methods) = seen.iter().fold((0, 0), |sum, seen| (sum.0 + seen.held, sum.1 + seen.methods));
        let in_step = seen.iter().filter(|seen| seen.is_in_step).count();
        notes::figure(&format!(
            "allocation, {}: {held} of {methods} intervals of {} programs have the truth, {in_step} are in step",
            orders.join(" and "),
            seen.len()
        ));
        let missed: Vec<&str> = seen.iter().filter(|seen| seen.held < seen.methods).map(|seen| &*seen.text).collect();
        let misses = (methods - held) as f64;
        ensure!(misses <= allowed_misses(methods), "{misses} of {methods} do not hold: {missed:#?}");
        Ok(())
    })
}

#[test]
fn intervals_hold_the_truth_of_random_orders_across_jdks() -> Result<()> {
    expect_most_to_hold(&["random"], &OBJECTS[..4])
}

/// Of all programs, in all orders. It takes minutes.
pub fn expect_all_to_hold() -> Result<()> {
    expect_most_to_hold(&["random"], &OBJECTS)?;
    expect_most_to_hold(&["mixed"], &OBJECTS)?;
    expect_most_to_hold(&["cycle", "shuffled"], &OBJECTS)
}

/// Records programs, some at a time.
fn record(cases: &[Case], measures: u32) -> Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for cases in cases.chunks(AT_ONCE) {
        let mut jvms = cases.iter().map(|case| case.start(measures)).collect::<Result<Vec<_>>>()?;
        let output = Output::new()?;
        let run =
            Run::modelled().with("--interval", "500ms").argument("--json").argument("--alloc").output(output.dir());
        let mut profiler = jvms.iter().fold(run, |run, jvm| run.pid(jvm.pid())).start()?;
        // By then each JVM is known and has its probes.
        (0..3).try_for_each(|_| profiler.wait_window().map(drop))?;
        jvms.iter_mut().try_for_each(|jvm| jvm.say("go"))?;
        let told =
            jvms.iter().map(|jvm| wait_for("a program to allocate", LIMIT, || Ok(jvm.records().first().cloned())));
        let told = told.collect::<Result<Vec<_>>>()?;
        (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
        profiler.stop()?;
        for ((case, jvm), told) in cases.iter().zip(&jvms).zip(&told) {
            seen.push(case.judge(&output, jvm, told)?);
        }
    }
    Ok(seen)
}

impl Case {
    fn start(&self, measures: u32) -> Result<Jvm> {
        let workload = Workload::new("Cycles").jdk(self.jdk).dont_inline("Cycles.*");
        let workload = self.heap.iter().fold(workload, |workload, flag| workload.flag(flag));
        let options = [
            format!("objects={}", self.objects),
            format!("order={}", self.order),
            format!("bytes={}", 500_000_000 * u64::from(measures)),
        ];
        options.iter().fold(workload, |workload, option| workload.argument(option)).start()
    }

    /// Compares what the program says with the intervals of the report.
    fn judge(&self, output: &Output, jvm: &Jvm, told: &Value) -> Result<Seen> {
        let mut command = Command::new(paths::joular_bpf());
        command.arg("report").arg(output.dir()).args([
            "--by",
            "method",
            "--measure",
            "allocated",
            "--top",
            "0",
            "--json",
        ]);
        let done = command.args(["--pid", &jvm.pid().to_string(), "--thread", "allocator"]).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout)?;
        let rows = report["tables"][0]["rows"].as_array().context("a table")?;
        let mut shown = BTreeMap::new();
        for row in rows {
            let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name} in {row}"));
            let name = row["name"].as_str().context("a name")?.to_owned();
            shown.insert(name, (number("self_bytes")?, number("self_low_bytes")?, number("self_high_bytes")?));
        }
        let (all, samples) = (told["all"].as_f64().context("all")?, &report["allocated"]["samples"]);
        let of = format!("{} {:?}, {} in {} order, {samples} samples", self.jdk, self.heap, self.objects, self.order);
        let left = all - shown.values().map(|(_, low, _)| low).sum::<f64>();
        let (mut held, mut methods, mut text) = (0, 0, of);
        for (name, bytes) in told.as_object().context("an object")?.iter().filter(|(name, _)| *name != "all") {
            let truth = bytes.as_f64().context("bytes")?;
            // What was never seen has no row. It has at most what the intervals of all others leave.
            let (found, low, high) = shown.get(&format!("Cycles.{name}")).copied().unwrap_or((0.0, 0.0, left));
            // What the program allocates beside is a thousandth at most.
            let holds = low * 0.999 <= truth && truth <= high + all / 1000.0;
            (held, methods) = (held + usize::from(holds), methods + 1);
            let percent = |bytes: f64| 100.0 * bytes / all;
            text.push_str(&format!(
                "; {name} {:.1} ({:.1}–{:.1}), truth {:.1} %{}",
                percent(found),
                percent(low),
                percent(high),
                percent(truth),
                if holds { "" } else { " MISSED" }
            ));
        }
        let is_in_step = report["allocated"]["in_step_bytes"].as_u64().context("in_step_bytes")? > 0;
        text.push_str(if is_in_step { "; in step" } else { "" });
        eprintln!("{text}");
        Ok(Seen { held, methods, is_in_step, text })
    }
}
