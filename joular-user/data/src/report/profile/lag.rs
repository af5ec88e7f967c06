//! Bounds how far off the energy of phases is because counters lag: see [`crate::totals::lag`].

use std::collections::{BTreeMap, BTreeSet};

use super::{catalog::Run, filter::Filter, reader::DataSet};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        read::{columns::Numbers, decode_ahead, marks::PhaseWindows, span::Span},
        tables::{Windows, shared, windows},
    },
    model::{
        domain::{Domain, Role},
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    totals::lag::{Lag, Lags, Spent, Stretch},
};

impl DataSet {
    /// Of the phases of a run that a selection asks for; `None` if it does not ask for phases, or no counter was watched.
    /// Phases count as a whole, whatever else the selection asks for.
    pub(super) fn lag(&self, run: usize, filter: &Filter) -> Result<Option<Lag>> {
        if filter.phases.allow_all() {
            return Ok(None);
        }
        let asked: BTreeSet<&str> = filter.phases_of(&self.catalog.runs[run]).map(|phase| phase.path.raw()).collect();
        let of_run = self.lags_of(run)?.into_iter();
        Ok(of_run.filter(|(path, _)| asked.contains(path.as_str())).map(|(_, lag)| lag).reduce(Lag::plus))
    }

    /// Of each phase in all runs together, by its path; empty if no counter was watched.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn lags(&self) -> Result<BTreeMap<TargetText, Lag>> {
        let mut lags: BTreeMap<TargetText, Lag> = BTreeMap::new();
        for run in 0..self.catalog.runs.len() {
            for (path, lag) in self.lags_of(run)? {
                let sum = lags.entry(TargetText::from(path.as_str())).or_default();
                *sum = sum.plus(lag);
            }
        }
        Ok(lags)
    }

    fn lags_of(&self, run: usize) -> Result<Vec<(String, Lag)>> {
        let Run { info, phases, .. } = &self.catalog.runs[run];
        if phases.is_empty() || info.domains.iter().all(|domain| domain.update().is_none()) {
            return Ok(Vec::new());
        }
        Ok(errors(phases, self.stretches(run, &info.domains)?))
    }

    /// What each window of a run says of the domains whose counters were watched.
    fn stretches(&self, run: usize, domains: &[Domain]) -> Result<BTreeMap<UnixMicros, Stretch>> {
        let mut stretches: BTreeMap<UnixMicros, Stretch> = BTreeMap::new();
        decode_ahead::batches(&self.files::<Windows>(run), &Span::default(), |columns| {
            let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
            let names = columns.names(windows::DOMAIN)?;
            let (sockets, cores) = (columns.ints(windows::SOCKET)?, columns.ints(windows::CORE)?);
            let energies = [windows::MEASURED_UJ, windows::ATTRIBUTED_UJ, windows::STATIC_UJ];
            let [measured, attributed, static_share] = energies.map(|column| columns.ints(column));
            let (measured, attributed, static_share) = (measured?, attributed?, static_share?);
            for row in 0..columns.rows() {
                let Some(name) = names.maybe(row)? else { continue };
                let place = (sockets.maybe_natural(row)?, cores.maybe_natural(row)?);
                let is_it = |domain: &&Domain| domain.name == name && (domain.socket, domain.core) == place;
                let mut shared = domains.iter().filter(|domain| domain.role == Role::Shared);
                let Some(update) = shared.find(is_it).and_then(Domain::update) else { continue };
                let energy = |column: &Numbers<'_>| Ok::<_, DataSetError>(MicroJoules(column.natural(row)?));
                let spent = Spent::new(update, energy(&measured)?, [energy(&attributed)?, energy(&static_share)?]);
                let length_ns = lengths.natural(row)?;
                stretches.entry(UnixMicros(starts.get(row)?)).or_insert_with(|| Stretch::new(length_ns)).push(spent);
            }
            Ok(())
        })?;
        Ok(stretches)
    }
}

/// The error of each phase, by its path. Phases are in the order of beginning.
fn errors(phases: &[PhaseWindows], windows: BTreeMap<UnixMicros, Stretch>) -> Vec<(String, Lag)> {
    let (mut lags, mut found) = (Lags::default(), Vec::new());
    let (mut open, mut to_come): (Vec<&PhaseWindows>, _) = (Vec::new(), phases.iter().peekable());
    for (start, window) in windows {
        let opens = |phase: &&PhaseWindows| phase.after < start;
        let was_open = open.len();
        while let Some(phase) = to_come.next_if(opens) {
            open.push(phase);
        }
        let has_begun = open.len() > was_open;
        open.retain(|phase| phase.has(start));
        if has_begun || open.len() < was_open {
            found.extend(lags.opened(&open.iter().map(|phase| phase.path.raw().to_owned()).collect()));
        }
        lags.window(&window);
    }
    found.extend(lags.opened(&BTreeSet::new()));
    found
}
