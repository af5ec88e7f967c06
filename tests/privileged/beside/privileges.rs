//! Tests what the profiler may do while it records.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    kernels, notes,
    paths::{self, joular_bpf},
    profiler::{END, Output, Profiler, Run},
    python,
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

/// As for the service: systemd's `RestrictSUIDSGID=` hides the call that keeps a path within a root, and Debian's policy for
/// SELinux denies the other way to a file that a process has mapped.
#[test]
fn libraries_and_perf_maps_are_read_where_openat2_is_hidden_and_mappings_cannot_be_opened() -> Result<()> {
    let (jvm, mut burner) = (Workload::new("Busy").argument("seconds=60").start()?, Burner::start(&[])?);
    let map = tempfile::TempPath::try_from_path(format!("/tmp/perf-{}.map", burner.pid()))?;
    burner.begin_jit(Duration::from_secs(60))?;
    fs::write(&map, format!("{:x} {:x} generated_loop\n", burner.code.0, burner.code.1))?;
    let launched = Run::new()
        .program(Path::new("setpriv"))
        .argument("--bounding-set=-sys_admin,-checkpoint_restore")
        .argument(python::interpreter()?)
        .argument(paths::fixtures().join("without_openat2.py"))
        .argument(joular_bpf());
    let run = launched.with("--energy", "model").with("--model-watts", "10:30").pid(jvm.pid()).pid(burner.pid());
    let output = Output::new()?;
    let mut profiler = run.argument("--json").output(output.dir()).start()?;
    (0..5).try_for_each(|_| profiler.wait_window().map(drop))?;
    let finished = profiler.stop()?;
    for (pid, method) in [(jvm.pid(), "Busy.spin"), (burner.pid(), "generated_loop")] {
        let part = format!(
            "SELECT coalesce(sum(self_cpu_ns) FILTER (contains(method, '{method}')) / sum(self_cpu_ns), 0)::DOUBLE \
             FROM methods WHERE pid = {pid}"
        );
        let part = output.data.number(&part)?;
        ensure!(part > 0.5, "{method} has {part:.2} of the time of its process: {finished:?}");
    }
    Ok(())
}
