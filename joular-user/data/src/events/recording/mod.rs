//! Reads and writes recordings: the event stream in a file, to be interpreted later.
//!
//! ```text
//! "JOULARBPF\0"   magic, 10 bytes
//! u16 LE          version of the format
//! zstd stream of frames:
//!     u32 LE      length of the event
//!     …           the event, postcard
//! ```
//!
//! The stream is flushed after each window, so what a crash leaves is readable up to the last whole
//! window. A recording may come from someone else. So an event is at most 16 MiB, the
//! decompressor's memory is bounded, an event that no run makes is refused ([`limits`]), and damage
//! is an error with its place, never a panic.

mod limits;

use std::io::{self, BufReader, Read, Write};

use thiserror::Error;

use super::Event;

/// First bytes of a recording.
const MAGIC: &[u8; 10] = b"JOULARBPF\0";

/// The version that is written, and the only one that is read. Any change to what [`Event`] contains
/// needs a new version, because postcard does not describe itself. Only a new kind of event, or another
/// new variant, at the end of its enum does not: what was written before has none.
const VERSION: u16 = 7;

/// Largest event. A window of a very large host (100 000 threads) has 10 MB.
const MAX_EVENT_BYTES: u32 = 16 * 1024 * 1024;

/// Largest zstd window that is decoded: 8 MiB, as much as any level that does
/// not ask for more ("long" or "ultra") uses.
const MAX_WINDOW_LOG: u32 = 23;

/// Small enough to keep up with any event rate.
const COMPRESSION_LEVEL: i32 = 3;

/// Why a recording cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("writing the recording: {0}")]
    Write(#[source] io::Error),
    #[error(
        "writing the recording: an event of {bytes} bytes, of which {MAX_EVENT_BYTES} are allowed: it was left out"
    )]
    TooLarge { bytes: usize },
    #[error("writing the recording: an event with {cause}: it was left out")]
    Refused { cause: String },
    #[error(
        "writing the recording: {events} events were left out because they are too large, so a replay will not give all \
         that the run gave: record with a shorter --interval"
    )]
    LeftOut { events: u64 },
    #[error("reading the recording: {0}")]
    Read(#[source] io::Error),
    #[error("reading the recording: this is not a joular-bpf recording: use a file made with --record")]
    NotARecording,
    #[error(
        "reading the recording: it has format version {found}, this joular-bpf reads version {VERSION}: use a newer joular-bpf"
    )]
    NewerVersion { found: u16 },
    #[error(
        "reading the recording: it has format version {found}, this joular-bpf reads version {VERSION}: use the joular-bpf that made it"
    )]
    OlderVersion { found: u16 },
    /// It ends in the middle, as a crash leaves it. What came before is whole.
    #[error(
        "reading the recording: it is truncated after {events_read} events: the run did not end properly, or the file was cut"
    )]
    Truncated { events_read: u64 },
    /// `offset` counts bytes of the decompressed stream.
    #[error("reading the recording: damaged after {events_read} events, at byte {offset} of the stream: {cause}")]
    Corrupt { events_read: u64, offset: u64, cause: String },
}

/// Writes events as they happen.
pub struct RecordingWriter<W: Write> {
    encoder: zstd::stream::write::Encoder<'static, W>,
}

impl<W: Write> RecordingWriter<W> {
    /// Starts a recording.
    ///
    /// # Errors
    /// [`RecordingError::Write`].
    pub fn new(mut output: W) -> Result<Self, RecordingError> {
        let mut start = || {
            output.write_all(MAGIC)?;
            output.write_all(&VERSION.to_le_bytes())
        };
        start().map_err(RecordingError::Write)?;
        let mut encoder =
            zstd::stream::write::Encoder::new(output, COMPRESSION_LEVEL).map_err(RecordingError::Write)?;
        // Damage that still decodes shows at the end.
        encoder.include_checksum(true).map_err(RecordingError::Write)?;
        Ok(Self { encoder })
    }

