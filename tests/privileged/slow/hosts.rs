//! Tests hosts that are set up in ways of their own, as virtual machines: a kernel with PREEMPT_RT, a CPU without timer
//! interrupts (`nohz_full`), sixteen CPUs.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    kernels::{self, Kernel},
    notes, paths,
};
use serde_json::Value;

/// It bounds a hang: an emulated machine takes a minute or two, and longer on a machine that others keep busy.
const LIMIT: Duration = Duration::from_secs(900);

const CPUS: usize = 16;

/// Said between a machine's parts.
const BETWEEN: &str = "now another one";

/// Records a process that is busy all the time, as this kernel shows itself and again where it does not say what it is.
const REALTIME: &str = "\
    (echo burn 600000; sleep 600) | burner 100 > /dev/null &\n\
    record() {\n\
        joular-bpf doctor\n\
        joular-bpf --comm burner --frequency 199 --duration 4s --energy model --model-watts 10:30 --no-output --json\n\
        echo exit code $?\n\
    }\n\
    record\n\
    echo now another one\n\
    for says in /sys/kernel/realtime /proc/sys/kernel/version; do mount --bind /dev/null $says; done\n\
    record\n\
    dmesg";

/// Records a thread that has run without a stop since long before, alone on a CPU without timer interrupts. The kernel
/// gives it one now and then, about once a second, so it is recorded for less than that, and often. What the machine's
/// firmware says ends without a line's end.
const ISOLATED: &str = "\
    echo; (echo burn 600000; sleep 600) | taskset 2 burner 100 > /dev/null &\n\
    sleep 3\n\
    for run in 1 2 3 4 5; do\n\
        joular-bpf --comm burner --frequency 99 --interval 500ms --duration 500ms --energy model --model-watts 10:30 \
            --no-output --json\n\
        echo exit code $?\n\
        echo now another one\n\
    done";

/// Records a process on each CPU. They begin when the recording has begun: emulated CPUs share one that is real.
const SIXTEEN: &str = "\
    joular-bpf --all --frequency 49 --interval 2s --duration 12s --energy model --model-watts 10:30 --top 100 \
        --no-output --json > /tmp/windows 2> /tmp/said &\n\
    profiler=$!\n\
    until grep -q recording /tmp/said || ! kill -0 $profiler; do sleep 0.2; done\n\
    cpu=0\n\
    while test $cpu -lt 16; do\n\
        (echo burn 600000; sleep 600) | taskset $(printf %x $((1 << cpu))) burner 100 > /dev/null &\n\
        cpu=$((cpu + 1))\n\
    done\n\
    wait $profiler; echo exit code $?\n\
    cat /tmp/said /tmp/windows";

/// What a machine says.
fn said(kernel: &Kernel, script: &str, arguments: &[&str]) -> Result<String> {
    println!("Linux {}", kernel.release);
    let mut root = kernels::root(script)?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    root.program("/bin/burner", Path::new(env!("CARGO_BIN_EXE_burner")))?;
    // A serial console ends its lines as teletypes do.
    Ok(kernel.start(root, arguments)?.finish(LIMIT)?.stdout.replace('\r', ""))
}

fn records<'a>(said: &'a str, kind: &'a str) -> impl Iterator<Item = Value> + 'a {
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(move |record| record["type"] == kind)
}

/// CPU time and samples of each burner, over all windows.
fn burners(said: &str) -> Vec<(u64, u64, u64)> {
    let mut sums: Vec<(u64, u64, u64)> = Vec::new();
    for window in records(said, "window") {
        for process in window["processes"].as_array().into_iter().flatten().filter(|one| one["comm"] == "burner") {
            let number = |field: &str| process[field].as_u64().unwrap_or(0);
            match sums.iter_mut().find(|(pid, ..)| *pid == number("pid")) {
                Some((_, cpu_ns, samples)) => {
                    *cpu_ns += number("cpu_ns");
                    *samples += number("samples");
                }
                None => sums.push((number("pid"), number("cpu_ns"), number("samples"))),
            }
        }
    }
    sums
}

