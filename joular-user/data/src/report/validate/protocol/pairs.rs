//! Compares how the energy of two programs side by side was divided with what each draws when it runs alone.
//!
//! Nobody can measure what a program draws beside another one. What it draws alone, with as many threads, is the nearest
//! that can be measured. The two differ where programs get into each other's way, and by how much is measured, too: what
//! both draw together, in parts of what they draw one after the other. Power beyond that of the idle machine counts.

use serde::Serialize;

use super::{
    Mean, PAIRS, Program, Step,
    given::Shares,
    power::{Instrument, Means, Measured, rounds},
};

/// Two programs that ran side by side. Figures are means of rounds.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) programs: (Program, Program),
    /// Which part of both programs' energy the first one was given.
    pub(super) given: Mean,
    pub(super) alone: Vec<Alone>,
}

/// What two programs draw by an instrument when each runs alone.
#[derive(Debug, Serialize)]
pub(super) struct Alone {
    pub(super) by: Instrument,
    /// Of each, W beyond that of the idle machine.
    #[serde(rename = "alone_w")]
    pub(super) watts: [Mean; 2],
    /// The first one's part of these.
    pub(super) share: Mean,
    /// How much too large the part is that it was given.
    pub(super) error: Mean,
    /// What both draw together, in parts of the sum.
    pub(super) together: Mean,
}

pub(super) fn all(measured: &[Measured], given: &Shares) -> Vec<Pair> {
    let means = Instrument::ALL.map(|instrument| (instrument, Means::by(measured, instrument)));
    let rounds = rounds(measured);
    let pair = |(a, b)| {
        let step = Step::Pair(a, b);
        let of_rounds: Vec<f64> = (0..rounds).filter_map(|round| given.get(&(step, round)).copied()).collect();
        let alone = means.iter().filter_map(|(by, means)| alone((a, b), *by, means, given, rounds)).collect();
        Some(Pair { programs: (a, b), given: Mean::of(&of_rounds)?, alone })
    };
    PAIRS.into_iter().filter_map(pair).collect()
}

/// Power beyond the idle machine's in a round: of each program alone and of both, W.
struct Round {
    alone: [f64; 2],
    both: f64,
    given: f64,
}

impl Round {
    fn share(&self) -> f64 {
        self.alone[0] / (self.alone[0] + self.alone[1])
    }
}

fn alone(programs: (Program, Program), by: Instrument, means: &Means, given: &Shares, rounds: usize) -> Option<Alone> {
    let (a, b) = programs;
    let step = Step::Pair(a, b);
    let round = |number: usize| {
        let idle = means.at(Step::Idle, number)?;
        let beyond = |step| means.at(step, number).map(|watts| watts - idle);
        let alone = [beyond(Step::Alone(a))?, beyond(Step::Alone(b))?];
        let is_known = alone.iter().all(|watts| *watts > 0.0);
        is_known.then_some(Round { alone, both: beyond(step)?, given: *given.get(&(step, number))? })
    };
    let rounds: Vec<Round> = (0..rounds).filter_map(round).collect();
    let mean = |of: &dyn Fn(&Round) -> f64| Mean::of(&rounds.iter().map(of).collect::<Vec<f64>>());
    Some(Alone {
        by,
        watts: [mean(&|round| round.alone[0])?, mean(&|round| round.alone[1])?],
        share: mean(&Round::share)?,
        error: mean(&|round| round.given - round.share())?,
        together: mean(&|round| round.both / (round.alone[0] + round.alone[1]))?,
    })
}
