//! Tests that what JVMs do for themselves is in table `jvms`, in the part where it belongs.

use std::time::Duration;

use anyhow::{Result, ensure};
use joular_tests::{
    java::Workload,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(10);

/// A JVM's work, the part that it must be in, and the least share that this has.
struct Case<'a> {
    work: &'a str,
    flags: &'a [&'a str],
    part: &'a str,
    /// Of what, in SQL. How much collectors and compilers run beside the work depends on the machine.
    of: &'a str,
    least: f64,
}

const ALL: &str = "energy_uj";
/// Without what threads of the JVM do beside the program's.
const OF_THE_PROGRAM: &str = "energy_uj - gc_uj - jit_uj";

impl Case<'_> {
    fn expect(&self) -> Result<()> {
        let output = Output::new()?;
        let workload = Workload::new("VmWork").flag(&format!("-Dwork={}", self.work));
        let jvm = self.flags.iter().fold(workload, |workload, flag| workload.flag(flag)).start()?;
        let run = Run::modelled().pid(jvm.pid()).with("--duration", "4s").with("--frequency", "499");
        let finished = run.output(output.dir()).finish(LIMIT + END)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        ensure!(finished.stdout.contains("VM tax"), "{finished:?}");
        let share = format!("SELECT sum({}_uj)::DOUBLE / sum({}) FROM jvms", self.part, self.of);
        let share = output.data.number(&share)?;
        let all = output.data.rows("SELECT sum(COLUMNS('.*_uj'))::BIGINT FROM jvms")?;
        ensure!(share >= self.least, "{} with {:?}: {} has {share:.3} of {all:?}", self.work, self.flags, self.part);
        // Parts exclude each other, and miss nothing.
        output.data.expect_none(
            "JVMs whose parts do not sum to their threads",
            "WITH whole AS (SELECT window_start, pid, sum(energy_uj) AS uj, sum(cpu_ns) AS ns FROM threads GROUP BY ALL)
             SELECT * FROM jvms JOIN whole USING (window_start, pid) WHERE uj <> energy_uj OR ns <> cpu_ns
             OR uj <> gc_uj + jit_uj + vm_uj + class_loading_uj + vm_runtime_uj + interpreter_uj + c1_uj + c2_uj
                + compiled_uj + native_uj + kernel_uj + unknown_uj
             OR ns <> gc_cpu_ns + jit_cpu_ns + vm_cpu_ns + class_loading_cpu_ns + vm_runtime_cpu_ns
                + interpreter_cpu_ns + c1_cpu_ns + c2_cpu_ns + compiled_cpu_ns + native_cpu_ns + kernel_cpu_ns
                + unknown_cpu_ns",
        )
    }
}

#[test]
fn collections_are_the_collectors_whoever_runs_them() -> Result<()> {
    // Serial has no threads of its own: the VM thread collects.
    for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC"] {
        Case { work: "allocate", flags: &[collector, "-Xmx64m"], part: "gc", of: ALL, least: 0.2 }.expect()?;
    }
    Ok(())
}

#[test]
fn class_loading_is_told_from_the_code_that_asks_for_it() -> Result<()> {
    Case { work: "load", flags: &[], part: "class_loading", of: OF_THE_PROGRAM, least: 0.6 }.expect()
}

#[test]
fn the_programs_code_is_told_by_how_it_runs() -> Result<()> {
    for (flag, part) in [("-Xint", "interpreter"), ("-XX:TieredStopAtLevel=1", "c1"), ("-XX:-TieredCompilation", "c2")]
    {
        Case { work: "compute", flags: &[flag], part, of: ALL, least: 0.9 }.expect()?;
    }
    Ok(())
}
