//! Simulates how samples of a thread divide between a quiet and a busy phase: with hardware cycles at
//! a frequency, as the kernel adapts their period, and with random gaps, as our timers have them.
//!
//! The kernel's part is `perf_adjust_period`, called at each tick and at each sample
//! (kernel/events/core.c).

use joular_ebpf::abi::SamplingClock;

const STEP_NS: u64 = 10_000;
const TICK_NS: u64 = 4_000_000;
const CYCLES_PER_STEP: u64 = 30_000;
const FREQUENCY_HZ: u64 = 99;
const SECONDS: u64 = 300;

/// Phases of a thread: in the quiet one it works for 0.1 ms of each, in the busy one all the time.
struct Load {
    quiet_ns: u64,
    busy_ns: u64,
}

impl Load {
    /// Whether the thread is in its quiet phase at a time, and whether it runs.
    fn at(&self, time_ns: u64) -> (bool, bool) {
        let in_round = time_ns % (self.quiet_ns + self.busy_ns);
        let is_quiet = in_round < self.quiet_ns;
        (is_quiet, !is_quiet || in_round % 1_000_000 < 100_000)
    }
}

/// What took samples, and what it would say of the share of the quiet phase.
trait Samples {
    /// A step of CPU time of the thread; returns whether a sample was taken.
    fn run(&mut self, time_ns: u64) -> bool;
    /// A step without CPU time.
    fn idle(&mut self, _time_ns: u64) {}
    fn tick(&mut self) {}
}

/// Quiet and all samples.
fn samples(load: &Load, samples: &mut impl Samples) -> (u64, u64) {
    let (mut quiet, mut all) = (0, 0);
    for time_ns in (0..SECONDS * 1_000_000_000).step_by(usize::try_from(STEP_NS).unwrap()) {
        let (is_quiet, runs) = load.at(time_ns);
        if !runs {
            samples.idle(time_ns);
        } else if samples.run(time_ns) {
            quiet += u64::from(is_quiet);
            all += 1;
        }
        if time_ns % TICK_NS == 0 {
            samples.tick();
        }
    }
    (quiet, all)
}

/// An event of the kernel at a frequency.
#[derive(Default)]
struct Adapted {
    period: u64,
    left: i64,
    since_tick: u64,
    last_sample_ns: u64,
}

impl Adapted {
    fn adjust(&mut self, nanoseconds: u64, cycles: u64) {
        let wanted = i128::from(cycles) * 1_000_000_000 / i128::from(nanoseconds * FREQUENCY_HZ);
        let delta = (wanted - i128::from(self.period) + 7) / 8;
        self.period = u64::try_from(i128::from(self.period) + delta).unwrap_or(1).max(1);
        if self.left > 8 * i64::try_from(self.period).unwrap() {
            self.left = 0;
        }
    }
}

impl Samples for Adapted {
    fn run(&mut self, time_ns: u64) -> bool {
        self.since_tick += CYCLES_PER_STEP;
        self.left -= i64::try_from(CYCLES_PER_STEP).unwrap();
        if self.left > 0 {
            return false;
        }
        let since_ns = time_ns - self.last_sample_ns;
        self.last_sample_ns = time_ns;
        if (1..2 * TICK_NS).contains(&since_ns) {
            self.adjust(since_ns, self.period);
        }
        self.left = i64::try_from(self.period).unwrap();
        true
    }

    fn tick(&mut self) {
        let cycles = std::mem::take(&mut self.since_tick);
        if cycles > 0 {
            self.adjust(TICK_NS, cycles);
        }
    }
}

/// Our timer, with a small generator of random numbers (xorshift).
struct Random {
    clock: SamplingClock,
    state: u32,
}

impl Samples for Random {
    fn run(&mut self, time_ns: u64) -> bool {
        let is_due = self.clock.is_due(time_ns);
        if is_due || self.clock.is_armed == 0 {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 17;
            self.state ^= self.state << 5;
            self.clock.interrupt(time_ns);
            self.clock.draw(self.state, 1_000_000_000 / FREQUENCY_HZ, time_ns);
        }
        is_due
    }

    fn idle(&mut self, time_ns: u64) {
        if self.clock.is_due(time_ns) {
            self.clock.is_armed = 0;
        }
    }
}

#[test]
fn adapted_periods_favour_quiet_phases_and_random_gaps_do_not() {
    for (quiet_ms, busy_ms) in [(300, 300), (800, 200), (900, 100)] {
        let load = Load { quiet_ns: quiet_ms * 1_000_000, busy_ns: busy_ms * 1_000_000 };
        let truth = quiet_ms as f64 * 0.1 / (quiet_ms as f64 * 0.1 + busy_ms as f64);
        let (quiet, all) = samples(&load, &mut Adapted { period: 1_000_000, ..Adapted::default() });
        let adapted = quiet as f64 / all as f64;
        let mut random = Random { clock: SamplingClock::default(), state: 0x2545_f491 };
        let (quiet, all) = samples(&load, &mut random);
        let share = quiet as f64 / all as f64;
        let sigma = (truth * (1.0 - truth) / all as f64).sqrt();
        println!(
            "{quiet_ms}/{busy_ms} ms: {truth:.3} of the time, {adapted:.3} of adapted samples, {share:.3} of random ones"
        );
        assert!(adapted > 1.5 * truth, "the simulated kernel has no bias: {adapted:.3} of {truth:.3}");
        assert!((share - truth).abs() < 3.0 * sigma, "{share:.3} instead of {truth:.3} ± {sigma:.3}");
    }
}