    /// Appends an event, and makes everything so far readable if it is a window.
    ///
    /// # Errors
    /// [`RecordingError::Write`], after which the recording ends here, or
    /// [`RecordingError::TooLarge`] or [`RecordingError::Refused`], after which
    /// it goes on without the event.
    pub fn write(&mut self, event: &Event) -> Result<(), RecordingError> {
        let bytes =
            postcard::to_stdvec(event).map_err(|error| RecordingError::Write(io::Error::other(error.to_string())))?;
        let too_large = RecordingError::TooLarge { bytes: bytes.len() };
        let Some(length) = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_EVENT_BYTES) else {
            return Err(too_large);
        };
        // Nothing that its readers would take for damage.
        limits::check(event).map_err(|cause| RecordingError::Refused { cause })?;
        let mut append = || {
            self.encoder.write_all(&length.to_le_bytes())?;
            self.encoder.write_all(&bytes)?;
            if matches!(event, Event::Window(_)) { self.encoder.flush() } else { Ok(()) }
        };
        append().map_err(RecordingError::Write)
    }

    /// Ends the recording properly and gives back what it was written to.
    ///
    /// # Errors
    /// [`RecordingError::Write`].
    pub fn finish(self) -> Result<W, RecordingError> {
        let finish = || {
            let mut output = self.encoder.finish()?;
            output.flush()?;
            Ok(output)
        };
        finish().map_err(RecordingError::Write)
    }
}

fn check_version(found: u16) -> Result<(), RecordingError> {
    match found {
        VERSION => Ok(()),
        found if found > VERSION => Err(RecordingError::NewerVersion { found }),
        found => Err(RecordingError::OlderVersion { found }),
    }
}

fn decode(bytes: &[u8]) -> Result<Event, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((event, [])) => Ok(event),
        Ok((_, rest)) => Err(format!("{} bytes too many in an event", rest.len())),
        Err(error) => Err(format!("an event that cannot be decoded: {error}")),
    }
}

/// The events of a recording, in order. The first error ends it.
pub struct RecordingReader<R: Read> {
    decoder: zstd::stream::read::Decoder<'static, BufReader<R>>,
    events_read: u64,
    offset: u64,
    has_ended: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`RecordingError::NotARecording`], [`RecordingError::NewerVersion`], [`RecordingError::OlderVersion`],
    /// [`RecordingError::Truncated`] within the header, [`RecordingError::Read`].
    pub fn new(input: R) -> Result<Self, RecordingError> {
        let mut input = BufReader::new(input);
        let mut header = Vec::new();
        let header_bytes = (MAGIC.len() + size_of::<u16>()) as u64;
        input.by_ref().take(header_bytes).read_to_end(&mut header).map_err(RecordingError::Read)?;
        match header.strip_prefix(MAGIC) {
            Some([low, high]) => check_version(u16::from_le_bytes([*low, *high]))?,
            Some(_) => return Err(RecordingError::Truncated { events_read: 0 }),
            None if !header.is_empty() && MAGIC.starts_with(&header) => {
                return Err(RecordingError::Truncated { events_read: 0 });
            }
            None => return Err(RecordingError::NotARecording),
        }
        let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(RecordingError::Read)?;
        decoder.window_log_max(MAX_WINDOW_LOG).map_err(RecordingError::Read)?;
        Ok(Self { decoder, events_read: 0, offset: 0, has_ended: false })
    }

    /// The next event, `None` at an orderly end.
    fn read_event(&mut self) -> Result<Option<Event>, RecordingError> {
        let prefix = self.read_bytes(size_of::<u32>() as u64)?;
        let length = match *prefix.as_slice() {
            [] if self.events_read > 0 => return Ok(None),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            // A run says at least that it started.
            _ => return Err(RecordingError::Truncated { events_read: self.events_read }),
        };
        if length > MAX_EVENT_BYTES {
            return Err(self.corrupt(format!("an event of {length} bytes, of which {MAX_EVENT_BYTES} are allowed")));
        }
        let bytes = self.read_bytes(u64::from(length))?;
        if bytes.len() as u64 != u64::from(length) {
            return Err(RecordingError::Truncated { events_read: self.events_read });
        }
        let event = decode(&bytes).map_err(|cause| self.corrupt(cause))?;
        limits::check(&event).map_err(|cause| self.corrupt(cause))?;
        self.events_read += 1;
        self.offset += 4 + u64::from(length);
        Ok(Some(event))
    }

    /// Up to `count` decompressed bytes, fewer only at the stream's end.
    fn read_bytes(&mut self, count: u64) -> Result<Vec<u8>, RecordingError> {
        let mut bytes = Vec::new();
        match self.decoder.by_ref().take(count).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: io::Error) -> RecordingError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => RecordingError::Truncated { events_read: self.events_read },
            // Errors of the system have a number, those of zstd do not.
            _ if error.raw_os_error().is_some() => RecordingError::Read(error),
            _ => self.corrupt(error.to_string()),
        }
    }

    const fn corrupt(&self, cause: String) -> RecordingError {
        RecordingError::Corrupt { events_read: self.events_read, offset: self.offset, cause }
    }
}

impl<R: Read> Iterator for RecordingReader<R> {
    type Item = Result<Event, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = self.read_event().transpose();
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests;
