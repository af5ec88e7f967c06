//! Tests the program for aarch64 on Debian's kernels for that processor, in emulated machines: the programs load, all of the
//! CPUs' time and energy is counted, samples come at random moments, and stacks are there.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{DataSet, float, integer},
    kernels::{Kernel, print_table, unpack_table},
    machine::AARCH64,
    notes, paths,
};

/// An emulated machine takes two minutes. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(600);

const FREQUENCY_HZ: f64 = 199.0;

/// The JVMs that are recorded, one on each kernel.
const RELEASES: [u32; 2] = [21, 25];

/// On one CPU a process that computes and one that reads and writes a byte at a time, on the other one a JVM without any flag
/// that would help, in which it is known what runs.
const SCRIPT: &str = "\
    printf '#!/bin/sh\\nwhile :; do :; done\\n' > /tmp/spin; chmod +x /tmp/spin\n\
    joular-bpf doctor; echo doctor $?\n\
    joular-bpf sources > /dev/null; echo sources $?\n\
    taskset 2 /jdk/bin/java -Xmx64m -XX:TieredStopAtLevel=1 -cp /classes known.Main recurse-10 > /tmp/java 2>&1 &\n\
    until grep -q ready /tmp/java || ! kill -0 $!; do sleep 0.2; done\n\
    cat /tmp/java\n\
    taskset 1 /tmp/spin &\n\
    spin=$!\n\
    taskset 1 dd if=/dev/zero of=/dev/null bs=1 2> /dev/null &\n\
    dd=$!\n\
    is_busy() { set -- $(cat /proc/$1/stat); test $((${14} + ${15})) -ge 50; }\n\
    until is_busy $spin && is_busy $dd || ! kill -0 $dd; do sleep 0.2; done\n\
    joular-bpf --all --frequency 199 --duration 10s --energy model --model-watts 10:30 --output /tmp/out --json | tail -1\n\
    echo recorded";

const TABLES: [&str; 6] = ["runs", "windows", "threads", "branches", "stacks", "methods"];

fn record(kernel: &Kernel, program: &[u8], release: u32) -> Result<String> {
    let print: Vec<String> = TABLES.iter().map(|table| print_table(table)).collect();
    let mut root = AARCH64.root(&format!("{SCRIPT}\n{}", print.join("\n")))?;
    root.file("/bin/joular-bpf", program);
    AARCH64.put_jvm(&mut root, release)?;
    // A serial console ends its lines as teletypes do.
    Ok(kernel.boot(root, LIMIT)?.stdout.replace('\r', ""))
}

fn check(release: &str, said: &str) -> Result<()> {
    for line in
        ["they load and pass the verifier", "timers at random moments", "doctor 0\n", "sources 0\n", "recorded\n"]
    {
        ensure!(said.contains(line), "'{line}' is not in what was said: {said}");
    }
    let directory = tempfile::tempdir()?;
    for table in TABLES {
        unpack_table(said, table, directory.path())?;
    }
    let data = DataSet::at(directory.path());
    data.expect_none(
        "run that is not of this machine, or takes samples otherwise",
        "SELECT * FROM runs WHERE arch <> 'aarch64' OR sampling_event <> 'timer'",
    )?;
    // An emulated machine may be late, but it loses no stack.
    data.expect_none(
        "window with losses",
        "SELECT * FROM windows WHERE lost_thread_map_full + lost_sample_map_full + lost_stack_ring_full
           + lost_user_stack_failed + lost_kernel_stack_failed + lost_timer_not_set > 0",
    )?;
    check_sums(&data)?;
    check_samples(release, &data)?;
    check_stacks(&data)
}

/// All time and energy of the machine belongs to somebody, and threads and their branches have the same.
fn check_sums(data: &DataSet) -> Result<()> {
    data.expect_none(
        "window whose time or energy does not add up",
        "SELECT * FROM windows WHERE cpu_elapsed_ns <> cpu_busy_ns + cpu_idle_ns + cpu_unslotted_ns
           OR cpu_busy_ns <> cpu_target_ns + cpu_other_ns + cpu_kernel_ns + cpu_profiler_ns OR cpu_unslotted_ns > 0
           OR measured_uj <> attributed_uj + static_uj + unattributed_uj",
    )?;
    let rows = data.rows(
        "SELECT (SELECT sum(cpu_ns) FROM threads)::BIGINT AS threads, (SELECT sum(cpu_ns) FROM branches)::BIGINT AS branches,
           (SELECT sum(cpu_target_ns) FROM windows)::BIGINT AS targets,
           (SELECT sum(energy_uj) FROM threads)::BIGINT AS thread_uj,
           (SELECT sum(energy_uj) FROM branches)::BIGINT AS branch_uj,
           (SELECT sum(attributed_uj) FROM windows)::BIGINT AS attributed_uj, (SELECT sum(window_ns) FROM windows)::BIGINT AS ns",
    )?;
    let row = rows.first().context("no sums")?;
    let [threads, branches, targets] = ["threads", "branches", "targets"].map(|name| integer(row, name));
    let (threads, branches, targets) = (threads?, branches?, targets?);
    ensure!(threads == branches && threads == targets, "{rows:?}");
    let (thread_uj, branch_uj, attributed_uj) =
        (integer(row, "thread_uj")?, integer(row, "branch_uj")?, integer(row, "attributed_uj")?);
    ensure!(thread_uj == branch_uj && thread_uj == attributed_uj && attributed_uj > 0, "{rows:?}");
    ensure!(integer(row, "ns")? > 8_000_000_000, "{rows:?}");
    Ok(())
}

