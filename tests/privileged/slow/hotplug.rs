//! Tests CPUs that go and come back while threads are measured: between two looks at them, and for
//! longer. Time stays in its window, sampling goes on, and the run says where times are not exact.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_data::events::Window;
use joular_tests::{
    notes,
    profiler::{Output, Profiler, Run},
    statistics::RARE_SIGMAS,
};

use crate::{burner::Burner, recordings};

/// The last one of two; the first cannot go.
pub(crate) const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
/// As many threads as keep all CPUs busy, and one more.
const THREADS: u32 = 3;
const FREQUENCY_HZ: f64 = 199.0;
/// Longer than the run.
const BURN: Duration = Duration::from_secs(60);
/// Sampling is back in this many windows.
const SETTLES: usize = 2;
/// Windows from then on that are judged together.
const JUDGED: usize = 3;
const AUDITED: Duration = Duration::from_secs(30);
/// By which a thread's time may be more than its window, for clocks that are corrected.
const SLACK: f64 = 1.001;

/// A CPU that is put back whatever happens.
pub(crate) struct Cpu;

impl Cpu {
    pub(crate) fn turn(is_on: bool) -> Result<()> {
        fs::write(SWITCH, if is_on { "1" } else { "0" }).with_context(|| format!("writing {SWITCH}"))
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        // A test that succeeded has put it back itself.
        let _ = Self::turn(true);
    }
}

fn wait_windows(profiler: &mut Profiler, windows: usize) -> Result<()> {
    (0..windows).try_for_each(|_| profiler.wait_window().map(drop))
}

/// A run in which a CPU goes and comes back, and the windows from which sampling must be as usual.
fn measure(sampler: &str) -> Result<(Vec<Window>, [usize; 2])> {
    let output = Output::new()?;
    let recording = output.beside("run.jrec");
    let mut burner = Burner::start(&[100; THREADS as usize])?;
    let run = Run::modelled().pid(burner.pid()).with("--sampler", sampler).with("--record", &recording);
    let mut profiler =
        run.with("--frequency", FREQUENCY_HZ.to_string()).output(output.dir()).argument("--json").start()?;
    burner.begin(BURN)?;
    let _back = Cpu;
    wait_windows(&mut profiler, 2)?;
    // Right behind a look at the CPUs, so that the next one finds them as they were.
    Cpu::turn(false)?;
    Cpu::turn(true)?;
    wait_windows(&mut profiler, SETTLES + JUDGED)?;
    let first = 2 + SETTLES;
    Cpu::turn(false)?;
    wait_windows(&mut profiler, 2)?;
    Cpu::turn(true)?;
    wait_windows(&mut profiler, SETTLES + JUDGED)?;
    profiler.stop()?;
    let audit = Run::new().argument("audit").argument(output.dir()).finish(AUDITED)?;
    ensure!(audit.code() == Some(0), "{sampler}: {audit:?}");
    Ok((recordings::windows(&recording)?, [first, first + JUDGED + 2 + SETTLES]))
}

/// CPU time of the burner's threads in a window, and their samples.
fn sums(window: &Window) -> (f64, f64) {
    let busy = window.threads.iter().filter(|thread| thread.comm.starts_with(b"burn"));
    busy.fold((0.0, 0.0), |(time_ns, samples), thread| {
        #[allow(clippy::cast_precision_loss, reason = "times of seconds")]
        (time_ns + thread.cpu_ns as f64, samples + f64::from(thread.samples))
    })
}

fn expect_sound(sampler: &str) -> Result<()> {
    let (windows, judged) = measure(sampler)?;
    for window in &windows {
        #[allow(clippy::cast_precision_loss, reason = "times of seconds")]
        let length_ns = window.end.since(window.start) as f64;
        for thread in window.threads.iter().filter(|thread| thread.comm.starts_with(b"burn")) {
            #[allow(clippy::cast_precision_loss, reason = "times of seconds")]
            let share = thread.cpu_ns as f64 / length_ns;
            ensure!(share <= SLACK, "{sampler}: window {}: a thread has {share} of it", window.index);
        }
        let (time_ns, _) = sums(window);
        ensure!(time_ns <= 2.0 * SLACK * length_ns, "{sampler}: window {}: {time_ns} ns on two CPUs", window.index);
    }
    // Its event ended with the CPU, which nobody saw go: that is told. Timers go on by themselves.
    let told = windows.iter().flat_map(|window| &window.losses).any(|loss| loss.cause == "cpu_unsampled");
    ensure!(told == (sampler == "cpu-clock"), "{sampler}: told of a CPU that was not sampled: {told}");
    for begin in judged {
        let calm = windows.get(begin..begin + JUDGED).with_context(|| format!("only {} windows", windows.len()))?;
        let (time_ns, samples) = calm.iter().map(sums).fold((0.0, 0.0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        let due = time_ns / 1e9 * FREQUENCY_HZ;
        notes::figure(&format!("{sampler}: from window {begin} on {samples} samples, {due:.0} due"));
        ensure!(due >= 500.0, "{sampler}: {due} samples are due: the threads hardly ran");
        ensure!((samples - due).abs() <= RARE_SIGMAS * due.sqrt(), "{sampler}: {samples} samples, {due} due");
    }
    Ok(())
}

#[test]
fn a_cpu_that_goes_and_comes_back_is_sampled_again_and_time_stays_in_its_window() -> Result<()> {
    if !Path::new(SWITCH).exists() {
        notes::figure("this machine's CPUs cannot go: a CPU that comes back was not tested");
        return Ok(());
    }
    ["timer", "cpu-clock"].into_iter().try_for_each(expect_sound)
}
