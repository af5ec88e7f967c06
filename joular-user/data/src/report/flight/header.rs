//! Reads the header of a chunk: its size, its clock, and where its types are described.

use super::error::Damage;
use crate::model::units::UnixMicros;

/// Bytes of a header.
pub const SIZE: usize = 68;

const MAGIC: &[u8] = b"FLR\0";

/// Versions that are known.
const MAJORS: std::ops::RangeInclusive<u16> = 1..=2;

/// Where the state of the file is: 0 if the chunk is finished.
const STATE: usize = 64;

/// Bit of the last byte: integers are compressed.
const COMPRESSED: u8 = 1;

/// What a chunk says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// With the header, bytes; at least [`SIZE`].
    pub size: u64,
    /// Where the event is that describes types.
    pub metadata_at: u64,
    /// Nanoseconds since 1970 by the wall clock.
    pub start_ns: i64,
    pub length_ns: u64,
    /// By the clock that events have, at `start_ns`.
    pub start_ticks: i64,
    /// Not 0.
    pub ticks_per_second: u64,
}

/// Why a header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    Magic,
    Ends,
    Version { major: u16, minor: u16 },
    Unfinished,
    Damaged(Damage),
}

impl Header {
    /// Reads the first bytes of a chunk.
    ///
    /// # Errors
    /// If they are not a header, or of a chunk that cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(HeaderError::Magic);
        }
        let header: &[u8; SIZE] = bytes.first_chunk().ok_or(HeaderError::Ends)?;
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| header[at + byte]));
        let (major, minor) = (short(4), short(6));
        if !MAJORS.contains(&major) {
            return Err(HeaderError::Version { major, minor });
        }
        let (size, metadata_at) = (long(8), long(24));
        if size == 0 || header[STATE] != 0 {
            return Err(HeaderError::Unfinished);
        }
        if header[SIZE - 1] & COMPRESSED == 0 {
            return Err(HeaderError::Damaged(Damage::Uncompressed));
        }
        let ticks_per_second = long(56);
        if ticks_per_second == 0 {
            return Err(HeaderError::Damaged(Damage::NoTicks));
        }
        if metadata_at < SIZE as u64 || metadata_at >= size {
            return Err(HeaderError::Damaged(Damage::Offset));
        }
        Ok(Self {
            size,
            metadata_at,
            start_ns: long(32).cast_signed(),
            length_ns: long(40),
            start_ticks: long(48).cast_signed(),
            ticks_per_second,
        })
    }

    /// When it begins, by the wall clock.
    pub fn start(&self) -> UnixMicros {
        UnixMicros(self.start_ns.div_euclid(1000))
    }

    /// When it ends, by the wall clock.
    pub fn end(&self) -> UnixMicros {
        let end = self.start_ns.saturating_add(i64::try_from(self.length_ns).unwrap_or(i64::MAX));
        UnixMicros(end.div_euclid(1000))
    }

    /// The moment of a count of ticks, in nanoseconds since 1970 by the wall clock.
    pub fn moment_ns(&self, ticks: i64) -> i64 {
        let since = self.nanoseconds(i128::from(ticks) - i128::from(self.start_ticks));
        clamped(i128::from(self.start_ns) + since)
    }

    /// How long so many ticks are. Less than none are none.
    pub fn duration_ns(&self, ticks: i64) -> u64 {
        u64::try_from(self.nanoseconds(ticks.into())).unwrap_or(0)
    }

    fn nanoseconds(&self, ticks: i128) -> i128 {
        ticks * 1_000_000_000 / i128::from(self.ticks_per_second)
    }
}

fn clamped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(change: impl FnOnce(&mut [u8; SIZE])) -> Result<Header, HeaderError> {
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[5] = 2;
        for (at, value) in [(8, 1000_u64), (24, 900), (32, 5_000_000_000), (40, 7), (48, 100), (56, 10)] {
            bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
        }
        bytes[SIZE - 1] = COMPRESSED;
        change(&mut bytes);
        Header::read(&bytes)
    }

    #[test]
    fn ticks_are_moments_by_the_wall_clock() {
        let header = header(|_| {}).unwrap();
        for (ticks, expected) in [(100, 5_000_000_000), (110, 6_000_000_000), (99, 4_900_000_000), (101, 5_100_000_000)]
        {
            assert_eq!(header.moment_ns(ticks), expected, "{ticks}");
        }
        assert_eq!((header.moment_ns(i64::MAX), header.moment_ns(i64::MIN)), (i64::MAX, i64::MIN));
        assert_eq!((header.duration_ns(25), header.duration_ns(-25)), (2_500_000_000, 0));
    }

    #[test]
    fn what_is_wrong_with_a_header_is_told() {
        assert_eq!(header(|bytes| bytes[0] = b'X'), Err(HeaderError::Magic));
        assert_eq!(header(|bytes| bytes[5] = 3), Err(HeaderError::Version { major: 3, minor: 0 }));
        assert_eq!(header(|bytes| bytes[5] = 0), Err(HeaderError::Version { major: 0, minor: 0 }));
        assert_eq!(header(|bytes| bytes[8..16].fill(0)), Err(HeaderError::Unfinished));
        for state in [1, 255] {
            assert_eq!(header(|bytes| bytes[STATE] = state), Err(HeaderError::Unfinished));
        }
        assert_eq!(header(|bytes| bytes[SIZE - 1] = 0), Err(HeaderError::Damaged(Damage::Uncompressed)));
        assert_eq!(header(|bytes| bytes[56..64].fill(0)), Err(HeaderError::Damaged(Damage::NoTicks)));
        assert_eq!(header(|bytes| bytes[24..32].fill(0)), Err(HeaderError::Damaged(Damage::Offset)));
        assert_eq!(header(|bytes| bytes[24..32].fill(255)), Err(HeaderError::Damaged(Damage::Offset)));
        assert_eq!(Header::read(b"FLR\0"), Err(HeaderError::Ends));
    }
}
