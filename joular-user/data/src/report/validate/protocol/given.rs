//! Reads what the programs of the protocol were given: the energy of the threads of each process.

use std::collections::BTreeMap;

use super::{super::recorded::Recorded, Program, Step};
use crate::{
    dataset::{
        error::Result,
        read::{decode_ahead, files::RunFiles},
        store::StoredFile,
        tables::{Threads, shared},
    },
    report::profile::{Filter, Run},
};

/// µJ of each program by run and start of the window.
#[derive(Debug, Default)]
pub(super) struct Given(BTreeMap<(usize, i64), BTreeMap<Program, u64>>);

/// Which part of both programs' energy the first one was given, by pair and round.
pub(super) type Shares = BTreeMap<(Step, usize), f64>;

pub(super) fn read(runs: &[(Run, RunFiles)], filter: &Filter) -> Result<Given> {
    let mut given = Given::default();
    for (number, (run, files)) in runs.iter().enumerate() {
        let parts: Vec<StoredFile> =
            files.parts.iter().filter_map(|(_, part)| part.file::<Threads>()).cloned().collect();
        decode_ahead::batches(&parts, &filter.span(run), |columns| {
            let starts = columns.times(shared::WINDOW_START)?;
            let (names, energies) = (columns.names(shared::COMM)?, columns.ints(shared::ENERGY_UJ)?);
            for row in 0..columns.rows() {
                let Some(program) = names.maybe(row)?.and_then(Program::parse) else { continue };
                let of_window = given.0.entry((number, starts.get(row)?)).or_default();
                let sum = of_window.entry(program).or_default();
                *sum = sum.saturating_add(energies.natural(row)?);
            }
            Ok(())
        })?;
    }
    Ok(given)
}

impl Given {
    /// `steps` has those of the recording's phases.
    pub(super) fn shares(&self, recorded: &Recorded, steps: &[Option<Step>]) -> Shares {
        let mut sums: BTreeMap<(Step, usize), [u64; 2]> = BTreeMap::new();
        for span in recorded.spans(0) {
            let step = span.phase.and_then(|phase| steps.get(phase).copied().flatten());
            let Some(step @ Step::Pair(a, b)) = step else { continue };
            let both = sums.entry((step, span.visit)).or_default();
            for (_, of_window) in self.0.range((span.run, span.start_us)..(span.run, span.end_us)) {
                for (sum, program) in both.iter_mut().zip([a, b]) {
                    *sum = sum.saturating_add(of_window.get(&program).copied().unwrap_or(0));
                }
            }
        }
        sums.into_iter().filter_map(|(at, [a, b])| Some((at, part(a, b)?))).collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "for a share")]
fn part(a: u64, b: u64) -> Option<f64> {
    let both = a.saturating_add(b);
    (both > 0).then(|| a as f64 / both as f64)
}
