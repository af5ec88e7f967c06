//! Says how far charges may be off because few objects were sampled: what each stands for, of the energy that its path is
//! charged in all windows together ([`Rates`]).

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::{
    ChargeBy, DividedBy, EnergyRow, PathIndex, Pooled, ProcessIndex,
    rates::{Rates, WindowCharges},
};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::profile::ThreadIndex,
    sampling::Sampled,
};

/// A path of a thread.
pub(super) type PathOfThread = (ThreadIndex, PathIndex);
/// A window of a JVM.
pub(super) type JvmWindow = (ProcessIndex, UnixMicros);

/// Sampled objects by the path of a thread that is charged.
#[derive(Debug, Default)]
pub(super) struct Objects {
    rates: HashMap<ProcessIndex, Rates, RandomState>,
    paths: HashMap<PathOfThread, OfPath, RandomState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfPath {
    /// What they stand for in all windows.
    charged: Sampled,
    /// As they stand for bytes, in windows before as well.
    bytes: Sampled,
    /// What the objects stand for by their bytes. It differs a little from what the path is charged, for example if the table
    /// lacks a window in which the collector did nothing.
    explained_uj: f64,
    /// Of the energy: what rows so far had.
    seen_uj: u64,
}

impl Objects {
    pub(super) fn of(
        windows: &HashMap<ProcessIndex, BTreeMap<UnixMicros, WindowCharges>, RandomState>,
        by: ChargeBy,
    ) -> Self {
        let rates = windows.iter().map(|(process, windows)| (*process, Rates::of(windows, by))).collect();
        Self { rates, paths: HashMap::default() }
    }

    /// Notes what a path is charged in a window.
    pub(super) fn charge(&mut self, row: &EnergyRow) {
        let of_path = self.paths.entry((row.thread, row.path)).or_default();
        of_path.charged.energy = of_path.charged.energy.saturating_add(row.energy);
    }

    /// Takes what a path allocated in a window, and what samples say of it. Paths that are charged are known.
    pub(super) fn allocated(&mut self, place: PathOfThread, (process, window): JvmWindow, bytes: &Sampled) {
        let Some(of_path) = self.paths.get_mut(&place) else { return };
        of_path.bytes.plus(bytes);
        let rate = self.rates.get(&process).map_or(0.0, |rates| rates.allocated(window));
        of_path.add(rate, bytes);
    }

    /// Takes how much of what a path allocated a collection in a window showed to have survived. How many objects that were
    /// follows from what an object of the path stands for: all that it allocated is known.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is an estimate")]
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub(super) fn survived(&mut self, place: PathOfThread, (process, window): JvmWindow, bytes: u64) {
        let Some(of_path) = self.paths.get_mut(&place).filter(|of_path| of_path.bytes.energy.0 > 0) else { return };
        let per_object = of_path.bytes.squares / of_path.bytes.energy.0 as f64;
        let rate = self.rates.get(&process).map_or(0.0, |rates| rates.survived(window));
        if per_object > 0.0 {
            let samples = (bytes as f64 / per_object).round().max(1.0) as u64;
            of_path.add(rate, &Sampled::of(MicroJoules(bytes), samples));
        }
    }

    /// Gives a row its part of what its path's objects stand for, in proportion to its energy. All that was taken before is
    /// known; rows of a path sum to the path's, whatever their order.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub(super) fn divide(&mut self, row: &mut EnergyRow) {
        let Some(of_path) = self.paths.get_mut(&(row.thread, row.path)) else { return };
        let Sampled { energy: MicroJoules(all), samples, squares } = of_path.charged;
        let until = |seen_uj: u64| {
            let samples = u128::from(samples) * u128::from(seen_uj);
            samples.checked_div(all.into()).and_then(|samples| u64::try_from(samples).ok()).unwrap_or(0)
        };
        let seen_uj = of_path.seen_uj.saturating_add(row.energy.0);
        let objects = until(seen_uj).saturating_sub(until(of_path.seen_uj));
        of_path.seen_uj = seen_uj;
        let (all, energy) = (all as f64, row.energy.0 as f64);
        let is_known = of_path.explained_uj > 0.0 && all > 0.0;
        let squares = if is_known { squares * (all / of_path.explained_uj).powi(2) * energy / all } else { 0.0 };
        (row.pooled, row.divided_by) = (Some(Pooled { squares, ..Pooled::COMPLETE }), DividedBy::Objects(objects));
    }
}

impl OfPath {
    /// Adds objects whose bytes are charged at a rate, µJ per byte.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn add(&mut self, rate: f64, bytes: &Sampled) {
        if rate > 0.0 && bytes.samples > 0 {
            self.charged.samples = self.charged.samples.saturating_add(bytes.samples);
            self.charged.squares += rate * rate * bytes.squares;
            self.explained_uj += rate * bytes.energy.0 as f64;
        }
    }
}
