//! Writes what the protocol would be on a machine that is simulated ([`machine`]): a recording, and the log of a wattmeter.
//!
//! The recording is interpreted as any other one, so everything behind the kernel is the real thing. Only the machine's
//! truth is known: which part of a pair's power each program really draws.

mod machine;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use joular_data::{
    events::{
        CpuTimes, EnergyReading, Event, Mark, MarkFrom, MarkKind, ProcessInfo, RunEnd, RunInfo, ThreadTime, Window,
        WindowContext,
        recording::{RecordingError, RecordingWriter},
    },
    model::{
        domain::{Domain, Label, Meter, Reading},
        policy::Policy,
        units::{MonotonicNs, Pid, Tid, UnixMicros},
    },
    report::validate::protocol::{PAIRS, Program, Step},
};

use self::machine::{CPUS, Draw, Machine};
use super::Schedule;

/// 2026-01-01T00:00:00Z.
const STARTED: UnixMicros = UnixMicros(1_767_225_600_000_000);
const SECOND_NS: u64 = 1_000_000_000;
/// Of the machine's clock at the start of the run, since boot.
const BOOTED_NS: u64 = 1_000 * SECOND_NS;
/// Its power is computed so often in each second.
const TICKS: u32 = 4;
const TICK_S: f64 = 1.0 / TICKS as f64;
/// Windows before the first step and after the last one.
const AROUND: usize = 3;
/// By how much work goes up and down from tick to tick, and the part of that which stays.
const WAVE: f64 = 0.02;
const KEPT: f64 = 0.9;
/// How far the meter's clock is ahead, its lag included, in ticks.
const AHEAD: i64 = 7;
/// Standard deviation of a reading, W, and the meter's limit of error, in percent.
const READING_W: f64 = 0.3;
pub const METER_CLASS: f64 = 0.5;
/// Threads of the programs have numbers beyond this, by program.
const FIRST_PID: u32 = 1_000;
const PROFILER: Pid = Pid(900);
/// W beyond which a reading cannot be true.
const MOST_WATTS: u32 = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error("making {path}: {source}")]
    File { path: String, source: io::Error },
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// What is known of the simulated machine alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Of each pair: the part of both programs' power that the first one draws.
    pub shares: Vec<(Step, f64)>,
}

/// Writes the recording and the meter's log.
///
/// # Errors
/// If one of them cannot be written.
pub fn write(schedule: &Schedule, recording: &Path, log: &Path) -> Result<Truth, SimulationError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| SimulationError::File { path, source }
    };
    let file = File::create(recording).map_err(failed(recording))?;
    let mut writer = RecordingWriter::new(BufWriter::new(file))?;
    let mut random = fastrand::Rng::with_seed(schedule.seed);
    let plug = record(schedule, &mut random, &mut |event| writer.write(&event))?;
    writer.finish()?.flush().map_err(failed(recording))?;
    // The meter is wrong by as much as its class allows, and always the same way.
    let gain = 1.0 + METER_CLASS / 100.0 * (2.0 * random.f64() - 1.0);
    std::fs::write(log, readings(&plug, gain, &mut random)).map_err(failed(log))?;
    let share = |(a, b)| Draw::of(Step::Pair(a, b)).share(a).map(|share| (Step::Pair(a, b), share));
    Ok(Truth { shares: PAIRS.into_iter().filter_map(share).collect() })
}

/// The log of a meter that shows the mean of each second, by its own clock.
fn readings(plug: &[f64], gain: f64, random: &mut fastrand::Rng) -> String {
    let mut log = "time,watts\n".to_owned();
    for (second, ticks) in (1_i64..).zip(plug.chunks_exact(TICKS as usize)) {
        let at_us = STARTED.0 + (second * i64::from(TICKS) + AHEAD) * (1_000_000 / i64::from(TICKS));
        let watts = gain * ticks.iter().sum::<f64>() * TICK_S + READING_W * normal(random);
        log += &format!("{at_us},{watts:.3}\n");
    }
    log
}

