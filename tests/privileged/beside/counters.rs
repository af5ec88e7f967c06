//! Tests `--counters`: what threads counted is what the kernel says of them, and what a machine cannot count is refused.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::integer,
    java, paths,
    process::{Finished, Running},
    profiler::Output,
    python,
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

fn run(output: &Output, options: &[&str], command: &mut Command) -> Result<Finished> {
    let mut line = Command::new(paths::joular_bpf());
    line.args(["run", "--energy", "model", "--output"]).arg(output.dir()).args(options);
    line.arg("--").arg(command.get_program()).args(command.get_args());
    Running::spawn("joular-bpf run", &mut line)?.finish(LIMIT)
}

/// What the kernel says of a thread, or of several: a line of counted.py.
struct Told {
    tid: i64,
    minor: i64,
    switches: i64,
}

fn told(line: &str) -> Result<Told> {
    let field = |name: &str| -> Result<i64> {
        let value = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value.with_context(|| format!("{name} in {line:?}"))?.parse().with_context(|| line.to_owned())
    };
    Ok(Told { tid: field("tid")?, minor: field("minor")?, switches: field("switches")? })
}

/// What was recorded of these threads.
fn recorded(output: &Output, counter: &str, tids: &str) -> Result<i64> {
    let sql = format!(
        "SELECT cast(coalesce(sum(count), 0) AS BIGINT) AS counted FROM counters WHERE counter = '{counter}' AND tid IN ({tids})"
    );
    integer(output.data.rows(&sql)?.first().context("a row")?, "counted")
}

/// What was counted around switches that the kernel did not report, and is therefore nobody's. It is nothing where the
/// kernel reports all.
fn of_nobody(output: &Output, counter: &str) -> Result<i64> {
    let sum = |column: &str, table: &str, condition: &str| -> Result<i64> {
        let sql = format!("SELECT cast(coalesce(sum({column}), 0) AS BIGINT) AS sum FROM {table} WHERE {condition}");
        integer(output.data.rows(&sql)?.first().context("a row")?, "sum")
    };
    let counted = sum("count", "counters", &format!("counter = '{counter}' AND claimant = 'unslotted'"))?;
    let hidden = sum("lost_hidden_switch", "windows", "true")?;
    ensure!(hidden > 0 || counted == 0, "{counted} {counter} are nobody's, and no switch was hidden");
    Ok(counted)
}

#[test]
fn threads_counted_what_the_kernel_says_of_them_over_many_windows() -> Result<()> {
    let output = Output::new()?;
    let counters = ["--interval", "100ms", "--counters", "page-faults,minor-faults,context-switches,cpu-migrations"];
    let finished = run(&output, &counters, &mut python::COMMON.script("counted.py")?)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let lines: Vec<Told> = finished.stdout.lines().map(told).collect::<Result<_>>()?;
    let (all, threads) = lines.split_last().context("lines")?;
    ensure!(threads.len() == 4 && all.tid == 0, "{finished:?}");
    let nobody = of_nobody(&output, "minor-faults")?;
    for thread in threads {
        let tid = thread.tid.to_string();
        let (minor, switches) =
            (recorded(&output, "minor-faults", &tid)?, recorded(&output, "context-switches", &tid)?);
        // It goes on for a moment after it has asked.
        let expected = thread.minor - nobody..thread.minor + 50;
        ensure!(expected.contains(&minor), "{tid}: {minor}, it says {}, {nobody} are nobody's", thread.minor);
        ensure!(switches > thread.switches, "{tid}: {switches}, it says {}", thread.switches);
    }
    let tids = threads.iter().map(|thread| thread.tid.to_string()).collect::<Vec<_>>().join(", ");
    let (minor, page) = (recorded(&output, "minor-faults", &tids)?, recorded(&output, "page-faults", &tids)?);
    // Exactly, unless the kernel hides switches: then what is missing is among what is nobody's.
    let missing = all.minor - minor;
    ensure!(
        (0..=nobody).contains(&missing),
        "{minor} minor faults, the kernel says {}, {nobody} are nobody's",
        all.minor
    );
    // The kernel counts a fault as it begins, and as a minor one when it has ended. A thread may be put off meanwhile.
    let begun = page + of_nobody(&output, "page-faults")?;
    ensure!(begun >= minor, "{page} page faults, {begun} with those that are nobody's, and {minor} minor ones");
    let switches = recorded(&output, "context-switches", &tids)?;
    // A thread's last switch comes after the kernel has added up the thread's own; before it there may be another.
    ensure!((4..=12).contains(&(switches - all.switches)), "{switches} switches, the kernel says {}", all.switches);
    ensure!(output.data.number("SELECT count(DISTINCT window_start) FROM counters")? >= 3.0);
    ensure!(finished.stderr.contains("per J  minor-faults"), "{finished:?}");
    Ok(())
}

