//! Sums what threads moved through sockets and files (`--io`) by thread and call path.
//!
//! A thread's bytes are exact, and samples tell which of its paths they are of. Bytes of other processes, of the kernel and
//! of joular-bpf are on no path, and are not in here.

use std::collections::BTreeMap;

use joular_ebpf::abi::IoKind;

use super::{Filter, PathIndex, ThreadIndex, counted::add, filter::Allowed, reader::DataSet, thread_rows};
use crate::{
    attribution::work::Claimant,
    dataset::{
        column::Named,
        error::Result,
        read::{
            columns::{Columns, TableFile},
            decode_ahead,
        },
        tables::{Io, counters, io},
    },
    model::{
        byte_costs::BytesByKind,
        units::{MicroJoules, UnixMicros},
    },
    sampling::Sampled,
};

/// What a thread moved on a call path, over all windows of the selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovedPath {
    pub thread: ThreadIndex,
    pub path: PathIndex,
    pub bytes: BytesByKind,
    /// Calls that were sampled, once for each kind of bytes. 0: no sample tells where.
    pub samples: u64,
    /// As [`Sampled::squares`], of each kind of bytes.
    pub squares: [f64; KINDS],
}

/// What a selection moved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// By thread, then path.
    pub entries: Vec<MovedPath>,
    /// What samples divide of each thread, by kind of bytes, without the filter of methods.
    pub threads: BTreeMap<ThreadIndex, [Sampled; KINDS]>,
    /// Of all entries.
    bytes: BytesByKind,
}

impl Moved {
    /// Reads what threads of a data set moved in the windows that `filter` allows, on paths that it allows.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn read(data: &mut DataSet, filter: &Filter) -> Result<Self> {
        Self::read_watched(data, filter, |_, _, _| {})
    }

    /// The same, and shows start and length of the window, and the bytes of each row that counts.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_watched(
        data: &mut DataSet,
        filter: &Filter,
        mut watch: impl FnMut(UnixMicros, u64, &BytesByKind),
    ) -> Result<Self> {
        let mut sums = Sums::default();
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            decode_ahead::batches(
                &data.files::<Io>(run),
                |file| TableFile::open_span(file, &thread_rows::with(&COLUMNS), &span),
                |columns| sums.take(data, run, filter, columns, &mut watch),
            )?;
        }
        let mut entries: Vec<MovedPath> = sums.sums.into_values().collect();
        let mut threads: BTreeMap<ThreadIndex, [Sampled; KINDS]> = BTreeMap::new();
        for entry in &entries {
            let wholes = threads.entry(entry.thread).or_default();
            IoKind::ALL.into_iter().for_each(|kind| wholes[kind as usize].plus(&entry.sampled(kind)));
        }
        entries.retain(|entry| filter.allows_path(data.catalog.paths.frames_of(entry.path)));
        let mut bytes = BytesByKind::default();
        entries.iter().for_each(|entry| add(&mut bytes, &entry.bytes));
        Ok(Self { entries, threads, bytes })
    }

    /// Whether nothing is known to have been moved.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all entries.
    pub const fn bytes(&self) -> BytesByKind {
        self.bytes
    }

    /// Sampled calls of all entries.
    pub fn samples(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.samples))
    }
}

impl MovedPath {
    /// Adds a window's bytes and the samples that saw where they went. A sample stands for about as many bytes whatever
    /// their kind, so each kind has its part of the samples.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn plus(&mut self, bytes: &BytesByKind, samples: u64) {
        add(&mut self.bytes, bytes);
        self.samples = self.samples.saturating_add(samples);
        let all: f64 = bytes.iter().map(|bytes| *bytes as f64).sum();
        for (sum, bytes) in self.squares.iter_mut().zip(bytes).filter(|_| samples > 0) {
            *sum += *bytes as f64 * all / samples as f64;
        }
    }

    /// What samples divide of the bytes of a kind.
    pub fn sampled(&self, kind: IoKind) -> Sampled {
        let (bytes, squares) = (self.bytes[kind as usize], self.squares[kind as usize]);
        if self.samples == 0 || bytes == 0 {
            return Sampled::default();
        }
        let all: u128 = self.bytes.iter().map(|bytes| u128::from(*bytes)).sum();
        let part = (u128::from(self.samples) * u128::from(bytes)).checked_div(all).unwrap_or(0);
        // Bytes take the place of microjoules.
        Sampled { energy: MicroJoules(bytes), samples: u64::try_from(part).unwrap_or(u64::MAX).max(1), squares }
    }
}

/// Entries in the making.
#[derive(Default)]
struct Sums {
    allowed: Allowed,
    sums: BTreeMap<(ThreadIndex, PathIndex), MovedPath>,
}

impl Sums {
    fn take(
        &mut self,
        data: &mut DataSet,
        run: usize,
        filter: &Filter,
        columns: &Columns<'_>,
        watch: &mut impl FnMut(UnixMicros, u64, &BytesByKind),
    ) -> Result<()> {
        let claimants = columns.names(counters::CLAIMANT)?;
        let kinds = IoKind::ALL.map(|kind| columns.ints(io::bytes_of(kind)));
        let kinds = kinds.into_iter().collect::<Result<Vec<_>>>()?;
        let samples = columns.ints(io::SAMPLES)?;
        let Self { allowed, sums } = self;
        let is_of_thread = |row: usize| Ok(claimants.get(row)? == Claimant::Thread(0).name());
        thread_rows::each((data, run), (filter, allowed), columns, is_of_thread, |row| {
            let mut bytes = BytesByKind::default();
            for (sum, of_kind) in bytes.iter_mut().zip(&kinds) {
                // Not every kernel knows of devices.
                *sum = of_kind.maybe_natural(row.index)?.unwrap_or(0);
            }
            if row.is_path_allowed {
                watch(row.window_start, row.window_ns, &bytes);
            }
            let (thread, path) = (row.thread, row.path);
            let none = || MovedPath { thread, path, bytes: [0; KINDS], samples: 0, squares: [0.0; KINDS] };
            sums.entry((thread, path)).or_insert_with(none).plus(&bytes, samples.natural(row.index)?);
            Ok(())
        })
    }
}

const KINDS: usize = IoKind::ALL.len();

const COLUMNS: [&dyn Named; 2 + KINDS] = [
    &counters::CLAIMANT,
    &io::SAMPLES,
    &io::bytes_of(IoKind::Sent),
    &io::bytes_of(IoKind::Received),
    &io::bytes_of(IoKind::LocalSent),
    &io::bytes_of(IoKind::LocalReceived),
    &io::bytes_of(IoKind::Read),
    &io::bytes_of(IoKind::Written),
    &io::bytes_of(IoKind::DeviceRead),
    &io::bytes_of(IoKind::DeviceWritten),
];