/// Nearly normal: twelve uniforms.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Hands out the events of a run; returns the power at the plug at each tick.
fn record(
    schedule: &Schedule,
    random: &mut fastrand::Rng,
    write: &mut dyn FnMut(Event) -> Result<(), RecordingError>,
) -> Result<Vec<f64>, RecordingError> {
    let seconds = usize::try_from(schedule.step.as_secs()).unwrap_or(1).max(1);
    let around = || std::iter::repeat_n(None, AROUND);
    let steps = schedule.steps().flat_map(|step| std::iter::repeat_n(Some(step), seconds));
    // Two of one step in a row are two phases, so edges are counted.
    let windows: Vec<Option<Step>> = around().chain(steps).chain(around()).collect();
    write(Event::RunStarted(Box::new(run(schedule.seed))))?;
    for program in Program::ALL {
        write(Event::Process(Box::new(process(program))))?;
    }
    let (mut machine, mut wave, mut energy_uj) = (Machine::cool(), 0.0, 0.0);
    let mut plug = Vec::with_capacity(windows.len() * TICKS as usize);
    write(reading(0, energy_uj))?;
    for (index, step) in windows.iter().enumerate() {
        let draw = step.map(Draw::of).unwrap_or_default();
        for _ in 0..TICKS {
            wave = KEPT * wave + (1.0 - KEPT * KEPT).sqrt() * normal(random);
            let power = machine.draws(&draw, 1.0 + WAVE * wave, TICK_S);
            energy_uj += power.package * TICK_S * 1e6;
            plug.push(power.plug);
        }
        let is_edge = index >= AROUND - 1 && (index + 1 - AROUND).is_multiple_of(seconds);
        if is_edge {
            for mark in edges(index, *step, windows.get(index + 1).copied().flatten()) {
                write(mark)?;
            }
        }
        write(reading(index + 1, energy_uj))?;
        write(context(machine.celsius))?;
        write(Event::Window(Box::new(window(index, &draw))))?;
    }
    let ended = UnixMicros(STARTED.0 + micros(windows.len()));
    write(Event::RunEnded(RunEnd { ended, reason: "command".to_owned() }))?;
    Ok(plug)
}

fn micros(seconds: usize) -> i64 {
    i64::try_from(seconds).unwrap_or(0) * 1_000_000
}

fn at(seconds: usize) -> MonotonicNs {
    MonotonicNs(BOOTED_NS + seconds as u64 * SECOND_NS)
}

fn run(seed: u64) -> RunInfo {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: MOST_WATTS };
    RunInfo {
        run_id: format!("simulated-{seed}"),
        host: "simulated".into(),
        started: STARTED,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: "none".to_owned(),
        cpu_model: "simulated machine".to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        online_cpus: u32::try_from(CPUS).unwrap_or(0),
        sockets: 1,
        sampling_event: "none".to_owned(),
        frequency_hz: 0,
        interval_ns: SECOND_NS,
        energy_source: "simulated".to_owned(),
        energy_reason: "the machine is simulated".to_owned(),
        domains: vec![Domain::new("package", Some(0), "simulated", Label::Measured, meter)],
        policy: Policy::default(),
        profiler_pid: PROFILER,
        ..RunInfo::default()
    }
}

fn pid_of(program: Program) -> Pid {
    Pid(FIRST_PID * (1 + program as u32))
}

fn process(program: Program) -> ProcessInfo {
    ProcessInfo {
        pid: pid_of(program),
        start_boottime_ns: SECOND_NS,
        parent: Pid(1),
        comm: program.name().into(),
        namespace_pid: pid_of(program).0,
        is_target: true,
        ..ProcessInfo::default()
    }
}

/// What the counter shows after so many seconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hours of a machine's energy, in µJ")]
fn reading(seconds: usize, energy_uj: f64) -> Event {
    let readings = vec![Reading::CounterUj(energy_uj.round().max(0.0) as u64)];
    Event::Energy(EnergyReading { read_at: at(seconds), readings })
}

#[allow(clippy::cast_possible_truncation, reason = "a temperature in thousandths of a degree")]
fn context(celsius: f64) -> Event {
    let temperature_millicelsius = Some((celsius * 1000.0).round() as i64);
    Event::Context(Box::new(WindowContext { temperature_millicelsius, ..WindowContext::default() }))
}

