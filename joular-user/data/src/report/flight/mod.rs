//! Reads recordings of Java Flight Recorder: which events there are, when they began and how long they took.
//!
//! A recording consists of chunks, and each says all that is needed to read it: a [`header`], events, a description of their
//! [`types`], and [`constants`] that they refer to. The layout is that of the JDK's own reader
//! (`jdk.jfr.internal.consumer.ChunkParser`); JDK 9 and later write versions 1 and 2. [`values`] decodes fields.
//!
//! Bytes are anybody's. One chunk is in memory at a time, as much as the file really has of it. Every event and checkpoint is
//! found by going through the chunk from its begin, so offsets cannot lead in a circle; how deep values nest and how many
//! there are is bounded.
//!
//! The crate `jfrs` (0.2.5) also reads such files. It reserves memory by lengths that the file claims, follows a chain of
//! offsets without an end, and reads values that contain themselves, so a damaged file can end the program. Hence this reader.

mod constants;
mod error;
mod events;
pub(super) mod header;
pub(super) mod input;
#[cfg(test)]
pub(in crate::report) mod made;
#[cfg(test)]
mod tests;
pub(super) mod types;
mod values;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use self::{
    error::{Damage, FlightError},
    events::Event,
};
use self::{
    header::{Header, HeaderError, SIZE},
    types::Types,
};

/// Bytes of a chunk that is read. The JVM begins another one after 12 MB, unless it is told to wait.
const MOST_CHUNK_BYTES: u64 = 1 << 30;

/// A recording, chunk by chunk.
pub struct Recording<R> {
    path: PathBuf,
    input: R,
    /// Where the next chunk begins.
    at: u64,
}

/// A part of a recording that says all that is needed to read it.
#[derive(Debug)]
pub struct Chunk {
    /// When it begins, and how long it is.
    pub header: Header,
    /// With the header.
    bytes: Vec<u8>,
    pub(super) types: Types,
}

impl Recording<File> {
    /// # Errors
    /// If there is no such file, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FlightError> {
        let opened = |cause| FlightError::Open { path: path.into(), cause };
        // A pipe would be waited for.
        if !path.metadata().map_err(opened)?.is_file() {
            return Err(FlightError::NotAFile { path: path.into() });
        }
        Ok(Self::of(path, File::open(path).map_err(opened)?))
    }
}

impl<R: Read> Recording<R> {
    /// Of bytes from elsewhere; errors name `path`.
    pub fn of(path: &Path, input: R) -> Self {
        Self { path: path.into(), input, at: 0 }
    }

    /// The next chunk; `None` behind the last one. After an error there is no next one.
    ///
    /// # Errors
    /// If these are not bytes of a recording, the version is not known, the chunk is not finished, too large or damaged, or the
    /// file ends within it.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, FlightError> {
        let mut bytes = Vec::with_capacity(SIZE);
        self.fill(&mut bytes, SIZE as u64)?;
        if bytes.is_empty() && self.at > 0 {
            return Ok(None);
        }
        let header = Header::read(&bytes).map_err(|cause| self.refused(cause, &bytes))?;
        if header.size > MOST_CHUNK_BYTES {
            return Err(FlightError::TooLarge { path: self.path.clone(), at: self.at, size: header.size });
        }
        self.fill(&mut bytes, header.size)?;
        if (bytes.len() as u64) < header.size {
            return Err(FlightError::Truncated { path: self.path.clone(), at: self.at, size: header.size });
        }
        let types = Types::read(&bytes, header.metadata_at).map_err(|damage| self.damaged(damage))?;
        self.at += header.size;
        Ok(Some(Chunk { header, bytes, types }))
    }

    /// Reads until there are so many bytes, or no more.
    fn fill(&mut self, bytes: &mut Vec<u8>, size: u64) -> Result<(), FlightError> {
        let missing = size.saturating_sub(bytes.len() as u64);
        let read: io::Result<usize> = self.input.by_ref().take(missing).read_to_end(bytes);
        read.map_err(|cause| FlightError::Read { path: self.path.clone(), cause })?;
        Ok(())
    }

    fn refused(&self, cause: HeaderError, bytes: &[u8]) -> FlightError {
        let (path, at) = (self.path.clone(), self.at);
        match cause {
            HeaderError::Magic if at == 0 => FlightError::not_a_recording(path, bytes),
            HeaderError::Magic => FlightError::Damaged { path, at, damage: Damage::NotAChunk },
            HeaderError::Ends => FlightError::Truncated { path, at, size: SIZE as u64 },
            HeaderError::Version { major, minor } => FlightError::Version { path, major, minor },
            HeaderError::Unfinished => FlightError::Unfinished { path, at },
            HeaderError::Damaged(damage) => FlightError::Damaged { path, at, damage },
        }
    }

    /// Damage of the chunk that is being read.
    fn damaged(&self, damage: Damage) -> FlightError {
        FlightError::Damaged { path: self.path.clone(), at: self.at, damage }
    }

    /// How many events of a chunk there are of each type that has any.
    ///
    /// # Errors
    /// If the chunk is damaged.
    pub fn counts<'a>(&self, chunk: &'a Chunk) -> Result<Vec<(&'a str, u64)>, FlightError> {
        chunk.counts().map_err(|damage| self.damaged_before(chunk, damage))
    }

    /// Calls `take` for each event of a chunk whose type's name `wants` allows.
    ///
    /// # Errors
    /// If the chunk is damaged.
    pub fn events(
        &self,
        chunk: &Chunk,
        wants: impl FnMut(&str) -> bool,
        take: impl FnMut(&Event<'_>),
    ) -> Result<(), FlightError> {
        chunk.events(wants, take).map_err(|damage| self.damaged_before(chunk, damage))
    }

    /// Damage of a chunk that was read.
    fn damaged_before(&self, chunk: &Chunk, damage: Damage) -> FlightError {
        FlightError::Damaged { path: self.path.clone(), at: self.at.saturating_sub(chunk.header.size), damage }
    }
}
