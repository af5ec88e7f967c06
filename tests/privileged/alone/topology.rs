//! Tests what is counted apart by where it ran: sockets, hyper-threads of a core, and cycles. A
//! topology that the test makes replaces the machine's own; in it the first two CPUs are what is to
//! be tested.

use std::{fs, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_data::{
    events::{Event, RunInfo, ThreadTime, Window, recording::RecordingReader},
    model::policy::WeightUnit,
};
use joular_tests::{
    chance::repeat_once,
    notes,
    profiler::{END, Output, Run},
    shared::Shared,
    topology::{self, Cpus},
};
use joular_user::{cli::Exit, kernel::features};

use crate::burner::Burner;

const BURN: Duration = Duration::from_secs(4);
/// Of the time, for figures of two CPUs that must agree.
const SLACK: f64 = 0.02;

/// A run over a burner whose threads stay on CPUs 0, 1, …
struct Measured {
    info: RunInfo,
    windows: Vec<Window>,
    /// Ids of the burner's threads.
    threads: Vec<u32>,
}

fn measure(cpus: Cpus, options: &[&str], duties: &[u32], measures: u32) -> Result<Measured> {
    let output = Output::new()?;
    let cpu_root = topology::create(output.beside("cpu"), cpus)?;
    let recording = output.beside("run.jrec");
    let mut burner = Burner::start(duties)?;
    let threads = burner.pin(&(0..duties.len()).collect::<Vec<_>>())?;
    let run = Run::modelled().pid(burner.pid()).with("--cpu-root", cpu_root).with("--record", &recording);
    let run = options.iter().fold(run.argument("--no-output").argument("--quiet"), |run, option| run.argument(option));
    let profiler = run.start()?;
    burner.burn(measures * BURN)?;
    profiler.stop()?;
    let (mut info, mut windows) = (None, Vec::new());
    for event in RecordingReader::new(fs::File::open(&recording)?)? {
        match event? {
            Event::RunStarted(started) => info = Some(*started),
            Event::Window(window) => windows.push(*window),
            _ => {}
        }
    }
    ensure!(windows.len() >= 3, "only {} windows", windows.len());
    Ok(Measured { info: info.context("the recording has no run")?, windows, threads })
}

/// A run whose CPUs are sockets, both busy.
fn two_sockets() -> Result<Arc<Measured>> {
    static RUN: Shared<Measured> = Shared::new();
    RUN.get(|| measure(Cpus::TwoSockets, &[], &[100, 100], 1))
}

impl Measured {
    fn times(&self) -> impl Iterator<Item = &ThreadTime> {
        self.windows.iter().flat_map(|window| &window.threads)
    }

    /// Sum over the windows of one of the burner's threads.
    fn sum(&self, thread: usize, column: impl Fn(&ThreadTime) -> u64) -> f64 {
        self.times().filter(|time| time.tid.0 == self.threads[thread]).map(column).sum::<u64>() as f64
    }

    fn lost(&self) -> Vec<&str> {
        self.windows.iter().flat_map(|window| &window.losses).map(|loss| loss.cause.as_str()).collect()
    }
}

/// Whatever else the machine does meanwhile: both CPUs say for how long both were
/// busy, and they say the same, as far as their busy times allow. What is counted
/// too much after a switch that the kernel did not report is counted less later,
/// maybe in a later window: so it is the whole run that must agree.
fn expect_symmetric(windows: &[Window]) {
    let (mut length, mut least, mut most, mut corun) = (0.0, 0.0, 0.0, [0.0; 2]);
    for window in windows {
        let window_ns = window.length_ns() as f64;
        let busy: Vec<f64> = window.cpus.iter().map(|cpu| cpu.busy_ns as f64).collect();
        length += window_ns;
        least += (busy[0] + busy[1] - window_ns).max(0.0);
        most += busy[0].min(busy[1]);
        for time in &window.threads {
            corun[time.socket as usize] += time.corun_ns as f64;
        }
    }
    let slack = SLACK * length;
    for both in corun {
        assert!(both >= least - slack && both <= most + slack, "{both} ns of {least} to {most}, in {length}");
    }
    assert!((corun[0] - corun[1]).abs() <= slack, "{} and {} of {length} ns", corun[0], corun[1]);
}

#[test]
fn two_busy_hyper_threads_see_each_other() -> Result<()> {
    repeat_once(two_busy_hyper_threads)
}

fn two_busy_hyper_threads(measures: u32) -> Result<()> {
    let measured = measure(Cpus::Siblings, &[], &[100, 40], measures)?;
    expect_symmetric(&measured.windows);
    let share = |thread| measured.sum(thread, |time| time.corun_ns) / measured.sum(thread, |time| time.cpu_ns);
    assert!(share(1) > 0.95, "beside a CPU that is always busy: {:.3}", share(1));
    // At least the other's own duty: more if others run there too.
    assert!(share(0) > 0.36, "beside a thread that is busy for 40 %: {:.3}", share(0));
    Ok(())
}

/// The other is not idle altogether: if the kernel does not report that a task of its own gave way
/// to the idle task, the CPU counts as busy until its next switch, and that much less as soon as
/// it is busy again. With a thread that runs every 10 ms, both come soon.
#[test]
fn a_hyper_thread_beside_one_that_is_nearly_idle_shares_little_of_its_time() -> Result<()> {
    repeat_once(beside_a_nearly_idle_one)
}

fn beside_a_nearly_idle_one(measures: u32) -> Result<()> {
    let measured = measure(Cpus::Siblings, &[], &[100, 5], measures)?;
    expect_symmetric(&measured.windows);
    let other: u64 =
        measured.windows.iter().flat_map(|window| &window.cpus).map(|cpu| cpu.busy_ns * u64::from(cpu.cpu)).sum();
    let corun = measured.sum(0, |time| time.corun_ns);
    let length = measured.windows.iter().map(Window::length_ns).sum::<u64>() as f64;
    let least = 0.05 * measured.sum(0, |time| time.cpu_ns) - SLACK * length;
    let most = other as f64 + SLACK * length;
    assert!(corun <= most, "{corun} ns beside a CPU that was busy for {other} ns of {length}");
    assert!(corun >= least, "{corun} ns beside a thread that is busy for 5 % of {length}");
    Ok(())
}

#[test]
fn nothing_is_shared_where_cores_have_one_thread() -> Result<()> {
    let measured = two_sockets()?;
    assert_eq!(measured.times().map(|time| time.corun_ns).sum::<u64>(), 0);
    Ok(())
}

#[test]
fn a_thread_has_time_only_on_the_socket_of_its_cpu() -> Result<()> {
    let measured = two_sockets()?;
    assert_eq!(measured.info.sockets, 2);
    for (index, tid) in measured.threads.iter().enumerate() {
        let mut rows = 0;
        for time in measured.times().filter(|time| time.tid.0 == *tid && time.cpu_ns > 0) {
            assert_eq!(time.socket as usize, index, "{time:?}");
            rows += 1;
        }
        assert!(rows >= 3, "thread {tid} has {rows} rows");
    }
    assert!(measured.windows.iter().all(|window| window.cpus.iter().all(|cpu| cpu.socket == cpu.cpu)));
    Ok(())
}

#[test]
fn cycles_of_a_clock_are_the_time_of_each_thread() -> Result<()> {
    repeat_once(cycles_of_a_clock)
}

fn cycles_of_a_clock(measures: u32) -> Result<()> {
    let measured = measure(Cpus::TwoSockets, &["--weights", "clock"], &[100, 30], measures)?;
    assert_eq!(measured.info.policy.weight_unit, WeightUnit::Cycles);
    for thread in 0..measured.threads.len() {
        let (cycles, cpu_ns) = (measured.sum(thread, |time| time.cycles), measured.sum(thread, |time| time.cpu_ns));
        assert!(cpu_ns > 0.5e9, "thread {thread} hardly ran: {cpu_ns} ns");
        assert!((cycles / cpu_ns - 1.0).abs() <= 0.02, "thread {thread}: {cycles} cycles in {cpu_ns} ns");
    }
    assert!(!measured.lost().contains(&"cycles_unread"), "{:?}", measured.lost());
    Ok(())
}

#[test]
fn no_cycles_are_counted_when_time_is_chosen() -> Result<()> {
    let measured = measure(Cpus::TwoSockets, &["--weights", "time"], &[100], 1)?;
    assert_eq!(measured.info.policy.weight_unit, WeightUnit::Time);
    assert_eq!(measured.times().map(|time| time.cycles).sum::<u64>(), 0);
    Ok(())
}

#[test]
fn cycles_are_refused_where_the_hardware_counts_none() -> Result<()> {
    if features::has_cycles() {
        notes::skipped("the refusal is of machines without hardware counters");
        return Ok(());
    }
    let run = Run::modelled().argument("--all").argument("--no-output").with("--weights", "cycles");
    let finished = run.with("--duration", "1s").finish(BURN + END)?;
    assert_eq!(finished.code(), Some(i32::from(Exit::KernelFeature.code())), "{finished:?}");
    assert!(
        finished.stderr.contains("no hardware counters") && finished.stderr.contains("--weights time"),
        "{finished:?}"
    );
    Ok(())
}
