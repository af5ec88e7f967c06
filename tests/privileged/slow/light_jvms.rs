//! Tests JVMs that hardly work. A window of one second rarely has a sample of theirs, but reports
//! over the whole run say which methods their energy went to.

use std::{process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Jvm, Workload},
    paths,
    profiler::{END, Output, Run},
    statistics::RARE_SIGMAS,
};
use serde_json::Value;

const JVMS: usize = 20;
/// As many samples as in 40 seconds at the default frequency.
const RECORDED: &str = "20s";
const FREQUENCY: &str = "199";
const LIMIT: Duration = Duration::from_secs(20);

/// Every 20 ms the first method runs for so many microseconds, and the second twice as long: 0.6 % of
/// a CPU each.
const THREAD: &str = "sleep-20-40";

/// The largest part of the energy whose threads may have had no sample at all.
const NO_SAMPLE: f64 = 0.03;

/// Of a 95 % interval, on each side.
const INTERVAL: f64 = 1.96;

fn start() -> Result<Jvm> {
    let workload = Workload::new("Waker").flag("-Xmx32m").flag("-XX:+UseSerialGC");
    workload.dont_inline("Waker::a").dont_inline("Waker::b").argument(THREAD).start()
}

/// Two start at a time.
fn start_all() -> Result<Vec<Jvm>> {
    let half = || (0..JVMS / 2).map(|_| start()).collect::<Result<Vec<_>>>();
    thread::scope(|scope| {
        let other = scope.spawn(half);
        let mut jvms = half()?;
        jvms.extend(other.join().expect("it returns an error, if any")?);
        Ok(jvms)
    })
}

/// The part of both methods' CPU time that the first one had, as all JVMs measured it.
fn measured(jvms: Vec<Jvm>) -> Result<f64> {
    let mut times = [0.0; 2];
    for jvm in jvms {
        let said = jvm.finish(LIMIT)?.stdout;
        let line = said.lines().find(|line| line.starts_with(THREAD)).with_context(|| format!("no times: {said}"))?;
        for (time, word) in times.iter_mut().zip(line.split(' ').skip(1)) {
            *time += word.parse::<f64>()?;
        }
    }
    Ok(times[0] / (times[0] + times[1]))
}

/// A report of all methods.
struct Report(Value);

impl Report {
    fn of(output: &Output, options: &[&str]) -> Result<Self> {
        let mut command = Command::new(paths::joular_bpf());
        command.arg("report").arg(output.dir()).args(["--by", "method", "--top", "0", "--json"]).args(options);
        let done = command.output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(Self(serde_json::from_slice(&done.stdout)?))
    }

    fn energy_uj(&self) -> f64 {
        self.0["selection"]["energy_uj"].as_f64().unwrap_or_default()
    }

    /// The part of the energy of which no sample tells the method.
    fn no_sample(&self) -> f64 {
        self.0["unnamed_uj"]["[no sample]"].as_f64().unwrap_or_default() / self.energy_uj()
    }

    /// Energy of a method, and its standard deviation.
    fn method(&self, name: &str) -> Result<(f64, f64)> {
        let rows = self.0["tables"][0]["rows"].as_array().context("a table")?;
        let row = rows.iter().find(|row| row["method"] == name).with_context(|| format!("no {name}: {rows:?}"))?;
        let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}"));
        Ok((number("self_uj")?, (number("self_high_uj")? - number("self_low_uj")?) / (2.0 * INTERVAL)))
    }
}

#[test]
fn energy_of_jvms_that_hardly_work_has_the_names_of_their_methods() -> Result<()> {
    let output = Output::new()?;
    let jvms = start_all()?;
    let pids: Vec<String> = jvms.iter().map(|jvm| jvm.pid().to_string()).collect();
    let run = Run::modelled().with("--pid", pids.join(",")).with("--duration", RECORDED).with("--frequency", FREQUENCY);
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let truth = measured(jvms)?;
    let (recorded, shown) = (Report::of(&output, &["--no-infer"])?, Report::of(&output, &[])?);
    let ((first, sigma), (second, _)) = (shown.method("Waker.a")?, shown.method("Waker.b")?);
    let distance = (first - truth * (first + second)) / sigma;
    println!(
        "no sample: {:.1} % recorded, {:.1} % shown; share of the first method {:.4}, {truth:.4} measured, {distance:.1} σ",
        100.0 * recorded.no_sample(),
        100.0 * shown.no_sample(),
        first / (first + second)
    );
    assert_eq!(shown.energy_uj(), recorded.energy_uj());
    assert!(recorded.no_sample() > 5.0 * NO_SAMPLE, "these JVMs work too much to show anything");
    assert!(shown.no_sample() <= NO_SAMPLE);
    assert!(distance.abs() <= RARE_SIGMAS);
    Ok(())
}
