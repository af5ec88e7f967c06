//! Reads files' unwind tables, and code without any, on a thread of its own: libjvm takes 20 ms, in which a
//! window must be able to end.
//!
//! A file may be on a file system that does not answer. Its thread is left alone after a while, and another
//! one goes on; no file of that file system is read any more.

use std::{
    collections::{HashSet, VecDeque},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use joular_data::caught::caught;
use joular_ebpf::abi::UnwindRow;

use super::{
    code::{Code, TableKey},
    code_rows, eh_frame, gaps,
};
use crate::{
    arch::Native,
    elf::{Elf, ElfError, segment::Segment},
};

/// Files under way, and their size: a large one is read alone, since its rows take
/// up to 8 MiB until they are taken.
const MAX_UNDER_WAY: usize = 8;
const MAX_BYTES_UNDER_WAY: u64 = 8 << 20;
/// A file that has not been read for so long is given up.
const LATE: Duration = Duration::from_secs(10);

/// What a file says about unwinding. Empty if it says nothing or cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTable {
    pub segments: Vec<Segment>,
    pub rows: Vec<UnwindRow>,
}

impl FileTable {
    pub fn read(code: &Code) -> Self {
        // Parsers of hostile bytes that are not all ours: should one panic, the code has no table.
        caught(|| Self::of(code).unwrap_or_default()).unwrap_or_default()
    }

    fn of(code: &Code) -> Result<Self, ElfError> {
        match code {
            Code::File(copies) => {
                let elf = Elf::read(copies.readable().ok_or(ElfError::Malformed("it was changed"))?)?;
                let rows = eh_frame::rows::<Native>(&eh_frame::section::<Native>(&elf)?);
                Ok(Self { rows: gaps::fill::<Native>(&elf, rows), segments: elf.code().collect() })
            }
            Code::RunTime(code) => {
                let whole = Segment { offset: 0, bytes: code.bytes.len() as u64, address: 0 };
                Ok(Self { rows: code_rows::rows::<Native>(code), segments: vec![whole] })
            }
        }
    }
}

/// Reads one after the other.
#[derive(Debug, Default)]
pub struct Reader {
    running: Option<Running>,
    /// In the order in which they are read.
    under_way: VecDeque<(TableKey, Code)>,
    bytes_under_way: u64,
    /// When the first of them was begun.
    since: Option<Instant>,
    /// File systems that do not answer, by device.
    dead: HashSet<u64>,
}

#[derive(Debug)]
struct Running {
    files: Sender<(TableKey, Code)>,
    tables: Receiver<(TableKey, FileTable)>,
}

impl Reader {
    /// Whether another file may be begun.
    pub fn has_room(&self, next: TableKey) -> bool {
        let bytes = self.bytes_under_way.saturating_add(next.bytes());
        self.under_way.is_empty() || self.under_way.len() < MAX_UNDER_WAY && bytes <= MAX_BYTES_UNDER_WAY
    }

    /// Begins to read a file, and returns whether it could.
    pub fn begin(&mut self, key: TableKey, code: Code) -> bool {
        if key.device().is_some_and(|device| self.dead.contains(&device)) || !self.send(key, &code) {
            return false;
        }
        if self.under_way.is_empty() {
            self.since = Some(Instant::now());
        }
        self.under_way.push_back((key, code));
        self.bytes_under_way = self.bytes_under_way.saturating_add(key.bytes());
        true
    }

    fn send(&mut self, key: TableKey, code: &Code) -> bool {
        if self.running.is_none() {
            self.running = Running::start();
        }
        self.running.as_ref().is_some_and(|running| running.files.send((key, code.clone())).is_ok())
    }

    /// A table that is complete, if any; an empty one for a file that is given up.
    pub fn take_finished(&mut self) -> Option<(TableKey, FileTable)> {
        match self.running.as_ref()?.tables.try_recv() {
            Ok(finished) => {
                self.has_finished();
                Some(finished)
            }
            Err(_) if self.since.is_some_and(|since| since.elapsed() >= LATE) => self.give_up(),
            Err(_) => None,
        }
    }

