//! Says why a recording cannot be read, and what to do.

use std::{io, path::PathBuf};

use thiserror::Error;

use super::MOST_CHUNK_BYTES;

/// Why a recording of Flight Recorder cannot be used.
#[derive(Debug, Error)]
pub enum FlightError {
    #[error("opening {path}: {cause}")]
    Open { path: PathBuf, cause: io::Error },
    #[error("{path} is not a file: name a recording, such as one that `jcmd PID JFR.dump filename=FILE` writes")]
    NotAFile { path: PathBuf },
    #[error("reading {path}: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    #[error("{path} is not a recording of Flight Recorder: {hint}")]
    NotARecording { path: PathBuf, hint: &'static str },
    #[error(
        "{path} is a recording of version {major}.{minor}: versions 1 and 2 can be read, which JDK 9 and later write: record with \
         such a JDK"
    )]
    Version { path: PathBuf, major: u16, minor: u16 },
    #[error(
        "{path}: the chunk at byte {at} is not finished: the JVM still writes it, or was killed: \
         `jcmd PID JFR.dump filename=FILE` writes a recording that is whole"
    )]
    Unfinished { path: PathBuf, at: u64 },
    #[error(
        "{path}: the file ends within the chunk at byte {at}, of {size} bytes: copy it again, or dump it again with jcmd"
    )]
    Truncated { path: PathBuf, at: u64, size: u64 },
    #[error(
        "{path}: the chunk at byte {at} claims {size} bytes, and at most {} MiB are read: the file is damaged, or record with \
         -XX:FlightRecorderOptions=maxchunksize=12m",
        MOST_CHUNK_BYTES >> 20
    )]
    TooLarge { path: PathBuf, at: u64, size: u64 },
    #[error("{path}: the chunk at byte {at} is damaged: {damage}: does the JDK's `jfr summary` read the file?")]
    Damaged { path: PathBuf, at: u64, damage: Damage },
    #[error("no event of {path} lies within the recording: {why}")]
    NoneWithin { path: PathBuf, why: String },
    #[error("no event of {path} has a name that --jfr-event asks for: the file has {found}")]
    NoneWanted { path: PathBuf, found: String },
}

impl FlightError {
    /// Whether what comes before is good: the file only ends too early.
    pub const fn is_of_the_end(&self) -> bool {
        matches!(self, Self::Unfinished { .. } | Self::Truncated { .. })
    }

    /// Says what the bytes seem to be instead.
    pub(super) fn not_a_recording(path: PathBuf, bytes: &[u8]) -> Self {
        let hint = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, hint)| *hint);
        let hint = hint.unwrap_or(match bytes {
            [] => "it is empty: the JVM writes it when the recording is dumped, or when the JVM ends",
            _ => "it does not begin as one does (FLR): name a file that the JDK's `jfr summary` reads",
        });
        Self::NotARecording { path, hint }
    }
}

/// How files begin that recordings are packed into.
const KNOWN: [(&[u8], &str); 6] = [
    (&[0x1f, 0x8b], "it is compressed: unpack it first, with `gunzip`"),
    (b"PK\x03\x04", "it is a ZIP archive: unpack it first, with `unzip`"),
    (&[0x04, 0x22, 0x4d, 0x18], "it is compressed: unpack it first, with `lz4 -d`"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed: unpack it first, with `zstd -d`"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "it is compressed: unpack it first, with `xz -d`"),
    (b"BZh", "it is compressed: unpack it first, with `bunzip2`"),
];

/// What is wrong with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    #[error("what stands there is not a chunk")]
    NotAChunk,
    #[error("its integers are not compressed, which no JDK writes")]
    Uncompressed,
    #[error("its clock has no ticks")]
    NoTicks,
    #[error("an offset is outside of it")]
    Offset,
    #[error("something in it ends too early")]
    Ends,
    #[error("an event has no size, or a size that does not fit")]
    EventSize,
    #[error("a text has an encoding that is not known")]
    Encoding,
    #[error("the description of its types is too large")]
    TypesTooLarge,
    #[error("the description of its types is not one")]
    Types,
    #[error("constants are of a type that it does not describe")]
    ConstantType,
    #[error("values are within each other without an end")]
    Nesting,
}
