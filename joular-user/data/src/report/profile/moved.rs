//! Sums what threads moved through sockets and files (`--io`) by thread and call path.
//!
//! A thread's bytes are exact, and samples tell which of its paths they are of. Bytes of other processes, of the kernel and
//! of joular-bpf are on no path, and are not in here.

use std::collections::BTreeMap;

use joular_ebpf::abi::IoKind;

use super::{Filter, PathIndex, ThreadIndex, amounts, counted::add, filter::Allowed, reader::DataSet, thread_rows};
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
        measure::Measure,
        units::{MicroJoules, UnixMicros},
        way::Way,
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

/// A row: what a thread moved on a call path in a window.
#[derive(Clone, Copy, Debug)]
pub struct SeenMoved {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub window_start: UnixMicros,
    pub window_ns: u64,
    /// Whether the filter allows the path.
    pub is_path_allowed: bool,
    pub of_row: MovedPath,
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
        Self::read_watched(data, filter, |_| {})
    }

    /// The same, and shows each row.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_watched(data: &mut DataSet, filter: &Filter, mut watch: impl FnMut(&SeenMoved)) -> Result<Self> {
        let mut sums = Sums::default();
        for run in 0..data.catalog.runs.len() {
            let span = filter.span(&data.catalog.runs[run]);
            decode_ahead::batches(
                &data.files::<Io>(run),
                |file| TableFile::open_span(file, &thread_rows::with(&COLUMNS), &span),
                |columns| sums.take(data, run, filter, columns, &mut watch),
            )?;
        }
        amounts::each(data, filter, |row| {
            if let Some(kind) = kind_of(row.measure) {
                let mut of_row = MovedPath::none(row.thread, row.path);
                of_row.bytes[kind as usize] = row.amount;
                of_row.squares[kind as usize] = row.sampled.squares;
                of_row.samples = row.sampled.samples;
                let amounts::AmountRow { run, window_start, window_ns, is_path_allowed, .. } = *row;
                sums.take_seen(&SeenMoved { run, window_start, window_ns, is_path_allowed, of_row }, &mut watch);
            }
        })?;
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
    pub(crate) const fn none(thread: ThreadIndex, path: PathIndex) -> Self {
        Self { thread, path, bytes: [0; KINDS], samples: 0, squares: [0.0; KINDS] }
    }

    /// A window's bytes and the samples that saw where they went. A sample stands for about as many bytes whatever their
    /// kind, so each kind has its part of the samples.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn of_window(thread: ThreadIndex, path: PathIndex, bytes: BytesByKind, samples: u64) -> Self {
        let mut of_window = Self { bytes, samples, ..Self::none(thread, path) };
        let all: f64 = bytes.iter().map(|bytes| *bytes as f64).sum();
        for (square, bytes) in of_window.squares.iter_mut().zip(&bytes).filter(|_| samples > 0) {
            *square = *bytes as f64 * all / samples as f64;
        }
        of_window
    }

    pub(crate) fn plus(&mut self, other: &Self) {
        add(&mut self.bytes, &other.bytes);
        self.samples = self.samples.saturating_add(other.samples);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, square)| *sum += square);
    }

    /// What samples divide of the bytes that went a way.
    pub fn sampled_of(&self, way: Way) -> Sampled {
        let mut sampled = Sampled::default();
        way.kinds().iter().for_each(|kind| sampled.plus(&self.sampled(*kind)));
        sampled
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
        watch: &mut impl FnMut(&SeenMoved),
    ) -> Result<()> {
        let claimants = columns.names(counters::CLAIMANT)?;
        let kinds = IoKind::ALL.map(|kind| columns.ints(io::bytes_of(kind)));
        let kinds = kinds.into_iter().collect::<Result<Vec<_>>>()?;
        let samples = columns.ints(io::SAMPLES)?;
        let is_of_thread = |row: usize| Ok(claimants.get(row)? == Claimant::Thread(0).name());
        let mut allowed = std::mem::take(&mut self.allowed);
        thread_rows::each((data, run), (filter, &mut allowed), columns, is_of_thread, |row| {
            let mut bytes = BytesByKind::default();
            for (sum, of_kind) in bytes.iter_mut().zip(&kinds) {
                // Not every kernel knows of devices.
                *sum = of_kind.maybe_natural(row.index)?.unwrap_or(0);
            }
            let of_row = MovedPath::of_window(row.thread, row.path, bytes, samples.natural(row.index)?);
            let thread_rows::ThreadRow { window_start, window_ns, is_path_allowed, .. } = row;
            self.take_seen(&SeenMoved { run, window_start, window_ns, is_path_allowed, of_row }, watch);
            Ok(())
        })?;
        self.allowed = allowed;
        Ok(())
    }

    fn take_seen(&mut self, seen: &SeenMoved, watch: &mut impl FnMut(&SeenMoved)) {
        watch(seen);
        let SeenMoved { of_row, .. } = seen;
        let none = MovedPath::none(of_row.thread, of_row.path);
        self.sums.entry((of_row.thread, of_row.path)).or_insert(none).plus(of_row);
    }
}

/// The one kind of bytes that a measure is of.
fn kind_of(measure: Measure) -> Option<IoKind> {
    IoKind::ALL.into_iter().find(|kind| measure == Measure::Moved(Way::of_kind(*kind)))
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
