//! Tests that phases have the CPU time and the energy that their program took.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    dataset::{float, text},
    paths,
    process::Running,
    profiler::Output,
    python,
};
use serde_json::Value;

const REPETITIONS: u32 = 100;
/// Of the repetitions.
const ENOUGH: f64 = 0.8;
const LIMIT: Duration = Duration::from_secs(120);
/// Of the time and energy between the cuts of a phase.
const BOUND: f64 = 0.001;
/// Of a mark's time, from the time in which it was sent: two clocks are compared, and microseconds are cut off.
const MOST_ASTRAY_NS: f64 = 20_000.0;
/// Cuts take 0.6 ms, and as long as the recorder waits for a CPU.
const MOST_DELAY_NS: f64 = 3_000_000.0;
/// For each time that the program waited for a CPU: the kernel counts a switch, which takes 3 µs, neither as running nor
/// as waiting.
const SWITCH_NS: f64 = 5_000.0;

/// What the program says: python/phases.py.
struct Said {
    /// Name, repetition, and between which moments its begin and its end were sent.
    phases: Vec<(String, u64, u64, u64, u64, u64)>,
    /// From when to when, and for how long threads of the system's first process ran meanwhile.
    waits: Vec<(u64, u64, u64)>,
}

#[test]
fn phases_have_the_time_and_energy_that_they_took() -> Result<()> {
    repeat_once(|measures| expect_time_and_energy(measures * REPETITIONS))
}

