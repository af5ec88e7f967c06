//! Tests counters that fail during a run: the run goes on, says so, and has every microjoule that
//! the counter had, exactly.

use std::time::Duration;

use anyhow::{Result, ensure};
use joular_tests::{
    powercap::{FakePowercap, Fault, Log, Plan, Watts},
    profiler::{Output, Profiler, Run},
    topology::{self, Cpus},
};

use crate::{
    burner::Burner,
    readings::{self, Row},
};

const WATTS: Watts = Watts { idle: 20, per_cpu: 30 };

/// Longer than any of these runs.
const BURN: Duration = Duration::from_secs(60);

/// Windows before, in and after a fault; of half a second each.
const BEFORE: u32 = 4;
const DURING: u32 = 4;
const AFTER: u32 = 6;

/// The message when it is over.
const AGAIN: &str = "it can be read again";

/// A run over two packages of which tests let the first one fail.
struct Faulty {
    output: Output,
    counters: FakePowercap,
    profiler: Profiler,
    _burner: Burner,
}

/// The result of a run.
struct Left {
    output: Output,
    /// What was said of energy on standard error, in order.
    told: Vec<String>,
    logs: Vec<Log>,
    /// Of the package that failed.
    rows: Vec<Row>,
}

impl Faulty {
    fn start(failing: Plan) -> Result<Self> {
        let output = Output::new()?;
        let cpu_root = topology::create(output.beside("cpu"), Cpus::TwoSockets)?;
        let counters = FakePowercap::of(&[failing, Plan::package(1, &[1], WATTS)])?;
        // Of each CPU so much that two such tests leave some for others.
        let mut burner = Burner::start(&[30, 30])?;
        burner.pin(&[0, 1])?;
        burner.begin(BURN)?;
        let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root());
        let run = run.with("--cpu-root", cpu_root).with("--interval", "500ms").argument("--json");
        let profiler = run.pid(burner.pid()).output(output.dir()).start()?;
        Ok(Self { output, counters, profiler, _burner: burner })
    }

    fn windows(&mut self, count: u32) -> Result<()> {
        (0..count).try_for_each(|_| self.profiler.wait_window().map(drop))
    }

    /// Ends the run; whatever happened, it ends well and adds up.
    fn finish(self) -> Result<Left> {
        let finished = self.profiler.stop()?;
        let told = finished.stderr.lines().filter(|line| line.contains("energy of "));
        let told = told.map(str::to_owned).collect();
        let logs = self.counters.finish()?;
        readings::expect_audited(&self.output.data)?;
        let others = readings::of(&self.output.data, "package", 1)?;
        ensure!(others.iter().all(Row::is_plain), "the other package suffered: {others:?}");
        readings::expect_explained(&logs[1], &others)?;
        let rows = readings::of(&self.output.data, "package", 0)?;
        readings::expect_explained(&logs[0], &rows)?;
        Ok(Left { output: self.output, told, logs, rows })
    }
}

impl Left {
    /// Fails unless the user was told just these things, each once, of the
    /// package that failed.
    fn expect_told(&self, expected: &[&str]) -> Result<()> {
        let told = &self.told;
        let is = |(line, what): (&String, &&str)| {
            line.starts_with("joular-bpf: energy of package 0: ") && line.contains(what)
        };
        ensure!(told.len() == expected.len() && told.iter().zip(expected).all(is), "{told:?} instead of {expected:?}");
        Ok(())
    }
}

/// A run with a fault in its middle.
fn run_through(fault: Fault) -> Result<Left> {
    let mut run = Faulty::start(Plan::package(0, &[0], WATTS))?;
    run.windows(BEFORE)?;
    run.counters.fail(0, fault)?;
    run.windows(DURING)?;
    run.counters.mend(0)?;
    run.windows(AFTER)?;
    run.finish()
}

/// Windows without a reading, then one that has it all, and nothing else.
fn expect_merged(fault: Fault, cause: &str, told: &[&str]) -> Result<()> {
    let left = run_through(fault)?;
    left.expect_told(told)?;
    let Left { output, rows, .. } = left;
    let failed = rows.iter().filter(|row| row.read_failed).count();
    let first = rows.iter().position(|row| row.read_failed).unwrap_or(0);
    ensure!((DURING as usize - 1..=DURING as usize + 1).contains(&failed), "{failed} failed: {rows:?}");
    for (index, row) in rows.iter().enumerate() {
        if (first..first + failed).contains(&index) {
            ensure!(row.read_failed && !row.ambiguous && row.measured_uj == 0 && row.merged == 0, "{index}: {rows:?}");
            ensure!(row.fault.as_deref() == Some(cause), "{index}: {rows:?}");
        } else if index == first + failed {
            let Row { merged, read_failed, ambiguous, fault, .. } = row;
            ensure!(usize::try_from(*merged)? == failed + 1, "{merged} windows after {failed} failed");
            ensure!(!read_failed && !ambiguous && fault.is_none(), "{row:?}");
        } else {
            ensure!(row.is_plain(), "{index}: {rows:?}");
        }
    }
    // Its energy went to those who ran meanwhile, who are still there.
    let late = output.data.number("SELECT sum(failed_reads_uj) FROM windows")?;
    let merged = output.data.number("SELECT sum(measured_uj) FROM windows WHERE merged > 0")?;
    ensure!(late < 0.1 * merged, "{late} of {merged} µJ went to nobody");
    Ok(())
}

