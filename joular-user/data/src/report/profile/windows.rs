//! Reads the windows of a selection, whether anybody ran in them or not.
//!
//! Table `windows` is written last and says which windows are whole. Rows of other tables that
//! belong to none of them are left from a crash. Nobody knows where the rest of such a window's
//! energy went, so they count for nothing.

use std::collections::BTreeMap;

use super::{catalog::Catalog, filter::Filter, reader::DataSet};
use crate::{
    dataset::{
        column::Table as _,
        error::Result,
        read::decode_ahead,
        tables::{Windows, shared, windows},
    },
    model::{
        domain::Label,
        units::{MicroJoules, UnixMicros},
    },
};

/// A window of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub start: UnixMicros,
    pub length_ns: u64,
}

impl WindowSpan {
    pub fn end(&self) -> UnixMicros {
        UnixMicros(self.start.0.saturating_add(i64::try_from(self.length_ns / 1000).unwrap_or(i64::MAX)))
    }
}

/// What a domain of the machine measured in a window.
#[derive(Clone, Copy, Debug)]
pub struct DomainEnergy<'a> {
    pub window: WindowSpan,
    pub name: &'a str,
    /// `None`: the whole machine.
    pub socket: Option<u32>,
    /// `None`: not of one core.
    pub core: Option<u32>,
    /// `None`: written by a newer version.
    pub label: Option<Label>,
    pub energy: MicroJoules,
}

/// Lengths of a run's windows in ns, by their start.
pub(super) type RunWindows = BTreeMap<UnixMicros, u64>;

impl DataSet {
    /// Notes which windows runs have.
    pub(super) fn read_windows(&mut self, filter: &Filter) -> Result<()> {
        self.expect(&[Windows::NAME]);
        let files = self.whole::<Windows>();
        self.windows = vec![RunWindows::new(); files.len()];
        decode_ahead::batches_of_runs(&files, |run, columns| {
            filter.stop.check()?;
            let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
            let Some(windows) = self.windows.get_mut(run) else { return Ok(()) };
            for row in 0..columns.rows() {
                windows.insert(UnixMicros(starts.get(row)?), lengths.natural(row)?);
            }
            Ok(())
        })
    }

    /// Calls `take` with what each domain measured in each window that `filter` allows. Domains are disjoint. Conditions on
    /// processes do not divide them.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn domains(&self, filter: &Filter, mut take: impl FnMut(&Catalog, &DomainEnergy<'_>)) -> Result<()> {
        for (run, row_of_run) in self.catalog.runs.iter().enumerate() {
            let span = filter.span(row_of_run);
            decode_ahead::batches(&self.files::<Windows>(run), &span, |columns| {
                let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
                let (names, labels) = (columns.names(windows::DOMAIN)?, columns.names(windows::LABEL)?);
                let (sockets, cores) = (columns.ints(windows::SOCKET)?, columns.ints(windows::CORE)?);
                let energies = columns.ints(windows::MEASURED_UJ)?;
                for row in 0..columns.rows() {
                    let start = UnixMicros(starts.get(row)?);
                    let Some(name) = names.maybe(row)?.filter(|_| span.allows(start)) else { continue };
                    let label = labels.maybe(row)?;
                    let domain = DomainEnergy {
                        window: WindowSpan { run, start, length_ns: lengths.natural(row)? },
                        name,
                        socket: sockets.maybe_natural(row)?,
                        core: cores.maybe_natural(row)?,
                        label: Label::ALL.into_iter().find(|of| Some(of.name()) == label),
                        energy: MicroJoules(energies.natural(row)?),
                    };
                    take(&self.catalog, &domain);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// All windows that `filter` allows, run by run, each run's by time.
    pub fn windows(&self, filter: &Filter) -> Vec<WindowSpan> {
        let of_run = |(run, (row, windows)): (usize, (&super::Run, &RunWindows))| {
            let span = filter.span(row);
            let allowed = windows.iter().filter(|(start, _)| span.allows(**start));
            allowed
                .map(|(start, length_ns)| WindowSpan { run, start: *start, length_ns: *length_ns })
                .collect::<Vec<_>>()
        };
        self.catalog.runs.iter().zip(&self.windows).enumerate().flat_map(of_run).collect()
    }
}
