//! Tests stacks of programs that nobody here wrote, under load: nearly all are whole. What the programs do
//! is not known in advance, so nothing else can be said of them.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
    servers::{Program, Server},
};

/// Of samples of Java threads.
const WHOLE: f64 = 0.995;
const LIMIT: Duration = Duration::from_secs(30);

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

fn expect_whole(program: Program) -> Result<()> {
    if !program.is_installed() {
        notes::skipped(&format!("{program} is not installed (`cargo xtask setup` does it on Debian)"));
        return Ok(());
    }
    let seen = see(&program.start()?, 5, 999)?;
    notes::figure(&format!("{program}: {seen}"));
    ensure!(seen.samples > 500.0 && seen.whole >= WHOLE && seen.named >= WHOLE, "{program}: {seen}");
    Ok(())
}

#[test]
fn stacks_of_tomcat_under_load_are_whole() -> Result<()> {
    expect_whole(Program::Tomcat)
}

#[test]
fn stacks_of_a_database_are_whole() -> Result<()> {
    expect_whole(Program::H2)
}

#[test]
fn stacks_of_spark_sql_are_whole() -> Result<()> {
    expect_whole(Program::SparkSql)
}

/// The table of docs/jvm.md. It takes ten minutes, and has no bounds.
#[test]
#[ignore = "a measurement for docs/jvm.md"]
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
