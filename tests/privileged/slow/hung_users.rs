//! Tests many processes of several users whose memory never comes: a JVM of somebody else that starts among them has its
//! names as soon as ever, and users are named whose processes hold the recorder up.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::unix_us,
    fakes::{Fakes, PAGE},
    java::Workload,
    notes,
    process::{Finished, Running},
    profiler::{Output, Profiler, Run},
};
use serde_json::Value;

/// By which targets are found. JVMs of others have another one.
const NAME: &str = "hung-java";
const USERS: [u32; 4] = [60_001, 60_002, 60_003, 60_004];
/// More than the recorder waits for at the same time of one user.
const PROCESSES: usize = 40;
/// They are read a few at a time.
const TOLD: Duration = Duration::from_secs(240);
const WINDOWS: usize = 8;
const LONGEST_NS: u64 = 2_500_000_000;
/// By which names may come later than without hung processes: two windows.
const LATER_S: f64 = 2.0;

/// What was recorded of a JVM that started among others.
struct Named {
    /// Until the end of the first window in which a method has its name.
    after_s: f64,
    /// Of its samples.
    share: f64,
    longest_ns: u64,
}

fn recording(output: &Output) -> Run {
    let run = Run::modelled().with("--comm", NAME).with("--frequency", "199").argument("--json");
    run.output(output.dir())
}

/// Starts a JVM that is a target, and ends the run some windows later.
fn named(mut profiler: Profiler, output: &Output) -> Result<(Named, Finished)> {
    let began_us = unix_us();
    let jvm = Workload::new("Busy").dont_inline("Busy::spin").named(NAME).start()?;
    let mut longest_ns = 0;
    for _ in 0..WINDOWS {
        let window: Value = serde_json::from_str(&profiler.wait_window()?)?;
        longest_ns = longest_ns.max(window["length_ns"].as_u64().context("no length")?);
    }
    let finished = profiler.stop()?;
    let pid = jvm.pid();
    let is_named = format!("pid = {pid} AND method = 'Busy.spin'");
    let first_us = output.data.number(&format!(
        "SELECT min(epoch_us(window_start) + window_ns // 1000)::DOUBLE FROM methods WHERE {is_named}"
    ))?;
    let share = output.data.number(&format!(
        "SELECT sum(self_samples) FILTER ({is_named})::DOUBLE / sum(self_samples) FROM methods WHERE pid = {pid}"
    ))?;
    #[allow(clippy::cast_precision_loss, reason = "microseconds since 1970 are exact")]
    let after_s = (first_us - began_us as f64) / 1e6;
    Ok((Named { after_s, share, longest_ns }, finished))
}

#[test]
fn hung_processes_of_several_users_keep_no_name_from_a_jvm_that_starts_later() -> Result<()> {
    let alone = Output::new()?;
    let (usual, _) = named(recording(&alone).start()?, &alone)?;
    let (fakes, output) = (Fakes::named(NAME)?, Output::new()?);
    let mirror = fakes.mirror()?;
    let page = mirror.path().join(PAGE);
    let users = USERS.iter().flat_map(|user| [*user; PROCESSES]);
    let _hung = users.map(|user| fakes.start_resting_as(user, &page)).collect::<Result<Vec<Running>>>()?;
    mirror.die();
    let mut profiler = recording(&output).start()?;
    for user in USERS {
        profiler.wait_told(&format!("of user {user} do not come to an end"), TOLD)?;
    }
    ensure!(mirror.has_waiting(), "nobody touched the memory that does not come");
    let (among, finished) = named(profiler, &output)?;
    let text = format!(
        "{} hung processes of {} users: a JVM has names {:.1} s after its start, {:.1} % of its samples; without them {:.1} s, \
         {:.1} %; no window was longer than {} ns",
        USERS.len() * PROCESSES,
        USERS.len(),
        among.after_s,
        100.0 * among.share,
        usual.after_s,
        100.0 * usual.share,
        among.longest_ns
    );
    notes::figure(&text);
    ensure!(among.after_s < usual.after_s + LATER_S && among.longest_ns < LONGEST_NS, "{text}: {}", finished.stderr);
    Ok(())
}
