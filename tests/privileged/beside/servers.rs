//! Tests stacks of programs that nobody here wrote, under load: nearly all are whole. What the programs do
//! is not known in advance, so nothing else can be said of them.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    jdk::{Collector, Jdk},
    notes,
    profiler::{END, Output, Run},
    servers::{Program, Server},
    statistics::RARE_SIGMAS,
};

/// The largest part of a server's samples whose stacks may not be whole, or not named.
const LOST: f64 = 0.005;
/// So many that one bad stack is not a verdict.
const ENOUGH_SAMPLES: f64 = 200.0;
const LIMIT: Duration = Duration::from_secs(60);

/// Shares of the samples of a server's Java threads.
struct Seen {
    samples: f64,
    whole: f64,
    /// All frames have names.
    named: f64,
    /// Cause and samples of stacks that are not whole.
    incomplete: String,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, whole, named, incomplete } = self;
        write!(f, "{samples} | {:.2} % | {:.2} % | {incomplete}", 100.0 * whole, 100.0 * named)
    }
}

fn see(server: &Server, seconds: u32, frequency: u32) -> Result<Seen> {
    let output = Output::new()?;
    let run = Run::modelled().pid(server.pid).with("--frequency", frequency.to_string()).argument("--quiet");
    let finished = run.with("--duration", format!("{seconds}s")).output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let java = format!("FROM quality WHERE category = 'java' AND pid = {}", server.pid);
    let sums = output.data.rows(&format!(
        "SELECT sum(samples)::DOUBLE AS samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE / sum(samples) AS whole,
           coalesce(sum(samples) FILTER (unnamed IS NULL), 0)::DOUBLE / sum(samples) AS named {java}"
    ))?;
    let row = sums.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
    let causes = output.data.rows(&format!(
        "SELECT walk_end, sum(samples)::INTEGER AS n {java} AND NOT is_complete GROUP BY 1 ORDER BY 2 DESC"
    ))?;
    let cause = |row: &serde_json::Value| format!("{} {}", row["walk_end"].as_str().unwrap_or("?"), row["n"]);
    Ok(Seen {
        samples: number("samples")?,
        whole: number("whole")?,
        named: number("named")?,
        incomplete: causes.iter().map(cause).collect::<Vec<_>>().join(", "),
    })
}

fn expect(what: &str, seen: &Seen) -> Result<()> {
    notes::figure(&format!("{what}: {seen}"));
    let most = LOST * seen.samples;
    let most = most + RARE_SIGMAS * most.sqrt();
    let lost = |part: f64| (1.0 - part) * seen.samples;
    ensure!(seen.samples > ENOUGH_SAMPLES && lost(seen.whole) <= most && lost(seen.named) <= most, "{what}: {seen}");
    Ok(())
}

/// Looks longer where a busy machine leaves the program too little time for a verdict.
fn see_enough(server: &Server, seconds: u32, frequency: u32) -> Result<Seen> {
    let mut seen = see(server, seconds, frequency)?;
    for times in [3, 9] {
        if seen.samples > ENOUGH_SAMPLES {
            break;
        }
        seen = see(server, times * seconds, frequency)?;
    }
    Ok(seen)
}

pub fn expect_whole(program: Program) -> Result<()> {
    if !program.is_installed() {
        notes::skipped(&format!("{program} is not installed (`cargo xtask setup` does it on Debian)"));
        return Ok(());
    }
    let server = program.start()?;
    repeat_once(|measures| expect(&program.to_string(), &see_enough(&server, 5 * measures, 999)?))
}

#[test]
fn stacks_of_tomcat_under_load_are_whole() -> Result<()> {
    expect_whole(Program::Tomcat)
}

#[test]
fn stacks_of_a_database_are_whole() -> Result<()> {
    expect_whole(Program::H2)
}

/// Its barriers keep registers beyond the frames of methods.
#[test]
fn stacks_of_a_database_with_zgc_are_whole_across_jdks() -> Result<()> {
    if !Program::H2.is_installed() {
        notes::skipped("H2 is not installed (`cargo xtask setup` does it on Debian)");
        return Ok(());
    }
    for jdk in Jdk::tried()?.into_iter().filter(|jdk| jdk.collectors.contains(&Collector::Z)) {
        let server = Program::H2.start_on(&jdk.java, &[&Collector::Z.flag()])?;
        let what = format!("H2 with ZGC on {jdk}");
        repeat_once(|measures| expect(&what, &see_enough(&server, 4 * measures, 999)?))?;
    }
    Ok(())
}

/// The table of docs/measured/stacks.md. It takes ten minutes, and has no bounds.
#[test]
#[ignore = "a measurement for docs/measured/stacks.md"]
fn stacks_of_servers_on_every_jdk() -> Result<()> {
    for program in [Program::Tomcat, Program::H2] {
        for jdk in Jdk::pinned()? {
            for collector in &jdk.collectors {
                let server = program.start_on(&jdk.java, &[&collector.flag()])?;
                notes::figure(&format!(
                    "servers | {program} | {} {collector} | {}",
                    jdk.version,
                    see(&server, 10, 999)?
                ));
            }
        }
    }
    Ok(())
}