/// Who is busy has the time that he has, and samples at the rate that was asked for.
fn check_samples(release: &str, data: &DataSet) -> Result<()> {
    let seconds_of = |comm: &str| -> Result<(f64, f64)> {
        let rows = data.rows(&format!(
            "SELECT sum(cpu_ns) / 1e9 AS seconds, sum(samples)::DOUBLE AS samples FROM threads WHERE comm = '{comm}'"
        ))?;
        let row = rows.first().with_context(|| format!("nothing of {comm}"))?;
        Ok((float(row, "seconds")?, float(row, "samples")?))
    };
    let (spin, dd, java) = (seconds_of("spin")?, seconds_of("dd")?, seconds_of("java")?);
    let rate = (spin.1 + dd.1 + java.1) / (spin.0 + dd.0 + java.0);
    notes::figure(&format!(
        "Linux {release}: {rate:.0} samples per second of CPU time, where {FREQUENCY_HZ} were asked for"
    ));
    // Of a machine with nothing else to do it is 190. The emulator waits for CPUs of this one, and meanwhile no timer interrupts.
    ensure!(
        (0.15 * FREQUENCY_HZ..1.15 * FREQUENCY_HZ).contains(&rate),
        "{rate} samples a second: {spin:?} {dd:?} {java:?}"
    );
    ensure!((0.67..1.5).contains(&(spin.0 / dd.0)), "they share a CPU: {spin:?} {dd:?}");
    // It shares its CPU with the profiler, which an emulated machine keeps busy.
    ensure!(java.0 > 1.0, "{java:?} of the JVM");
    Ok(())
}

/// Kernel stacks begin below the interrupt that took the sample, and lead to who made the system call. User stacks do to where
/// threads begin.
fn check_stacks(data: &DataSet) -> Result<()> {
    let self_of =
        |what: &str| data.number(&format!("SELECT coalesce(sum(self_samples), 0)::DOUBLE FROM methods WHERE {what}"));
    let total_of =
        |what: &str| data.number(&format!("SELECT coalesce(sum(total_samples), 0)::DOUBLE FROM methods WHERE {what}"));
    let in_kernel = self_of("comm = 'dd' AND kind = 'kernel'")?;
    let (by_call, in_read) = (
        total_of("comm = 'dd' AND method = 'el0t_64_sync'")?,
        total_of("comm = 'dd' AND method IN ('vfs_read', 'vfs_write')")?,
    );
    ensure!(
        in_kernel > 50.0 && by_call > 0.6 * in_kernel && in_read > 0.1 * in_kernel,
        "{in_kernel} {by_call} {in_read}"
    );
    let of_interrupts = self_of("method IN ('gic_handle_irq', 'handle_percpu_devid_irq', 'call_on_irq_stack')")?;
    ensure!(of_interrupts < 0.02 * in_kernel, "{of_interrupts} samples end in the interrupt that takes them");
    let (java, leaf) = (self_of("comm = 'java'")?, self_of("comm = 'java' AND method = 'known.Recursion.leaf'")?);
    ensure!(leaf > 0.6 * java && leaf > 100.0, "{leaf} of the JVM's {java} samples are in the method that is busy");
    let to_root = total_of("comm = 'java' AND method LIKE 'thread_native_entry%'")?;
    ensure!(
        to_root > 0.8 * java,
        "{to_root} of {java} stacks of the JVM reach the function that its threads begin with"
    );
    let deep = data.number(
        "SELECT coalesce(sum(b.samples), 0)::DOUBLE FROM branches b
         JOIN (SELECT DISTINCT stack_id, depth FROM stacks) s USING (stack_id) WHERE b.comm = 'spin' AND s.depth >= 2",
    )?;
    let spin = self_of("comm = 'spin'")?;
    ensure!(deep > 0.8 * spin, "{deep} of {spin} stacks of the shell have two frames");
    Ok(())
}

#[test]
fn the_program_for_aarch64_records_time_stacks_and_energy() -> Result<()> {
    if let Some(reason) = AARCH64.missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let Some(program) = paths::joular_bpf_for_aarch64() else {
        notes::skipped("no program for aarch64 was built (`cargo xtask test --slow` does that)");
        return Ok(());
    };
    let program = std::fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    let kernels = AARCH64.kernels();
    thread::scope(|scope| {
        let program = program.as_slice();
        let on = |(kernel, release)| (kernel, scope.spawn(move || record(kernel, program, release)));
        let started: Vec<_> = kernels.iter().zip(RELEASES.into_iter().cycle()).map(on).collect();
        started.into_iter().try_for_each(|(kernel, thread)| {
            println!("Linux {}", kernel.release);
            check(&kernel.release, &thread.join().expect("a kernel's thread ends")?)
                .with_context(|| kernel.release.clone())
        })
    })
}
