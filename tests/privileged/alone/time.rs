//! Tests that on-CPU time is exact, that samples come as often as they should, and that time,
//! samples and energy of a thread are those of its branches together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use joular_tests::{
    chance::repeat_once,
    dataset::{float, integer},
    profiler::{Output, Run},
    schedstat,
    shared::Shared,
    statistics::RARE_SIGMAS,
    stolen::Stolen,
};

use crate::burner::Burner;

const BURN: Duration = Duration::from_secs(8);
const FREQUENCY: u32 = 499;
/// The part of a thread's time in which its samples are taken, at the most and at four times that frequency.
const SAMPLING: f64 = 0.02;

/// What a run over a burner left, and the kernel's own account of the same time.
struct Measured {
    output: Output,
    /// By thread; exact, since all threads were blocked at both ends of the run.
    schedstat: BTreeMap<u32, u64>,
    /// By how much a thread's time may exceed the kernel's, which leaves out what a hypervisor
    /// took: nothing on a machine that is left alone.
    stolen_ns: u64,
}

/// Profiles threads that work only while the profiler records.
fn measure(duties: &[u32], frequency: u32, measures: u32) -> Result<Measured> {
    let output = Output::new()?;
    let mut burner = Burner::start(duties)?;
    let stolen = Stolen::start()?;
    let length = measures * BURN;
    let before = schedstat::when_blocked(burner.pid(), BURN)?;
    let run = Run::modelled().pid(burner.pid()).with("--frequency", frequency.to_string()).output(output.dir());
    let profiler = run.start()?;
    burner.burn(length)?;
    let after = schedstat::when_blocked(burner.pid(), BURN)?;
    profiler.stop()?;
    let schedstat = after.into_iter().map(|(tid, ns)| (tid, ns - before[&tid])).collect();
    Ok(Measured { output, schedstat, stolen_ns: stolen.of_all_at_most_ns()? })
}

/// Together, these threads want more than one CPU.
const DUTIES: [u32; 3] = [100, 60, 25];

/// A run that most tests here look at.
fn measured() -> Result<Arc<Measured>> {
    static RUN: Shared<Measured> = Shared::new();
    RUN.get(|| measure(&DUTIES, FREQUENCY, 1))
}

#[test]
fn cpu_time_of_each_thread_is_the_kernels_within_half_a_percent() -> Result<()> {
    repeat_once(|measures| match measures {
        1 => expect_the_kernels_time(&*measured()?),
        more => expect_the_kernels_time(&measure(&DUTIES, FREQUENCY, more)?),
    })
}

fn expect_the_kernels_time(measured: &Measured) -> Result<()> {
    let rows = measured.output.data.rows("SELECT tid, sum(cpu_ns)::BIGINT AS cpu_ns FROM threads GROUP BY tid")?;
    let mut busy = 0;
    for (tid, expected) in measured.schedstat.iter().filter(|(_, ns)| **ns > 500_000_000) {
        let row = rows.iter().find(|row| row["tid"] == *tid).unwrap_or_else(|| panic!("no row of thread {tid}"));
        let excess_ns = float(row, "cpu_ns")? - *expected as f64;
        let (slack_ns, stolen_ns) = (*expected as f64 * 0.005, measured.stolen_ns as f64);
        assert!(
            (-slack_ns..=slack_ns + stolen_ns).contains(&excess_ns),
            "thread {tid}: {excess_ns} ns more than the kernel's {expected} ns, of which {stolen_ns} may be stolen"
        );
        busy += 1;
    }
    assert_eq!(busy, 3, "{:?}", measured.schedstat);
    Ok(())
}

#[test]
fn samples_are_cpu_seconds_times_frequency() -> Result<()> {
    // At most one thread per CPU, so that the two ends of a slice are few.
    repeat_once(|measures| expect_samples(&measure(&[100, 100], 4 * FREQUENCY, measures)?))
}

