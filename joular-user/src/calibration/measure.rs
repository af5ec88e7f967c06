//! Measures idle windows first, then each load in turn, in batches.

use std::{thread, time::Duration};

use joular_data::{
    attribution::counter::{Meters, Usage},
    events::CpuTimes,
    model::units::MonotonicNs,
};

use super::{
    CalibrationError,
    baseline::IdleWindow,
    costs::{Batch, Category},
    instrument::Instrument,
    trainer::{Load, Trainer},
};
use crate::{
    clock::{self, Clocks},
    energy::EnergySource,
    kernel::{KernelError, Sampler},
};

/// As recordings do by default.
pub const IDLE_FREQUENCY_HZ: u32 = 99;

/// Ten times the default of recordings: a batch then has enough samples, and their code and data
/// are in the caches, which gives the least figure. It is a prime, so that samples do not keep step
/// with anything.
pub const COST_FREQUENCY_HZ: u32 = 997;

/// What takes the samples whose cost is measured. Each run of this program is a sample, of a target or
/// not, while the program at the timer also runs for interrupts without one. What a sample does is the
/// same in both.
pub const COST_SAMPLER: Sampler = Sampler::Event;

/// Long compared with the steps of a counter (about 1 ms), short enough for many windows.
const IDLE_WINDOW: Duration = Duration::from_millis(500);
const BATCH: Duration = Duration::from_millis(100);
/// Batches of each load that do not count: the first samples of a stack send
/// it to user space, and caches fill.
const WARM_UP: u32 = 2;
const LEAST_BATCHES: u32 = 5;

/// Readings of the clock in a batch.
const CLOCK_READINGS: u64 = 1_000;

/// Stack depths that the loads have.
const FEW_FRAMES: usize = 4;
const MANY_FRAMES: usize = 100;

/// A load, and what is measured under it.
struct Phase {
    load: Option<Load>,
    is_target: bool,
    /// Program and category.
    measured: &'static [(&'static str, Category)],
}

const PHASES: [Phase; 5] = [
    Phase {
        load: None,
        is_target: false,
        measured: &[("sample_at_event", Category::SampleIdle), ("sched_switch", Category::SwitchQuiet)],
    },
    Phase {
        load: Some(Load::Spin { frames: FEW_FRAMES }),
        is_target: false,
        measured: &[("sample_at_event", Category::SampleOther)],
    },
    Phase {
        load: Some(Load::Spin { frames: FEW_FRAMES }),
        is_target: true,
        measured: &[("sample_at_event", Category::SampleShallow)],
    },
    Phase {
        load: Some(Load::Spin { frames: MANY_FRAMES }),
        is_target: true,
        measured: &[("sample_at_event", Category::SampleDeep)],
    },
    Phase { load: Some(Load::Switch), is_target: false, measured: &[("sched_switch", Category::SwitchBusy)] },
];

/// Windows of an undisturbed machine, after one that does not count.
pub fn idle_windows(
    instrument: &mut Instrument,
    source: &mut dyn EnergySource,
    time: Duration,
) -> Result<Vec<IdleWindow>, KernelError> {
    let mut meters = Meters::new(source.domains());
    let mut read = || (source.read(), Clocks::now());
    let (mut before, _) = instrument.window(IDLE_WINDOW, &mut read)?;
    meters.start(before.read_at, &before.readings.0);
    let mut windows = Vec::new();
    for _ in 0..time.as_millis() / IDLE_WINDOW.as_millis() {
        let (passed, contents) = instrument.window(IDLE_WINDOW, &mut read)?;
        meters.suspended(passed.readings.1.suspended_since(before.readings.1.suspended_ns));
        let window_ns = passed.boundary.since(before.boundary);
        // Nothing was used: only models are computed from it, and they have no baseline.
        let deltas = meters.advance(passed.read_at, &passed.readings.0, window_ns, &Usage::default());
        let certain = deltas.iter().map(|delta| {
            let is_certain = delta.fault.is_none() && delta.merged == 0;
            is_certain.then_some(delta.measured)
        });
        windows.push(IdleWindow {
            busy_ns: contents.cpus.iter().map(busy_ns).sum(),
            cpu_ns: contents.cpus.iter().map(|cpu| busy_ns(cpu) + cpu.idle_ns).sum(),
            read_ns: passed.read_at.since(before.read_at),
            energy: certain.collect(),
        });
        before = passed;
    }
    Ok(windows)
}

const fn busy_ns(cpu: &CpuTimes) -> u64 {
    cpu.busy_ns + cpu.unslotted_ns
}

/// Batches of all categories, for about `time`.
pub fn cost_batches(instrument: &mut Instrument, time: Duration) -> Result<Vec<Batch>, CalibrationError> {
    let phases = u32::try_from(PHASES.len()).unwrap_or(u32::MAX);
    let count = u32::try_from((time / phases).as_millis() / BATCH.as_millis()).unwrap_or(u32::MAX);
    let count = count.saturating_sub(WARM_UP).max(LEAST_BATCHES);
    let mut batches = Vec::new();
    for phase in &PHASES {
        let trainer = phase.load.as_ref().map(Trainer::start).transpose()?;
        let target = trainer.as_ref().map(Trainer::pid).filter(|_| phase.is_target);
        if let Some(pid) = target {
            instrument.add_target(pid)?;
        }
        for index in 0..WARM_UP + count {
            let measured = batch(instrument, phase)?;
            if index >= WARM_UP {
                batches.extend(measured);
            }
        }
        drop(trainer);
        if let Some(pid) = target {
            instrument.remove_target(pid);
        }
    }
    batches.extend((0..WARM_UP + count).map(|_| clock_batch()).skip(WARM_UP as usize));
    Ok(batches)
}

/// One batch of a phase's categories, and of passing the window after it.
fn batch(instrument: &mut Instrument, phase: &Phase) -> Result<Vec<Batch>, KernelError> {
    let passing = "pass_boundary";
    let run_times = |instrument: &Instrument| {
        phase.measured.iter().map(|(program, _)| instrument.run_time(program)).collect::<Vec<_>>()
    };
    let before = run_times(instrument);
    thread::sleep(BATCH);
    let after = run_times(instrument);
    let passed_before = instrument.run_time(passing);
    let cpu_before_ns = clock::own_cpu_ns();
    instrument.end_window(MonotonicNs(0), || ())?;
    let window_ns = clock::own_cpu_ns().saturating_sub(cpu_before_ns);
    let passed = instrument.run_time(passing).since(passed_before);
    let spent = before.iter().zip(&after).zip(phase.measured).map(|((before, after), (_, category))| {
        let spent = after.since(*before);
        Batch { category: *category, runs: spent.runs, total_ns: spent.total_ns }
    });
    let mut batches: Vec<Batch> = spent.collect();
    batches.push(Batch { category: Category::Boundary, runs: passed.runs, total_ns: passed.total_ns });
    batches.push(Batch { category: Category::Window, runs: 1, total_ns: window_ns });
    Ok(batches)
}

fn clock_batch() -> Batch {
    let start = clock::monotonic_now();
    let mut last = start;
    for _ in 0..CLOCK_READINGS {
        last = clock::monotonic_now();
    }
    Batch { category: Category::Clock, runs: CLOCK_READINGS, total_ns: last.since(start) }
}