fn expect_time_and_energy(repetitions: u32) -> Result<()> {
    let output = Output::new()?;
    let mut command = Command::new(paths::joular_bpf());
    command.args(["run", "--energy", "model", "--quiet", "--output"]).arg(output.dir()).arg("--");
    command.arg(python::interpreter()?).arg(paths::fixtures().join("python/phases.py")).arg(repetitions.to_string());
    let finished = Running::spawn("joular-bpf run", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let said = Said::read(&finished.stdout)?;
    // The windows of a phase go from cut to cut. The program was on a CPU all that time, but for its waits. Where the
    // machine was so busy that a boundary was late, time is in the wrong window, as the recording says. A repetition in
    // which the first process put the program off is left out: some virtual machines' kernels report no switch away from
    // its threads, so that the recorder cannot tell their time from the program's.
    let phases = output.data.rows(&format!(
        "WITH said AS ({said}), waits AS ({waits}), \
         cuts AS (SELECT phase, kind, window_start, cut_delay_ns, 1000 * epoch_us(said_at) AS said_ns, \
           said_ns + cut_delay_ns AS cut_ns, row_number() OVER (PARTITION BY phase, kind ORDER BY phase_number) AS time \
           FROM marks), \
         phases AS (SELECT phase, time, begun.window_start AS after, last.window_start AS last, begun.cut_ns, \
           last.cut_ns AS last_cut_ns, greatest(begun.cut_delay_ns, last.cut_delay_ns) AS delay_ns, \
           greatest(begin_from - begun.said_ns, begun.said_ns - begin_to, end_from - last.said_ns, \
             last.said_ns - end_to) AS astray_ns \
           FROM said JOIN cuts AS begun USING (phase, time) JOIN cuts AS last USING (phase, time) \
           WHERE begun.kind = 'begin' AND last.kind = 'end'), \
         ran AS (SELECT phase, time, any_value(astray_ns) AS astray_ns, any_value(delay_ns) AS delay_ns, \
           any_value(last_cut_ns - cut_ns) - \
             coalesce(sum(least(wait_to, last_cut_ns) - greatest(wait_from, cut_ns)) FILTER (wait_to > 0), 0) AS ran_ns, \
           count(wait_to) AS waits \
           FROM phases LEFT JOIN waits ON wait_from < last_cut_ns AND wait_to > cut_ns GROUP BY phase, time \
           HAVING coalesce(max(first_ran_ns), 0) = 0), \
         sums AS (SELECT window_start, sum(cpu_ns) AS cpu_ns, sum(energy_uj) AS energy_uj FROM threads GROUP BY ALL), \
         spent AS (SELECT phase, time, sum(cpu_ns) AS cpu_ns, sum(energy_uj) AS energy_uj \
           FROM phases JOIN sums ON window_start > after AND window_start <= last \
           WHERE NOT EXISTS (FROM windows AS late WHERE lost_other > 0 AND late.window_start BETWEEN after AND last) \
           GROUP BY ALL) \
         SELECT phase, count(*) AS times, sum(cpu_ns) AS cpu_ns, sum(ran_ns) AS ran_ns, sum(energy_uj) AS energy_uj, \
           max(abs(cpu_ns / ran_ns - 1)) AS most_off, median(astray_ns) AS astray_ns, median(delay_ns) AS delay_ns, \
           sum(waits) AS waits, (SELECT median(wait_to - wait_from) FROM waits) AS wait_ns, \
           (SELECT sum(energy_uj) / sum(cpu_ns) FROM threads) AS uj_per_ns \
         FROM ran JOIN spent USING (phase, time) GROUP BY ALL ORDER BY phase",
        said = said.phase_rows(),
        waits = said.wait_rows(),
    ))?;
    ensure!(phases.len() == 3, "{phases:?}");
    for row in &phases {
        let phase = text(row, "phase")?;
        let (cpu_ns, delay_ns, astray_ns) = (float(row, "cpu_ns")?, float(row, "delay_ns")?, float(row, "astray_ns")?);
        ensure!(float(row, "times")? >= ENOUGH * f64::from(repetitions), "{row}");
        let (ran_ns, waits, wait_ns) = (float(row, "ran_ns")?, float(row, "waits")?, float(row, "wait_ns")?);
        let off_ns = cpu_ns - ran_ns;
        println!(
            "measured: phase {phase}, {} times: CPU time {:+.4} % of what it took, once {:.3} %; cuts after {:.3} ms; \
             {waits} waits of {:.3} ms",
            row["times"],
            100.0 * off_ns / ran_ns,
            100.0 * float(row, "most_off")?,
            delay_ns / 1e6,
            wait_ns / 1e6
        );
        ensure!(off_ns.abs() < BOUND * ran_ns + SWITCH_NS * waits, "phase {phase}: {off_ns:+} ns: {row}");
        ensure!(delay_ns < MOST_DELAY_NS + wait_ns, "phase {phase}: {row}");
        ensure!(astray_ns < MOST_ASTRAY_NS, "phase {phase}: {row}");
        // By the model, energy goes by time.
        let energy = float(row, "energy_uj")? / (cpu_ns * float(row, "uj_per_ns")?) - 1.0;
        ensure!(energy.abs() < BOUND, "phase {phase}: energy {energy:+.5} off its time: {row}");
    }
    Ok(())
}

impl Said {
    fn read(text: &str) -> Result<Self> {
        let mut said: Value = serde_json::from_str(text.trim()).context("what the program says")?;
        Ok(Self {
            phases: serde_json::from_value(said["phases"].take())?,
            waits: serde_json::from_value(said["waits"].take())?,
        })
    }

    fn phase_rows(&self) -> String {
        let rows: Vec<String> = self.phases.iter().map(|phase| format!("{phase:?}").replace('"', "'")).collect();
        format!(
            "SELECT * FROM (VALUES {}) AS rows(phase, time, begin_from, begin_to, end_from, end_to)",
            rows.join(", ")
        )
    }

    fn wait_rows(&self) -> String {
        // One that is over before anything begins: there must be a row.
        let rows: Vec<String> = [(0, 0, 0)].iter().chain(&self.waits).map(|wait| format!("{wait:?}")).collect();
        format!("SELECT * FROM (VALUES {}) AS rows(wait_from, wait_to, first_ran_ns)", rows.join(", "))
    }
}
