//! What is compared, whatever the measure: what threads have of it on call paths, window by window.

use crate::{
    model::units::UnixMicros,
    report::profile::{AmountRow, Catalog, ChargeBy, EnergyRow, PathIndex, ProcessIndex, ThreadIndex},
};

/// Of what samples of one kind show the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pool {
    Thread(ThreadIndex),
    /// What a thread is charged for a collector.
    Charges(ThreadIndex),
    /// The same of a process, where objects show that of all its threads together.
    ChargesOfProcess(ProcessIndex),
}

/// What a thread has of the measure on a call path in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct InWindow {
    /// Place in [`crate::report::profile::Catalog::runs`].
    pub(super) run: usize,
    pub(super) window_start: UnixMicros,
    pub(super) thread: ThreadIndex,
    pub(super) path: PathIndex,
    /// In the measure's unit.
    pub(super) amount: u64,
    pub(super) samples: u64,
    /// Part of `amount` that is inferred from samples of other windows.
    pub(super) inferred: u64,
    /// What it adds to Σ amount² / samples: see [`crate::sampling`].
    pub(super) squares: f64,
    pub(super) pool: Pool,
}

impl InWindow {
    pub(super) fn of_energy(row: &EnergyRow, charge_gc: Option<ChargeBy>, catalog: &Catalog) -> Self {
        let EnergyRow { run, window_start, thread, path, energy, samples, .. } = *row;
        let pool = match row.charged() {
            None => Pool::Thread(thread),
            Some(_) if charge_gc == Some(ChargeBy::Survived) => Pool::ChargesOfProcess(catalog.thread(thread).process),
            Some(_) => Pool::Charges(thread),
        };
        let (inferred, squares) = (row.amounts().inferred.0, row.squares());
        Self { run, window_start, thread, path, amount: energy.0, samples, inferred, squares, pool }
    }

    pub(super) fn of_amount(row: &AmountRow<'_>) -> Self {
        let AmountRow { run, window_start, thread, path, part, .. } = *row;
        let (samples, squares) = (part.sampled.samples, part.sampled.squares);
        let pool = Pool::Thread(thread);
        Self { run, window_start, thread, path, amount: part.amount, samples, inferred: 0, squares, pool }
    }
}
