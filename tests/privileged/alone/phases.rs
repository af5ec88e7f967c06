//! Tests that phases have the CPU time and the energy that their program says they took.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{float, text},
    paths,
    process::Running,
    profiler::Output,
    python,
};
use serde_json::Value;

const REPETITIONS: u32 = 100;
/// Of a phase's time and energy, when the delays of its cuts are taken into account.
const BOUND: f64 = 0.001;
/// Cuts take 0.6 ms.
const MOST_DELAY_NS: u64 = 3_000_000;
/// Of the repetitions.
const ENOUGH: f64 = 80.0;

#[test]
fn phases_have_the_time_and_energy_that_they_took() -> Result<()> {
    let output = Output::new()?;
    let mut command = Command::new(paths::joular_bpf());
    command.args(["run", "--energy", "model", "--quiet", "--output"]).arg(output.dir()).arg("--");
    command.arg(python::interpreter()?).arg(paths::fixtures().join("python/phases.py")).arg(REPETITIONS.to_string());
    let finished = Running::spawn("joular-bpf run", &mut command)?.finish(Duration::from_secs(120))?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let told: Value = serde_json::from_str(finished.stdout.trim()).context("what the program says")?;
    // A phase is short of what ran between its begin and the cut, and has what ran between its end and the cut there: the
    // program never rests. Where a machine was so busy that a cut was late, the program may have waited, too, and nobody
    // knows how long: such a phase is left out.
    let phases = output.data.rows(&format!(
        "WITH cuts AS (SELECT phase, phase_number, max(window_start) FILTER (kind = 'begin') AS after, \
           max(window_start) FILTER (kind = 'end') AS last, max(cut_delay_ns) AS latest_ns, \
           sum(CASE kind WHEN 'end' THEN cut_delay_ns ELSE -cut_delay_ns END) AS shift_ns FROM marks GROUP BY ALL), \
         edges AS (SELECT *, row_number() OVER (PARTITION BY phase ORDER BY phase_number) AS place FROM cuts), \
         told AS ({told}), \
         spent AS (SELECT window_start, sum(cpu_ns) AS cpu_ns, sum(energy_uj) AS energy_uj FROM threads GROUP BY ALL), \
         phases AS (SELECT edges.phase, place, any_value(shift_ns) AS shift_ns, sum(cpu_ns) AS cpu_ns, \
           sum(energy_uj) AS energy_uj FROM edges LEFT JOIN spent \
           ON spent.window_start > edges.after AND spent.window_start <= edges.last \
           WHERE latest_ns < {MOST_DELAY_NS} GROUP BY ALL) \
         SELECT phase, count(*) AS times, sum(cpu_ns) AS cpu_ns, sum(shift_ns) AS shift_ns, sum(energy_uj) AS energy_uj, \
           sum(told_ns) AS told_ns, (SELECT sum(energy_uj) / sum(cpu_ns) FROM threads) AS uj_per_ns \
         FROM phases JOIN told USING (phase, place) GROUP BY ALL ORDER BY phase",
        told = told_rows(&told)?
    ))?;
    ensure!(phases.len() == 3, "{phases:?}");
    for row in &phases {
        let phase = text(row, "phase")?;
        let (cpu_ns, shift_ns, told_ns) = (float(row, "cpu_ns")?, float(row, "shift_ns")?, float(row, "told_ns")?);
        ensure!(float(row, "times")? >= ENOUGH, "{row}");
        let off = (cpu_ns - shift_ns) / told_ns - 1.0;
        let plain = cpu_ns / told_ns - 1.0;
        println!(
            "measured: phase {phase}: CPU time {:+.4} % of what it says, {:+.4} % before the delays of cuts, {} times",
            100.0 * off,
            100.0 * plain,
            row["times"]
        );
        ensure!(off.abs() < BOUND, "phase {phase}: {off:+.5} of {told_ns} ns: {row}");
        // By the model, energy goes by time.
        let energy = float(row, "energy_uj")? / (cpu_ns * float(row, "uj_per_ns")?) - 1.0;
        ensure!(energy.abs() < BOUND, "phase {phase}: energy {energy:+.5} off its time: {row}");
    }
    let delays = output.data.rows(
        "SELECT median(cut_delay_ns) / 1e6 AS median, quantile_cont(cut_delay_ns, 0.99) / 1e6 AS p99, max(cut_delay_ns) / 1e6 AS \
         most FROM marks",
    )?;
    println!("measured: delay of cuts in ms: {delays:?}");
    Ok(())
}

/// What the program says, as rows of SQL: each phase's CPU time, each time.
fn told_rows(told: &Value) -> Result<String> {
    let mut rows = Vec::new();
    for (phase, times) in told.as_object().context("what the program says")? {
        for (place, ns) in times.as_array().context("times of a phase")?.iter().enumerate() {
            rows.push(format!("('{phase}', {}, {ns})", place + 1));
        }
    }
    ensure!(rows.len() == 3 * REPETITIONS as usize, "{told}");
    Ok(format!("SELECT * FROM (VALUES {}) AS rows(phase, place, told_ns)", rows.join(", ")))
}