fn expect_samples(measured: &Measured) -> Result<()> {
    let totals = &measured.output.data.rows(
        "SELECT sum(samples)::BIGINT AS samples, sum(cpu_ns)::BIGINT AS cpu_ns FROM threads WHERE thread_name LIKE 'burn-%'",
    )?[0];
    let per_second = f64::from(4 * FREQUENCY);
    let expected = float(totals, "cpu_ns")? / 1e9 * per_second;
    let samples = float(totals, "samples")?;
    let chance = RARE_SIGMAS * expected.sqrt();
    // No sample hits the time in which one is taken, nor that in which the hypervisor runs something
    // else: the CPU's timer does not end then, and its time goes on.
    let missed = SAMPLING * expected + measured.stolen_ns as f64 / 1e9 * per_second;
    assert!(
        (-chance - missed..=chance).contains(&(samples - expected)),
        "{samples} samples, expected {expected:.0} ± {chance:.0}, and {missed:.0} fewer for what is not sampled"
    );
    Ok(())
}

#[test]
fn branches_of_a_thread_sum_to_the_thread_in_every_window() -> Result<()> {
    let measured = measured()?;
    let data = &measured.output.data;
    data.expect_none(
        "threads whose branches do not sum to them",
        "WITH parts AS (
            SELECT window_start, pid, tid, sum(cpu_ns) AS cpu_ns, sum(samples) AS samples, sum(energy_uj) AS energy_uj
            FROM branches GROUP BY ALL)
         SELECT t.window_start, t.tid, t.cpu_ns, p.cpu_ns AS parts_ns, t.energy_uj, p.energy_uj AS parts_uj
         FROM threads t LEFT JOIN parts p USING (window_start, pid, tid)
         WHERE (t.cpu_ns, t.samples, t.energy_uj)
            IS DISTINCT FROM (coalesce(p.cpu_ns, 0), coalesce(p.samples, 0), coalesce(p.energy_uj, 0))",
    )?;
    let busy = &data.rows("SELECT count(*) AS n FROM branches WHERE cpu_ns > 0")?[0];
    assert!(integer(busy, "n")? > 10, "hardly any branches: {busy}");
    Ok(())
}

#[test]
fn methods_of_a_process_sum_to_its_threads_in_the_same_windows() -> Result<()> {
    let measured = measured()?;
    measured.output.data.expect_none(
        "processes whose methods do not sum to their threads",
        "WITH self AS (
            SELECT window_start AS first, pid, sum(self_cpu_ns) AS cpu_ns, sum(self_uj) AS energy_uj
            FROM methods GROUP BY ALL),
         spans AS (SELECT DISTINCT window_start AS first, window_ns AS span_ns FROM methods),
         whole AS (
            SELECT first, pid, sum(cpu_ns) AS cpu_ns, sum(energy_uj) AS energy_uj FROM threads LEFT JOIN spans
            ON epoch_us(window_start) - epoch_us(first) BETWEEN 0 AND span_ns / 1000 - 1000 GROUP BY ALL)
         SELECT * FROM whole LEFT JOIN self USING (first, pid)
         WHERE (whole.cpu_ns, whole.energy_uj) IS DISTINCT FROM (coalesce(self.cpu_ns, 0), coalesce(self.energy_uj, 0))",
    )
}

#[test]
fn no_window_has_a_gap_before_it() -> Result<()> {
    let measured = measured()?;
    // Wall-clock time of a window is read with a microsecond's resolution. Somebody may set the clock: the window says by how
    // much.
    measured.output.data.expect_none(
        "windows that do not begin where the one before ended",
        "WITH bounds AS (SELECT DISTINCT epoch_us(window_start) AS start_us, window_ns, clock_step_us FROM windows),
         pairs AS (SELECT *, lead(start_us) OVER (ORDER BY start_us) AS next_us FROM bounds)
         SELECT * FROM pairs WHERE abs(next_us - start_us - window_ns / 1000 - clock_step_us) > 1000",
    )
}
