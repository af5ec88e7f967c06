//! Tests what the profiler may do while it records.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    kernels, notes,
    paths::joular_bpf,
    profiler::{END, Output, Profiler, Run},
};
use rustix::process::Signal;

use crate::burner::Burner;

/// Numbers of include/uapi/linux/capability.h.
const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;
const CAP_CHECKPOINT_RESTORE: u32 = 40;

/// Which of these capabilities the profiler is permitted, uses, and may regain.
fn held(profiler: &Profiler, capabilities: [u32; 4]) -> Result<Vec<[bool; 4]>> {
    let status = fs::read_to_string(format!("/proc/{}/status", profiler.pid()))?;
    let sets = ["CapPrm:", "CapEff:", "CapBnd:"].map(|set| status.lines().find_map(|line| line.strip_prefix(set)));
    let bits = |line: Option<&str>| Ok(u64::from_str_radix(line.context("a set of capabilities")?.trim(), 16)?);
    sets.into_iter().map(|line| bits(line).map(|bits| capabilities.map(|number| bits >> number & 1 == 1))).collect()
}

/// Debian's kernels: above 2 CAP_SYS_ADMIN is needed for perf events.
fn perf_events_need_sys_admin() -> Result<bool> {
    Ok(fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")?.trim().parse::<i32>()? > 2)
}

#[test]
fn what_a_recording_does_not_need_is_given_up() -> Result<()> {
    let burner = Burner::start(&[100])?;
    let output = Output::new()?;
    let profiler = Run::new().pid(burner.pid()).output(output.dir()).start()?;
    let of_interest = [CAP_SYS_ADMIN, CAP_SYS_MODULE, CAP_BPF, CAP_CHECKPOINT_RESTORE];
    let expected = [perf_events_need_sys_admin()?, false, true, true];
    let held = held(&profiler, of_interest)?;
    ensure!(held == [expected; 3], "{held:?}");
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(())
}

/// The unit of the service does not have that capability.
#[test]
fn allocations_are_sampled_without_sys_admin_where_probes_are_no_perf_events() -> Result<()> {
    if !kernels::probes_are_links()? {
        notes::skipped("probes are perf events on this kernel, for which it wants CAP_SYS_ADMIN");
        return Ok(());
    }
    let mut jvm = Workload::new("Allocations").start()?;
    let output = Output::new()?;
    let launched =
        Run::new().program(Path::new("setpriv")).argument("--bounding-set=-sys_admin").argument(joular_bpf());
    let run = launched.with("--energy", "model").with("--model-watts", "10:30").pid(jvm.pid());
    let mut profiler = run.argument("--alloc").argument("--json").output(output.dir()).start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    jvm.say("go")?;
    (0..3).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    let finished = profiler.finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let samples = output.data.number("SELECT sum(samples)::DOUBLE FROM allocations WHERE sampled_by = 'allocation'")?;
    ensure!(samples >= 100.0, "{samples} samples: {finished:?}");
    Ok(())
}
