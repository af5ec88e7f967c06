//! Defines the rows of `branches` as reports read them.

use std::iter;

use super::{Amounts, PathIndex, ThreadIndex};
use crate::{
    dataset::{
        error::Result,
        read::columns::{Columns, Numbers},
        tables::rollup,
    },
    model::units::{MicroJoules, UnixMicros},
    sampling::Sampled,
};

/// A call path of a thread in a window.
#[derive(Clone, Copy, Debug)]
pub struct EnergyRow {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub window_start: UnixMicros,
    pub window_ns: u64,
    pub thread: ThreadIndex,
    pub path: PathIndex,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    pub samples: u64,
    /// `None`: it is known from samples in this window.
    pub inferred: Option<Inferred>,
    /// Of a row of a rollup, of one that is charged for a collector, and of one that goes by bytes.
    pub pooled: Option<Pooled>,
    pub divided_by: DividedBy,
}

/// What shows which path a row's energy is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DividedBy {
    /// Samples of CPU time.
    CpuTime,
    /// Bytes that were moved or allocated: samples have no part in it.
    Bytes,
    /// So many sampled objects. The row is charged for a collector: see [`super::Filter::charge_gc`].
    Objects(u64),
}

/// What a row of a rollup knows of the windows and threads that it is a sum of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Sum over its samples of the squared energy that each stands for, µJ².
    pub squares: f64,
    /// Energy, time and squares that light windows get beside the row's own by samples of several windows; negative where they
    /// are taken from.
    pub inferred_uj: i64,
    pub inferred_cpu_ns: i64,
    pub inferred_squares: f64,
    /// Energy with that which is of windows without a sample.
    pub unsampled_uj: u64,
}

impl Pooled {
    /// Of a row to which samples of other windows add nothing.
    pub(super) const COMPLETE: Self =
        Self { squares: 0.0, inferred_uj: 0, inferred_cpu_ns: 0, inferred_squares: 0.0, unsampled_uj: 0 };
}

/// What samples of other windows say of a window: see [`crate::attribution::inference`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inferred {
    /// By how much Σ energy² / samples grows, µJ²: see [`super`].
    pub squares: f64,
}

impl EnergyRow {
    pub const fn amounts(&self) -> Amounts {
        let inferred = if self.inferred.is_some() { self.energy } else { MicroJoules(0) };
        let by_bytes = if matches!(self.divided_by, DividedBy::Bytes) { self.energy } else { MicroJoules(0) };
        let Self { energy, cpu_ns, samples, .. } = *self;
        Amounts { energy, cpu_ns, samples, inferred, by_bytes, beside: 0 }
    }

    /// What it adds to Σ energy² / samples, µJ².
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub fn squares(&self) -> f64 {
        match (self.inferred, self.pooled) {
            (Some(inferred), _) => inferred.squares,
            (None, Some(pooled)) => pooled.squares,
            (None, None) if self.samples > 0 => (self.energy.0 as f64).powi(2) / self.samples as f64,
            (None, None) => 0.0,
        }
    }

    /// What sampled objects divide of it, if it is charged for a collector.
    pub fn charged(&self) -> Option<Sampled> {
        let DividedBy::Objects(samples) = self.divided_by else { return None };
        Some(Sampled { energy: self.energy, samples, squares: self.squares() })
    }

    /// What samples divide of a row of table `branches`, and the part of its energy that goes by bytes, which is a row
    /// for itself.
    pub(super) fn apart(self, by_bytes: MicroJoules) -> impl Iterator<Item = Self> {
        let rest = Self { energy: MicroJoules(self.energy.0.saturating_sub(by_bytes.0)), ..self };
        let gets_nothing = rest.pooled.is_none_or(|pooled| pooled == Pooled::COMPLETE);
        let is_nothing = rest.energy.0 == 0 && rest.cpu_ns == 0 && rest.samples == 0 && gets_nothing && by_bytes.0 > 0;
        let (pooled, divided_by) = (Some(Pooled::COMPLETE), DividedBy::Bytes);
        let of_bytes = Self { energy: by_bytes, cpu_ns: 0, samples: 0, pooled, divided_by, ..self };
        (!is_nothing).then_some(rest).into_iter().chain((by_bytes.0 > 0).then_some(of_bytes))
    }

    /// A row of a rollup with what samples of several windows say of light ones: what is of windows with samples, and what is not.
    pub(super) fn divided(&self, pooled: &Pooled) -> impl Iterator<Item = Self> {
        let energy = self.energy.0.saturating_add_signed(pooled.inferred_uj);
        let unsampled = MicroJoules(pooled.unsampled_uj.min(energy));
        let sampled = Self {
            energy: MicroJoules(energy.saturating_sub(unsampled.0)),
            cpu_ns: self.cpu_ns.saturating_add_signed(pooled.inferred_cpu_ns),
            pooled: Some(Pooled { squares: pooled.squares + pooled.inferred_squares, ..Pooled::COMPLETE }),
            ..*self
        };
        let inferred = Some(Inferred { squares: 0.0 });
        let unsampled = Self { energy: unsampled, cpu_ns: 0, samples: 0, inferred, pooled: None, ..*self };
        iter::once(sampled).chain((unsampled.energy.0 > 0).then_some(unsampled))
    }
}

/// The columns that rollups have beside those of every data set.
pub(super) struct PooledColumns<'a> {
    squares: Numbers<'a>,
    inferred_uj: Numbers<'a>,
    inferred_cpu_ns: Numbers<'a>,
    inferred_squares: Numbers<'a>,
    unsampled_uj: Numbers<'a>,
}

impl<'a> PooledColumns<'a> {
    /// `None` if the rows are not of a rollup.
    pub(super) fn of(columns: &'a Columns<'a>) -> Result<Option<Self>> {
        if !columns.has(&rollup::SQUARES_UJ2)? {
            return Ok(None);
        }
        Ok(Some(Self {
            squares: columns.ints(rollup::SQUARES_UJ2)?,
            inferred_uj: columns.ints(rollup::INFERRED_UJ)?,
            inferred_cpu_ns: columns.ints(rollup::INFERRED_CPU_NS)?,
            inferred_squares: columns.ints(rollup::INFERRED_SQUARES_UJ2)?,
            unsampled_uj: columns.ints(rollup::UNSAMPLED_UJ)?,
        }))
    }

    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub(super) fn of_row(&self, row: usize) -> Result<Pooled> {
        Ok(Pooled {
            squares: self.squares.natural::<u64>(row)? as f64,
            inferred_uj: self.inferred_uj.get(row)?,
            inferred_cpu_ns: self.inferred_cpu_ns.get(row)?,
            inferred_squares: self.inferred_squares.get(row)? as f64,
            unsampled_uj: self.unsampled_uj.natural(row)?,
        })
    }
}
