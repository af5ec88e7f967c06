//! Reads files' unwind tables on a thread of its own: libjvm takes 20 ms, in which a window must be
//! able to end.

use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use joular_ebpf::abi::UnwindRow;

use super::eh_frame;
use crate::{
    elf::{Elf, ElfError, segment::Segment},
    symbols::native::FileKey,
};

/// Files under way, and their size: a large one is read alone, since its rows take
/// up to 8 MiB until they are taken.
const MAX_UNDER_WAY: usize = 8;
const MAX_BYTES_UNDER_WAY: u64 = 8 << 20;

/// What a file says about unwinding. Empty if it says nothing or cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTable {
    pub segments: Vec<Segment>,
    pub rows: Vec<UnwindRow>,
}

impl FileTable {
    pub fn read(file: &File) -> Self {
        // A parser of hostile bytes that is not all ours: should it panic, the file
        // has no table.
        catch_unwind(AssertUnwindSafe(|| Self::of(file).unwrap_or_default())).unwrap_or_default()
    }

    fn of(file: &File) -> Result<Self, ElfError> {
        let elf = Elf::read(file)?;
        Ok(Self { rows: eh_frame::rows(&eh_frame::section(&elf)?), segments: elf.code().collect() })
    }
}

/// The thread, from the first file on.
#[derive(Debug, Default)]
pub struct Reader {
    running: Option<Running>,
    under_way: usize,
    bytes_under_way: u64,
}

#[derive(Debug)]
struct Running {
    files: Sender<(FileKey, File)>,
    tables: Receiver<(FileKey, FileTable)>,
}

impl Reader {
    pub const fn has_room(&self, next: FileKey) -> bool {
        let bytes = self.bytes_under_way.saturating_add(next.bytes());
        self.under_way == 0 || self.under_way < MAX_UNDER_WAY && bytes <= MAX_BYTES_UNDER_WAY
    }

    /// Says whether it could be begun.
    pub fn begin(&mut self, key: FileKey, file: File) -> bool {
        if self.running.is_none() {
            self.running = Running::start();
        }
        let begun = self.running.as_ref().is_some_and(|running| running.files.send((key, file)).is_ok());
        if begun {
            self.under_way += 1;
            self.bytes_under_way = self.bytes_under_way.saturating_add(key.bytes());
        }
        begun
    }

    /// One that is done, if any.
    pub fn take_finished(&mut self) -> Option<(FileKey, FileTable)> {
        let finished = self.running.as_ref()?.tables.try_recv().ok()?;
        self.has_finished(finished.0);
        Some(finished)
    }

    const fn has_finished(&mut self, key: FileKey) {
        self.under_way = self.under_way.saturating_sub(1);
        self.bytes_under_way = self.bytes_under_way.saturating_sub(key.bytes());
    }

    /// Waits for one.
    #[cfg(test)]
    pub fn wait(&mut self) -> Option<(FileKey, FileTable)> {
        let finished = self.running.as_ref()?.tables.recv_timeout(std::time::Duration::from_secs(30)).ok()?;
        self.has_finished(finished.0);
        Some(finished)
    }
}

impl Running {
    fn start() -> Option<Self> {
        let (files, received) = channel::<(FileKey, File)>();
        let (sender, tables) = channel();
        let work = move || {
            for (key, file) in received {
                if sender.send((key, FileTable::read(&file))).is_err() {
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
    use std::io::Write as _;

    use super::*;

    #[test]
    fn files_are_read_one_after_the_other() {
        let mut junk = tempfile::tempfile().unwrap();
        junk.write_all(b"no ELF file").unwrap();
        let mut reader = Reader::default();
        assert_eq!(reader.take_finished(), None);
        let mut expected = Vec::new();
        for (file, has_table) in [(File::open("/bin/true").unwrap(), true), (junk, false)] {
            let key = FileKey::of(&file).unwrap();
            assert!(reader.has_room(key) && reader.begin(key, file));
            expected.push((key, has_table));
        }
        for (key, has_table) in expected {
            let (finished, table) = reader.wait().unwrap();
            assert_eq!((finished, !table.rows.is_empty(), !table.segments.is_empty()), (key, has_table, has_table));
        }
        assert_eq!((reader.under_way, reader.bytes_under_way), (0, 0));
    }

    #[test]
    fn a_large_file_is_read_alone() {
        let file = |bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes).unwrap();
            FileKey::of(&file).unwrap()
        };
        let (large, small) = (file(MAX_BYTES_UNDER_WAY + 1), file(1000));
        let with = |under_way, bytes_under_way| Reader { running: None, under_way, bytes_under_way };
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
}