/// Marks at the end of a window: of the step that ends there, and of the one that begins.
fn edges(index: usize, ends: Option<Step>, begins: Option<Step>) -> impl Iterator<Item = Event> {
    let mark = move |kind: MarkKind, step: Step| {
        let (at, name) = (at(index + 1), Some(step.name().into()));
        Event::Mark(Box::new(Mark { at, kind, name, attributes: None, pid: Some(Pid(1)), from: MarkFrom::Socket }))
    };
    let ends = ends.map(|step| mark(MarkKind::End, step));
    ends.into_iter().chain(begins.map(|step| mark(MarkKind::Begin, step)))
}

fn window(index: usize, draw: &Draw) -> Window {
    let threads: Vec<ThreadTime> = draw.threads.iter().flat_map(|of| threads(*of)).collect();
    let busy_ns = threads.iter().map(|thread| thread.cpu_ns).sum::<u64>() / CPUS as u64;
    let cpu = |cpu| CpuTimes { cpu, busy_ns, idle_ns: SECOND_NS - busy_ns, ..CpuTimes::default() };
    let left = threads.iter().map(|thread| thread.cpu_ns).sum::<u64>() - busy_ns * CPUS as u64;
    let mut cpus: Vec<CpuTimes> = (0..u32::try_from(CPUS).unwrap_or(0)).map(cpu).collect();
    // Nanoseconds that do not divide.
    if let Some(first) = cpus.first_mut() {
        (first.busy_ns, first.idle_ns) = (first.busy_ns + left, first.idle_ns.saturating_sub(left));
    }
    Window {
        index: index as u64,
        start: at(index),
        end: at(index + 1),
        wall_start: UnixMicros(STARTED.0 + micros(index)),
        threads,
        cpus,
        ..Window::default()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "parts of a second, in ns")]
fn threads((program, count, runs, beside): (Program, usize, f64, f64)) -> impl Iterator<Item = ThreadTime> {
    let ns = |part: f64| (part * 1e9).round().clamp(0.0, 1e9) as u64;
    let pid = pid_of(program);
    let number = move |number: usize| Tid(pid.0 + u32::try_from(number).unwrap_or(0));
    (0..count).map(move |thread| ThreadTime {
        tid: number(thread),
        pid,
        start_boottime_ns: SECOND_NS,
        cpu_ns: ns(runs),
        corun_ns: ns(beside),
        ..ThreadTime::default()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SCHEDULE: Schedule = Schedule { rounds: 2, step: Duration::from_secs(3), seed: 7 };

    fn events() -> (Vec<Event>, Vec<f64>) {
        let mut events = Vec::new();
        let mut random = fastrand::Rng::with_seed(SCHEDULE.seed);
        let plug = record(&SCHEDULE, &mut random, &mut |event| {
            events.push(event);
            Ok(())
        });
        (events, plug.unwrap())
    }

    #[test]
    fn each_step_is_a_phase_of_whole_windows() {
        let (events, plug) = events();
        let steps: Vec<Step> = SCHEDULE.steps().collect();
        let (mut open, mut lengths, mut seen) = (None, Vec::new(), Vec::new());
        for event in &events {
            match event {
                Event::Mark(mark) if mark.kind == MarkKind::Begin => open = Some((mark.name.clone(), 0)),
                Event::Mark(mark) => {
                    let (name, length) = open.take().unwrap();
                    assert_eq!(name, mark.name);
                    seen.push(Step::parse(&name.unwrap().to_string()).unwrap());
                    lengths.push(length);
                }
                Event::Window(window) => {
                    if let Some((_, length)) = &mut open {
                        *length += 1;
                    }
                    for cpu in &window.cpus {
                        assert_eq!(cpu.busy_ns + cpu.idle_ns, SECOND_NS);
                    }
                    let ran: u64 = window.threads.iter().map(|thread| thread.cpu_ns).sum();
                    assert_eq!(ran, window.cpus.iter().map(|cpu| cpu.busy_ns).sum::<u64>());
                }
                _ => {}
            }
        }
        assert_eq!(seen, steps);
        // The window of a mark ends with it: a begin's window is not the phase's, an end's is.
        assert!(lengths.iter().all(|length| *length == 3), "{lengths:?}");
        assert_eq!(plug.len(), (2 * AROUND + 3 * steps.len()) * TICKS as usize);
    }

    #[test]
    fn a_seed_gives_the_same_machine_again() {
        assert_eq!(events(), events());
    }
}
