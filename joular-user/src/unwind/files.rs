//! Keeps rows of files in the kernel: read once, shared by all processes that have the file mapped,
//! kept for a while when the last of them is gone. Code that run-time systems write for themselves
//! counts as a file too.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use joular_ebpf::abi::{MAX_ROWS, UnwindRow};

use super::{
    code::{Code, TableKey},
    reader::{FileTable, Reader},
    tables::{Range, Ranges},
};
use crate::{
    elf::segment::{Segment, bias},
    kernel::KernelError,
};

/// Windows for which a file's rows stay without a process: programs are started again.
const KEEP_WINDOWS: u32 = 30;
/// Rows written at once (1 MiB), and how long that may go on before a window may end.
const WRITE_ROWS: usize = 1 << 17;
const MAX_WRITING: Duration = Duration::from_millis(3);

#[derive(Debug)]
enum State {
    /// Waits for its turn.
    Queued,
    Reading,
    /// In the kernel from its first to its last row, if it has any.
    Ready {
        segments: Vec<Segment>,
        rows: Range,
    },
    /// There is no room for its rows.
    NoRoom,
}

#[derive(Debug)]
struct KnownFile {
    state: State,
    users: u32,
    idle_windows: u32,
}

/// A file whose rows are being written.
#[derive(Debug)]
struct Writing {
    file: TableKey,
    table: FileTable,
    rows: Range,
    written: usize,
}

/// Where a mapping's rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub bias: u64,
    pub rows: Range,
}

#[derive(Debug)]
pub struct Files {
    entries: HashMap<TableKey, KnownFile>,
    queue: Vec<TableKey>,
    reader: Reader,
    writing: Option<Writing>,
    rows: Ranges,
    /// Files for which there was no room, since the start.
    pub without_room: u64,
}

impl Default for Files {
    fn default() -> Self {
        Self::with_rows(MAX_ROWS)
    }
}

impl Files {
    pub fn with_rows(capacity: u32) -> Self {
        Self {
            entries: HashMap::new(),
            queue: Vec::new(),
            reader: Reader::default(),
            writing: None,
            rows: Ranges::new(capacity),
            without_room: 0,
        }
    }

    /// One more process uses it.
    pub fn acquire(&mut self, file: TableKey) {
        let queue = &mut self.queue;
        let entry = self.entries.entry(file).or_insert_with(|| {
            queue.push(file);
            KnownFile { state: State::Queued, users: 0, idle_windows: 0 }
        });
        entry.users += 1;
        entry.idle_windows = 0;
    }

    /// One process less uses it.
    pub fn release(&mut self, file: TableKey) {
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.users = entry.users.saturating_sub(1);
        }
    }

    /// The rows for a mapping of the file that shows `offset` at `start`.
    pub fn place(&self, file: TableKey, start: u64, offset: u64) -> Placed {
        match self.entries.get(&file).map(|entry| &entry.state) {
            Some(State::Ready { segments, rows }) if rows.count > 0 => {
                bias(segments, start, offset).map_or(Placed::default(), |bias| Placed { bias, rows: *rows })
            }
            _ => Placed::default(),
        }
    }

    /// Goes on reading and writing, for a short time. Says which files have their
    /// rows now.
    pub fn poll(
        &mut self,
        mut open: impl FnMut(TableKey) -> Option<Code>,
        mut write: impl FnMut(u32, &[UnwindRow]) -> Result<(), KernelError>,
    ) -> Result<HashSet<TableKey>, KernelError> {
        let started = Instant::now();
        let mut ready = HashSet::new();
        loop {
            self.begin_reading(&mut open);
            if self.writing.is_none() {
                let Some((file, table)) = self.reader.take_finished() else { break };
                self.take_in(file, table);
            }
            if let Some(file) = self.write(&mut write)? {
                ready.insert(file);
            }
            if started.elapsed() >= MAX_WRITING {
                break;
            }
        }
        Ok(ready)
    }

    fn begin_reading(&mut self, mut open: impl FnMut(TableKey) -> Option<Code>) {
        while let Some(key) = self.next() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let begun = open(key).is_some_and(|code| self.reader.begin(key, code));
            entry.state = if begun { State::Reading } else { State::NONE };
        }
    }

    /// The next file to read, if there is room. The smallest comes first: many small ones take no
    /// longer than one libjvm, and most processes have no other.
    fn next(&mut self) -> Option<TableKey> {
        let (at, key) = self.queue.iter().enumerate().min_by_key(|(_, key)| key.bytes())?;
        self.reader.has_room(*key).then(|| self.queue.swap_remove(at))
    }

    fn take_in(&mut self, file: TableKey, table: FileTable) {
        let Some(entry) = self.entries.get_mut(&file) else { return };
        let count = u32::try_from(table.rows.len()).unwrap_or(u32::MAX);
        match self.rows.take(count) {
            Some(rows) => self.writing = Some(Writing { file, table, rows, written: 0 }),
            None => {
                entry.state = State::NoRoom;
                self.without_room += 1;
            }
        }
    }

    /// Writes some rows; gives the file if those were the last.
    fn write(
        &mut self,
        write: &mut impl FnMut(u32, &[UnwindRow]) -> Result<(), KernelError>,
    ) -> Result<Option<TableKey>, KernelError> {
        let Some(mut writing) = self.writing.take() else { return Ok(None) };
        let rest = writing.table.rows.get(writing.written..).unwrap_or_default();
        let part = rest.get(..WRITE_ROWS).unwrap_or(rest);
        let first = writing.rows.first.saturating_add(u32::try_from(writing.written).unwrap_or(u32::MAX));
        if !part.is_empty()
            && let Err(error) = write(first, part)
        {
            self.rows.give_back(writing.rows);
            self.set(writing.file, State::NONE);
            return Err(error);
        }
        writing.written += part.len();
        if writing.written < writing.table.rows.len() {
            self.writing = Some(writing);
            return Ok(None);
        }
        self.set(writing.file, State::Ready { segments: writing.table.segments, rows: writing.rows });
        Ok(Some(writing.file))
    }

    fn set(&mut self, file: TableKey, state: State) {
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.state = state;
        }
    }

    /// Ends a window: drops rows that nobody has used for long, and tries files again that had no
    /// room, if there may be room now.
    pub fn pass_window(&mut self) {
        let Self { entries, rows, queue, .. } = self;
        entries.retain(|_, entry| {
            entry.idle_windows += u32::from(entry.users == 0);
            // What is under way comes to its end first.
            let is_settled = matches!(entry.state, State::Ready { .. } | State::NoRoom);
            if entry.idle_windows <= KEEP_WINDOWS || !is_settled {
                return true;
            }
            if let State::Ready { rows: range, .. } = entry.state {
                rows.give_back(range);
            }
            false
        });
        if rows.pass_window() {
            for (key, entry) in entries.iter_mut().filter(|(_, entry)| matches!(entry.state, State::NoRoom)) {
                entry.state = State::Queued;
                queue.push(*key);
            }
        }
    }

    /// Whether everything that was asked for has been read and written.
    pub fn are_settled(&self) -> bool {
        self.entries.values().all(|entry| matches!(entry.state, State::Ready { .. } | State::NoRoom))
    }
}

impl State {
    /// No rows: frame pointers are used.
    const NONE: Self = Self::Ready { segments: Vec::new(), rows: Range { first: 0, count: 0 } };
}
