//! Tests processes that are not targets and of which the kernel has much to tell: they wake the profiler hardly ever and
//! cost it next to nothing, and a target among them is found as soon as it is one. A target that tells too much of
//! itself is bounded, and named.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    notes,
    process::Running,
    profiler::{END, Output, Profiler, Run},
    schedstat,
    strangers::Strangers,
    switches,
};

/// As often as one process can, and more than it can.
const PER_SECOND: u32 = 1_500;
const RENAMES_PER_SECOND: u32 = 100_000;
const SECONDS: u64 = 4;
/// Windows, and looks at what may be a target where names do not decide.
const MOST_SWITCHES_PER_S: f64 = 50.0;
const MOST_CPU: f64 = 0.03;

/// Processes that this machine has started.
fn started() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    let count = text.lines().find_map(|line| line.strip_prefix("processes "));
    Ok(count.context("no count of processes")?.trim().parse()?)
}

/// What a recorder has used, and what there was to tell of.
struct Used {
    at: Instant,
    switches: u64,
    cpu_ns: u64,
    started: u64,
}

impl Used {
    fn now(profiler: &Profiler) -> Result<Self> {
        let (switches, cpu_ns) = (switches::voluntary(profiler.pid())?, schedstat::process(profiler.pid())?);
        Ok(Self { at: Instant::now(), switches, cpu_ns, started: started()? })
    }
}

/// So many at once, because one waits for each process that it starts.
const STRANGERS: usize = 2;

fn expect_quiet(profiler: &Profiler, strangers: &Strangers, what: &str, per_second: u32) -> Result<()> {
    let crowd = [(); STRANGERS].map(|()| strangers.start(what, per_second, SECONDS + 3));
    let crowd: Vec<Running> = crowd.into_iter().collect::<Result<_>>()?;
    // The first of a crowd are looked at.
    std::thread::sleep(Duration::from_secs(1));
    let before = Used::now(profiler)?;
    std::thread::sleep(Duration::from_secs(SECONDS));
    let after = Used::now(profiler)?;
    drop(crowd);
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    let switches = (after.switches - before.switches) as f64 / seconds;
    let cpu = (after.cpu_ns - before.cpu_ns) as f64 / 1e9 / seconds;
    let started = (after.started - before.started) as f64 / seconds;
    notes::figure(&format!(
        "{what}: {switches:.0} switches a second, {:.2} % of a core, while {started:.0} processes a second start",
        100.0 * cpu
    ));
    ensure!(switches <= MOST_SWITCHES_PER_S, "{what}: {switches:.0} switches a second");
    ensure!(cpu <= MOST_CPU, "{what}: {:.1} % of a core", 100.0 * cpu);
    Ok(())
}

#[test]
fn processes_that_are_no_targets_wake_nobody_and_cost_nothing() -> Result<()> {
    let strangers = Strangers::new()?;
    // The kernel can tell by the first name, and not by the second, who is none.
    for name in ["nosuch", "*nosuch"] {
        let profiler = Run::modelled().with("--comm", name).argument("--no-output").start()?;
        expect_quiet(&profiler, &strangers, "fork", PER_SECOND)?;
        expect_quiet(&profiler, &strangers, "rename", RENAMES_PER_SECOND)?;
    }
    Ok(())
}

/// Starts programs that live for a moment while strangers come and go, and counts those that were targets.
fn found(strangers: &Strangers, selected: &str, commands: impl Fn() -> Vec<Command>) -> Result<f64> {
    let output = Output::new()?;
    let profiler = Run::modelled().with("--comm", selected).output(output.dir()).argument("--quiet").start()?;
    let crowd = strangers.start("fork", PER_SECOND, 60)?;
    std::thread::sleep(Duration::from_secs(2));
    for mut command in commands() {
        ensure!(command.status()?.success(), "{command:?}");
    }
    drop(crowd);
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    output.data.number("SELECT count(DISTINCT pid)::DOUBLE FROM processes WHERE executable IS NOT NULL")
}

/// One in ten may be missed: a busy machine lets the recorder wait for a CPU for longer than they live.
fn expect_found(measures: u32) -> Result<()> {
    const COUNT: u32 = 20;
    const LIFE_MS: &str = "150";
    const LEAST_PART: f64 = 0.9;
    let strangers = Strangers::new()?;
    let wanted = strangers.named("wanted")?;
    let count = COUNT * measures;
    let run = |program: &Path, name: &str| {
        let mut command = Command::new(program);
        command.args(["become", name, LIFE_MS]);
        command
    };
    // By the program that is executed, and by the name that a process takes.
    let executed = found(&strangers, "wanted", || (0..count).map(|_| run(&wanted, "wanted")).collect())?;
    let renamed = found(&strangers, "wanted", || (0..count).map(|_| run(&strangers.program(), "wanted")).collect())?;
    // Where names do not decide for the kernel, they are looked for less often.
    let by_end = found(&strangers, "*anted", || (0..count).map(|_| run(&wanted, "wanted")).collect())?;
    let text = format!("of {count} that live for {LIFE_MS} ms: {executed}, {renamed} and {by_end} were targets");
    notes::figure(&text);
    let expected = LEAST_PART * f64::from(count)..f64::from(count) + 0.5;
    ensure!([executed, renamed, by_end].iter().all(|found| expected.contains(found)), "{text}");
    Ok(())
}

#[test]
fn targets_are_found_among_strangers_while_they_live() -> Result<()> {
    repeat_once(expect_found)
}

#[test]
fn a_target_that_tells_too_much_is_bounded_and_named() -> Result<()> {
    let (strangers, output) = (Strangers::new()?, Output::new()?);
    let noisy = strangers.start("rename", RENAMES_PER_SECOND, 60)?;
    let run = Run::modelled().with("--pid", noisy.pid().to_string()).output(output.dir()).argument("--json");
    let mut profiler = run.start()?;
    for _ in 0..3 {
        profiler.wait_window()?;
    }
    profiler.signal(rustix::process::Signal::INT)?;
    let finished = profiler.finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let lost = output.data.number("SELECT sum(lost_ring_share_used)::DOUBLE FROM windows")?;
    let full =
        output.data.number("SELECT sum(lost_lifecycle_ring_full + lost_stack_ring_full)::DOUBLE FROM windows")?;
    ensure!(lost > 0.0 && full == 0.0, "{lost} lost by the share, {full} because the ring was full");
    let notice = format!("process {} (", noisy.pid());
    let line = finished.stderr.lines().find(|line| line.contains("share of the ring buffer"));
    ensure!(line.context("no notice")?.contains(&notice), "{finished:?}");
    Ok(())
}
