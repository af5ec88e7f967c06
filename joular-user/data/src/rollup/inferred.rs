//! Finds what samples of other windows say of the energy that no sample hit, by the code that reports
//! use, before windows and threads lose their names.

use std::collections::{BTreeMap, HashMap};

use crate::{
    dataset::tables::rollup::Inferred,
    model::units::{Pid, Tid},
    report::profile::{Catalog, DataSet, EnergyRow, PathIndex, ThreadIndex},
};

/// Identity of a thread: process, its start, thread, its start; starts in ns of the wall clock.
pub(super) type ThreadKey = (Pid, u64, Tid, u64);

/// By thread and `stack_id`. What a path gets has been taken from another path of the thread.
pub(super) type OfWindow = BTreeMap<(ThreadKey, i64), Inferred>;

/// By the number of the window of the rollup.
#[derive(Debug)]
pub(super) struct OfRun {
    length_us: i64,
    /// The path that energy is taken from; without it there is none that no sample hit.
    source: Option<PathIndex>,
    windows: HashMap<i64, OfWindow>,
}

impl OfRun {
    pub(super) fn new(data: &DataSet, length_us: i64) -> Self {
        Self { length_us, source: data.no_sample(), windows: HashMap::new() }
    }

    /// Takes the rows of a run in the order of time.
    pub(super) fn take_row(&mut self, catalog: &Catalog, stack_ids: &[i64], row: &EnergyRow) {
        let (Some(inferred), Some(source)) = (row.inferred, self.source) else { return };
        let (thread, window) = (key_of(catalog, row.thread), row.window_start.0.div_euclid(self.length_us));
        let rows = self.windows.entry(window).or_default();
        let id = |path: PathIndex| stack_ids.get(path.index()).copied().unwrap_or_default();
        let (energy_uj, cpu_ns) = signed(row);
        let to = rows.entry((thread, id(row.path))).or_default();
        *to = plus(*to, energy_uj, cpu_ns, inferred.squares);
        let from = rows.entry((thread, id(source))).or_default();
        *from = plus(*from, -energy_uj, -cpu_ns, 0.0);
    }

    /// What is known of a window, once.
    pub(super) fn take(&mut self, window: i64) -> OfWindow {
        self.windows.remove(&window).unwrap_or_default()
    }
}

fn key_of(catalog: &Catalog, index: ThreadIndex) -> ThreadKey {
    let thread = catalog.thread(index);
    let process = catalog.process(thread.process);
    let ns = |micros: i64| u64::try_from(micros).unwrap_or(0).saturating_mul(1000);
    (process.pid, ns(process.start.0), thread.tid, ns(thread.start.0))
}

/// Energies and times of a row are far below 2^63.
fn signed(row: &EnergyRow) -> (i64, i64) {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    (signed(row.energy.0), signed(row.cpu_ns))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for an error estimate")]
fn plus(sum: Inferred, energy_uj: i64, cpu_ns: i64, squares: f64) -> Inferred {
    Inferred {
        energy_uj: sum.energy_uj.saturating_add(energy_uj),
        cpu_ns: sum.cpu_ns.saturating_add(cpu_ns),
        squares_uj2: sum.squares_uj2.saturating_add(squares.round() as u64),
    }
}