/// What the program says of a method: minor faults of the thread that ran it.
fn faults_of(stdout: &str, method: &str) -> Result<u64> {
    let line = stdout.lines().find_map(|line| line.strip_prefix(method)?.strip_prefix(' '));
    line.with_context(|| format!("{method} in {stdout:?}"))?.parse().context("a number of faults")
}

#[test]
fn a_methods_page_faults_are_those_of_the_thread_that_ran_it() -> Result<()> {
    let output = Output::new()?;
    let mut java = Command::new(java::tool("java"));
    java.args(["-Xint", "-Xmx64m", "-XX:MaxDirectMemorySize=300m", "-cp"]).arg(java::classes()?).arg("Faults");
    let options = ["--interval", "200ms", "--frequency", "499", "--counters", "minor-faults"];
    let finished = run(&output, &options, &mut java)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let mut report = Command::new(paths::joular_bpf());
    report.arg("report").arg(output.dir()).args(["--json", "--top", "0", "--by", "method,thread"]);
    let reported = Running::spawn("report", &mut report)?.finish(LIMIT)?;
    let report: Value = serde_json::from_str(&reported.stdout).with_context(|| format!("{reported:?}"))?;
    let rows = |table: usize| report["tables"][table]["rows"].as_array().context("rows");
    let total = |table: usize, name: &str, value: &str| -> Result<u64> {
        let row = rows(table)?.iter().find(|row| row[name] == value).with_context(|| format!("no {value}"))?;
        row["total_minor_faults"].as_u64().context("faults")
    };
    // A thread does little before and after it asks. Which method it was in, only samples tell.
    let (of_thread, told) = (total(1, "thread", "toucher")?, faults_of(&finished.stdout, "touch")?);
    let nobody = u64::try_from(of_nobody(&output, "minor-faults")?)?;
    let expected = told.saturating_sub(nobody)..told + 200;
    ensure!(
        expected.contains(&of_thread),
        "{of_thread} faults of the thread, the kernel says {told}, {nobody} are nobody's"
    );
    let (touched, computed) = (total(0, "method", "Faults.touch")?, total(0, "method", "Faults.compute")?);
    ensure!(told > 20_000 && touched <= of_thread && touched >= of_thread - of_thread / 10, "{touched} of {of_thread}");
    ensure!(computed < of_thread / 100, "{computed} faults of compute, {of_thread} of the other thread");
    let all = output.data.number("SELECT sum(count) FROM counters WHERE claimant = 'thread'")?;
    for table in [0, 1] {
        let sum: u64 = rows(table)?.iter().filter_map(|row| row["self_minor_faults"].as_u64()).sum();
        ensure!(sum as f64 == all, "{sum} faults in table {table}, {all} were counted");
    }
    Ok(())
}

#[test]
fn nothing_is_counted_unless_it_is_asked_for() -> Result<()> {
    let output = Output::new()?;
    let finished = run(&output, &[], &mut Command::new("true"))?;
    ensure!(finished.code() == Some(0) && !finished.stderr.contains("Counted"), "{finished:?}");
    ensure!(!output.dir().join("counters").exists());
    Ok(())
}

#[test]
fn what_this_machine_cannot_count_is_refused_by_name() -> Result<()> {
    let output = Output::new()?;
    let finished = run(&output, &["--quiet", "--counters", "page-faults,instructions"], &mut Command::new("true"))?;
    // Hybrid processors have several of other names.
    if Path::new("/sys/bus/event_source/devices/cpu").exists()
        || Path::new("/sys/bus/event_source/devices/cpu_core").exists()
    {
        ensure!(finished.code() == Some(0), "{finished:?}");
        return Ok(());
    }
    ensure!(finished.code() == Some(4), "{finished:?}");
    let expected = "--counters: instructions: this machine's CPUs do not count it";
    ensure!(finished.stderr.contains(expected), "{finished:?}");
    Ok(())
}
