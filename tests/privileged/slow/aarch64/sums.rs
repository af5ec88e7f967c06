//! Looks at what all of an emulated machine's CPUs did, and at two busy processes: sums, the rate of samples, and stacks that
//! go through the kernel.

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{DataSet, float, integer},
    notes,
};

const FREQUENCY_HZ: f64 = 199.0;

pub fn check(kernel: &str, data: &DataSet) -> Result<()> {
    data.expect_none(
        "run that is not of this machine, or takes samples otherwise",
        "SELECT * FROM runs WHERE arch <> 'aarch64' OR sampling_event <> 'timer'",
    )?;
    check_losses(kernel, data)?;
    check_sums(data)?;
    check_samples(kernel, data)?;
    check_stacks(data)
}

/// An emulated machine waits for CPUs of this one, and may be late. Nothing else is lost.
fn check_losses(kernel: &str, data: &DataSet) -> Result<()> {
    let losses = data.losses()?;
    let lost: Vec<_> = losses.iter().filter(|(_, count)| **count != 0).collect();
    notes::figure(&format!("Linux {kernel}: losses: {lost:?}"));
    ensure!(losses.contains_key("lost_stack_ring_full"), "other columns: {losses:?}");
    // This column is the sum of those that have none.
    let is_late = |cause: &str| cause.starts_with("late_") || cause == "lost_other";
    ensure!(lost.iter().all(|(cause, _)| is_late(cause)), "{lost:?}");
    Ok(())
}

/// All time and energy of the machine belongs to somebody, and threads and their branches have the same. A late window may have
/// some time of the next one, and says how much.
fn check_sums(data: &DataSet) -> Result<()> {
    data.expect_none(
        "window whose time or energy does not add up",
        "SELECT * FROM windows WHERE abs(cpu_elapsed_ns - (cpu_busy_ns + cpu_idle_ns + cpu_unslotted_ns)) > cpu_inexact_ns
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
fn check_samples(kernel: &str, data: &DataSet) -> Result<()> {
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
        "Linux {kernel}: {rate:.0} samples per second of CPU time, where {FREQUENCY_HZ} were asked for"
    ));
    // Of a machine with nothing else to do it is 190. The emulator waits for CPUs of this one, and meanwhile no timer interrupts.
    ensure!(
        (0.15 * FREQUENCY_HZ..1.15 * FREQUENCY_HZ).contains(&rate),
        "{rate} samples a second: {spin:?} {dd:?} {java:?}"
    );
    ensure!((0.67..1.5).contains(&(spin.0 / dd.0)), "they share a CPU: {spin:?} {dd:?}");
    ensure!(java.0 > 1.0, "{java:?} of the JVMs");
    Ok(())
}

/// Kernel stacks begin below the interrupt that took the sample, and lead to who made the system call. Stacks of a shell
/// have frames of more than one function.
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
    let deep = data.number(
        "SELECT coalesce(sum(b.samples), 0)::DOUBLE FROM branches b
         JOIN (SELECT DISTINCT stack_id, depth FROM stacks) s USING (stack_id) WHERE b.comm = 'spin' AND s.depth >= 2",
    )?;
    let spin = self_of("comm = 'spin'")?;
    ensure!(deep > 0.8 * spin, "{deep} of {spin} stacks of the shell have two frames");
    Ok(())
}
