//! Measures how often the profiler is woken while programs come and go that are not targets.

use std::{process::Command, thread, time::Duration};

use anyhow::Result;
use joular_tests::{clock::monotonic_ns, native, process::Running, profiler::Run, schedstat, switches};

use super::figure::Figure;
use crate::shell;

const RUNS: usize = 6;
const PER_SECOND: u32 = 1_500;
const MEASURED: Duration = Duration::from_secs(5);
const STARTED: Duration = Duration::from_secs(20);

pub fn measure() -> Result<Vec<Figure>> {
    shell::step("switches per second under forks");
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("stranger");
    native::compile("stranger.c", &program)?;
    let (mut woken, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let profiler = Run::modelled().with("--comm", "nosuch").argument("--no-output").argument("--quiet").start()?;
        let mut forks = Command::new(&program);
        let mut forks = Running::spawn("forks", forks.args(["fork", &PER_SECOND.to_string(), "60"]))?;
        forks.wait_stdout("ready", STARTED)?;
        let used = || -> Result<_> {
            Ok((monotonic_ns(), switches::voluntary(profiler.pid())?, schedstat::process(profiler.pid())?))
        };
        let before = used()?;
        thread::sleep(MEASURED);
        let after = used()?;
        drop(forks);
        profiler.stop()?;
        let seconds = (after.0 - before.0) as f64 / 1e9;
        woken.push((after.1 - before.1) as f64 / seconds);
        cpu.push(100.0 * (after.2 - before.2) as f64 / 1e9 / seconds);
    }
    let method = format!(
        "of all the profiler's threads, in {RUNS} runs of {} s in which a program that is not a target starts up to \
         {PER_SECOND} others a second, one after the other",
        MEASURED.as_secs()
    );
    let figure = |name: &str, unit, target, digits, values| Figure {
        name: name.to_owned(),
        unit,
        target,
        digits,
        values,
        method: method.clone(),
    };
    Ok(vec![
        figure("switches per second under forks", "/s", "≤ 50 /s", 0, woken),
        figure("CPU of the profiler under forks", "% of one core", "≤ 3 %", 2, cpu),
    ])
}