/// Whether each burner has a part of the samples that are due to it. An emulated machine takes few: an interrupt costs it
/// much, and no sample hits the time that one takes.
fn check_samples(said: &str, frequency_hz: u64, least: f64) -> Result<()> {
    let burners = burners(said);
    ensure!(!burners.is_empty(), "no burner: {said}");
    for (pid, cpu_ns, samples) in burners {
        let due = cpu_ns as f64 / 1e9 * frequency_hz as f64;
        println!("burner {pid}: {:.2} s, {samples} samples of {due:.0}", cpu_ns as f64 / 1e9);
        ensure!(cpu_ns > 100_000_000, "burner {pid} ran for {cpu_ns} ns: {said}");
        ensure!(samples as f64 > least * due, "{samples} samples of {due} of burner {pid}: {said}");
    }
    Ok(())
}

#[test]
fn a_realtime_kernel_is_sampled_by_the_event_even_if_it_does_not_say_what_it_is() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let Some(kernel) = kernels::realtime() else {
        notes::skipped("no kernel with PREEMPT_RT was unpacked");
        return Ok(());
    };
    let said = said(&kernel, REALTIME, &[])?;
    let (shown, hidden) = said.split_once(BETWEEN).with_context(|| format!("it did not go on: {said}"))?;
    ensure!(
        shown.contains("by the event cpu-clock: programs cannot set timers on a kernel with PREEMPT_RT"),
        "{shown}"
    );
    ensure!(
        hidden.contains("they load and pass the verifier, but this kernel lets no program set a timer"),
        "{hidden}"
    );
    for part in [shown, hidden] {
        ensure!(part.contains("they load and pass the verifier"), "{part}");
        ensure!(part.contains("\nexit code 0\n"), "{part}");
        ensure!(part.contains("joular-bpf: samples are taken at a fixed rate"), "{part}");
        let run = records(part, "run").next().with_context(|| format!("no run: {part}"))?;
        ensure!(run["sampling_event"] == "cpu-clock", "{run}");
        check_samples(part, 199, 0.3)?;
    }
    // Nothing slept in an interrupt.
    ensure!(!hidden.contains("BUG:") && !hidden.contains("invalid context"), "{hidden}");
    Ok(())
}

/// The newest kernel whose timers can be kept on an isolated CPU.
fn newest() -> Result<Kernel> {
    kernels::all().into_iter().rfind(|kernel| kernel.has("CONFIG_NO_HZ_FULL=y")).context("no kernel has nohz_full")
}

#[test]
fn a_thread_alone_on_a_cpu_without_timer_interrupts_is_sampled_from_the_start() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let kernel = newest()?;
    if kernel.release.starts_with("6.1.") {
        notes::skipped("the newest kernel that was unpacked samples isolated CPUs by the event");
        return Ok(());
    }
    // Emulated, the kernel takes no clock for steady enough to stop ticks by it, unless it is told so.
    let said = said(&kernel, ISOLATED, &["-append", "console=ttyS0 quiet panic=-1 nohz_full=1 tsc=reliable"])?;
    let runs: Vec<&str> = said.split(BETWEEN).filter(|run| run.contains("exit code 0")).collect();
    ensure!(runs.len() == 5, "{said}");
    for run in runs {
        let info = records(run, "run").next().with_context(|| format!("no run: {run}"))?;
        ensure!(info["sampling_event"] == "timer", "{info}");
        check_samples(run, 99, 0.3)?;
    }
    Ok(())
}

#[test]
fn all_of_sixteen_cpus_are_sampled_and_their_times_add_up() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let said = said(&newest()?, SIXTEEN, &["-smp", "16"])?;
    ensure!(said.contains("exit code 0"), "{said}");
    let run = records(&said, "run").next().with_context(|| format!("no run: {said}"))?;
    ensure!(run["online_cpus"] == CPUS, "{run}");
    let burners = burners(&said).len();
    ensure!(burners == CPUS, "{burners} of {CPUS} burners: {said}");
    check_samples(&said, 49, 0.1)?;
    for window in records(&said, "window") {
        // Busy, idle and unslotted time of a CPU that are not the window, nanosecond for nanosecond, are a loss.
        let lost = &window["audit"]["lost"];
        for cause in ["inexact_cpu_ns", "thread_map_full", "sample_map_full", "timer_not_set"] {
            ensure!(lost[cause].is_null(), "{lost}: {said}");
        }
    }
    Ok(())
}
