//! Computes what a made-up machine draws: a processor of eight cores with two hyper-threads each, memory, a disk, fans and a
//! power supply.
//!
//! Nothing about it is linear. Cores run faster where few are busy, two hyper-threads of a core draw less than two cores,
//! leakage rises with temperature, memory and disk are in no domain of the processor, and the supply loses a smaller part
//! of much power than of little. So it shows what a validation finds where equal time does not cost equal energy.
//! The figures are those of no product.

use joular_data::report::validate::protocol::{Program, Step};

pub(super) const CORES: usize = 8;
pub(super) const CPUS: usize = 2 * CORES;

/// W of the processor at rest, and by how much that rises with each degree beyond [`COOL`].
const REST_W: f64 = 10.0;
const LEAKAGE_W: f64 = 0.05;
const COOL: f64 = 40.0;
/// Degrees for each watt, in the long run, and the part of the way that a second goes there.
const WARMS: f64 = 0.5;
const A_SECOND: f64 = 0.05;
/// A frequency of 1 is that of all cores; one core alone runs so much faster. Power goes with its square.
const TURBO: f64 = 0.3;
/// What each of two hyper-threads of a core draws and does, in parts of what it would alone.
const BESIDE: f64 = 0.6;
/// W of caches and memory controller, and of memory itself, if all cores stream.
const UNCORE_W: f64 = 6.0;
const MEMORY_W: f64 = 14.0;
/// W of a disk that reads all the time.
const DISK_W: f64 = 4.0;
/// W of board and fans.
const BOARD_W: f64 = 25.0;
/// Part of the time in which the program that reads files needs a CPU.
const IO_BUSY: f64 = 0.3;

/// W of a core at a frequency of 1.
const fn core_watts(program: Program) -> f64 {
    match program {
        Program::Compute => 5.0,
        Program::Memory => 3.2,
        Program::Vector => 7.5,
        Program::Io => 3.0,
    }
}

/// What a step comes to, on average.
#[derive(Clone, Debug, Default)]
pub(super) struct Draw {
    /// W by program, of the processor's domain.
    pub(super) of_programs: Vec<(Program, f64)>,
    /// W outside of that domain that goes with the work.
    outside: f64,
    /// Threads by program, each with the part of the time in which it runs, and in which its core's other hyper-thread does.
    pub(super) threads: Vec<(Program, usize, f64, f64)>,
}

impl Draw {
    #[allow(clippy::cast_precision_loss, reason = "a few threads")]
    pub(super) fn of(step: Step) -> Self {
        let mut draw = Self::default();
        let programs = step.programs();
        let count = step.threads(CPUS);
        let part = |(program, percent): (Program, u8)| {
            f64::from(percent) / 100.0 * if program == Program::Io { IO_BUSY } else { 1.0 }
        };
        // Threads come to cores that are free first, so two on a core only if there are more than cores.
        let is_shared = programs.len() * count > CORES;
        let running: f64 = programs.iter().map(|of| part(*of) * count as f64).sum();
        let busy_cores = (running / if is_shared { 2.0 } else { 1.0 }).min(CORES as f64);
        let frequency = 1.0 + TURBO * (1.0 - busy_cores / CORES as f64);
        let others: f64 = running / (programs.len() * count).max(1) as f64;
        for (program, percent) in programs {
            let runs = part((program, percent));
            // How likely the core's other hyper-thread runs at the same moment.
            let beside = if is_shared { others } else { 0.0 };
            let share = 1.0 - beside * (1.0 - BESIDE);
            let streaming = (runs * count as f64 / CORES as f64).min(1.0);
            let mut watts = runs * count as f64 * share * core_watts(program) * frequency * frequency;
            match program {
                Program::Memory => {
                    watts += UNCORE_W * streaming;
                    draw.outside += MEMORY_W * streaming;
                }
                Program::Io => draw.outside += DISK_W * f64::from(percent) / 100.0,
                Program::Compute | Program::Vector => {}
            }
            draw.of_programs.push((program, watts));
            draw.threads.push((program, count, runs, runs * beside));
        }
        draw
    }

    fn dynamic(&self) -> f64 {
        self.of_programs.iter().map(|(_, watts)| watts).sum()
    }

    /// The part of the programs' power that is this one's; `None`: nothing draws any.
    pub(super) fn share(&self, program: Program) -> Option<f64> {
        let own: f64 = self.of_programs.iter().filter(|(of, _)| *of == program).map(|(_, watts)| watts).sum();
        let all = self.dynamic();
        (all > 0.0).then(|| own / all)
    }
}

/// What is left of a watt behind the supply.
fn efficiency(watts: f64) -> f64 {
    0.70 + 0.20 * watts / (watts + 40.0)
}

/// The machine at a moment.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) celsius: f64,
}

/// W.
#[derive(Clone, Copy, Debug)]
pub(super) struct Power {
    /// Of the processor's domain.
    pub(super) package: f64,
    /// At the plug.
    pub(super) plug: f64,
}

impl Machine {
    pub(super) const fn cool() -> Self {
        Self { celsius: COOL }
    }

    /// What it draws while it does so for a part of a second. `wave` is a factor of the work, 1 on average.
    pub(super) fn draws(&mut self, draw: &Draw, wave: f64, seconds: f64) -> Power {
        let package = REST_W + LEAKAGE_W * (self.celsius - COOL) + draw.dynamic() * wave;
        self.celsius += (COOL + WARMS * package - self.celsius) * A_SECOND * seconds;
        let behind = package + BOARD_W + draw.outside * wave;
        Power { package, plug: behind / efficiency(behind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watts(step: Step) -> Power {
        Machine::cool().draws(&Draw::of(step), 1.0, 0.0)
    }

    #[test]
    fn nothing_about_it_is_linear() {
        let of = |program, percent| watts(Step::Load(program, percent)).package - REST_W;
        let (half, whole) = (of(Program::Compute, 50), of(Program::Compute, 100));
        assert!(2.0 * half > 1.1 * whole, "turbo and hyper-threads: {half} {whole}");
        let alone = |program| watts(Step::Alone(program)).package - REST_W;
        let pair = watts(Step::Pair(Program::Compute, Program::Memory)).package - REST_W;
        assert!(alone(Program::Compute) + alone(Program::Memory) > 1.1 * pair);
        let outside = |step| watts(step).plug - watts(step).package;
        let memory = outside(Step::Load(Program::Memory, 100));
        assert!(memory > outside(Step::Load(Program::Compute, 100)) + 5.0, "{memory}");
        assert!((watts(Step::Idle).package - REST_W).abs() < 1e-9);
    }

    #[test]
    fn shares_are_those_of_the_programs_and_all_of_them() {
        let draw = Draw::of(Step::Pair(Program::Compute, Program::Memory));
        let [a, b] = [Program::Compute, Program::Memory].map(|program| draw.share(program).unwrap());
        assert!((a + b - 1.0).abs() < 1e-12 && a > 0.5 && b > 0.3, "{a} {b}");
        assert_eq!((draw.share(Program::Io), Draw::of(Step::Idle).share(Program::Io)), (Some(0.0), None));
    }

    #[test]
    fn work_warms_it_up() {
        let mut machine = Machine::cool();
        let draw = Draw::of(Step::Load(Program::Vector, 100));
        let first = machine.draws(&draw, 1.0, 1.0).package;
        let last = (0..300).map(|_| machine.draws(&draw, 1.0, 1.0).package).last().unwrap();
        assert!(last > first + 1.0 && machine.celsius < 120.0, "{first} {last} {}", machine.celsius);
    }
}
