//! Reads a file at random offsets, wherever it lies.

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use parquet::{
    errors::{ParquetError, Result},
    file::reader::{ChunkReader, Length},
};

/// Something whose bytes are read by offset.
pub trait ReadAt: Send + Sync {
    /// Fills a part of `buffer` with what begins at `offset`; 0 at the end.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

/// An open file of a store, with the length that it had when it was opened.
#[derive(Clone)]
pub struct Object {
    bytes: Arc<dyn ReadAt>,
    size_bytes: u64,
    /// Why it could not be read, the first time. The libraries that decode it tell errors as text only.
    failure: Arc<OnceLock<io::Error>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

impl Object {
    pub fn new(bytes: impl ReadAt + 'static, size_bytes: u64) -> Self {
        Self { bytes: Arc::new(bytes), size_bytes, failure: Arc::default() }
    }

    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Why its bytes could not be had, if that is what went wrong; else what they say is wrong.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.get().map(copy_of)
    }

    /// Asks for all of it at once: of an object in a bucket, each time costs a request.
    pub(crate) fn read_all(self) -> io::Result<Vec<u8>> {
        let mut all = vec![0; usize::try_from(self.size_bytes).unwrap_or(usize::MAX)];
        let mut reader = ObjectReader { object: self, at: 0 };
        let mut count = 0;
        while let Some(rest) = all.get_mut(count..).filter(|rest| !rest.is_empty()) {
            match reader.read(rest) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        all.truncate(count);
        Ok(all)
    }
}

/// An error that says the same.
fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

/// Reads an object from an offset on.
pub struct ObjectReader {
    object: Object,
    at: u64,
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What was added to a file since it was opened is not part of it.
        let left = usize::try_from(self.object.size_bytes.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let read = self.object.bytes.read_at(buffer.get_mut(..room).unwrap_or_default(), self.at);
        let count = read.inspect_err(|error| drop(self.object.failure.set(copy_of(error))))?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

impl Length for Object {
    fn len(&self) -> u64 {
        self.size_bytes
    }
}

impl ChunkReader for Object {
    type T = BufReader<ObjectReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(ObjectReader { object: self.clone(), at: start }))
    }

    /// A file may claim a part of any length, so memory is taken only for the bytes that it has.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size_bytes) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are not in a file of {}",
                self.size_bytes
            )));
        }
        let mut bytes = vec![0; length];
        ObjectReader { object: self.clone(), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn object() -> Object {
        Object::new(Bytes::from_static(b"0123456789"), 8)
    }

    #[test]
    fn parts_are_read_by_their_place() {
        assert_eq!(object().get_bytes(2, 3).unwrap(), "234");
        let mut rest = String::new();
        object().get_read(6).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "67", "what was added later is not part of it");
        assert_eq!(object().read_all().unwrap(), b"01234567");
        assert_eq!(Object::new(Bytes::from_static(b"012"), 8).read_all().unwrap(), b"012", "it is shorter by now");
    }

    #[test]
    fn all_of_it_is_asked_for_at_once() {
        struct Counting(Arc<AtomicUsize>);
        impl ReadAt for Counting {
            fn read_at(&self, buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok(buffer.len())
            }
        }
        let times = Arc::new(AtomicUsize::new(0));
        assert_eq!(Object::new(Counting(Arc::clone(&times)), 3 << 20).read_all().unwrap().len(), 3 << 20);
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error_and_takes_no_memory() {
        for (start, length) in [(0, 9), (8, 1), (u64::MAX, 1), (0, usize::MAX)] {
            assert!(object().get_bytes(start, length).is_err(), "{start} {length}");
        }
    }

    #[test]
    fn why_its_bytes_cannot_be_had_is_remembered() {
        struct Away;
        impl ReadAt for Away {
            fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
                Err(io::Error::new(io::ErrorKind::NotFound, "it is gone"))
            }
        }
        let away = Object::new(Away, 8);
        assert!(away.failure().is_none());
        assert!(away.clone().get_bytes(0, 8).is_err());
        let failure = away.failure().unwrap();
        assert_eq!((failure.kind(), failure.to_string()), (io::ErrorKind::NotFound, "it is gone".to_owned()));
    }

    #[test]
    fn a_file_that_shrank_is_an_error() {
        let object = Object::new(Bytes::from_static(b"012"), 8);
        assert!(object.get_bytes(0, 8).is_err());
    }
}
