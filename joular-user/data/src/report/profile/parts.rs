//! Gives light windows their parts of what several of them are divided into, in whole units that sum to it.

use super::{
    PathIndex, ThreadIndex,
    inference::{LightWindow, spent},
    row::{EnergyRow, Inferred, Pooled},
};
use crate::{
    attribution::inference::{Share, Spent, apportion},
    model::units::MicroJoules,
};

/// A light window of a thread that waits until its stratum is divided.
#[derive(Clone, Debug)]
pub(super) struct WaitingWindow {
    /// One of its rows.
    row: EnergyRow,
    sampled: Spent,
    unsampled: Spent,
    samples: Vec<(PathIndex, u64)>,
}

impl WaitingWindow {
    pub(super) fn of(window: &LightWindow<'_>) -> Option<Self> {
        Some(Self {
            row: *window.rows.first().or(window.unsampled)?,
            sampled: window.rows.iter().map(spent).fold(Spent::default(), Spent::plus),
            unsampled: window.unsampled.map(spent).unwrap_or_default(),
            samples: window.rows.iter().map(|row| (row.path, row.samples)).collect(),
        })
    }

    pub(super) const fn thread(&self) -> ThreadIndex {
        self.row.thread
    }
}

/// A path, and what windows have not got of it yet.
#[derive(Clone, Copy, Debug)]
struct Part {
    path: PathIndex,
    /// For windows with samples, and for those without, µJ.
    sampled: u64,
    unsampled: u64,
    cpu_ns: u64,
    squares: f64,
    /// Whether what windows without samples get of it is inferred.
    is_known: bool,
}

/// What several windows of a thread are divided into.
#[derive(Clone, Debug)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// `no_sample` is the path of what nothing explains.
    pub(super) fn of(shares: &[Share<PathIndex>], no_sample: Option<PathIndex>) -> Self {
        let part = |share: &Share<PathIndex>| {
            let is_known = Some(share.path) != no_sample;
            let unsampled = if is_known { share.inferred.0 } else { share.energy.0 };
            let sampled = share.energy.0.saturating_sub(unsampled);
            Part { path: share.path, sampled, unsampled, cpu_ns: share.cpu_ns, squares: share.squares, is_known }
        };
        Self(shares.iter().map(part).collect())
    }

    /// Gives a window its rows. Rows of all windows sum to the parts.
    pub(super) fn take(&mut self, window: &WaitingWindow, mut give: impl FnMut(&EnergyRow)) {
        if window.sampled != Spent::default() || !window.samples.is_empty() {
            for (part, taken) in self.divide(window.sampled, |part| &mut part.sampled) {
                let of_path = window.samples.iter().filter(|(path, _)| *path == part.path);
                let samples = of_path.fold(0_u64, |sum, (_, samples)| sum.saturating_add(*samples));
                if !taken.is_nothing() || samples > 0 {
                    let pooled = Some(Pooled { squares: taken.squares, ..Pooled::COMPLETE });
                    give(&EnergyRow { samples, inferred: None, pooled, ..taken.row(part, window) });
                }
            }
        }
        if window.unsampled != Spent::default() {
            for (part, taken) in self.divide(window.unsampled, |part| &mut part.unsampled) {
                if !taken.is_nothing() {
                    let inferred = part.is_known.then_some(Inferred { squares: taken.squares });
                    give(&EnergyRow { samples: 0, inferred, pooled: None, ..taken.row(part, window) });
                }
            }
        }
    }

    /// Divides what windows spent as the parts are left, and takes it from them. `left` says from which of a part's energies.
    fn divide(&mut self, spent: Spent, left: fn(&mut Part) -> &mut u64) -> impl Iterator<Item = (&Part, Taken)> {
        let energies: Vec<u64> = self.0.iter_mut().map(|part| *left(part)).collect();
        let times: Vec<u64> = self.0.iter().map(|part| part.cpu_ns).collect();
        let taken = apportion(spent.energy.0, &energies).into_iter().zip(apportion(spent.cpu_ns, &times));
        self.0.iter_mut().zip(taken).map(move |(part, (energy_uj, cpu_ns))| {
            let squares = part.take_squares(energy_uj);
            let energy_left = left(part);
            *energy_left = energy_left.saturating_sub(energy_uj);
            part.cpu_ns = part.cpu_ns.saturating_sub(cpu_ns);
            (&*part, Taken { energy: MicroJoules(energy_uj), cpu_ns, squares })
        })
    }
}

/// What a window gets of a path.
struct Taken {
    energy: MicroJoules,
    cpu_ns: u64,
    squares: f64,
}

impl Taken {
    const fn is_nothing(&self) -> bool {
        self.energy.0 == 0 && self.cpu_ns == 0
    }

    const fn row(&self, part: &Part, window: &WaitingWindow) -> EnergyRow {
        EnergyRow { path: part.path, energy: self.energy, cpu_ns: self.cpu_ns, ..window.row }
    }
}

impl Part {
    /// The squares that go with a part of the energy that is left.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn take_squares(&mut self, energy_uj: u64) -> f64 {
        let left = self.sampled.saturating_add(self.unsampled);
        let squares = if left == 0 { 0.0 } else { self.squares * (energy_uj as f64 / left as f64) };
        self.squares -= squares;
        squares
    }
}
