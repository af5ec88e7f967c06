//! Defines a method's part of a window, with what the error of sampling is computed from.

use std::collections::BTreeMap;

use super::{collector::ChargeRow, window_report::BranchRow};
use crate::{
    model::units::MicroJoules,
    sampling::{Pool, Sampled},
};

/// A method's part of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// Sum over the samples of the squared energy that each stands for, µJ²: what the error of
    /// sampling is computed from ([`crate::sampling`]). It adds up over paths, threads and windows.
    pub squares: u128,
    /// What it is charged for its collector: no part of `energy`.
    pub gc_charged: MicroJoules,
    /// Of `energy`: what goes by bytes that were moved or allocated, in which samples have no part.
    pub by_bytes: MicroJoules,
}

impl Share {
    pub(super) fn of_branch(branch: &BranchRow) -> Self {
        Self {
            energy: branch.energy,
            cpu_ns: branch.cpu_ns,
            samples: branch.samples,
            squares: squares_of(branch.by_samples(), branch.samples),
            gc_charged: MicroJoules(0),
            by_bytes: branch.by_bytes,
        }
    }

    pub(super) fn of_charge(charge: &ChargeRow) -> Self {
        Self { gc_charged: charge.charged, ..Self::default() }
    }

    pub const fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.squares = self.squares.saturating_add(other.squares);
        self.gc_charged = self.gc_charged.saturating_add(other.gc_charged);
        self.by_bytes = self.by_bytes.saturating_add(other.by_bytes);
    }

    /// What of it samples divide: nothing of a share without a sample.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub const fn sampled(&self) -> Sampled {
        let Self { energy, samples, squares, by_bytes, .. } = *self;
        if samples == 0 {
            return Sampled { energy: MicroJoules(0), samples: 0, squares: 0.0 };
        }
        Sampled { energy: MicroJoules(energy.0.saturating_sub(by_bytes.0)), samples, squares: squares as f64 }
    }
}

/// Sum over samples of the squared energy that each stands for, µJ². 0 without samples: there is nothing
/// that they divide.
pub fn squares_of(energy: MicroJoules, samples: u64) -> u128 {
    let energy = u128::from(energy.0);
    (energy * energy).checked_div(samples.into()).unwrap_or(0)
}

/// The samples of each process, which are those of its methods. Time without a sample is in no pool.
pub fn pools<'a, K: Ord>(own: impl Iterator<Item = (K, &'a Share)>) -> BTreeMap<K, Pool> {
    let mut wholes: BTreeMap<K, Share> = BTreeMap::new();
    for (process, own) in own {
        let whole = wholes.entry(process).or_default();
        if own.samples > 0 {
            whole.plus(own);
        }
    }
    wholes.into_iter().map(|(process, whole)| (process, Pool::of(whole.sampled()))).collect()
}