#[test]
fn a_zone_that_goes_and_comes_back_loses_nothing() -> Result<()> {
    expect_merged(Fault::Gone, "gone", &["energy_uj: it is gone: its energy comes with the next good reading", AGAIN])
}

#[test]
fn a_zone_that_cannot_be_read_for_a_while_loses_nothing() -> Result<()> {
    expect_merged(Fault::Unreadable, "unreadable", &["energy_uj: Is a directory", AGAIN])
}

#[test]
fn a_zone_that_says_nonsense_for_a_while_loses_nothing() -> Result<()> {
    expect_merged(Fault::Garbage, "malformed", &["energy_uj: not a number", AGAIN])
}

/// Wraps every two seconds. That is as fast as one can wrap and still be
/// followed: half a second at the 1 kW that a package may draw are less than
/// its range.
fn fast() -> Plan {
    Plan::package(0, &[0], Watts { idle: 450, per_cpu: 20 }).range_uj(FAST_RANGE_UJ)
}

const FAST_RANGE_UJ: u64 = 900_000_000;

#[test]
fn a_counter_that_wraps_every_two_seconds_is_followed_exactly() -> Result<()> {
    let mut run = Faulty::start(fast())?;
    run.windows(BEFORE + DURING + AFTER)?;
    let left = run.finish()?;
    left.expect_told(&[])?;
    let Left { rows, logs, .. } = left;
    ensure!(rows.iter().all(Row::is_plain), "{rows:?}");
    let wraps_by = |index: usize| logs[0].entries()[index].energy_uj / (FAST_RANGE_UJ + 1);
    let wraps = wraps_by(logs[0].entries().len() - 1) - wraps_by(0);
    ensure!(wraps >= 3, "only {wraps} wraps");
    Ok(())
}

#[test]
fn a_counter_that_may_have_wrapped_unseen_is_marked() -> Result<()> {
    let mut run = Faulty::start(fast())?;
    run.windows(BEFORE)?;
    run.counters.fail(0, Fault::Gone)?;
    // Two seconds and a half: at least one wrap, at 1 kW two.
    run.windows(DURING + 1)?;
    run.counters.mend(0)?;
    run.windows(AFTER)?;
    let left = run.finish()?;
    left.expect_told(&["it is gone", "may have wrapped more than once", "it can be read again"])?;
    let uncertain: Vec<&Row> = left.rows.iter().filter(|row| row.ambiguous).collect();
    let [row] = uncertain[..] else { anyhow::bail!("one window is uncertain: {:?}", left.rows) };
    ensure!(row.fault.as_deref() == Some("may_have_wrapped") && row.merged > 1 && !row.read_failed, "{row:?}");
    // It has the least that it can be: whole ranges are missing, and nothing else.
    let (first, last) = (&left.rows[0], &left.rows[left.rows.len() - 1]);
    let truth_uj = left.logs[0].energy_uj_at(last.end_us)? - left.logs[0].energy_uj_at(first.start_us)?;
    let measured_uj = left.rows.iter().map(|row| row.measured_uj).sum::<u64>();
    let ranges = (truth_uj - measured_uj as f64) / (FAST_RANGE_UJ + 1) as f64;
    ensure!((ranges - 1.0).abs() < 0.1, "{ranges} ranges are missing");
    Ok(())
}

#[test]
fn a_counter_that_stands_still_brings_what_it_held_back() -> Result<()> {
    let told = "the counter does not move: its energy comes when it moves again";
    expect_merged(Fault::Still, "stuck", &[told, "the counter moves again"])
}

#[test]
fn a_counter_that_jumps_back_is_marked_once_and_nothing_is_invented() -> Result<()> {
    let mut run = Faulty::start(Plan::package(0, &[0], WATTS).start_uj(100_000_000_000))?;
    run.windows(BEFORE)?;
    run.counters.jump_back(0, 50_000_000_000)?;
    run.windows(AFTER)?;
    let left = run.finish()?;
    left.expect_told(&["the counter moved backwards"])?;
    let rows = left.rows;
    let jumped: Vec<&Row> = rows.iter().filter(|row| !row.is_plain()).collect();
    let [row] = jumped[..] else { anyhow::bail!("one window jumped: {rows:?}") };
    ensure!(row.fault.as_deref() == Some("jumped") && row.ambiguous && !row.read_failed, "{row:?}");
    ensure!(row.measured_uj == 0 && row.merged == 0, "{row:?}");
    Ok(())
}
