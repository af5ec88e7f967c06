//! Reads files' unwind tables on a thread of its own: libjvm takes 20 ms, in
//! which a window must be able to end.

use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use joular_ebpf::abi::UnwindRow;

use super::{
    eh_frame,
    elf::{Elf, Segment},
};
use crate::symbols::native::FileKey;

/// Files under way: each may hold 8 MiB of rows until they are taken.
const MAX_UNDER_WAY: usize = 3;

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
        catch_unwind(AssertUnwindSafe(|| {
            let Ok(elf) = Elf::read(file) else { return Self::default() };
            Self { rows: eh_frame::rows(&elf.eh_frame), segments: elf.segments }
        }))
        .unwrap_or_default()
    }
}

/// The thread, from the first file on.
#[derive(Debug, Default)]
pub struct Reader {
    running: Option<Running>,
    under_way: usize,
}

#[derive(Debug)]
struct Running {
    files: Sender<(FileKey, File)>,
    tables: Receiver<(FileKey, FileTable)>,
}

impl Reader {
    pub const fn has_room(&self) -> bool {
        self.under_way < MAX_UNDER_WAY
    }

    /// Says whether it could be begun.
    pub fn begin(&mut self, key: FileKey, file: File) -> bool {
        if self.running.is_none() {
            self.running = Running::start();
        }
        let begun = self.running.as_ref().is_some_and(|running| running.files.send((key, file)).is_ok());
        self.under_way += usize::from(begun);
        begun
    }

    /// One that is done, if any.
    pub fn take_finished(&mut self) -> Option<(FileKey, FileTable)> {
        let finished = self.running.as_ref()?.tables.try_recv().ok()?;
        self.under_way = self.under_way.saturating_sub(1);
        Some(finished)
    }

    /// Waits for one.
    #[cfg(test)]
    pub fn wait(&mut self) -> Option<(FileKey, FileTable)> {
        let finished = self.running.as_ref()?.tables.recv_timeout(std::time::Duration::from_secs(30)).ok()?;
        self.under_way -= 1;
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
            assert!(reader.has_room() && reader.begin(key, file));
            expected.push((key, has_table));
        }
        for (key, has_table) in expected {
            let (finished, table) = reader.wait().unwrap();
            assert_eq!((finished, !table.rows.is_empty(), !table.segments.is_empty()), (key, has_table, has_table));
        }
        assert_eq!(reader.under_way, 0);
    }
}
