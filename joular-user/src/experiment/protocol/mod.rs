//! Conducts the validation protocol (docs/validation.md): programs whose work is known run one after the other and side by
//! side, each in a process of its own, while the machine is recorded.
//!
//! The command that is recorded is this program again, started with an argument that no user types. It goes through the
//! steps ([`conduct`]) and starts itself once more for each program ([`work`]). On a machine without a wattmeter the
//! protocol can be tried on one that is simulated ([`simulated`]): its recording goes the same way as a real one.

mod conduct;
pub mod simulated;
mod work;

use std::{ffi::OsString, io, process::ExitCode, time::Duration};

use joular_data::report::validate::protocol::{Program, Step};

use super::plan;
use crate::{privileges::lent, procs::attach::OWN_BINARY};

/// First argument of the processes of the protocol.
pub const PROTOCOL_ARGUMENT: &str = "__protocol";

const CONDUCT: &str = "conduct";
const WORK: &str = "work";

/// How often and how long everything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub rounds: u32,
    pub step: Duration,
    /// Of the order.
    pub seed: u64,
}

/// Bounds of what a schedule may be.
pub const ROUNDS: std::ops::RangeInclusive<u32> = 2..=100;
pub const STEP: std::ops::RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(600);
const MAX_THREADS: usize = 1 << 12;

impl Schedule {
    /// Steps in the order in which they run.
    pub fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let steps = Step::all();
        plan::order(steps.len(), self.rounds, self.seed).filter_map(move |place| steps.get(place.variant).copied())
    }

    pub fn lasts(&self) -> Duration {
        let steps = u32::try_from(Step::all().len()).unwrap_or(u32::MAX);
        self.step.saturating_mul(steps.saturating_mul(self.rounds))
    }

    /// The command that goes through it.
    pub fn command(&self) -> Vec<OsString> {
        let numbers =
            [u128::from(self.rounds), self.step.as_millis(), self.seed.into()].map(|number| number.to_string());
        [OWN_BINARY, PROTOCOL_ARGUMENT, CONDUCT]
            .into_iter()
            .map(OsString::from)
            .chain(numbers.map(Into::into))
            .collect()
    }
}

/// What a process of the protocol is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orders {
    Conduct(Schedule),
    Work(Job),
}

/// What a program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    program: Program,
    percent: u8,
    threads: usize,
}

impl Job {
    fn arguments(self) -> [String; 5] {
        let Self { program, percent, threads } = self;
        let words = [PROTOCOL_ARGUMENT, WORK, program.name()].map(str::to_owned);
        let [own, work, program] = words;
        [own, work, program, percent.to_string(), threads.to_string()]
    }
}

impl Orders {
    /// `arguments` begin with [`PROTOCOL_ARGUMENT`].
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let words = arguments.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>()?;
        match words.as_slice() {
            [_, CONDUCT, rounds, step_ms, seed] => {
                let step = Duration::from_millis(step_ms.parse().ok()?);
                let schedule = Schedule { rounds: rounds.parse().ok()?, step, seed: seed.parse().ok()? };
                let is_allowed = ROUNDS.contains(&schedule.rounds) && STEP.contains(&schedule.step);
                is_allowed.then_some(Self::Conduct(schedule))
            }
            [_, WORK, program, percent, threads] => {
                let (percent, threads) = (percent.parse().ok()?, threads.parse().ok()?);
                let job = Job { program: Program::parse(program)?, percent, threads };
                ((1..=100).contains(&percent) && (1..=MAX_THREADS).contains(&threads)).then_some(Self::Work(job))
            }
            _ => None,
        }
    }
}

/// Entry point for `main`: the arguments behind the program's name.
pub fn run_protocol(arguments: &[OsString]) -> ExitCode {
    let Some(orders) = Orders::parse(arguments) else {
        eprintln!("joular-bpf: {PROTOCOL_ARGUMENT} is for joular-bpf itself: use `joular-bpf validate --protocol`");
        return ExitCode::from(2);
    };
    // Whoever computes needs no rights.
    let done = lent::give_up().map_err(io::Error::from).and_then(|()| match orders {
        Orders::Conduct(schedule) => conduct::all(&schedule),
        Orders::Work(job) => work::until_input_closes(job),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "joular-bpf: the protocol's {}: {error}",
                match orders {
                    Orders::Conduct(_) => "steps",
                    Orders::Work(job) => job.program.name(),
                }
            );
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule { rounds: 5, step: Duration::from_secs(20), seed: u64::MAX };

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn orders_come_back_as_they_were_given() {
        assert_eq!(Orders::parse(&SCHEDULE.command()[1..]), Some(Orders::Conduct(SCHEDULE)));
        let job = Job { program: Program::Vector, percent: 75, threads: 16 };
        assert_eq!(Orders::parse(&job.arguments().map(OsString::from)), Some(Orders::Work(job)));
        for wrong in [
            &[PROTOCOL_ARGUMENT][..],
            &[PROTOCOL_ARGUMENT, CONDUCT, "5", "20000"],
            &[PROTOCOL_ARGUMENT, CONDUCT, "1", "20000", "1"],
            &[PROTOCOL_ARGUMENT, CONDUCT, "5", "1999", "1"],
            &[PROTOCOL_ARGUMENT, CONDUCT, "5", "600001", "1"],
            &[PROTOCOL_ARGUMENT, CONDUCT, "5", "20000", "-1"],
            &[PROTOCOL_ARGUMENT, WORK, "shell", "50", "1"],
            &[PROTOCOL_ARGUMENT, WORK, "compute", "0", "1"],
            &[PROTOCOL_ARGUMENT, WORK, "compute", "101", "1"],
            &[PROTOCOL_ARGUMENT, WORK, "compute", "50", "0"],
            &[PROTOCOL_ARGUMENT, WORK, "compute", "50", "4097"],
            &[PROTOCOL_ARGUMENT, WORK, "compute", "50", "1", "1"],
        ] {
            assert_eq!(Orders::parse(&words(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn each_round_has_each_step_in_another_order() {
        let steps: Vec<Step> = SCHEDULE.steps().collect();
        let rounds: Vec<&[Step]> = steps.chunks(Step::all().len()).collect();
        assert_eq!(rounds.len(), 5);
        let sorted = |round: &[Step]| {
            let mut round = round.to_vec();
            round.sort_unstable();
            round
        };
        assert!(rounds.iter().all(|round| sorted(round) == sorted(&Step::all())));
        assert!(rounds[0] != rounds[1] && steps == SCHEDULE.steps().collect::<Vec<_>>());
        assert_eq!(SCHEDULE.lasts(), Duration::from_secs(5 * 24 * 20));
    }
}