    /// Goes on with another thread behind the file that is being read.
    fn give_up(&mut self) -> Option<(TableKey, FileTable)> {
        let stuck = self.has_finished()?;
        self.dead.extend(stuck.device());
        self.running = None;
        for (key, code) in std::mem::take(&mut self.under_way) {
            if self.send(key, &code) {
                self.under_way.push_back((key, code));
            }
        }
        Some((stuck, FileTable::default()))
    }

    fn has_finished(&mut self) -> Option<TableKey> {
        let (key, _) = self.under_way.pop_front()?;
        self.bytes_under_way = self.bytes_under_way.saturating_sub(key.bytes());
        self.since = (!self.under_way.is_empty()).then(Instant::now);
        Some(key)
    }

    #[cfg(test)]
    pub fn wait(&mut self) -> Option<(TableKey, FileTable)> {
        let finished = self.running.as_ref()?.tables.recv_timeout(Duration::from_secs(30)).ok()?;
        self.has_finished();
        Some(finished)
    }
}

impl Running {
    fn start() -> Option<Self> {
        let (files, received) = channel::<(TableKey, Code)>();
        let (sender, tables) = channel();
        let work = move || {
            for (key, code) in received {
                if sender.send((key, FileTable::read(&code))).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("unwind-tables".into()).stack_size(512 << 10).spawn(work).ok()?;
        Some(Self { files, tables })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _};

    use super::*;
    use crate::symbols::files::FileKey;

    #[test]
    fn files_are_read_one_after_the_other() {
        let mut junk = tempfile::tempfile().unwrap();
        junk.write_all(b"no ELF file").unwrap();
        let mut reader = Reader::default();
        assert_eq!(reader.take_finished(), None);
        let mut expected = Vec::new();
        for (file, has_table) in [(File::open("/bin/true").unwrap(), true), (junk, false)] {
            let key = TableKey::File(FileKey::of(&file).unwrap());
            assert!(reader.has_room(key) && reader.begin(key, Code::File(file.into())));
            expected.push((key, has_table));
        }
        for (key, has_table) in expected {
            let (finished, table) = reader.wait().unwrap();
            assert_eq!((finished, !table.rows.is_empty(), !table.segments.is_empty()), (key, has_table, has_table));
        }
        assert_eq!((reader.under_way.len(), reader.bytes_under_way), (0, 0));
    }

    #[test]
    fn a_large_file_is_read_alone() {
        let file = |bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes).unwrap();
            TableKey::File(FileKey::of(&file).unwrap())
        };
        let (large, small) = (file(MAX_BYTES_UNDER_WAY + 1), file(1000));
        let code = Code::File(tempfile::tempfile().unwrap().into());
        let with = |under_way, bytes_under_way| Reader {
            under_way: (0..under_way).map(|_| (small, code.clone())).collect(),
            bytes_under_way,
            ..Reader::default()
        };
        for (reader, next, has_room) in [
            (with(0, 0), large, true),
            (with(1, 1000), large, false),
            (with(1, MAX_BYTES_UNDER_WAY + 1), small, false),
            (with(MAX_UNDER_WAY - 1, 7000), small, true),
            (with(MAX_UNDER_WAY, 8000), small, false),
        ] {
            assert_eq!(reader.has_room(next), has_room, "{reader:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_holds_up_no_other() {
        let files = ["/bin/true", "/bin/sh"].map(|path| File::open(path).unwrap());
        let keys = [1, 2].map(|device| TableKey::File(FileKey::of_test(device)));
        let mut reader = Reader::default();
        let [stuck, other] = files.map(|file| Code::File(file.into()));
        // Its thread neither reads nor ends.
        let (_to_nobody, tables) = channel();
        let (held, _receiver) = channel();
        reader.running = Some(Running { files: held, tables });
        assert!(reader.begin(keys[0], stuck.clone()) && reader.begin(keys[1], other));
        assert_eq!(reader.take_finished(), None);
        reader.since = Instant::now().checked_sub(LATE);
        assert_eq!(reader.take_finished(), Some((keys[0], FileTable::default())));
        assert!(reader.wait().is_some_and(|(key, table)| key == keys[1] && !table.rows.is_empty()));
        assert!(!reader.begin(keys[0], stuck), "its file system is dead");
    }
}
