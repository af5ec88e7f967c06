//! Measures what a sample really costs: with the sampler that is the default, on stacks of programs that nobody here wrote,
//! and as the time that a CPU loses.

use std::{process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    bpf_stats::{BpfStats, programs},
    process::Running,
    profiler::{Output, Run},
    servers::Program,
    statistics::median,
};

use super::figure::Figure;
use crate::{setup, shell};

const RUNS: usize = 3;
/// The first samples of new stacks cost more than all later ones, and a server compiles its methods first.
const WARM_UP: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(15);
/// Interleaved: without, and with each sampler.
const ROUNDS: usize = 8;
const ROUND: Duration = Duration::from_secs(6);
/// Of a round, while the recording starts.
const START: Duration = Duration::from_secs(2);
const CPU: &str = "1";
/// Longer than all rounds.
const LOAD_SECONDS: &str = "600";

pub fn measure() -> Result<Vec<Figure>> {
    setup::servers();
    let mut figures = {
        let _stats = BpfStats::enable()?;
        let mut figures = Vec::new();
        shell::step("what a sample costs: a loop of native code");
        let load = gap_load()?;
        figures.extend(of_load("a native loop", load.pid(), ["≤ 8 µs", "≤ 5 µs"])?);
        drop(load);
        for program in Program::ALL {
            shell::step(&format!("what a sample costs: {program}"));
            let server = program.start()?;
            let targets = if program == Program::H2 { ["≤ 20 µs", "≤ 10 µs"] } else { ["none", "none"] };
            figures.extend(of_load(&program.to_string(), server.pid, targets)?);
        }
        figures
    };
    figures.extend(gaps()?);
    Ok(figures)
}

fn gap_load() -> Result<Running> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut load = Running::spawn("gap-load", command.args(["gap-load", CPU, LOAD_SECONDS]))?;
    load.wait_stdout("ready", Duration::from_secs(10))?;
    Ok(load)
}

/// At both frequencies.
fn of_load(load: &str, pid: u32, targets: [&'static str; 2]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (frequency, target) in [99, 999].into_iter().zip(targets) {
        let values = (0..RUNS).map(|_| per_sample_us(pid, frequency)).collect::<Result<_>>()?;
        figures.push(Figure {
            name: format!("sample of {load} at {frequency} Hz"),
            unit: "µs",
            target,
            method: format!(
                "run time of the sampling program of the default sampler over {} s, by the kernel's statistics, of all its runs, \
                 most of which take no sample, divided by the samples of the data set for that time",
                MEASURED.as_secs()
            ),
            values,
            digits: 1,
        });
    }
    Ok(figures)
}

fn per_sample_us(pid: u32, frequency: u32) -> Result<f64> {
    let output = Output::new()?;
    let run = Run::modelled().pid(pid).with("--frequency", frequency.to_string()).argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    thread::sleep(WARM_UP);
    let run_time_ns = || -> Result<u64> {
        let programs = programs(&profiler)?;
        let sampling = programs.values().filter(|program| program.name.starts_with("sample_at"));
        Ok(sampling.map(|program| program.run_time_ns).sum())
    };
    let before = (epoch_us()?, run_time_ns()?);
    thread::sleep(MEASURED);
    let after = (epoch_us()?, run_time_ns()?);
    profiler.stop()?;
    // Windows that are partly within count in part.
    let samples = output.data.number(&format!(
        "SELECT sum(quality.samples * greatest(0, least({to}, epoch_us(window_start) + window_ns // 1000)
             - greatest({from}, epoch_us(window_start))) / (window_ns / 1000))::DOUBLE
         FROM quality JOIN windows USING (window_start, window_ns)",
        from = before.0,
        to = after.0
    ))?;
    ensure!(samples > 0.0, "there are no samples");
    Ok((after.1 - before.1) as f64 / 1e3 / samples)
}

fn epoch_us() -> Result<u128> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_micros())
}

/// What a CPU loses, in milliseconds a second.
fn gaps() -> Result<Vec<Figure>> {
    let kinds: [(&str, &[&str], &'static str); 3] = [
        ("time that a busy CPU loses at 99 Hz", &["--frequency", "99"], "none"),
        ("time that a busy CPU loses at 999 Hz", &["--frequency", "999"], "none"),
        ("the same with the sampler cpu-clock", &["--frequency", "999", "--sampler", "cpu-clock"], "none"),
    ];
    shell::step("what a CPU loses to samples, by gaps between looks at its clock");
    let load = gap_load()?;
    let mut values = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for ((_, options, _), values) in kinds.iter().zip(&mut values) {
            let without = lost_ms(&load)?;
            let output = Output::new()?;
            let run = Run::modelled().pid(load.pid()).argument("--quiet").output(output.dir());
            let profiler = options.iter().fold(run, |run, option| run.argument(*option)).start()?;
            let with = lost_ms(&load)?;
            profiler.stop()?;
            values.push(with - without);
        }
    }
    let figure = |((name, _, target), values): ((&str, &[&str], &'static str), Vec<f64>)| Figure {
        name: name.to_owned(),
        unit: "ms/s",
        target,
        method:
            "gaps of 0.6 to 400 µs between looks at the clock of a loop that has a CPU for itself: medians of quarter \
                 seconds, less those of the round before without a recording"
                .to_owned(),
        values,
        digits: 2,
    };
    Ok(kinds.into_iter().zip(values).map(figure).collect())
}

/// The median of the quarter seconds of a round.
fn lost_ms(load: &Running) -> Result<f64> {
    thread::sleep(START);
    let before = load.stdout().lines().count();
    thread::sleep(ROUND);
    let lines: Vec<f64> = load.stdout().lines().skip(before).filter_map(|line| line.parse().ok()).collect();
    ensure!(!lines.is_empty(), "the load says nothing");
    Ok(median(&lines) / 1e6)
}
