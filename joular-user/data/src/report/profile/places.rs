//! Reads where threads ran: sockets, and cores where these have energy counters of their own.
//! Nothing finer is recorded.

use super::{Catalog, Filter, reader::DataSet};
use crate::{
    attribution::work::Place,
    dataset::{
        error::Result,
        read::decode_ahead,
        tables::{Weights, shared, weights},
    },
    model::units::UnixMicros,
};

/// Identity of a thread in a data set: run, process, its start, thread, its start.
pub type ThreadIdentity = (usize, u32, i64, u32, i64);

/// Time of a thread in one place in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    pub thread: ThreadIdentity,
    pub window_start: UnixMicros,
    pub window_ns: u64,
    pub place: Place,
    pub cpu_ns: u64,
}

impl Catalog {
    /// What [`PlaceRow`]s know a thread by.
    pub fn identity(&self, thread: super::ThreadIndex) -> ThreadIdentity {
        let thread = self.thread(thread);
        let process = self.process(thread.process);
        (process.run, process.pid.0, process.start.0, thread.tid.0, thread.start.0)
    }
}

impl DataSet {
    /// Calls `take` for where threads of targets ran in the windows that `filter` allows.
    /// Conditions on processes and threads are ignored.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn scan_places(&self, filter: &Filter, mut take: impl FnMut(&PlaceRow)) -> Result<()> {
        for (run, host) in self.hosts.iter().copied().enumerate() {
            let span = filter.span(&self.catalog.runs[run]);
            decode_ahead::batches(&self.files::<Weights>(run), &span, |columns| {
                filter.stop.check()?;
                let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
                let (claimants, times) = (columns.names(weights::CLAIMANT)?, columns.ints(weights::CPU_NS)?);
                let (pids, process_starts) = (columns.ints(shared::PID)?, columns.times(shared::PROCESS_START)?);
                let (tids, thread_starts) = (columns.ints(shared::TID)?, columns.times(shared::THREAD_START)?);
                let (sockets, cores) = (columns.ints(weights::SOCKET)?, columns.ints(weights::CORE)?);
                for row in 0..columns.rows() {
                    let window_start = UnixMicros(starts.get(row)?);
                    let is_thread = claimants.get(row)? == "thread";
                    if !is_thread || !span.allows(window_start) {
                        continue;
                    }
                    let (pid, tid) = (pids.natural(row)?, tids.natural(row)?);
                    take(&PlaceRow {
                        thread: (host, pid, process_starts.get(row)?, tid, thread_starts.get(row)?),
                        window_start,
                        window_ns: lengths.natural(row)?,
                        place: Place { socket: sockets.natural(row)?, core: cores.natural(row)? },
                        cpu_ns: times.natural(row)?,
                    });
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
